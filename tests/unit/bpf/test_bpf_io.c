// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* views/io.bpf.c, io_file.bpf.c and io_uring.bpf.c, compiled for the host: what a call weighs, for
 * which file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"

#define const
#include "views/io.bpf.c"
#include "views/io_file.bpf.c"
#include "views/io_uring.bpf.c"
#undef const

enum { NR_READ = 0, NR_WRITE = 1, NR_SPLICE = 2, NR_OPEN = 3, NR_VMSPLICE = 4, NR_SYNC = 5 };
enum { FD_FILE, FD_OTHER, FD_PIPE, NR_FDS };

static struct counts_generation generation;
static struct task_struct task, leader;
static struct pt_regs regs;
static struct file_system_type fs = { .name = "ext4" };
static struct super_block sb = { .s_dev = 8 << 20 | 1, .s_type = &fs };
static struct inode inodes[NR_FDS];
static struct dentry root, dir, entries[NR_FDS];
static struct mount mount;
static struct file files[NR_FDS], *table_files[NR_FDS + 1];
static struct fdtable table = { .max_fds = NR_FDS + 1, .fd = table_files };
static struct files_struct task_files = { .fdt = &table };
static struct hlist_bl_node *hashed;

static void make_file(int fd, const char *name, umode_t mode)
{
	inodes[fd] = (struct inode){ .i_mode = mode, .i_sb = &sb, .i_ino = 100 + fd };
	entries[fd] = (struct dentry){
		.d_hash.pprev = &hashed,
		.d_parent = &dir,
		.d_name = { .hash_len = 1000 + fd, .name = (const unsigned char *)name },
	};
	files[fd] = (struct file){
		.f_path = { .mnt = &mount.mnt, .dentry = &entries[fd] },
		.f_inode = &inodes[fd],
	};
	table_files[fd] = &files[fd];
}

static void make_files(void)
{
	root = (struct dentry){ .d_parent = &root, .d_name.name = (const unsigned char *)"/" };
	dir = (struct dentry){ .d_parent = &root, .d_name.name = (const unsigned char *)"dir" };
	mount = (struct mount){ .mnt_parent = &mount, .mnt_ns = (void *)&mount };
	mount.mnt.mnt_root = &root;
	make_file(FD_FILE, "file", S_IFREG);
	make_file(FD_OTHER, "other", S_IFREG);
	make_file(FD_PIPE, "", S_IFIFO);
	entries[FD_PIPE].d_parent = &entries[FD_PIPE];
	table_files[NR_FDS] = NULL;
}

static void make_rows(void)
{
	static const struct sb_io_call rows[] = {
		[NR_READ] = { 1, SB_IO_READ, 0, SB_IO_NO_ARG },
		[NR_WRITE] = { 2, SB_IO_WRITE, SB_IO_NO_ARG, 0 },
		[NR_SPLICE] = { 3, SB_IO_READ | SB_IO_WRITE, 0, 2 },
		[NR_OPEN] = { 4, SB_IO_NEITHER, SB_IO_NO_ARG, SB_IO_NO_ARG,
			      SB_IO_CALL_OPENS | SB_IO_CALL_NO_FD },
		[NR_VMSPLICE] = { 5, SB_IO_READ | SB_IO_WRITE, 0, 0, SB_IO_CALL_BY_MODE },
		[NR_SYNC] = { 6, SB_IO_NEITHER, SB_IO_NO_ARG, SB_IO_NO_ARG, SB_IO_CALL_NO_FD },
	};

	memset((void *)cfg_io_calls, 0, sizeof(cfg_io_calls));
	memcpy((void *)cfg_io_calls, rows, sizeof(rows));
}

