// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "io", layer "block": a sample for each request to a device, with the stack that caused it.
 *
 * A bio is noted where it is queued, in the context of who submits it, and accounted where it is
 * completed, in any context: so the whole sample waits in a map. The block layer merges bios into
 * requests, splits them, and completes requests in parts; what counts is which bytes of which bio
 * the device has completed, so that each keeps its own stack.
 *
 * Pages that were written into are queued later, by a kernel thread. Who dirtied a file last is
 * remembered, and gets its bytes.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_io_layers.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* <linux/blk_types.h>, stable since 4.8: who writes is odd. */
#define REQ_OP_MASK	    0xffu
#define REQ_OP_READ	    0u
#define REQ_OP_WRITE	    1u
#define REQ_OP_FLUSH	    2u
#define REQ_OP_DISCARD	    3u
#define REQ_OP_SECURE_ERASE 5u
#define REQ_OP_ZONE_APPEND  7u

/* Bios in a request: one for each block of a buffered device, 4 KiB, up to 2 MiB. */
#define BIOS_MAX	    512

/* A bio that was queued. */
struct block_bio {
	struct sb_capture capture; /* first, as in the others: user space looks at its key */
	__u64 queued_ns;
	__u32 nr_bytes;
	__u32 is_wanted;
};

/* bio -> what it stands for. Sized, as the others, where the layer runs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct block_bio);
} io_block_bios SEC(".maps");

/* request -> when the device got it, or completed a part of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} io_block_requests SEC(".maps");

struct block_inode {
	__u64 ino;
	__u64 dev;
};

/* The last one who dirtied a file. The least recently used are evicted: if new files were refused
 * instead, a long run would attribute nothing any more. SB_STAT_NO_DIRTIER counts what that
 * costs. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct block_inode);
	__type(value, struct sb_capture);
} io_block_dirtiers SEC(".maps");

/* What is too big for the stack: programs that use it are not in interrupts, and do not nest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct block_bio);
} io_block_records SEC(".maps");

static struct block_bio *record(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&io_block_records, &zero);
}

static __u32 op_of(__u32 opf, __u32 nr_bytes)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return SB_IO_OP_BLOCK_READ;
	case REQ_OP_WRITE:
		return nr_bytes ? SB_IO_OP_BLOCK_WRITE : SB_IO_OP_BLOCK_FLUSH;
	case REQ_OP_ZONE_APPEND:
		return SB_IO_OP_BLOCK_WRITE;
	case REQ_OP_FLUSH:
		return SB_IO_OP_BLOCK_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return SB_IO_OP_BLOCK_DISCARD;
	default:
		return SB_IO_OP_BLOCK_OTHER;
	}
}

static __u32 dir_of(__u32 op)
{
	if (op == SB_IO_OP_BLOCK_READ)
		return SB_IO_READ;
	return op == SB_IO_OP_BLOCK_WRITE ? SB_IO_WRITE : SB_IO_NEITHER;
}

/* The file whose page cache the bio reads into or writes from; 0: none. */
static __u64 inode_of(const struct bio *bio)
{
	const struct bio_vec *vec = BPF_CORE_READ(bio, bi_io_vec);
	__u32 idx = BPF_CORE_READ(bio, bi_iter.bi_idx);

	if (!vec || !BPF_CORE_READ(bio, bi_iter.bi_size))
		return 0;
	vec = (void *)vec + idx * bpf_core_type_size(struct bio_vec);
	return sb_io_inode_of_page((__u64)BPF_CORE_READ(vec, bv_page));
}

/*
 * Direct I/O carries the memory of the process, which may be mapped from yet another file; blocks
 * that the filesystem needs for it are in the page cache of the device. Global, to be verified
 * once.
 */
__noinline __u64 sb_io_block_object(__u64 bdev, __u64 inode)
{
	bool is_file = inode && !sb_io_is_block_device(inode);
	__u64 file = 0;

	if (!inode || is_file)
		file = sb_io_direct_file();
	else
		file = sb_io_call_file(inode);
	if (file)
		return sb_io_file(file, SB_SCRATCH_CALL);
	if (is_file)
		return sb_io_layer_object(inode, SB_SCRATCH_CALL);
	/* What carries no file's pages is the disk's own. */
	return sb_io_device(bdev, SB_SCRATCH_CALL);
}

static struct block_inode key_of(__u64 inode_addr)
{
	const struct inode *inode = (void *)inode_addr;

	return (struct block_inode){
		.ino = BPF_CORE_READ(inode, i_ino),
		.dev = BPF_CORE_READ(inode, i_sb, s_dev),
	};
}

/* Return: 0: what a kernel thread writes goes to who dirtied it. */
static __always_inline int capture_dirtier(struct sb_capture *ret, __u64 inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct block_inode key;
	struct sb_capture *dirtier;

	if (!inode || !(task->flags & PF_KTHREAD))
		return -ENOENT;
	key = key_of(inode);
	dirtier = bpf_map_lookup_elem(&io_block_dirtiers, &key);
	if (!dirtier) {
		if (!sb_io_is_block_device(inode))
			sb_stat_add(SB_STAT_NO_DIRTIER, 1);
		return -ENOENT;
	}
	*ret = *dirtier;
	return 0;
}

