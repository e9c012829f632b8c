// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of the kernel and the hardware, for perf_event_open(2). */
#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/probe_priv.h"

#define PMUS		 "/sys/bus/event_source/devices"
#define SYSFS_BYTES_MAX	 4096u
/* What hardware counts happens millions of times a second: the period of bpftrace. The kernel's own
 * counters count events, each of which is a sample. */
#define PERIOD_HARDWARE	 1000000u
/* Clocks count nanoseconds. */
#define PERIOD_CLOCK	 1000000u

#define HARDWARE(config) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config
#define SOFTWARE(config) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config
/* perf_event_open(2): cache, operation, result. */
#define CACHE(cache, op, result)                                                             \
	PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
				    PERF_COUNT_HW_CACHE_RESULT_##result << 16

/* The names of perf list(1), and the shorter ones of bpftrace. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} counters[] = {
	{ "page-faults", SOFTWARE(PAGE_FAULTS) },
	{ "faults", SOFTWARE(PAGE_FAULTS) },
	{ "minor-faults", SOFTWARE(PAGE_FAULTS_MIN) },
	{ "major-faults", SOFTWARE(PAGE_FAULTS_MAJ) },
	{ "context-switches", SOFTWARE(CONTEXT_SWITCHES) },
	{ "cs", SOFTWARE(CONTEXT_SWITCHES) },
	{ "cpu-migrations", SOFTWARE(CPU_MIGRATIONS) },
	{ "migrations", SOFTWARE(CPU_MIGRATIONS) },
	{ "cgroup-switches", SOFTWARE(CGROUP_SWITCHES) },
	{ "cpu-clock", SOFTWARE(CPU_CLOCK) },
	{ "task-clock", SOFTWARE(TASK_CLOCK) },
	{ "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS) },
	{ "emulation-faults", SOFTWARE(EMULATION_FAULTS) },
	{ "cycles", HARDWARE(CPU_CYCLES) },
	{ "cpu-cycles", HARDWARE(CPU_CYCLES) },
	{ "instructions", HARDWARE(INSTRUCTIONS) },
	{ "cache-references", HARDWARE(CACHE_REFERENCES) },
	{ "cache-misses", HARDWARE(CACHE_MISSES) },
	{ "branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS) },
	{ "branches", HARDWARE(BRANCH_INSTRUCTIONS) },
	{ "branch-misses", HARDWARE(BRANCH_MISSES) },
	{ "bus-cycles", HARDWARE(BUS_CYCLES) },
	{ "ref-cycles", HARDWARE(REF_CPU_CYCLES) },
	{ "stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND) },
	{ "frontend-stalls", HARDWARE(STALLED_CYCLES_FRONTEND) },
	{ "stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND) },
	{ "backend-stalls", HARDWARE(STALLED_CYCLES_BACKEND) },
	{ "L1-dcache-loads", CACHE(L1D, READ, ACCESS) },
	{ "L1-dcache-load-misses", CACHE(L1D, READ, MISS) },
	{ "L1-dcache-stores", CACHE(L1D, WRITE, ACCESS) },
	{ "L1-icache-load-misses", CACHE(L1I, READ, MISS) },
	{ "LLC-loads", CACHE(LL, READ, ACCESS) },
	{ "LLC-load-misses", CACHE(LL, READ, MISS) },
	{ "LLC-stores", CACHE(LL, WRITE, ACCESS) },
	{ "LLC-store-misses", CACHE(LL, WRITE, MISS) },
	{ "dTLB-loads", CACHE(DTLB, READ, ACCESS) },
	{ "dTLB-load-misses", CACHE(DTLB, READ, MISS) },
	{ "iTLB-load-misses", CACHE(ITLB, READ, MISS) },
};

const struct sb_counter sb_counter_clock = { .text = "cpu-clock",
					     .type = PERF_TYPE_SOFTWARE,
					     .config = { PERF_COUNT_SW_CPU_CLOCK } };

bool sb_counter_at(unsigned int i, const char **ret_name)
{
	if (i >= SB_ARRAY_SIZE(counters))
		return false;
	*ret_name = counters[i].name;
	return true;
}

bool sb_counter_by_name(const char *name, struct sb_counter *counter)
{
	const char *digit;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(counters); i++) {
		if (!sb_streq(counters[i].name, name))
			continue;
		counter->type = counters[i].type;
		counter->config[0] = counters[i].config;
		return true;
	}
	/* A raw event. perf takes "read" for one, too; here it needs a digit. */
	if (name[0] != 'r' || strlen(name) > 17 || !name[1] ||
	    name[1 + strspn(name + 1, "0123456789abcdefABCDEF")])
		return false;
	for (digit = name + 1; *digit && !isdigit((unsigned char)*digit); digit++)
		;
	if (!*digit || sb_parse_hex(name + 1, &counter->config[0]))
		return false;
	counter->type = PERF_TYPE_RAW;
	return true;
}

