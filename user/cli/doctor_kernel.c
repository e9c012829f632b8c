// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks what the kernel can do, and what it allows us to do, by trying it; versions are not
 * compared. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/str.h"
#include "capture/perf_event.h"
#include "cli/doctor.h"
#include "events/counter.h"
#include "symbolizer/unwind/parser.h"
#include "views/view.h"
#include "workers/landlock.h"
#include "workers/privileges.h"

#define SMALL_FILE_MAX 65536

/* A file of /proc or /sys that holds a number. Return: 0 or a negative errno. */
static int read_number(const char *path, int64_t *ret)
{
	sb_cleanup(sb_freep) char *text = NULL;
	bool is_negative;
	uint64_t number;
	int err = sb_read_file(path, SMALL_FILE_MAX, &text, NULL);

	if (err)
		return err;
	text[strcspn(text, "\n")] = '\0';
	is_negative = text[0] == '-';
	err = sb_parse_u64(text + is_negative, INT64_MAX, &number);
	if (!err)
		*ret = is_negative ? -(int64_t)number : (int64_t)number;
	return err;
}

static void check_release(struct sb_doctor *doctor)
{
	struct utsname name;
	unsigned int major, minor;

	uname(&name);
	if (sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	    (major < 5 || (major == 5 && minor < 15))) {
		sb_doctor_say(doctor, SB_VERDICT_NO, "kernel", "%s is older than 5.15",
			      name.release);
		sb_doctor_advise(doctor, "install Linux 5.15 or newer");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, "kernel", "%s, %s", name.release, name.machine);
}

static void check_btf(struct sb_doctor *doctor)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";
	struct stat st;

	if (stat(path, &st) || !sb_can_access(path, R_OK)) {
		sb_doctor_say(doctor, SB_VERDICT_NO, "BTF", "%s: %s", path, strerror(errno));
		sb_doctor_advise(doctor, "boot a kernel that was built with "
					 "CONFIG_DEBUG_INFO_BTF=y");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, "BTF", "%s, %.1f MB", path, (double)st.st_size / 1e6);
}

struct kind {
	unsigned int type;
	const char *name;
};

static const struct kind prog_kinds[] = {
	{ BPF_PROG_TYPE_PERF_EVENT, "perf_event" },
};

static const struct kind map_kinds[] = {
	{ BPF_MAP_TYPE_HASH, "hash" },
	{ BPF_MAP_TYPE_ARRAY_OF_MAPS, "array of maps" },
	{ BPF_MAP_TYPE_PERCPU_ARRAY, "per-CPU array" },
	{ BPF_MAP_TYPE_CGROUP_ARRAY, "cgroup array" },
	{ BPF_MAP_TYPE_RINGBUF, "ring buffer" },
};

static int probe_prog(unsigned int type)
{
	return libbpf_probe_bpf_prog_type((enum bpf_prog_type)type, NULL);
}

static int probe_map(unsigned int type)
{
	return libbpf_probe_bpf_map_type((enum bpf_map_type)type, NULL);
}

/* All kinds of programs or maps that we use: one line. */
static void check_kinds(struct sb_doctor *doctor, const char *what, const struct kind *kinds,
			size_t nr, int (*probe)(unsigned int type))
{
	sb_cleanup(sb_str_release) struct sb_str have = {}, lack = {};
	struct sb_str *list;
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		list = probe(kinds[i].type) == 1 ? &have : &lack;
		err = sb_str_addf(list, "%s%s", list->len ? ", " : "", kinds[i].name);
	}
	if (err || lack.len) {
		sb_doctor_say(doctor, SB_VERDICT_NO, what, "refused: %s", lack.len ? lack.s : "?");
		sb_doctor_advise(doctor, geteuid() ? "see the capabilities below"
						   : "the kernel needs CONFIG_BPF_SYSCALL=y "
						     "and CONFIG_PERF_EVENTS=y; a container "
						     "needs these privileges");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, what, "%s", have.s);
}

static void check_progs(struct sb_doctor *doctor)
{
	check_kinds(doctor, "BPF programs", prog_kinds, SB_ARRAY_SIZE(prog_kinds), probe_prog);
}

static void check_maps(struct sb_doctor *doctor)
{
	check_kinds(doctor, "BPF maps", map_kinds, SB_ARRAY_SIZE(map_kinds), probe_map);
}

