// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "store/late_blocks.h"

#define WAIT_MAX_MS 60000u
/* Interval between two looks for new blocks. */
#define LOOK_MS	    2000u
/* Longest list of tags' names. */
#define BY_MAX	    4096u
#define KEYS_MAX    64u

SB_DEFINE_CLEANUP(struct sb_export_period, sb_export_period_free)

struct run {
	const struct sb_export_plan *plan;
	const struct sb_export_kind *kind;
	void *dest;
	struct sb_export_link link;
	struct sb_export_state state;
	char name[64]; /* of the file; "": no place is kept */
	int lock_fd;
	int64_t limit_s;
	uint32_t nr_failures; /* in a row */
	bool is_damage_said, is_late_said;
	struct sb_read_place place;
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	int nr_extents;
};

/* ---- the place ---- */

static int save(void *arg)
{
	struct run *run = arg;

	run->state.updated_s = time(NULL);
	run->plan->progress(run->plan->arg, &run->state, run->limit_s);
	return run->name[0] ? sb_export_state_write(run->plan->dir_fd, run->name, &run->state) : 0;
}

static int lock(struct run *run)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.lock", run->name);
	run->lock_fd =
		openat(run->plan->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (run->lock_fd < 0)
		return -errno;
	if (flock(run->lock_fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

static int load_state(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	sb_cleanup(sb_str_release) struct sb_str to = {};
	uint64_t hash;
	int err = sb_http_add_shown(&to, plan->to);

	if (err)
		return err;
	/* With the parts that are not shown: two databases of one server are two destinations. */
	hash = sb_hash(plan->to, strlen(plan->to), sb_hash(plan->what, strlen(plan->what), 0));
	if (!plan->from_s || plan->is_follow)
		snprintf(run->name, sizeof(run->name), "%s-%016llx.state", run->kind->scheme,
			 (unsigned long long)hash);
	if (run->name[0])
		err = lock(run);
	if (!err && run->name[0])
		err = sb_export_state_read(plan->dir_fd, run->name, &run->state);
	sb_read_place_parse(&run->place, run->state.seen);
	sb_export_text(run->state.to, to.s);
	sb_export_text(run->state.what, plan->what);
	return err == -ENOENT ? 0 : err;
}

/* ---- time ---- */

static int64_t align(int64_t time_s, uint32_t step_s)
{
	int64_t rest = time_s % step_s;

	return time_s - (rest < 0 ? rest + step_s : rest);
}

static bool is_wanted_kind(const struct run *run, size_t i)
{
	return !run->plan->kind || sb_streq(run->plan->kind, run->extents[i].kind.name);
}

static int look(struct run *run)
{
	run->nr_extents = sb_store_extents(run->plan->store, run->extents);
	return run->nr_extents < 0 ? run->nr_extents : 0;
}

/* Find where the store begins and ends. Return: false if it is empty. */
static bool extent(const struct run *run, int64_t *ret_from_s, int64_t *ret_to_s)
{
	bool is_any = false;

	*ret_from_s = INT64_MAX;
	*ret_to_s = INT64_MIN;
	for (size_t i = 0; i < (size_t)run->nr_extents; i++) {
		if (!is_wanted_kind(run, i))
			continue;
		is_any = true;
		if (run->extents[i].from_s < *ret_from_s)
			*ret_from_s = run->extents[i].from_s;
		if (run->extents[i].to_s > *ret_to_s)
			*ret_to_s = run->extents[i].to_s;
	}
	return is_any;
}

/*
 * The end of the time for which no more blocks will come: each kind, which has a sampler of its
 * own, has a later block, or it was long enough ago. Blocks of future times, from a clock that was
 * wrong, do not count.
 */
static int64_t settled_to(const struct run *run)
{
	int64_t now_s = time(NULL), old_s = now_s - SB_EXPORT_SETTLE_S, to_s = now_s;

	for (size_t i = 0; i < (size_t)run->nr_extents; i++) {
		int64_t last_s = run->extents[i].to_s;

		if (is_wanted_kind(run, i) && last_s <= now_s + SB_STORE_BLOCK_S &&
		    last_s - 1 < to_s)
			to_s = last_s - 1;
		if (is_wanted_kind(run, i) && last_s > now_s + SB_STORE_BLOCK_S)
			to_s = old_s;
	}
	return to_s > old_s ? to_s : old_s;
}

/* ---- what comes too late ---- */

static void count_late(void *arg, const struct sb_record *block)
{
	struct run *run = arg;

	run->state.nr_late += !run->plan->kind || sb_streq(run->plan->kind, block->kind.name);
}

/* Count blocks for a time that was sent: a disk was full, or a clock was set back. */
static int note_late(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	uint64_t before = run->state.nr_late;
	int err;

	if (!run->name[0])
		return 0;
	err = sb_store_late_blocks(plan->store, &run->place, run->state.next_s, count_late, run);
	sb_read_place_print(&run->place, run->state.seen, sizeof(run->state.seen));
	if (err || run->state.nr_late == before)
		return err;
	if (!run->is_late_said)
		plan->say(plan->arg, true,
			  "blocks were recorded after their period was sent; they are counted "
			  "but not sent");
	run->is_late_said = true;
	return save(run);
}

/* ---- one period ---- */

/* The query for the kind with index @i. Everything is borrowed, so it is not released. */
static struct sb_ask question(struct run *run, size_t i, int64_t from_s, int64_t to_s)
{
	struct sb_ask ask = { .from_s = from_s, .to_s = to_s };

	ask.kind = run->extents[i].kind.name;
	if (run->plan->rules)
		ask.rules = *run->plan->rules;
	return ask;
}

static int answer_of(struct run *run, const struct sb_ask *ask, struct sb_profile **ret_profile,
		     struct sb_store_answer *ret_answer)
{
	const struct sb_export_plan *plan = run->plan;
	int err;

	err = sb_ask_profile(plan->store, ask, ret_profile, ret_answer);
	if (!err && ret_answer->nr_damaged && !run->is_damage_said) {
		run->is_damage_said = true;
		plan->say(plan->arg, true,
			  "the store has damaged records, which are not sent; 'stackbpf store "
			  "check' lists them");
	}
	return err;
}

/* Whether @key is one of the words of @list. */
static bool is_in(const char *list, const char *key)
{
	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		if (sb_text_is(list, strcspn(list, ","), key))
			return true;
	return false;
}

/* Find the tags that make a series: "host,region,service". */
static int keys_of(struct run *run, size_t i, int64_t from_s, int64_t to_s, struct sb_str *by)
{
	const struct sb_export_plan *plan = run->plan;
	sb_cleanup(sb_tags_freep) struct sb_tags *tags = NULL;
	struct sb_ask ask = question(run, i, from_s, to_s);
	size_t k;
	int err;

	sb_str_clear(by);
	if (plan->by)
		return sb_str_add(by, plan->by);
	err = sb_store_tags(plan->store, &ask, 1, &tags);
	for (k = 0; !err && k < tags->keys.nr; k++) {
		const struct sb_tag_counts *key = &tags->keys.at[k];

		if (key->is_wide || is_in(run->kind->without, key->key) || strchr(key->key, ',') ||
		    by->len + strlen(key->key) > BY_MAX)
			continue;
		err = by->len ? sb_str_addc(by, ',') : 0;
		err = err ?: sb_str_add(by, key->key);
	}
	return err;
}

/* Split a list in place. Return: how many keys there are. */
static size_t split(char *by, const char *keys[KEYS_MAX])
{
	size_t nr = 0;
	char *key;

	while (by && *by && nr < KEYS_MAX && (key = strsep(&by, ",")))
		keys[nr++] = key;
	return nr;
}

static int send_kind(struct run *run, size_t i, int64_t begin_s, int64_t end_s)
{
	sb_cleanup(sb_export_period_freep) struct sb_export_period *period = NULL;
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	struct sb_ask ask = question(run, i, begin_s, end_s);
	struct sb_store_answer answer;
	const char *keys[KEYS_MAX];
	sb_cleanup(sb_str_release) struct sb_str by = {};
	size_t nr_keys;
	int err = keys_of(run, i, begin_s, end_s, &by);

	ask.by = by.len ? by.s : NULL;
	err = err ?: answer_of(run, &ask, &profile, &answer);
	if (!err && sb_profile_nr_stacks(profile)) {
		nr_keys = split(by.s, keys);
		err = sb_export_period_new(profile, keys, nr_keys, begin_s, end_s, &period);
		err = err ?: run->kind->send(run->dest, &run->link, period);
	}
	return err;
}

static void say_notes(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;

	if (run->link.notes.len)
		plan->say(plan->arg, true, run->link.notes.s);
	sb_str_clear(&run->link.notes);
}

static int send_period(struct run *run, int64_t begin_s, int64_t end_s)
{
	size_t i;
	int err;

	run->state.next_s = begin_s;
	run->state.part_end_s = end_s;
	run->link.nr_pieces = 0;
	/* Blocks that exist by now are in the period. */
	err = note_late(run);
	for (i = 0; i < (size_t)run->nr_extents && !err; i++)
		if (is_wanted_kind(run, i))
			err = send_kind(run, i, begin_s, end_s);
	say_notes(run);
	return err;
}

/* ---- attempts ---- */

uint64_t sb_export_wait_ms(uint32_t nr_failures, uint32_t retry_after_s)
{
	uint64_t ms = SB_EXPORT_WAIT_MIN_MS;

	for (; nr_failures > 1 && ms < WAIT_MAX_MS; nr_failures--)
		ms *= 2;
	if (ms > WAIT_MAX_MS)
		ms = WAIT_MAX_MS;
	return retry_after_s * 1000ull > ms ? retry_after_s * 1000ull : ms;
}

/* Return: 0 or -ECANCELED. */
static int wait_for(struct run *run, uint64_t ms)
{
	struct pollfd poll_fd = { .fd = run->plan->http.stop_fd, .events = POLLIN };

	return poll(&poll_fd, 1, (int)ms) > 0 ? -ECANCELED : 0;
}

static void say_failure(struct run *run, uint64_t ms, bool is_last)
{
	const struct sb_export_plan *plan = run->plan;
	sb_cleanup(sb_str_release) struct sb_str text = {};
	int err = sb_str_add(&text, run->link.why.s ? run->link.why.s : "the reason is not known");

	if (!err && !is_last)
		err = sb_str_addf(&text, "; trying again in %.1f s, and the store keeps the data",
				  (double)ms / 1000);
	/* A destination that is away for long is reported once. */
	if (!err && (is_last || run->nr_failures == 1))
		plan->say(plan->arg, true, text.s);
}

static void say_well(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	char text[128];

	if (run->nr_failures) {
		snprintf(text, sizeof(text), "sending works again after %u failed attempts",
			 run->nr_failures);
		plan->say(plan->arg, false, text);
	}
	run->nr_failures = 0;
	run->state.error[0] = '\0';
}

/* Return: 0 to try again; otherwise why the export ends. */
static int after_failure(struct run *run, int err)
{
	bool is_follow = run->plan->is_follow, is_last;
	uint64_t ms;
	int saved;

	if (err != -EAGAIN && err != -EPERM)
		return err;
	run->nr_failures++;
	ms = sb_export_wait_ms(run->nr_failures, run->link.retry_after_s);
	sb_export_text(run->state.error, run->link.why.s ? run->link.why.s : "");
	saved = save(run);
	if (saved)
		return saved;
	/* A destination that never accepted anything may be a wrong address. */
	is_last = err == -EPERM ? !is_follow || !run->link.has_taken
				: !is_follow && (run->nr_failures >= SB_EXPORT_TRIES_MAX ||
						 run->link.retry_after_s > SB_EXPORT_WAIT_MAX_S);
	say_failure(run, ms, is_last);
	return is_last ? err : wait_for(run, ms);
}

/* Everything before @next_s is done. */
static int advance(struct run *run, int64_t next_s)
{
	int64_t from_s, to_s;

	run->state.next_s = next_s;
	run->state.part_end_s = 0;
	run->state.nr_part_pieces = 0;
	run->state.behind_s = 0;
	if (!extent(run, &from_s, &to_s))
		return save(run);
	/* Not up to a future time. */
	if (to_s > time(NULL))
		to_s = time(NULL);
	if (to_s > next_s)
		run->state.behind_s = (uint64_t)(to_s - next_s);
	return save(run);
}

static int send_until_taken(struct run *run, int64_t begin_s, int64_t end_s)
{
	uint64_t nr_pieces;
	int err;

	do {
		nr_pieces = run->state.nr_pieces;
		err = send_period(run, begin_s, end_s);
		if (!err) {
			say_well(run);
			run->state.nr_periods++;
			run->state.sent_s = time(NULL);
			return advance(run, end_s);
		}
		/* A piece was accepted, so the failures are not in a row. */
		if (run->state.nr_pieces > nr_pieces)
			run->nr_failures = 0;
		err = after_failure(run, err);
	} while (!err);
	return err;
}

/* ---- which period ---- */

/*
 * Find out what [from, to) has, of all kinds: 0 blocks, or the range that they cover, which is
 * larger where only aggregates are left.
 */
static int cover(struct run *run, int64_t from_s, int64_t to_s, struct sb_store_answer *ret_cover)
{
	struct sb_store_answer answer;
	int err = 0;

	*ret_cover = (struct sb_store_answer){ .from_s = INT64_MAX };
	for (size_t i = 0; i < (size_t)run->nr_extents && !err; i++) {
		sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
		struct sb_ask ask = question(run, i, from_s, to_s);

		if (!is_wanted_kind(run, i))
			continue;
		ask.nr_nodes_max = 1; /* only the times matter */
		err = answer_of(run, &ask, &profile, &answer);
		if (err || !answer.nr_blocks)
			continue;
		ret_cover->nr_blocks += answer.nr_blocks;
		if (answer.from_s < ret_cover->from_s)
			ret_cover->from_s = answer.from_s;
		if (answer.to_s > ret_cover->to_s)
			ret_cover->to_s = answer.to_s;
	}
	return err;
}

/* Move *begin_s over times without blocks, to a period that has some, or to @limit_s. */
static int skip_gap(struct run *run, int64_t *begin_s, int64_t limit_s,
		    struct sb_store_answer *ret_cover)
{
	int64_t every_s = run->plan->every_s, width_s = every_s;
	int err;

	ret_cover->nr_blocks = 0;
	while (*begin_s < limit_s) {
		int64_t end_s = *begin_s + width_s < limit_s ? *begin_s + width_s : limit_s;

		err = cover(run, *begin_s, end_s, ret_cover);
		if (err)
			return err;
		if (ret_cover->nr_blocks && width_s <= every_s)
			return 0;
		if (ret_cover->nr_blocks) {
			width_s = align(width_s / 2, (uint32_t)every_s);
			continue;
		}
		*begin_s = end_s;
		width_s *= 2;
	}
	return 0;
}

/* Send a period that is longer than asked for, because only aggregates are left. */
static int send_coarse(struct run *run, int64_t begin_s, struct sb_store_answer *covered)
{
	int64_t end_s = covered->to_s;

	/* A part of the aggregate was sent before, in finer blocks, and cannot be subtracted. */
	if (covered->from_s < begin_s) {
		run->state.expired_s += (uint64_t)(end_s - begin_s);
		return advance(run, end_s);
	}
	run->state.coarse_s += (uint64_t)(end_s - begin_s);
	return send_until_taken(run, begin_s, end_s);
}

/* Send all complete periods up to @limit_s. */
static int send_all(struct run *run, int64_t limit_s)
{
	int64_t every_s = run->plan->every_s, begin_s, end_s;
	struct sb_store_answer covered;
	int err = 0;

	/* First finish the period that was begun, with the same limits. */
	if (run->state.part_end_s > run->state.next_s && run->state.nr_part_pieces)
		err = send_until_taken(run, run->state.next_s, run->state.part_end_s);
	while (!err && run->state.next_s < limit_s) {
		begin_s = run->state.next_s;
		err = skip_gap(run, &begin_s, limit_s, &covered);
		if (err)
			return err;
		end_s = align(begin_s, (uint32_t)every_s) + every_s;
		if (begin_s >= limit_s || !covered.nr_blocks)
			return begin_s > run->state.next_s ? advance(run, begin_s) : 0;
		if (covered.from_s < begin_s || covered.to_s > end_s)
			err = send_coarse(run, begin_s, &covered);
		else
			err = send_until_taken(run, begin_s, end_s);
	}
	return err;
}

/* The end of the last period that can be sent. */
static int64_t limit_of(const struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	int64_t every_s = plan->every_s, from_s, to_s, limit_s, settled_s;

	if (!extent(run, &from_s, &to_s))
		return 0;
	limit_s = align(to_s + every_s - 1, plan->every_s);
	if (plan->to_s && align(plan->to_s + every_s - 1, plan->every_s) < limit_s)
		limit_s = align(plan->to_s + every_s - 1, plan->every_s);
	settled_s = align(settled_to(run), plan->every_s);
	return settled_s < limit_s ? settled_s : limit_s;
}

/* Choose where to begin, as soon as the store has blocks. */
static int begin(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	struct sb_export_state *state = &run->state;
	int64_t from_s, to_s, first_s;

	if (!extent(run, &from_s, &to_s))
		return 0;
	first_s = align(from_s, plan->every_s);
	if (!state->next_s)
		state->next_s = plan->from_s && plan->from_s > first_s
					? align(plan->from_s, plan->every_s)
					: first_s;
	if (state->next_s >= first_s)
		return 0;
	state->expired_s += (uint64_t)(first_s - state->next_s);
	return advance(run, first_s);
}

static int go(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	int err;

	for (;;) {
		err = look(run);
		err = err ?: begin(run);
		err = err ?: note_late(run);
		run->limit_s = err ? 0 : limit_of(run);
		err = err ?: send_all(run, run->limit_s);
		if (err || !plan->is_follow)
			return err;
		if (plan->to_s && run->state.next_s >= plan->to_s)
			return 0;
		/* Blocks come every 10 s. */
		err = wait_for(run, LOOK_MS);
		if (err)
			return err;
	}
}

/* Hash of this machine, by machine-id(5) or its name, and of the query. */
static uint64_t salt_of(const struct sb_export_plan *plan)
{
	sb_cleanup(sb_freep) char *id = NULL;
	char name[HOST_NAME_MAX + 1] = "";
	size_t len;
	uint64_t hash;

	if (!sb_read_file("/etc/machine-id", 4096, &id, &len) && len) {
		hash = sb_hash(id, len, 0);
	} else {
		(void)gethostname(name, sizeof(name) - 1);
		hash = sb_hash(name, strlen(name), 0);
	}
	return sb_hash(plan->what, strlen(plan->what), hash);
}

static int open_all(struct run *run)
{
	const struct sb_export_plan *plan = run->plan;
	struct sb_export_opts opts = plan->opts;
	const char *why = "is not valid";
	struct sb_str text = {};
	int err;

	opts.salt = salt_of(plan);
	run->kind = sb_export_find(plan->to, &opts.address);
	if (!run->kind)
		err = -EINVAL;
	else if (run->kind->is_http && !sb_export_is_url(opts.address)) {
		why = "must continue with http://HOST or https://HOST";
		err = -EINVAL;
	} else {
		err = run->kind->open(&opts, &run->dest, &why);
	}
	if (err == -EINVAL && !sb_str_addf(&text, "the destination '%s' %s", plan->to, why))
		plan->say(plan->arg, true, text.s);
	sb_str_release(&text);
	if (!err && run->kind->is_http)
		err = sb_http_new(&plan->http, &run->link.http);
	return err ?: load_state(run);
}

int sb_export_run(const struct sb_export_plan *plan, struct sb_export_state *ret_state)
{
	struct run run = { .plan = plan, .lock_fd = -1 };
	int err;

	run.link.state = &run.state;
	run.link.save = save;
	run.link.arg = &run;
	err = open_all(&run);
	err = err ?: go(&run);
	*ret_state = run.state;
	if (run.dest)
		run.kind->close(run.dest);
	sb_http_free(run.link.http);
	sb_http_reply_release(&run.link.reply);
	sb_str_release(&run.link.why);
	sb_str_release(&run.link.notes);
	sb_closep(&run.lock_fd);
	return err;
}
