// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/value_names.h"

#include <signal.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_expr.h"

/* Real-time signals are counted from the first one that the C library leaves to programs. */
#define SIGRTMIN_OF_PROGRAMS 34
#define SIGRT_MAX	     64

#define SIGNAL(name)	     [SIG##name] = "SIG" #name
static const char *const signal_names[] = {
	SIGNAL(HUP),  SIGNAL(INT),    SIGNAL(QUIT), SIGNAL(ILL),    SIGNAL(TRAP), SIGNAL(ABRT),
	SIGNAL(BUS),  SIGNAL(FPE),    SIGNAL(KILL), SIGNAL(USR1),   SIGNAL(SEGV), SIGNAL(USR2),
	SIGNAL(PIPE), SIGNAL(ALRM),   SIGNAL(TERM), SIGNAL(STKFLT), SIGNAL(CHLD), SIGNAL(CONT),
	SIGNAL(STOP), SIGNAL(TSTP),   SIGNAL(TTIN), SIGNAL(TTOU),   SIGNAL(URG),  SIGNAL(XCPU),
	SIGNAL(XFSZ), SIGNAL(VTALRM), SIGNAL(PROF), SIGNAL(WINCH),  SIGNAL(IO),	  SIGNAL(PWR),
	SIGNAL(SYS),
};

/* As the kernel's own tracepoints name them (include/trace/events/irq.h). */
static const char *const softirq_names[] = { "HI",	 "TIMER",   "NET_TX", "NET_RX",	 "BLOCK",
					     "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU" };

static const struct {
	const char *what;
	const char *const *names;
	size_t nr;
} tables[SB_EXPR_KIND_MAX] = {
	[SB_EXPR_SYSCALL] = { "syscall", sb_syscall_names, SB_SYSCALL_NAMES_MAX },
	[SB_EXPR_SIGNAL] = { "signal", signal_names, SB_ARRAY_SIZE(signal_names) },
	[SB_EXPR_SOFTIRQ] = { "softirq", softirq_names, SB_ARRAY_SIZE(softirq_names) },
};

int sb_value_add_name(struct sb_str *text, uint32_t kind, uint64_t number)
{
	const char *what = kind < SB_EXPR_KIND_MAX ? tables[kind].what : NULL;
	int err;

	if (!what)
		return 0;
	if (number < tables[kind].nr && tables[kind].names[number])
		err = sb_str_addf(text, "[%s=%s]", what, tables[kind].names[number]);
	else if (kind == SB_EXPR_SIGNAL && number >= SIGRTMIN_OF_PROGRAMS && number <= SIGRT_MAX)
		err = sb_str_addf(text, "[%s=SIGRTMIN+%d]", what,
				  (int)number - SIGRTMIN_OF_PROGRAMS);
	else
		err = sb_str_addf(text, "[%s=%lld]", what, (long long)number);
	return err ? err : 1;
}