static void check_jit(struct sb_doctor *doctor)
{
	int64_t enabled;

	if (read_number("/proc/sys/net/core/bpf_jit_enable", &enabled))
		sb_doctor_say(doctor, SB_VERDICT_OK, "BPF compiler", "setting cannot be read");
	else if (enabled)
		sb_doctor_say(doctor, SB_VERDICT_OK, "BPF compiler", "on");
	else {
		sb_doctor_say(doctor, SB_VERDICT_LESS, "BPF compiler",
			      "off: BPF programs are interpreted, and samples cost more");
		sb_doctor_advise(doctor, "sysctl net.core.bpf_jit_enable=1");
	}
}

/* A function that the kernel keeps for such tests, or a tracepoint. Return: 0 or a negative
 * errno. */
static int try_tracing(const char *name, enum bpf_attach_type attach_type)
{
	int btf_id = libbpf_find_vmlinux_btf_id(name, attach_type);

	return btf_id < 0 ? btf_id : sb_try_tracing((uint32_t)btf_id, attach_type);
}

static void check_tracepoints(struct sb_doctor *doctor)
{
	int err = try_tracing("sched_process_fork", BPF_TRACE_RAW_TP);

	if (err) {
		sb_doctor_say(doctor, SB_VERDICT_NO, "tracepoints", "refused: %s", strerror(-err));
		sb_doctor_advise(doctor, geteuid() ? "see the capabilities below"
						   : "perhaps lockdown or the container "
						     "forbids it");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, "tracepoints", "with BTF");
}

/* How the view "io" sees system calls; see can_read_tracefs() of user/views/io.c. */
static void check_calls(struct sb_doctor *doctor)
{
	if (sb_can_access("/sys/kernel/tracing/events/syscalls/sys_enter_read/id", R_OK) ||
	    sb_can_access("/sys/kernel/debug/tracing/events/syscalls/sys_enter_read/id", R_OK)) {
		sb_doctor_say(doctor, SB_VERDICT_OK, "system calls", "tracepoints of single calls");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_LESS, "system calls",
		      "tracefs cannot be read: 'io' must trace all system calls, and slows them "
		      "all down");
	sb_doctor_advise(doctor, geteuid() ? "needs cap_dac_read_search or root, and a mounted "
					     "tracefs"
					   : "mount -t tracefs tracefs /sys/kernel/tracing");
}

/* See sb_io_uring_missing() of user/views/io_uring.c. */
static void check_io_uring(struct sb_doctor *doctor)
{
	if (sb_view_has_tracepoint("io_uring_submit_req"))
		sb_doctor_say(doctor, SB_VERDICT_OK, "io_uring", "'io' records its requests");
	else if (sb_view_has_tracepoint("io_uring_submit_sqe"))
		sb_doctor_say(doctor, SB_VERDICT_OK, "io_uring",
			      "'io' records its requests from Linux 5.19 on; 'io --stats' "
			      "shows whether it does");
	else
		sb_doctor_say(doctor, SB_VERDICT_LESS, "io_uring",
			      "not in this kernel, or without tracepoints: 'io' does not "
			      "record it");
}

static void check_fentry(struct sb_doctor *doctor)
{
	int err = try_tracing("bpf_fentry_test1", BPF_TRACE_FENTRY);

	if (err)
		sb_doctor_say(doctor, SB_VERDICT_LESS, "fentry",
			      "refused: %s; 'io' does not record kernel threads", strerror(-err));
	else
		sb_doctor_say(doctor, SB_VERDICT_OK, "fentry",
			      "'io' records what kernel threads read and write");
}

static void check_kprobe(struct sb_doctor *doctor)
{
	if (!sb_can_access("/sys/bus/event_source/devices/kprobe/type", F_OK))
		sb_doctor_say(doctor, SB_VERDICT_LESS, "kprobes",
			      "not in this kernel; stackbpf does not need them");
	else
		sb_doctor_say(doctor, SB_VERDICT_OK, "kprobes", "available");
}

static int try_timer(const struct sb_counter *counter)
{
	sb_cleanup(sb_closep) int fd = sb_perf_open_timer(counter, 99, 0);

	return fd < 0 ? fd : 0;
}

static void check_clock(struct sb_doctor *doctor)
{
	int64_t paranoid = 0;
	int err = try_timer(&sb_counter_clock);

	read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	if (err) {
		sb_doctor_say(doctor, SB_VERDICT_NO, "CPU timer", "refused: %s (paranoid is %lld)",
			      strerror(-err), (long long)paranoid);
		sb_doctor_advise(doctor, "%s",
				 sb_privileges_is_paranoid(err)
					 ? "sysctl kernel.perf_event_paranoid=2, or run as root: "
					   "above 2 this kernel requires cap_sys_admin"
					 : "needs cap_perfmon or root");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, "CPU timer", "cpu-clock (perf_event_paranoid is %lld)",
		      (long long)paranoid);
}

