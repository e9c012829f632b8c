// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/store_opts.h"
#include "cli/term.h"
#include "cli/wrap.h"
#include "export/file.h"
#include "export/run.h"

#define TOKEN_MAX   4096u
#define FILE_SCHEME "file:"
#define TIMEOUT_MS  30000u
#define PROGRESS_NS (200 * SB_NS_PER_MS)
#define EVERY_S	    60u
#define EVERY_S_MAX 86400u

/* What --to says: where to, or, if it is a time, until when. */
struct to {
	const char *place, *time;
};

struct export_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args store;
	struct to to;
	sb_vec_str headers;
	uint64_t every_ns, timeout_ns;
	uint32_t attrs;
	bool is_follow;
	const char *token_file, *ca_file, *state_dir;
};

static int parse_to(void *field, const char *value, const char **ret_why)
{
	struct to *to = field;
	size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz-");

	if (len && value[len] == ':')
		to->place = value;
	else
		to->time = value;
	return 0;
}

static const struct sb_opt_word attrs_words[] = {
	{ "both", SB_OTLP_BOTH },
	{ "inline", SB_OTLP_INLINE },
	{ "ref", SB_OTLP_REF },
	{},
};

/* clang-format off */
const struct sb_opt sb_export_rows[] = {
	SB_STORE_DIR_ROW(struct export_opts, store),
	{ .name = "to", .metavar = "PLACE", .type = SB_OPT_PARSED, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, to), .parse = parse_to,
	  .suggest = "clickhouse:http:// otlp:http:// pyroscope:http:// pprof-dir: file:",
	  .help = "where to send the data, see above. A second --to with a TIME is the end "
		  "of the time range (default now): --to pprof-dir:DIR --from now-2d --to now-1d" },
	{ .name = "from", .metavar = "TIME", .type = SB_OPT_TIME, .group = SB_OPT_STORE,
	  .offset = offsetof(struct export_opts, store.from), .suggest = SB_STORE_FROM_SUGGEST,
	  .help = "start of the time range, which is sent even if it was sent before; with "
		  "--follow: where the first export begins" },
	{ .name = "kind", .metavar = "KIND", .type = SB_OPT_STRING, .group = SB_OPT_STORE,
	  .offset = offsetof(struct export_opts, store.kind), .complete = sb_complete_stored_kind,
	  .help = "send only this kind of profile (default: all):", .help_values = sb_view_kind_names },
	{ .name = "tag", .metavar = "RULE", .type = SB_OPT_STRINGS, .group = SB_OPT_STORE,
	  .offset = offsetof(struct export_opts, store.tags),
	  .help = "select series by their tags: KEY=VALUE[,VALUE], KEY!=VALUE, KEY=~REGEX, "
		  "KEY!~REGEX; if repeated, all rules must match" },
	{ .name = "by", .metavar = "KEY[,KEY]", .type = SB_OPT_STRING, .group = SB_OPT_STORE,
	  .offset = offsetof(struct export_opts, store.by),
	  .help = "tags that make a series (default: all but pid, tid and labels)" },
	{ .name = "every", .metavar = "TIME", .type = SB_OPT_DURATION, .group = SB_OPT_WINDOW,
	  .offset = offsetof(struct export_opts, every_ns), .suggest = "60s 10s 10m",
	  .help = "length of the periods that are sent, a multiple of 10 s (default 60s)" },
	{ .name = "follow", .letters = "f", .type = SB_OPT_ON, .group = SB_OPT_WINDOW,
	  .offset = offsetof(struct export_opts, is_follow),
	  .help = "keep running, and send new data as it is recorded" },
	{ .name = "otlp-attrs", .metavar = "HOW", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, attrs), .words = attrs_words,
	  .help = "how OTLP names resource attributes: inline, ref (as references into the "
		  "string table), both (default)" },
	{ .name = "header", .letters = "H", .metavar = "LINE", .type = SB_OPT_STRINGS, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, headers),
	  .help = "add this header to each HTTP request, such as 'X-Scope-OrgID: 1'" },
	{ .name = "token-file", .metavar = "FILE", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, token_file), .complete = sb_complete_file,
	  .help = "send the first line of FILE as 'Authorization: Bearer ...'" },
	{ .name = "ca-file", .metavar = "FILE", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, ca_file), .complete = sb_complete_file,
	  .help = "trust the certificates in FILE instead of the system's" },
	{ .name = "timeout", .metavar = "TIME", .type = SB_OPT_DURATION, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, timeout_ns),
	  .help = "abandon a request after this time (default 30s)" },
	{ .name = "state", .metavar = "DIR", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct export_opts, state_dir), .complete = sb_complete_directory,
	  .help = "directory that keeps how far the export has come (default STORE/"
		  SB_EXPORT_DIR ")" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

