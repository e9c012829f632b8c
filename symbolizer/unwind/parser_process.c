// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The supervisor and the workers: see parser.h. Each has one thread. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/heap.h"
#include "base/time.h"
#include "symbolizer/elf/budget.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/unwind/parser_priv.h"

/*
 * The priority of threads that others wait for (capture/thread.c), because they wait for this one.
 */
#define NICE		      (-10)
/* Descriptors of a worker: the socket, those that it was handed, and copies of them. */
#define WORKER_FDS	      16
/* Address space of a worker; the biggest known file needs half of it. */
#define WORKER_AS_BYTES	      (4ull << 30)
/* What a worker needs before the first request. */
#define WORKER_DATA_BYTES_MIN (64ull << 20)

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)
SB_DEFINE_CLEANUP(struct sb_cfi, sb_cfi_free)

/* The supervisor's state of one seat. */
struct bench {
	const struct sb_parser_opts *opts;
	struct sb_parser_area area;
	int fd;		       /* to the one who asks */
	struct sb_peer worker; /* none: pid 0 */
	struct sb_parser_domain domain;
	bool has_served; /* the worker: @domain is set */
	bool is_busy;
	uint32_t nr_workers;
	uint64_t deadline_ns, worker_cpu_ns;
};

/* The worker. */

static void limit_all(void)
{
	sb_lower_limit(RLIMIT_CORE, 0);
	sb_lower_limit(RLIMIT_NOFILE, WORKER_FDS);
	sb_lower_limit(RLIMIT_FSIZE, 0);
#ifndef SB_SANITIZED
	sb_lower_limit(RLIMIT_AS, WORKER_AS_BYTES);
	/* Without this limit the kernel could kill our whole cgroup instead of this process. */
	if (sb_budget_machine_bytes() < SB_BUDGET_BYTES_MAX)
		sb_lower_limit(RLIMIT_DATA, WORKER_DATA_BYTES_MIN + sb_budget_machine_bytes() / 2);
#endif
}

static int put_cfi(const struct sb_elf *elf, const struct sb_elf *debug,
		   const struct sb_parser_area *area, uint32_t *ret_len)
{
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;
	int err = sb_cfi_new_native(elf, debug, &cfi);

	if (err)
		return err;
	if (sb_cfi_saved_bytes(cfi) > area->len)
		return -EFBIG;
	sb_cfi_save(cfi, area->at);
	*ret_len = (uint32_t)sb_cfi_saved_bytes(cfi);
	return 0;
}

static int put_functions(const struct sb_elf *elf, const struct sb_parser_area *area,
			 uint32_t *ret_len)
{
	sb_cleanup(sb_freep) struct sb_cfi_function *functions = NULL;
	size_t nr;
	int err = sb_cfi_functions(elf, &functions, &nr);

	if (err)
		return err;
	if (nr > area->len / sizeof(*functions))
		return -EFBIG;
	memcpy(area->at, functions, nr * sizeof(*functions));
	*ret_len = (uint32_t)(nr * sizeof(*functions));
	return 0;
}

static int parse(const struct sb_parser_request *request, const struct sb_parser_area *area,
		 const int *fds, uint32_t *ret_len)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	sb_cleanup(sb_elf_freep) struct sb_elf *debug = NULL;
	bool is_image = request->image_bytes;
	int err;

	if (request->image_bytes > area->len)
		return -EPROTO;
	err = is_image ? sb_elf_new_image(area->at, request->image_bytes, &elf)
		       : sb_elf_new_fd(fds[0], &elf);
	if (!err && fds[!is_image] >= 0)
		err = sb_elf_new_fd(fds[!is_image], &debug);
	if (err)
		return err;
	switch (request->what) {
	case SB_PARSER_CFI:
		return put_cfi(elf, debug, area, ret_len);
	case SB_PARSER_FUNCTIONS:
		return put_functions(elf, area, ret_len);
	default:
		return -EPROTO;
	}
}