bool sb_counter_is_clock(const struct sb_counter *counter)
{
	return counter->type == PERF_TYPE_SOFTWARE &&
	       (counter->config[0] == PERF_COUNT_SW_CPU_CLOCK ||
		counter->config[0] == PERF_COUNT_SW_TASK_CLOCK);
}

const char *sb_counter_unit(const struct sb_counter *counter)
{
	size_t i;

	/* With the other two there are more conditions than a name says. */
	for (i = 0; !counter->config[1] && !counter->config[2] && i < SB_ARRAY_SIZE(counters); i++)
		if (counters[i].type == counter->type && counters[i].config == counter->config[0])
			return counters[i].name;
	return "events";
}

bool sb_counter_is_same(const struct sb_counter *a, const struct sb_counter *b)
{
	return a->type == b->type && !memcmp(a->config, b->config, sizeof(a->config)) &&
	       a->period == b->period && a->no_user == b->no_user && a->no_kernel == b->no_kernel;
}

void sb_counter_set_attr(const struct sb_counter *counter, struct perf_event_attr *attr)
{
	attr->type = counter->type;
	attr->config = counter->config[0];
	attr->config1 = counter->config[1];
	attr->config2 = counter->config[2];
	attr->sample_period = counter->period;
	attr->exclude_user = counter->no_user;
	attr->exclude_kernel = counter->no_kernel;
}

int sb_counter_explain(const char *name, int err, struct sb_reason *reason)
{
	if (err != -ENOENT && err != -EOPNOTSUPP && err != -ENODEV && err != -EINVAL)
		return 0;
	if (strchr(name, '/')) {
		sb_reason_set(
			reason, 0,
			"the kernel takes no samples of '%s': its PMU only counts, or does not "
			"know these terms; choose another event, such as cycles or cpu-clock",
			name);
		return -EOPNOTSUPP;
	}
	sb_reason_set(reason, 0,
		      "this machine does not count '%s': it has no PMU that does, as most virtual "
		      "machines; counters of the kernel, such as cpu-clock or page-faults, work "
		      "everywhere",
		      name);
	return -EOPNOTSUPP;
}

/* Read a file of a PMU, without its newline. Return: 0 or a negative errno. */
static int read_sysfs(const char *pmu, const char *directory, const char *name, char **ret_text)
{
	char path[2 * SB_EVENT_FILE_BYTES];
	size_t len;
	int err;

	snprintf(path, sizeof(path), PMUS "/%.200s/%s%s%.200s", pmu, directory,
		 *directory ? "/" : "", name);
	err = sb_read_file(path, SYSFS_BYTES_MAX, ret_text, &len);
	if (!err)
		(*ret_text)[strcspn(*ret_text, "\n")] = '\0';
	return err;
}

static bool is_name(const char *name)
{
	return *name && !strchr(name, '/') && name[0] != '.';
}

/* Put @value into the bits that a format such as "config:0-7,32-35" lists, lowest first. */
static int set_bits(const char *format, uint64_t value, uint64_t config[3])
{
	unsigned int which = 0, low, high, bit;
	int len;

	if (sscanf(format, "config%u:", &which) != 1 && strncmp(format, "config:", 7))
		return -EINVAL;
	format = strchr(format, ':');
	if (which > 2 || !format)
		return -EINVAL;
	for (format++; *format; format += len + (format[len] == ',')) {
		if (sscanf(format, "%u-%u%n", &low, &high, &len) != 2) {
			if (sscanf(format, "%u%n", &low, &len) != 1)
				return -EINVAL;
			high = low;
		}
		if (high > 63 || low > high)
			return -EINVAL;
		for (bit = low; bit <= high; bit++, value >>= 1)
			config[which] |= (value & 1) << bit;
	}
	return value ? -ERANGE : 0;
}

static int set_terms(const char *pmu, const char *terms, bool may_alias,
		     struct sb_counter *counter);

