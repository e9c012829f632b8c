// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/record_opts.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/time.h"
#include "bpf/abi/sb_abi_io.h"
#include "bpf/abi/sb_abi_latency.h"
#include "bpf/abi/sb_abi_memory.h"
#include "cli/complete.h"
#include "cli/snap.h"
#include "events/allocator.h"
#include "kinds/view_kind.h"
#include "symbolizer/sb_sym.h"

#define PID_MAX	   4194304u /* PID_MAX_LIMIT of the kernel, include/linux/threads.h */
#define CACHE_MIN  (1u << 20)
#define UNWIND_MIN (4u << 20)
#define BLANKS	   " \t\n" /* so that -p "$(pgrep x)" works */
#define SEPARATORS "," BLANKS

/* A leading '!' makes a rule deny. */
static uint32_t take_rule(const char **value)
{
	if (**value != '!')
		return SB_RULE_ALLOW;
	++*value;
	return SB_RULE_DENY;
}

/*
 * Call @fn for each element of a list. Return: its first failure, or -EINVAL for an empty list, an
 * empty element, or one that is longer than any that can be right.
 */
static int for_each_element(void *field, const char *value,
			    int (*fn)(void *field, const char *element, uint32_t rule,
				      const char **ret_why),
			    const char **ret_why)
{
	char element[LOGIN_NAME_MAX];
	uint32_t rule;
	size_t len;
	bool is_due = true; /* at the beginning and after a comma */
	int err;

	for (value += strspn(value, BLANKS); *value || is_due; value += strspn(value, BLANKS)) {
		rule = take_rule(&value);
		len = strcspn(value, SEPARATORS);
		if (!len || len >= sizeof(element))
			return -EINVAL;
		memcpy(element, value, len);
		element[len] = '\0';
		err = fn(field, element, rule, ret_why);
		if (err)
			return err;
		value += len + strspn(value + len, BLANKS);
		is_due = *value == ',';
		value += is_due;
	}
	return 0;
}

static int add_id(void *field, const char *element, uint32_t rule, const char **ret_why)
{
	__typeof__(((struct sb_targets *)NULL)->tgids) *ids = field;
	uint64_t id;
	int err = sb_parse_u64(element, PID_MAX, &id);

	if (!err && !id)
		err = -EINVAL;
	if (err == -ERANGE)
		*ret_why = "has an ID above 4194304, the highest one that Linux assigns";
	if (err)
		return err;
	return sb_vec_push(ids, (struct sb_pid_rule){ .pid = (uint32_t)id, .rule = rule });
}

/* The terms of a PMU are between slashes: cpu/event=0xa8,umask=1/. */
static bool is_list_of_events(const char *text)
{
	bool is_of_pmu = false;

	for (; *text && (*text != ',' || is_of_pmu); text++)
		is_of_pmu ^= *text == '/';
	return *text;
}

/* perf(1) takes several events. */
static int parse_event(void *field, const char *value, const char **ret_why)
{
	const char **event = field;

	if (*event)
		*ret_why = "is a second event, and a run samples one; sample it with another "
			   "stackbpf at the same time";
	else if (is_list_of_events(value))
		*ret_why = "names several events, and a run samples one; sample each with a "
			   "stackbpf of its own";
	if (*ret_why)
		return -EINVAL;
	*event = value;
	return 0;
}

static int parse_pids(void *field, const char *value, const char **ret_why)
{
	struct sb_targets *targets = field;
	int err = for_each_element(&targets->tgids, value, add_id, ret_why);

	if (err == -EINVAL)
		*ret_why = "is not a list of process IDs such as 1302,1400 (use -n for names)";
	return err;
}

static int parse_tids(void *field, const char *value, const char **ret_why)
{
	struct sb_targets *targets = field;
	__typeof__(targets->tgids) *ids = (void *)&targets->tids;
	int err = for_each_element(ids, value, add_id, ret_why);

	if (err == -EINVAL)
		*ret_why = "is not a list of thread IDs such as 1302,1303";
	return err;
}

static int parse_comm(void *field, const char *value, const char **ret_why)
{
	struct sb_targets *targets = field;
	struct sb_comm_rule *rule = &targets->comms[targets->nr_comms];
	uint32_t kind = take_rule(&value);
	size_t len = strlen(value), nr_stars = 0, i;

	for (i = 0; i < len; i++)
		nr_stars += value[i] == '*';
	if (!*value)
		*ret_why = "is empty";
	else if (len - nr_stars >= SB_COMM_LEN)
		*ret_why = "is longer than 15 characters, the maximum length of a thread name";
	else if (len > SB_GLOB_POSITIONS_MAX)
		*ret_why = "has too many stars";
	else if (strpbrk(value, "[]{}"))
		*ret_why = "has brackets, but only * and ? are supported in patterns";
	else if (targets->nr_comms == SB_RULES_MAX)
		*ret_why = "is one pattern too many: the limit is 16";
	if (*ret_why)
		return -EINVAL;
	*rule = (struct sb_comm_rule){ .rule = kind };
	memcpy(rule->glob, value, len);
	targets->nr_comms++;
	return 0;
}

static int parse_cgroup(void *field, const char *value, const char **ret_why)
{
	struct sb_targets *targets = field;
	uint32_t kind = take_rule(&value);
	char *path;

	if (!*value)
		*ret_why = "is empty";
	else if (targets->nr_cgroups == SB_RULES_MAX)
		*ret_why = "is one cgroup too many: the limit is 16";
	if (*ret_why)
		return -EINVAL;
	path = strdup(value);
	if (!path)
		return -ENOMEM;
	targets->cgroups[targets->nr_cgroups].path = path;
	targets->cgroups[targets->nr_cgroups++].rule = kind;
	return 0;
}

