// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The types of the kernel that a BPF object names. libbpf searches all types of the kernel for each
 * of them (CO-RE): 150,000 types, 0.9 ms for each name. So it is given only those of their names,
 * with what lies in them, as another BTF. Members keep their places; pointers lead to nothing,
 * because relocations do not follow them. The format is described in Documentation/bpf/btf.rst of
 * the kernel.
 *
 * Where the per-CPU variables of the kernel are is in its BTF, too, as the section ".data..percpu",
 * which CO-RE cannot look into. An object that names struct sb_percpu gets it with a member for
 * each variable.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "views/views.h"

#define PERCPU_SECTION ".data..percpu"
#define PERCPU_TYPE    "sb_percpu"
#define VMLINUX	       "/sys/kernel/btf/vmlinux"
/* That of Linux 6.18 has 6 MB. */
#define BTF_BYTES_MAX  (256u << 20)
/* In linux/btf.h of newer kernels only. */
#define KIND_DECL_TAG  17
#define KIND_TYPE_TAG  18
#define KIND_ENUM64    19
/* struct btf_enum64: name, low half, high half. */
#define ENUM64_WORDS   3

/* A BTF that is read. */
struct source {
	const char *types, *strs;
	uint32_t types_len, strs_len;
	sb_vec_u32 at; /* by ID: where the type is; 0 is void */
};

/* Names that are looked for. */
struct names {
	SB_VEC(struct name {
		const char *s; /* borrowed; not terminated */
		size_t len;
	})
	at;
	struct sb_index index;
};

struct writing {
	const struct source *from;
	sb_vec_u32 new_ids; /* by old ID; 0: it was not needed yet */
	sb_vec_u32 old_ids; /* in the order in which they are written */
	struct sb_str types, strs;
};

static bool is_named_kind(uint32_t kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
	       kind == KIND_ENUM64 || kind == BTF_KIND_TYPEDEF;
}

/* Return: bytes behind the struct btf_type; or -EBADMSG. */
static int64_t bytes_behind(const struct btf_type *type)
{
	const uint32_t vlen = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * (int64_t)sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * (int64_t)sizeof(struct btf_enum);
	case KIND_ENUM64:
		return vlen * (int64_t)(ENUM64_WORDS * sizeof(uint32_t));
	case BTF_KIND_FUNC_PROTO:
		return vlen * (int64_t)sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return vlen * (int64_t)sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case KIND_TYPE_TAG:
		return 0;
	default:
		return -EBADMSG;
	}
}

static int find_sections(const void *all, size_t nr_bytes, struct source *source)
{
	const struct btf_header *header = all;
	size_t behind;

	if (nr_bytes < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->hdr_len < sizeof(*header) || header->hdr_len > nr_bytes)
		return -EBADMSG;
	behind = nr_bytes - header->hdr_len;
	if (header->type_off % 4 || header->hdr_len % 4 || header->type_off > behind ||
	    header->type_len > behind - header->type_off || header->str_off > behind ||
	    header->str_len > behind - header->str_off || !header->str_len)
		return -EBADMSG;
	source->types = (const char *)all + header->hdr_len + header->type_off;
	source->types_len = header->type_len;
	source->strs = (const char *)all + header->hdr_len + header->str_off;
	source->strs_len = header->str_len;
	return source->strs[source->strs_len - 1] ? -EBADMSG : 0;
}

/* Find where each type is, and check that it lies in the section, and its name. */
static int find_types(struct source *source)
{
	const struct btf_type *type;
	uint32_t at, left;
	int64_t behind;
	int err = sb_vec_push(&source->at, 0);

	for (at = 0; at < source->types_len && !err; at += (uint32_t)(sizeof(*type) + behind)) {
		left = source->types_len - at;
		type = (const struct btf_type *)(source->types + at);
		behind = left < sizeof(*type) ? -EBADMSG : bytes_behind(type);
		if (behind < 0 || behind > (int64_t)(left - sizeof(*type)) ||
		    type->name_off >= source->strs_len)
			return -EBADMSG;
		err = sb_vec_push(&source->at, at);
	}
	return err;
}

