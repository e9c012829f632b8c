// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The BPF core in the kernel, piece by piece; see driver.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi.h"
#include "capture/targets.h"
/* Behind the types it names. */
#include "driver.skel.h"

#define COUNTS_MAX 4u
#define STACKS_MAX 4u

static int generation = -1;

static int run(const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
}

/* Without the programs of test_unwind.c, which are most of what the verifier would look at for each
 * test. */
static struct driver_bpf *open_core(void)
{
	struct driver_bpf *skel = driver_bpf__open();

	assert_non_null(skel);
	bpf_program__set_autoload(skel->progs.drive_self_unwind, false);
	bpf_program__set_autoload(skel->progs.reentry_tick, false);
	bpf_program__set_autoload(skel->progs.reentry_switch, false);
	bpf_program__set_autoload(skel->progs.reentry_syscall, false);
	return skel;
}

static struct driver_bpf *load(void (*settings)(struct driver_bpf *skel))
{
	struct driver_bpf *skel = open_core();
	const uint32_t zero = 0;

	assert_int_equal(bpf_map__set_max_entries(skel->maps.stacks_seen, STACKS_MAX), 0);
	assert_int_equal(bpf_map__set_max_entries(skel->maps.events, (uint32_t)getpagesize()), 0);
	if (settings)
		settings(skel);
	assert_int_equal(driver_bpf__load(skel), 0);
	generation = bpf_map_create(BPF_MAP_TYPE_HASH, "generation", sizeof(struct sb_sample_key),
				    sizeof(struct sb_count), COUNTS_MAX, NULL);
	assert_true(generation >= 0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.counts), &zero, &generation, 0),
			 0);
	return skel;
}

static void unload(struct driver_bpf *skel)
{
	close(generation);
	driver_bpf__destroy(skel);
}

static uint64_t stat_of(struct driver_bpf *skel, enum sb_stat stat)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t *vals = calloc((size_t)nr_cpus * SB_STAT_MAX, sizeof(*vals)), sum = 0;
	const uint32_t zero = 0;

	assert_non_null(vals);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.stats), &zero, vals), 0);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		sum += vals[cpu * SB_STAT_MAX + (int)stat];
	free(vals);
	return sum;
}

/* Every weight is either in the map or counted as lost. */
static void test_account(void **state)
{
	struct driver_bpf *skel = load(NULL);
	struct sb_count count;
	uint32_t tid;

	skel->bss->in.weight = 3;
	for (tid = 1; tid <= COUNTS_MAX + 2; tid++) {
		skel->bss->in.key.tid = tid;
		assert_int_equal(run(skel->progs.drive_account), 0);
		assert_int_equal(skel->bss->out.ret, tid <= COUNTS_MAX ? 0 : -E2BIG);
	}
	assert_int_equal(stat_of(skel, SB_STAT_COUNTS_FULL), 2);
	skel->bss->in.key.tid = 1;
	assert_int_equal(run(skel->progs.drive_account), 0);
	assert_int_equal(bpf_map_lookup_elem(generation, &skel->bss->in.key, &count), 0);
	assert_int_equal(count.weight, 6);
	assert_int_equal(count.nr_samples, 2);
	assert_true(count.first_ns > 0 && count.first_ns < count.last_ns);
	assert_int_equal(stat_of(skel, SB_STAT_SAMPLES), COUNTS_MAX + 1);
	unload(skel);
}

/* Before the first swap, counts go where no swap was needed to put them. */
static void test_first_generation(void **state)
{
	struct driver_bpf *skel = open_core();
	struct sb_count count;

	assert_int_equal(driver_bpf__load(skel), 0);
	skel->bss->in.weight = 7;
	assert_int_equal(run(skel->progs.drive_account), 0);
	assert_int_equal(skel->bss->out.ret, 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(skel->maps.counts_first),
					     &skel->bss->in.key, &count),
			 0);
	assert_int_equal(count.weight, 7);
	driver_bpf__destroy(skel);
}

static int nr_shipped;
static struct sb_event_stack last_shipped;