static void check_cycles(struct sb_doctor *doctor)
{
	struct sb_counter cycles = {};
	int err;

	(void)sb_counter_by_name("cycles", &cycles);
	err = try_timer(&cycles);

	if (!err)
		sb_doctor_say(doctor, SB_VERDICT_OK, "hardware cycles", "-e cycles works");
	else if (err == -ENOENT || err == -EOPNOTSUPP)
		sb_doctor_say(doctor, SB_VERDICT_LESS, "hardware cycles",
			      "no PMU, as in most virtual machines: -e cycles does not work");
	else
		sb_doctor_say(doctor, SB_VERDICT_LESS, "hardware cycles", "refused: %s",
			      strerror(-err));
}

static void check_rate(struct sb_doctor *doctor)
{
	int64_t rate;

	if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate))
		return;
	if (rate >= 1000) {
		sb_doctor_say(doctor, SB_VERDICT_OK, "sample rate", "up to %lld Hz",
			      (long long)rate);
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_LESS, "sample rate",
		      "only up to %lld Hz: the kernel lowered the limit, because perf was "
		      "too costly",
		      (long long)rate);
	sb_doctor_advise(doctor, "sysctl kernel.perf_event_max_sample_rate=100000");
}

static void check_depth(struct sb_doctor *doctor)
{
	int64_t depth;

	if (read_number("/proc/sys/kernel/perf_event_max_stack", &depth))
		return;
	sb_doctor_say(doctor, depth < 127 ? SB_VERDICT_LESS : SB_VERDICT_OK, "kernel stacks",
		      "up to %lld frames", (long long)depth);
	if (depth < 127)
		sb_doctor_advise(doctor, "sysctl kernel.perf_event_max_stack=127");
}

