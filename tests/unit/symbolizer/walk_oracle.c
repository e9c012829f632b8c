// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * walk_oracle [-n STEPS] [-k EVERY] [-m MIN] [-c PERCENT] PROGRAM [ARG...]
 * walk_oracle -s REASON		skip
 *
 * Steps through a program (walk_subject*.c) instruction by instruction, and unwinds its stack at
 * each. The truth is a shadow stack: a call pushes a return address, a signal the address it
 * interrupted; whatever lies below rsp is gone, be it by ret, longjmp() or an exception. No CFI is
 * needed for that. At each EVERYth step libdw is asked, too: as a check of the shadow stack, and to
 * tell CFI that is wrong in the file itself from our reading of it.
 *
 * Fails when any of our stacks is wrong where the file has CFI which is right; when a stack that is
 * cut says it was complete; when more than PERCENT are cut or wrong for want of CFI; when fewer
 * than MIN steps were made.
 *
 * While somebody else probes a function of a library (uprobes), the kernel puts a breakpoint into
 * each program that maps the library, the one that is stepped here among them. A step that meets
 * such a breakpoint waits until the kernel has removed it.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/time.h"
#include "symbolizer/sb_sym.h"

#if defined(__x86_64__)
#include "walk_subject.h"

enum { FRAMES_MAX = 256, PIECE_MAX = 64 << 10, NR_PLACES = 12, EXIT_SKIP = 77 };

/* Others probe for seconds; a breakpoint that stays for a minute is one of the program itself. */
enum { POLLS_MAX = 600, POLL_MS = 100 };

struct shadow {
	uint64_t ip;   /* with SB_IP_EXACT */
	uint64_t slot; /* where on the stack it lies */
};

struct stack {
	uint64_t ip[FRAMES_MAX];
	size_t nr;
	uint32_t status;
};

/* What a stack of ours turned out to be. */
enum verdict {
	EQUAL,
	CUT,	    /* right up to where there is no rule, or a frame pointer that is none */
	NO_CFI,	    /* wrong from a frame on which is marked as found by frame pointer */
	FILE_WRONG, /* libdw loses the way at the same frame */
	MISMATCH,
	NR_VERDICTS,
};
static const char *const verdict_names[] = { "equal", "cut", "wrong by frame pointer",
					     "wrong in the file, too", "WRONG" };

struct oracle {
	uint64_t nr_steps_max, nr_steps_min, every, cut_percent; /* options */
	pid_t pid;
	struct sb_symbolizer *sym;
	Dwfl *dwfl;
	struct user_regs_struct regs;
	uint64_t last_code; /* what stood at the instruction that was stepped last */
	struct shadow shadow[FRAMES_MAX * 16];
	size_t nr_shadow;
	char piece[PIECE_MAX];
	size_t piece_bytes;
	struct stack ours, truth, libdw;
	uint64_t nr_steps, nr_of[NR_VERDICTS], nr_by_fp, nr_frames;
	uint64_t nr_libdw, nr_libdw_equal, nr_libdw_short;
	/* Where stacks were not equal. */
	struct place {
		enum verdict verdict;
		uint32_t status;
		uint64_t pc, nr;
	} places[NR_PLACES];
	size_t nr_places;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "walk_oracle: %s: %s\n", what, strerror(errno));
	exit(1);
}

static size_t read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };
	ssize_t nr = process_vm_readv(pid, &to, 1, &from, 1, 0);

	return nr < 0 ? 0 : (size_t)nr;
}

/* The piece of stack from the red zone up; it ends where the mapping does. */
static void read_piece(struct oracle *o)
{
	uint64_t page, sp = o->regs.rsp - SB_RED_ZONE_BYTES;

	o->piece_bytes = read_memory(o->pid, sp, o->piece, PIECE_MAX);
	if (o->piece_bytes)
		return;
	/* Not even the first page is whole to the end: page by page. */
	for (page = (sp | 4095) + 1; page - sp <= PIECE_MAX; page += 4096) {
		size_t nr = read_memory(o->pid, sp, o->piece, page - sp);

		if (nr != page - sp)
			break;
		o->piece_bytes = nr;
	}
}

