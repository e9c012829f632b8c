/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of CPython 2.7 and 3.6 to 3.15. The state of a thread is found in a slot of
 * thread-specific data (autoTSSkey), which is set even while the thread does not hold the
 * interpreter lock; _Py_tss_tstate is NULL in threads that wait for the lock. In 3.15 it is a
 * thread-local variable, and 2.7 has only a list of states. From the state, frames are a linked
 * list.
 *
 * How often the interpreter loop (_PyEval_EvalFrameDefault) is on the native stack: up to 3.10
 * once for each frame; in 3.11 once for each run of frames up to one with is_entry; from 3.12 on
 * once for each run up to a placeholder frame, the shim. The owner field of a shim is 3, or 4 in
 * 3.14.
 *
 * If there are several interpreters, a thread may be in one that another one called. Each
 * interpreter has a state for the thread. All are walked, the youngest interpreter first, because
 * an older one called it.
 *
 * Sources: Python/pystate.c, Include/internal/pycore_frame.h, Python/ceval.c of each version.
 *
 * In all functions, *@w is the walk of Python in one thread, whose conf.word is a struct
 * sb_python_conf, and @mem is passed to SB_INTERP_READ, which copies from the process; there is no
 * other state, so they run in any thread and BPF program. No pointer may be NULL but @mem.
 * Addresses are those of the process; memory that cannot be read counts as 0 unless said otherwise.
 * Results, enum sb_step: SB_STEP_GO_ON: call step() (again); SB_STEP_END: w->status (SB_STACK_*)
 * says why. Order: sb_python_begin() once, then sb_python_step() until it returns SB_STEP_END, as
 * sb_interp_step.h says; the other functions are parts of these. Frames that were pushed by then
 * remain, also after an error.
 */
#ifndef SB_STEP_PYTHON_H
#define SB_STEP_PYTHON_H

#include "bpf/step/sb_interp_step.h"

/* Bits of sb_python_conf.flags. */
enum {
	SB_PYTHON_TLS_FS = 1u << 0,  /* the state is at thread pointer + tls */
	SB_PYTHON_TLS_GOT = 1u << 1, /* it is a library's variable, found by the pair at tls */
	SB_PYTHON_LISTED = 1u << 2,  /* it is only in the list of its interpreter */
	SB_PYTHON_CFRAME = 1u << 3,  /* 3.11, 3.12: the frame is in *state.cframe */
	SB_PYTHON_EACH = 1u << 4,    /* each frame ends a segment */
	SB_PYTHON_ENTRY = 1u << 5,   /* frames with is_entry end a segment */
	SB_PYTHON_SHIMS = 1u << 6,   /* frames before a shim end a segment */
	SB_PYTHON_LASTI = 1u << 7,   /* the position is an int, not a pointer */
	SB_PYTHON_TLBC = 1u << 8,    /* each thread has its own copy of the bytecode */
	SB_PYTHON_CURRENT = 1u << 9, /* the state found is that of the innermost interpreter */
};

/* Words of a frame that are read at once; they include all that is used. */
#define SB_PYTHON_FRAME_WORDS 10
#define SB_PYTHON_OWNER_SHIM  3
/* Bound of threads with their own copy of one function's bytecode. */
#define SB_PYTHON_TLBC_MAX    65536u

struct sb_python_conf {
	__u64 key_addr;	   /* address of the number of the slot */
	__u64 tls;	   /* an offset from the thread pointer, or an address */
	__u64 interps;	   /* address of the pointer to the youngest interpreter; 0: only one */
	__u64 main_interp; /* the oldest interpreter */
	struct sb_interp_tsd tsd;
	__u32 flags;   /* SB_PYTHON_* */
	__u32 tls_off; /* from the start of the library's block, or of its variable */
	/* Offsets in PyInterpreterState, PyThreadState. */
	__u32 interp_next, interp_threads;
	__u16 state_next, state_thread_id;
	__u16 state_frame; /* offset of the frame's address, or of cframe's */
	__u16 cframe_frame;
	/*
	 * In a frame: where to read from; from there numbers of words, or of bytes for small
	 * fields.
	 */
	__u16 frame_from;
	__u16 code_word, back_word, instr_word;
	__u16 lasti;	  /* SB_PYTHON_LASTI: offset from the beginning of the frame */
	__u16 owner_byte; /* owner, or is_entry */
	__u16 tlbc_byte;
	/* In PyCodeObject. filename, name and qualname (or another field) are adjacent. */
	__u16 code_filename, code_adaptive, code_tlbc;
	__u16 reserved[2];
};
_Static_assert(sizeof(struct sb_python_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

/* at[]: */
enum {
	SB_PYTHON_AT_FRAME,  /* the next frame */
	SB_PYTHON_AT_STATE,  /* the state that was walked first */
	SB_PYTHON_AT_THREAD, /* in the list of states: the next one */
	SB_PYTHON_AT_INTERP, /* the next interpreter */
	SB_PYTHON_AT_OPEN,   /* whether the segment of the last frame is not ended yet */
	SB_PYTHON_AT_WORDS,  /* the words of the frame */
};
_Static_assert(SB_PYTHON_AT_WORDS + SB_PYTHON_FRAME_WORDS <= 16, "it fits");

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_python_conf *sb_python_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_python_conf *)w->conf.word;
}

