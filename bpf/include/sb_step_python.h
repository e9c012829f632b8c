/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPython: frames hang off the thread state, which a pthread key leads to. */
#ifndef SB_STEP_PYTHON_H
#define SB_STEP_PYTHON_H

#include "sb_interp_step.h"

struct sb_python_conf {
	__u64 key_addr; /* of the key of autoTSSkey */
	struct sb_interp_tsd tsd;
	__u16 cframe, current;		   /* 3.11: PyThreadState.cframe, _PyCFrame.current_frame */
	__u16 code, back, instr, is_entry; /* of a frame */
	__u16 code_adaptive, first_line;
};
_Static_assert(sizeof(struct sb_python_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

enum { SB_PYTHON_FRAME }; /* of at[] */

static __always_inline const struct sb_python_conf *sb_python_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_python_conf *)w->conf.word;
}

static __always_inline enum sb_step sb_python_begin(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u32 key = sb_interp_u32(w, mem, conf->key_addr);
	__u64 state = sb_interp_tsd_get(w, mem, &conf->tsd, key), cframe;

	if (!state)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	cframe = sb_interp_word(w, mem, state + conf->cframe);
	w->at[SB_PYTHON_FRAME] = sb_interp_word(w, mem, cframe + conf->current);
	return SB_STEP_GO_ON;
}

static __always_inline enum sb_step sb_python_step(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 frame = w->at[SB_PYTHON_FRAME], code, position;
	enum sb_step step;

	if (!frame)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if (sb_interp_read(w, mem, &code, sizeof(code), frame + conf->code))
		return sb_interp_end(w, SB_STACK_FAULT);
	position = (sb_interp_word(w, mem, frame + conf->instr) - code - conf->code_adaptive) / 2;
	step = sb_interp_push(w, code, w->wants_lines ? position : 0,
			      sb_interp_u32(w, mem, code + conf->first_line));
	if (step != SB_STEP_GO_ON)
		return step;
	if (sb_interp_u8(w, mem, frame + conf->is_entry))
		sb_interp_segment_end(w);
	w->at[SB_PYTHON_FRAME] = sb_interp_word(w, mem, frame + conf->back);
	return SB_STEP_GO_ON;
}

#endif