static void by_dwarf(const struct user_regs_struct *r, uint64_t *regs)
{
	const uint64_t in_order[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
				      r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
				      r->r12, r->r13, r->r14, r->r15 };

	memcpy(regs, in_order, sizeof(in_order));
}

/* Ours */

static void unwind_ours(struct oracle *o)
{
	struct sb_sym_unwind from = {
		.time_ns = UINT64_MAX - 1,
		.tgid = (uint32_t)o->pid,
		.modes = SB_UNWIND_CFI | SB_UNWIND_FP,
		.pc = o->regs.rip,
		.stack_addr = o->regs.rsp - SB_RED_ZONE_BYTES,
		.stack = o->piece,
		.stack_bytes = o->piece_bytes,
	};

	by_dwarf(&o->regs, from.regs);
	if (sb_symbolizer_unwind(o->sym, &from, o->ours.ip, FRAMES_MAX, &o->ours.nr,
				 &o->ours.status))
		die("unwinding");
}

/* The shadow stack */

static void push_shadow(struct oracle *o, uint64_t ip, uint64_t slot)
{
	if (o->nr_shadow == sizeof(o->shadow) / sizeof(o->shadow[0]))
		die("the shadow stack is full");
	o->shadow[o->nr_shadow++] = (struct shadow){ ip, slot };
}

/* Does the code at an address begin with a call? Intel SDM, volume 2, "CALL": E8, FF /2. */
static bool is_call(uint64_t code)
{
	const uint8_t *byte = (const uint8_t *)&code;
	size_t i;

	for (i = 0; i < 5; i++) {
		bool is_prefix = byte[i] == 0x66 || byte[i] == 0xf2 || byte[i] == 0xf3 ||
				 byte[i] == 0x3e || byte[i] == 0x2e || (byte[i] & 0xf0) == 0x40;

		if (!is_prefix)
			break;
	}
	return byte[i] == 0xe8 || (byte[i] == 0xff && (byte[i + 1] >> 3 & 7) == 2);
}

static uint64_t stack_word(const struct oracle *o, uint64_t addr)
{
	uint64_t word = 0, offset = addr - (o->regs.rsp - SB_RED_ZONE_BYTES);

	if (offset <= o->piece_bytes - sizeof(word))
		memcpy(&word, o->piece + offset, sizeof(word));
	return word;
}

/* The kernel pushed a signal frame: {return address, struct ucontext, ...}. The address that was
 * interrupted lies in it behind 40 bytes and 16 registers. */
static void enter_handler(struct oracle *o, const struct user_regs_struct *before)
{
	push_shadow(o, before->rip | SB_IP_EXACT, o->regs.rsp + 8 + 40 + 16 * 8);
	push_shadow(o, stack_word(o, o->regs.rsp), o->regs.rsp);
}

static void follow(struct oracle *o, const struct user_regs_struct *before, int signal)
{
	uint64_t rsp = o->regs.rsp;

	while (o->nr_shadow && o->shadow[o->nr_shadow - 1].slot < rsp)
		o->nr_shadow--;
	if (signal && rsp < before->rsp)
		enter_handler(o, before);
	else if (!signal && rsp == before->rsp - 8 && is_call(o->last_code))
		push_shadow(o, stack_word(o, rsp), rsp);
}

static void tell_truth(struct oracle *o)
{
	size_t i;

	o->truth.nr = 0;
	o->truth.ip[o->truth.nr++] = o->regs.rip;
	for (i = o->nr_shadow; i && o->truth.nr < FRAMES_MAX; i--)
		o->truth.ip[o->truth.nr++] = o->shadow[i - 1].ip;
}

