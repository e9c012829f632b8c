// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of frames that a process does not have, or makes up: what is done about it, and how
 * often. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "interp/core/interp_priv.h"
#include "interp/core/pages.h"

#define NR_FRAMES 200u
/* As many as are remembered. */
#define NR_FILES  65536u

static bool is_two_there;

static int no_name(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		   struct sb_runtime_text *text)
{
	(void)rt;
	if (frame->obj == 2 && is_two_there)
		return sb_str_add(&text->name, "two");
	return frame->obj == 1 ? sb_str_add(&text->name, "one") : -EFAULT;
}

static const struct sb_runtime_ops no_names = {
	.runtime = SB_RUNTIME_PYTHON,
	.name = "python",
	.describe = no_name,
};

static const struct sb_space_key key = { .start_ns = 1 };

/* This process, with a runtime in it. */
static struct sb_interp *make_as(const struct sb_space_key *as)
{
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	struct space *space;

	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	assert_int_equal(sb_interp_look(interp, as, &confs), 0);
	assert_int_equal(confs.nr, 0);
	space = sb_interp_find(interp, as);
	space->nr_found = 1;
	space->found[0] = calloc(1, sizeof(struct found));
	space->found[0]->is_attached = true;
	space->found[0]->rt.ops = &no_names;
	space->found[0]->rt.memory = &space->memory;
	return interp;
}

static struct sb_interp *make(struct sb_space_key *ret_key)
{
	*ret_key = key;
	ret_key->tgid = (uint32_t)getpid();
	return make_as(ret_key);
}

static int fetch(struct sb_interp *interp, const struct sb_space_key *space, uint64_t from,
		 size_t nr)
{
	struct sb_interp_frame frames[NR_FRAMES] = {};
	size_t i;

	for (i = 0; i < nr; i++)
		frames[i] = (struct sb_interp_frame){
			.obj = from + i,
			.where = (uint64_t)SB_RUNTIME_PYTHON << SB_WHERE_RUNTIME_SHIFT,
		};
	return sb_interp_fetch(interp, space, frames, nr);
}

/* However many a stack has: it is said once. */
static void test_nothing_readable(void **state)
{
	static const size_t steps[] = { 1, 7, 31, 33, 128 };
	struct sb_space_key space;
	struct sb_interp *interp;
	size_t i, at, nr_said;

	(void)state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		interp = make(&space);
		nr_said = 0;
		for (at = 0; at < 40 + 2 * steps[i]; at += steps[i])
			nr_said += fetch(interp, &space, 100 + at, steps[i]) == -ENOTSUP;
		assert_int_equal(nr_said, 1);
		sb_interp_free(interp);
	}
}

/* Where one is, the others are odd, and no more. */
static void test_one_readable(void **state)
{
	struct sb_space_key space;
	struct sb_interp *interp = make(&space);

	(void)state;
	assert_int_equal(fetch(interp, &space, 1, 1), 0);
	assert_int_equal(fetch(interp, &space, 100, 100), 0);
	assert_int_equal(fetch(interp, &space, 300, 100), 0);
	sb_interp_free(interp);
}

/* What cannot be read at one moment, however many stacks of that moment have it, can be read at
 * another. */
static void test_read_later(void **state)
{
	const struct sb_interp_frame two = {
		.obj = 2,
		.where = (uint64_t)SB_RUNTIME_PYTHON << SB_WHERE_RUNTIME_SHIFT,
	};
	struct sb_space_key space;
	struct sb_interp *interp = make(&space);
	struct sb_interp_name name = {};
	size_t i;

	(void)state;
	is_two_there = false;
	assert_int_equal(fetch(interp, &space, 1, 1), 0);
	for (i = 0; i < 100; i++)
		assert_int_equal(fetch(interp, &space, 2, 1), 0);
	assert_int_equal(sb_interp_name(interp, &space, &two, 0, &name), 0);
	assert_string_equal(name.name.s, "[unreadable python frame]");
	is_two_there = true;
	for (i = 0; i < 100000000 && name.is_unnamed; i++)
		assert_int_equal(sb_interp_name(interp, &space, &two, 0, &name), 0);
	assert_string_equal(name.name.s, "two");
	sb_str_release(&name.name);
	sb_str_release(&name.file);
	sb_interp_free(interp);
}

