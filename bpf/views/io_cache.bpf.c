// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* View "io", layer "cache": a sample for each folio that is added to the page cache. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_io_layers.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of a rw_semaphore's owner. */
#define RWSEM_FLAGS	   7ull
#define RWSEM_READER_OWNED 1ull

struct cache_add {
	__u64 inode;
	__u64 begin, end; /* in the file, in bytes */
	__u64 asked;	  /* how many of them the call asked for */
	__u32 op;	  /* of those that it asked for */
};

static __u64 nr_pages(const void *folio)
{
	const struct folio___6_0 *older = folio;
	const struct folio *newer = folio;
	const struct page *tail = folio + bpf_core_type_size(struct page);
	__u64 flags = 0;

	/* The first word in all kernels, of a type that changes. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!((flags >> bpf_core_enum_value(enum pageflags, PG_head)) & 1))
		return 1;
	if (bpf_core_field_exists(newer->_nr_pages))
		return BPF_CORE_READ(newer, _nr_pages);
	if (bpf_core_field_exists(older->_folio_nr_pages))
		return BPF_CORE_READ(older, _folio_nr_pages);
	if (bpf_core_field_exists(tail->compound_nr))
		return BPF_CORE_READ(tail, compound_nr);
	return 1;
}

static void place_of(const void *arg, struct cache_add *ret)
{
	const struct folio *folio = arg;
	const struct page *page = arg;
	__u64 index;

	if (bpf_core_type_exists(struct folio)) {
		ret->inode = (__u64)BPF_CORE_READ(folio, mapping, host);
		index = BPF_CORE_READ(folio, index);
	} else {
		ret->inode = (__u64)BPF_CORE_READ(page, mapping, host);
		index = BPF_CORE_READ(page, index);
	}
	ret->begin = index * cfg_layer_page_bytes;
	ret->end = ret->begin + nr_pages(arg) * cfg_layer_page_bytes;
}

/*
 * Who writes into a file's page cache holds its i_rwsem alone, whatever call, or kernel thread, he
 * came by; who reads does not, or shares it.
 */
static bool is_writing(const struct inode *inode)
{
	__u64 owner;

	if (!bpf_core_field_exists(inode->i_rwsem.owner))
		return false;
	owner = BPF_CORE_READ(inode, i_rwsem.owner.counter);
	return !(owner & RWSEM_READER_OWNED) && (owner & ~RWSEM_FLAGS) == bpf_get_current_task();
}

/* Which of the bytes the call asked for, as far as it can be told. */
static void classify(struct cache_add *add)
{
	__u64 file, begin, end, page_bytes = cfg_layer_page_bytes;

	add->op = SB_IO_OP_CACHE_NEW;
	add->asked = add->end - add->begin;
	if (is_writing((void *)add->inode))
		return;
	add->op = SB_IO_OP_CACHE_FILL;
	file = sb_io_call_file(add->inode);
	if (!file || sb_io_call_range(file, &begin, &end))
		return;
	add->op = SB_IO_OP_CACHE_MISS;
	begin = begin / page_bytes * page_bytes;
	end = (end + page_bytes - 1) / page_bytes * page_bytes;
	if (begin < add->begin)
		begin = add->begin;
	if (end > add->end)
		end = add->end;
	add->asked = begin < end ? end - begin : 0;
}

/* @nr_bytes of a folio that has @nr_all, and is a sample of @weight. */
static __always_inline void account(struct sb_capture *capture, __u32 op, __u64 nr_bytes,
				    __u64 nr_all, __u64 weight)
{
	if (!nr_bytes)
		return;
	capture->key.op = op;
	if (cfg_io_weight != SB_IO_COUNT)
		weight = weight * nr_bytes / nr_all;
	sb_account(capture, weight);
}

static __always_inline __u64 object_of(struct sb_io_captured *captured, __u64 inode)
{
	if (captured->inode != inode || !captured->object) {
		captured->inode = inode;
		captured->object = sb_io_layer_object(inode, SB_SCRATCH_CALL);
	}
	return captured->object;
}

/* Folios up to 5.15 are pages. */
SEC("?tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(io_cache_add, void *folio)
{
	__u64 since_ns = bpf_ktime_get_ns(), nr_all, weight;
	struct sb_io_captured *captured;
	struct cache_add add = {};

	place_of(folio, &add);
	if (!add.inode)
		return 0;
	classify(&add);
	if (!sb_io_layer_wants(add.op == SB_IO_OP_CACHE_NEW ? SB_IO_WRITE : SB_IO_READ))
		return 0;
	nr_all = add.end - add.begin;
	weight = sb_thin(cfg_io_weight == SB_IO_COUNT ? 1 : nr_all);
	if (!weight) {
		sb_spent_some(since_ns);
		return 0;
	}
	if (sb_io_layer_capture(ctx, SB_IO_EVENT_CACHE, &captured))
		return 0;
	captured->capture.key.object = object_of(captured, add.inode);
	if (captured->object == SB_IO_UNWANTED) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return 0;
	}
	account(&captured->capture, add.op, add.asked, nr_all, weight);
	/* A folio is counted once. */
	if (!add.asked || cfg_io_weight != SB_IO_COUNT)
		account(&captured->capture, SB_IO_OP_READAHEAD, nr_all - add.asked, nr_all, weight);
	sb_spent(since_ns);
	return 0;
}
