// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf top: samples with one view and shows the result while it comes. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/term.h"
#include "cli/top.h"

#define EVERY_NS_DEFAULT  (2 * SB_NS_PER_SEC)
#define EVERY_NS_MIN	  (100 * SB_NS_PER_MS)
#define WINDOW_NS_DEFAULT (10 * SB_NS_PER_SEC)
#define LINES_DEFAULT	  30

struct view {
	struct sb_run_sink sink; /* first */
	struct sb_top top;
	struct sb_term *term; /* NULL: lines on stdout */
	struct sb_str targets;
	uint64_t taken_ns;		   /* when the last period ended; 0: none has */
	uint32_t nr_rounds, nr_rounds_max; /* 0: no limit */
	size_t nr_lines;
};

static int draw(struct view *view)
{
	struct sb_canvas *canvas = &view->top.canvas;
	int err;

	sb_term_size(view->term, &canvas->nr_cols, &canvas->nr_rows);
	err = sb_top_draw(&view->top);
	if (!err)
		err = sb_term_show(view->term, canvas);
	if (!err)
		return 0;
	sb_term_leave(view->term);
	return sb_err(err, "top: cannot draw on the terminal; -b prints tables instead");
}

static int print(struct view *view, struct sb_run *run)
{
	sb_top_print(&view->top, view->nr_lines, stdout);
	if (!fflush(stdout))
		return 0;
	/* The reader has enough: that is its right. */
	run->end = SB_END_ORDERED;
	return errno == EPIPE ? 0 : sb_err(-errno, "cannot write to standard output");
}

static void know_run(struct view *view, const struct sb_run *run)
{
	struct sb_top_metadata *metadata = &view->top.metadata;
	struct sb_run_figures figures;

	sb_run_figures(run, 0, &figures);
	*metadata = (struct sb_top_metadata){
		.kind = run->config->views.at[0]->kind->name,
		.unit = run->units[0].name,
		.targets = view->targets.s,
		.divisor = run->units[0].divisor,
		.hz = run->config->views.at[0]->timer ? run->config->freq_hz : 0,
		.nr_cpus = figures.session.nr_cpus,
		.nr_samples = figures.nr_samples,
		.nr_lost = figures.nr_lost,
		.nr_cut = figures.nr_cut,
		.run_ns = figures.wall_ns,
	};
}

static int show(struct view *view, struct sb_run *run)
{
	bool is_enough = view->nr_rounds_max && view->nr_rounds >= view->nr_rounds_max;
	int err = view->top.is_paused ? 0 : sb_top_update(&view->top);

	if (err)
		return sb_err(err, "top: cannot add up the samples for the table");
	if (view->term && run->end_ns) {
		sb_term_leave(view->term);
		return 0;
	}
	/* The end of the run that the last table brought about. */
	if (is_enough)
		return 0;
	err = view->term ? draw(view) : print(view, run);
	if (++view->nr_rounds == view->nr_rounds_max)
		run->end = SB_END_ORDERED;
	return err;
}

static int take(struct sb_run_sink *sink, struct sb_run *run)
{
	struct view *view = (struct view *)sink;
	uint64_t now_ns = run->end_ns ? run->end_ns : sb_now_ns();
	uint64_t since_ns = view->taken_ns ? view->taken_ns : run->start_ns;
	bool is_new;
	int err = sb_profile_seal(run->profile);

	if (!err)
		err = sb_top_data_add(&view->top.data, run->profile,
				      now_ns > since_ns ? now_ns - since_ns : 0);
	if (!err)
		err = sb_run_renew_profile(run, &is_new);
	if (err)
		return sb_err(err, "top: cannot add the new samples to those before");
	view->taken_ns = now_ns;
	know_run(view, run);
	return show(view, run);
}

/* So that keys do something before the first period is over. */
static int begin(struct sb_run_sink *sink, struct sb_run *run)
{
	struct view *view = (struct view *)sink;
	int err = sb_top_update(&view->top);

	if (err)
		return sb_err(err, "top: cannot add up the samples for the table");
	know_run(view, run);
	return draw(view);
}

static int on_readable(struct sb_run_sink *sink, struct sb_run *run)
{
	struct view *view = (struct view *)sink;
	int err = sb_term_read(view->term), key;

	if (err) {
		sb_term_leave(view->term);
		return sb_err(err,
			      "top: cannot read keys, because the terminal was closed; top ends");
	}
	for (;;) {
		key = sb_term_key(view->term);
		if (key == SB_KEY_NONE || key == SB_KEY_REDRAW)
			break;
		err = sb_top_press(&view->top, key);
		if (err)
			return sb_err(err, "top: cannot add up the samples for the table");
	}
	if (view->top.is_over) {
		run->end = SB_END_ORDERED;
		return 0;
	}
	return draw(view);
}