/* After however many attempts: a recorder runs for months. */
static void test_read_much_later(void **state)
{
	struct sb_space_key space;
	struct sb_interp *interp = make(&space);
	struct name *two;

	(void)state;
	is_two_there = false;
	assert_int_equal(fetch(interp, &space, 1, 2), 0);
	two = &sb_interp_find(interp, &space)->names.at[1];
	assert_int_equal(two->obj, 2);
	assert_int_equal(two->nr_bad, 1);
	is_two_there = true;
	two->nr_bad = 1000;
	assert_int_equal(fetch(interp, &space, 2, 1), 0);
	assert_int_equal(two->nr_bad, 1000);
	two->bad_ms -= 1000 * 1000;
	/* When it has ended, another process may have its number. */
	sb_processes_end(interp->opts.processes, &space);
	assert_int_equal(fetch(interp, &space, 2, 1), 0);
	assert_int_equal(two->nr_bad, 1000);
	sb_processes_alive(interp->opts.processes, &space);
	assert_int_equal(fetch(interp, &space, 2, 1), 0);
	assert_int_equal(two->nr_bad, 0);
	sb_interp_free(interp);
}

static int inlined_without_end(struct sb_runtime *rt, const struct sb_interp_frame *frame, size_t i,
			       struct sb_runtime_text *text)
{
	(void)rt;
	(void)frame;
	return sb_str_addf(&text->name, "inlined function %0100zu", i);
}

static int no_own_name(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		       struct sb_runtime_text *text)
{
	(void)rt;
	(void)text;
	return frame->obj == 1 ? -ENODATA : frame->obj == 2 ? -ENOMEM : -EFAULT;
}

static const struct sb_runtime_ops inlined_only = {
	.runtime = SB_RUNTIME_PYTHON,
	.name = "python",
	.describe = no_own_name,
	.describe_inlined = inlined_without_end,
};

static uint64_t nr_name_bytes(struct sb_interp *interp)
{
	struct sb_interp_stats stats;

	sb_interp_stats(interp, &stats);
	return stats.nr_bytes;
}

/* Whatever a process lets us read of a name before it refuses the rest, and however often, our
 * memory does not grow; and all that is kept is counted, so that it can be bounded. */
static void test_refused_without_end(void **state)
{
	struct sb_space_key key_here;
	struct sb_interp *interp = make(&key_here);
	struct space *space = sb_interp_find(interp, &key_here);
	size_t nr_bytes, i;

	(void)state;
	space->found[0]->rt.ops = &inlined_only;
	assert_int_equal(fetch(interp, &key_here, 3, 1), 0);
	nr_bytes = space->arena.nr_bytes;
	for (i = 1; i < 1000; i++) {
		space->names.at[0].bad_ms -= 1000 * 1000;
		/* Said once, when so many failed. */
		assert_int_equal(fetch(interp, &key_here, 3, 1), i == 31 ? -ENOTSUP : 0);
		assert_int_equal(space->names.at[0].nr_bad, i + 1);
		assert_int_equal(fetch(interp, &key_here, 2, 1), -ENOMEM);
	}
	assert_int_equal(space->arena.nr_bytes, nr_bytes);
	assert_int_equal(space->texts.nr, 1);
	assert_int_equal(nr_name_bytes(interp), nr_bytes);
	/* Names that are not refused are kept. */
	assert_int_equal(fetch(interp, &key_here, 1, 1), 0);
	assert_int_equal(space->texts.nr, 65);
	assert_true(space->arena.nr_bytes > nr_bytes);
	assert_int_equal(nr_name_bytes(interp), space->arena.nr_bytes);
	space->found[0]->is_pending = true; /* so it is not told of: it has no file */
	sb_processes_end(interp->opts.processes, &key_here);
	sb_processes_forget(interp->opts.processes, UINT64_MAX);
	assert_int_equal(nr_name_bytes(interp), 0);
	sb_interp_free(interp);
}

/* A process that is known by its number only has another one after it, with frames at the same
 * addresses. */
static void test_number_of_another(void **state)
{
	const struct sb_space_key space = { .tgid = (uint32_t)getpid() };
	const struct sb_interp_frame one = {
		.obj = 1,
		.where = (uint64_t)SB_RUNTIME_PYTHON << SB_WHERE_RUNTIME_SHIFT,
	};
	struct sb_interp *interp = make_as(&space);
	struct sb_interp_name name = {};
	struct sb_interp_confs confs;
	struct sb_interp_stats stats;

	(void)state;
	assert_int_equal(fetch(interp, &space, 1, 1), 0);
	assert_int_equal(sb_interp_name(interp, &space, &one, 0, &name), 0);
	assert_string_equal(name.name.s, "one");
	sb_interp_find(interp, &space)->expected.start_ticks--;
	assert_int_equal(sb_interp_look(interp, &space, &confs), 0);
	assert_int_equal(sb_interp_find(interp, &space)->names.nr, 0);
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_bytes, 0);
	assert_int_equal(sb_interp_name(interp, &space, &one, 0, &name), 0);
	assert_true(name.is_unnamed);
	sb_interp_name_release(&name);
	sb_interp_free(interp);
}