/* Return: the PyThreadState of this thread; 0: it runs no Python, the state is only listed, or what
 * leads to it cannot be read. */
static __always_inline __u64 sb_python_state(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u32 flags = conf->flags;
	__u64 at;

	if (flags & SB_PYTHON_LISTED)
		return 0;
	if (flags & SB_PYTHON_TLS_FS)
		return sb_interp_word(w, mem, w->thread_pointer + conf->tls);
	if (flags & SB_PYTHON_TLS_GOT) {
		at = sb_interp_tls_addr(w, mem, conf->tls, conf->tsd.is_musl);
		return at ? sb_interp_word(w, mem, at + conf->tls_off) : 0;
	}
	return sb_interp_tsd_get(w, mem, &conf->tsd, sb_interp_u32(w, mem, conf->key_addr));
}

/* Return: the innermost frame of the PyThreadState @state; 0: none. */
static __always_inline __u64 sb_python_frame(struct sb_interp_walk *w, void *mem, __u64 state)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 frame = sb_interp_word(w, mem, state + conf->state_frame);

	if (frame && (conf->flags & SB_PYTHON_CFRAME))
		frame = sb_interp_word(w, mem, frame + conf->cframe_frame);
	return frame;
}

/*
 * Find the state of the thread, and store what step() needs in w->at, which is all 0 before.
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_COMPLETE when the thread does not run Python.
 */
static __always_inline enum sb_step sb_python_begin(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 state = sb_python_state(w, mem), interp = 0;

	if (conf->interps)
		interp = sb_interp_word(w, mem, conf->interps);
	if (interp == conf->main_interp && !(conf->flags & SB_PYTHON_LISTED))
		interp = 0; /* there is no other one */
	if (!state && !interp)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	w->at[SB_PYTHON_AT_INTERP] = interp;
	if (state && (!interp || (conf->flags & SB_PYTHON_CURRENT))) {
		w->at[SB_PYTHON_AT_STATE] = state;
		w->at[SB_PYTHON_AT_FRAME] = sb_python_frame(w, mem, state);
	}
	return SB_STEP_GO_ON;
}

/*
 * At the end of the frames of one state: end its segment, and go on to the next state of the
 * interpreter's list, if it is this thread's, or to the next interpreter. Return: SB_STEP_GO_ON,
 * also when neither has frames; SB_STEP_END, COMPLETE.
 */
static __always_inline enum sb_step sb_python_next(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 state = w->at[SB_PYTHON_AT_THREAD], interp = w->at[SB_PYTHON_AT_INTERP];

	if (w->at[SB_PYTHON_AT_OPEN]) {
		sb_interp_segment_end(w);
		w->at[SB_PYTHON_AT_OPEN] = 0;
	}
	if (state) {
		w->at[SB_PYTHON_AT_THREAD] = sb_interp_word(w, mem, state + conf->state_next);
		if (state != w->at[SB_PYTHON_AT_STATE] &&
		    sb_interp_word(w, mem, state + conf->state_thread_id) ==
			    sb_interp_pthread(w, &conf->tsd))
			w->at[SB_PYTHON_AT_FRAME] = sb_python_frame(w, mem, state);
		return SB_STEP_GO_ON;
	}
	if (!interp)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	w->at[SB_PYTHON_AT_THREAD] = sb_interp_word(w, mem, interp + conf->interp_threads);
	w->at[SB_PYTHON_AT_INTERP] = sb_interp_word(w, mem, interp + conf->interp_next);
	return SB_STEP_GO_ON;
}

/* Return: word number @word of the frame that step() read to w->at[]; 0: it was not read. */
static __always_inline __u64 sb_python_word(const struct sb_interp_walk *w, __u64 word)
{
	SB_STEP_OPAQUE(word);
	return word < SB_PYTHON_FRAME_WORDS ? w->at[SB_PYTHON_AT_WORDS + word] : 0;
}

/* Return: byte number @byte of the frame that step() read to w->at[]; 0: it was not read. */
static __always_inline __u64 sb_python_byte(const struct sb_interp_walk *w, __u64 byte)
{
	return sb_python_word(w, byte / 8) >> 8 * (byte & 7) & 0xff;
}