static int on_event(void *arg, void *data, size_t len)
{
	const struct sb_event_stack *event = data;
	const uint64_t *ip = (const uint64_t *)(event + 1);
	uint32_t i;

	assert_int_equal(event->hdr.kind, SB_EVENT_STACK);
	assert_true(len >= sizeof(*event) + event->nr_frames * sizeof(*ip));
	for (i = 1; i < event->nr_frames; i++)
		assert_int_equal(ip[i], ip[0] + i);
	last_shipped = *event;
	nr_shipped++;
	return 0;
}

static void intern(struct driver_bpf *skel, uint64_t first_ip, uint32_t nr_frames)
{
	skel->bss->in.first_ip = first_ip;
	skel->bss->in.nr_frames = nr_frames;
	assert_int_equal(run(skel->progs.drive_intern), 0);
	assert_int_equal(skel->bss->out.ret, 0);
}

/* A stack is shipped once; when it could not be, the next sample ships it. */
static void test_intern(void **state)
{
	struct driver_bpf *skel = load(NULL);
	struct ring_buffer *ring =
		ring_buffer__new(bpf_map__fd(skel->maps.events), on_event, NULL, NULL);
	struct sb_stack_id id;

	assert_non_null(ring);
	intern(skel, 0x1000, 10);
	intern(skel, 0x1000, 10);
	id = skel->bss->out.id;
	assert_int_equal(ring_buffer__consume(ring), 1);
	assert_int_equal(last_shipped.nr_frames, 10);
	assert_memory_equal(&last_shipped.id, &id, sizeof(id));

	/* Another length, another status: another stack. */
	intern(skel, 0x1000, 9);
	assert_memory_not_equal(&skel->bss->out.id, &id, sizeof(id));
	skel->bss->in.status = SB_STACK_FAULT;
	intern(skel, 0x1000, 10);
	assert_memory_not_equal(&skel->bss->out.id, &id, sizeof(id));
	skel->bss->in.status = 0;
	assert_int_equal(ring_buffer__consume(ring), 2);

	/* The deepest stack does not fit twice into a ring of one page: the second is put off. */
	intern(skel, 0x2000, 400);
	intern(skel, 0x3000, 400);
	assert_int_equal(stat_of(skel, SB_STAT_RING_FULL), 1);
	assert_int_equal(ring_buffer__consume(ring), 1);
	intern(skel, 0x3000, 400);
	assert_int_equal(ring_buffer__consume(ring), 1);
	ring_buffer__free(ring);
	unload(skel);
}

/* More stacks than can be remembered: shipped at each sample, never lost. */
static void test_intern_full(void **state)
{
	struct driver_bpf *skel = load(NULL);
	struct ring_buffer *ring =
		ring_buffer__new(bpf_map__fd(skel->maps.events), on_event, NULL, NULL);
	uint64_t i;

	assert_non_null(ring);
	nr_shipped = 0;
	for (i = 0; i < 3 * STACKS_MAX; i++) {
		intern(skel, 0x10000 * (i + 1), 2);
		ring_buffer__consume(ring);
	}
	assert_int_equal(nr_shipped, 3 * STACKS_MAX);
	assert_int_equal(stat_of(skel, SB_STAT_SEEN_FULL), 2 * STACKS_MAX);
	intern(skel, 0x10000 * i, 2);
	assert_int_equal(ring_buffer__consume(ring), 1);
	ring_buffer__free(ring);
	unload(skel);
}

#define DEPTH 600

