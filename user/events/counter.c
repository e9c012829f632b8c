// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of the kernel and the hardware, for perf_event_open(2). */
#include <dirent.h>
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

#define PMUS		"/sys/bus/event_source/devices"
#define SYSFS_BYTES_MAX 4096u
/* What hardware counts happens millions of times a second: the period of bpftrace. The kernel's own
 * counters count events, each of which is a sample. */
#define PERIOD_HARDWARE 1000000u
/* Clocks count nanoseconds. */
#define PERIOD_CLOCK	1000000u

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

static int set_terms(const char *pmu, const char *terms, bool may_alias, struct sb_probe *probe);

/* One term: "event=0xa8", "any", which is any=1, or a name of PMU/events. */
static int set_term(const char *pmu, char *term, bool may_alias, struct sb_probe *probe)
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
		probe->perf_config[0] = value;
		return 0;
	}
	if (sb_streq(term, "period")) {
		probe->period = value;
		return 0;
	}
	if (!read_sysfs(pmu, "format", term, &text))
		return set_bits(text, value, probe->perf_config);
	if (equals || !may_alias || read_sysfs(pmu, "events", term, &text))
		return -ENOENT;
	return set_terms(pmu, text, false, probe);
}

static int set_terms(const char *pmu, const char *terms, bool may_alias, struct sb_probe *probe)
{
	char term[SB_EVENT_NAME_BYTES];
	size_t len;
	int err = 0;

	for (; *terms && !err; terms += len + (terms[len] == ',')) {
		len = strcspn(terms, ",");
		snprintf(term, sizeof(term), "%.*s", (int)len, terms);
		err = set_term(pmu, term, may_alias, probe);
	}
	return err;
}

static int find_pmu(struct sb_resolving *to, struct sb_probe *probe)
{
	const struct sb_event_spec *spec = to->spec;
	sb_cleanup(sb_freep) char *type = NULL;
	uint64_t number = 0;
	int err;

	if (!is_name(spec->file) || read_sysfs(spec->file, "", "type", &type) ||
	    sb_parse_u64(type, UINT32_MAX, &number)) {
		sb_reason_set(to->reason, 0,
			      "the event '%s': there is no PMU '%s' (" PMUS " has them)", to->text,
			      spec->file);
		return -ENOENT;
	}
	probe->perf_type = (uint32_t)number;
	err = set_terms(spec->file, spec->name, true, probe);
	if (!err)
		return 0;
	sb_reason_set(to->reason, 0,
		      "the event '%s': the PMU '%s' does not understand '%s' (" PMUS
		      "/%s/format and events have what it does)",
		      to->text, spec->file, spec->name, spec->file);
	return -ENOENT;
}

int sb_resolve_counter(struct sb_resolving *to)
{
	const struct sb_event_spec *spec = to->spec;
	struct sb_probe probe = {
		.kind = SB_PROBE_PERF,
		.perf_type = spec->perf_type,
		.perf_config = { spec->perf_config },
		.no_user = spec->no_user,
		.no_kernel = spec->no_kernel,
	};
	int err = *spec->file ? find_pmu(to, &probe) : 0;

	if (err)
		return err;
	/* ":u" and ":k" say what is counted, together both. */
	if (probe.no_user && probe.no_kernel)
		probe.no_user = probe.no_kernel = false;
	if (spec->period)
		probe.period = spec->period;
	if (!probe.period && probe.perf_type != PERF_TYPE_SOFTWARE)
		probe.period = PERIOD_HARDWARE;
	if (!probe.period)
		probe.period = probe.perf_config[0] == PERF_COUNT_SW_CPU_CLOCK ||
					       probe.perf_config[0] == PERF_COUNT_SW_TASK_CLOCK
				       ? PERIOD_CLOCK
				       : 1;
	return to->found(to, to->text, &probe);
}