static int add_uid(void *field, const char *element, uint32_t rule, const char **ret_why)
{
	struct sb_targets *targets = field;
	const struct passwd *passwd;
	uint64_t uid;

	if (targets->nr_uids == SB_RULES_MAX) {
		*ret_why = "is one user too many: the limit is 16";
		return -EINVAL;
	}
	if (sb_parse_u64(element, UINT32_MAX - 1, &uid)) {
		passwd = getpwnam(element);
		if (!passwd) {
			*ret_why = "is neither a user ID nor the name of a user";
			return -EINVAL;
		}
		uid = passwd->pw_uid;
	}
	targets->uids[targets->nr_uids].uid = (uint32_t)uid;
	targets->uids[targets->nr_uids++].rule = rule;
	return 0;
}

static int parse_uids(void *field, const char *value, const char **ret_why)
{
	int err = for_each_element(field, value, add_uid, ret_why);

	if (err == -EINVAL && !*ret_why)
		*ret_why = "is not a list of user IDs or names";
	return err;
}

static int parse_roots(void *field, const char *value, const char **ret_why)
{
	struct sb_root_list *roots = field;
	unsigned int root;
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		for (root = SB_ATTR_COMM; root <= SB_ATTR_CONTAINER; root++)
			if (strlen(sb_root_names[root]) == len &&
			    !memcmp(sb_root_names[root], value, len))
				break;
		if (root > SB_ATTR_CONTAINER)
			*ret_why = "is not a list of comm, pid, thread, cpu, cgroup, container; "
				   "--value of trace and latency takes an expression";
		else if (roots->nr == SB_ROOTS_MAX)
			*ret_why = "has too many root frames: the limit is 8";
		if (*ret_why)
			return -EINVAL;
		roots->at[roots->nr++] = root;
		if (!value[len])
			return 0;
	}
}

static const struct sb_opt_word demangle_words[] = {
	{ "short", SB_SYM_DEMANGLE_SHORT },
	{ "full", SB_SYM_DEMANGLE_FULL },
	{ "off", SB_SYM_DEMANGLE_OFF },
	{},
};

static const struct sb_opt_word unwind_words[] = {
	{ "auto", SB_UNWIND_CFI | SB_UNWIND_FP },
	{ "fp", SB_UNWIND_FP },
	{ "dwarf", SB_UNWIND_CFI },
	{ "none", 0 },
	{},
};

static const struct sb_opt_word state_words[] = {
	{ "R", 1u << SB_STATE_RUNQUEUE | 1u << SB_STATE_THROTTLED },
	{ "S", 1u << SB_STATE_SLEEP },
	{ "D", 1u << SB_STATE_DISK },
	{ "T", 1u << SB_STATE_STOPPED },
	{ "I", 1u << SB_STATE_IDLE },
	{},
};

static const struct sb_opt_word idle_words[] = {
	{ "show", SB_IDLE_SHOW },
	{ "dim", SB_IDLE_DIM },
	{ "drop", SB_IDLE_DROP },
	{},
};

static const struct sb_opt_word interp_words[] = {
	{ "auto", SB_INTERP_AUTO },
	{ "off", SB_INTERP_OFF },
	{ "only", SB_INTERP_ONLY },
	{ "both", SB_INTERP_BOTH },
	{},
};

static const struct sb_opt_word layer_words[] = {
	{ "syscall", SB_LAYER_SYSCALL }, { "cache", SB_LAYER_CACHE }, { "block", SB_LAYER_BLOCK },
	{ "fsync", SB_LAYER_FSYNC },	 { "fault", SB_LAYER_FAULT }, {},
};

static const struct sb_opt_word alloc_layer_words[] = {
	{ "user", SB_ALLOC_USER },
	{ "kmalloc", SB_ALLOC_KMALLOC },
	{ "slab", SB_ALLOC_SLAB },
	{ "pages", SB_ALLOC_PAGES },
	{},
};

static const struct sb_opt_word memory_kind_words[] = {
	{ "anon", 1u << SB_MEMORY_ANON },   { "file", 1u << SB_MEMORY_FILE },
	{ "shmem", 1u << SB_MEMORY_SHMEM }, { "stack", 1u << SB_MEMORY_STACK },
	{ "heap", 1u << SB_MEMORY_HEAP },   {},
};

static const struct sb_opt_word kind_words[] = {
	{ "file", 1u << SB_FILE_REG },
	{ "dir", 1u << SB_FILE_DIR },
	{ "pipe", 1u << SB_FILE_PIPE },
	{ "sock", 1u << SB_FILE_SOCK },
	{ "tty", 1u << SB_FILE_TTY },
	{ "chr", 1u << SB_FILE_CHR },
	{ "blk", 1u << SB_FILE_BLK },
	{ "anon", 1u << SB_FILE_ANON },
	{ "other", 1u << SB_FILE_OTHER | 1u << SB_FILE_NONE },
	{},
};

static const struct sb_opt_word sync_words[] = {
	{ "block", false },
	{ "off", true },
	{},
};

static const struct sb_opt_word file_words[] = {
	{ "path", SB_FILE_TEXT_PATH },
	{ "base", SB_FILE_TEXT_BASE },
	{ "none", SB_FILE_TEXT_NONE },
	{ "full", SB_FILE_TEXT_FULL },
	{},
};