static const struct btf_type *type_at(const struct source *source, uint32_t id)
{
	return (const struct btf_type *)(source->types + source->at.at[id]);
}

static bool has_name(const struct names *names, const char *s, size_t len)
{
	const struct name *name;

	sb_index_each(it, &names->index, sb_hash(s, len, 0)) {
		name = &names->at.at[it.id];
		if (name->len == len && !memcmp(name->s, s, len))
			return true;
	}
	return false;
}

static int add_name(struct names *names, const char *s)
{
	const char *flavor = strstr(s, "___");
	const struct name name = { s, flavor ? (size_t)(flavor - s) : strlen(s) };
	int err;

	if (!name.len || has_name(names, name.s, name.len))
		return 0;
	err = sb_vec_push(&names->at, name);
	return err ? err
		   : sb_index_add(&names->index, sb_hash(name.s, name.len, 0),
				  (uint32_t)names->at.nr - 1);
}

static int find_names(const struct btf *object, struct names *names)
{
	const uint32_t nr = btf__type_cnt(object);
	const struct btf_type *type;
	uint32_t id;
	int err = 0;

	for (id = 1; id < nr && !err; id++) {
		type = btf__type_by_id(object, id);
		if (is_named_kind(btf_kind(type)))
			err = add_name(names, btf__name_by_offset(object, type->name_off));
	}
	return err;
}

/* Return: 0, with the ID that the type @id will have; -ENOMEM; -EBADMSG: there is no such type. */
static int need(struct writing *to, uint32_t id, uint32_t *ret_new_id)
{
	int err;

	if (id >= to->from->at.nr)
		return -EBADMSG;
	*ret_new_id = 0;
	/* Nothing lies in a function. */
	if (!id || BTF_INFO_KIND(type_at(to->from, id)->info) == BTF_KIND_FUNC_PROTO)
		return 0;
	if (!to->new_ids.at[id]) {
		err = sb_vec_push(&to->old_ids, id);
		if (err)
			return err;
		to->new_ids.at[id] = (uint32_t)to->old_ids.nr;
	}
	*ret_new_id = to->new_ids.at[id];
	return 0;
}

static int write_str(struct writing *to, uint32_t *name_off)
{
	const char *s = to->from->strs + *name_off;

	if (*name_off >= to->from->strs_len)
		return -EBADMSG;
	*name_off = 0;
	if (!*s)
		return 0;
	*name_off = (uint32_t)to->strs.len;
	return sb_str_addn(&to->strs, s, strlen(s) + 1);
}

static int write_bytes(struct writing *to, const void *bytes, size_t nr)
{
	return sb_str_addn(&to->types, bytes, nr);
}

static int write_members(struct writing *to, const struct btf_type *type)
{
	const struct btf_member *members = (const struct btf_member *)(type + 1);
	uint32_t i, nr = BTF_INFO_VLEN(type->info);
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		struct btf_member member = members[i];

		err = write_str(to, &member.name_off);
		if (!err)
			err = need(to, member.type, &member.type);
		if (!err)
			err = write_bytes(to, &member, sizeof(member));
	}
	return err;
}

/* @nr_words: of each value, the first of which is the name */
static int write_values(struct writing *to, const struct btf_type *type, size_t nr_words)
{
	const uint32_t *values = (const uint32_t *)(type + 1);
	uint32_t value[ENUM64_WORDS], i, nr = BTF_INFO_VLEN(type->info);
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		memcpy(value, values + i * nr_words, nr_words * sizeof(*value));
		err = write_str(to, &value[0]);
		if (!err)
			err = write_bytes(to, value, nr_words * sizeof(*value));
	}
	return err;
}

static int write_array(struct writing *to, const struct btf_type *type)
{
	struct btf_array array = *(const struct btf_array *)(type + 1);
	int err = need(to, array.type, &array.type);

	if (!err)
		err = need(to, array.index_type, &array.index_type);
	return err ? err : write_bytes(to, &array, sizeof(array));
}

