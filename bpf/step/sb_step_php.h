/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of PHP. executor_globals.current_execute_data leads to a list of struct
 * _zend_execute_data, one for each running function, written in PHP or in C. Their layout is the
 * same from 7.4 to 8.6 (Zend/zend_compile.h), except for where a function keeps its file.
 *
 * The machine code that opcache makes (its JIT) has no unwind information and needs none:
 * execute_ex() jumps to it, and it leaves the stack as that function has it. So the unwind rule
 * inside of execute_ex() applies there, too, and native() uses it.
 *
 * In all functions, *@w is the walk of this runtime in one thread, whose conf.word is a struct
 * sb_php_conf, @walk is the native walk, and @mem is passed to SB_INTERP_READ, which copies from
 * the process; there is no other state, so they run in any thread and BPF program. No pointer may
 * be NULL but @mem. Addresses are those of the process; memory that cannot be read counts as 0
 * unless said otherwise. Results, enum sb_step: SB_STEP_GO_ON: call step() (again); SB_STEP_END:
 * w->status (SB_STACK_*) says why: FAULT, DEPTH, COMPLETE.
 *
 * Order, as sb_interp_step.h says: during the native walk, sb_php_native() for each native frame
 * that may be of the JIT; after it, sb_php_begin() once, then sb_php_step() until it returns
 * SB_STEP_END. The other functions are parts of these. Frames that were pushed by then remain, also
 * after an error.
 */
#ifndef SB_STEP_PHP_H
#define SB_STEP_PHP_H

#include "bpf/step/sb_interp_step.h"

/* Bound of the size of a C stack: the usual RLIMIT_STACK. */
#define SB_PHP_STACK_BYTES (8u << 20)

/* How executor_globals are found. */
enum sb_php_state {
	SB_PHP_GLOBAL, /* built without threads ("NTS"): at .globals */
	/* Built with threads ("ZTS"): at .globals relative to a thread-local pointer, which is */
	SB_PHP_TLS_GOT,	   /* at .tls_offset from the variable of the pair at .tls_got */
	SB_PHP_TLS_OFFSET, /* at .tls_offset from the thread pointer */
};

struct sb_php_conf {
	__u64 globals;
	__u64 tls_got, tls_offset;
	__u64 jit_begin, jit_end;
	/*
	 * Inside of execute_ex(): bytes from the stack pointer to its value in the caller; words
	 * below that where rbp and rbx are saved, 0: they are not.
	 */
	__u16 frame_bytes, fp_slot, bx_slot;
	__u16 is_musl;
	__u32 state;	/* enum sb_php_state */
	__u16 current;	/* executor_globals.current_execute_data */
	__u16 filename; /* zend_op_array.filename; line_start and line_end follow */
};
_Static_assert(sizeof(struct sb_php_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

/* struct _zend_executor_globals, _zend_execute_data, _zend_op, _zend_function_common. */
#define SB_PHP_BAILOUT	416 /* JMP_BUF *, which lies on the C stack */
#define SB_PHP_OP_BYTES 32
/* Where the loop keeps the innermost frame and its next instruction (zend_vm_execute.h:
 * ZEND_VM_FP_GLOBAL_REG, ZEND_VM_IP_GLOBAL_REG), by DWARF numbers. */
#ifdef SB_MACHINE_ARM64
#define SB_PHP_REG_FRAME 27
#define SB_PHP_REG_OP	 28
#else
#define SB_PHP_REG_FRAME 14
#define SB_PHP_REG_OP	 15
#endif
#define SB_PHP_OP_EXTENDED  20 /* u32 extended_value, u32 lineno, u8 opcode */
#define SB_PHP_OP_LINE	    24
#define SB_PHP_OP_CODE	    28
#define SB_PHP_STRING_LEN   16
#define SB_PHP_OP_INCLUDE   73	    /* ZEND_INCLUDE_OR_EVAL */
#define SB_PHP_CALL_TOP	    0x20000 /* in type_info: C code began the loop for this frame */
#define SB_PHP_INTERNAL	    1	    /* zend_function.type */
#define SB_PHP_USER	    2
#define SB_PHP_EVAL	    4

/*
 * Position: the line. For code outside of functions, the bits above it say how it came to run.
 * Such code, with its zend_op_array, may be gone a moment later, but the name of its file mostly
 * stays; so that is the obj of the frame.
 */
#define SB_PHP_LINE_MASK    0xffffffffull
#define SB_PHP_HOW_SHIFT    32
#define SB_PHP_HOW_MASK	    0xff
#define SB_PHP_HOW_CODE	    0x80 /* code outside of functions; obj is a zend_string */
#define SB_PHP_HOW_INCLUDED 0x40 /* not the script itself; the other bits: extended_value, */
#define SB_PHP_HOW_EVAL	    0x01 /* ZEND_EVAL..., ZEND_REQUIRE_ONCE */
#define SB_PHP_HOW_ONCE	    0x04
#define SB_PHP_HOW_REQUIRE  0x08
#define SB_PHP_HOW_REQUIRE1 0x10

/* Indexes in at[]. */
enum {
	SB_PHP_AT,   /* the next execute_data */
	SB_PHP_LEAF, /* the first one */
	SB_PHP_EX,   /* struct _zend_execute_data: */
	SB_PHP_OPLINE = SB_PHP_EX,
	SB_PHP_FUNC = SB_PHP_EX + 3,
	SB_PHP_TYPE_INFO = SB_PHP_EX + 5,
	SB_PHP_PREV = SB_PHP_EX + 6,
	SB_PHP_TYPE,  /* zend_function: type, flags */
	SB_PHP_NAME,  /* its function_name */
	SB_PHP_SCOPE, /* its class */
	SB_PHP_FILE,  /* zend_op_array.filename */
	SB_PHP_LINES, /* line_start, line_end */
	SB_PHP_AT_MAX,
};
_Static_assert(SB_PHP_AT_MAX <= 16, "at[] has so many");

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_php_conf *sb_php_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_php_conf *)w->conf.word;
}

