// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A library for LD_PRELOAD that makes what a program asks of libc and of the kernel fail. It acts in one
 * program and not in those that it starts. Settings, from the environment:
 *
 *	SB_FAULT_IN	name of the program's file
 *	SB_FAULT_ALLOC	"N": the Nth allocation fails; "N+": all from there on
 *	SB_FAULT_SITE	"HASH": the first allocation from that place in the code fails; "HASH+": each
 *	SB_FAULT_BPF	"COMMAND:NAME:ERRNO,...": bpf(2) fails. COMMAND is "load", "map", "link", "tp",
 *			"iter", "update", "lookup"; NAME that of the program, map or tracepoint, at most 15 bytes, or
 *			"*"; where the kernel is asked to make what has no name, "*". ERRNO is a number. With
 *			the command "filter", setsockopt(2) fails for a filter of BPF
 *	SB_FAULT_PERF	"N:ERRNO": the Nth perf_event_open(2) fails; "N+:ERRNO": all from there on
 *	SB_FAULT_ITER	"N": the Nth iterator of BPF passes over nothing; "N+": all from there on
 *	SB_FAULT_STOP	"flush", "linkat" or "rename": the program waits for ever before that, when it has
 *			said "stopped". For the two above: an errno of 0
 *	SB_FAULT_NTH	at the how many-th time that is
 *	SB_FAULT_MAP	"NAME=ENTRIES,...": maps get another size than they were asked for
 *	SB_FAULT_TYPES	"NAME,...": the kernel has no tracepoint that is called so
 *	SB_FAULT_PARSE	"WHAT:INO": what the process that parses files does over that one: "crash", "hang", or
 *			"lie" (the table it made has a rule that there is not)
 *	SB_FAULT_LOG	file that gets a line for each thing that has a name, when it is asked for first, and for each
 *			fault: "site HASH", "load NAME", "fault WHAT ...", at the end "allocs N"
 *
 * A place in the code is a hash of return addresses: the same in each run if addresses are not random.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_SITES     (1u << 16)
#define SITE_FRAMES  8
#define FRAMES_OURS  2
#define RULES_MAX    16
#define NAME_BYTES   32
/* See cfi_save.c: a head, and rules of 8 bytes. */
#define TABLE_RULE_2 (56 + 2 * 8)
#define VERIFIER_LOG "0: R1=ctx() R10=fp0\nthis is the log of a verifier\n"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *old, size_t size);

struct rule {
	char command[NAME_BYTES], name[NAME_BYTES];
	long value; /* errno, or entries of a map */
};

struct nth {
	uint64_t at; /* 0: never */
	bool and_on;
};

static bool is_on, is_reading_sites;
static struct nth alloc_nth, perf_nth, iter_nth;
static struct nth site; /* at: its hash */
static int perf_errno, log_fd = -1, nr_bpf_rules, nr_map_rules;
static struct rule bpf_rules[RULES_MAX], map_rules[RULES_MAX];
static const char *stop_at;
static bool is_parser, is_bad_file;
static const char *types_gone;
static char parser_does[NAME_BYTES];
static unsigned long parser_ino;
/* Memory that processes share. */
static char *shared[4];
static size_t nr_shared;
static uint64_t stop_nth = 1;
static uint64_t nr_allocs, nr_perf, nr_iters, sites[NR_SITES];
/* backtrace() allocates, and so may what writes. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
	char line[160];
	va_list ap;
	int n;

	if (log_fd < 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n > 0 && write(log_fd, line, (size_t)n) < 0)
		return;
}

static struct nth parse_nth(const char *s, int base, const char **ret_end)
{
	struct nth nth = {};
	char *end;

	if (!s)
		return nth;
	nth.at = strtoull(s, &end, base);
	nth.and_on = *end == '+';
	*ret_end = end + nth.and_on;
	return nth;
}

/* "A:B:1,..." or, with one separator, "B=1,...". */
static int parse_rules(const char *s, struct rule *rules, bool has_command)
{
	int nr = 0, len = 0;

	while (s && *s && nr < RULES_MAX) {
		struct rule *rule = &rules[nr];
		int got = has_command
				  ? sscanf(s, "%31[^:]:%31[^:]:%ld%n", rule->command, rule->name,
					   &rule->value, &len)
				  : 1 + sscanf(s, "%31[^=]=%ld%n", rule->name, &rule->value, &len);

		if (got != 3)
			_exit(99);
		nr++;
		s += len;
		s += *s == ',';
	}
	return nr;
}

