// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sbsym: the symbolizer as a command. It prints one line for each frame; see sbsym(1). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/version.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

/* Addresses looked up at a time; also how long a reader of our output waits for a full pipe. */
#define BATCH_MAX      4096u
#define OUTPUT_BYTES   (64u << 10)
#define DEBUG_DIRS_MAX 16

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_TARGET = 5 };
enum style { STYLE_PLAIN, STYLE_LLVM };

struct options {
	struct sb_symbolizer_opts sym;
	const char *debug_dirs[DEBUG_DIRS_MAX + 1];
	size_t nr_debug_dirs;
	enum style style;
	bool show_addresses, are_returns;
};

struct run {
	const struct options *opts;
	struct sb_symbolizer *sym;
	const char *target;
	uint32_t tgid; /* 0: a file, or the kernel */
	bool is_kernel;
	struct sb_sym_req reqs[BATCH_MAX];
	size_t nr_reqs;
	struct sb_str out;
	bool is_unwritten; /* standard output has failed */
};

/* Wrong use: say what. */
#define wrong(...) (sb_err(0, __VA_ARGS__), -EINVAL)

static const char usage_text[] =
	"usage: sbsym [OPTIONS] PID|FILE|kernel [ADDR...]\n"
	"Print the functions at hexadecimal addresses of a process, an ELF file or the\n"
	"kernel. Without ADDR, addresses are read from standard input, one per line.\n"
	"\n"
	"  -i, --[no-]inline     show inlined functions (default)\n"
	"  -l, --[no-]lines      show source files and lines (default)\n"
	"  -r, --return          the addresses are return addresses: look up the call\n"
	"                        instruction before each of them\n"
	"  -a, --addresses       print each address before its frames\n"
	"      --demangle=HOW    how to demangle names: short (default), full or off\n"
	"      --no-demangle     the same as --demangle=off\n"
	"      --style=STYLE     plain (default), or llvm: two lines per frame, the\n"
	"                        function and file:line\n"
	"      --debug-dir=DIR   search for debug files in DIR; can be repeated\n"
	"      --debuginfod      download debug files from $DEBUGINFOD_URLS\n"
	"      --kallsyms=FILE   read kernel symbols from FILE (default /proc/kallsyms)\n"
	"  -h, --help            show this help\n"
	"  -V, --version         show the version\n";

enum {
	OPT_NO_INLINE = 256,
	OPT_NO_LINES,
	OPT_DEMANGLE,
	OPT_NO_DEMANGLE,
	OPT_STYLE,
	OPT_DEBUG_DIR,
	OPT_DEBUGINFOD,
	OPT_KALLSYMS,
};

static const struct option long_options[] = {
	{ "inline", no_argument, NULL, 'i' },
	{ "no-inline", no_argument, NULL, OPT_NO_INLINE },
	{ "lines", no_argument, NULL, 'l' },
	{ "no-lines", no_argument, NULL, OPT_NO_LINES },
	{ "return", no_argument, NULL, 'r' },
	{ "addresses", no_argument, NULL, 'a' },
	{ "demangle", required_argument, NULL, OPT_DEMANGLE },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "style", required_argument, NULL, OPT_STYLE },
	{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR },
	{ "debuginfod", no_argument, NULL, OPT_DEBUGINFOD },
	{ "kallsyms", required_argument, NULL, OPT_KALLSYMS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{},
};

/* Options with a value. Return: 0 or -EINVAL, of which was told. */
static int set_value(struct options *opts, int opt, const char *value)
{
	static const char *const hows[] = { "short", "full", "off" };
	size_t i;

	switch (opt) {
	case OPT_DEMANGLE:
		for (i = 0; i < SB_ARRAY_SIZE(hows) && !sb_streq(value, hows[i]); i++)
			;
		if (i == SB_ARRAY_SIZE(hows))
			return wrong("--demangle: '%s' is not one of short, full, off", value);
		opts->sym.demangle = (enum sb_sym_demangle)i;
		return 0;
	case OPT_STYLE:
		if (!sb_streq(value, "plain") && !sb_streq(value, "llvm"))
			return wrong("--style: '%s' is not one of plain, llvm", value);
		opts->style = sb_streq(value, "llvm") ? STYLE_LLVM : STYLE_PLAIN;
		return 0;
	case OPT_DEBUG_DIR:
		if (opts->nr_debug_dirs == DEBUG_DIRS_MAX)
			return wrong("--debug-dir was given more than %d times", DEBUG_DIRS_MAX);
		opts->debug_dirs[opts->nr_debug_dirs++] = value;
		opts->sym.debug_dirs = opts->debug_dirs;
		return 0;
	default: /* OPT_KALLSYMS */
		opts->sym.kallsyms_path = value;
		return 0;
	}
}