/* libdw */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_argp)
{
	struct oracle *o = arg;

	if (*thread_argp)
		return 0;
	*thread_argp = arg;
	return o->pid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word, void *arg)
{
	struct oracle *o = arg;

	return read_memory(o->pid, addr, word, sizeof(*word)) == sizeof(*word);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct oracle *o = arg;
	uint64_t by_number[SB_UNWIND_REGS];
	Dwarf_Word regs[SB_UNWIND_REGS + 1];
	size_t i;

	by_dwarf(&o->regs, by_number);
	for (i = 0; i < SB_UNWIND_REGS; i++)
		regs[i] = by_number[i];
	regs[SB_UNWIND_REGS] = o->regs.rip;
	return dwfl_thread_state_registers(thread, 0, SB_UNWIND_REGS + 1, regs);
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct oracle *o = arg;
	Dwarf_Addr pc;

	if (o->libdw.nr == FRAMES_MAX || !dwfl_frame_pc(state, &pc, NULL))
		return DWARF_CB_ABORT;
	o->libdw.ip[o->libdw.nr++] = pc;
	return DWARF_CB_OK;
}

static void unwind_libdw(struct oracle *o)
{
	o->libdw.nr = 0;
	/* Whatever ends it, what there is can be compared. */
	dwfl_getthread_frames(o->dwfl, o->pid, on_frame, o);
}

static void open_libdw(struct oracle *o)
{
	static const Dwfl_Callbacks files = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.memory_read = read_word,
		.set_initial_registers = set_registers,
	};

	o->dwfl = dwfl_begin(&files);
	if (!o->dwfl || dwfl_linux_proc_report(o->dwfl, o->pid) ||
	    dwfl_report_end(o->dwfl, NULL, NULL) ||
	    !dwfl_attach_state(o->dwfl, NULL, o->pid, &threads, o))
		die("libdw");
}

/* Comparing */

static size_t nr_same(const struct stack *a, const struct stack *b)
{
	size_t i, nr = a->nr < b->nr ? a->nr : b->nr;

	for (i = 0; i < nr; i++)
		if ((a->ip[i] ^ b->ip[i]) & ~SB_IP_MARKS)
			break;
	return i;
}

static bool has_exact_marks(const struct stack *ours, const struct stack *truth)
{
	size_t i;

	for (i = 0; i < ours->nr; i++)
		if ((ours->ip[i] ^ truth->ip[i]) & SB_IP_EXACT)
			return false;
	return true;
}

static enum verdict judge(struct oracle *o)
{
	const struct stack *ours = &o->ours, *truth = &o->truth;
	size_t same = nr_same(ours, truth);

	if (same == ours->nr && same == truth->nr && ours->status == SB_STACK_COMPLETE)
		return has_exact_marks(ours, truth) ? EQUAL : MISMATCH;
	if (same < ours->nr && ours->ip[same] & SB_IP_BY_FP)
		return NO_CFI;
	if (same == ours->nr &&
	    (ours->status == SB_STACK_NO_RULE || ours->status == SB_STACK_BAD_FP))
		return CUT;
	unwind_libdw(o);
	if (nr_same(&o->libdw, truth) <= same)
		return FILE_WRONG;
	return MISMATCH;
}

static void note_place(struct oracle *o, enum verdict verdict)
{
	size_t i;

	for (i = 0; i < o->nr_places; i++)
		if (o->places[i].pc == o->regs.rip && o->places[i].verdict == verdict)
			break;
	if (i == NR_PLACES)
		return;
	if (i == o->nr_places)
		o->places[o->nr_places++] =
			(struct place){ verdict, o->ours.status, o->regs.rip, 0 };
	o->places[i].nr++;
}

static void print_stacks(const struct oracle *o)
{
	size_t i;

	fprintf(stderr, "rip %llx rsp %llx rbp %llx, status %u\n", o->regs.rip, o->regs.rsp,
		o->regs.rbp, o->ours.status);
	for (i = 0; i < o->ours.nr || i < o->truth.nr; i++)
		fprintf(stderr, "  %2zu ours %16llx truth %16llx\n", i,
			i < o->ours.nr ? (unsigned long long)o->ours.ip[i] : 0,
			i < o->truth.nr ? (unsigned long long)o->truth.ip[i] : 0);
}

