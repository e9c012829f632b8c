// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program: flamegraph [OPTIONS] [FILE ...] > x.svg. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/signals.h"
#include "base/str.h"
#include "base/version.h"
#include "flamegraph/embed.h"
#include "flamegraph/fg.h"
#include "flamegraph/opts.h"

#define SAMPLES_MIN 100 /* with fewer, widths are unreliable */
#define NR_ROWS_MAX 64
#define HELP_COLUMN 27

SB_DEFINE_CLEANUP(struct sb_output_file, sb_output_file_free)

enum { EXIT_DRAWN, EXIT_FAILED, EXIT_USAGE };

enum { OPT_EXTRACT = 256, OPT_ROWS };

struct args {
	struct sb_fg_opts *opts;
	const char *output;
	bool extract, help, version, quiet;
	char **files;
	int nr_files;
};

static const struct option own_options[] = {
	{ "extract", no_argument, NULL, OPT_EXTRACT }, { "output", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },	       { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
};

static int usage(const char *what, const char *which)
{
	sb_err(0, "%s '%s' (see flamegraph --help)", what, which);
	return EXIT_USAGE;
}

/* Print a help text at column 27, wrapped to 80 columns. */
static void print_wrapped(const char *text)
{
	size_t col = HELP_COLUMN, len;

	for (; *text; text += len + strspn(text + len, " ")) {
		len = strcspn(text, " ");
		if (col + len + 1 > 79 && col > HELP_COLUMN) {
			printf("\n%*s", HELP_COLUMN, "");
			col = HELP_COLUMN;
		}
		col += (size_t)printf("%s%.*s", col > HELP_COLUMN ? " " : "", (int)len, text);
	}
	putchar('\n');
}

static void print_help(void)
{
	const struct sb_fg_opt *row;
	char left[40];

	printf("usage: flamegraph [OPTIONS] [FILE ...] > OUT.svg\n"
	       "       flamegraph --extract IN.svg\n"
	       "\n"
	       "Draw a flame graph of stacks: folded stacks, the output of perf script, or\n"
	       "SystemTap backtraces (.bt). Several files are added up. Without FILE, or with -,\n"
	       "standard input is read.\n"
	       "\n");
	for (row = sb_fg_opt_rows; row->name; row++) {
		if (!row->help)
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", row->name, row->metavar ? " " : "",
			 row->metavar ? row->metavar : "");
		printf("      %-20s ", left);
		print_wrapped(row->help);
	}
	printf("      --extract            print the folded stacks kept in a flame graph that\n"
	       "                           this program or stackbpf drew\n"
	       "  -o, --output FILE        write to FILE, which appears only when it is complete\n"
	       "  -q, --quiet              print no warnings\n"
	       "  -h, --help               show this help\n"
	       "  -V, --version            show the version\n");
}

/* Return: the table for getopt_long(), in static memory. */
static const struct option *long_options(void)
{
	static struct option options[NR_ROWS_MAX];
	size_t nr = SB_ARRAY_SIZE(own_options), i;

	memcpy(options, own_options, sizeof(own_options));
	for (i = 0; sb_fg_opt_rows[i].name && nr < NR_ROWS_MAX - 1; i++)
		options[nr++] = (struct option){
			.name = sb_fg_opt_rows[i].name,
			.has_arg = sb_fg_opt_rows[i].metavar ? required_argument : no_argument,
			.val = OPT_ROWS + (int)i,
		};
	return options;
}

static int set_row(struct args *args, const struct sb_fg_opt *row, const char *value)
{
	sb_cleanup(sb_str_release) struct sb_str expects = {};
	int err = sb_fg_opts_set(args->opts, row->name, value);

	if (!err)
		return 0;
	if (err == -EINVAL && !sb_fg_opt_expects(row, &expects))
		sb_err(0, "--%s '%s': expected %s", row->name, value, expects.s);
	else
		sb_err(err, "cannot keep the value of --%s", row->name);
	return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

static int wrong_option(const char *arg)
{
	struct sb_nearest nearest = {};
	const struct option *row;
	char typed[32];

	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(arg, "="), arg);
	nearest.typed = typed + strspn(typed, "-");
	for (row = long_options(); row->name; row++)
		sb_nearest_offer(&nearest, row->name);
	sb_err(0, "'%s' is not an option, or is used wrongly; %s%s%s", arg,
	       nearest.name ? "did you mean '--" : "'flamegraph --help' lists them",
	       nearest.name ? nearest.name : "", nearest.name ? "'?" : "");
	return EXIT_USAGE;
}

