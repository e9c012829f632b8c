// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/unwind/parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/unwind/parser_priv.h"

/* Images in memory have no owner, so each is a domain of its own. */
#define NO_DEV		UINT64_MAX
/* Twice the size of most tables. */
#define AREA_BYTES_MIN	(1u << 20)
/* Memory that is held on to: most tables are smaller, and to make a bigger one takes a hundred
 * times as long as to touch its memory. */
#define AREA_BYTES_KEPT (256u << 10)

SB_DEFINE_CLEANUP(struct sb_parser, sb_parser_free)

/* If there is too little address space, the area is smaller, and the biggest tables do not fit. */
static int make_area(struct sb_parser_area *area)
{
	void *at = MAP_FAILED;
	size_t len;

	for (len = SB_CFI_SAVED_BYTES_MAX; len >= AREA_BYTES_MIN && at == MAP_FAILED; len /= 2) {
		at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at != MAP_FAILED)
			*area = (struct sb_parser_area){ at, len };
	}
	return area->at ? 0 : -ENOMEM;
}

static int open_seat(struct sb_parser_seat *seat)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	seat->fd = fds[0];
	seat->peer_fd = fds[1];
	return make_area(&seat->area);
}

int sb_parser_new(const struct sb_parser_opts *opts, struct sb_parser **ret_parser)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = calloc(1, sizeof(*parser));
	size_t i;
	int err = 0;

	if (!parser)
		return -ENOMEM;
	parser->opts = *opts;
	(void)sb_budget_machine_bytes(); /* found out while files can be opened, for those who are forked */
	if (!parser->opts.patience_ns)
		parser->opts.patience_ns = SB_PARSER_PATIENCE_NS;
	pthread_mutex_init(&parser->kept.lock, NULL);
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		parser->seats[i] = (struct sb_parser_seat){
			.kept = &parser->kept,
			.fd = -1,
			.peer_fd = -1,
			.lock = PTHREAD_MUTEX_INITIALIZER,
		};
	for (i = 0; i < SB_PARSER_WHO_MAX && !err; i++)
		err = open_seat(&parser->seats[i]);
	if (!err)
		err = sb_peer_new(sb_parser_supervise, parser, &parser->supervisor);
	if (err)
		return err;
	for (i = 0; i < SB_PARSER_WHO_MAX; i++)
		close(sb_take_fd(parser->seats[i].peer_fd));
	*ret_parser = sb_take(parser);
	return 0;
}

void sb_parser_free(struct sb_parser *parser)
{
	size_t i;

	if (!parser)
		return;
	for (i = 0; i < SB_PARSER_WHO_MAX; i++) {
		sb_closep(&parser->seats[i].fd);
		sb_closep(&parser->seats[i].peer_fd);
		if (parser->seats[i].area.at)
			munmap(parser->seats[i].area.at, parser->seats[i].area.len);
	}
	sb_peer_release(&parser->supervisor);
	sb_parser_kept_release(&parser->kept);
	free(parser);
}

int sb_parser_settle(struct sb_parser *parser)
{
	struct sb_parser_answer said;
	int err;

	if (!parser->is_settled) {
		err = sb_peer_receive(parser->supervisor.fd, &said, sizeof(said), NULL, 0);
		parser->settle_err = err ? err : said.err;
		parser->is_settled = true;
	}
	return parser->settle_err;
}

struct sb_parser_seat *sb_parser_seat(struct sb_parser *parser, enum sb_parser_who who)
{
	return parser ? &parser->seats[who] : NULL;
}

static void count(uint64_t *at, uint64_t nr)
{
	__atomic_fetch_add(at, nr, __ATOMIC_RELAXED);
}

static int domain_of(struct sb_parser_seat *seat, const struct sb_elf *elf,
		     struct sb_parser_domain *domain)
{
	struct stat st;
	int err;

	if (elf->image) {
		*domain = (struct sb_parser_domain){ NO_DEV, seat->nr_images++ };
		return 0;
	}
	err = sb_reader_fstat(elf->fd, &st);
	if (err)
		return err;
	*domain = (struct sb_parser_domain){ st.st_dev, st.st_uid };
	return 0;
}

static int send_request(struct sb_parser_seat *seat, enum sb_parser_what what,
			const struct sb_elf *elf, const struct sb_elf *debug)
{
	struct sb_parser_request request = {
		.what = what, .is_distrusted = __atomic_load_n(&seat->has_lied, __ATOMIC_RELAXED)
	};
	int fds[SB_PEER_FDS_MAX], err = domain_of(seat, elf, &request.domain);
	size_t nr_fds = 0;

	if (err)
		return err;
	if (!elf->image) {
		fds[nr_fds++] = elf->fd;
	} else if (elf->size <= seat->area.len) {
		request.image_bytes = elf->size;
		memcpy(seat->area.at, elf->image, elf->size);
	} else {
		return -EFBIG;
	}
	if (debug)
		fds[nr_fds++] = debug->fd;
	return sb_peer_send(seat->fd, &request, sizeof(request), fds, nr_fds);
}

/* The answer is copied before it is used, because the worker may still write to the area. */
static int take_answer(struct sb_parser_seat *seat, const struct sb_elf *elf, void **ret_bytes,
		       size_t *ret_len)
{
	const struct sb_parser_area *area = &seat->area;
	struct sb_parser_answer answer;
	void *bytes;
	int err = sb_peer_receive(seat->fd, &answer, sizeof(answer), NULL, 0);

	if (err)
		return err;
	count(&seat->stats.cpu_ns, answer.cpu_ns);
	count(&seat->stats.nr_workers, answer.nr_workers);
	if (answer.err)
		return answer.err;
	if (!answer.len || answer.len > area->len)
		return -EPROTO;
	err = sb_budget_charge(elf->budget, answer.len);
	if (err)
		return err;
	bytes = malloc(answer.len);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, area->at, answer.len);
	*ret_bytes = bytes;
	*ret_len = answer.len;
	return 0;
}

