/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as far as it is written
 * here. A message is a byte string; one inside another is put together first and added as bytes.
 */
#ifndef SB_OUTPUT_PROTOBUF_H
#define SB_OUTPUT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A bare number, as packed fields hold them. Return: 0 or -ENOMEM. */
int sb_pb_varint(struct sb_str *message, uint64_t val);
/* Field @field, a number; nothing if it is 0, which is what a reader takes a missing one for. */
int sb_pb_u64(struct sb_str *message, uint32_t field, uint64_t val);
/* Field @field of type fixed64; nothing if it is 0. */
int sb_pb_fixed64(struct sb_str *message, uint32_t field, uint64_t val);
/* Field @field: a string, bytes, a message, packed numbers. */
int sb_pb_bytes(struct sb_str *message, uint32_t field, const void *data, size_t len);
/* The same, of a message that was put together. */
int sb_pb_message(struct sb_str *message, uint32_t field, const struct sb_str *inner);

#endif
