// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/protobuf.h"

enum wire_type { VARINT = 0, I64 = 1, LEN = 2 };

int sb_pb_varint(struct sb_str *message, uint64_t val)
{
	char bytes[10];
	size_t nr = 0;

	for (; val >= 0x80; val >>= 7)
		bytes[nr++] = (char)(val | 0x80);
	bytes[nr++] = (char)val;
	return sb_str_addn(message, bytes, nr);
}

static int tag(struct sb_str *message, uint32_t field, enum wire_type type)
{
	return sb_pb_varint(message, (uint64_t)field << 3 | type);
}

int sb_pb_u64(struct sb_str *message, uint32_t field, uint64_t val)
{
	if (!val)
		return 0;
	return tag(message, field, VARINT) ?: sb_pb_varint(message, val);
}

int sb_pb_fixed64(struct sb_str *message, uint32_t field, uint64_t val)
{
	char bytes[8];

	if (!val)
		return 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(val >> 8 * i);
	return tag(message, field, I64) ?: sb_str_addn(message, bytes, sizeof(bytes));
}

int sb_pb_bytes(struct sb_str *message, uint32_t field, const void *data, size_t len)
{
	int err = tag(message, field, LEN) ?: sb_pb_varint(message, len);

	return err || !len ? err : sb_str_addn(message, data, len);
}

int sb_pb_message(struct sb_str *message, uint32_t field, const struct sb_str *inner)
{
	return sb_pb_bytes(message, field, inner->s, inner->len);
}