/* Return: 0, or -ENOENT: it is not asked for. */
static __always_inline int capture_bio(void *ctx, const struct bio *bio, __u32 op,
				       struct sb_capture *ret)
{
	struct sb_io_captured *captured;
	__u64 object, inode = inode_of(bio);
	int err;

	if (op == SB_IO_OP_BLOCK_WRITE && !capture_dirtier(ret, inode))
		return 0;
	err = sb_io_layer_capture(ctx, SB_IO_EVENT_BLOCK, &captured);
	if (err)
		return err;
	object = sb_io_block_object((__u64)BPF_CORE_READ(bio, bi_bdev), inode);
	if (object == SB_IO_UNWANTED) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return -ENOENT;
	}
	*ret = captured->capture;
	ret->key.object = object;
	ret->key.op = op;
	return 0;
}

static void note(const struct bio *bio, const struct block_bio *noted)
{
	__u64 key = (__u64)bio;

	if (bpf_map_update_elem(&io_block_bios, &key, noted, BPF_ANY))
		sb_stat_add(SB_STAT_BLOCK_FULL, 1);
}

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(io_block_queue, struct bio *bio)
{
	__u32 nr_bytes = bio->bi_iter.bi_size, op = op_of(bio->bi_opf, nr_bytes);
	struct block_bio *noted = record();

	if (!noted)
		return 0;
	noted->queued_ns = bpf_ktime_get_ns();
	noted->nr_bytes = nr_bytes;
	sb_opaque(op); /* or the verifier goes on with each of them */
	/* Noted in any case, so that its end can be told from one that was missed. */
	noted->is_wanted =
		sb_io_layer_wants(dir_of(op)) && !capture_bio(ctx, bio, op, &noted->capture);
	note(bio, noted);
	sb_spent(noted->queued_ns);
	return 0;
}

/* The first part becomes a bio of its own, chained to the one that keeps the rest. */
SEC("?tp_btf/block_split")
int BPF_PROG(io_block_split, struct bio *bio)
{
	__u64 key = (__u64)BPF_CORE_READ(bio, bi_private);
	struct block_bio *whole = bpf_map_lookup_elem(&io_block_bios, &key);
	struct block_bio *first = record();

	if (!whole || !first)
		return 0;
	*first = *whole;
	first->nr_bytes = bio->bi_iter.bi_size;
	if (whole->nr_bytes >= first->nr_bytes)
		whole->nr_bytes -= first->nr_bytes;
	note(bio, first);
	return 0;
}

SEC("?tp_btf/block_rq_issue")
int BPF_PROG(io_block_issue, struct request *rq)
{
	__u64 key = (__u64)rq, now_ns = bpf_ktime_get_ns();

	if (bpf_map_update_elem(&io_block_requests, &key, &now_ns, BPF_ANY))
		sb_stat_add(SB_STAT_BLOCK_FULL, 1);
	return 0;
}

/* The device was busy, and will get it once more. */
SEC("?tp_btf/block_rq_requeue")
int BPF_PROG(io_block_requeue, struct request *rq)
{
	__u64 key = (__u64)rq;

	bpf_map_delete_elem(&io_block_requests, &key);
	return 0;
}

/* What was completed of a bio. */
struct block_part {
	__u64 device_ns; /* of the request; 0: not known, from when the bio was queued */
	__u32 nr_bytes;	 /* of the bio */
	__u32 nr_all;	 /* that were completed at once */
	__u32 nr_requests;
	__u32 has_failed;
};

static __u64 weight_of(const struct block_part *part, __u64 ns)
{
	if (cfg_io_weight == SB_IO_COUNT)
		return part->nr_requests;
	if (cfg_io_weight == SB_IO_BYTES)
		return part->has_failed ? 0 : part->nr_bytes;
	/* The device was at it once, for all bios of the request. */
	return part->nr_all ? ns * part->nr_bytes / part->nr_all : ns;
}

static __always_inline void account(struct block_bio *noted, const struct block_part *part)
{
	__u64 ns = part->device_ns, weight;

	if (!noted->is_wanted)
		return;
	if (!ns)
		ns = bpf_ktime_get_ns() - noted->queued_ns;
	if (!sb_io_lasts(ns))
		return;
	weight = weight_of(part, ns);
	if (!weight)
		return;
	noted->capture.key.log2_ns = sb_log2_of(ns);
	sb_account(&noted->capture, weight);
}

/* Bits of @flags below. */
enum { PART_COUNTS = 1u << 0, PART_FAILED = 1u << 1 };

/*
 * Account the bio's part of a completion, of which @left of @all bytes are not accounted yet.
 * Global, to be verified once.
 * Return: what is left then.
 */
