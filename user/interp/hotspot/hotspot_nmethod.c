// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds which methods were compiled into an nmethod at one address of it. The debug information of
 * an nmethod has descriptors of some addresses, in ascending order: behind calls, at polls, and at
 * accesses that may trap. Each leads to a scope, which has the scope that it was inlined into, its
 * method and its bytecode index, as UNSIGNED5 numbers. Sources: src/hotspot/share/code of the JDK:
 * nmethod.hpp, pcDesc.hpp, scopeDesc.cpp, debugInfo.hpp.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/hotspot/hotspot_priv.h"

#include "bpf/step/sb_step_hotspot.h"

/* Descriptors of one nmethod. The biggest have some ten thousand. */
#define PCS_BYTES_MAX  (4u << 20)
#define STUB_BYTES_MAX 128u
/* Three numbers of five bytes each. */
#define SCOPE_BYTES    15u
#define METHODS_MAX    (1u << 20)
/* From the poll of a loop to its end: compare, jump. */
#define TAIL_BYTES_MAX 16
#define CODE_BYTES_MAX (64u << 20)

struct nmethod {
	uint64_t pcs, pcs_end; /* descriptors */
	uint64_t scopes;       /* what they lead to */
	uint64_t metadata;     /* what that refers to */
	uint64_t method;
};

/* Look at the blob again: what was there may be gone, and another one there. */
static int check_blob(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		      struct sb_hotspot_blob *ret_blob)
{
	struct sb_interp_walk *walk = calloc(1, sizeof(*walk));
	int err = 0;

	if (!walk)
		return -ENOMEM;
	walk->conf = rt->conf;
	if (hs_find(walk, (void *)rt->memory, frame->obj, ret_blob))
		err = -EFAULT;
	else if (ret_blob->addr != frame->obj ||
		 (ret_blob->check & SB_WHERE_CHECK_MASK) != sb_where_check(frame->where))
		err = -EBADMSG;
	free(walk);
	return err;
}

/* An address that is @offset beyond @from, where the 32 bits at @field say so. */
static int section(struct sb_runtime *rt, uint64_t blob, uint64_t field, uint64_t from,
		   uint64_t *ret)
{
	uint32_t offset;
	int err = sb_memory_u32(rt->memory, blob + field, &offset);

	if (!err && offset > CODE_BYTES_MAX)
		err = -EBADMSG;
	*ret = from + offset;
	return err;
}

static int find_metadata(struct sb_runtime *rt, uint64_t blob, uint64_t *ret)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint64_t mutable;
	int err;

	if (l->nmethod_metadata != SB_HOTSPOT_NONE)
		return section(rt, blob, l->nmethod_metadata, blob, ret);
	err = sb_memory_u64(rt->memory, blob + l->blob_mutable, &mutable);
	return err ? err : section(rt, blob, l->blob_relocation_size, mutable, ret);
}

static int find_sections(struct sb_runtime *rt, const struct sb_hotspot_blob *blob,
			 struct nmethod *ret)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint64_t addr = blob->addr, base = addr;
	int err = 0;

	ret->method = blob->method;
	if (l->nmethod_immutable != SB_HOTSPOT_NONE)
		err = sb_memory_u64(rt->memory, addr + l->nmethod_immutable, &base);
	if (!err)
		err = section(rt, addr, l->nmethod_pcs, base, &ret->pcs);
	if (!err && l->compiled_scopes != SB_HOTSPOT_NONE)
		err = sb_memory_u64(rt->memory, addr + l->compiled_scopes, &ret->scopes);
	else if (!err)
		err = section(rt, addr, l->nmethod_scopes, base, &ret->scopes);
	/* Behind the descriptors lie the scopes, and dependencies before JDK 23. */
	if (!err && l->nmethod_immutable != SB_HOTSPOT_NONE)
		ret->pcs_end = ret->scopes;
	else if (!err)
		err = section(rt, addr, l->nmethod_deps, base, &ret->pcs_end);
	return err ? err : find_metadata(rt, addr, &ret->metadata);
}

static int read_pc(struct sb_runtime *rt, const struct nmethod *nm, uint64_t i, int32_t *ret)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint32_t at = 0;
	int err = sb_memory_u32(rt->memory, nm->pcs + i * l->size_pc + l->pc_offset, &at);

	*ret = (int32_t)at;
	return err;
}