struct export
{
	const struct export_opts *opts;
	struct sb_export_plan plan;
	struct sb_ask ask;
	struct sb_str what;
	char *token;
	int dir_fd, stop_fd;
	/* The progress line on the terminal. */
	bool has_progress;
	uint64_t shown_ns;
	/* Where the line began: the rest was sent by earlier exports. */
	int64_t begin_s;
	uint64_t begin_pieces;
};

static void clear_progress(const struct export *export)
{
	if (export->has_progress)
		sb_wrap_clear_line();
}

static const char *pieces(const struct export *export, uint64_t nr)
{
	const char *address;

	return sb_export_find(export->plan.to, &address)->is_http
		       ? sb_plural(nr, "request", "requests")
		       : sb_plural(nr, "file", "files");
}

static void progress(void *arg, const struct sb_export_state *state, int64_t to_s)
{
	struct export *export = arg;
	uint64_t now_ns = sb_now_ns(), nr;
	char line[128], until[SB_ASK_TIME_BYTES];
	int n;

	if (!export->has_progress || state->next_s >= to_s ||
	    (export->shown_ns && now_ns - export->shown_ns < PROGRESS_NS))
		return;
	if (!export->shown_ns) {
		export->begin_s = state->next_s;
		/* The first call comes after the first piece of a period. */
		export->begin_pieces =
			state->nr_pieces - (state->nr_pieces && state->nr_part_pieces);
	}
	export->shown_ns = now_ns;
	nr = state->nr_pieces - export->begin_pieces;
	sb_ask_print_time(state->next_s, until);
	n = snprintf(line, sizeof(line), "\r\033[Kstackbpf: export: %.0f %%, up to %s; %llu %s",
		     100.0 * (double)(state->next_s - export->begin_s) /
			     (double)(to_s - export->begin_s),
		     until, (unsigned long long)nr, pieces(export, nr));
	(void)!write(STDERR_FILENO, line, (size_t)n);
}

static void say(void *arg, bool is_bad, const char *sentence)
{
	clear_progress(arg);
	if (is_bad)
		sb_warn("export: %s", sentence);
	else
		sb_info("export: %s", sentence);
}

/* ---- options ---- */

static int __attribute__((format(printf, 1, 2))) usage(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return sb_fail(SB_EXIT_USAGE, 0, "export: %s", text);
}

static bool is_file(const char *place)
{
	return !strncmp(place, FILE_SCHEME, strlen(FILE_SCHEME));
}

static int check_place(const struct export_opts *opts)
{
	const char *place = opts->to.place, *address;

	if (!place && opts->to.time)
		return usage("--to %s is not a place, such as %s; 'stackbpf export --help' lists "
			     "all places",
			     opts->to.time, sb_export_at(0)->example);
	if (!place)
		return usage("--to is missing, such as --to %s; 'stackbpf export --help' "
			     "lists all places",
			     sb_export_at(0)->example);
	if (sb_export_find(place, &address) || is_file(place))
		return -1;
	return usage("--to %s: this is not a kind of place that stackbpf can send to; "
		     "'stackbpf export --help' lists all",
		     place);
}

static int check_headers(const sb_vec_str *headers)
{
	for (size_t i = 0; i < headers->nr; i++)
		if (!sb_http_header_is_good(headers->at[i]))
			return usage("--header '%s': the form is 'Name: value'", headers->at[i]);
	return -1;
}