__noinline __u32 sb_io_block_part(__u64 bio, __u64 device_ns, __u32 left, __u32 all, __u32 flags)
{
	struct block_bio *noted = bpf_map_lookup_elem(&io_block_bios, &bio);
	__u32 size = BPF_CORE_READ((const struct bio *)bio, bi_iter.bi_size);
	struct block_part part = {
		.device_ns = device_ns,
		.nr_bytes = size < left ? size : left,
		.nr_all = all,
		.nr_requests = flags & PART_COUNTS ? 1 : 0,
		.has_failed = flags & PART_FAILED,
	};

	if (noted) {
		account(noted, &part);
		if (size <= left)
			bpf_map_delete_elem(&io_block_bios, &bio);
	} else if (all) { /* nothing: a write that a flush followed ends once more */
		sb_stat_add(SB_STAT_BLOCK_UNKNOWN, 1);
	}
	return left - part.nr_bytes;
}

/* Return: how long the device had it, or what is left of it after a part was completed. */
static __u64 device_ns_of(__u64 rq, bool is_done)
{
	__u64 now_ns = bpf_ktime_get_ns(), ns, *since_ns;

	since_ns = bpf_map_lookup_elem(&io_block_requests, &rq);
	if (!since_ns)
		return 0;
	ns = now_ns - *since_ns;
	*since_ns = now_ns;
	if (is_done)
		bpf_map_delete_elem(&io_block_requests, &rq);
	return ns ? ns : 1;
}

static __always_inline void complete(const struct request *rq, bool has_failed, __u32 nr_bytes)
{
	bool is_done = nr_bytes >= rq->__data_len;
	__u32 i, left = nr_bytes, flags = has_failed ? PART_FAILED : 0;
	__u64 device_ns = device_ns_of((__u64)rq, is_done);
	const struct bio *bio = BPF_CORE_READ(rq, bio);

	if (is_done)
		flags |= PART_COUNTS;
	for (i = 0; i < BIOS_MAX && bio; i++) {
		const struct bio *next = BPF_CORE_READ(bio, bi_next);

		left = sb_io_block_part((__u64)bio, device_ns, left, nr_bytes, flags);
		if (!left)
			return;
		flags &= ~PART_COUNTS; /* one request */
		sb_opaque(flags);
		bio = next;
	}
	if (left)
		sb_stat_add(SB_STAT_BLOCK_UNKNOWN, 1);
}

SEC("?tp_btf/block_rq_complete")
int BPF_PROG(io_block_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	__u64 since_ns = bpf_ktime_get_ns();

	complete(rq, error & 0xff, nr_bytes);
	sb_spent(since_ns);
	return 0;
}

/* Drivers without requests (dm, md, zram): the end of a bio that no request has completed. */
SEC("?tp_btf/block_bio_complete")
int BPF_PROG(io_block_bio_end, struct request_queue *queue, struct bio *bio)
{
	__u64 key = (__u64)bio;
	struct block_bio *noted = bpf_map_lookup_elem(&io_block_bios, &key);
	struct block_part part = { .nr_requests = 1 };

	if (!noted)
		return 0;
	part.nr_bytes = part.nr_all = noted->nr_bytes;
	part.has_failed = BPF_CORE_READ(bio, bi_status) != 0;
	account(noted, &part);
	bpf_map_delete_elem(&io_block_bios, &key);
	return 0;
}

/* A page of the file was dirtied: what is written of it later was caused here. */
static __always_inline void on_dirty(void *ctx, const struct address_space *mapping)
{
	__u64 since_ns = bpf_ktime_get_ns(), inode;
	struct sb_io_captured *captured;
	struct block_inode key;

	if (!mapping || !sb_io_layer_wants(SB_IO_WRITE))
		return;
	inode = (__u64)BPF_CORE_READ(mapping, host);
	if (!inode)
		return;
	/* Blocks of a filesystem that is mounted are everybody's; a device that is written to
	 * not. */
	if (sb_io_is_block_device(inode) && !sb_io_call_file(inode))
		return;
	key = key_of(inode);
	if (sb_io_layer_capture(ctx, SB_IO_EVENT_DIRTY, &captured)) {
		bpf_map_delete_elem(&io_block_dirtiers, &key);
		return;
	}
	if (captured->inode == inode)
		return; /* another page in the same call */
	captured->inode = inode;
	captured->capture.key.object = sb_io_layer_object(inode, SB_SCRATCH_CALL);
	captured->capture.key.op = SB_IO_OP_BLOCK_WRITEBACK;
	if (captured->capture.key.object == SB_IO_UNWANTED)
		bpf_map_delete_elem(&io_block_dirtiers, &key);
	else if (bpf_map_update_elem(&io_block_dirtiers, &key, &captured->capture, BPF_ANY))
		sb_stat_add(SB_STAT_BLOCK_FULL, 1);
	sb_spent(since_ns);
}

SEC("?tp_btf/writeback_dirty_folio")
int BPF_PROG(io_block_dirty, void *folio, struct address_space *mapping)
{
	on_dirty(ctx, mapping);
	return 0;
}

/* Up to 5.17. */
SEC("?tp_btf/writeback_dirty_page")
int BPF_PROG(io_block_dirty_page, void *page, struct address_space *mapping)
{
	on_dirty(ctx, mapping);
	return 0;
}