static int set_flag(struct options *opts, int opt)
{
	switch (opt) {
	case 'i':
	case OPT_NO_INLINE:
		opts->sym.inlines = opt == 'i';
		return 0;
	case 'l':
	case OPT_NO_LINES:
		opts->sym.lines = opt == 'l';
		return 0;
	case 'r':
		opts->are_returns = true;
		return 0;
	case 'a':
		opts->show_addresses = true;
		return 0;
	case OPT_NO_DEMANGLE:
		opts->sym.demangle = SB_SYM_DEMANGLE_OFF;
		return 0;
	case OPT_DEBUGINFOD:
		opts->sym.debuginfod = true;
		return 0;
	default: /* getopt_long() has told of it */
		return -EINVAL;
	}
}

/* Return: the index of the first operand; -EINVAL; -ECANCELED when help or version was printed. */
static int parse_options(int argc, char **argv, struct options *opts)
{
	int opt, err = 0;

	*opts = (struct options){ .sym = { .inlines = true, .lines = true } };
	while (!err && (opt = getopt_long(argc, argv, "+ilrahV", long_options, NULL)) != -1) {
		if (opt == 'h' || opt == 'V') {
			if (opt == 'h')
				printf("%s", usage_text);
			else
				sb_version_print("sbsym");
			return -ECANCELED;
		}
		err = optarg ? set_value(opts, opt, optarg) : set_flag(opts, opt);
	}
	return err ? err : optind;
}

/* Names are other people's bytes: a control character must neither break a line nor drive the
 * terminal. */
static int add_name(struct sb_str *out, const char *name)
{
	size_t len = strlen(name);
	int err = sb_str_addn(out, name, len);

	if (!err)
		sb_replace_controls(out->s + out->len - len, len);
	return err;
}

static int add_hex(struct sb_str *out, uint64_t val)
{
	static const char digits[] = "0123456789abcdef";
	char text[18];
	size_t at = sizeof(text);

	do {
		text[--at] = digits[val & 15];
		val >>= 4;
	} while (val);
	text[--at] = 'x';
	text[--at] = '0';
	return sb_str_addn(out, text + at, sizeof(text) - at);
}

/* "[libc.so.6+0x1200]+0x34" behind the start of a function, "[libc.so.6+0x1234]", "[anon]",
 * "[unknown]" */
static int add_unnamed(struct sb_str *out, const struct sb_sym_frame *frame)
{
	int err;

	if (!frame->module[0])
		return sb_str_add(out, "[unknown]");
	if (frame->module[0] == '[' && frame->kind == SB_SYM_USER)
		return add_name(out, frame->module);
	err = frame->module[0] == '[' ? 0 : sb_str_addc(out, '[');
	err = err ? err : add_name(out, frame->module);
	if (frame->module[0] == '[')
		out->s[--out->len] = '\0'; /* the bracket goes behind the offset */
	err = err ? err : sb_str_addc(out, '+');
	err = err ? err
		  : add_hex(out, frame->module_addr - (frame->has_start ? frame->func_offset : 0));
	err = err ? err : sb_str_addc(out, ']');
	if (err || !frame->has_start)
		return err;
	err = sb_str_addc(out, '+');
	return err ? err : add_hex(out, frame->func_offset);
}

static int add_line_number(struct sb_str *out, const struct sb_sym_frame *frame)
{
	int err = frame->file ? add_name(out, frame->file) : sb_str_add(out, "??");

	err = err ? err : sb_str_addc(out, ':');
	return err ? err : sb_str_addu(out, frame->line);
}

/* "name+0xOFFSET file:line [module] (inlined)" */
static int add_plain(struct sb_str *out, const struct sb_sym_frame *frame)
{
	int err;

	if (!frame->name) {
		err = add_unnamed(out, frame);
		err = err ? err : sb_str_add(out, " (");
		err = err ? err : sb_str_add(out, sb_sym_reason_names[frame->reason]);
		return err ? err : sb_str_add(out, ")\n");
	}
	err = add_name(out, frame->name);
	if (!err && !frame->is_inlined) {
		err = sb_str_addc(out, '+');
		err = err ? err : add_hex(out, frame->func_offset);
	}
	if (!err && frame->file) {
		err = sb_str_addc(out, ' ');
		err = err ? err : add_line_number(out, frame);
	}
	err = err ? err : sb_str_add(out, frame->module[0] == '[' ? " " : " [");
	err = err ? err : add_name(out, frame->module);
	err = err ? err : sb_str_add(out, frame->module[0] == '[' ? "" : "]");
	return err ? err : sb_str_add(out, frame->is_inlined ? " (inlined)\n" : "\n");
}