/* Its first line. */
static int read_token(struct export *export)
{
	const char *path = export->opts->token_file;
	size_t len, i;
	int err;

	if (!path)
		return -1;
	err = sb_read_file(path, TOKEN_MAX, &export->token, &len);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "export: cannot read the token in '%s'", path);
	export->token[strcspn(export->token, "\r\n")] = '\0';
	for (i = 0; export->token[i]; i++)
		if ((unsigned char)export->token[i] <= ' ' ||
		    (unsigned char)export->token[i] >= 0x7f)
			break;
	if (!i || export->token[i])
		return usage("--token-file %s: the first line of the file is not a token", path);
	export->plan.http.token = export->token;
	return -1;
}

/* Of an address of this machine it does not matter. */
static bool is_in_the_clear(const char *place)
{
	static const char *const own[] = { "127.", "localhost", "[::1]" };
	const char *host = strstr(place, ":http://");

	for (size_t i = 0; host && i < SB_ARRAY_SIZE(own); i++)
		if (!strncmp(host + 8, own[i], strlen(own[i])))
			return false;
	return host;
}

static int take_times(struct export *export)
{
	const struct export_opts *opts = export->opts;
	struct sb_export_plan *plan = &export->plan;
	const char *from = opts->store.from, *to = opts->to.time, *why;
	int64_t now_s = time(NULL);
	uint64_t every_s = opts->every_ns / SB_NS_PER_SEC,
		 timeout_ms = opts->timeout_ns / SB_NS_PER_MS;
	int err;

	if (opts->every_ns &&
	    (opts->every_ns % (SB_STORE_BLOCK_S * SB_NS_PER_SEC) || every_s > EVERY_S_MAX))
		return usage("--every must be a multiple of 10 s, and at most a day");
	if (opts->timeout_ns && (!timeout_ms || timeout_ms > INT32_MAX))
		return usage("--timeout must be at least 1 ms and less than 24 days");
	plan->every_s = every_s ? (uint32_t)every_s : EVERY_S;
	plan->http.timeout_ms = timeout_ms ? timeout_ms : TIMEOUT_MS;
	if (from && sb_ask_time(from, now_s, &plan->from_s))
		return usage("--from %s is not a time: " SB_ASK_TIME_HELP, from);
	if (to && sb_ask_time(to, now_s, &plan->to_s))
		return usage("--to %s is neither a place nor a time: " SB_ASK_TIME_HELP, to);
	/* The range of a file. Without an end, --follow may begin in the future. */
	err = sb_ask_range(&export->ask, from, to, now_s, &why);
	if (err && to)
		return usage("--from %s is not before --to %s", from, to);
	if (err && is_file(opts->to.place))
		return usage("--from %s is in the future; there is nothing to export yet", from);
	if (to)
		plan->to_s = export->ask.to_s;
	return -1;
}

/* What makes this question another one, as text for people: "kind=oncpu region=eu by=service". */
static int describe(struct export *export)
{
	const struct sb_store_args *args = &export->opts->store;
	struct sb_str *what = &export->what;
	int err = sb_str_add(what, "");

	if (args->kind)
		err = sb_str_addf(what, "kind=%s ", args->kind);
	for (size_t i = 0; i < args->tags.nr && !err; i++)
		err = sb_str_addf(what, "%s ", args->tags.at[i]);
	if (args->by && !err)
		err = sb_str_addf(what, "by=%s ", args->by);
	if (!err && what->len)
		what->s[--what->len] = '\0';
	return err;
}

static int take_options(struct export *export)
{
	const struct export_opts *opts = export->opts;
	struct sb_export_plan *plan = &export->plan;
	int status = check_place(opts);

	status = status < 0 ? check_headers(&opts->headers) : status;
	status = status < 0 ? take_times(export) : status;
	status = status < 0 ? sb_store_args_rules(&opts->store.tags, "export", &export->ask)
			    : status;
	status = status < 0 ? read_token(export) : status;
	if (status >= 0)
		return status;
	if (describe(export))
		return sb_fail(SB_EXIT_FAILED, -ENOMEM,
			       "export: cannot select kinds and tags of the store");
	if (export->token && is_in_the_clear(opts->to.place))
		sb_warn("export: the token is sent over the network unencrypted; use "
			"https:// to protect it");
	plan->to = opts->to.place;
	plan->what = export->what.s ? export->what.s : "";
	plan->opts.attrs = opts->attrs;
	plan->http.headers = opts->headers.at;
	plan->http.nr_headers = opts->headers.nr;
	plan->http.ca_file = opts->ca_file;
	plan->rules = &export->ask.rules;
	plan->kind = opts->store.kind ? opts->store.kind : export->ask.kind;
	plan->by = opts->store.by;
	plan->is_follow = opts->is_follow;
	plan->say = say;
	plan->progress = progress;
	plan->arg = export;
	export->has_progress =
		sb_term_is_there(STDERR_FILENO) && !opts->common.quiet && !opts->is_follow;
	return -1;
}

