// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * record PID TID RUNTIME: a seed for fuzz_interp_<runtime>, on stdout: a thread of a process is
 * stopped where the runtime's code runs, walked, and its frames named; what was read meanwhile is
 * the memory of the input. The process is let go again.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/vec.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "interp/core/step.h"
#include "interp/hotspot/hotspot_priv.h"
#include "interp/lua/lua_priv.h"
#include "interp/luajit/luajit_priv.h"
#include "interp/perl/perl_priv.h"
#include "interp/python/python_priv.h"
#include "interp/ruby/ruby_priv.h"
#include "interp/v8/v8_priv.h"
#define INPUT_NO_MUTATOR
#include "interp_input.h"

#include "bpf/step/sb_step_hotspot.h"
#include "bpf/step/sb_step_lua.h"
#include "bpf/step/sb_step_luajit.h"
#include "bpf/step/sb_step_v8.h"

#define TRIES_MAX  2000
#define FRAMES_MAX 6 /* names of so many; a seed is to be small */
#define BYTES_MAX  (48u << 10)

struct read {
	uint64_t addr;
	uint16_t len;
	uint8_t *bytes;
};

static SB_VEC(struct read) reads;
static struct sb_memory theirs;

static int record(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct read read = { .addr = addr, .len = (uint16_t)len };
	int err = sb_memory_read(&theirs, dst, len, addr);
	size_t i;

	if (err || len > UINT16_MAX)
		return err;
	for (i = 0; i < reads.nr; i++)
		if (addr >= reads.at[i].addr && addr + len <= reads.at[i].addr + reads.at[i].len)
			return 0;
	read.bytes = malloc(len);
	if (!read.bytes || sb_vec_push(&reads, read))
		return -ENOMEM;
	memcpy(read.bytes, dst, len);
	return 0;
}

/* What a walker is told, and what describe() knows. */
static void fill_layout(struct input_head *head, const struct sb_runtime *rt)
{
	const struct sb_hotspot *hs = rt->state;
	const struct sb_luajit_state *luajit = rt->state;
	const struct sb_lua_layout *lua = rt->state;
	const struct sb_perl *perl = rt->state;
	const struct sb_python_layout *python = rt->state;
	const struct sb_ruby *ruby = rt->state;
	const struct sb_v8 *v8 = rt->state;

	switch (rt->ops->runtime) {
	case SB_RUNTIME_HOTSPOT:
		memcpy(head->layout, &hs->layout, sizeof(hs->layout));
		head->version = (uint8_t)hs->major;
		break;
	case SB_RUNTIME_LUA:
		head->version = (uint8_t)(lua->version - 501);
		break;
	case SB_RUNTIME_LUAJIT:
		head->version = luajit->layout->is_gc64;
		break;
	case SB_RUNTIME_PERL:
		head->version = (uint8_t)(perl->minor | (perl->has_threads ? 128 : 0));
		break;
	case SB_RUNTIME_PYTHON:
		memcpy(head->layout, python, sizeof(*python));
		head->version = (uint8_t)python->version;
		break;
	case SB_RUNTIME_RUBY:
		head->version = (uint8_t)(ruby->layout->minor + (ruby->layout->major == 2 ? 8 : 0));
		memcpy(head->layout, &ruby->ids_addr, sizeof(ruby->ids_addr));
		break;
	case SB_RUNTIME_V8:
		memcpy(head->layout, &v8->at, sizeof(v8->at));
		head->version = v8->at.has_streams;
		break;
	}
}

static void fill_regs(struct input_head *head, const struct user_regs_struct *regs)
{
	const uint64_t by_dwarf[] = { regs->rax, regs->rdx, regs->rcx, regs->rbx,
				      regs->rsi, regs->rdi, regs->rbp, regs->rsp,
				      regs->r8,	 regs->r9,  regs->r10, regs->r11,
				      regs->r12, regs->r13, regs->r14, regs->r15 };

	memcpy(head->regs, by_dwarf, sizeof(head->regs));
	head->pc = regs->rip;
	head->sp = regs->rsp;
	head->fp = regs->rbp;
	head->thread_pointer = regs->fs_base;
}