/* One term: "event=0xa8", "any", which is any=1, or a name of PMU/events. */
static int set_term(const char *pmu, char *term, bool may_alias, struct sb_counter *counter)
{
	sb_cleanup(sb_freep) char *text = NULL;
	char *equals = strchr(term, '=');
	uint64_t value = 1;
	int err;

	if (equals) {
		*equals++ = '\0';
		err = strncmp(equals, "0x", 2) ? sb_parse_u64(equals, UINT64_MAX, &value)
					       : sb_parse_hex(equals, &value);
		if (err)
			return -EINVAL;
	}
	if (!is_name(term))
		return -EINVAL;
	if (sb_streq(term, "config")) {
		counter->config[0] = value;
		return 0;
	}
	if (sb_streq(term, "period")) {
		counter->period = value;
		return 0;
	}
	if (!read_sysfs(pmu, "format", term, &text))
		return set_bits(text, value, counter->config);
	if (equals || !may_alias || read_sysfs(pmu, "events", term, &text))
		return -ENOENT;
	return set_terms(pmu, text, false, counter);
}

static int set_terms(const char *pmu, const char *terms, bool may_alias, struct sb_counter *counter)
{
	char term[SB_EVENT_NAME_BYTES];
	size_t len;
	int err = 0;

	for (; *terms && !err; terms += len + (terms[len] == ',')) {
		len = strcspn(terms, ",");
		snprintf(term, sizeof(term), "%.*s", (int)len, terms);
		err = set_term(pmu, term, may_alias, counter);
	}
	return err;
}

/* Return: 0; -ENOENT with the reason. */
static int find_pmu(const char *text, const struct sb_event_spec *spec, struct sb_counter *counter,
		    struct sb_reason *reason)
{
	sb_cleanup(sb_freep) char *type = NULL;
	uint64_t number = 0;
	int err;

	if (!is_name(spec->file) || read_sysfs(spec->file, "", "type", &type) ||
	    sb_parse_u64(type, UINT32_MAX, &number)) {
		sb_reason_set(reason, 0,
			      "the event '%s': there is no PMU '%s'; " PMUS " lists them", text,
			      spec->file);
		return -ENOENT;
	}
	counter->type = (uint32_t)number;
	err = set_terms(spec->file, spec->name, true, counter);
	/* A period behind the terms is preferred to one among them. */
	if (spec->counter.period)
		counter->period = spec->counter.period;
	if (!err)
		return 0;
	sb_reason_set(reason, 0,
		      "the event '%s': the PMU '%s' does not understand '%s'; " PMUS
		      "/%s/format and events list what it does",
		      text, spec->file, spec->name, spec->file);
	return -ENOENT;
}

static int find(const char *text, const struct sb_event_spec *spec, struct sb_counter *ret_counter,
		struct sb_reason *reason)
{
	*ret_counter = spec->counter;
	/* ":u" and ":k" say what is counted, together both. */
	if (ret_counter->no_user && ret_counter->no_kernel)
		ret_counter->no_user = ret_counter->no_kernel = false;
	return *spec->file ? find_pmu(text, spec, ret_counter, reason) : 0;
}

static int no_counter(const char *text, struct sb_reason *reason)
{
	struct sb_nearest nearest = { .typed = text };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(counters); i++)
		sb_nearest_offer(&nearest, counters[i].name);
	if (nearest.name)
		sb_reason_set(reason, 0, "there is no counter '%s'; did you mean '%s'?", text,
			      nearest.name);
	else
		sb_reason_set(reason, 0,
			      "the event '%s' is no counter, such as page-faults or cycles; "
			      "'stackbpf trace' samples any event",
			      text);
	return -EINVAL;
}

int sb_counter_find(const char *text, struct sb_counter *ret_counter, struct sb_reason *reason)
{
	struct sb_event_spec spec;
	int err = sb_event_parse(text, &spec, reason);

	if (!err && spec.kind != SB_PROBE_PERF)
		err = no_counter(text, reason);
	if (!err)
		err = find(text, &spec, ret_counter, reason);
	ret_counter->text = text;
	return err;
}

int sb_resolve_counter(struct sb_resolving *to)
{
	struct sb_probe probe = { .kind = SB_PROBE_PERF };
	struct sb_counter *counter = &probe.counter;
	int err = find(to->text, to->spec, counter, to->reason);

	if (err)
		return err;
	if (!counter->period && counter->type != PERF_TYPE_SOFTWARE)
		counter->period = PERIOD_HARDWARE;
	if (!counter->period)
		counter->period = sb_counter_is_clock(counter) ? PERIOD_CLOCK : 1;
	return to->found(to, to->text, &probe);
}