/* As llvm-symbolizer --output-style=GNU has it. */
static int add_llvm(struct sb_str *out, const struct sb_sym_frame *frame)
{
	int err = frame->name ? add_name(out, frame->name) : sb_str_add(out, "??");

	err = err ? err : sb_str_addc(out, '\n');
	err = err ? err : add_line_number(out, frame);
	return err ? err : sb_str_addc(out, '\n');
}

/* Standard output has just failed. Return: the negative errno. */
static int note_unwritten(struct run *run)
{
	run->is_unwritten = true;
	return errno ? -errno : -EIO;
}

static int flush(struct run *run)
{
	size_t len = run->out.len;

	if (len && fwrite(run->out.s, 1, len, stdout) != len)
		return note_unwritten(run);
	sb_str_clear(&run->out);
	return 0;
}

static int on_frames(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	struct run *run = arg;
	size_t k;
	int err = 0;

	if (run->opts->show_addresses) {
		err = add_hex(&run->out, run->reqs[i].addr);
		err = err ? err : sb_str_addc(&run->out, '\n');
	}
	for (k = 0; k < nr_frames && !err; k++)
		err = run->opts->style == STYLE_LLVM ? add_llvm(&run->out, &frames[k])
						     : add_plain(&run->out, &frames[k]);
	if (!err && run->out.len >= OUTPUT_BYTES)
		err = flush(run);
	return err;
}

/* Look up what has been collected, and print it. */
static int resolve(struct run *run)
{
	struct sb_sym_query query = {
		.reqs = run->reqs, .nr = run->nr_reqs, .emit = on_frames, .arg = run
	};
	int err;

	if (run->is_kernel)
		err = sb_symbolizer_kernel(run->sym, &query);
	else if (run->tgid)
		err = sb_symbolizer_user(run->sym, run->tgid, sb_now_ns(), &query);
	else
		err = sb_symbolizer_file(run->sym, run->target, &query);
	run->nr_reqs = 0;
	return err;
}