static int write_behind(struct writing *to, const struct btf_type *type)
{
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
		return write_bytes(to, type + 1, sizeof(uint32_t));
	case BTF_KIND_ARRAY:
		return write_array(to, type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return write_members(to, type);
	case BTF_KIND_ENUM:
		return write_values(to, type, sizeof(struct btf_enum) / sizeof(uint32_t));
	case KIND_ENUM64:
		return write_values(to, type, ENUM64_WORDS);
	default:
		return 0;
	}
}

static int write_type(struct writing *to, const struct btf_type *type)
{
	struct btf_type head = *type;
	int err = write_str(to, &head.name_off);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		head.type = 0;
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case KIND_TYPE_TAG:
		if (!err)
			err = need(to, head.type, &head.type);
		break;
	case BTF_KIND_FUNC:
	case BTF_KIND_VAR:
	case BTF_KIND_DATASEC:
	case KIND_DECL_TAG:
		return -EBADMSG; /* they lie in no type */
	default:
		break;
	}
	if (!err)
		err = write_bytes(to, &head, sizeof(head));
	return err ? err : write_behind(to, type);
}

/* Note the ID of the first type of that name, as libbpf takes it. */
static void find_target(struct sb_kernel_targets *targets, const char *name, uint32_t id)
{
	size_t i;

	for (i = 0; i < targets->nr; i++)
		if (!targets->at[i].id && !strcmp(targets->at[i].name, name))
			targets->at[i].id = id;
}

static void find_targets(const struct source *source, struct sb_kernel_targets *targets)
{
	const struct btf_type *type;
	const char *name, *prefix;
	uint32_t id, kind;

	for (id = 1; id < source->at.nr; id++) {
		type = type_at(source, id);
		kind = BTF_INFO_KIND(type->info);
		if (kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_FUNC)
			continue;
		prefix = kind == BTF_KIND_TYPEDEF ? SB_TRACEPOINT_TYPE : SB_ITERATOR_TYPE;
		name = source->strs + type->name_off;
		if (sb_begins(name, prefix))
			find_target(targets, name, id);
	}
	targets->are_found = true;
}

/* The type of each per-CPU variable, which does not matter. Its ID is the next one. */
static int write_int(struct writing *to)
{
	const struct btf_type head = { .info = BTF_KIND_INT << 24, .size = sizeof(int) };
	const uint32_t encoding = BTF_INT_SIGNED << 24 | sizeof(int) * 8;
	int err = write_bytes(to, &head, sizeof(head));

	return err ? err : write_bytes(to, &encoding, sizeof(encoding));
}

/* @section: a BTF_KIND_DATASEC; @int_id: of write_int() */
static int write_variables(struct writing *to, const struct btf_type *section, uint32_t int_id)
{
	const struct btf_var_secinfo *at = (const struct btf_var_secinfo *)(section + 1);
	const struct btf_type *var;
	uint32_t i, nr = BTF_INFO_VLEN(section->info);
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		struct btf_member member = { .type = int_id, .offset = at[i].offset * 8 };

		if (at[i].type >= to->from->at.nr || at[i].offset > UINT32_MAX / 8)
			return -EBADMSG;
		var = type_at(to->from, at[i].type);
		member.name_off = var->name_off;
		err = write_str(to, &member.name_off);
		if (!err)
			err = write_bytes(to, &member, sizeof(member));
	}
	return err;
}

static int write_percpu(struct writing *to, const struct btf_type *section)
{
	const uint32_t int_id = (uint32_t)to->old_ids.nr + 1;
	struct btf_type head = {
		.name_off = (uint32_t)to->strs.len,
		.info = BTF_KIND_STRUCT << 24 | BTF_INFO_VLEN(section->info),
		.size = section->size,
	};
	int err = sb_str_addn(&to->strs, PERCPU_TYPE, sizeof(PERCPU_TYPE));

	if (!err)
		err = write_int(to);
	if (!err)
		err = write_bytes(to, &head, sizeof(head));
	return err ? err : write_variables(to, section, int_id);
}

/* Return: the section, or NULL. */
static const struct btf_type *find_percpu(const struct source *source)
{
	const struct btf_type *type;
	uint32_t id;

	/* It is the last type, or almost. */
	for (id = (uint32_t)source->at.nr; id-- > 1;) {
		type = type_at(source, id);
		if (BTF_INFO_KIND(type->info) == BTF_KIND_DATASEC &&
		    !strcmp(source->strs + type->name_off, PERCPU_SECTION))
			return type;
	}
	return NULL;
}