/* Return: 11 bits that identify a code object, for the @check of sb_interp_push(), from three words
 * of it that lie side by side: its file's name, its name and its qualified name (before 3.11: what
 * lies in that place). Who reads the name later computes them anew, and if they differ, another
 * object lies there by now. 0, which is that of words which could not be read, is not compared. */
static __always_inline __u64 sb_python_check(__u64 file, __u64 name, __u64 qualname)
{
	return (file ^ name << 1 ^ qualname << 2) * 0x9e3779b97f4a7c15ull >> 53;
}

/*
 * Return: the position in @code of the frame at @frame, whose words are in w->at[]: 1 + the number
 * of the code unit (up to 3.9: of the byte); 0: before the first one.
 */
static __always_inline __u64 sb_python_position(struct sb_interp_walk *w, void *mem, __u64 frame,
						__u64 code)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 instr = sb_python_word(w, conf->instr_word), base = code + conf->code_adaptive;
	__u64 tlbc;
	__u32 idx;

	if (conf->flags & SB_PYTHON_LASTI)
		return (__u32)(sb_interp_u32(w, mem, frame + conf->lasti) + 1);
	if (conf->flags & SB_PYTHON_TLBC) {
		idx = (__u32)(sb_python_word(w, conf->tlbc_byte / 8) >> 8 * (conf->tlbc_byte & 7));
		tlbc = sb_interp_word(w, mem, code + conf->code_tlbc);
		if (tlbc && idx && idx < SB_PYTHON_TLBC_MAX)
			base = sb_interp_word(w, mem, tlbc + 8 + 8ull * idx);
	}
	return instr < base ? 0 : (instr - base) / 2 + 1;
}

/*
 * Push the frame at @frame, whose words step() has read to w->at[], unless it is a placeholder; and
 * end its segment where the loop was called for it. Return: SB_STEP_GO_ON, pushed or not;
 * SB_STEP_END with SB_STACK_DEPTH.
 */
static __always_inline enum sb_step sb_python_push(struct sb_interp_walk *w, void *mem, __u64 frame)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 code = sb_python_word(w, conf->code_word) & ~7ull; /* 3.14: _PyStackRef */
	__u64 owner = sb_python_byte(w, conf->owner_byte);
	__u32 flags = conf->flags;
	__u64 name[3] = {};
	enum sb_step step;

	if ((flags & SB_PYTHON_SHIMS) && owner >= SB_PYTHON_OWNER_SHIM) {
		if (w->at[SB_PYTHON_AT_OPEN])
			sb_interp_segment_end(w);
		w->at[SB_PYTHON_AT_OPEN] = 0;
		return SB_STEP_GO_ON;
	}
	sb_interp_read(w, mem, name, sizeof(name), code + conf->code_filename);
	/* _Py_InitCleanup, pushed below an __init__ that is called without C code. */
	if ((flags & SB_PYTHON_SHIMS) && name[0] && name[0] == name[1] && name[1] == name[2])
		return SB_STEP_GO_ON;
	step = sb_interp_push(w, code, w->wants_lines ? sb_python_position(w, mem, frame, code) : 0,
			      sb_python_check(name[0], name[1], name[2]));
	if (step != SB_STEP_GO_ON)
		return step;
	w->at[SB_PYTHON_AT_OPEN] = 1;
	if ((flags & SB_PYTHON_EACH) || ((flags & SB_PYTHON_ENTRY) && owner == 1)) {
		sb_interp_segment_end(w);
		w->at[SB_PYTHON_AT_OPEN] = 0;
	}
	return SB_STEP_GO_ON;
}

/* Walk one frame, or go on to the next state of the thread. Return: SB_STEP_GO_ON; SB_STEP_END with
 * SB_STACK_COMPLETE behind the last state, FAULT when the frame cannot be read, DEPTH. */
static __always_inline enum sb_step sb_python_step(struct sb_interp_walk *w, void *mem)
{
	const struct sb_python_conf *conf = sb_python_conf(w);
	__u64 frame = w->at[SB_PYTHON_AT_FRAME];
	enum sb_step step;

	if (!frame)
		return sb_python_next(w, mem);
	if (sb_interp_read(w, mem, &w->at[SB_PYTHON_AT_WORDS], 8 * SB_PYTHON_FRAME_WORDS,
			   frame + conf->frame_from))
		return sb_interp_end(w, SB_STACK_FAULT);
	step = sb_python_push(w, mem, frame);
	w->at[SB_PYTHON_AT_FRAME] = sb_python_word(w, conf->back_word);
	return step;
}

#endif
