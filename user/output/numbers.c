// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/numbers.h"

int sb_numbers_of(struct sb_numbers *numbers, const char *s, uint32_t *ret_number)
{
	uint64_t hash = sb_hash(&s, sizeof(s), 0);

	sb_index_each(it, &numbers->index, hash) {
		if (numbers->at.at[it.id] == s) {
			*ret_number = it.id;
			return 0;
		}
	}
	*ret_number = (uint32_t)numbers->at.nr;
	return sb_index_push(&numbers->index, hash, &numbers->at, s);
}

void sb_numbers_release(struct sb_numbers *numbers)
{
	sb_vec_release(&numbers->at);
	sb_index_release(&numbers->index);
}