/* "process 1302, 1400", "all processes", for the first line of the screen. */
static int name_targets(const struct sb_record_opts *opts, struct sb_str *text)
{
	const struct sb_targets *targets = &opts->run.targets;
	size_t i;
	int err = 0;

	if (opts->run.command)
		return sb_str_addf(text, "command '%s'", opts->run.command[0]);
	for (i = 0; i < targets->tgids.nr && !err; i++)
		err = sb_str_addf(text, "%s%s%u", i ? "," : "process ",
				  targets->tgids.at[i].rule & SB_RULE_DENY ? "!" : "",
				  targets->tgids.at[i].pid);
	for (i = 0; i < targets->tids.nr && !err; i++)
		err = sb_str_addf(text, "%s%u", i ? "," : "thread ", targets->tids.at[i].pid);
	for (i = 0; i < targets->nr_comms && !err; i++)
		err = sb_str_addf(text, "%s%s", text->len ? "," : "", targets->comms[i].glob);
	for (i = 0; i < targets->nr_cgroups && !err; i++)
		err = sb_str_addf(text, "%s%s", text->len ? "," : "", targets->cgroups[i].path);
	for (i = 0; i < targets->nr_uids && !err; i++)
		err = sb_str_addf(text, "%suser %u", text->len ? "," : "", targets->uids[i].uid);
	if (!err && !sb_record_opts_has_target(opts))
		err = sb_str_addf(text, "%sall processes", text->len ? "," : "");
	if (!err && opts->run.all)
		err = sb_str_add(text, "all processes");
	return err;
}

static int check(struct sb_record_opts *opts, bool has_screen)
{
	if (!opts->every_ns)
		opts->every_ns = EVERY_NS_DEFAULT;
	if (!opts->window_ns)
		opts->window_ns =
			WINDOW_NS_DEFAULT > opts->every_ns ? WINDOW_NS_DEFAULT : opts->every_ns;
	if (opts->every_ns < EVERY_NS_MIN)
		sb_err(0, "top: --every must be at least 100ms");
	else if (opts->window_ns < opts->every_ns)
		sb_err(0, "top: --window is shorter than --every; choose a longer one");
	else if (opts->window_ns / opts->every_ns > SB_TOP_SLOTS_MAX)
		sb_err(0, "top: --window must be at most %u times --every", SB_TOP_SLOTS_MAX);
	else if (has_screen && opts->run.command)
		sb_err(0, "top: the command would write over the screen: use -b, or start "
			  "the command in another terminal and use -p");
	else
		return -1;
	return SB_EXIT_USAGE;
}

/* Characters that the locale has not are shown as '?'; without UTF-8 these are many. */
static void choose_characters(void)
{
	if (!setlocale(LC_CTYPE, "") || !sb_streq(nl_langinfo(CODESET), "UTF-8"))
		setlocale(LC_CTYPE, "C.UTF-8");
}

static int prepare(struct view *view, struct sb_record_opts *opts)
{
	bool has_screen = sb_term_is_there(STDOUT_FILENO) && !opts->batch;
	int status = check(opts, has_screen), err;

	if (status >= 0)
		return status;
	opts->modules = true;
	view->nr_lines = opts->limit ? opts->limit : LINES_DEFAULT;
	view->top.data.nr_slots = (size_t)(opts->window_ns / opts->every_ns);
	view->sink.period_ns = opts->every_ns;
	view->sink.take = take;
	err = name_targets(opts, &view->targets);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "top: cannot name the targets");
	if (has_screen) {
		choose_characters();
		err = sb_term_new(&view->term);
	}
	if (err)
		return sb_fail(SB_EXIT_FAILED, err,
			       "top: cannot prepare the terminal; -b prints tables instead");
	if (view->term) {
		view->sink.fd = sb_term_fd(view->term);
		view->sink.on_readable = on_readable;
		view->sink.begin = begin;
		view->sink.has_terminal = true;
	}
	view->nr_rounds_max = opts->nr_rounds;
	return -1;
}

/* Its events are known by now, and so is its source. */
static int check_view(const struct sb_record_opts *opts)
{
	const struct sb_view *view = opts->run.views.at[0];

	if (!view->follows_pages && !opts->run.view_opts.fallback)
		return -1;
	return sb_fail(SB_EXIT_USAGE, 0,
		       "top: '%s' has amounts and no rates; use 'stackbpf %s -t 10', a run of 10 s",
		       view->kind->name, view->kind->name);
}

int sb_cmd_top(const struct sb_command *command, char **argv)
{
	struct view view = {};
	struct sb_record record;
	int status;

	sb_record_init(&record);
	status = sb_record_parse(&record.opts, command, argv);
	if (status < 0)
		status = sb_record_find_events(&record.opts);
	if (status < 0)
		status = check_view(&record.opts);
	if (status < 0)
		status = prepare(&view, &record.opts);
	if (status < 0)
		status = sb_record_go(&record, &view.sink);
	sb_term_free(view.term);
	sb_record_release(&record);
	sb_top_release(&view.top);
	sb_str_release(&view.targets);
	return status;
}