/* Bare numbers are microseconds, as in the tools that measure waits. */
static int parse_micros(void *field, const char *value, const char **ret_why)
{
	if (sb_parse_duration(value, SB_NS_PER_SEC / 1000000, field) || !*(uint64_t *)field) {
		*ret_why = "is not a time such as 500 (microseconds), 10ms, 2s";
		return -EINVAL;
	}
	return 0;
}

/* "off" and 0 are the same: no limit. */
static int parse_percent(void *field, const char *value, const char **ret_why)
{
	uint32_t *ppm = field;

	if (sb_streq(value, "off")) {
		*ppm = 0;
		return 0;
	}
	if (!sb_parse_percent(value, ppm))
		return 0;
	*ret_why = "is neither a percentage of all CPUs such as 1 or 0.5 (at most 100) nor "
		   "'off'";
	return -EINVAL;
}

/* By name as in /dev, or by MAJOR:MINOR. */
static int parse_dev(void *field, const char *value, const char **ret_why)
{
	uint32_t *dev = field;
	const char *colon = strchr(value, ':');
	char major_text[12], path[PATH_MAX];
	uint64_t major_nr, minor_nr;
	struct stat st;

	if (colon && (size_t)(colon - value) < sizeof(major_text)) {
		memcpy(major_text, value, (size_t)(colon - value));
		major_text[colon - value] = '\0';
		if (!sb_parse_u64(major_text, 4095, &major_nr) &&
		    !sb_parse_u64(colon + 1, (1u << 20) - 1, &minor_nr)) {
			*dev = (uint32_t)(major_nr << 20 | minor_nr);
			return 0;
		}
	}
	snprintf(path, sizeof(path), "%s%s", value[0] == '/' ? "" : "/dev/", value);
	if (stat(path, &st)) {
		*ret_why = "is neither a device in /dev nor MAJOR:MINOR";
		return -EINVAL;
	}
	*dev = S_ISBLK(st.st_mode) ? major(st.st_rdev) << 20 | minor(st.st_rdev)
				   : major(st.st_dev) << 20 | minor(st.st_dev);
	return 0;
}

static int parse_inode(void *field, const char *value, const char **ret_why)
{
	if (!sb_parse_u64(value, UINT64_MAX, field) && *(uint64_t *)field)
		return 0;
	*ret_why = "is not an inode number (ls -i shows them)";
	return -EINVAL;
}

/* The views that need no events, which only the commands of those take. */
static bool needs_no_events(const struct sb_view_kind *kind)
{
	return !kind->takes_events;
}

static const char *own_kind_names(void)
{
	static char names[SB_VIEW_KIND_LIST_BYTES];

	return sb_view_kind_list(needs_no_events, names);
}

/* The name of a view that needs no events. */
static int parse_kind(void *field, const char *value, const char **ret_why)
{
	const struct sb_view *view = sb_view_find(value);
	static char why[SB_VIEW_KIND_LIST_BYTES + 32];

	if (view && !view->kind->takes_events) {
		*(const char **)field = value;
		return 0;
	}
	if (view)
		snprintf(why, sizeof(why), "needs the names of events; use 'stackbpf %s' instead",
			 view->kind->name);
	else
		snprintf(why, sizeof(why), "is not one of %s", own_kind_names());
	*ret_why = why;
	return -EINVAL;
}

#define FIELD(name) .offset = offsetof(struct sb_record_opts, name)
#define SAMPLED	    .views = SB_VIEW_TIMED, .commands = "run top record"
#define WAITS	    .views = SB_VIEW_IDLE, .commands = "run top"
#define SPLIT_WAITS .views = SB_VIEW_STATES
#define LASTING	    .views = SB_VIEW_LASTING
#define FILES	    .views = SB_VIEW_FILES
#define RESIDENT    .views = SB_VIEW_PAGES
#define EVENTS	    .views = SB_VIEW_EVENTS
#define EXPRS	    .views = SB_VIEW_EXPRS
#define PAIRS	    .views = SB_VIEW_PAIRS
#define SPANS	    .views = SB_VIEW_SPANS, .commands = "run top"
#define ALLOCS	    .views = SB_VIEW_ALLOCS
#define OF_A_KIND   .commands = "run top" /* that are no view */
#define RECORDER    .commands = "record"
/* What says how a result looks: there is none but the store. */
#define RESULT	    .commands = "!record top snap"
/* What is shown of a sample, wherever that is. */
#define SHOWN	    .commands = "!record snap"
/* What says for how long, and of whom: snap is one look at what is named. */
#define SAMPLING    .commands = "!snap"

