// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "output/gzip.h"
#include "serve/routes.h"

/* Files of a store that are open at once, and some more. */
#define WORKER_FDS 1024
/* Return memory to the system if more than this is unused. */
#define IDLE_BYTES (32u << 20)

int sb_asked_fail(struct sb_asked *asked, int status, const char *fmt, ...)
{
	struct sb_answer *answer = asked->answer;
	va_list ap;

	answer->status = status;
	va_start(ap, fmt);
	vsnprintf(answer->error, sizeof(answer->error), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int sb_asked_all(struct sb_asked *asked)
{
	const char *name = sb_params_unknown(&asked->params);

	return name ? sb_asked_fail(asked, 400,
				    "there is no parameter '%s'; stackbpf-serve(8) lists them",
				    name)
		    : 0;
}

static void explain(struct sb_asked *asked, int err)
{
	if (asked->answer->error[0])
		return;
	if (err == -ENOMEM)
		(void)sb_asked_fail(asked, 503,
				    "the answer needs more than 1 GiB of memory; request a "
				    "shorter time range or fewer tags");
	else if (err == -EFBIG)
		(void)sb_asked_fail(asked, 503,
				    "the answer is longer than 256 MiB; request a shorter "
				    "time range or fewer tags");
	else
		(void)sb_asked_fail(asked, 500,
				    "cannot read the store: %s; 'stackbpf store "
				    "check' may show why",
				    strerror(-err));
}

static int parse_params(struct sb_asked *asked)
{
	const struct sb_question *question = asked->question;
	uint32_t len = question->query_len;
	int err;

	if (len > sizeof(question->query))
		return -EPROTO;
	err = sb_params_parse(&asked->params, question->query, len);
	if (err == -EINVAL)
		return sb_asked_fail(asked, 400,
				     "the part after the '?' is not a valid query string");
	if (err == -E2BIG)
		return sb_asked_fail(asked, 400, "there are more than %d parameters",
				     SB_PARAMS_MAX);
	return err;
}

/* Compress the body: most of it is numbers and names that repeat. */
static int pack(FILE *from, FILE *to)
{
	sb_cleanup(sb_freep) char *bytes = malloc(64u << 10);
	sb_cleanup(sb_gzip_freep) struct sb_gzip *gzip = NULL;
	int err = bytes ? sb_gzip_new(to, &gzip) : -ENOMEM;
	size_t nr;

	rewind(from);
	while (!err && (nr = fread(bytes, 1, 64u << 10, from)))
		err = sb_gzip_put(gzip, bytes, nr);
	err = err ?: sb_gzip_finish(gzip);
	return err ? err : ferror(from) ? -EIO : 0;
}

static FILE *open_memory(void)
{
	int fd = memfd_create("answer", MFD_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;

	if (!file)
		sb_closep(&fd);
	return file;
}

/*
 * Return: 0 if all was written; -EFBIG if the body exceeds RLIMIT_FSIZE, else -ENOMEM. A stream
 * does not keep which error it met, and the writers of formats say -EIO: so meet it again.
 */
static int end_file(FILE *file)
{
	if (!fflush(file) && !ferror(file))
		return 0;
	return write(fileno(file), "", 1) < 0 && errno == EFBIG ? -EFBIG : -ENOMEM;
}

static int finish(struct sb_asked *asked, int *ret_fd)
{
	sb_cleanup(sb_fclosep) FILE *packed = NULL;
	const char *name = asked->answer->file_name;
	bool is_packed = sb_text_ends(name, strlen(name), ".gz");
	FILE *body = asked->out;
	int err = end_file(asked->out);

	if (!err && asked->question->accepts_gzip && !is_packed) {
		packed = open_memory();
		err = packed ? pack(asked->out, packed) : -ENOMEM;
		if (packed && (!err || ferror(packed)))
			err = end_file(packed);
		asked->answer->is_gzip = 1;
		body = packed;
	}
	if (err)
		return err;
	*ret_fd = fcntl(fileno(body), F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? -errno : 0;
}

static int answer_route(struct sb_asked *asked, const struct sb_route *route, int *ret_fd)
{
	int err = parse_params(asked), err_json;

	asked->out = err ? NULL : open_memory();
	if (!err && !asked->out)
		err = -ENOMEM;
	asked->json = (struct sb_json){ .put = sb_json_put_file, .arg = asked->out };
	if (!err)
		err = route->answer(asked);
	err_json = sb_json_end(&asked->json);
	if (!err)
		err = err_json;
	if (err && asked->out && ferror(asked->out))
		err = end_file(asked->out);
	if (!err)
		err = finish(asked, ret_fd);
	if (asked->out)
		fclose(asked->out);
	return err;
}

void sb_worker_answer(const struct sb_serve_opts *opts, const struct sb_question *question,
		      struct sb_answer *ret_answer, int *ret_fd)
{
	const struct sb_route *route = sb_route_at(question->route);
	struct sb_asked asked = {
		.opts = opts,
		.question = question,
		.answer = ret_answer,
		.now_s = time(NULL),
	};
	int err;

	*ret_answer = (struct sb_answer){ .status = 200 };
	*ret_fd = -1;
	err = route ? answer_route(&asked, route, ret_fd) : -EPROTO;
	if (err)
		explain(&asked, err);
	sb_params_release(&asked.params);
}

/* The process. */

static void limit_all(void)
{
	sb_lower_limit(RLIMIT_CORE, 0);
	sb_lower_limit(RLIMIT_NOFILE, WORKER_FDS);
	sb_lower_limit(RLIMIT_FSIZE, SB_SERVE_ANSWER_BYTES);
#ifndef SB_SANITIZED
	sb_lower_limit(RLIMIT_DATA, SB_SERVE_WORKER_BYTES);
#endif
}

static void give_back(void)
{
#ifdef __GLIBC__
	if (mallinfo2().fordblks > IDLE_BYTES)
		(void)malloc_trim(0);
#endif
}

static int answer_one(const struct sb_serve_opts *opts, struct sb_question *question,
		      struct sb_answer *answer, int fd)
{
	sb_cleanup(sb_closep) int body = -1;
	int err = sb_peer_receive(fd, question, sizeof(*question), NULL, 0);

	if (err < 0)
		return err;
	sb_worker_answer(opts, question, answer, &body);
	err = sb_peer_send(fd, answer, sizeof(*answer), &body, body >= 0);
	give_back();
	return err;
}

void sb_worker_run(const struct sb_serve_opts *opts, int fd)
{
	sb_cleanup(sb_freep) struct sb_question *question = malloc(sizeof(*question));
	sb_cleanup(sb_freep) struct sb_answer *answer = malloc(sizeof(*answer));

	(void)prctl(PR_SET_NAME, "stackbpf-answer");
	if (!question || !answer || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return;
	limit_all();
	if (opts->confine_worker && opts->confine_worker())
		return;
	while (!answer_one(opts, question, answer, fd))
		;
}