/* The first descriptor at or behind @offset. The first one of all is below, the last one above. */
static int search_pc(struct sb_runtime *rt, const struct nmethod *nm, int32_t offset, uint64_t nr,
		     uint64_t *ret)
{
	uint64_t lo = 0, hi = nr;
	int32_t at;
	int err;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		err = read_pc(rt, nm, mid, &at);
		if (err)
			return err;
		if (at < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret = lo;
	return lo < nr ? 0 : -ENODATA;
}

/*
 * The scope at @offset. A return address has a descriptor of its own. What was interrupted is on
 * the way to the next one, but for what comes behind a poll, up to the jump back: that is still of
 * its loop. Return: 0, or -ENODATA.
 */
static int find_pc(struct sb_runtime *rt, const struct nmethod *nm, int32_t offset, bool is_exact,
		   uint32_t *ret_scope)
{
	const struct sb_hotspot_layout *l = &((const struct sb_hotspot *)rt->state)->layout;
	uint64_t len = nm->pcs_end - nm->pcs, nr = len / l->size_pc, i;
	int32_t at, before;
	int64_t by;
	int err;

	if (len > PCS_BYTES_MAX)
		return -EBADMSG;
	err = search_pc(rt, nm, offset, nr, &i);
	if (!err)
		err = read_pc(rt, nm, i, &at);
	if (!err && at != offset && !is_exact)
		return -ENODATA;
	if (!err && at != offset && i > 1) {
		err = read_pc(rt, nm, i - 1, &before);
		by = (int64_t)offset - before;
		if (!err && (i + 1 == nr || (by <= TAIL_BYTES_MAX && by < (int64_t)at - offset)))
			i--;
	}
	return err ? err
		   : sb_memory_u32(rt->memory, nm->pcs + i * l->size_pc + l->pc_scope, ret_scope);
}

/* One scope. Return: 0, and that of its caller, 0 for none. */
static int read_scope(struct sb_runtime *rt, const struct nmethod *nm, uint32_t scope,
		      struct sb_hotspot_scope *ret, uint32_t *ret_caller)
{
	const struct sb_hotspot *hs = rt->state;
	uint32_t excluded = sb_hotspot_excluded(hs), method, bci;
	uint8_t bytes[SCOPE_BYTES];
	size_t at = 0;
	int err;

	if (!scope || scope > CODE_BYTES_MAX)
		return -ENODATA;
	err = sb_memory_read(rt->memory, bytes, sizeof(bytes), nm->scopes + scope);
	if (!err)
		err = sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, excluded, ret_caller);
	if (!err)
		err = sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, excluded, &method);
	if (!err)
		err = sb_hotspot_unsigned5(bytes, sizeof(bytes), &at, excluded, &bci);
	if (!err && (!method || method > METHODS_MAX))
		err = -EBADMSG;
	if (err)
		return err;
	ret->bci = (int32_t)bci - 1; /* InvocationEntryBci is -1 */
	return sb_memory_u64(rt->memory, nm->metadata + 8ull * (method - 1), &ret->method);
}

static int read_scopes(struct sb_runtime *rt, const struct nmethod *nm, uint32_t scope)
{
	struct sb_hotspot *hs = rt->state;
	uint32_t caller;
	int err;

	for (hs->nr_scopes = 0; hs->nr_scopes < SB_HOTSPOT_SCOPES_MAX; scope = caller) {
		err = read_scope(rt, nm, scope, &hs->scope[hs->nr_scopes], &caller);
		if (err)
			return err;
		hs->nr_scopes++;
		if (!caller)
			/* All of it was compiled for this method: if not, it was read wrongly. */
			return hs->scope[hs->nr_scopes - 1].method == nm->method ? 0 : -EBADMSG;
		if (caller >= scope) /* they are written callers first */
			return -EBADMSG;
	}
	return -EBADMSG;
}

int sb_hotspot_scopes(struct sb_runtime *rt, const struct sb_interp_frame *frame)
{
	struct sb_hotspot *hs = rt->state;
	uint64_t position = sb_where_position(frame->where);
	struct sb_hotspot_blob blob;
	struct nmethod nm;
	uint32_t scope;
	int err;

	if (hs->nr_scopes && hs->scopes_of.obj == frame->obj && hs->scopes_of.where == frame->where)
		return 0;
	hs->nr_scopes = 0;
	err = check_blob(rt, frame, &blob);
	if (err)
		return err;
	if (!blob.method)
		return -EBADMSG;
	err = find_sections(rt, &blob, &nm);
	if (!err)
		err = find_pc(rt, &nm, (int32_t)position, position & SB_HOTSPOT_EXACT, &scope);
	if (!err)
		err = read_scopes(rt, &nm, scope);
	if (err == -ENOMEM)
		return err;
	if (err) {
		/* Wrappers of native methods have none; nor has an address that is no point of the
		 * method's code. */
		hs->scope[0] = (struct sb_hotspot_scope){ .method = blob.method, .bci = -1 };
		hs->nr_scopes = 1;
	}
	hs->scopes_of = *frame;
	return 0;
}

int sb_hotspot_describe_stub(struct sb_runtime *rt, const struct sb_interp_frame *frame,
			     struct sb_runtime_text *text)
{
	const struct sb_hotspot *hs = rt->state;
	struct sb_hotspot_blob blob;
	uint64_t name;
	int err = check_blob(rt, frame, &blob);

	if (!err)
		err = sb_memory_u64(rt->memory, frame->obj + hs->layout.blob_name, &name);
	return err ? err : sb_memory_cstr(rt->memory, name, STUB_BYTES_MAX, &text->name);
}