static bool is_in(const char *program)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *base;

	if (!program || len <= 0)
		return false;
	path[len] = '\0';
	base = strrchr(path, '/');
	return base && !strcmp(base + 1, program);
}

static void __attribute__((constructor)) start(void)
{
	void *frames[SITE_FRAMES];
	const char *end = "", *log = getenv("SB_FAULT_LOG");

	if (!is_in(getenv("SB_FAULT_IN")))
		return;
	/* The first call loads a library. */
	backtrace(frames, SITE_FRAMES);
	alloc_nth = parse_nth(getenv("SB_FAULT_ALLOC"), 10, &end);
	site = parse_nth(getenv("SB_FAULT_SITE"), 16, &end);
	iter_nth = parse_nth(getenv("SB_FAULT_ITER"), 10, &end);
	perf_nth = parse_nth(getenv("SB_FAULT_PERF"), 10, &end);
	if (perf_nth.at)
		perf_errno = atoi(end + 1);
	nr_bpf_rules = parse_rules(getenv("SB_FAULT_BPF"), bpf_rules, true);
	nr_map_rules = parse_rules(getenv("SB_FAULT_MAP"), map_rules, false);
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	/* Out of the way of those who have no more than some tens. */
	if (log_fd >= 0) {
		int high = fcntl(log_fd, F_DUPFD_CLOEXEC, 900);

		if (high >= 0) {
			close(log_fd);
			log_fd = high;
		}
	}
	is_reading_sites = site.at || (log && getenv("SB_FAULT_SITES"));
	stop_at = getenv("SB_FAULT_STOP");
	types_gone = getenv("SB_FAULT_TYPES");
	if (getenv("SB_FAULT_PARSE") &&
	    sscanf(getenv("SB_FAULT_PARSE"), "%31[^:]:%lu", parser_does, &parser_ino) != 2)
		_exit(99);
	if (getenv("SB_FAULT_NTH"))
		stop_nth = strtoull(getenv("SB_FAULT_NTH"), NULL, 10);
	unsetenv("LD_PRELOAD");
	is_on = true;
}

static void __attribute__((destructor)) finish(void)
{
	if (is_on)
		note("allocs %llu\n", (unsigned long long)nr_allocs);
}

/* Return: whether it is seen for the first time. */
static bool is_new_site(uint64_t hash)
{
	uint64_t i, had;

	for (i = 0; i < NR_SITES; i++) {
		had = __sync_val_compare_and_swap(&sites[(hash + i) % NR_SITES], 0, hash);
		if (!had || had == hash)
			return !had;
	}
	return false;
}