/* ---- running ---- */

static const char *store_dir(const struct export *export)
{
	return export->opts->store.dir ? export->opts->store.dir : SB_STORE_DIR_DEFAULT;
}

static int write_file(struct export *export)
{
	const char *path = export->opts->to.place + strlen(FILE_SCHEME);
	struct sb_ask *ask = &export->ask;
	struct sb_store_answer answer = {};
	int err;

	if (export->opts->is_follow)
		return usage("--follow cannot be used with the single file '%s'; use --to "
			     "pprof-dir:DIR, which writes a file for each period",
			     path);
	ask->by = export->opts->store.by;
	err = export->opts->store.kind ? sb_ask_set_kind(ask, export->opts->store.kind) : 0;
	err = err ?: sb_export_file(export->plan.store, ask, path, &answer);
	if (!err || err == -ENODATA)
		return sb_store_say_answer(&export->opts->store, export->plan.store, ask, &answer);
	if (err == -EINVAL)
		return usage("'%s': no output format has this extension; 'stackbpf help oncpu' "
			     "lists the formats",
			     path);
	return sb_fail(SB_EXIT_FAILED, err, "export: cannot write '%s'", path);
}

static int open_state_dir(struct export *export)
{
	struct sb_str path = {};
	int err;

	/* What is asked for by its time is sent again. */
	if (export->plan.from_s && !export->opts->is_follow)
		return -1;
	if (export->opts->state_dir)
		err = sb_str_add(&path, export->opts->state_dir);
	else
		err = sb_str_addf(&path, "%s/" SB_EXPORT_DIR, store_dir(export));
	if (!err && mkdir(path.s, 0750) && errno != EEXIST)
		err = -errno;
	if (!err)
		export->dir_fd = open(path.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && export->dir_fd < 0)
		err = -errno;
	if (err)
		sb_err(err,
		       "export: cannot save the progress of the export in '%s'; choose "
		       "another directory with --state",
		       path.s ? path.s : "?");
	sb_str_release(&path);
	export->plan.dir_fd = export->dir_fd;
	return err ? SB_EXIT_FAILED : -1;
}

static int catch_signals(struct export *export)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	sigemptyset(&set);
	sb_signals_add_ends(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || sigaction(SIGPIPE, &ignore, NULL))
		return -errno;
	export->stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	export->plan.http.stop_fd = export->stop_fd;
	return export->stop_fd < 0 ? -errno : 0;
}

/* Nobody knows then whether the address is right. */
static void say_nothing_sent(const struct export *export, const struct sb_export_state *state)
{
	const char *why = "the store has no complete period (--every) with the samples that were "
			  "asked for; ";
	const char *step = "run the command again later, or add --follow";

	/* What --to ends may be past. */
	if (export->opts->is_follow || export->plan.to_s)
		step = "choose another time, kind or tag";
	if (state->expired_s) {
		why = "data expired in the store before it could be sent";
		step = "";
	}
	sb_err(0, "export: nothing was sent to '%s', and it was not tried whether it answers: %s%s",
	       state->to, why, step);
}

static void say_sent(const struct export *export, const struct sb_export_state *state)
{
	char until[SB_ASK_TIME_BYTES];

	sb_ask_print_time(state->next_s, until);
	/* Without --follow, --from saves no position, and so has no earlier exports. */
	sb_info("export: '%s' has received everything up to %s: %llu %s, %llu %s, %llu bytes%s",
		state->to, until, (unsigned long long)state->nr_periods,
		sb_plural(state->nr_periods, "period", "periods"),
		(unsigned long long)state->nr_pieces, pieces(export, state->nr_pieces),
		(unsigned long long)state->nr_bytes,
		export->plan.from_s && !export->opts->is_follow ? "" : " since the first export");
}