/*
 * Give the memory of the area back. The size of a failed answer is unknown, so all but the start
 * goes.
 */
static void give_back(const struct sb_parser_area *area)
{
	if (area->len > AREA_BYTES_KEPT)
		(void)madvise((char *)area->at + AREA_BYTES_KEPT, area->len - AREA_BYTES_KEPT,
			      MADV_REMOVE);
}

static int ask(struct sb_parser_seat *seat, enum sb_parser_what what, const struct sb_elf *elf,
	       const struct sb_elf *debug, void **ret_bytes, size_t *ret_len)
{
	int err;

	pthread_mutex_lock(&seat->lock);
	err = send_request(seat, what, elf, debug);
	if (!err)
		err = take_answer(seat, elf, ret_bytes, ret_len);
	if (err || elf->image || *ret_len > AREA_BYTES_KEPT)
		give_back(&seat->area);
	pthread_mutex_unlock(&seat->lock);
	return err;
}

static int note(struct sb_parser_seat *seat, int err)
{
	__atomic_store_n(&seat->has_lied, err == -EPROTO, __ATOMIC_RELAXED);
	switch (err) {
	case 0:
		count(&seat->stats.nr_answers, 1);
		break;
	case -ECHILD:
		count(&seat->stats.nr_crashed, 1);
		break;
	case -ETIMEDOUT:
		count(&seat->stats.nr_timeouts, 1);
		break;
	case -EPROTO:
		count(&seat->stats.nr_forged, 1);
		break;
	}
	return err;
}

/* Make a table of an answer that another seat was given. Return: 0; -ENOENT: there is none; -EFBIG;
 * -EPROTO; -ENOMEM. */
static int reuse(struct sb_parser_seat *seat, const struct sb_parser_key *key,
		 const struct sb_elf *elf, struct sb_cfi **ret_cfi)
{
	size_t len = 0;
	sb_cleanup(sb_freep) void *bytes = sb_parser_kept_take(seat->kept, key, seat, &len);
	int err = bytes ? sb_budget_charge(elf->budget, len) : -ENOENT;

	if (!err)
		err = sb_cfi_restore(bytes, len, elf->machine, ret_cfi);
	if (!err)
		bytes = NULL; /* it is the table's now */
	return err;
}

int sb_parser_cfi(struct sb_parser_seat *seat, const struct sb_elf *elf, const struct sb_elf *debug,
		  struct sb_cfi **ret_cfi)
{
	sb_cleanup(sb_freep) void *bytes = NULL;
	struct sb_parser_key key;
	bool is_kept;
	size_t len;
	int err;

	if (!seat)
		return sb_cfi_new_native(elf, debug, ret_cfi);
	is_kept = !sb_parser_key_init(&key, elf, debug);
	if (is_kept && !reuse(seat, &key, elf, ret_cfi))
		return 0;
	err = ask(seat, SB_PARSER_CFI, elf, debug, &bytes, &len);
	if (!err)
		err = sb_cfi_restore(bytes, len, elf->machine, ret_cfi);
	if (!err && is_kept)
		sb_parser_kept_put(seat->kept, &key, seat, bytes, len);
	if (!err)
		bytes = NULL; /* it is the table's now */
	return note(seat, err);
}

static bool are_ascending(const struct sb_cfi_function *functions, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (functions[i].hi < functions[i].lo ||
		    (i && functions[i].lo < functions[i - 1].lo))
			return false;
	return true;
}

int sb_parser_functions(struct sb_parser_seat *seat, const struct sb_elf *elf,
			struct sb_cfi_function **ret, size_t *ret_nr)
{
	sb_cleanup(sb_freep) void *bytes = NULL;
	size_t len;
	int err;

	if (!seat)
		return sb_cfi_functions(elf, ret, ret_nr);
	err = ask(seat, SB_PARSER_FUNCTIONS, elf, NULL, &bytes, &len);
	if (!err && (len % sizeof(**ret) || !are_ascending(bytes, len / sizeof(**ret))))
		err = -EPROTO;
	if (!err) {
		*ret = sb_take(bytes);
		*ret_nr = len / sizeof(**ret);
	}
	return note(seat, err);
}

void sb_parser_stats(const struct sb_parser *parser, struct sb_parser_stats *ret_stats)
{
	size_t i;

	*ret_stats = (struct sb_parser_stats){};
	for (i = 0; parser && i < SB_PARSER_WHO_MAX; i++) {
		const struct sb_parser_stats *of = &parser->seats[i].stats;

		ret_stats->nr_answers += __atomic_load_n(&of->nr_answers, __ATOMIC_RELAXED);
		ret_stats->nr_crashed += __atomic_load_n(&of->nr_crashed, __ATOMIC_RELAXED);
		ret_stats->nr_timeouts += __atomic_load_n(&of->nr_timeouts, __ATOMIC_RELAXED);
		ret_stats->nr_forged += __atomic_load_n(&of->nr_forged, __ATOMIC_RELAXED);
		ret_stats->nr_workers += __atomic_load_n(&of->nr_workers, __ATOMIC_RELAXED);
		ret_stats->cpu_ns += __atomic_load_n(&of->cpu_ns, __ATOMIC_RELAXED);
	}
}
