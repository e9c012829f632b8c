// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Checks how well the stacks of one process can be taken, and what to install to improve that. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/debian.h"
#include "cli/doctor.h"
#include "cli/doctor_trial.h"
#include "cli/wrap.h"
#include "resolve/resolve.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/sb_sym.h"

#define NAME_COLUMNS 24 /* and the NUL is the blank behind the name */
#define ROWS_MAX     16
#define NO_MODULE    SIZE_MAX /* the kernel's own pieces */

SB_DEFINE_CLEANUP(struct sb_symbolizer, sb_symbolizer_free)

/* A file that is mapped executable; big ones are mapped in several pieces. */
struct module {
	const char *path, *symbols, *debug_path, *unwind; /* live as long as the symbolizer */
	bool has_dwarf, has_build_id;
	uint64_t nr_by_table, nr_by_fp, nr_cut; /* callers of its code in trial samples */
};

struct process {
	SB_VEC(struct module) modules;
	SB_VEC(size_t) owners; /* by mapping of the trial: its number in modules, NO_MODULE */
	struct sb_trial trial;
};

static int add_mapping(struct process *process, const struct sb_sym_source *source, size_t owner)
{
	struct sb_trial_mapping mapping = { .start = source->addr,
					    .end = source->addr + source->len };
	int err = sb_vec_push(&process->owners, owner);

	return err ? err : sb_vec_push(&process->trial.mappings, mapping);
}

static int on_source(void *arg, const struct sb_sym_source *source)
{
	struct process *process = arg;
	size_t i;
	int err;

	if (source->path[0] == '[') /* nothing can be done about these */
		return add_mapping(process, source, NO_MODULE);
	for (i = 0; i < process->modules.nr; i++)
		if (sb_streq(process->modules.at[i].path, source->path))
			break;
	err = add_mapping(process, source, i);
	if (err || i < process->modules.nr)
		return err;
	return sb_vec_push(&process->modules, (struct module){
						      .path = source->path,
						      .symbols = source->symbols,
						      .debug_path = source->debug_path,
						      .unwind = source->unwind,
						      .has_dwarf = source->has_dwarf,
						      .has_build_id = source->build_id_bytes > 0,
					      });
}

static bool is_file(const struct module *module)
{
	return module->path[0] == '/' && module->path[1] != '/';
}

/* The trial's figures, by file. */
static void share_out(struct process *process)
{
	size_t i;

	for (i = 0; i < process->trial.mappings.nr; i++) {
		const struct sb_trial_mapping *mapping = &process->trial.mappings.at[i];
		struct module *module;

		if (process->owners.at[i] == NO_MODULE)
			continue;
		module = &process->modules.at[process->owners.at[i]];
		module->nr_by_table += mapping->nr_by_table;
		module->nr_by_fp += mapping->nr_by_fp;
		module->nr_cut += mapping->nr_cut;
	}
}

static bool is_sampled(const struct module *module)
{
	return module->nr_by_table | module->nr_by_fp | module->nr_cut;
}

static enum sb_verdict verdict_of(const struct module *module)
{
	bool has_names =
		!sb_streq(module->symbols, "none") && !sb_streq(module->symbols, ".dynsym");

	return has_names && !sb_streq(module->unwind, "none") && !module->nr_cut ? SB_VERDICT_OK
										 : SB_VERDICT_LESS;
}

static void say_module(struct sb_doctor *doctor, const struct module *module)
{
	char name[NAME_COLUMNS];

	snprintf(name, sizeof(name), "%s", sb_base_name(module->path));
	sb_doctor_say(doctor, verdict_of(module), name, "%-16s%-7s%-14s%s", module->symbols,
		      module->has_dwarf ? "yes" : "no", module->unwind,
		      is_sampled(module) ? "" : "not sampled");
	if (is_sampled(module))
		sb_doctor_more(doctor,
			       "callers found: %llu by table, %llu by frame pointer; "
			       "%llu stacks cut",
			       (unsigned long long)module->nr_by_table,
			       (unsigned long long)module->nr_by_fp,
			       (unsigned long long)module->nr_cut);
	if (module->debug_path)
		sb_debug("the debug information of '%s' is in '%s'", module->path,
			 module->debug_path);
}

/* One screen: where there are many files, those that are all right are only counted. */
static void say_modules(struct sb_doctor *doctor, const struct process *process)
{
	size_t i, nr_said = 0, nr_counted[] = { [SB_VERDICT_OK] = 0, [SB_VERDICT_LESS] = 0 };
	bool is_long = process->modules.nr > ROWS_MAX && sb_log_max() < SB_LOG_DEBUG;

	fprintf(doctor->out, "      %-24s%-16s%-7s%-14s%s\n", "file", "names from", "lines",
		"unwinding", "in the trial");
	for (i = 0; i < process->modules.nr; i++) {
		const struct module *module = &process->modules.at[i];
		enum sb_verdict verdict = verdict_of(module);

		bool is_dull = verdict == SB_VERDICT_OK && !is_sampled(module);

		if (is_long && (is_dull || nr_said == ROWS_MAX)) {
			nr_counted[verdict]++;
			continue;
		}
		say_module(doctor, module);
		nr_said++;
	}
	for (i = 0; i < SB_ARRAY_SIZE(nr_counted); i++)
		if (nr_counted[i])
			sb_doctor_say(doctor, (enum sb_verdict)i, "others",
				      "%zu %s; -v "
				      "lists all",
				      nr_counted[i], sb_plural(nr_counted[i], "file", "files"));
}

