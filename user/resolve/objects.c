// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/objects.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_latency.h"
#include "bpf/abi/sb_abi_trace.h"
#include "resolve/value_names.h"

/* The least that follows the header of each kind. */
static const size_t data_bytes_min[SB_OBJECT_KIND_MAX] = {
	[SB_OBJECT_TASK] = sizeof(struct sb_object_task),
	[SB_OBJECT_WAKER] = sizeof(struct sb_object_waker),
	[SB_OBJECT_FILE] = sizeof(struct sb_object_file),
	[SB_OBJECT_VALUE] = sizeof(struct sb_object_value),
	[SB_OBJECT_CALL] = sizeof(struct sb_object_call),
};

static void release_object(struct sb_object *object)
{
	free(object->data);
	free(object->frames.at);
}

void sb_object_cache_release(struct sb_object_cache *cache)
{
	size_t i;

	for (i = 0; i < cache->at.nr; i++)
		release_object(&cache->at.at[i]);
	sb_vec_release(&cache->at);
	sb_index_release(&cache->index);
	sb_vec_release(&cache->unwanted);
}

struct sb_object *sb_object_cache_find(struct sb_object_cache *cache, uint64_t id)
{
	sb_index_each(it, &cache->index, id) {
		struct sb_object *object = &cache->at.at[it.id];

		if (object->id == id) {
			object->batch = *cache->batch;
			return object;
		}
	}
	return NULL;
}

/* Check an object against --path, by its path or by the text that stands for one. */
static int check_path(struct sb_object_cache *cache, struct sb_object *object)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	int err;

	if (!cache->path_glob || object->kind != SB_OBJECT_FILE)
		return 0;
	err = sb_object_file_text(object, SB_FILE_TEXT_PATH, &text);
	if (err || !fnmatch(cache->path_glob, text.s, 0))
		return err;
	object->is_unwanted = true;
	return sb_vec_push(&cache->unwanted, object->id);
}

int sb_object_cache_add(struct sb_object_cache *cache, const struct sb_batch_object *from)
{
	struct sb_object object = {
		.id = from->id,
		.kind = from->kind,
		.nr_bytes = from->nr_bytes,
		.batch = *cache->batch,
	};
	int err;

	if (!from->kind || from->kind >= SB_OBJECT_KIND_MAX ||
	    from->nr_bytes < data_bytes_min[from->kind])
		return -EBADMSG;
	if (sb_object_cache_find(cache, from->id))
		return 0;
	object.data = sb_cache_copy(from->data, from->nr_bytes);
	err = object.data ? check_path(cache, &object) : -ENOMEM;
	err = err ?: sb_index_push(&cache->index, object.id, &cache->at, object);
	if (err)
		release_object(&object);
	return err;
}

static bool is_evictable(const struct sb_object_cache *cache, const struct sb_object *object,
			 struct sb_ended *ended)
{
	const struct sb_object_waker *waker = object->data;

	return object->kind == SB_OBJECT_WAKER && object->batch + 1 < *cache->batch &&
	       sb_ended_has(ended, waker->tgid);
}

int sb_object_cache_evict(struct sb_object_cache *cache, struct sb_ended *ended)
{
	size_t i, nr = 0;
	int err = 0;

	if (!sb_evict_is_due(cache->at.nr, cache->nr_kept, cache->nr_max))
		return 0;
	sb_index_release(&cache->index);
	for (i = 0; i < cache->at.nr; i++) {
		struct sb_object *object = &cache->at.at[i];

		if (is_evictable(cache, object, ended)) {
			release_object(object);
			continue;
		}
		if (!err)
			err = sb_index_add(&cache->index, object->id, (uint32_t)nr);
		cache->at.at[nr++] = *object;
	}
	cache->at.nr = cache->nr_kept = nr;
	sb_vec_trim(&cache->at);
	return err;
}

int sb_object_value_text(const struct sb_object *object, const char *name, struct sb_str *text)
{
	const struct sb_object_value *value = object->data;
	const char *string = (const char *)value->text;
	size_t len = strnlen(string, sizeof(value->text));
	int named;

	sb_str_clear(text);
	named = sb_value_add_name(text, value->kind, value->number);
	if (named)
		return named < 0 ? named : 0;
	switch (value->kind) {
	case SB_EXPR_STRING:
		return sb_str_addf(text, "[%s=%.*s%s]", name, (int)len, string,
				   len >= SB_EXPR_STRING_MAX ? "..." : "");
	case SB_EXPR_POINTER:
		return sb_str_addf(text, "[%s=0x%llx]", name, (unsigned long long)value->number);
	default:
		return value->is_signed
			       ? sb_str_addf(text, "[%s=%lld]", name, (long long)value->number)
			       : sb_str_addf(text, "[%s=%llu]", name,
					     (unsigned long long)value->number);
	}
}