/* Frames as a compiler lays them out, with return addresses that we know. */
static void test_unwind(void **state)
{
	static uint64_t stack[DEPTH][2];
	struct driver_bpf *skel = load(NULL);
	uint32_t i;

	for (i = 0; i < DEPTH; i++) {
		stack[i][0] = (uint64_t)(uintptr_t)&stack[i + 1];
		stack[i][1] = 0x400000 + i;
	}
	stack[99][0] = 0;
	skel->bss->in.pc = 0x3fffff;
	skel->bss->in.sp = skel->bss->in.fp = (uint64_t)(uintptr_t)stack;
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_COMPLETE);
	assert_int_equal(skel->bss->out.nr_frames, 101);
	for (i = 0; i < 101; i++)
		assert_int_equal(skel->bss->out.ip[i], 0x3fffff + i);

	stack[99][0] = (uint64_t)(uintptr_t)&stack[100];
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_DEPTH);
	assert_int_equal(skel->bss->out.nr_frames, SB_USTACK_DEPTH_MAX);

	stack[4][0] = (uint64_t)(uintptr_t)&stack[2]; /* downwards: a cycle */
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_BAD_FP);
	assert_int_equal(skel->bss->out.nr_frames, 6);

	stack[3][1] = 0xffffffff81000000; /* a kernel address */
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_BAD_PC);
	assert_int_equal(skel->bss->out.nr_frames, 4);

	skel->bss->in.sp = 0x1000;
	skel->bss->in.fp = 0x1008; /* nothing is mapped there */
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_FAULT);
	assert_int_equal(skel->bss->out.nr_frames, 1);

	skel->bss->in.fp = 0; /* proves nothing in a leaf */
	assert_int_equal(run(skel->progs.drive_unwind), 0);
	assert_int_equal(skel->bss->out.status, SB_STACK_BAD_FP);
	unload(skel);
}

static struct sb_targets targets;

static void set_comms(struct driver_bpf *skel)
{
	struct sb_comm_matcher *rules = (struct sb_comm_matcher *)skel->rodata->cfg_comm_rules;
	size_t i;

	for (i = 0; i < targets.nr_comms; i++) {
		assert_int_equal(sb_comm_matcher_init(&rules[i], targets.comms[i].glob,
						      targets.comms[i].rule),
				 0);
		skel->rodata->cfg_nr_allow_rules += targets.comms[i].rule == SB_RULE_ALLOW;
	}
	skel->rodata->cfg_nr_comm_rules = (uint32_t)targets.nr_comms;
}

static void random_string(char *s, size_t max, const char *alphabet)
{
	size_t i, len = (size_t)rand() % (max + 1);

	for (i = 0; i < len; i++)
		s[i] = alphabet[(size_t)rand() % strlen(alphabet)];
	s[len] = '\0';
}

/* The automaton in the kernel against the C library's fnmatch(). */
static void test_comm_globs(void **state)
{
	struct driver_bpf *skel;
	char *comm;
	int round, i, nr_rounds = getenv("STACKBPF_IN_VM") ? 4 : 20;

	srand(1);
	for (round = 0; round < nr_rounds; round++) {
		targets.nr_comms = 1;
		targets.comms[0].rule = SB_RULE_ALLOW;
		random_string(targets.comms[0].glob, 8, "ab*?*");
		skel = load(set_comms);
		comm = skel->bss->in.comm;
		for (i = 0; i < 200; i++) {
			memset(comm, 0, SB_COMM_LEN);
			random_string(comm, 15, "aab");
			assert_int_equal(run(skel->progs.drive_filter), 0);
			if (skel->bss->out.ret != !fnmatch(targets.comms[0].glob, comm, 0))
				fail_msg("glob '%s' on '%s'", targets.comms[0].glob, comm);
		}
		unload(skel);
	}
}

/* The command of -- CMD is not sampled before it is what it is to be. */
static void test_rule_wakes_at_exec(void **state)
{
	const uint32_t at_exec = SB_RULE_ALLOW | SB_RULE_AT_EXEC, tgid = 7;
	struct driver_bpf *skel;

	targets.nr_comms = 1;
	strcpy(targets.comms[0].glob, "never");
	targets.comms[0].rule = SB_RULE_ALLOW;
	skel = load(set_comms);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(skel->maps.target_tgids), &tgid, &at_exec, BPF_ANY),
		0);
	skel->bss->in.tgid = tgid;
	assert_int_equal(run(skel->progs.drive_filter), 0);
	assert_int_equal(skel->bss->out.ret, 0);
	assert_int_equal(run(skel->progs.drive_exec), 0);
	assert_int_equal(run(skel->progs.drive_filter), 0);
	assert_int_equal(skel->bss->out.ret, 1);
	unload(skel);
}

