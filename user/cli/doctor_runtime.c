// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks which interpreters a process has, and whether their frames can be read. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "cli/doctor_trial.h"
#include "interp/core/interp.h"
#include "symbolizer/unwind/parser.h"

SB_DEFINE_CLEANUP(struct sb_interp, sb_interp_free)

struct report {
	struct sb_doctor *doctor;
	const struct sb_trial *trial;
	unsigned int nr_found;
};

/* "python 3.11.2" */
static void say_found(struct report *report, const struct sb_interp_found *found)
{
	uint64_t nr = report->trial->nr_runtime[found->runtime];
	char name[64], seen[64] = "not sampled";

	snprintf(name, sizeof(name), "%s%s%s", found->runtime_name, found->version[0] ? " " : "",
		 found->version);
	if (report->trial->nr_samples)
		snprintf(seen, sizeof(seen), "%.1f %% of trial samples have its frames",
			 100.0 * (double)nr / (double)report->trial->nr_samples);
	sb_doctor_say(report->doctor, SB_VERDICT_OK, name, "%s; %s", found->path, seen);
}

static int on_found(void *arg, const struct sb_interp_found *found)
{
	struct report *report = arg;

	report->nr_found++;
	if (!found->why)
		say_found(report, found);
	else
		sb_doctor_say(report->doctor, SB_VERDICT_LESS, found->runtime_name,
			      "shown as C functions: %s (%s)", found->why, found->path);
	return 0;
}

/* Runtimes that are known by the files they are made of only, and how their functions get names. */
static const struct {
	const char *prefix, *name, *advice;
} others[] = {
	{ "libjvm.so", "Java",
	  "names of Java functions: java -XX:+DumpPerfMapAtExit, or jcmd "
	  "PID Compiler.perfmap (JDK 17)" },
	{ "node", "Node.js", "names of JavaScript functions: node --perf-basic-prof" },
	{ "libcoreclr.so", ".NET", "names of .NET functions: DOTNET_PerfMapEnabled=1" },
	{ "beam.smp", "Erlang", "names of Erlang functions: erl +JPperf true" },
};

static void say_other(struct sb_doctor *doctor, const char *const *files, size_t nr)
{
	size_t i, j;

	for (i = 0; i < nr; i++) {
		const char *name = sb_base_name(files[i]);

		for (j = 0; j < SB_ARRAY_SIZE(others); j++) {
			if (strncmp(name, others[j].prefix, strlen(others[j].prefix)))
				continue;
			sb_doctor_say(doctor, SB_VERDICT_LESS, others[j].name,
				      "its functions are unnamed without this option");
			sb_doctor_advise(doctor, "%s", others[j].advice);
			return;
		}
	}
}

int sb_doctor_runtimes(struct sb_doctor *doctor, uint32_t tgid, const struct sb_trial *trial,
		       const char *const *files, size_t nr_files)
{
	const struct sb_interp_opts opts = {
		.parser = sb_parser_seat(doctor->parser, SB_PARSER_INTERP),
	};
	sb_cleanup(sb_interp_freep) struct sb_interp *interp = NULL;
	const struct sb_space_key space = { .tgid = tgid };
	struct report report = { .doctor = doctor, .trial = trial };
	struct sb_interp_confs confs;
	int err;

	err = sb_interp_new(&opts, &interp);
	if (err)
		return err;
	err = sb_interp_look(interp, &space, &confs);
	if (err == -ETIMEDOUT) {
		sb_doctor_say(doctor, SB_VERDICT_LESS, "interpreters",
			      "not known: reading the memory of the process hung");
		return 0;
	}
	if (err && err != -EAGAIN) /* begun or not, it is reported */
		return err;
	err = sb_interp_each(interp, on_found, &report);
	if (!report.nr_found)
		say_other(doctor, files, nr_files);
	return err;
}