static int write_types(struct writing *to, const struct names *names)
{
	const struct btf_type *percpu = NULL;
	const struct source *from = to->from;
	const struct btf_type *type;
	const char *name;
	uint32_t id, new_id;
	size_t i;
	int err = 0;

	for (id = 1; id < from->at.nr && !err; id++) {
		type = type_at(from, id);
		name = from->strs + type->name_off;
		if (is_named_kind(BTF_INFO_KIND(type->info)) && has_name(names, name, strlen(name)))
			err = need(to, id, &new_id);
	}
	/* It grows meanwhile. */
	for (i = 0; i < to->old_ids.nr && !err; i++)
		err = write_type(to, type_at(from, to->old_ids.at[i]));
	if (!err && has_name(names, PERCPU_TYPE, strlen(PERCPU_TYPE)))
		percpu = find_percpu(from);
	return percpu ? write_percpu(to, percpu) : err;
}

static int write_all(struct writing *to, const struct names *names, struct sb_str *out)
{
	struct btf_header header = { .magic = BTF_MAGIC, .version = 1, .hdr_len = sizeof(header) };
	int err = sb_vec_fit(&to->new_ids, to->from->at.nr, 0);

	if (!err)
		err = sb_str_addn(&to->strs, "", 1);
	if (!err)
		err = write_types(to, names);
	if (err)
		return err;
	header.type_len = header.str_off = (uint32_t)to->types.len;
	header.str_len = (uint32_t)to->strs.len;
	err = sb_str_addn(out, (const char *)&header, sizeof(header));
	if (!err && to->types.len)
		err = sb_str_addn(out, to->types.s, to->types.len);
	return err ? err : sb_str_addn(out, to->strs.s, to->strs.len);
}

int sb_kernel_types(const void *all, size_t nr_bytes, const struct btf *object,
		    struct sb_kernel_targets *targets, struct sb_str *out)
{
	struct source source = {};
	struct names names = {};
	struct writing to = { .from = &source };
	int err = find_sections(all, nr_bytes, &source);

	if (!err)
		err = find_types(&source);
	if (!err && targets)
		find_targets(&source, targets);
	if (!err)
		err = find_names(object, &names);
	if (!err)
		err = write_all(&to, &names, out);
	sb_vec_release(&source.at);
	sb_vec_release(&names.at);
	sb_index_release(&names.index);
	sb_vec_release(&to.new_ids);
	sb_vec_release(&to.old_ids);
	sb_str_release(&to.types);
	sb_str_release(&to.strs);
	return err;
}

/* The types of the kernel, mapped or read. */
struct image {
	void *at;
	size_t nr_bytes;
	bool is_mapped;
};

static void release_image(struct image *image)
{
	if (image->is_mapped)
		munmap(image->at, image->nr_bytes);
	else
		free(image->at);
}

static int load_image(struct image *image)
{
	sb_cleanup(sb_closep) int fd = open(VMLINUX, O_RDONLY | O_CLOEXEC);
	char *data = NULL;
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	/* Since Linux 6.16. Before, it is read a page at a time. */
	image->nr_bytes = (size_t)st.st_size;
	image->at = mmap(NULL, image->nr_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	image->is_mapped = image->at != MAP_FAILED;
	if (image->is_mapped)
		return 0;
	err = sb_read_fd(fd, BTF_BYTES_MAX, &data, &image->nr_bytes);
	image->at = data;
	return err;
}

int sb_kernel_types_write(int fd, const struct btf *object, struct sb_kernel_targets *targets)
{
	struct image image = {};
	struct sb_str small = {};
	int err = load_image(&image);

	if (!err)
		err = sb_kernel_types(image.at, image.nr_bytes, object, targets, &small);
	if (!err)
		err = sb_write_all(fd, small.s, small.len);
	else if (err == -EBADMSG)
		err = sb_write_all(fd, image.at, image.nr_bytes);
	sb_str_release(&small);
	release_image(&image);
	return err;
}