static int setup(void **state)
{
	shim_reset();
	SHIM_MAP(stats);
	SHIM_MAP(spent_turns);
	SHIM_MAP(target_tgids);
	SHIM_MAP(scratch);
	SHIM_MAP(stacks_seen);
	SHIM_MAP(procs_announced);
	SHIM_MAP(proc_caches);
	shim_map_add((struct shim_map_def){ &objects_seen, BPF_MAP_TYPE_HASH, 8, 4, 100 });
	shim_map_add((struct shim_map_def){ &io_descriptions, BPF_MAP_TYPE_PERCPU_ARRAY, 4,
					    sizeof(struct io_description), SB_SCRATCH_MAX });
	SHIM_TASK_STORAGE(io_states);
	shim_map_add((struct shim_map_def){ &io_uring_requests, BPF_MAP_TYPE_HASH, 8,
					    sizeof(struct sb_capture), 2 });
	SHIM_RING(events, 1 << 20);
	SHIM_MAP_OF_MAPS(counts);
	SHIM_MAP_OF_BYTES(generation, 100);
	shim_set_inner(&counts, 0, &generation);
	make_files();
	make_rows();
	leader = (struct task_struct){ .tgid = 42, .start_boottime = 1000 };
	task = (struct task_struct){ .tgid = 42, .pid = 43, .files = &task_files };
	task.group_leader = &leader;
	memset(&regs, 0, sizeof(regs));
	shim.task = &task;
	shim.task_regs = &regs;
	shim.pid_tgid = 42ull << 32 | 43;
	strcpy(shim.comm, "thread");
	end_ns = nr_keys = 0;
	cfg_by = cfg_sides = 0;
	cfg_nr_allow_rules = 0;
	cfg_io_weight = SB_IO_BYTES;
	cfg_io_kinds = cfg_io_dev = cfg_io_has_fs = 0;
	cfg_io_ino = cfg_io_min_ns = cfg_io_max_ns = cfg_io_started_ns = 0;
	return 0;
}

static void call_begin(unsigned long nr, unsigned long arg0, unsigned long arg2)
{
	regs.orig_ax = nr;
	regs.di = arg0;
	regs.dx = arg2;
	on_enter();
}

static void call_end(long result, uint64_t after_ns)
{
	shim.now_ns += after_ns;
	regs.ax = (unsigned long)result;
	on_exit(NULL);
}

/* Return: what was accounted for the call and the file, all its durations. */
static uint64_t weight(uint8_t op, const struct file *file)
{
	uint64_t object =
		file ? hash_of(file->f_inode, file->f_path.dentry, (uintptr_t)file->f_path.mnt) : 0;
	struct sb_sample_key key = { .start_ns = 1000, .tgid = 42, .comm = "thread" };
	const struct sb_count *count;

	key.op = op;
	key.object = object;
	count = bpf_map_lookup_elem(&generation, &key);
	return count ? count->weight : 0;
}

static uint64_t stat_of(uint32_t stat)
{
	const uint32_t zero = 0;

	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

static void test_bytes(void **state)
{
	call_begin(NR_READ, FD_FILE, 0);
	call_end(4096, 100);
	call_begin(NR_READ, FD_FILE, 0);
	call_end(0, 100);
	call_begin(NR_WRITE, FD_OTHER, 0);
	call_end(7, 100);
	call_begin(NR_WRITE, FD_OTHER, 0);
	call_end(-11, 100);
	assert_int_equal(weight(1, &files[FD_FILE]), 4096);
	assert_int_equal(weight(2, &files[FD_OTHER]), 7);
	assert_int_equal(shim_map_nr(&generation), 2);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 2);
}

static void test_both_files(void **state)
{
	call_begin(NR_SPLICE, FD_FILE, FD_PIPE);
	call_end(500, 100);
	assert_int_equal(weight(3, &files[FD_FILE]), 500);
	assert_int_equal(weight(3, &files[FD_PIPE]), 500);
	/* Time passes once. */
	cfg_io_weight = SB_IO_COUNT;
	call_begin(NR_SPLICE, FD_OTHER, FD_PIPE);
	call_end(500, 100);
	assert_int_equal(weight(3, &files[FD_OTHER]), 1);
	assert_int_equal(weight(3, &files[FD_PIPE]), 500);
}

static void test_latency(void **state)
{
	cfg_io_weight = SB_IO_LATENCY;
	cfg_io_min_ns = 1000;
	cfg_io_max_ns = 100000;
	call_begin(NR_READ, FD_FILE, 0);
	call_end(-11, 5000);
	assert_in_range(weight(1, &files[FD_FILE]), 5000, 5010);
	call_begin(NR_READ, FD_FILE, 0);
	call_end(1, 10);
	call_begin(NR_READ, FD_FILE, 0);
	call_end(1, 1000000);
	assert_in_range(weight(1, &files[FD_FILE]), 5000, 5010);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 1);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 1);
}