static void ask_libdw(struct oracle *o)
{
	size_t same;

	unwind_libdw(o);
	same = nr_same(&o->libdw, &o->truth);
	o->nr_libdw++;
	o->nr_libdw_equal += same == o->truth.nr && same == o->libdw.nr;
	o->nr_libdw_short += same == o->libdw.nr && same < o->truth.nr;
}

static void compare(struct oracle *o)
{
	enum verdict verdict;
	size_t i;

	unwind_ours(o);
	tell_truth(o);
	verdict = judge(o);
	if (verdict == MISMATCH && o->nr_of[MISMATCH] < 3)
		print_stacks(o);
	if (verdict != EQUAL)
		note_place(o, verdict);
	o->nr_of[verdict]++;
	for (i = 0; i < o->ours.nr; i++)
		o->nr_by_fp += !!(o->ours.ip[i] & SB_IP_BY_FP);
	o->nr_frames += o->ours.nr;
	if (o->nr_steps % o->every == 0)
		ask_libdw(o);
}

/* Stepping */

static int print_name(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr)
{
	const struct sb_sym_frame *frame = &frames[nr - 1];

	fprintf(arg, "%s`%s+0x%llx (%llx)", frame->module, frame->name ? frame->name : "?",
		(unsigned long long)frame->func_offset, (unsigned long long)frame->module_addr);
	return 0;
}

static void print_where(struct oracle *o, uint64_t pc, FILE *out)
{
	struct sb_sym_req req = { .addr = pc };
	struct sb_sym_query query = { .reqs = &req, .nr = 1, .emit = print_name, .arg = out };

	sb_symbolizer_user(o->sym, (uint32_t)o->pid, UINT64_MAX - 1, &query);
	fputs("\n", out);
}

static int wait_stop(struct oracle *o)
{
	int status;

	if (waitpid(o->pid, &status, 0) != o->pid)
		die("waiting");
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
		exit(EXIT_SKIP); /* it has said why */
	if (!WIFSTOPPED(status)) {
		fprintf(stderr, "walk_oracle: the program ended with status %x\n", status);
		exit(1);
	}
	if (ptrace(PTRACE_GETREGS, o->pid, NULL, &o->regs))
		die("registers");
	return WSTOPSIG(status);
}

/* The breakpoint of subject_begin(): rdi and rsi are the callers. */
static void begin(struct oracle *o)
{
	void *frames[FRAMES_MAX];
	size_t i;

	while (wait_stop(o) != SIGTRAP || !o->regs.rsi || o->regs.rsi > 16)
		if (ptrace(PTRACE_CONT, o->pid, NULL, NULL))
			die("continuing");
	if (read_memory(o->pid, o->regs.rdi, frames, o->regs.rsi * 8) != o->regs.rsi * 8)
		die("the callers at the beginning");
	for (i = o->regs.rsi; i; i--)
		push_shadow(o, (uint64_t)(uintptr_t)frames[i - 1], UINT64_MAX);
}

/* Return: whether the program is at subject_end(). */
static bool is_at_end(struct oracle *o)
{
	int polls;

	for (polls = 0; polls < POLLS_MAX; polls++) {
		o->last_code = 0;
		read_memory(o->pid, o->regs.rip, &o->last_code, sizeof(o->last_code));
		if ((o->last_code & 0xff) != 0xcc)
			return false;
		if (o->regs.rdi == SUBJECT_END)
			return true;
		poll(NULL, 0, POLL_MS); /* until the kernel has restored the instruction */
	}
	fprintf(stderr, "walk_oracle: a breakpoint that is not the subject's end stays, in ");
	print_where(o, o->regs.rip, stderr);
	exit(1);
}