/* Return: the executor_globals of this thread; 0: it has none, or what leads to them cannot be
 * read. */
static __always_inline __u64 sb_php_globals(struct sb_interp_walk *w, void *mem)
{
	const struct sb_php_conf *conf = sb_php_conf(w);
	__u64 cache;

	if (conf->state == SB_PHP_GLOBAL)
		return conf->globals;
	cache = conf->state == SB_PHP_TLS_GOT
			? sb_interp_tls_addr(w, mem, conf->tls_got, conf->is_musl)
			: w->thread_pointer;
	cache = cache ? sb_interp_word(w, mem, cache + conf->tls_offset) : 0;
	return cache ? cache + conf->globals : 0;
}

/*
 * Find the state of the thread, and store what step() needs in w->at, which is all 0 before.
 * Return: SB_STEP_GO_ON, also when no function is running; SB_STEP_END with SB_STACK_COMPLETE when
 * the thread does not run PHP.
 */
static __always_inline enum sb_step sb_php_begin(struct sb_interp_walk *w, void *mem)
{
	const struct sb_php_conf *conf = sb_php_conf(w);
	__u64 globals = sb_php_globals(w, mem), bailout;

	if (!globals)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	/*
	 * Without thread-local globals any thread would seem to run PHP, including threads of
	 * libraries, which do not. The thread that does has the target of its last error handler
	 * on its stack. In a coroutine (Fiber) that is on the coroutine's stack.
	 */
	bailout = sb_interp_word(w, mem, globals + SB_PHP_BAILOUT);
	if (conf->state == SB_PHP_GLOBAL && bailout &&
	    (bailout < w->sp || bailout - w->sp > SB_PHP_STACK_BYTES))
		return sb_interp_end(w, SB_STACK_COMPLETE);
	w->at[SB_PHP_AT] = sb_interp_word(w, mem, globals + conf->current);
	w->at[SB_PHP_LEAF] = w->at[SB_PHP_AT];
	return SB_STEP_GO_ON;
}

/*
 * Return: bits that identify a function, the @check of sb_interp_push(), from the addresses of its
 * name, class and file, and its lines, a word like at[SB_PHP_LINES] (each 0: none). Its own address
 * does not: closures are copies of functions, which are made and freed all the time.
 */
static __always_inline __u64 sb_php_check(__u64 name, __u64 scope, __u64 file, __u64 lines)
{
	return (name >> 3) ^ (scope >> 5) ^ (file >> 3) ^ lines << 2;
}

/* Return: whether @line is not 0 and lies in the function whose first and last line, both included,
 * sb_php_user() has read into the low and the high half of w->at[SB_PHP_LINES]. */
static __always_inline int sb_php_is_line(const struct sb_interp_walk *w, __u32 line)
{
	return line && line >= (__u32)w->at[SB_PHP_LINES] && line <= w->at[SB_PHP_LINES] >> 32;
}