/* The beginning was not seen: the file is that of the descriptor, the time that of the run. */
static void test_began_before(void **state)
{
	regs.orig_ax = NR_READ;
	regs.di = FD_FILE;
	call_end(33, 10);
	assert_int_equal(weight(1, &files[FD_FILE]), 33);
	cfg_io_weight = SB_IO_LATENCY;
	shim.now_ns = 70000;
	cfg_io_started_ns = 50000;
	regs.di = FD_OTHER;
	call_end(33, 0);
	assert_in_range(weight(1, &files[FD_OTHER]), 20000, 20010);
	/* What was begun was another call, whose end was not seen. */
	call_begin(NR_WRITE, FD_OTHER, 0);
	cfg_io_weight = SB_IO_BYTES;
	regs.orig_ax = NR_READ;
	regs.di = FD_PIPE;
	call_end(5, 0);
	assert_int_equal(weight(1, &files[FD_PIPE]), 5);
	assert_int_equal(weight(2, &files[FD_OTHER]), 0);
}

/* Another thread closes the file, or puts another one in its place, while the call goes on. */
static void test_closed_meanwhile(void **state)
{
	call_begin(NR_READ, FD_FILE, 0);
	table_files[FD_FILE] = &files[FD_OTHER];
	call_end(11, 0);
	assert_int_equal(weight(1, &files[FD_FILE]), 11);
	call_begin(NR_READ, FD_OTHER, 0);
	table_files[FD_OTHER] = NULL;
	call_end(12, 0);
	assert_int_equal(weight(1, &files[FD_OTHER]), 12);
}

static void test_without_file(void **state)
{
	cfg_io_weight = SB_IO_COUNT;
	call_begin(NR_READ, 1000, 0);
	call_end(-9, 0);
	assert_int_equal(weight(1, NULL), 1);
	call_begin(NR_OPEN, 0, 0);
	call_end(FD_FILE, 0);
	assert_int_equal(weight(4, &files[FD_FILE]), 1);
	call_begin(NR_OPEN, 0, 0);
	call_end(-2, 0);
	assert_int_equal(weight(4, NULL), 1);
	call_begin(NR_SYNC, 0, 0);
	call_end(0, 0);
	assert_int_equal(weight(6, NULL), 1);
	/* With a filter there must be a file. */
	cfg_io_ino = 100 + FD_FILE;
	call_begin(NR_SYNC, 0, 0);
	call_end(0, 0);
	assert_int_equal(weight(6, NULL), 1);
	assert_int_equal(stat_of(SB_STAT_OTHER_STATE), 1);
}

static void test_by_mode(void **state)
{
	files[FD_PIPE].f_mode = FMODE_WRITE;
	call_begin(NR_VMSPLICE, FD_PIPE, 0);
	call_end(9, 0);
	assert_int_equal(weight(5, &files[FD_PIPE]), 9);
	/* Reads only. */
	cfg_io_calls[NR_VMSPLICE].dirs = SB_IO_READ;
	call_begin(NR_VMSPLICE, FD_PIPE, 0);
	call_end(9, 0);
	assert_int_equal(weight(5, &files[FD_PIPE]), 9);
	files[FD_PIPE].f_mode = 0;
	call_begin(NR_VMSPLICE, FD_PIPE, 0);
	call_end(9, 0);
	assert_int_equal(weight(5, &files[FD_PIPE]), 18);
}

/* Who is not asked for when the call begins is not asked for when it ends. */
static void test_left_out(void **state)
{
	cfg_nr_allow_rules = 1;
	call_begin(NR_READ, FD_FILE, 0);
	call_end(5, 0);
	assert_int_equal(shim_map_nr(&generation), 0);
	assert_int_equal(stat_of(SB_STAT_FILTERED), 1);
	cfg_nr_allow_rules = 0;
	call_begin(NR_READ, FD_FILE, 0);
	call_end(5, 0);
	assert_int_equal(weight(1, &files[FD_FILE]), 5);
}

static void check_filter(uint64_t want_file, uint64_t want_pipe)
{
	uint64_t file = weight(1, &files[FD_FILE]), pipe = weight(1, &files[FD_PIPE]);

	call_begin(NR_READ, FD_FILE, 0);
	call_end(1, 0);
	call_begin(NR_READ, FD_PIPE, 0);
	call_end(1, 0);
	assert_int_equal(weight(1, &files[FD_FILE]) - file, want_file);
	assert_int_equal(weight(1, &files[FD_PIPE]) - pipe, want_pipe);
}