static int take_option(struct args *args, int opt, char **argv)
{
	switch (opt) {
	case 'o':
		args->output = optarg;
		return 0;
	case 'q':
		args->quiet = true;
		return 0;
	case 'h':
		args->help = true;
		return 0;
	case 'V':
		args->version = true;
		return 0;
	case OPT_EXTRACT:
		args->extract = true;
		return 0;
	case ':':
		sb_err(0, "option '%s' needs a value (see flamegraph --help)", argv[optind - 1]);
		return EXIT_USAGE;
	case '?':
		return wrong_option(argv[optind - 1]);
	default:
		return set_row(args, &sb_fg_opt_rows[opt - OPT_ROWS], optarg);
	}
}

static int parse(struct args *args, int argc, char **argv)
{
	const struct option *options = long_options();
	int opt, status;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:qhV", options, NULL)) != -1) {
		status = take_option(args, opt, argv);
		if (status)
			return status;
	}
	args->files = argv + optind;
	args->nr_files = argc - optind;
	return 0;
}

static bool is_stdin(const char *path)
{
	return sb_streq(path, "-");
}

/* Return: an exit status. */
static int read_file(struct sb_fg *fg, const char *path)
{
	sb_cleanup(sb_closep) int opened = -1;
	const char *name = is_stdin(path) ? "standard input" : path;
	const char *complaint;
	int fd = STDIN_FILENO, err;

	if (!is_stdin(path)) {
		fd = opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0) {
			sb_err(-errno, "cannot read '%s'", path);
			return EXIT_FAILED;
		}
	} else if (isatty(STDIN_FILENO)) {
		sb_info("reading stacks from the terminal until Ctrl-D (see flamegraph --help)");
	}
	err = sb_fg_read(fg, fd);
	while ((complaint = sb_fg_complaint(fg))) {
		if (err == -EINVAL) {
			sb_err(0, "the input '%s' %s", name, complaint);
			return EXIT_FAILED;
		}
		sb_warn("reading '%s': %s", name, complaint);
	}
	if (err) {
		sb_err(err, "cannot read '%s'", name);
		return EXIT_FAILED;
	}
	return 0;
}

static int read_files(struct sb_fg *fg, const struct args *args)
{
	int i, status;

	if (!args->nr_files)
		return read_file(fg, "-");
	for (i = 0; i < args->nr_files; i++) {
		status = read_file(fg, args->files[i]);
		if (status)
			return status;
	}
	return 0;
}

static bool is_samples(const char *unit)
{
	return !unit || sb_streq(unit, "samples");
}

static void warn_about_counts(const struct sb_fg *fg, const struct sb_fg_opts *opts)
{
	double total = sb_fg_total(fg);

	if (total > 0 && total < SAMPLES_MIN && is_samples(opts->countname) &&
	    is_samples(sb_fg_metadata(fg)->unit))
		sb_warn("there %s only %g %s, so widths are rough estimates; sample longer "
			"or more often",
			total == 1 ? "is" : "are", total, total == 1 ? "sample" : "samples");
	if (opts->total > 0 && opts->total < total)
		sb_warn("ignoring --total %.12g and using the sum of all weights, which is greater; "
			"give at least %.12g",
			opts->total, total);
}

/*
 * Block signals while the file has its temporary name: they would leave it behind. Drawing takes
 * less than a second.
 */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Report an error of writing. Return: an exit status. */
static int fail_writing(const char *output, int err)
{
	/* Whoever closed the pipe knows it. */
	if (err != -EPIPE && output)
		sb_err(err, "cannot write '%s'", output);
	else if (err != -EPIPE)
		sb_err(err, "cannot write to standard output");
	return EXIT_FAILED;
}

struct job {
	const struct args *args;
	struct sb_fg *fg; /* NULL: extract */
};

static int extract(const char *path, FILE *out)
{
	sb_cleanup(sb_fclosep) FILE *opened = NULL;
	FILE *in = stdin;

	if (!is_stdin(path)) {
		opened = fopen(path, "re");
		if (!opened)
			return -errno;
		in = opened;
	}
	return sb_fg_extract(in, out);
}

static int produce(const struct job *job, FILE *out)
{
	const struct args *args = job->args;

	if (job->fg)
		return sb_fg_render(job->fg, args->opts, out);
	return extract(args->nr_files ? args->files[0] : "-", out);
}