/* clang-format off */
const struct sb_opt sb_record_rows[] = {
	{ .name = "pid", .letters = "p", .synonyms = "x", .metavar = "LIST",
	  .type = SB_OPT_PARSED, .group = SB_OPT_TARGET, FIELD(run.targets), .parse = parse_pids,
	  .complete = sb_complete_pids,
	  .help = "processes with all their threads, by process ID: 1302,1400" },
	{ .name = "tid", .letters = "L", .metavar = "LIST",
	  .type = SB_OPT_PARSED, .group = SB_OPT_TARGET, FIELD(run.targets), .parse = parse_tids,
	  .complete = sb_complete_pids,
	  .help = "these threads, not their whole processes, by thread ID" },
	{ .name = "comm", .letters = "n", .metavar = "GLOB", SAMPLING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_TARGET, FIELD(run.targets), .parse = parse_comm,
	  .complete = sb_complete_comm,
	  .help = "threads whose name matches this pattern with * and ?; can be repeated" },
	{ .name = "cgroup", .letters = "G", .metavar = "PATH", SAMPLING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_TARGET, FIELD(run.targets), .parse = parse_cgroup,
	  .complete = sb_complete_directory,
	  .help = "tasks in this cgroup (/ is the root cgroup) and in all cgroups below it; can be "
		  "repeated" },
	{ .name = "uid", .metavar = "LIST", SAMPLING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_TARGET, FIELD(run.targets), .parse = parse_uids,
	  .complete = sb_complete_users,
	  .help = "tasks of these users (IDs or names)" },
	{ .name = "all", .letters = "a", SAMPLING,
	  .type = SB_OPT_ON, .group = SB_OPT_TARGET, FIELD(run.all),
	  .help = "the whole machine (default if no other target is named, and no command that "
		  "stackbpf starts); with such a command: all that runs until it ends" },
	{ .name = "subprocesses", .letters = "s", SAMPLING,
	  .type = SB_OPT_ON, .group = SB_OPT_TARGET, FIELD(run.targets.follow_children),
	  .help = "also the child processes, present and future, of the processes of -p, and of a "
		  "command after '--' (default: only those of -c and of run, always sampled)" },
	{ .name = "command", .letters = "c", .metavar = "CMD", SHOWN,
	  .type = SB_OPT_STRING, .group = SB_OPT_TARGET, FIELD(shell_command),
	  .complete = sb_complete_program,
	  .help = "run this line with sh, in place of '-- COMMAND', sample it and its children, and "
		  "stop when it ends" },

	{ .name = "time", .letters = "t", .metavar = "DUR", SAMPLING,
	  .type = SB_OPT_DURATION, .group = SB_OPT_WINDOW, FIELD(run.time_ns),
	  .help = "how long to sample: 5 (seconds), 500ms, 2m, 1h (default: until Ctrl-C, or "
		  "until every process of -p, or a command that stackbpf starts, has ended); such a "
		  "command runs on after that time, and stackbpf waits for it" },
	{ .name = "freq", .letters = "F", .metavar = "HZ", SAMPLED,
	  .type = SB_OPT_U32, .group = SB_OPT_WINDOW, FIELD(run.freq_hz), .min = 1, .max = SB_FREQ_HZ_MAX,
	  .help = "samples per second on each CPU (default 99)" },
	{ .name = "event", .letters = "e", .metavar = "EVENT", SAMPLED,
	  .type = SB_OPT_PARSED, .group = SB_OPT_WINDOW, FIELD(event), .parse = parse_event,
	  .complete = sb_complete_counters,
	  .help = "counter that triggers samples of running threads: cpu-clock (default), "
		  "page-faults, cycles, cache-misses:u, r1a8, cpu/event=0xa8/, as perf and bpftrace "
		  "spell them; with a period as in context-switches:10, or else at the rate of -F" },
	/* Not for "wall", whose sum it would break, nor for what a thread does on several CPUs. */
	{ .name = "cpu", .letters = "C", .metavar = "LIST", .views = SB_VIEW_PER_CPU,
	  .type = SB_OPT_LIST, .group = SB_OPT_WINDOW, FIELD(run.cpus), .max = 65535,
	  .help = "sample only these CPUs: 0,2,4-7" },

	{ .name = "max-overhead", .metavar = "PCT", SAMPLING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_WINDOW, FIELD(run.overhead_max_ppm),
	  .parse = parse_percent, .suggest = "1 0.5 off",
	  .help = "CPU time that stackbpf itself may use, in percent of all CPUs (default 1; off: no "
		  "limit); above it, fewer samples are taken, at a lower rate or of only a part of the "
		  "events, and each sample weighs more to make up for it; if that is not possible or "
		  "does not help, a message says so" },

	{ .name = "list", EVENTS,
	  .type = SB_OPT_ON, .group = SB_OPT_EVENTS, FIELD(list),
	  .help = "print the events that match the operands, and trace nothing: sched:*, c:pthread_*, "
		  "u:/usr/bin/python3:*; without operands all presets, tracepoints and counters" },
	{ .name = "from", .metavar = "EVENT", PAIRS,
	  .type = SB_OPT_STRINGS, .group = SB_OPT_EVENTS, FIELD(request.from),
	  .complete = sb_complete_events,
	  .help = "measure from this event on, in place of calls: a tracepoint, a function, its return "
		  "or a USDT probe, spelled as above; can be repeated" },
	{ .name = "to", .metavar = "EVENT", PAIRS,
	  .type = SB_OPT_STRINGS, .group = SB_OPT_EVENTS, FIELD(request.to),
	  .complete = sb_complete_events,
	  .help = "measure up to this event; can be repeated: --from block:block_rq_issue --to "
		  "block:block_rq_complete" },
	{ .name = "key", .metavar = "EXPR", PAIRS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(request.key),
	  .help = "with --from and --to: an event of --to ends the event of --from that had the "
		  "same value of this expression, in whatever thread: 'args->sector' (default: the "
		  "last one of the same thread)" },
	{ .name = "to-key", .metavar = "EXPR", PAIRS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(request.to_key),
	  .help = "with --key: the expression over the arguments of --to, if it is not that of --key" },
	{ .name = "rate", .views = SB_VIEW_RATE,
	  .type = SB_OPT_ON, .group = SB_OPT_EVENTS, FIELD(rate),
	  .help = "print how often each event happens per second, and take no stacks, which is cheap; the "
		  "result has the number of events of each process, and of each --value" },
	{ .name = "slowest", .metavar = "N", PAIRS,
	  .type = SB_OPT_U32, .group = SB_OPT_EVENTS, FIELD(run.view_opts.slowest),
	  .min = 1, .max = SB_LATENCY_SLOWEST_MAX,
	  .help = "at the end, list the N slowest calls with their stacks (at most 16)" },
	{ .name = "when", .metavar = "EXPR", EXPRS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(request.when),
	  .help = "only events for which this expression, see above, is not 0: "
		  "'arg1 > 4096', 'args->prev_prio < 100 && comm == \"nginx\"'" },
	{ .name = "weight", .metavar = "EXPR", EXPRS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(request.weight),
	  .help = "weigh each event by this expression, see above: 'arg0', 'retval', "
		  "'args->bytes_req' (default: count it; in latency: weigh it by its duration)" },
	{ .name = "value", .metavar = "EXPR", EXPRS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(request.value),
	  .help = "tell events apart by the value of this expression, see above, which becomes a leaf "
		  "frame [EXPR=VALUE]: 'arg0', 'str(arg1)', 'args->prio'" },
	{ .name = "objects", ALLOCS,
	  .type = SB_OPT_ON, .group = SB_OPT_EVENTS, FIELD(run.view_opts.is_of_objects),
	  .help = "weigh stacks by the number of allocations, not by their bytes" },
	{ .name = "live", .views = SB_VIEW_LIVE,
	  .type = SB_OPT_ON, .group = SB_OPT_EVENTS, FIELD(live),
	  .help = "only what is still held at the end of the run; the same as 'stackbpf heap'" },
	{ .name = "allocator", .metavar = "FILE", ALLOCS,
	  .type = SB_OPT_STRINGS, .group = SB_OPT_EVENTS, FIELD(allocators),
	  .complete = sb_complete_file,
	  .help = "probe the allocator of this program or library, or the USDT probes of a "
		  "producer in it, in place of what the targets map; can be repeated" },
	{ .name = "in", .metavar = "EVENT", SPANS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(in), .complete = sb_complete_events,
	  .help = "only what threads do during calls of a function: c:fsync (of the C library), "
		  "./server:handle (of a program); with --until: from this event on. Or label:KEY, "
		  "such as label:trace_id: while the thread has the label KEY of --label, each value "
		  "for itself, as for one request. stackbpf-spans(7) and, for the spelling of events, "
		  "stackbpf-trace(8) say more" },
	{ .name = "until", .metavar = "EVENT", SPANS,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(until),
	  .complete = sb_complete_events,
	  .help = "with --in EVENT: the event of the same thread up to which samples count: "
		  "--in u:/usr/bin/app:begin --until u:/usr/bin/app:end" },
	{ .name = "slower-than", .metavar = "DUR", SPANS,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.slower_than_ns),
	  .parse = parse_micros,
	  .help = "with --in: only spans that take at least DUR: 500 (microseconds), 100ms, 2s. A "
		  "span is a call, the time from --in to --until, or that with one value of a "
		  "label" },
	{ .name = "min", .letters = "m", .metavar = "DUR", LASTING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.min_ns),
	  .parse = parse_micros,
	  .help = "only waits or calls that take at least DUR: 500 (microseconds), 10ms, 2s" },
	{ .name = "max", .letters = "M", .metavar = "DUR", LASTING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.max_ns),
	  .parse = parse_micros,
	  .help = "only waits or calls that take at most DUR: 500 (microseconds), 10ms, 2s" },
	{ .name = "state", .metavar = "LIST", SPLIT_WAITS,
	  .type = SB_OPT_WORDS, .group = SB_OPT_EVENTS, FIELD(run.view_opts.states),
	  .words = state_words,
	  .help = "only waits in these thread states (default: all): R (runnable, waiting for a "
		  "CPU), S (interruptible sleep), D (uninterruptible sleep), T (stopped or "
		  "frozen), I (idle kernel threads)" },
	{ .name = "every", .metavar = "DUR", .views = SB_VIEW_EVERY,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.every_ns),
	  .parse = parse_micros,
	  .help = "take one sample for each DUR of time waited instead of recording every "
		  "wait; this bounds the cost on hosts with very many context switches" },
	{ .name = "idle", .metavar = "HOW", WAITS,
	  .type = SB_OPT_WORD, .group = SB_OPT_EVENTS, FIELD(run.idle), .words = idle_words,
	  .help = "waits of worker threads that have no work: show (default: mark them), dim "
		  "(mark them and draw them pale, apart from the rest), drop" },
	{ .letters = "r", FILES,
	  .type = SB_OPT_BITS, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_dirs),
	  .bits = SB_IO_READ,
	  .help = "record only reads" },
	{ .letters = "w", FILES,
	  .type = SB_OPT_BITS, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_dirs),
	  .bits = SB_IO_WRITE,
	  .help = "record only writes" },
	{ .name = "bytes", FILES,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_weight),
	  .bits = SB_IO_BYTES,
	  .help = "weigh stacks by the bytes they move (default)" },
	{ .name = "latency", FILES,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_weight),
	  .bits = SB_IO_LATENCY,
	  .help = "weigh stacks by duration, in microseconds" },
	{ .name = "count", FILES,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_weight),
	  .bits = SB_IO_COUNT,
	  .help = "weigh stacks by the number of calls" },
	{ .name = "churn", RESIDENT,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.memory_what),
	  .bits = SB_MEMORY_CHURN,
	  .help = "memory that came and went during the run, in place of what is held at its end" },
	{ .name = "held", RESIDENT,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.memory_what),
	  .bits = SB_MEMORY_HELD,
	  .help = "memory that came during the run and is resident at its end (default)" },
	{ .name = "swapped", RESIDENT,
	  .type = SB_OPT_SET, .group = SB_OPT_EVENTS, FIELD(run.view_opts.memory_what),
	  .bits = SB_MEMORY_SWAPPED,
	  .help = "memory that came during the run and is in swap at its end" },
	{ .name = "kind", .metavar = "LIST", RESIDENT,
	  .type = SB_OPT_WORDS, .group = SB_OPT_EVENTS, FIELD(run.view_opts.memory_kinds),
	  .words = memory_kind_words,
	  .help = "only memory of these kinds: anon (of no file), file, shmem (shared memory), "
		  "stack (of the main thread), heap (of brk)" },
	{ .name = "layer", .metavar = "NAME", ALLOCS,
	  .type = SB_OPT_WORD, .group = SB_OPT_EVENTS, FIELD(run.view_opts.alloc_layer),
	  .words = alloc_layer_words,
	  .help = "whose memory: user (of programs, default); or that of the kernel: kmalloc, slab "
		  "(kmem_cache_alloc), pages" },
	{ .name = "layer", .metavar = "NAME", FILES,
	  .type = SB_OPT_WORD, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_layer),
	  .words = layer_words,
	  .help = "where to observe I/O: syscall (default), cache (pages that had to be read "
		  "into the page cache), block (block devices), fsync, fault (page faults of "
		  "memory-mapped files)" },
	{ .name = "kind", .metavar = "LIST", FILES,
	  .type = SB_OPT_WORDS, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_kinds),
	  .words = kind_words,
	  .help = "only files of these types: file (regular), dir, pipe, sock (sockets), tty "
		  "(terminals), chr and blk (other character and block devices), anon (without a "
		  "name, such as eventfd), other" },
	{ .name = "path", .metavar = "GLOB", FILES,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_path),
	  .complete = sb_complete_file,
	  .help = "only files whose path matches this pattern with *, ? and [...]; * also "
		  "matches slashes" },
	{ .name = "fs", .metavar = "TYPE", FILES,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_fs),
	  .complete = sb_complete_filesystem,
	  .help = "only files on file systems of this type: ext4, tmpfs, ..." },
	{ .name = "dev", .metavar = "DEVICE", FILES,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_dev),
	  .parse = parse_dev,
	  .complete = sb_complete_device,
	  .help = "only files on this device: vda1, 254:1, or the path of any file on it" },
	{ .name = "inode", .metavar = "N", FILES,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(run.view_opts.io_ino),
	  .parse = parse_inode,
	  .help = "only the file with this inode number" },
	{ .name = "distr", .views = SB_VIEW_LASTING | SB_VIEW_SPANS,
	  .type = SB_OPT_ON, .group = SB_OPT_EVENTS, FIELD(run.view_opts.distr),
	  .help = "also print histograms, with a row for each power of two, of how long each wait, I/O or "
		  "measured call took: one for all together, and one for each stack. Views in which "
		  "nothing takes time, such as oncpu and trace, show how long the spans of --in took; "
		  "trace also shows the values of --weight" },

	{ .name = "kind", .metavar = "NAME", OF_A_KIND,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(kind), .parse = parse_kind,
	  .complete = sb_complete_kind,
	  .help = "what to sample; each is also a command that 'stackbpf help' explains; the first is "
		  "the default:", .help_values = own_kind_names },

	{ .name = "store", .metavar = "DIR", RECORDER,
	  .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT, FIELD(recorder.store),
	  .complete = sb_complete_directory,
	  .help = "directory of the store (default " SB_RECORDER_STORE "); created if it is "
		  "missing" },
	{ .name = "kinds", .metavar = "LIST", RECORDER,
	  .type = SB_OPT_PARSED, .group = SB_OPT_EVENTS, FIELD(recorder),
	  .parse = sb_recorder_parse_kinds, .complete = sb_complete_kinds,
	  .help = "kinds of profiles to record; trace and latency need the name of a line of "
		  "--definitions: oncpu,trace:sync; the first is the default:",
	  .help_values = sb_view_kind_names },
	{ .name = "definitions", .metavar = "FILE", RECORDER,
	  .type = SB_OPT_STRING, .group = SB_OPT_EVENTS, FIELD(definitions_path),
	  .complete = sb_complete_file,
	  .help = "file that names events for --kinds (default " SB_DEFINITIONS_PATH "), with lines "
		  "such as 'sync: c:fsync c:fdatasync'; stackbpf-record(8) describes them" },
	{ .name = "tag", .metavar = "KEY=VALUE", RECORDER,
	  .type = SB_OPT_PARSED, .group = SB_OPT_SHAPE, FIELD(recorder),
	  .parse = sb_recorder_parse_tag,
	  .help = "add a tag to all samples, such as region=eu; can be repeated" },
	{ .name = "tids", RECORDER,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(recorder.by_thread),
	  .help = "add a tag 'tid', the thread ID; like the tag 'pid', it is kept in blocks of 10 "
		  "s only, not in their aggregates" },
	{ .name = "retain", .metavar = "LIST", RECORDER,
	  .type = SB_OPT_PARSED, .group = SB_OPT_OUTPUT, FIELD(recorder),
	  .parse = sb_recorder_parse_retain,
	  .help = "how long to keep blocks of 10 s and their aggregates (default "
		  "10s=7d,10min=30d,1h=1y,1d=0; 0: forever)" },
	{ .name = "max-size", .metavar = "BYTES", RECORDER,
	  .type = SB_OPT_BYTES, .group = SB_OPT_OUTPUT, FIELD(recorder.bytes_max),
	  .min = 1u << 20,
	  .help = "maximum size of the store; beyond it the oldest blocks of the finest "
		  "resolution are deleted first (default: no limit)" },
	{ .name = "sync", .metavar = "WHEN", RECORDER,
	  .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT, FIELD(recorder.no_sync),
	  .words = sync_words,
	  .help = "block: wait until each block is on the disk (default); off: let the "
		  "kernel decide when to write" },

	{ .name = "user", .letters = "uU",
	  .type = SB_OPT_BITS, .group = SB_OPT_STACKS, FIELD(run.sides), .bits = SB_SIDE_USER,
	  .help = "user stacks only" },
	{ .name = "kernel", .letters = "kK",
	  .type = SB_OPT_BITS, .group = SB_OPT_STACKS, FIELD(run.sides), .bits = SB_SIDE_KERNEL,
	  .help = "kernel stacks only; together with -u: both (default)" },
	{ .name = "depth", .metavar = "N",
	  .type = SB_OPT_U32, .group = SB_OPT_STACKS, FIELD(run.depth_max),
	  .min = 1, .max = SB_USTACK_DEPTH_MAX,
	  .help = "maximum number of user frames per stack, including frames of interpreters "
		  "(default and limit 512)" },
	{ .name = "unwind", .metavar = "HOW",
	  .type = SB_OPT_WORD, .group = SB_OPT_STACKS, FIELD(run.unwind), .words = unwind_words,
	  .help = "how to find callers: auto (default: unwind tables, or frame pointers "
		  "where there is no table), fp (frame pointers), dwarf (unwind tables), "
		  "none (leaf frame only)" },
	{ .name = "unwind-memory", .metavar = "BYTES",
	  .type = SB_OPT_BYTES, .group = SB_OPT_STACKS, FIELD(run.unwind_bytes), .min = UNWIND_MIN,
	  .help = "maximum memory for unwind tables (default 64M, for record 16M; limit 1G)" },
	{ .name = "interp", .metavar = "HOW",
	  .type = SB_OPT_WORD, .group = SB_OPT_STACKS, FIELD(run.interp), .words = interp_words,
	  .help = "frames of Python, Perl, Ruby, PHP, Lua, JavaScript and Java: auto "
		  "(default: instead of the interpreter's own frames), both (in addition to "
		  "these), only (hide native frames in stacks that have frames of an "
		  "interpreter), off" },
	{ .letters = "g", SAMPLING, .type = SB_OPT_NONE, .group = SB_OPT_STACKS },

	{ .name = "by", .metavar = "LIST", SHOWN,
	  .type = SB_OPT_PARSED, .group = SB_OPT_SHAPE, FIELD(run.roots), .parse = parse_roots,
	  .complete = sb_complete_roots,
	  .help = "root frames of each stack, root first: comm (default), pid, thread, "
		  "cpu, cgroup, container" },
	{ .name = "label", .metavar = "KEY", SAMPLING,
	  .type = SB_OPT_PARSED, .group = SB_OPT_SHAPE, FIELD(run),
	  .parse = sb_recorder_parse_label,
	  .help = "show the label KEY that programs set on their threads, such as trace_id of "
		  "OpenTelemetry: as a root frame KEY=value before those of --by, in record as a "
		  "tag; can be repeated; stackbpf-options(7) says which labels there are" },
	{ .name = "threads", .letters = "T", SHOWN,
	  .type = SB_OPT_PRESET, .group = SB_OPT_SHAPE, FIELD(run.roots), .parse = parse_roots,
	  .preset = "thread",
	  .help = "the same as --by thread" },
	{ .name = "delimited", .letters = "d", RESULT,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(run.delimited),
	  .help = "put a frame '-' between user frames and kernel frames (default: none)" },
	{ .name = "annotate", RESULT,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(annotate),
	  .help = "mark frames by kind: _[k] kernel, _[i] inlined, _[j] compiled at run time "
		  "(JIT), _[p] interpreter, _[f] file, _[w] waker" },
	{ .name = "lines", .commands = "!record top",
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(lines),
	  .help = "add file:line where debug information has it" },
	{ .name = "inline",
	  .type = SB_OPT_OFF, .group = SB_OPT_SHAPE, FIELD(run.no_inlines),
	  .help = "show inlined functions where debug information has them (default, except "
		  "for record)" },
	{ .name = "no-inline",
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(run.no_inlines),
	  .help = "hide inlined functions (default for record)" },
	{ .name = "modules", RESULT,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(modules),
	  .help = "add the name of the program or library that contains the function" },
	{ .name = "offsets", RESULT,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(run.offsets),
	  .help = "add the offset within the function" },
	{ .name = "demangle", .metavar = "MODE",
	  .type = SB_OPT_WORD, .group = SB_OPT_SHAPE, FIELD(run.demangle), .words = demangle_words,
	  .help = "how to demangle C++ and Rust names: short (default, without parameters), "
		  "full, off" },
	{ .name = "no-demangle",
	  .type = SB_OPT_SET, .group = SB_OPT_SHAPE, FIELD(run.demangle),
	  .bits = SB_SYM_DEMANGLE_OFF,
	  .help = "the same as --demangle=off" },
	{ .name = "debuginfod", SHOWN,
	  .type = SB_OPT_ON, .group = SB_OPT_SHAPE, FIELD(run.debuginfod),
	  .help = "download missing debug information from $DEBUGINFOD_URLS; without this "
		  "option stackbpf does not use the network" },
	{ .name = "symbol-cache", .metavar = "BYTES",
	  .type = SB_OPT_BYTES, .group = SB_OPT_SHAPE, FIELD(run.symbol_cache_bytes), .min = CACHE_MIN,
	  .help = "maximum memory for debug information and symbol tables (default 256M)" },

	{ .name = "file", .metavar = "HOW", FILES,
	  .type = SB_OPT_WORD, .group = SB_OPT_SHAPE, FIELD(run.file), .words = file_words,
	  .preset = "path",
	  .help = "leaf frame for the file: path (default), base (last part of the path), "
		  "full (pipes and sockets with their numbers, too), none" },

	{ .name = "output", .letters = "o", .metavar = "FILE", RESULT,
	  .type = SB_OPT_STRINGS, .group = SB_OPT_OUTPUT, FIELD(output_paths),
	  .complete = sb_complete_file,
	  .help = "write to FILE in the format of its extension: .folded, .svg, .html, .bt, .distr, "
		  ".pb.gz, .otlp, .speedscope.json, .firefox.json.gz, .callgrind, .json; can be "
		  "repeated; '-' is stdout" },
	{ .name = "open", .commands = "run",
	  .type = SB_OPT_ON, .group = SB_OPT_OUTPUT, FIELD(open),
	  .help = "open the first FILE with xdg-open when it is written" },
	{ .name = "format", .metavar = "NAME", RESULT,
	  .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT, FIELD(format),
	  .complete = sb_complete_format,
	  .help = "output format, instead of that of the extension: folded (stacks as text), svg "
		  "(flame graph), html (the same with a table of functions), bt (backtraces as "
		  "SystemTap prints them), distr (histograms of durations as text), pprof, otlp "
		  "(OpenTelemetry), speedscope, firefox (Firefox Profiler), callgrind, json" },
	{ .name = "folded", .letters = "f", RESULT,
	  .type = SB_OPT_NONE, .group = SB_OPT_OUTPUT,
	  .help = "has no effect, accepted because other tools have it: without -o and --format, "
		  "folded stacks go to stdout anyway, in run a flame graph to a file" },
	{ .name = "limit", .letters = "l", .metavar = "N", RESULT,
	  .type = SB_OPT_U32, .group = SB_OPT_OUTPUT, FIELD(limit), .min = 1, .max = UINT32_MAX,
	  .help = "write only the N heaviest stacks (default: all); a message says how much was "
		  "left out" },
	{ .name = "title", .metavar = "TEXT", RESULT,
	  .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT, FIELD(title),
	  .help = "title of the flame graph" },
	{ .name = "no-header", RESULT,
	  .type = SB_OPT_ON, .group = SB_OPT_OUTPUT, FIELD(no_header),
	  .help = "omit the header line '#stackbpf;...' of folded stacks" },

	{ .name = "group", .commands = "snap",
	  .type = SB_OPT_ON, .group = SB_OPT_OUTPUT, FIELD(group),
	  .help = "group threads that have the same stack, largest group first" },
	{ .name = "format", .metavar = "NAME", .commands = "snap",
	  .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT, FIELD(format), .words = sb_snap_formats,
	  .help = "stacks (default: leaf first, as in a debugger), folded, json" },
	{ .name = "output", .letters = "o", .metavar = "FILE", .commands = "snap",
	  .type = SB_OPT_STRINGS, .group = SB_OPT_OUTPUT, FIELD(output_paths),
	  .complete = sb_complete_file,
	  .help = "write to FILE instead of stdout; can be repeated; --format holds for all" },

	{ .name = "every", .metavar = "DUR", .commands = "top",
	  .type = SB_OPT_DURATION, .group = SB_OPT_OUTPUT, FIELD(every_ns),
	  .help = "refresh interval: 2 (seconds, the default), 500ms" },
	{ .name = "window", .metavar = "DUR", .commands = "top",
	  .type = SB_OPT_DURATION, .group = SB_OPT_OUTPUT, FIELD(window_ns),
	  .help = "length of the recent time span that is shown besides the whole run "
		  "(default 10 s)" },
	{ .name = "batch", .letters = "b", .commands = "top",
	  .type = SB_OPT_ON, .group = SB_OPT_OUTPUT, FIELD(batch),
	  .help = "print a table to stdout at each refresh, as if stdout were not a terminal" },
	{ .name = "count", .metavar = "N", .commands = "top",
	  .type = SB_OPT_U32, .group = SB_OPT_OUTPUT, FIELD(nr_rounds), .min = 1, .max = UINT32_MAX,
	  .help = "stop after N refreshes" },
	{ .name = "limit", .letters = "l", .metavar = "N", .commands = "top",
	  .type = SB_OPT_U32, .group = SB_OPT_OUTPUT, FIELD(limit), .min = 1, .max = UINT32_MAX,
	  .help = "number of functions in a table (default 30); one line sums up the rest" },

	{ .name = "stats", SAMPLING,
	  .type = SB_OPT_ON, .group = SB_OPT_META, FIELD(stats),
	  .help = "at the end, print all statistics of the run instead of one line" },
	SB_COMMON_ROWS,
	SB_OPT_END
};

bool sb_record_opt_is_for(const char *name, const char *command)
{
	return sb_opt_find(sb_record_rows, command, name, strlen(name)) != NULL;
}
/* clang-format on */