static int read_zero(void *arg, void *dst, size_t len, uint64_t addr)
{
	(void)arg;
	(void)addr;
	memset(dst, 0, len);
	return 0;
}

/* Whoever follows a list that has no end comes to one. */
static void test_reads_are_bounded(void **state)
{
	uint64_t nr_left = 2, word;
	const struct sb_memory memory = { .read = read_zero, .nr_left = &nr_left };

	(void)state;
	assert_int_equal(sb_memory_u64(&memory, 8, &word), 0);
	assert_int_equal(sb_memory_u64(&memory, 8, &word), 0);
	assert_int_equal(sb_memory_u64(&memory, 8, &word), -EFAULT);
	assert_int_equal(nr_left, 0);
}

static bool is_glue_by_fnmatch(const struct sb_runtime_ops *ops, const char *name)
{
	size_t i;

	for (i = 0; ops->glue && ops->glue[i]; i++)
		if (!fnmatch(ops->glue[i], name, 0))
			return true;
	return false;
}

/* Glue is what fnmatch(3) says: of names that are like the globs, and almost like them. */
static void test_glue(void **state)
{
	static const char *const stars[] = { "", "x", ".cold", "::Invoke", "_HANDLER" };
	char name[256];
	size_t i, at, star, nr = 0, cut;

	(void)state;
	for (i = 0; sb_runtimes[i]->runtime; i++)
		for (at = 0; sb_runtimes[i]->glue && sb_runtimes[i]->glue[at]; at++)
			for (star = 0; star < 5; star++) {
				const char *glob = sb_runtimes[i]->glue[at];

				for (name[0] = '\0'; *glob; glob++)
					snprintf(name + strlen(name), sizeof(name) - strlen(name),
						 "%.*s", *glob == '*' ? 99 : 1,
						 *glob == '*' ? stars[star] : glob);
				assert_true(sb_runtime_is_glue(sb_runtimes[i]->runtime, name));
				for (cut = strlen(name); cut--; nr++) {
					name[cut] = '\0';
					assert_int_equal(
						sb_runtime_is_glue(sb_runtimes[i]->runtime, name),
						is_glue_by_fnmatch(sb_runtimes[i], name));
				}
			}
	assert_true(nr > 1000);
}

/* A page that is there, and counts how often it is asked for. */
struct page {
	uint8_t bytes[4096];
	uint64_t addr;
	size_t nr_reads;
};

static int read_page(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct page *page = arg;

	page->nr_reads++;
	if (addr < page->addr || addr + len > page->addr + sizeof(page->bytes))
		return -EFAULT;
	memcpy(dst, page->bytes + (addr - page->addr), len);
	return 0;
}

/* What lies together is read once, and is the same; up to the last byte, and not beyond. */
static void test_recent_reads(void **state)
{
	static struct sb_memory_recent recent;
	struct page page = { .addr = 0x7000 };
	const struct sb_memory memory = { .read = read_page, .arg = &page, .recent = &recent };
	uint8_t bytes[sizeof(page.bytes)];
	uint64_t word;
	size_t at, len;

	(void)state;
	for (at = 0; at < sizeof(page.bytes); at++)
		page.bytes[at] = (uint8_t)(at * 7 + at / 256);
	for (at = 0; at + 8 <= sizeof(page.bytes); at++) {
		assert_int_equal(sb_memory_u64(&memory, page.addr + at, &word), 0);
		assert_memory_equal(&word, page.bytes + at, 8);
	}
	assert_int_equal(page.nr_reads, sizeof(page.bytes) / SB_MEMORY_PIECE_BYTES);
	for (len = 1; len < sizeof(bytes); len += 97)
		for (at = 0; at + len <= sizeof(bytes); at += 61) {
			assert_int_equal(sb_memory_read(&memory, bytes, len, page.addr + at), 0);
			assert_memory_equal(bytes, page.bytes + at, len);
		}
	assert_int_equal(sb_memory_u64(&memory, page.addr + sizeof(page.bytes) - 7, &word),
			 -EFAULT);
	assert_int_equal(word, 0);
	assert_int_equal(sb_memory_u64(&memory, page.addr - 1, &word), -EFAULT);
	/* More pieces than are kept. */
	for (at = 0; at < 64; at++)
		assert_int_equal(sb_memory_u8(&memory, at * SB_MEMORY_PIECE_BYTES, bytes),
				 at * SB_MEMORY_PIECE_BYTES >= page.addr &&
						 at * SB_MEMORY_PIECE_BYTES <
							 page.addr + sizeof(page.bytes)
					 ? 0
					 : -EFAULT);
}