/* What the trial says of whole stacks. */
static void say_trial(struct sb_doctor *doctor, const struct process *process)
{
	const struct sb_trial *trial = &process->trial;
	unsigned int i;

	if (!trial->nr_samples) {
		sb_doctor_say(doctor, SB_VERDICT_LESS, "trial samples",
			      "none: the process used no CPU time in half a second");
		return;
	}
	sb_doctor_say(doctor,
		      trial->nr_complete == trial->nr_samples ? SB_VERDICT_OK : SB_VERDICT_LESS,
		      "trial samples", "%llu, %.1f %% with complete user stacks",
		      (unsigned long long)trial->nr_samples,
		      100.0 * (double)trial->nr_complete / (double)trial->nr_samples);
	for (i = 0; i < SB_STACK_STATUS_MAX; i++)
		if (sb_cut_names[i] && trial->nr_status[i])
			sb_doctor_advise(
				doctor, "%llu %s cut: %s", (unsigned long long)trial->nr_status[i],
				sb_plural(trial->nr_status[i], "stack", "stacks"), sb_cut_names[i]);
	if (trial->elsewhere.nr_by_fp | trial->elsewhere.nr_cut)
		sb_doctor_advise(doctor,
				 "code mapped during the trial: %llu %s by frame pointer, %llu %s "
				 "cut",
				 (unsigned long long)trial->elsewhere.nr_by_fp,
				 sb_plural(trial->elsewhere.nr_by_fp, "frame", "frames"),
				 (unsigned long long)trial->elsewhere.nr_cut,
				 sb_plural(trial->elsewhere.nr_cut, "stack", "stacks"));
}

static int say_runtimes(struct sb_doctor *doctor, const struct process *process, uint32_t tgid)
{
	SB_VEC(const char *) paths = {};
	size_t i;
	int err = 0;

	for (i = 0; i < process->modules.nr && !err; i++)
		err = sb_vec_push(&paths, process->modules.at[i].path);
	if (!err)
		err = sb_doctor_runtimes(doctor, tgid, &process->trial, paths.at, paths.nr);
	sb_vec_release(&paths);
	return err;
}

/* Add @name to the list unless it is in it. */
static void add_once(struct sb_str *list, const char *name)
{
	const char *at = list->len ? strstr(list->s, name) : NULL;
	size_t len = strlen(name);

	for (; at; at = strstr(at + 1, name))
		if ((at == list->s || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return;
	/* Without memory the advice is shorter. */
	(void)sb_str_addf(list, "%s%s", list->len ? " " : "", name);
}

/* Files without lines: the packages that have them, or what else there is to do. */
static int advise_packages(struct sb_doctor *doctor, const struct process *process)
{
	sb_cleanup(sb_str_release) struct sb_str install = {};
	SB_VEC(const char *) paths = {};
	sb_cleanup(sb_freep) char **owners = NULL;
	size_t i, nr_others = 0;
	int err = 0;

	for (i = 0; i < process->modules.nr && !err; i++)
		if (is_file(&process->modules.at[i]) && !process->modules.at[i].has_dwarf)
			err = sb_vec_push(&paths, process->modules.at[i].path);
	owners = calloc(paths.nr + 1, sizeof(*owners));
	if (!err && !owners)
		err = -ENOMEM;
	if (!err && sb_debian_owners(NULL, paths.at, paths.nr, owners) == -ENOMEM)
		err = -ENOMEM;
	for (i = 0; i < paths.nr && !err; i++) {
		sb_cleanup(sb_freep) char *owner = owners[i];
		sb_cleanup(sb_freep) char *debug = owner ? sb_debian_debug_package(owner) : NULL;

		nr_others += !owner;
		if (debug)
			add_once(&install, debug);
	}
	if (install.len)
		sb_doctor_advise(doctor, "names and lines: apt install %s", install.s);
	if (nr_others)
		sb_doctor_advise(doctor,
				 "%zu %s from no package: build with -g, or use "
				 "--debuginfod",
				 nr_others, sb_plural(nr_others, "file", "files"));
	sb_vec_release(&paths);
	return err;
}

int sb_doctor_process(struct sb_doctor *doctor, uint32_t tgid)
{
	static const struct sb_symbolizer_opts opts = { .inlines = true, .lines = true };
	sb_cleanup(sb_symbolizer_freep) struct sb_symbolizer *sym = NULL;
	sb_cleanup(sb_freep) char *comm = NULL;
	struct process process = {};
	int err;

	err = sb_procfs_comm(tgid, &comm);
	if (!err)
		err = sb_symbolizer_new(&opts, &sym);
	if (!err)
		err = sb_symbolizer_sources(sym, tgid, on_source, &process);
	if (!err &&
	    !sb_trial_run(&process.trial, tgid, doctor->parser)) /* or it has said why not */
		share_out(&process);
	if (!err) {
		sb_doctor_title(doctor, "Process %u (%s)", tgid, comm);
		if (!process.modules.nr)
			sb_doctor_say(doctor, SB_VERDICT_LESS, "files",
				      "none; perhaps this "
				      "is a kernel thread");
		else
			say_modules(doctor, &process);
		err = advise_packages(doctor, &process);
		say_trial(doctor, &process);
		if (!err)
			err = say_runtimes(doctor, &process, tgid);
	}
	sb_vec_release(&process.modules);
	sb_vec_release(&process.owners);
	sb_trial_release(&process.trial);
	return err;
}