/* Return: the exit status. */
static int say_end(const struct export *export, const struct sb_export_state *state)
{
	if (state->nr_pieces)
		say_sent(export, state);
	else
		say_nothing_sent(export, state);
	if (state->nr_refused)
		sb_warn("export: the server refused %llu %s since the first export, so what they "
			"held is missing there; to send that time again, use --from and --to",
			(unsigned long long)state->nr_refused,
			sb_plural(state->nr_refused, "request", "requests"));
	if (state->nr_late)
		sb_warn("export: %llu %s time had been sent; to send that time again, use "
			"--from and --to",
			(unsigned long long)state->nr_late,
			sb_plural(state->nr_late, "block came into the store after its",
				  "blocks came into the store after their"));
	if (state->expired_s)
		sb_warn("export: up to %llu s of data expired in the store before it could "
			"be sent; export more often, or keep data longer with --retain of 'stackbpf "
			"record'",
			(unsigned long long)state->expired_s);
	return state->nr_pieces ? SB_EXIT_DATA : SB_EXIT_EMPTY;
}

/* Return: the exit status. */
static int say_error(struct export *export, int err, const struct sb_export_state *state)
{
	struct signalfd_siginfo info;

	switch (err) {
	case -ECANCELED:
		if (export->opts->is_follow)
			return SB_EXIT_DATA;
		if (read(export->stop_fd, &info, sizeof(info)) == sizeof(info))
			return SB_EXIT_SIGNAL + (int)info.ssi_signo;
		break;
	case -EINVAL:
		return SB_EXIT_USAGE;
	case -ELIBACC:
		sb_err(0, "export: cannot load libcurl.so.4, which is needed for HTTP: install "
			  "it (Debian: libcurl4)");
		break;
	case -EBUSY:
		sb_err(0,
		       "export: another process is sending the same data to '%s' already; stop "
		       "it first",
		       state->to);
		break;
	case -EAGAIN:
		sb_err(0, "export: stopped before everything was sent; run the same command "
			  "again to continue");
		break;
	case -EPERM:
		break;
	case -EBADMSG:
		sb_err(0,
		       "export: a state file (*.state) in '%s%s' is damaged: delete it, and the "
		       "export starts over",
		       export->opts->state_dir ? export->opts->state_dir : store_dir(export),
		       export->opts->state_dir ? "" : "/" SB_EXPORT_DIR);
		break;
	default:
		sb_err(err, "export: cannot send to '%s'", state->to);
	}
	return SB_EXIT_FAILED;
}

static int run_plan(struct export *export)
{
	struct sb_export_state state = {};
	int err = sb_export_run(&export->plan, &state);

	clear_progress(export);
	if (err)
		return say_error(export, err, &state);
	return say_end(export, &state);
}

static int run_export(struct export *export)
{
	int status = take_options(export), err;

	status =
		status < 0 ? sb_store_args_open(&export->opts->store, &export->plan.store) : status;
	if (status >= 0)
		return status;
	if (is_file(export->opts->to.place))
		return write_file(export);
	status = open_state_dir(export);
	if (status >= 0)
		return status;
	err = catch_signals(export);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err,
			       "export: cannot set up signal handlers; free memory or file "
			       "descriptors, or allow signalfd(2), and try again");
	return run_plan(export);
}

int sb_cmd_export(const struct sb_command *command, char **argv)
{
	struct export_opts fields = {};
	struct export export = { .opts = &fields, .dir_fd = -1, .stop_fd = -1 };
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse_options(command, &opts, argv, "place with --to");

	if (status < 0)
		status = run_export(&export);
	sb_store_close(export.plan.store);
	sb_ask_release(&export.ask);
	sb_str_release(&export.what);
	free(export.token);
	sb_closep(&export.dir_fd);
	sb_closep(&export.stop_fd);
	sb_store_args_release(&fields.store);
	sb_vec_release(&fields.headers);
	sb_opts_release(&opts);
	return status;
}