static void test_filters(void **state)
{
	check_filter(1, 1);
	cfg_io_kinds = 1u << SB_FILE_PIPE;
	check_filter(0, 1);
	cfg_io_kinds = 1u << SB_FILE_REG | 1u << SB_FILE_SOCK;
	check_filter(1, 0);
	cfg_io_kinds = 0;
	cfg_io_ino = 100 + FD_PIPE;
	check_filter(0, 1);
	cfg_io_ino = 0;
	cfg_io_dev = 8 << 20 | 2;
	check_filter(0, 0);
	inodes[FD_FILE].i_rdev = cfg_io_dev; /* the device itself */
	check_filter(1, 0);
	cfg_io_dev = 0;
	cfg_io_has_fs = 1;
	strcpy((char *)cfg_io_fs, "ext");
	check_filter(0, 0);
	strcpy((char *)cfg_io_fs, "ext4");
	check_filter(1, 1);
	cfg_io_has_fs = 0;
}

static void check_nothing(uint64_t want)
{
	assert_int_equal(sb_io_file(0, SB_SCRATCH_CALL), want);
	assert_int_equal(sb_io_inode(0, 0, SB_SCRATCH_CALL), want);
	assert_int_equal(sb_io_device(0, SB_SCRATCH_CALL), want);
}

/* What has no file, inode or disk is nothing that a filter asks for. */
static void test_filters_of_nothing(void **state)
{
	check_nothing(0);
	cfg_io_kinds = 1u << SB_FILE_BLK;
	check_nothing(SB_IO_UNWANTED);
	cfg_io_kinds = 0;
	cfg_io_dev = 8 << 20 | 2;
	check_nothing(SB_IO_UNWANTED);
}

enum { URING_READ = 22, URING_OTHER = 0 };

static void submit(struct io_kiocb *req)
{
	cfg_io_uring_calls[URING_READ] = (struct sb_io_call){ 100, SB_IO_READ, 0, SB_IO_NO_ARG };
	io_uring_submit((void *)&(uint64_t[]){ (uintptr_t)req });
}

static void complete(struct io_kiocb *req, __s32 result)
{
	if (req)
		req->cqe.res = result;
	io_uring_complete((void *)&(uint64_t[]){ 0, (uintptr_t)req });
}

/* It is accounted to who submitted it, for the file that it has in the end. */
static void test_uring(void **state)
{
	struct io_kiocb req = { .opcode = URING_READ };

	submit(&req);
	req.file = &files[FD_FILE];
	strcpy(shim.comm, "worker");
	cfg_nr_allow_rules = 1; /* who it is does not matter any more */
	complete(&req, 77);
	assert_int_equal(weight(100, &files[FD_FILE]), 77);
	complete(&req, 77);
	assert_int_equal(weight(100, &files[FD_FILE]), 77);
	cfg_nr_allow_rules = 0;
	strcpy(shim.comm, "thread");
	submit(&req);
	complete(&req, -11);
	assert_int_equal(weight(100, &files[FD_FILE]), 77);
	assert_int_equal(shim_map_nr(&io_uring_requests), 0);
	/* Not asked for. */
	cfg_nr_allow_rules = 1;
	submit(&req);
	complete(&req, 1);
	complete(NULL, 1);
	assert_int_equal(weight(100, &files[FD_FILE]), 77);
	assert_int_equal(stat_of(SB_STAT_URING_UNNAMED), 0);
}

/* What the kernel does not say, or what there is no room for, is counted. */
static void test_uring_lost(void **state)
{
	struct io_kiocb reqs[3] = { { &files[FD_FILE], URING_READ },
				    { &files[FD_OTHER], URING_READ },
				    { &files[FD_PIPE], URING_READ } };

	complete(NULL, 5);
	assert_int_equal(stat_of(SB_STAT_URING_UNNAMED), 1);
	submit(&reqs[0]);
	submit(&reqs[0]);
	assert_int_equal(stat_of(SB_STAT_URING_UNSEEN), 1);
	submit(&reqs[1]);
	submit(&reqs[2]);
	assert_int_equal(stat_of(SB_STAT_URING_FULL), 1);
	complete(&reqs[2], 5);
	complete(&reqs[0], 5);
	assert_int_equal(weight(100, &files[FD_PIPE]), 0);
	assert_int_equal(weight(100, &files[FD_FILE]), 5);
	/* The memory of a request whose end was not seen is another's now. */
	reqs[1].opcode = URING_OTHER;
	complete(&reqs[1], 5);
	assert_int_equal(weight(100, &files[FD_OTHER]), 0);
	reqs[0].opcode = URING_READ;
	submit(&reqs[0]);
	reqs[0].opcode = URING_OTHER;
	submit(&reqs[0]);
	assert_int_equal(shim_map_nr(&io_uring_requests), 0);
}

