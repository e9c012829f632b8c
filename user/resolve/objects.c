// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/objects.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* The least that follows the header of each kind. */
static const size_t data_bytes_min[SB_OBJECT_KIND_MAX] = {
	[SB_OBJECT_TASK] = sizeof(struct sb_object_task),
	[SB_OBJECT_WAKER] = sizeof(struct sb_object_waker),
	[SB_OBJECT_FILE] = sizeof(struct sb_object_file),
};

void sb_objects_release(struct sb_objects *objects)
{
	sb_vec_release(&objects->at);
	sb_index_release(&objects->index);
	sb_arena_release(&objects->data);
	sb_vec_release(&objects->frames);
	sb_vec_release(&objects->unwanted);
}

struct sb_object *sb_objects_find(struct sb_objects *objects, uint64_t id)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&objects->index, id); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&objects->index, it))
		if (objects->at.at[it.id].id == id)
			return &objects->at.at[it.id];
	return NULL;
}

/* Check an object against --path, by its path or by the text that stands for one. */
static int check_path(struct sb_objects *objects, struct sb_object *object, const char *glob)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	int err;

	if (!glob || object->kind != SB_OBJECT_FILE)
		return 0;
	err = sb_object_file_text(object, SB_FILE_TEXT_PATH, &text);
	if (err || !fnmatch(glob, text.s, 0))
		return err;
	object->is_unwanted = true;
	return sb_vec_push(&objects->unwanted, object->id);
}

int sb_objects_set_frames(struct sb_objects *objects, struct sb_object *object,
			  const uint32_t *frames, size_t nr)
{
	int err = sb_vec_reserve(&objects->frames, objects->frames.nr + nr);

	if (err)
		return err;
	if (nr)
		memcpy(objects->frames.at + objects->frames.nr, frames, nr * sizeof(*frames));
	object->first_frame = objects->frames.nr;
	object->nr_frames = nr;
	objects->frames.nr += nr;
	return 0;
}

/* Append an object; its data and frames are copied. */
static int push_object(struct sb_objects *objects, const struct sb_object *from,
		       const uint32_t *frames)
{
	struct sb_object object = *from;
	void *data = sb_arena_alloc(&objects->data, from->nr_bytes);
	int err = data ? 0 : -ENOMEM;

	if (err)
		return err;
	object.data = memcpy(data, from->data, from->nr_bytes);
	err = sb_objects_set_frames(objects, &object, frames, from->nr_frames);
	if (!err)
		err = sb_vec_push(&objects->at, object);
	return err ? err : sb_index_add(&objects->index, object.id, (uint32_t)objects->at.nr - 1);
}

int sb_objects_keep(struct sb_objects *objects, const struct sb_batch_object *from,
		    const char *path_glob, uint64_t batch)
{
	struct sb_object object = {
		.id = from->id,
		.kind = from->kind,
		.nr_bytes = from->nr_bytes,
		.data = from->data,
		.batch = batch,
	};
	struct sb_object *known;
	int err;

	if (!from->kind || from->kind >= SB_OBJECT_KIND_MAX ||
	    from->nr_bytes < data_bytes_min[from->kind])
		return -EBADMSG;
	known = sb_objects_find(objects, from->id);
	if (known) {
		known->batch = batch;
		return 0;
	}
	err = check_path(objects, &object, path_glob);
	return err ? err : push_object(objects, &object, NULL);
}

int sb_objects_shed(struct sb_objects *objects,
		    bool (*is_of_use)(void *arg, const struct sb_object *object), void *arg)
{
	struct sb_objects kept = {};
	size_t i;
	int err = 0;

	for (i = 0; i < objects->at.nr && !err; i++) {
		const struct sb_object *object = &objects->at.at[i];

		if (is_of_use(arg, object))
			err = push_object(&kept, object, objects->frames.at + object->first_frame);
	}
	if (err) {
		sb_objects_release(&kept);
		return err;
	}
	/* Unwanted objects are listed by ID, so the list stays valid. */
	memcpy(&kept.unwanted, &objects->unwanted, sizeof(kept.unwanted));
	memset(&objects->unwanted, 0, sizeof(objects->unwanted));
	sb_objects_release(objects);
	*objects = kept;
	return 0;
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