/* A process that nobody has waited for has a name still, and nothing else. */
static void test_zombie(void **state)
{
	struct sb_space_key space = key;
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	struct stat st;
	siginfo_t info;
	pid_t pid;

	(void)state;
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	space.tgid = (uint32_t)pid;
	assert_int_equal(sb_interp_look(interp, &space, &confs), 0);
	/* The file has none, and one that is not quite the same may have. */
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_true(sb_interp_is_plain(interp, &st));
	st.st_ctim.tv_nsec++;
	assert_false(sb_interp_is_plain(interp, &st));
	/* Where files were that have no interpreter, there seem to be none; elsewhere nobody
	 * knows. */
	assert_true(sb_interp_seems_plain(interp, realpath("/proc/self/exe", (char[PATH_MAX]){})));
	assert_false(sb_interp_seems_plain(interp, "/usr/bin/another"));
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sb_interp_look(interp, &space, &confs), -ESRCH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sb_interp_free(interp);
}

/* Whoever maps many files does not keep others' from being looked at. */
static void test_many_files(void **state)
{
	struct sb_space_key space = key;
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	size_t i;

	(void)state;
	space.tgid = (uint32_t)getpid();
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	for (i = 0; i < NR_FILES; i++)
		assert_int_equal(sb_vec_push(&interp->files, (struct seen_file){ .ino = i }), 0);
	assert_int_equal(sb_interp_look(interp, &space, &confs), 0);
	assert_in_range(interp->files.nr, 1, NR_FILES - 1);
	sb_interp_free(interp);
}

/* What was found in a process that was expected is that of the process that came. */
static void test_expected(void **state)
{
	const struct sb_space_key expected = { .tgid = (uint32_t)getpid() };
	const struct sb_space_key space = { .start_ns = 5, .tgid = expected.tgid, .exec_id = 7 };
	const struct sb_space_key other = { .start_ns = 5, .tgid = expected.tgid, .exec_id = 8 };
	struct sb_interp *interp = make_as(&expected);
	struct sb_interp_stats stats;
	struct sb_interp_confs confs;

	(void)state;
	assert_int_equal(fetch(interp, &expected, 1, 1), 0);
	assert_int_equal(sb_interp_adopt(interp, &space), 0);
	assert_true(sb_interp_knows(interp, &space));
	assert_false(sb_interp_knows(interp, &expected));
	assert_int_equal(fetch(interp, &space, 1, 1), 0);
	sb_interp_stats(interp, &stats);
	assert_int_equal(stats.nr_looks, 1);
	assert_int_equal(stats.nr_names, 1);
	assert_int_equal(stats.nr_processes, 1);
	assert_int_equal(sb_interp_adopt(interp, &space), 0);
	assert_int_equal(sb_interp_adopt(interp, &other), -ENOENT);
	/* Somebody who does not know that yet has looked at it once more. */
	assert_int_equal(sb_interp_look(interp, &expected, &confs), 0);
	assert_int_equal(sb_interp_adopt(interp, &space), 0);
	assert_false(sb_interp_knows(interp, &expected));
	assert_int_equal(fetch(interp, &space, 1, 1), 0);
	sb_interp_free(interp);
}

/* One that executes another program meanwhile was not. */
static void test_expected_another(void **state)
{
	struct sb_space_key expected = {}, space = { .start_ns = 5 };
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	int go[2], is_done[2];
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(is_done, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &c, 1) == 1)
			execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	close(is_done[1]);
	expected.tgid = space.tgid = (uint32_t)pid;
	assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
	assert_int_equal(sb_interp_look(interp, &expected, &confs), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(read(is_done[0], &c, 1), 0);
	assert_int_equal(sb_interp_adopt(interp, &space), -ESTALE);
	assert_false(sb_interp_knows(interp, &space));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(is_done[0]);
	sb_interp_free(interp);
}