/* Return: the path of the next object, as shipped: the outermost part last. */
static const struct sb_object_file *next_file(const char **ret_path)
{
	const struct sb_event_object *event;
	uint32_t nr_bytes;

	do {
		event = shim_ring_next(&events, &nr_bytes);
		assert_non_null(event);
	} while (event->hdr.kind != SB_EVENT_OBJECT);
	assert_int_equal(nr_bytes, sizeof(*event) + event->nr_bytes);
	*ret_path = (const char *)(event + 1) + sizeof(struct sb_object_file);
	return (const void *)(event + 1);
}

static void use(int fd)
{
	call_begin(NR_READ, (unsigned long)fd, 0);
	call_end(1, 0);
}

static void test_paths(void **state)
{
	const struct sb_object_file *file;
	const char *path;
	uint32_t nr_bytes;

	use(FD_FILE);
	file = next_file(&path);
	assert_int_equal(file->kind, SB_FILE_REG);
	assert_int_equal(file->ino, 100 + FD_FILE);
	assert_int_equal(file->flags, 0);
	assert_string_equal(file->fs, "ext4");
	assert_int_equal(file->path_bytes, sizeof("file\0dir"));
	assert_memory_equal(path, "file\0dir", sizeof("file\0dir"));
	use(FD_FILE); /* described already */
	assert_null(shim_ring_next(&events, &nr_bytes));
	entries[FD_FILE].d_name.hash_len++;   /* renamed */
	entries[FD_FILE].d_hash.pprev = NULL; /* and removed */
	use(FD_FILE);
	assert_int_equal(next_file(&path)->flags, SB_FILE_DELETED);
	use(FD_PIPE);
	file = next_file(&path);
	assert_int_equal(file->kind, SB_FILE_PIPE);
	assert_int_equal(file->path_bytes, 0);
}

static void test_mounts(void **state)
{
	struct dentry at = { .d_parent = &dir, .d_name.name = (const unsigned char *)"mounted" };
	struct mount outer = { .mnt_parent = &outer, .mnt.mnt_root = &root, .mnt_ns = (void *)&at };
	struct dentry inner = { .d_parent = &inner };
	const struct sb_object_file *file;
	const char *path;

	mount.mnt_parent = &outer;
	mount.mnt_mountpoint = &at;
	mount.mnt.mnt_root = &inner;
	entries[FD_FILE].d_parent = &inner;
	use(FD_FILE);
	file = next_file(&path);
	assert_int_equal(file->flags, 0);
	assert_memory_equal(path, "file\0mounted\0dir", sizeof("file\0mounted\0dir"));
	outer.mnt_ns = NULL; /* unmounted meanwhile */
	use(FD_OTHER);
	entries[FD_OTHER].d_parent = &inner;
	use(FD_OTHER);
	next_file(&path);
	assert_int_equal(next_file(&path)->flags, SB_FILE_NO_MOUNT);
}

static void test_deep(void **state)
{
	static struct dentry chain[STEPS_MAX + 2];
	const struct sb_object_file *file;
	const char *path;
	uint32_t i;

	for (i = 0; i < STEPS_MAX + 2; i++)
		chain[i] = (struct dentry){
			.d_parent = i ? &chain[i - 1] : &root,
			.d_name.name = (const unsigned char *)"d",
		};
	entries[FD_FILE].d_parent = &chain[STEPS_MAX - 2];
	use(FD_FILE);
	file = next_file(&path);
	assert_int_equal(file->flags, 0);
	assert_int_equal(file->path_bytes, 5 + 2 * (STEPS_MAX - 1));
	entries[FD_FILE].d_parent = &chain[STEPS_MAX];
	use(FD_FILE);
	assert_int_equal(next_file(&path)->flags, SB_FILE_PATH_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_bytes, setup),
		cmocka_unit_test_setup(test_both_files, setup),
		cmocka_unit_test_setup(test_latency, setup),
		cmocka_unit_test_setup(test_began_before, setup),
		cmocka_unit_test_setup(test_closed_meanwhile, setup),
		cmocka_unit_test_setup(test_without_file, setup),
		cmocka_unit_test_setup(test_left_out, setup),
		cmocka_unit_test_setup(test_by_mode, setup),
		cmocka_unit_test_setup(test_uring, setup),
		cmocka_unit_test_setup(test_uring_lost, setup),
		cmocka_unit_test_setup(test_filters, setup),
		cmocka_unit_test_setup(test_filters_of_nothing, setup),
		cmocka_unit_test_setup(test_paths, setup),
		cmocka_unit_test_setup(test_mounts, setup),
		cmocka_unit_test_setup(test_deep, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