static void walk(struct input_run *run, struct sb_runtime *rt)
{
	static const struct {
		uint32_t runtime;
		input_native_fn native;
		input_step_fn step;
	} natives[] = {
		{ SB_RUNTIME_HOTSPOT, (input_native_fn)sb_hotspot_native, NULL },
		{ SB_RUNTIME_LUA, (input_native_fn)sb_lua_native, (input_step_fn)sb_lua_step },
		{ SB_RUNTIME_LUAJIT, (input_native_fn)sb_luajit_native,
		  (input_step_fn)sb_luajit_step },
		{ SB_RUNTIME_V8, (input_native_fn)sb_v8_native, NULL },
	};
	size_t i;

	run->memory.read = record;
	for (i = 0; i < SB_ARRAY_SIZE(natives); i++)
		if (natives[i].runtime == rt->ops->runtime)
			input_by_native(run, natives[i].native, natives[i].step);
	if (rt->ops->begin)
		input_by_state(run, rt->ops->begin, rt->ops->step);
	rt->memory = &run->memory;
	rt->wants_lines = true;
	if (rt->ops->runtime == SB_RUNTIME_V8)
		((struct sb_v8 *)rt->state)->memory = &run->memory;
	if (run->walk->nr_frames > FRAMES_MAX)
		run->walk->nr_frames = FRAMES_MAX;
	input_describe(run, rt);
}

/* Stop it for a look, until there are frames of the runtime's. */
static int look(pid_t tid, struct input *input, struct input_run *run, struct sb_runtime *rt)
{
	struct user_regs_struct regs;
	int i;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	for (i = 0; i < TRIES_MAX; i++) {
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, NULL, __WALL) < 0 ||
		    ptrace(PTRACE_GETREGS, tid, NULL, &regs))
			return -errno;
		fill_regs(&input->head, &regs);
		input_begin(run, input, rt->ops->runtime);
		reads.nr = 0;
		walk(run, rt);
		ptrace(PTRACE_CONT, tid, NULL, NULL);
		if (run->walk->nr_frames)
			return 0;
		sched_yield();
	}
	return -EAGAIN;
}

static void put(const struct input_head *head)
{
	size_t i, nr_bytes = 0;

	fwrite(head, sizeof(*head), 1, stdout);
	for (i = 0; i < reads.nr && nr_bytes < BYTES_MAX; i++) {
		fwrite(&reads.at[i].addr, sizeof(reads.at[i].addr), 1, stdout);
		fwrite(&reads.at[i].len, sizeof(reads.at[i].len), 1, stdout);
		fwrite(reads.at[i].bytes, reads.at[i].len, 1, stdout);
		nr_bytes += INPUT_PIECE_HEAD + reads.at[i].len;
	}
}

/* The first runtime of that name; the space lives as long as @interp. */
static struct sb_runtime *find(struct sb_interp *interp, struct sb_space_key *key, const char *name)
{
	struct sb_interp_confs confs;
	struct space *space;
	size_t i;

	if (sb_interp_look(interp, key, &confs))
		return NULL;
	space = sb_interp_find(interp, key);
	for (i = 0; space && i < space->nr_found; i++)
		if (space->found[i]->is_attached && sb_streq(space->found[i]->rt.ops->name, name))
			return &space->found[i]->rt;
	return NULL;
}

int main(int argc, char **argv)
{
	struct sb_interp_opts opts = { .lines = true };
	struct sb_space_key key = {};
	struct sb_interp *interp;
	static struct input input;
	struct input_run run;
	struct sb_runtime *rt;
	pid_t tid;
	int err;

	if (argc != 4 || sb_interp_new(&opts, &interp)) {
		fprintf(stderr, "usage: record PID TID RUNTIME\n");
		return 2;
	}
	theirs.tgid = key.tgid = (uint32_t)strtoul(argv[1], NULL, 10);
	tid = (pid_t)strtoul(argv[2], NULL, 10);
	rt = find(interp, &key, argv[3]);
	if (rt) {
		input.head.how = INPUT_LINES | INPUT_LEAF;
		input.head.hook_begin = rt->conf.hook_begin;
		input.head.hook_end = rt->conf.hook_end;
		memcpy(input.head.word, rt->conf.word, sizeof(input.head.word));
		fill_layout(&input.head, rt);
	}
	err = rt ? look(tid, &input, &run, rt) : -ENOENT;
	if (err) {
		fprintf(stderr, "record: no %s runs in %s: %s\n", argv[3], argv[1], strerror(-err));
		return 1;
	}
	fprintf(stderr, "record: %" PRIu64 " frames, %zu pieces\n", (uint64_t)run.walk->nr_frames,
		reads.nr);
	put(&input.head);
	return 0;
}