static int add_request(struct run *run, uint64_t addr)
{
	run->reqs[run->nr_reqs++] = (struct sb_sym_req){
		.addr = addr,
		.is_caller = run->opts->are_returns,
	};
	return run->nr_reqs == BATCH_MAX ? resolve(run) : 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Return: 0, 1 for an empty line, -EINVAL when there is no address. */
static int parse_line(const char *p, const char *end, uint64_t *ret_addr)
{
	while (p < end && is_blank(*p))
		p++;
	while (p < end && is_blank(end[-1]))
		end--;
	if (p == end)
		return 1;
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	return sb_scan_hex(&p, end, ret_addr) && p == end ? 0 : -EINVAL;
}

/* All complete lines of @text. Return: how many bytes they have, or a negative errno. */
static ssize_t take_lines(struct run *run, const char *text, size_t len, uint64_t *nr_lines)
{
	const char *p = text, *end = text + len, *eol;
	uint64_t addr = 0;
	int ret;

	for (; (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
		++*nr_lines;
		ret = parse_line(p, eol, &addr);
		if (!ret)
			ret = add_request(run, addr);
		if (ret < 0)
			return ret;
	}
	return p - text;
}

/* Answer what there is after each read: whoever writes single addresses waits for the answers. */
static int take_input(struct run *run)
{
	static char text[OUTPUT_BYTES];
	uint64_t nr_lines = 0;
	ssize_t n, used = 0;
	size_t len = 0;
	int err = 0;

	do {
		n = read(STDIN_FILENO, text + len, sizeof(text) - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (n == 0 && len)
			text[len++] = '\n';
		used = take_lines(run, text, len, &nr_lines);
		if (!used && len == sizeof(text) - 1) {
			nr_lines++;
			used = -EINVAL;
		}
		if (used < 0 && used != -EINVAL)
			return (int)used;
		err = resolve(run);
		err = err ? err : flush(run);
		if (!err && fflush(stdout))
			err = note_unwritten(run);
		len -= used > 0 ? (size_t)used : 0;
		memmove(text, text + (used > 0 ? used : 0), len);
	} while (n && !err && used >= 0);
	if (!err && used < 0)
		return wrong("standard input, line %" PRIu64 ": this is not a hexadecimal address",
			     nr_lines);
	return err;
}

static bool is_number(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/* Whose addresses are they? Return: an exit code. */
static int open_target(struct run *run)
{
	struct sb_sym_query nothing = {};
	uint64_t tgid;
	int err;

	run->is_kernel = sb_streq(run->target, "kernel");
	if (run->is_kernel)
		return EXIT_OK;
	if (is_number(run->target)) {
		err = sb_parse_u64(run->target, INT32_MAX, &tgid);
		if (!err && tgid)
			err = sb_symbolizer_seed(run->sym, sb_now_ns(), (uint32_t)tgid);
		else
			err = -ESRCH;
		run->tgid = (uint32_t)tgid;
	} else {
		err = sb_symbolizer_file(run->sym, run->target, &nothing);
	}
	if (!err)
		return EXIT_OK;
	if (err == -ENOEXEC)
		sb_err(0, "'%s' is not an ELF file; name a program, a library or a debug file",
		       run->target);
	else if (err == -EINVAL)
		sb_err(0, "'%s' is not a regular file; name a program, a library or a debug file",
		       run->target);
	else if (err == -EFBIG)
		sb_err(0, "'%s' is damaged, or larger than sbsym reads; name another file",
		       run->target);
	else if (run->tgid)
		sb_err(err, "cannot read process %s", run->target);
	else
		sb_err(err, "cannot open '%s'", run->target);
	return err == -ESRCH || err == -ENOENT ? EXIT_NO_TARGET : EXIT_FAILED;
}

static int take_arguments(struct run *run, char **addrs, int nr)
{
	uint64_t addr;
	int i, err = 0;

	for (i = 0; i < nr && !err; i++) {
		err = sb_parse_hex(addrs[i], &addr);
		if (err)
			return wrong("'%s' is not a hexadecimal address", addrs[i]);
		err = add_request(run, addr);
	}
	err = err ? err : resolve(run);
	return err ? err : flush(run);
}

static int run_target(struct run *run, char **addrs, int nr)
{
	int status = open_target(run), err;

	if (status)
		return status;
	err = nr ? take_arguments(run, addrs, nr) : take_input(run);
	if (!err && fflush(stdout))
		err = note_unwritten(run);
	if (err == -EINVAL && !run->is_unwritten)
		return nr ? EXIT_USAGE : EXIT_FAILED;
	if (err && run->is_unwritten)
		sb_err(err, "cannot write the result to standard output");
	else if (err)
		sb_err(err, "cannot look up addresses of '%s'", run->target);
	return err ? EXIT_FAILED : EXIT_OK;
}

static void warn_of_losses(const struct sb_symbolizer *sym)
{
	struct sb_sym_stats stats;

	sb_symbolizer_stats(sym, &stats);
	if (stats.nr_units_damaged)
		sb_warn("%" PRIu64 " units of debug information are damaged, so lines and inlined "
			"functions are missing; rebuild the program",
			stats.nr_units_damaged);
	if (stats.nr_splits_missing)
		sb_warn("%" PRIu64
			" .dwo files are missing or cannot be used, so inlined functions "
			"are missing; put them back where the program was built",
			stats.nr_splits_missing);
}

/* Return: an exit code. */
static int name_addresses(const struct options *opts, char **operands, int nr)
{
	static struct run run;
	int err, status;

	sb_raise_nofile();
	run.opts = opts;
	run.target = operands[0];
	err = sb_symbolizer_new(&opts->sym, &run.sym);
	if (err) {
		sb_err(err, "cannot prepare the look-up of names");
		return EXIT_FAILED;
	}
	status = run_target(&run, operands + 1, nr - 1);
	warn_of_losses(run.sym);
	sb_symbolizer_free(run.sym);
	sb_str_release(&run.out);
	return status;
}

int main(int argc, char **argv)
{
	struct sb_reader_stats stats;
	struct options opts;
	int first, err, status;

	sb_log_init("sbsym", SB_LOG_INFO);
	first = parse_options(argc, argv, &opts);
	if (first == -ECANCELED)
		return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
	if (first >= 0 && first == argc)
		first = wrong("the target is missing; name a process ID, a file, or 'kernel'");
	if (first < 0)
		return EXIT_USAGE;
	/* Nothing is confined: the caller's privileges are what we have, and we keep them
	 * ourselves. */
	err = sb_reader_begin(&(struct sb_reader_opts){});
	if (err) {
		sb_err(err, "cannot start the helper process that reads other processes");
		return EXIT_FAILED;
	}
	status = name_addresses(&opts, argv + first, argc - first);
	sb_reader_stats(&stats);
	sb_reader_warn(&stats);
	sb_reader_end();
	return status;
}
