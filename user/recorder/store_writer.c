// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recorder/store_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/str.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "store/block.h"
#include "store/share.h"
#include "store/store.h"
#include "workers/privileges.h"

#define READ_BYTES	  (64u << 10)
/* Blocks that are kept while they cannot be written. */
#define PENDING_BYTES_MAX (32u << 20)
#define EXPIRE_S	  600
/* Distinct values of one tag in a day, for tags that are kept for ever. */
#define VALUES_MAX	  4096u
#define LABEL_VALUES_MAX  1000u
#define KEYS_MAX	  64u
#define DAY_S		  86400
#define STORE_USER	  "stackbpf-store"
/* A clock that was set ahead by more than this is believed after some time. */
#define AHEAD_S		  60
#define BELIEVED_S	  3600

struct request {
	struct sb_store_writer_kinds
		kinds; /* of a new sampler, whose stream comes along; none: all have ended */
};

struct answer {
	int32_t err;
	struct sb_recorder_stats stats;
};

struct source {
	int fd; /* -1: the sampler has ended */
	struct sb_store_writer_kinds kinds;
	struct sb_str in;
};

struct pending {
	struct sb_store_writer_kinds kinds;
	struct sb_str message;
};

/* The values that a tag had today. */
struct key_values {
	const char *key; /* of the strings of `keys` */
	uint32_t max;
	struct sb_strtab values;
	uint32_t nr_own[SB_SHARE_OWNERS_MAX]; /* of these, by whose samples had them first */
};

struct writer {
	const struct sb_recorder_config *opts;
	const struct sb_watch *watch;
	const char *path;
	char host[HOST_NAME_MAX + 1];
	int fd; /* to the recorder process */
	struct sb_store *store;
	SB_VEC(struct source) sources;
	SB_VEC(struct pending) pending; /* oldest first */
	size_t nr_pending_bytes;
	SB_VEC(struct key_values) keys;
	struct sb_share_owners owners; /* of the day */
	int64_t day, expired_s;
	int64_t offset_s; /* CLOCK_REALTIME - CLOCK_BOOTTIME at the last look; 0: not looked at yet */
	int64_t ahead_s; /* CLOCK_BOOTTIME when the clock was found to be set ahead; 0: never */
	bool cannot_write, cannot_expire, cannot_sync; /* was logged */
	uint64_t nr_failed;			       /* since then: blocks that are lost */
	struct sb_recorder_stats stats;
};

/* Tags. */

static void forget_values(struct writer *writer)
{
	size_t i;

	for (i = 0; i < writer->keys.nr; i++) {
		sb_strtab_release(&writer->keys.at[i].values);
		free((char *)writer->keys.at[i].key);
	}
	sb_vec_release(&writer->keys);
	writer->owners.nr = 0;
}

static bool is_label(const struct writer *writer, const char *key)
{
	size_t i;

	for (i = 0; i < writer->opts->nr_labels; i++)
		if (sb_streq(writer->opts->labels[i], key))
			return true;
	return false;
}

/* Return: 0, and NULL where there are too many keys. */
static int values_of(struct writer *writer, const char *key, struct key_values **ret_values)
{
	struct key_values values = { .max = is_label(writer, key) ? LABEL_VALUES_MAX : VALUES_MAX };
	size_t i;
	int err;

	for (i = 0; i < writer->keys.nr; i++) {
		if (sb_streq(writer->keys.at[i].key, key)) {
			*ret_values = &writer->keys.at[i];
			return 0;
		}
	}
	*ret_values = NULL;
	if (writer->keys.nr == KEYS_MAX)
		return 0;
	values.key = strdup(key);
	err = values.key ? sb_strtab_init(&values.values) : -ENOMEM;
	if (!err)
		err = sb_vec_push(&writer->keys, values);
	if (err) {
		sb_strtab_release(&values.values);
		free((char *)values.key);
		return err;
	}
	*ret_values = &writer->keys.at[writer->keys.nr - 1];
	return 0;
}