static const char *socket_name(const struct sb_object_file *file)
{
	switch (file->sock_family) {
	case AF_UNIX:
		return "unix";
	case AF_INET:
	case AF_INET6:
		return file->sock_type == SOCK_STREAM  ? "tcp"
		       : file->sock_type == SOCK_DGRAM ? "udp"
						       : "ip";
	case AF_NETLINK:
		return "netlink";
	case AF_PACKET:
		return "packet";
	case AF_VSOCK:
		return "vsock";
	default:
		return NULL;
	}
}

static int socket_text(const struct sb_object_file *file, struct sb_str *text)
{
	const char *name = socket_name(file);

	return name ? sb_str_addf(text, "[socket: %s]", name)
		    : sb_str_addf(text, "[socket: family %u]", file->sock_family);
}

/* The name of an anonymous inode, "[eventfd]", without its brackets. */
static int anon_text(const char *name, size_t len, enum sb_file_text how, struct sb_str *text)
{
	len = strnlen(name, len);
	if (how == SB_FILE_TEXT_FULL)
		return sb_str_addf(text, "anon_inode:%.*s", (int)len, name);
	if (len && name[0] == '[') {
		name++;
		len--;
	}
	if (len && name[len - 1] == ']')
		len--;
	return sb_str_addf(text, "[anon: %.*s]", (int)len, name);
}

/* Files without a path, by enum sb_file_kind. */
static int nameless_text(const struct sb_object_file *file, enum sb_file_text how,
			 struct sb_str *text)
{
	static const char *const names[SB_FILE_KIND_MAX] = {
		[SB_FILE_PIPE] = "[pipe]",
		[SB_FILE_TTY] = "[tty]",
		[SB_FILE_NONE] = "[no file]",
	};

	if (how == SB_FILE_TEXT_FULL && file->kind == SB_FILE_PIPE)
		return sb_str_addf(text, "pipe:[%llu]", (unsigned long long)file->ino);
	if (how == SB_FILE_TEXT_FULL && file->kind == SB_FILE_SOCK)
		return sb_str_addf(text, "socket:[%llu]", (unsigned long long)file->ino);
	if (file->kind == SB_FILE_SOCK)
		return socket_text(file, text);
	if (file->kind < SB_FILE_KIND_MAX && names[file->kind])
		return sb_str_add(text, names[file->kind]);
	return sb_str_addf(text, "[%.*s: %llu]", SB_FS_NAME_LEN, file->fs[0] ? file->fs : "file",
			   (unsigned long long)file->ino);
}

/* Components come leaf first, each ended by NUL. */
static int path_text(const struct sb_object_file *file, const char *path, size_t len, bool is_base,
		     struct sb_str *text)
{
	size_t end = len, at;
	int err = 0;

	while (end && !path[end - 1])
		end--; /* the outermost component's end */
	if (!end)
		return sb_str_addc(text, '/');
	if (is_base && path[0])
		return sb_str_addn(text, path, strnlen(path, len));
	if (file->flags & SB_FILE_NO_MOUNT)
		err = sb_str_addf(text, "%.*s:", SB_FS_NAME_LEN, file->fs);
	if (!err && (file->flags & SB_FILE_PATH_CUT))
		err = sb_str_add(text, "[...]");
	while (end && !err) {
		for (at = end; at && path[at - 1]; at--)
			;
		err = sb_str_addc(text, '/');
		if (!err)
			err = sb_str_addn(text, path + at, end - at);
		end = at ? at - 1 : 0;
	}
	return err;
}

int sb_object_file_text(const struct sb_object *object, enum sb_file_text how, struct sb_str *text)
{
	const struct sb_object_file *file = object->data;
	const char *path = (const char *)(file + 1);
	size_t len = object->nr_bytes - sizeof(*file);
	int err;

	if (len > file->path_bytes)
		len = file->path_bytes;
	if (file->kind == SB_FILE_ANON)
		return anon_text(path, len, how, text);
	if (!len && file->kind == SB_FILE_DIR)
		return sb_str_add(text, "/");
	if (!len)
		return nameless_text(file, how, text);
	err = path_text(file, path, len, how == SB_FILE_TEXT_BASE, text);
	if (!err && (file->flags & SB_FILE_DELETED))
		err = sb_str_add(text, " (deleted)");
	return err;
}