/* Return: whether the program is still before subject_end(). */
static bool step(struct oracle *o, int *signal)
{
	struct user_regs_struct before = o->regs;
	int got;

	if (is_at_end(o))
		return false;
	if (ptrace(PTRACE_SINGLESTEP, o->pid, NULL, (void *)(long)*signal))
		die("stepping");
	got = wait_stop(o);
	read_piece(o);
	follow(o, &before, *signal);
	*signal = got == SIGTRAP ? 0 : got;
	o->nr_steps++;
	return true;
}

static void start(struct oracle *o, char **argv)
{
	struct sb_symbolizer_opts opts = {};

	o->pid = fork();
	if (o->pid < 0)
		die("fork");
	if (!o->pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		die(argv[0]);
	}
	begin(o);
	if (ptrace(PTRACE_SETOPTIONS, o->pid, NULL, (void *)PTRACE_O_EXITKILL))
		die("options");
	if (sb_symbolizer_new(&opts, &o->sym))
		die("symbolizer");
	open_libdw(o);
}

/* Reporting */

static void print_place(struct oracle *o, const struct place *place)
{
	printf("  %6llu %s, status %u: ", (unsigned long long)place->nr,
	       verdict_names[place->verdict], place->status);
	print_where(o, place->pc, stdout);
}

static bool report(struct oracle *o, const char *name, double seconds)
{
	uint64_t nr_short = o->nr_of[CUT] + o->nr_of[NO_CFI] + o->nr_of[FILE_WRONG];
	size_t i;

	printf("%s: %llu steps in %.1f s, %.1f frames a stack, %.2f%% by frame pointer\n", name,
	       (unsigned long long)o->nr_steps, seconds, (double)o->nr_frames / (double)o->nr_steps,
	       100.0 * (double)o->nr_by_fp / (double)o->nr_frames);
	for (i = 0; i < NR_VERDICTS; i++)
		printf("  %8llu %s\n", (unsigned long long)o->nr_of[i], verdict_names[i]);
	printf("  libdw: %llu asked, %llu equal, %llu short\n", (unsigned long long)o->nr_libdw,
	       (unsigned long long)o->nr_libdw_equal, (unsigned long long)o->nr_libdw_short);
	for (i = 0; i < o->nr_places; i++)
		print_place(o, &o->places[i]);
	return !o->nr_of[MISMATCH] && nr_short * 100 <= o->nr_steps * o->cut_percent &&
	       o->nr_steps >= o->nr_steps_min && o->nr_libdw_equal;
}

static uint64_t number(const char *s)
{
	uint64_t n;

	if (sb_parse_u64(s, UINT32_MAX, &n) || !n) {
		errno = EINVAL;
		die(s);
	}
	return n;
}

static int parse(struct oracle *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "+n:k:m:c:s:")) != -1) {
		switch (opt) {
		case 'n':
			o->nr_steps_max = number(optarg);
			break;
		case 'k':
			o->every = number(optarg);
			break;
		case 'm':
			o->nr_steps_min = number(optarg);
			break;
		case 'c':
			o->cut_percent = number(optarg);
			break;
		case 's':
			printf("skipped: %s\n", optarg);
			exit(EXIT_SKIP);
		default:
			exit(2);
		}
	}
	return optind;
}

int main(int argc, char **argv)
{
	static struct oracle o = {
		.nr_steps_max = 100000,
		.nr_steps_min = 10000,
		.every = 100,
		.cut_percent = 2,
	};
	int signal = 0, first = parse(&o, argc, argv);
	uint64_t begin_ns;
	bool is_right;

	if (first == argc)
		return 2;
	start(&o, argv + first);
	begin_ns = sb_now_ns();
	while (o.nr_steps < o.nr_steps_max && step(&o, &signal))
		compare(&o);
	is_right = report(&o, argv[first], (double)(sb_now_ns() - begin_ns) / 1e9);
	dwfl_end(o.dwfl);
	sb_symbolizer_free(o.sym);
	return !is_right;
}

#else
int main(void)
{
	puts("skipped: rules are for x86-64");
	return 77;
}
#endif