static bool has_value(const struct key_values *values, const char *value)
{
	const struct sb_strtab *tab = &values->values;

	sb_index_each(it, &tab->index, sb_hash(value, strlen(value), 0))
		if (sb_streq(tab->strs.at[it.id].s, value))
			return true;
	return false;
}

/* The owner of a series. */
struct owner {
	uint32_t id;
	const struct sb_share_tags *tags;
};

/* Replace a value beyond the owner's share of the day by "(other)", and a cgroup by the owner's. */
static int bound_value(struct writer *writer, struct sb_tag *tag, const struct owner *owner,
		       bool *is_other)
{
	struct key_values *values;
	size_t nr;
	uint32_t id;
	int err = values_of(writer, tag->key, &values);

	if (err)
		return err;
	/* The table has "" as well. */
	nr = values ? values->values.strs.nr - 1 : 0;
	if (values && has_value(values, tag->value))
		return 0;
	if (values && sb_share_allows(values->max, nr, values->nr_own[owner->id])) {
		values->nr_own[owner->id]++;
		return sb_strtab_add(&values->values, tag->value, strlen(tag->value), &id);
	}
	tag->value = sb_streq(tag->key, "cgroup") && owner->tags->cgroup[0] ? owner->tags->cgroup
									    : SB_SHARE_OTHER;
	*is_other = true;
	return 0;
}

static void put_tag(struct sb_tag *tags, size_t *nr, const char *key, const char *value)
{
	size_t i;

	for (i = 0; i < *nr && !sb_streq(tags[i].key, key); i++)
		;
	tags[i] = (struct sb_tag){ .key = key, .value = value };
	*nr += i == *nr;
}

