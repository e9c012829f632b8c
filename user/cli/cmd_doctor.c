// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/doctor.h"
#include "cli/wrap.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/unwind/parser.h"
#include "workers/privileges.h"

#define TEXT_COLUMN 30

struct doctor_opts {
	struct sb_common_opts common; /* first */
	uint32_t tgid;
};

/* clang-format off */
const struct sb_opt sb_doctor_rows[] = {
	{ .name = "pid", .letters = "p", .synonyms = "x", .metavar = "PID", .type = SB_OPT_U32,
	  .group = SB_OPT_META, .offset = offsetof(struct doctor_opts, tgid),
	  .complete = sb_complete_pids, .min = 1, .max = 4194304, /* PID_MAX_LIMIT of the kernel */
	  .help = "check also what works for this process" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

/* Names of files and processes are other people's bytes. */
static void __attribute__((format(printf, 2, 0)))
put_text(struct sb_doctor *doctor, const char *fmt, va_list ap)
{
	sb_cleanup(sb_freep) char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	if (text)
		sb_print_clean(doctor->out, text, strlen(text));
}

void sb_doctor_title(struct sb_doctor *doctor, const char *fmt, ...)
{
	va_list ap;

	fputc('\n', doctor->out);
	va_start(ap, fmt);
	put_text(doctor, fmt, ap);
	va_end(ap);
	fputc('\n', doctor->out);
}

/* In lines of the terminal, those behind the first below the first word behind @head. */
static void __attribute__((format(printf, 3, 0)))
print_wrapped(struct sb_doctor *doctor, const char *head, const char *fmt, va_list ap)
{
	sb_cleanup(sb_str_release) struct sb_str text = {}, lines = {};
	sb_cleanup(sb_freep) char *said = NULL;

	/* Without memory, what there is of it. */
	if (vasprintf(&said, fmt, ap) < 0)
		said = NULL;
	if (sb_str_addf(&text, "%s%s", head, said ? said : ""))
		return;
	sb_replace_controls(text.s, text.len);
	if (sb_wrap(&lines, text.s, sb_wrap_columns(STDOUT_FILENO), TEXT_COLUMN))
		sb_str_clear(&lines);
	fprintf(doctor->out, "%s\n", lines.len ? lines.s : text.s);
}

void sb_doctor_say(struct sb_doctor *doctor, enum sb_verdict verdict, const char *what,
		   const char *fmt, ...)
{
	static const char *const marks[] = {
		[SB_VERDICT_OK] = "ok",
		[SB_VERDICT_LESS] = "no",
		[SB_VERDICT_NO] = "NO",
	};
	char head[TEXT_COLUMN + 256];
	va_list ap;

	doctor->nr_no += verdict == SB_VERDICT_NO;
	snprintf(head, sizeof(head), "  %s  %-*s", marks[verdict], TEXT_COLUMN - 6, what);
	va_start(ap, fmt);
	print_wrapped(doctor, head, fmt, ap);
	va_end(ap);
}

void sb_doctor_more(struct sb_doctor *doctor, const char *fmt, ...)
{
	char head[TEXT_COLUMN + 1];
	va_list ap;

	snprintf(head, sizeof(head), "%*s", TEXT_COLUMN, "");
	va_start(ap, fmt);
	print_wrapped(doctor, head, fmt, ap);
	va_end(ap);
}

void sb_doctor_advise(struct sb_doctor *doctor, const char *fmt, ...)
{
	char head[TEXT_COLUMN + 4];
	va_list ap;

	snprintf(head, sizeof(head), "%*s-> ", TEXT_COLUMN, "");
	va_start(ap, fmt);
	print_wrapped(doctor, head, fmt, ap);
	va_end(ap);
}

static int say_process_error(int err, uint32_t tgid)
{
	fflush(stdout);
	if (err == -ESRCH)
		return sb_fail(SB_EXIT_NO_TARGET, 0, "there is no process %u; it may have ended",
			       tgid);
	if (err == -ETIMEDOUT)
		return sb_fail(
			SB_EXIT_FAILED, 0,
			"cannot check process %u, because reading its memory or files hangs; a file "
			"system that it uses does not answer, such as one of FUSE or NFS",
			tgid);
	sb_err(err, "cannot check process %u", tgid);
	return err == -EACCES || err == -EPERM ? SB_EXIT_PRIVILEGE : SB_EXIT_FAILED;
}

static bool has_process(uint32_t tgid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	return sb_can_access(path, F_OK);
}

/* As a run has them (run/privileges.c): the process, its memory and its files can make us wait for
 * ever. */
static int make_readers(void)
{
	static struct sb_owner who;
	int err;

	who = sb_sudo_owner();
	if (geteuid() == 0 && who.uid == 0)
		who = sb_privileges_own_user();
	err = sb_reader_begin(&(struct sb_reader_opts){
		.confine_spawner = sb_privileges_spawner,
		.confine_reader = sb_privileges_reader,
		.arg = &who,
	});
	return err ? err : sb_reader_settle();
}

static void end_readers(void)
{
	struct sb_reader_stats stats;

	fflush(stdout);
	sb_reader_stats(&stats);
	sb_reader_warn(&stats);
	sb_reader_end();
}

static int examine(uint32_t tgid)
{
	struct sb_doctor doctor = { .out = stdout };
	int err;

	if (tgid && !has_process(tgid))
		return say_process_error(-ESRCH, tgid);
	err = tgid ? make_readers() : 0;
	if (err)
		return sb_fail(
			SB_EXIT_FAILED, err,
			"cannot check process %u, because the helper process that reads other "
			"processes cannot be started; check ulimit -u and free memory",
			tgid);
	/* Without it, it is said below. */
	(void)sb_parser_new(&sb_privileges_of_parsers, &doctor.parser);
	sb_doctor_kernel(&doctor);
	sb_doctor_privileges(&doctor);
	if (tgid)
		err = sb_doctor_process(&doctor, tgid);
	sb_parser_free(doctor.parser);
	if (tgid)
		end_readers();
	if (err)
		return say_process_error(err, tgid);
	fprintf(stdout, "\n%s\n",
		doctor.nr_no ? "stackbpf cannot sample here: see NO above."
			     : "stackbpf can sample here. Lines with 'no' are optional: it "
			       "works without them.");
	return doctor.nr_no ? SB_EXIT_PRIVILEGE : SB_EXIT_DATA;
}

int sb_cmd_doctor(const struct sb_command *command, char **argv)
{
	struct doctor_opts fields = {};
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse_options(command, &opts, argv, "process with -p");

	sb_opts_release(&opts);
	return status < 0 ? examine(fields.tgid) : status;
}
