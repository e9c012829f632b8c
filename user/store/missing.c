// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/missing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

static uint16_t mark_of(const struct sb_dict *dict, uint32_t id)
{
	const struct sb_frame frame = sb_dict_frame_at(dict, id);

	if (frame.mark == SB_ATTR_TRUNCATED || frame.mark == SB_ATTR_LOST_STACK)
		return SB_MARKS_CUT;
	return frame.is_unnamed;
}

/* Parents come before their children. */
static void mark_nodes(const struct sb_dict *dict, const uint16_t *frame, uint16_t *node)
{
	uint32_t i;

	for (i = 1; i < dict->nodes.nr; i++) {
		uint32_t id = dict->nodes.at[i].frame;
		uint16_t above = node[dict->nodes.at[i].parent],
			 own = id == SB_DICT_NONE ? 0 : frame[id];
		uint32_t nr = (above & SB_MARKS_UNNAMED) + (own & SB_MARKS_UNNAMED);

		node[i] = (uint16_t)(((above | own) & SB_MARKS_CUT) |
				     (nr < SB_MARKS_UNNAMED ? nr : SB_MARKS_UNNAMED));
	}
}

int sb_missing_fit(struct sb_missing *marks, const struct sb_dict *dict)
{
	sb_cleanup(sb_freep) uint16_t *frame = NULL, *node = NULL;
	uint32_t i;
	int err;

	if (marks->of_row.nr == dict->rows.nr)
		return 0;
	frame = calloc(dict->frames.nr + 1, sizeof(*frame));
	node = calloc(dict->nodes.nr + 1, sizeof(*node));
	err = frame && node ? sb_vec_fit(&marks->of_row, dict->rows.nr, 0) : -ENOMEM;
	if (err)
		return err;
	for (i = 0; i < dict->frames.nr; i++)
		frame[i] = mark_of(dict, i);
	mark_nodes(dict, frame, node);
	for (i = 0; i < dict->rows.nr; i++)
		marks->of_row.at[i] = node[dict->rows.at[i].node];
	return 0;
}

void sb_missing_release(struct sb_missing *marks)
{
	sb_vec_release(&marks->of_row);
}