/* Return: what produce() returned, or the error of writing. */
static int produce_to_stdout(const struct job *job)
{
	int result = produce(job, stdout), err = 0;

	if (fflush(stdout))
		err = -errno;
	if (fclose(stdout) && !err)
		err = -errno;
	return result && result != -ENODATA ? result : err ? err : result;
}

static int produce_to_file(const struct job *job)
{
	sb_cleanup(sb_output_file_freep) struct sb_output_file *file = NULL;
	int result, err;

	hold_signals();
	err = sb_output_file_new(job->args->output, &file);
	if (err)
		return err;
	result = produce(job, sb_output_file_stream(file));
	/* A picture that says that it is empty is valid; an extracted file without data is not. */
	if (result && (result != -ENODATA || !job->fg))
		return result;
	err = sb_output_file_commit(file);
	return err ? err : result;
}

static int write_result(const struct job *job)
{
	return job->args->output ? produce_to_file(job) : produce_to_stdout(job);
}

static int run_extract(const struct args *args)
{
	const struct job job = { .args = args };
	const char *path = args->nr_files ? args->files[0] : "standard input";
	int err;

	if (args->nr_files > 1)
		return usage("--extract takes only one file; leave out", args->files[1]);
	err = write_result(&job);
	switch (err) {
	case 0:
		return EXIT_DRAWN;
	case -ENODATA:
		sb_err(0,
		       "cannot extract from '%s', which contains no stacks: it was not drawn by "
		       "this program or by stackbpf, or with --no-embed; draw it again",
		       path);
		return EXIT_FAILED;
	case -EBADMSG:
		sb_err(0,
		       "cannot extract stacks from '%s', because its data is damaged; draw it again",
		       path);
		return EXIT_FAILED;
	default:
		if (err != -EPIPE)
			sb_err(err, "cannot extract the stacks of '%s'", path);
		return EXIT_FAILED;
	}
}

/* Check that the output can be written before reading, which may take minutes. */
static int check_output(const char *path)
{
	sb_cleanup(sb_output_file_freep) struct sb_output_file *file = NULL;

	return path ? sb_output_file_new(path, &file) : 0;
}

static int run_draw(const struct args *args)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	int err = check_output(args->output), status;

	if (err)
		return fail_writing(args->output, err);
	err = sb_fg_new(&fg);
	if (err) {
		sb_err(err, "cannot prepare the picture");
		return EXIT_FAILED;
	}
	sb_fg_shape(fg, args->opts);
	status = read_files(fg, args);
	if (status)
		return status;
	warn_about_counts(fg, args->opts);
	err = write_result(&(struct job){ .args = args, .fg = fg });
	if (err == -ENODATA) {
		sb_err(0,
		       "the input has no stacks, so the picture is empty; check what wrote the input");
		return EXIT_USAGE;
	}
	return err ? fail_writing(args->output, err) : EXIT_DRAWN;
}

static void ignored_once(int sig) {}

/*
 * In `stackbpf oncpu | flamegraph > x.svg`, Ctrl-C means: stop sampling and draw. Both programs get
 * it, so here the first one is ignored, and the second one ends the program.
 */
static void let_first_interrupt_pass(void)
{
	const struct sigaction action = { .sa_handler = ignored_once,
					  .sa_flags = (int)SA_RESETHAND };

	if (!isatty(STDIN_FILENO))
		sigaction(SIGINT, &action, NULL);
}

int main(int argc, char **argv)
{
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *opts = NULL;
	struct args args = {};
	int status;

	sb_log_init("flamegraph", SB_LOG_INFO);
	sb_signals_survive_limit();
	if (sb_fg_opts_new(&opts)) {
		sb_err(-ENOMEM, "cannot keep the options of the command line");
		return EXIT_FAILED;
	}
	args.opts = opts;
	status = parse(&args, argc, argv);
	if (status)
		return status;
	if (args.quiet)
		sb_log_init("flamegraph", SB_LOG_ERR);
	if (args.help || args.version) {
		if (args.help)
			print_help();
		else
			sb_version_print("flamegraph");
		/* A write that failed before the last one is only in ferror(). */
		return fflush(stdout) || ferror(stdout) ? fail_writing(NULL, -errno) : 0;
	}
	let_first_interrupt_pass();
	return args.extract ? run_extract(&args) : run_draw(&args);
}