/*
 * Return: the current line of the frame @ex of code in PHP (struct _zend_execute_data, whose words,
 * and those of its function, are in w->at[]); 0: not known. The loop keeps the innermost frame in
 * r14 (x27) and its next instruction in r15 (x28), which it writes to memory only before code that
 * may need it. Functions that it calls mostly leave these registers alone, so they are looked up in
 * w->regs; if they have not, one of the two does not match, and the line is that in memory.
 */
static __always_inline __u32 sb_php_line(struct sb_interp_walk *w, void *mem, __u64 ex)
{
	__u64 opline = w->at[SB_PHP_OPLINE];
	__u32 line;

	if (ex == w->at[SB_PHP_LEAF] && w->regs[SB_PHP_REG_FRAME] == ex &&
	    (w->regs[SB_PHP_REG_OP] - opline) % SB_PHP_OP_BYTES == 0) {
		line = sb_interp_u32(w, mem, w->regs[SB_PHP_REG_OP] + SB_PHP_OP_LINE);
		if (sb_php_is_line(w, line))
			return line;
	}
	line = opline ? sb_interp_u32(w, mem, opline + SB_PHP_OP_LINE) : 0;
	/* A frame that has just begun has nothing there, or a value of the last one. */
	return ex != w->at[SB_PHP_LEAF] || sb_php_is_line(w, line) ? line : 0;
}

/*
 * Return: how code outside of functions, which step() stands at, came to run: as the script, or by
 * which kind of inclusion (SB_PHP_HOW_*).
 */
static __always_inline __u64 sb_php_how(struct sb_interp_walk *w, void *mem)
{
	__u64 prev = w->at[SB_PHP_PREV], opline, how = SB_PHP_HOW_CODE | SB_PHP_HOW_INCLUDED;

	if (!prev)
		return SB_PHP_HOW_CODE;
	if ((__u8)w->at[SB_PHP_TYPE] == SB_PHP_EVAL)
		return how | SB_PHP_HOW_EVAL;
	opline = sb_interp_word(w, mem, prev);
	if (sb_interp_u8(w, mem, opline + SB_PHP_OP_CODE) != SB_PHP_OP_INCLUDE)
		return how;
	return how | (sb_interp_u32(w, mem, opline + SB_PHP_OP_EXTENDED) & 0x1f);
}

/*
 * Push a frame for code outside of functions, of the file at[SB_PHP_FILE]. @line: 0: not known or
 * not wanted. Return: SB_STEP_GO_ON; SB_STEP_END, DEPTH.
 */
static __always_inline enum sb_step sb_php_code(struct sb_interp_walk *w, void *mem, __u32 line)
{
	__u64 file = w->at[SB_PHP_FILE];

	return sb_interp_push(w, file, sb_php_how(w, mem) << SB_PHP_HOW_SHIFT | line,
			      sb_interp_word(w, mem, file + SB_PHP_STRING_LEN));
}

/*
 * Push the frame @ex (struct _zend_execute_data) of code written in PHP, inside or outside of a
 * function. step() has read its words at[SB_PHP_EX] to at[SB_PHP_PREV] and at[SB_PHP_TYPE], NAME
 * and SCOPE, and has moved at[SB_PHP_AT] on; at[SB_PHP_FILE] and LINES are read here. Return:
 * SB_STEP_GO_ON; SB_STEP_END: FAULT when those cannot be read, DEPTH.
 */
static __always_inline enum sb_step sb_php_user(struct sb_interp_walk *w, void *mem, __u64 ex)
{
	const struct sb_php_conf *conf = sb_php_conf(w);
	__u64 func = w->at[SB_PHP_FUNC], name = w->at[SB_PHP_NAME];
	enum sb_step step;
	__u32 line;

	if (sb_interp_read(w, mem, &w->at[SB_PHP_FILE], 16, func + conf->filename))
		return sb_interp_end(w, SB_STACK_FAULT);
	line = w->wants_lines ? sb_php_line(w, mem, ex) : 0;
	if (name)
		step = sb_interp_push(w, func, line,
				      sb_php_check(name, w->at[SB_PHP_SCOPE], w->at[SB_PHP_FILE],
						   w->at[SB_PHP_LINES]));
	else
		step = sb_php_code(w, mem, line);
	if (step == SB_STEP_GO_ON && (w->at[SB_PHP_TYPE_INFO] & SB_PHP_CALL_TOP))
		sb_interp_segment_end(w);
	return step;
}