static void test_rules_add_up(void **state)
{
	const uint32_t allow_follow = SB_RULE_ALLOW | SB_RULE_FOLLOW, deny = SB_RULE_DENY;
	const uint32_t parent = 100, denied = 101, child = 102;
	struct driver_bpf *skel;
	uint32_t rule;
	int fd;

	targets.nr_comms = 2;
	strcpy(targets.comms[0].glob, "good*");
	targets.comms[0].rule = SB_RULE_ALLOW;
	strcpy(targets.comms[1].glob, "*bad");
	targets.comms[1].rule = SB_RULE_DENY;
	skel = load(set_comms);
	fd = bpf_map__fd(skel->maps.target_tgids);
	assert_int_equal(bpf_map_update_elem(fd, &parent, &allow_follow, 0), 0);
	assert_int_equal(bpf_map_update_elem(fd, &denied, &deny, 0), 0);

	const struct {
		uint32_t tgid;
		const char *comm;
		int accepted;
	} cases[] = {
		{ 1, "good", 1 },	{ 1, "other", 0 },    { 1, "good-bad", 0 },
		{ parent, "other", 1 }, { parent, "bad", 0 }, { denied, "good", 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(skel->bss->in.comm, 0, SB_COMM_LEN);
		strcpy(skel->bss->in.comm, cases[i].comm);
		skel->bss->in.tgid = cases[i].tgid;
		assert_int_equal(run(skel->progs.drive_filter), 0);
		if (skel->bss->out.ret != cases[i].accepted)
			fail_msg("process %u '%s'", cases[i].tgid, cases[i].comm);
	}

	/* Children inherit; a pid that is used again does not keep its old rule. */
	skel->bss->in.tgid = parent;
	skel->bss->in.child_tgid = child;
	assert_int_equal(run(skel->progs.drive_fork), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &child, &rule), 0);
	assert_int_equal(rule, allow_follow);
	skel->bss->in.tgid = 1;
	assert_int_equal(run(skel->progs.drive_fork), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &child, &rule), -ENOENT);
	skel->bss->in.tgid = parent;
	assert_int_equal(run(skel->progs.drive_gone), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &parent, &rule), -ENOENT);
	unload(skel);
}

/* Return: the address of a function of the kernel by /proc/kallsyms; 0: it is hidden. */
static uint64_t address_of(const char *wanted)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	unsigned long long addr = 0;
	char name[512], line[1024];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %511s", &addr, name) == 2 && !strcmp(name, wanted))
			break;
	assert_string_equal(name, wanted);
	fclose(file);
	return addr;
}

static const char *name_of(struct driver_bpf *skel, const int *fds, uint64_t addr)
{
	struct sb_kname *kname = &skel->bss->kname;
	char byte;

	kname->addr = addr;
	kname->len = 0;
	assert_int_equal(write(fds[0], "", 1), 1);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1); /* it was dropped */
	assert_int_equal(kname->len, strlen(kname->text) + 1);
	return kname->text;
}

/* A function, and an address that has none. */
static void test_kernel_name(void **state)
{
	struct driver_bpf *skel = open_core();
	int fds[2], prog_fd;

	assert_int_equal(bpf_program__set_autoload(skel->progs.kernel_name, true), 0);
	assert_int_equal(driver_bpf__load(skel), 0);
	prog_fd = bpf_program__fd(skel->progs.kernel_name);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_ATTACH_BPF, &prog_fd, sizeof(prog_fd)),
			 0);
	assert_int_equal(
		fnmatch("vfs_read+0x1/0x*", name_of(skel, fds, address_of("vfs_read") + 1), 0), 0);
	assert_int_equal(strtoull(name_of(skel, fds, 0x1234), NULL, 16), 0x1234);
	close(fds[0]);
	close(fds[1]);
	driver_bpf__destroy(skel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_name),	   cmocka_unit_test(test_account),
		cmocka_unit_test(test_first_generation),   cmocka_unit_test(test_intern),
		cmocka_unit_test(test_intern_full),	   cmocka_unit_test(test_unwind),
		cmocka_unit_test(test_comm_globs),	   cmocka_unit_test(test_rules_add_up),
		cmocka_unit_test(test_rule_wakes_at_exec),
	};

	if (geteuid()) {
		printf("skipped: loading BPF programs needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
