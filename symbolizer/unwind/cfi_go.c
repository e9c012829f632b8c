// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwind rules of Go's functions, from what Go's linker says about their stack. Two things are not
 * said there: that a function with a frame saves the frame pointer next to its return address
 * (since Go 1.7; on arm64, where the return address is at sp and the caller's x29 below it, since
 * 1.12), and which of the runtime's own functions continue, or begin, on another stack:
 * src/runtime/asm_*.s, sys_linux_*.s, time_linux_amd64.s.
 *
 * On arm64, x29 still leads to the caller after those switches only that are made for a call of the
 * vDSO, and by cgocallback. For the others the goroutine is looked up in the runtime's memory
 * (sb_go_find() in bpf/step). A handler of signals that lets a goroutine call one of the runtime's
 * functions pushes the goroutine's x30 first, in 16 bytes that belong to no function's frame:
 * signal_arm64.go.
 */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "symbolizer/elf/gopcln.h"
#include "symbolizer/unwind/cfi_priv.h"

#define RA_BYTES   8
#define PAIR_BYTES 16 /* of the return address and the caller's rbp below it */
#define PUSHED	   16 /* by a handler of signals, on arm64 */
#define ABI_SUFFIX ".abi0"

/* What is special about a function; its first row begins so many bytes before it. */
struct special {
	const char *name;
	uint8_t cfa; /* enum sb_uw_cfa */
	uint8_t before;
	uint8_t cfa_arm64;   /* if it is another one there */
	int8_t fp_off_arm64; /* it moves sp itself, and saves {x29, x30} so many words from its CFA */
};
static const struct special specials[] = {
	/* Where goroutines, threads and programs begin, and where a thread leaves a goroutine for
	 * good. */
	{ "runtime.goexit", SB_UW_CFA_STOP },
	{ "runtime.mstart", SB_UW_CFA_STOP },
	{ "runtime.mcall", SB_UW_CFA_STOP },
	{ "runtime.rt0_go", SB_UW_CFA_STOP },
	{ "_rt0_amd64", SB_UW_CFA_STOP },
	{ "_rt0_amd64_linux", SB_UW_CFA_STOP },
	{ "_rt0_arm64_linux", SB_UW_CFA_STOP },
	{ "runtime.clone", SB_UW_CFA_CLONE },
	/* They call on another stack, and rbp is then still their own, or their caller's. */
	{ "runtime.systemstack", SB_UW_CFA_SWITCH, 0, SB_UW_CFA_GO_SYSTEM },
	{ "runtime.morestack", SB_UW_CFA_SWITCH, 0, SB_UW_CFA_GO_GROW },
	{ "runtime.morestack_noctxt", SB_UW_CFA_SP, 0, SB_UW_CFA_GO_GROW },
	{ "runtime.asmcgocall", SB_UW_CFA_SWITCH, 0, SB_UW_CFA_GO_C },
	{ "runtime.asmcgocall_no_g", SB_UW_CFA_SWITCH, 0, SB_UW_CFA_SP, -3 },
	{ "runtime.cgocallback", SB_UW_CFA_SWITCH },
	{ "runtime.cgocallback_gofunc", SB_UW_CFA_SWITCH },
	{ "runtime.nanotime", SB_UW_CFA_SWITCH },
	{ "runtime.nanotime1", SB_UW_CFA_SWITCH },
	{ "runtime.walltime", SB_UW_CFA_SWITCH },
	{ "runtime.walltime1", SB_UW_CFA_SWITCH },
	{ "runtime.vgetrandom1", SB_UW_CFA_SWITCH },
	{ "time.now", SB_UW_CFA_SWITCH },
	/* A handler returns to its first byte, and the byte before a return address is looked up.
	 * On arm64 it returns to the vDSO. */
	{ "runtime.sigreturn", SB_UW_CFA_SIGNAL, 1, SB_UW_CFA_SP },
	{ "runtime.sigreturn__sigaction", SB_UW_CFA_SIGNAL, 1 },
	{ "runtime.asyncPreempt", SB_UW_CFA_SP, 0, SB_UW_CFA_GO_PUSHED },
	{ "runtime.sigpanic", SB_UW_CFA_SP, 0, SB_UW_CFA_GO_PUSHED },
	{ "runtime.debugCallV2", SB_UW_CFA_SP, 0, SB_UW_CFA_GO_PUSHED },
	/* From C into Go, and from a detector of races. */
	{ "crosscall2", SB_UW_CFA_SP, 0, 0, -2 },
	{ "runtime.racecallbackthunk", SB_UW_CFA_SP, 0, SB_UW_CFA_UNSUP },
};
static const struct special plain = { "", SB_UW_CFA_SP };

static const struct special *find_special(const char *name)
{
	size_t i, len = strlen(name);

	if (sb_text_ends(name, len, ABI_SUFFIX))
		len -= strlen(ABI_SUFFIX);
	for (i = 0; i < SB_ARRAY_SIZE(specials); i++)
		if (sb_text_is(name, len, specials[i].name))
			return &specials[i];
	return &plain;
}