/* A frame is a pointer to a pointer to its name, and each lies on a page of its own. */
static int name_of_pointer(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			   struct sb_runtime_text *text)
{
	uint64_t addr;
	int err;

	sb_memory_want_target(rt->memory, frame->obj);
	err = sb_memory_u64(rt->memory, frame->obj, &addr);

	return err ? err : sb_memory_cstr(rt->memory, addr, 16, &text->name);
}

static const struct sb_runtime_ops pointers = {
	.runtime = SB_RUNTIME_PYTHON,
	.name = "python",
	.describes_purely = true,
	.describe = name_of_pointer,
};

static uint64_t nr_requests(void)
{
	struct sb_reader_stats stats;

	sb_reader_stats(&stats);
	return stats.nr_requests;
}

/* The names of a stack are read by one request, and a name that nobody asked for in time by one,
 * too. A process that has ended is not asked. */
static void test_read_ahead(void **state)
{
	static struct {
		uint64_t name_at;
		char more[SB_PAGE_BYTES - sizeof(uint64_t)], name[SB_PAGE_BYTES];
	} objects[33] __attribute__((aligned(SB_PAGE_BYTES)));
	struct sb_interp_frame frames[33] = {};
	struct sb_interp_name name = {};
	struct sb_space_key space;
	struct sb_interp *interp;
	uint64_t before;
	char expected[16];
	pid_t pid;
	size_t i;

	(void)state;
	assert_int_equal(sb_reader_begin(&(struct sb_reader_opts){}), 0);
	interp = make(&space);
	sb_interp_find(interp, &space)->found[0]->rt.ops = &pointers;
	for (i = 0; i < 33; i++) {
		objects[i].name_at = (uint64_t)(uintptr_t)objects[i].name;
		snprintf(objects[i].name, sizeof(objects[i].name), "name %zu", i);
		frames[i] = (struct sb_interp_frame){
			.obj = (uint64_t)(uintptr_t)&objects[i],
			.where = (uint64_t)SB_RUNTIME_PYTHON << SB_WHERE_RUNTIME_SHIFT,
		};
	}
	before = nr_requests();
	assert_int_equal(sb_interp_fetch(interp, &space, frames, 30), 0);
	assert_int_equal(nr_requests() - before, 1);
	before = nr_requests();
	for (i = 0; i < 30; i++) {
		snprintf(expected, sizeof(expected), "name %zu", i);
		assert_int_equal(sb_interp_name(interp, &space, &frames[i], 0, &name), 0);
		assert_string_equal(name.name.s, expected);
	}
	assert_int_equal(nr_requests(), before);
	assert_int_equal(sb_interp_name(interp, &space, &frames[30], 0, &name), 0);
	assert_string_equal(name.name.s, "name 30");
	assert_int_equal(nr_requests() - before, 1);
	/* After execve() another program has the same number, and other things at these addresses. */
	sb_processes_end(interp->opts.processes, &space);
	assert_int_equal(sb_interp_name(interp, &space, &frames[32], 0, &name), 0);
	assert_string_equal(name.name.s, "[unreadable python frame]");
	sb_processes_alive(interp->opts.processes, &space);
	assert_int_equal(nr_requests() - before, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sb_interp_find(interp, &space)->memory.tgid = (uint32_t)pid;
	assert_int_equal(sb_interp_name(interp, &space, &frames[31], 0, &name), 0);
	assert_string_equal(name.name.s, "[unreadable python frame]");
	assert_int_equal(nr_requests() - before, 1);
	sb_interp_name_release(&name);
	sb_interp_free(interp);
	sb_reader_end();
}

/* When a process has ended, a task that reads much of it asks for it once. */
static void test_ended(void **state)
{
	struct sb_memory_recent recent = { .nr = 0 };
	struct sb_memory memory = { .recent = &recent };
	uint64_t before, word;
	pid_t pid = fork();
	size_t i;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	memory.tgid = (uint32_t)pid;
	before = nr_requests();
	for (i = 0; i < 100; i++)
		assert_int_equal(sb_memory_u64(&memory, 0x10000 * (i + 1), &word), -ESRCH);
	assert_int_equal(nr_requests() - before, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_readable),
		cmocka_unit_test(test_one_readable),
		cmocka_unit_test(test_read_later),
		cmocka_unit_test(test_read_much_later),
		cmocka_unit_test(test_refused_without_end),
		cmocka_unit_test(test_number_of_another),
		cmocka_unit_test(test_reads_are_bounded),
		cmocka_unit_test(test_recent_reads),
		cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_glue),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_expected),
		cmocka_unit_test(test_expected_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