static int by_key(const void *a, const void *b)
{
	const struct sb_tag *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/*
 * Combine the tags that came, our own, and those of the command line, which take precedence.
 * *is_other: set if a value became "(other)".
 */
static int complete_tags(struct writer *writer, struct sb_block *block,
			 struct sb_store_series *series, bool *is_other)
{
	size_t nr = 0, i;
	struct sb_tag *tags =
		sb_arena_alloc(&block->arena, SB_DICT_TAGS_MAX * sizeof(struct sb_tag));
	struct sb_share_tags *share = sb_arena_alloc(&block->arena, sizeof(*share));
	struct owner owner = { .tags = share };
	int err = tags && share ? 0 : -ENOMEM;

	if (err)
		return err;
	owner.id = sb_share_owner(&writer->owners, series->tags, series->nr_tags);
	sb_share_tags(owner.id, series->tags, series->nr_tags, share);
	for (i = 0; i < series->nr_tags && !err; i++) {
		tags[nr] = series->tags[i];
		if (is_label(writer, tags[nr].key))
			tags[nr].is_wide = false;
		if (!tags[nr].is_wide)
			err = bound_value(writer, &tags[nr], &owner, is_other);
		nr++;
	}
	if (err)
		return err;
	put_tag(tags, &nr, "host", writer->host);
	for (i = 0; i < writer->opts->nr_tags; i++)
		put_tag(tags, &nr, writer->opts->tags[i].key, writer->opts->tags[i].value);
	qsort(tags, nr, sizeof(tags[0]), by_key);
	series->tags = tags;
	series->nr_tags = nr;
	return 0;
}

static int complete_series(struct writer *writer, struct sb_block *block)
{
	bool *is_other = sb_arena_alloc(&block->arena, block->nr_series + 1);
	struct sb_row row;
	size_t i;
	int err = is_other ? 0 : -ENOMEM;

	for (i = 0; i < block->nr_series && !err; i++) {
		is_other[i] = false;
		err = complete_tags(writer, block, &block->series[i], &is_other[i]);
		if (!err)
			writer->stats.nr_other_series += is_other[i];
	}
	for (i = 0; i < sb_profile_nr_stacks(block->profile) && !err; i++) {
		row = sb_profile_row_at(block->profile, i);
		if (is_other[row.series])
			block->figure[SB_BLOCK_OTHER] += row.weight;
	}
	return err;
}

/* Writing. */

/* Whether the clock is trusted for expiry. What a wrong clock removes does not come back when the
 * clock is right again. */
static bool is_believed(struct writer *writer, int64_t now_s)
{
	int64_t boot_s = (int64_t)(sb_boot_ns() / SB_NS_PER_SEC), offset_s = now_s - boot_s;

	if (writer->offset_s && offset_s > writer->offset_s + AHEAD_S)
		writer->ahead_s = boot_s;
	writer->offset_s = offset_s;
	return !writer->ahead_s || boot_s - writer->ahead_s >= BELIEVED_S;
}

static void expire(struct writer *writer)
{
	const struct sb_store_prune to_size = { .bytes_max = writer->opts->bytes_max };
	int64_t now_s = (int64_t)(sb_real_us() / 1000000);
	int err;

	if (now_s - writer->expired_s < EXPIRE_S && now_s >= writer->expired_s)
		return;
	writer->expired_s = now_s;
	err = is_believed(writer, now_s) ? sb_store_expire(writer->store, now_s)
					 : sb_store_prune(writer->store, &to_size, now_s);
	if (err && !writer->cannot_expire)
		sb_recorder_tell(writer->opts, .kind = SB_RECORDER_NOT_EXPIRED, .err = err,
				 .store = writer->path);
	writer->cannot_expire = err;
}

static void say_sync(struct writer *writer)
{
	int err = sb_store_put_status(writer->store);

	if (err && !writer->cannot_sync)
		sb_recorder_tell(writer->opts, .kind = SB_RECORDER_NOT_SYNCED, .err = err,
				 .store = writer->path);
	writer->cannot_sync = err;
}

/* Return: 0; -EPROTO when it is no valid block; other errors can be tried again. */
static int put_block(struct writer *writer, const struct sb_store_writer_kinds *kinds,
		     const struct sb_str *message)
{
	struct sb_store_block whole = {};
	struct sb_block block;
	int err = sb_block_decode(message->s, message->len, writer->opts->nr_tags + 1, kinds->nr,
				  &block);

	if (err)
		return err;
	if (block.begin_s / DAY_S != writer->day) {
		forget_values(writer);
		writer->day = block.begin_s / DAY_S;
	}
	err = complete_series(writer, &block);
	whole.kind = kinds->at[block.kind].name;
	whole.unit = kinds->at[block.kind].unit;
	whole.begin_s = block.begin_s;
	whole.lead_ms = block.lead_ms;
	whole.series = block.series;
	whole.nr = block.nr_series;
	whole.profile = block.profile;
	memcpy(whole.figure, block.figure, sizeof(whole.figure));
	if (!err)
		err = sb_store_put(writer->store, &whole);
	sb_block_release(&block);
	/* A block takes much memory for a moment. */
	(void)malloc_trim(0);
	if (!err) {
		say_sync(writer);
		writer->stats.nr_blocks++;
		writer->stats.nr_bytes += message->len;
	}
	return err;
}

static void say_written(struct writer *writer)
{
	if (!writer->cannot_write)
		return;
	sb_recorder_tell(writer->opts, .kind = SB_RECORDER_WRITTEN, .store = writer->path,
			 .nr = writer->nr_failed);
	writer->cannot_write = false;
	writer->nr_failed = 0;
}

static void say_failed(struct writer *writer, int err)
{
	if (!writer->cannot_write)
		sb_recorder_tell(writer->opts, .kind = SB_RECORDER_NOT_WRITTEN, .err = err,
				 .store = writer->path, .nr = PENDING_BYTES_MAX >> 20);
	writer->cannot_write = true;
}

static void drop_first(struct writer *writer)
{
	struct pending *first = &writer->pending.at[0];

	writer->nr_pending_bytes -= first->message.len;
	sb_str_release(&first->message);
	memmove(first, first + 1, --writer->pending.nr * sizeof(*first));
}

static void keep_for_later(struct writer *writer, const struct source *source,
			   const struct sb_str *message)
{
	struct pending pending = { .kinds = source->kinds };

	while (writer->pending.nr && writer->nr_pending_bytes + message->len > PENDING_BYTES_MAX) {
		drop_first(writer);
		writer->nr_failed++;
		writer->stats.nr_dropped++;
	}
	if (sb_str_addn(&pending.message, message->s, message->len) ||
	    sb_vec_push(&writer->pending, pending)) {
		sb_str_release(&pending.message);
		writer->nr_failed++;
		writer->stats.nr_dropped++;
		return;
	}
	writer->nr_pending_bytes += message->len;
}

/* Return: whether all could be written. */
static bool put_pending(struct writer *writer)
{
	int err = 0;

	while (writer->pending.nr && !err) {
		err = put_block(writer, &writer->pending.at[0].kinds,
				&writer->pending.at[0].message);
		if (!err)
			drop_first(writer);
	}
	return !err;
}

/* Return: 0; -EPROTO when the sampler sent no valid block. */
static int take_block(struct writer *writer, const struct source *source,
		      const struct sb_str *message)
{
	int err = 0;

	expire(writer);
	if (put_pending(writer))
		err = put_block(writer, &source->kinds, message);
	else
		err = -ENOSPC;
	if (err == -EPROTO)
		return err;
	if (err) {
		say_failed(writer, err);
		keep_for_later(writer, source, message);
	} else {
		say_written(writer);
	}
	return 0;
}

/* Samplers. */

static void end_source(struct source *source)
{
	sb_closep(&source->fd);
	source->fd = -1;
	sb_str_release(&source->in);
}

/* Return: 0, or -EPROTO. */
static int take_messages(struct writer *writer, struct source *source)
{
	struct sb_str message = {};
	size_t len, at = 0;
	int err = 0;

	while (!err) {
		err = sb_block_scan(source->in.s + at, source->in.len - at, &len);
		if (err || len > source->in.len - at)
			break;
		message = (struct sb_str){ .s = source->in.s + at, .len = len };
		err = take_block(writer, source, &message);
		at += len;
	}
	if (at == source->in.len)
		sb_str_release(&source->in);
	else
		memmove(source->in.s, source->in.s + at, source->in.len -= at);
	return err == -EAGAIN ? 0 : err;
}

static void read_source(struct writer *writer, struct source *source)
{
	ssize_t nr;
	int err = sb_str_reserve(&source->in, READ_BYTES);

	if (err) {
		end_source(source);
		return;
	}
	nr = recv(source->fd, source->in.s + source->in.len, READ_BYTES, MSG_DONTWAIT);
	if (nr < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (nr <= 0) {
		end_source(source);
		return;
	}
	source->in.len += (size_t)nr;
	err = take_messages(writer, source);
	if (!err)
		return;
	writer->stats.nr_refused++;
	sb_recorder_tell(writer->opts, .kind = SB_RECORDER_REFUSED,
			 .sampler = source->kinds.at[0].name);
	end_source(source);
}

static void add_source(struct writer *writer, const struct request *request, int fd)
{
	struct source source = { .fd = fd, .kinds = request->kinds };

	if (sb_vec_push(&writer->sources, source))
		close(fd);
}

static size_t drop_ended(struct writer *writer)
{
	size_t i, nr = 0;

	for (i = 0; i < writer->sources.nr; i++)
		if (writer->sources.at[i].fd >= 0)
			writer->sources.at[nr++] = writer->sources.at[i];
	return writer->sources.nr = nr;
}

/* Return: whether the recorder still exists. *@is_asked: it wants the final figures. */
static bool take_request(struct writer *writer, bool *is_asked)
{
	struct request request;
	int fd = -1, nr = sb_peer_receive(writer->fd, &request, sizeof(request), &fd, 1);

	if (nr == -EMFILE || nr == -EPROTO)
		return true;
	if (nr < 0)
		return false;
	if (fd >= 0)
		add_source(writer, &request, fd);
	else
		*is_asked = true;
	return true;
}

/* Serve until nobody is left who could send a block. */
static bool serve(struct writer *writer)
{
	struct pollfd fds[64];
	bool has_owner = true, is_asked = false;
	size_t nr, i;

	while (drop_ended(writer) || (has_owner && !is_asked)) {
		sb_watch_beat(writer->watch, SB_WATCH_WRITER);
		nr = writer->sources.nr < SB_ARRAY_SIZE(fds) - 1 ? writer->sources.nr
								 : SB_ARRAY_SIZE(fds) - 1;
		for (i = 0; i < nr; i++)
			fds[i] =
				(struct pollfd){ .fd = writer->sources.at[i].fd, .events = POLLIN };
		fds[nr] = (struct pollfd){ .fd = has_owner && !is_asked ? writer->fd : -1,
					   .events = POLLIN };
		if (poll(fds, nr + 1, sb_watch_beat_ms(writer->watch)) < 0 && errno != EINTR)
			break;
		for (i = 0; i < nr; i++)
			if (fds[i].revents)
				read_source(writer, &writer->sources.at[i]);
		if (fds[nr].revents)
			has_owner = take_request(writer, &is_asked);
	}
	return is_asked;
}

/* Make the directory. If sudo was used, it belongs to the user behind it. Ownership is changed by
 * descriptor, because the name may mean something else by then, for instance a symbolic link to one
 * of root's directories. */
static int make_dir(const char *path, bool *ret_is_new)
{
	struct sb_owner owner = sb_sudo_owner();
	sb_cleanup(sb_closep) int fd = -1;
	struct stat st;

	if (mkdir(path, 0750))
		return errno == EEXIST ? 0 : -errno;
	*ret_is_new = true;
	if (geteuid() || !owner.uid)
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	/* A directory that was just made has no other link and is empty. */
	if (st.st_uid || st.st_nlink > 2 || !sb_dir_is_empty(fd))
		return -ENOTEMPTY;
	return fchown(fd, owner.uid, owner.gid) ? -errno : 0;
}

/* Give a directory and what is in it to a user. Takes over @dir_fd. Symbolic links are not
 * followed. */
static int give_dir(int dir_fd, uid_t uid)
{
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	const struct dirent *entry;
	struct stat st;
	int err = dir ? 0 : -errno;

	if (!dir) {
		sb_closep(&dir_fd);
		return err;
	}
	if (fchown(dir_fd, uid, (gid_t)-1))
		err = -errno;
	while (!err && (entry = readdir(dir))) {
		if (sb_streq(entry->d_name, ".") || sb_streq(entry->d_name, "..") ||
		    fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode))
			err = give_dir(openat(dir_fd, entry->d_name,
					      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				       uid);
		else if (fchownat(dir_fd, entry->d_name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW))
			err = -errno;
	}
	closedir(dir);
	return err;
}

/* Choose who writes. A store of root's is given to the user for stores
 * (systemd/stackbpf-store.sysusers.conf), so that the writer need not be root; only if it is a
 * store already, or was just made. */
static int choose_writer(const char *path, bool is_new, struct sb_owner *ret_who)
{
	sb_cleanup(sb_closep) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct passwd *passwd;
	struct stat st;
	int err;

	if (dir_fd < 0 || fstat(dir_fd, &st))
		return -errno;
	*ret_who = (struct sb_owner){ .uid = st.st_uid, .gid = st.st_gid };
	if (st.st_uid || geteuid() || (!is_new && faccessat(dir_fd, SB_STORE_MARK, F_OK, 0)))
		return 0;
	passwd = getpwnam(STORE_USER);
	if (!passwd)
		return 0;
	err = give_dir(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), passwd->pw_uid);
	ret_who->uid = passwd->pw_uid;
	return err;
}

static int open_store(struct writer *writer)
{
	struct sb_store_opts opts = {
		.no_sync = writer->opts->no_sync,
		.bytes_max = writer->opts->bytes_max,
	};
	struct sb_owner who;
	size_t i;
	int err = make_dir(writer->path, &writer->stats.has_made_store);

	if (!err)
		err = choose_writer(writer->path, writer->stats.has_made_store, &who);
	if (!err)
		err = sb_privileges_to_write(&who);
	for (i = 0; i < SB_STORE_LEVELS; i++)
		opts.keep_s[i] =
			writer->opts->has_keep[i] ? writer->opts->keep_s[i] : sb_levels[i].keep_s;
	if (!err)
		err = sb_store_open_to_write(writer->path, &opts, &writer->store);
	return err ? err : sb_privileges_to_store(writer->path);
}

static const char *path_of(const struct sb_recorder_config *opts)
{
	return opts->store ? opts->store : SB_RECORDER_STORE;
}

struct start {
	const struct sb_recorder_config *opts;
	const struct sb_watch *watch;
};

static void be_writer(void *arg, int fd)
{
	const struct start *start = arg;
	struct writer writer = { .opts = start->opts, .watch = start->watch, .fd = fd };
	struct answer answer = {};
	size_t i;

	(void)prctl(PR_SET_NAME, "stackbpf-store");
	writer.path = path_of(writer.opts);
	if (gethostname(writer.host, sizeof(writer.host) - 1))
		snprintf(writer.host, sizeof(writer.host), "localhost");
	sb_replace_controls(writer.host, strlen(writer.host));
	answer.err = open_store(&writer);
	answer.stats = writer.stats;
	sb_watch_beat(writer.watch, SB_WATCH_WRITER);
	if (sb_peer_send(fd, &answer, sizeof(answer), NULL, 0) || answer.err)
		return;
	expire(&writer);
	if (serve(&writer)) {
		(void)put_pending(&writer);
		writer.stats.nr_dropped += writer.pending.nr;
		writer.stats.own_ns = sb_cpu_time_ns();
		answer.stats = writer.stats;
		(void)sb_peer_send(fd, &answer, sizeof(answer), NULL, 0);
	}
	sb_store_close(writer.store);
	forget_values(&writer);
	for (i = 0; i < writer.pending.nr; i++)
		sb_str_release(&writer.pending.at[i].message);
	sb_vec_release(&writer.pending);
	sb_vec_release(&writer.sources);
}

/* In the recorder's process. */

int sb_store_writer_new(const struct sb_recorder_config *opts, const struct sb_watch *watch,
			struct sb_peer *ret_peer)
{
	struct start start = { .opts = opts, .watch = watch };
	struct answer answer = {};
	/* Of a writer that was killed nobody hears what it has made. */
	const bool was_there = !faccessat(AT_FDCWD, path_of(opts), F_OK, AT_SYMLINK_NOFOLLOW);
	int err = sb_peer_new(be_writer, &start, ret_peer);

	if (err)
		return err;
	err = sb_peer_receive(ret_peer->fd, &answer, sizeof(answer), NULL, 0);
	err = err < 0 ? err : answer.err;
	if (!err)
		return 0;
	sb_peer_release(ret_peer);
	/* Here, because the writer may have dropped the privileges that this needs. If it cannot be
	 * removed, it is only an empty store. */
	if (!was_there)
		(void)sb_store_remove_empty(path_of(opts));
	return err;
}

int sb_store_writer_add(struct sb_peer *peer, const struct sb_store_writer_kinds *kinds, int fd)
{
	const struct request request = { .kinds = *kinds };

	return sb_peer_send(peer->fd, &request, sizeof(request), &fd, 1);
}

int sb_store_writer_end(struct sb_peer *peer, struct sb_recorder_stats *ret_stats)
{
	const struct request request = {};
	struct answer answer = {};
	int err = sb_peer_send(peer->fd, &request, sizeof(request), NULL, 0);

	if (!err)
		err = sb_peer_receive(peer->fd, &answer, sizeof(answer), NULL, 0);
	if (err >= 0)
		*ret_stats = answer.stats;
	sb_peer_release(peer);
	return err < 0 ? err : 0;
}