int sb_cfi_go_read(const struct sb_gopcln *go, struct sb_cfi_entries *entries)
{
	struct sb_gopcln_func func;
	uint32_t i;
	int err = sb_vec_reserve(&entries->fdes, entries->fdes.nr + go->nr_funcs);

	for (i = 0; i < go->nr_funcs && !err; i++) {
		/* As of other files, nothing is at 0: the byte before it is looked at. */
		if (sb_gopcln_func(go, i, &func) || !func.lo) {
			entries->nr_bad++;
			continue;
		}
		err = sb_vec_push(&entries->fdes, (struct sb_cfi_fde){
							  .lo = func.lo,
							  .hi = func.hi,
							  .insns = i,
							  .cie = SB_CFI_CIE_GO,
						  });
	}
	return err;
}

struct emitter {
	const struct sb_cfi_sink *sink;
	const struct special *special;
	uint8_t cfa; /* of *special, on this machine */
	bool has_frame, is_arm64;
};

static int see_frame(void *arg, uint64_t addr, int32_t depth)
{
	struct emitter *emitter = arg;

	emitter->has_frame |= depth > 0;
	return 0;
}

static struct sb_uw_rule rule_of_x86(uint8_t cfa, int32_t depth)
{
	struct sb_uw_rule rule = {
		.cfa = cfa,
		.cfa_off = cfa == SB_UW_CFA_SWITCH ? PAIR_BYTES : depth + RA_BYTES,
		.bx = SB_UW_BX_LOST,
	};

	if (depth || cfa == SB_UW_CFA_SWITCH) {
		rule.fp = SB_UW_FP_AT_CFA;
		rule.fp_off = -PAIR_BYTES;
	}
	return rule;
}

/* With a frame {x29, x30} is at sp - 8, and after a switch of stacks x29 points to it. */
static struct sb_uw_rule rule_of_arm64(const struct special *special, uint8_t cfa, int32_t depth)
{
	struct sb_uw_rule rule = { .cfa = cfa, .cfa_off = depth };

	if (cfa == SB_UW_CFA_GO_PUSHED)
		rule.cfa_off += PUSHED;
	if (!depth || cfa == SB_UW_CFA_GO_GROW)
		return rule; /* the return address is in x30, or the `g` has it */
	rule.fp = special->fp_off_arm64 ? SB_UW_FP_AT_CFA : SB_UW_FP_AT_FP;
	rule.fp_off = special->fp_off_arm64 ? special->fp_off_arm64 : -1;
	rule.bx = SB_UW_RA_PAIR;
	if (cfa == SB_UW_CFA_SWITCH) {
		rule.fp_off = 0;
		rule.cfa_off += RA_BYTES;
	}
	return rule;
}

static int emit(void *arg, uint64_t addr, int32_t depth)
{
	const struct emitter *emitter = arg;
	struct sb_uw_rule rule = { .cfa = SB_UW_CFA_FP_CHAIN };
	uint8_t cfa = emitter->cfa;

	/* Before it has its frame, one that gets one has not switched. */
	if (!depth && emitter->has_frame &&
	    (cfa == SB_UW_CFA_SWITCH || cfa == SB_UW_CFA_GO_SYSTEM || cfa == SB_UW_CFA_GO_C ||
	     cfa == SB_UW_CFA_UNSUP))
		cfa = SB_UW_CFA_SP;
	if (depth >= 0 && depth <= INT32_MAX - PUSHED)
		rule = emitter->is_arm64 ? rule_of_arm64(emitter->special, cfa, depth)
					 : rule_of_x86(cfa, depth);
	return emitter->sink->row(emitter->sink->arg, addr, &rule);
}

int sb_cfi_go_exec(const struct sb_gopcln *go, uint16_t machine, const struct sb_cfi_fde *fde,
		   const struct sb_cfi_sink *sink)
{
	struct emitter emitter = { .sink = sink, .is_arm64 = machine == EM_AARCH64 };
	const struct special *special;
	struct sb_gopcln_func func;
	struct sb_uw_rule rule = { .cfa = SB_UW_CFA_FP_CHAIN };
	int err = sb_gopcln_func(go, fde->insns, &func);

	if (err)
		return err;
	special = emitter.special = find_special(func.name);
	emitter.cfa = emitter.is_arm64 && special->cfa_arm64 ? special->cfa_arm64 : special->cfa;
	if (emitter.cfa == SB_UW_CFA_STOP || emitter.cfa == SB_UW_CFA_SIGNAL) {
		rule.cfa = emitter.cfa;
		return sink->row(sink->arg, func.lo - special->before, &rule);
	}
	/* What is not said of is hand-written, without a frame. */
	err = sink->row(sink->arg, func.lo, &rule);
	if (!err)
		err = sb_gopcln_each_depth(go, &func, see_frame, &emitter);
	return err ? err : sb_gopcln_each_depth(go, &func, emit, &emitter);
}