static void check_lockdown(struct sb_doctor *doctor)
{
	sb_cleanup(sb_freep) char *text = NULL;

	if (sb_read_file("/sys/kernel/security/lockdown", SMALL_FILE_MAX, &text, NULL)) {
		sb_doctor_say(doctor, SB_VERDICT_OK, "lockdown",
			      "not in this kernel, or not shown");
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (strstr(text, "[confidentiality]")) {
		sb_doctor_say(doctor, SB_VERDICT_NO, "lockdown",
			      "confidentiality: BPF programs may not read kernel memory");
		sb_doctor_advise(doctor, "boot without lockdown=confidentiality");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_OK, "lockdown", "%s", text);
}

/* Whether the first lines have addresses, or zeros instead. */
static bool kallsyms_has_addresses(void)
{
	sb_cleanup(sb_fclosep) FILE *file = fopen("/proc/kallsyms", "re");
	char line[256];
	int i;

	for (i = 0; file && i < 64 && fgets(line, sizeof(line), file); i++)
		if (line[strspn(line, "0")] != ' ')
			return true;
	return false;
}

static void check_kallsyms(struct sb_doctor *doctor)
{
	int64_t restricted = 0;

	read_number("/proc/sys/kernel/kptr_restrict", &restricted);
	if (kallsyms_has_addresses()) {
		sb_doctor_say(doctor, SB_VERDICT_OK, "kernel symbols",
			      "/proc/kallsyms shows addresses (kptr_restrict is %lld)",
			      (long long)restricted);
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_LESS, "kernel symbols",
		      "/proc/kallsyms hides addresses: kernel frames have no names");
	if (restricted >= 2)
		sb_doctor_advise(doctor, "needs sysctl kernel.kptr_restrict=1, and "
					 "cap_syslog or root");
	else
		sb_doctor_advise(doctor, "needs cap_syslog or root");
}

void sb_doctor_kernel(struct sb_doctor *doctor)
{
	static void (*const checks[])(struct sb_doctor *) = {
		check_release, check_btf,	  check_progs,	  check_maps,
		check_jit,     check_tracepoints, check_calls,	  check_io_uring,
		check_fentry,  check_kprobe,	  check_clock,	  check_cycles,
		check_rate,    check_depth,	  check_lockdown, check_kallsyms,
	};
	size_t i;

	fprintf(doctor->out, "Kernel\n");
	for (i = 0; i < SB_ARRAY_SIZE(checks); i++)
		checks[i](doctor);
}

/* Return: whether it is the host's: @inode of include/linux/proc_ns.h. */
static bool check_namespace(struct sb_doctor *doctor, const char *kind, uint32_t inode,
			    const char *advice)
{
	char path[64], what[64], host[64], ns[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	snprintf(what, sizeof(what), "%s namespace", kind);
	snprintf(host, sizeof(host), "%s:[%u]", kind, inode);
	len = readlink(path, ns, sizeof(ns) - 1);
	ns[len > 0 ? len : 0] = '\0';
	if (len <= 0 || sb_streq(ns, host)) {
		sb_doctor_say(doctor, SB_VERDICT_OK, what, "the host's");
		return true;
	}
	sb_doctor_say(doctor, SB_VERDICT_NO, what, "not the host's, but %s", ns);
	sb_doctor_advise(doctor, "%s", advice);
	return false;
}

static void advise_setcap(struct sb_doctor *doctor)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	size_t i;

	for (i = 0; i < sb_nr_capabilities && sb_capabilities[i].name; i++)
		if (sb_str_addf(&list, "%s%s", i ? "," : "", sb_capabilities[i].name))
			return;
	path[len > 0 ? len : 0] = '\0';
	sb_doctor_advise(doctor, "run stackbpf with sudo, or grant it the capabilities "
				 "permanently:");
	fprintf(doctor->out, "sudo setcap %s=ep %s\n", list.s, path);
}

/* What there is is said, too: what each is good for. */
static unsigned int check_capabilities(struct sb_doctor *doctor, bool counts)
{
	const struct sb_capability *cap;
	uint64_t have = counts ? sb_privileges_have() : 0;
	unsigned int nr_lack = 0;
	size_t i;

	for (i = 0; i < sb_nr_capabilities && sb_capabilities[i].name; i++) {
		cap = &sb_capabilities[i];
		if (have & (1ull << cap->number)) {
			sb_doctor_say(doctor, SB_VERDICT_OK, cap->name, "%s", cap->what_for);
			continue;
		}
		nr_lack++;
		sb_doctor_say(doctor, cap->is_needed ? SB_VERDICT_NO : SB_VERDICT_LESS, cap->name,
			      "missing: %s", cap->what_for);
	}
	return nr_lack;
}

static void check_filter(struct sb_doctor *doctor)
{
	const char *version = sb_privileges_filter();

	if (version)
		sb_doctor_say(doctor, SB_VERDICT_OK, "filter",
			      "system calls are filtered while sampling, by libseccomp %s",
			      version);
	else
		sb_doctor_say(doctor, SB_VERDICT_LESS, "filter",
			      "system calls are not filtered while sampling: built without "
			      "libseccomp");
}

static void check_landlock(struct sb_doctor *doctor)
{
	int version = sb_landlock_version();

	if (version)
		sb_doctor_say(doctor, SB_VERDICT_OK, "landlock",
			      "version %d: helper processes can open only the files they need%s",
			      version, version < 6 ? "" : ", and cannot send signals");
	else
		sb_doctor_say(doctor, SB_VERDICT_LESS, "landlock",
			      "none: helper processes are confined only by their user and "
			      "the system call filter");
}

static void check_parser(struct sb_doctor *doctor)
{
	int err = doctor->parser ? sb_parser_settle(doctor->parser) : -ENOMEM;

	if (!err) {
		sb_doctor_say(doctor, SB_VERDICT_OK, "parser",
			      "unwind tables are built by a process without privileges");
		return;
	}
	sb_doctor_say(doctor, SB_VERDICT_NO, "parser",
		      "cannot start the process without privileges that builds unwind "
		      "tables: %s",
		      strerror(-err));
	sb_doctor_advise(doctor, "check ulimit -u, TasksMax= and system call filters");
}

void sb_doctor_privileges(struct sb_doctor *doctor)
{
	bool is_host_user;

	sb_doctor_title(doctor, "Privileges");
	/* The kernel asks for BPF and perf events of all in the first user namespace. */
	is_host_user = check_namespace(doctor, "user", 4026531837,
				       "capabilities of this namespace do not count; run it as the "
				       "host's root, not as root of a rootless container or of "
				       "unshare(1)");
	if (check_capabilities(doctor, is_host_user) && is_host_user)
		advise_setcap(doctor);
	check_filter(doctor);
	check_landlock(doctor);
	check_parser(doctor);
	(void)check_namespace(doctor, "pid", 4026531836, "start the container with --pid=host");
}
