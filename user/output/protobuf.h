/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as far as it is
 * written here. A message is a byte string; a nested one is built first and added as bytes. All
 * functions append to @message, which the caller initialized and releases, and return 0 or -ENOMEM,
 * and then a part may have been appended.
 * @field: number of the field. Thread: any, one for each message. Pointers are not NULL, but @data
 *	may be if @len is 0; what is given is copied.
 */
#ifndef SB_OUTPUT_PROTOBUF_H
#define SB_OUTPUT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A bare number, as in packed fields. */
int sb_pb_varint(struct sb_str *message, uint64_t val);
/* A number; nothing if it is 0, which is a reader's default. */
int sb_pb_u64(struct sb_str *message, uint32_t field, uint64_t val);
/* A number of type fixed64; nothing if it is 0. */
int sb_pb_fixed64(struct sb_str *message, uint32_t field, uint64_t val);
/* A string, bytes, a message or packed numbers; written also if @len is 0. */
int sb_pb_bytes(struct sb_str *message, uint32_t field, const void *data, size_t len);
/* A message that was built before. */
int sb_pb_message(struct sb_str *message, uint32_t field, const struct sb_str *inner);

#endif