static uint64_t site_here(void)
{
	void *frames[SITE_FRAMES + FRAMES_OURS];
	uint64_t hash = 0xcbf29ce484222325ull;
	int nr = backtrace(frames, SITE_FRAMES + FRAMES_OURS), i;

	for (i = FRAMES_OURS; i < nr; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3ull;
	return hash ? hash : 1;
}

static bool is_due_here(void)
{
	uint64_t here = site_here();
	bool is_new = is_new_site(here);

	if (is_new && !site.at)
		note("site %llx\n", (unsigned long long)here);
	return here == site.at && (is_new || site.and_on);
}

/* libseccomp 2.5 follows NULL where it gets no memory; that is not ours to prove. */
static bool is_of_libseccomp(void)
{
	void *frames[16];
	int nr = backtrace(frames, 16), i;
	Dl_info info;

	for (i = 0; i < nr; i++)
		if (dladdr(frames[i], &info) && info.dli_fname &&
		    strstr(info.dli_fname, "libseccomp"))
			return true;
	return false;
}

static __attribute__((noinline)) bool alloc_is_due(const char *what, size_t size)
{
	bool is_due;
	uint64_t nr;

	if (!is_on || is_inside)
		return false;
	is_inside = true;
	nr = __sync_add_and_fetch(&nr_allocs, 1);
	is_due = alloc_nth.at && (nr == alloc_nth.at || (alloc_nth.and_on && nr > alloc_nth.at));
	if (is_reading_sites)
		is_due |= is_due_here();
	if (is_due && is_of_libseccomp())
		is_due = false;
	if (is_due) {
		note("fault %s %zu\n", what, size);
		errno = ENOMEM;
	}
	is_inside = false;
	return is_due;
}

void *malloc(size_t size)
{
	return alloc_is_due("malloc", size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return alloc_is_due("calloc", nr * size) ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *old, size_t size)
{
	return alloc_is_due("realloc", size) ? NULL : __libc_realloc(old, size);
}

static bool is_types(int fd)
{
	static const char types[] = "/sys/kernel/btf/vmlinux";
	char link[32], path[sizeof(types)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path)) == sizeof(types) - 1 &&
	       !memcmp(path, types, sizeof(types) - 1);
}

/* Give the types of tracepoints another name. */
static void forget_types(char *image, size_t len)
{
	const char *name = types_gone, *end;
	char text[NAME_BYTES + 16], *at;

	for (; *name; name = *end ? end + 1 : end) {
		end = strchrnul(name, ',');
		snprintf(text, sizeof(text), "btf_trace_%.*s", (int)(end - name), name);
		at = memmem(image, len, text, strlen(text) + 1);
		if (at)
			*at = '-';
	}
}

/* What maps the kernel's types gets a copy without those that are gone. */
static void *map_types(int fd, size_t len)
{
	char *at = (char *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t nr = 0;
	ssize_t n;

	while (at != MAP_FAILED && nr < len &&
	       (n = syscall(SYS_pread64, fd, at + nr, len - nr, nr)) > 0)
		nr += (size_t)n;
	if (at != MAP_FAILED)
		forget_types(at, len);
	return at;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *at;

	if (alloc_is_due("mmap", len))
		return MAP_FAILED;
	if (types_gone && fd >= 0 && is_types(fd))
		return map_types(fd, len);
	at = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
	if (is_on && (flags & MAP_SHARED) && fd < 0 && at != MAP_FAILED &&
	    nr_shared < sizeof(shared) / sizeof(shared[0]))
		shared[nr_shared++] = at;
	return at;
}

static const char *attr_name(uint64_t addr)
{
	return addr ? (const char *)(uintptr_t)addr : "*";
}

/* What is asked of bpf(2): the command in our words and the name of its object. */
static const char *command_of(int cmd, const union bpf_attr *attr, const char **ret_name)
{
	*ret_name = "*";
	switch (cmd) {
	case BPF_PROG_LOAD:
		*ret_name = attr->prog_name;
		return "load";
	case BPF_MAP_CREATE:
		*ret_name = attr->map_name;
		return "map";
	case BPF_LINK_CREATE:
		return "link";
	case BPF_RAW_TRACEPOINT_OPEN:
		*ret_name = attr_name(attr->raw_tracepoint.name);
		return "tp";
	case BPF_ITER_CREATE:
		return "iter";
	case BPF_MAP_UPDATE_ELEM:
		return "update";
	case BPF_MAP_LOOKUP_ELEM:
		return "lookup";
	case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
		return "batch";
	case BPF_BTF_LOAD:
		return "btf";
	case BPF_OBJ_PIN:
		return "pin";
	default:
		return "other";
	}
}

/* The kernel leaves its log where it is asked to. */
static void leave_log(int cmd, const union bpf_attr *attr)
{
	if (cmd == BPF_PROG_LOAD && attr->log_buf && attr->log_size > sizeof(VERIFIER_LOG))
		memcpy((void *)(uintptr_t)attr->log_buf, VERIFIER_LOG, sizeof(VERIFIER_LOG));
}

static void stop_here(void)
{
	static uint64_t nr;

	if (__sync_add_and_fetch(&nr, 1) < stop_nth)
		return;
	note("stopped\n");
	/* SIGSTOP to itself may be forbidden by then. */
	for (;;)
		poll(NULL, 0, 1000);
}

static void stop_before(const char *what)
{
	if (!is_on || !stop_at || strcmp(stop_at, what))
		return;
	note("fault stop %s\n", what);
	stop_here();
}

/* Return: 0 or the errno that a rule has for it. */
static int rule_due(const char *command, const char *name)
{
	int i;

	for (i = 0; i < nr_bpf_rules; i++) {
		const struct rule *rule = &bpf_rules[i];

		if (strcmp(rule->command, command) ||
		    (strcmp(rule->name, "*") && strncmp(rule->name, name, BPF_OBJ_NAME_LEN - 1)))
			continue;
		note("fault %s %s\n", command, name);
		if (!rule->value)
			stop_here();
		return (int)rule->value;
	}
	return 0;
}

/* Return: 0 or the errno that is due. */
static int bpf_due(int cmd, union bpf_attr *attr)
{
	const char *name, *command = command_of(cmd, attr, &name);
	int i, err;

	if (cmd == BPF_PROG_LOAD || cmd == BPF_MAP_CREATE)
		note("%s %s\n", command, *name ? name : "-");
	err = rule_due(command, name);
	if (err) {
		leave_log(cmd, attr);
		return err;
	}
	for (i = 0; i < nr_map_rules && cmd == BPF_MAP_CREATE; i++)
		if (!strncmp(map_rules[i].name, name, BPF_OBJ_NAME_LEN - 1))
			attr->max_entries = (uint32_t)map_rules[i].value;
	return 0;
}

static bool is_nth(const struct nth *nth, uint64_t *nr)
{
	uint64_t n = nth->at ? __sync_add_and_fetch(nr, 1) : 0;

	return n && (n == nth->at || (nth->and_on && n > nth->at));
}

/* Return: whether that is an iterator which is to find nothing. */
static bool is_empty_iterator(long nr, const long *args)
{
	if (!is_on || nr != SYS_bpf || args[0] != BPF_ITER_CREATE || !is_nth(&iter_nth, &nr_iters))
		return false;
	note("fault iterator\n");
	return true;
}

static int due(long nr, const long *args)
{
	if (!is_on)
		return 0;
	if (nr == SYS_bpf)
		return bpf_due((int)args[0], (union bpf_attr *)args[1]);
	if (nr != SYS_perf_event_open || !is_nth(&perf_nth, &nr_perf))
		return 0;
	note("fault perf_event_open %llu\n", (unsigned long long)nr_perf);
	if (!perf_errno)
		stop_here();
	return perf_errno;
}

long syscall(long nr, ...)
{
	static long (*next)(long nr, ...);
	long args[6], err;
	va_list ap;
	int i;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	if (is_empty_iterator(nr, args))
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	err = due(nr, args);
	if (err) {
		errno = (int)err;
		return -1;
	}
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	int err = is_on && level == SOL_SOCKET && option == SO_ATTACH_BPF ? rule_due("filter", "*")
									  : 0;

	if (err) {
		errno = err;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, option, value, len);
}

/* The process that parses, once it has its name. */
int prctl(int option, ...)
{
	unsigned long args[4];
	va_list ap;
	int i;

	va_start(ap, option);
	for (i = 0; i < 4; i++)
		args[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_NAME)
		is_parser = is_on && !strcmp((const char *)args[0], "stackbpf-parse");
	return (int)syscall(SYS_prctl, option, args[0], args[1], args[2], args[3]);
}

ssize_t pread64(int fd, void *buf, size_t len, off64_t offset)
{
	struct stat st;

	if (is_parser && parser_ino && !fstat(fd, &st)) {
		is_bad_file = st.st_ino == parser_ino;
		if (is_bad_file && !strcmp(parser_does, "crash"))
			*(volatile int *)NULL = 0;
		while (is_bad_file && !strcmp(parser_does, "hang"))
			poll(NULL, 0, -1);
	}
	return syscall(SYS_pread64, fd, buf, len, offset);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t i;

	/* Of all that is shared, it has one piece. */
	for (i = 0; is_parser && is_bad_file && !strcmp(parser_does, "lie") && i < nr_shared; i++)
		if (!madvise(shared[i], 4096, MADV_NORMAL))
			shared[i][TABLE_RULE_2] = 0x1f;
	return syscall(SYS_sendmsg, fd, message, flags);
}

/* Those of a file: standard output is flushed as well. */
int fflush(FILE *stream)
{
	static int (*next)(FILE * stream);

	if (stream && fileno(stream) > STDERR_FILENO)
		stop_before("flush");
	if (!next)
		next = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
	return next(stream);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	stop_before("linkat");
	return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int rename(const char *from, const char *to)
{
	stop_before("rename");
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