static int serve(int fd, const struct sb_parser_area *area)
{
	int fds[SB_PEER_FDS_MAX], nr_fds, i;
	struct sb_parser_answer answer = {};
	struct sb_parser_request request;

	nr_fds = sb_peer_receive(fd, &request, sizeof(request), fds, SB_PEER_FDS_MAX);
	if (nr_fds < 0)
		return nr_fds;
	answer.err = parse(&request, area, fds, &answer.len);
	for (i = 0; i < nr_fds; i++)
		close(fds[i]);
	return sb_peer_send(fd, &answer, sizeof(answer), NULL, 0);
}

static void work(void *arg, int fd)
{
	const struct bench *bench = arg;
	const struct sb_parser_opts *opts = bench->opts;
	const struct sb_parser_area area = bench->area;

	(void)prctl(PR_SET_NAME, "stackbpf-parse");
	if (sb_peer_keep_fds(&fd, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return;
	limit_all();
	if (opts->confine_worker && opts->confine_worker())
		return;
	if (opts->is_short_lived)
		sb_heap_for_short_life();
	/* The next request may come in hours; a large file leaves some ten megabytes of free
	 * memory. */
	while (!serve(fd, &area))
		if (!opts->is_short_lived)
			(void)malloc_trim(0);
}

/* The supervisor. */

struct supervisor {
	int fd; /* closed by us at our end */
	struct bench benches[SB_PARSER_WHO_MAX];
	uint64_t own_cpu_ns;
};

static void end_worker(struct bench *bench)
{
	sb_peer_kill(&bench->worker);
	bench->has_served = false;
	bench->worker_cpu_ns = 0;
}

/* Fork a worker, which must not get the memory of other seats. */
static int start_worker(struct bench *bench)
{
	int err;

	if (madvise(bench->area.at, bench->area.len, MADV_DOFORK))
		return -errno;
	err = sb_peer_new(work, bench, &bench->worker);
	bench->nr_workers += !err;
	if (madvise(bench->area.at, bench->area.len, MADV_DONTFORK)) {
		end_worker(bench);
		err = -ENOMEM;
	}
	return err;
}

static void answer(struct supervisor *supervisor, struct bench *bench, int err, uint32_t len)
{
	uint64_t cpu_ns = sb_process_time_ns(bench->worker.pid), own_ns = sb_cpu_time_ns();
	const struct sb_parser_answer answer = {
		.err = err,
		.len = len,
		.cpu_ns = own_ns - supervisor->own_cpu_ns +
			  (cpu_ns > bench->worker_cpu_ns ? cpu_ns - bench->worker_cpu_ns : 0),
		.nr_workers = bench->nr_workers,
	};

	bench->worker_cpu_ns = cpu_ns;
	supervisor->own_cpu_ns = own_ns;
	bench->nr_workers = 0;
	bench->is_busy = false;
	/* If the caller has ended, it needs no answer. */
	(void)sb_peer_send(bench->fd, &answer, sizeof(answer), NULL, 0);
}

/* Return: 0, or a negative errno that is the answer. */
static int ask_worker(struct bench *bench, const struct sb_parser_request *request, const int *fds,
		      int nr_fds)
{
	int err = 0, tries;

	if (bench->has_served && (request->is_distrusted || memcmp(&bench->domain, &request->domain,
								   sizeof(request->domain)) != 0))
		end_worker(bench);
	/* A second worker is tried if the first one was killed while it was idle. */
	for (tries = 0; tries < 2; tries++) {
		if (!bench->worker.pid && start_worker(bench))
			return -ENOMEM; /* too many processes: that says nothing of the file */
		err = sb_peer_send(bench->worker.fd, request, sizeof(*request), fds,
				   (size_t)nr_fds);
		/* -EAGAIN: its socket is full, because it does not read its requests. */
		if (err != -ECHILD && err != -EAGAIN)
			break;
		end_worker(bench);
		err = 0;
	}
	if (tries == 2)
		return -ECHILD;
	bench->domain = request->domain;
	bench->has_served = true;
	return err;
}

/* Return: 0; -ECHILD: the caller has ended. */
static int take_request(struct supervisor *supervisor, struct bench *bench)
{
	int fds[SB_PEER_FDS_MAX], nr_fds, i, err;
	struct sb_parser_request request;

	nr_fds = sb_peer_receive(bench->fd, &request, sizeof(request), fds, SB_PEER_FDS_MAX);
	if (nr_fds == -ECHILD)
		return nr_fds;
	err = nr_fds < 0 ? nr_fds : ask_worker(bench, &request, fds, nr_fds);
	for (i = 0; i < nr_fds; i++)
		close(fds[i]);
	bench->deadline_ns = sb_now_ns() + bench->opts->patience_ns;
	bench->is_busy = true;
	if (err)
		answer(supervisor, bench, err, 0);
	return 0;
}

/* Pass the worker's answer on; the caller checks it. */
static void take_answer(struct supervisor *supervisor, struct bench *bench)
{
	struct sb_parser_answer said;
	int err = sb_peer_receive(bench->worker.fd, &said, sizeof(said), NULL, 0);

	if (!err && said.err <= 0) {
		answer(supervisor, bench, said.err, said.len);
		return;
	}
	answer(supervisor, bench, err ? err : -EPROTO, 0);
	end_worker(bench);
}

static int look_at(struct supervisor *supervisor, struct bench *bench, bool is_readable)
{
	if (is_readable && !bench->is_busy)
		return take_request(supervisor, bench);
	if (is_readable) {
		take_answer(supervisor, bench);
	} else if (bench->is_busy && sb_now_ns() >= bench->deadline_ns) {
		answer(supervisor, bench, -ETIMEDOUT, 0);
		end_worker(bench);
	}
	return 0;
}

/* Return: ms until the first deadline, or -1. */
static int timeout_ms(const struct supervisor *supervisor)
{
	uint64_t now_ns = sb_now_ns(), next_ns = UINT64_MAX;
	size_t i;

	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		if (supervisor->benches[i].is_busy && supervisor->benches[i].deadline_ns < next_ns)
			next_ns = supervisor->benches[i].deadline_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / SB_NS_PER_MS) + 1;
}

static void supervise_all(struct supervisor *supervisor)
{
	struct pollfd polls[SB_PARSER_WHO_MAX + 1];
	size_t i;

	for (;;) {
		for (i = 0; i < SB_PARSER_WHO_MAX; i++) {
			const struct bench *bench = &supervisor->benches[i];

			polls[i] = (struct pollfd){
				.fd = bench->is_busy ? bench->worker.fd : bench->fd,
				.events = POLLIN,
			};
		}
		polls[i] = (struct pollfd){ .fd = supervisor->fd, .events = POLLIN };
		if (poll(polls, SB_PARSER_WHO_MAX + 1, timeout_ms(supervisor)) < 0 &&
		    errno != EINTR)
			return;
		if (polls[SB_PARSER_WHO_MAX].revents)
			return;
		for (i = 0; i < SB_PARSER_WHO_MAX; i++)
			if (look_at(supervisor, &supervisor->benches[i], polls[i].revents))
				return;
	}
}

static int begin(struct supervisor *supervisor, const struct sb_parser *parser)
{
	int fds[SB_PARSER_WHO_MAX + 1], err;
	size_t i;

	(void)prctl(PR_SET_NAME, "stackbpf-superv");
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		fds[i] = parser->seats[i].peer_fd;
	fds[i] = supervisor->fd;
	err = sb_peer_leave_terminal();
	if (!err)
		err = sb_peer_keep_fds(fds, SB_PARSER_WHO_MAX + 1);
	if (err)
		return err;
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		supervisor->benches[i] = (struct bench){
			.opts = &parser->opts,
			.area = parser->seats[i].area,
			.fd = fds[i],
		};
	supervisor->fd = fds[i];
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		if (madvise(parser->seats[i].area.at, parser->seats[i].area.len, MADV_DONTFORK))
			return -errno;
	return parser->opts.confine_supervisor ? parser->opts.confine_supervisor() : 0;
}

void sb_parser_supervise(void *arg, int fd)
{
	const struct sb_parser *parser = arg;
	struct supervisor supervisor = { .fd = fd };
	struct sb_parser_answer said = {};
	size_t i;

	said.err = begin(&supervisor, parser);
	if (!said.err)
		said.err =
			start_worker(&supervisor.benches[SB_PARSER_TABLES]); /* it is asked soon */
	if (sb_peer_send(supervisor.fd, &said, sizeof(said), NULL, 0) || said.err)
		return;
	supervise_all(&supervisor);
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		end_worker(&supervisor.benches[i]);
}