/*
 * Walk one struct _zend_execute_data, and push a frame: of its function or, for code outside of
 * functions, of the file. Entries without a function and unnamed ones in C push nothing, so a
 * forged list can go on forever: the caller bounds the number of calls.
 * Return: SB_STEP_GO_ON; SB_STEP_END: COMPLETE, FAULT, DEPTH.
 */
static __always_inline enum sb_step sb_php_step(struct sb_interp_walk *w, void *mem)
{
	__u64 ex = w->at[SB_PHP_AT], func;

	if (!ex)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if ((ex & 7) || sb_interp_read(w, mem, &w->at[SB_PHP_EX], 56, ex))
		return sb_interp_end(w, SB_STACK_FAULT);
	w->at[SB_PHP_AT] = w->at[SB_PHP_PREV];
	func = w->at[SB_PHP_FUNC];
	/* Between a generator and its resumer, and where C code calls from outside. */
	if (!func)
		return SB_STEP_GO_ON;
	if (sb_interp_read(w, mem, &w->at[SB_PHP_TYPE], 24, func))
		return sb_interp_end(w, SB_STACK_FAULT);
	switch ((__u8)w->at[SB_PHP_TYPE]) {
	case SB_PHP_INTERNAL:
		/* The root of a coroutine has no name. C code has no frame of the loop. */
		if (!w->at[SB_PHP_NAME])
			return SB_STEP_GO_ON;
		return sb_interp_push(w, func, 0,
				      sb_php_check(w->at[SB_PHP_NAME], w->at[SB_PHP_SCOPE], 0, 0));
	case SB_PHP_USER:
	case SB_PHP_EVAL:
		return sb_php_user(w, mem, ex);
	default:
		return sb_interp_end(w, SB_STACK_FAULT);
	}
}

/* Return: whether @pc lies in the code that opcache made. */
static __always_inline int sb_php_is_jit(const struct sb_php_conf *conf, __u64 pc)
{
	return pc >= conf->jit_begin && pc < conf->jit_end;
}

/*
 * Pieces of the JIT's code that many places share are called and return; there is at most one word
 * of padding above the return address. @walk stands in the JIT's code. Return: how many words the
 * stack pointer is below the frame of execute_ex(); 0: this is not such a piece, or memory cannot
 * be read.
 */
static __always_inline __u32 sb_php_stub(struct sb_interp_walk *w, const struct sb_walk *walk,
					 void *mem)
{
	const struct sb_php_conf *conf = sb_php_conf(w);
	__u64 word[2] = {};
	__u32 nr;
	__u8 call = 0;

	if (SB_STEP_READ(mem, word, sizeof(word), walk->sp))
		return 0;
	nr = sb_php_is_jit(conf, word[0]) ? 1 : 2;
	if (nr == 1)
		word[1] = word[0];
	if (!sb_php_is_jit(conf, word[1]) ||
	    sb_interp_read(w, mem, &call, sizeof(call), word[1] - 5))
		return 0;
	return call == 0xe8 ? nr : 0; /* call rel32 */
}

/*
 * Step out of code of the JIT as if it were execute_ex(), within which it runs. Pushes no frames.
 * Return: SB_STEP_GO_ON: @walk stands at the caller; SB_STEP_FP_CHAIN: it is not in such code, and
 * nothing has changed; SB_STEP_END: walk->status is SB_STACK_FAULT or BAD_PC.
 */
static __always_inline enum sb_step sb_php_native(struct sb_interp_walk *w, struct sb_walk *walk,
						  void *mem)
{
	const struct sb_php_conf *conf = sb_php_conf(w);
	__u64 cfa = walk->sp + conf->frame_bytes, fp = walk->fp, caller = 0;

	if (!sb_php_is_jit(conf, sb_walk_key(walk)))
		return SB_STEP_FP_CHAIN;
	walk->mark = 0;
	/* This is not a step of its own, because there is only one frame of the loop for it. */
	cfa += 8 * sb_php_stub(w, walk, mem);
	walk->bx_at = conf->bx_slot ? cfa - 8 * conf->bx_slot : walk->bx_at;
	if (SB_STEP_READ(mem, &caller, sizeof(caller), cfa - 8) ||
	    (conf->fp_slot && SB_STEP_READ(mem, &fp, sizeof(fp), cfa - 8 * conf->fp_slot)))
		return sb_step_end(walk, SB_STACK_FAULT);
	return sb_step_to(walk, caller, cfa, fp);
}

#endif
