// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The last walk of each thread, so that frames that still stand are not looked up again. At a
 * timer's tick most of a stack is what it was a tick ago, but the leaf is somewhere else, so the
 * memo of whole walks (memo.bpf.c) does not find it.
 *
 * A step depends on the frame's registers (pc, sp, fp, and where rbx was saved), on the unwind
 * rules, and on the words that it reads. So a frame is remembered with its registers and with the
 * addresses of these words. When a later walk comes to the same registers, by the same list of
 * mappings, and the words are what they were, then the step would lead to the same caller, and
 * the same is asked for that one, up to the root. Every word that the walk would have read is
 * compared, so nothing is assumed; what is saved is the search for the rules. A piece of the
 * stack is copied at once, because each copy by itself takes longer than the comparisons of the
 * frames in it. Where a word differs, the walk goes on from there by the rules, and looks for
 * frames that it knows after each step.
 *
 * Frames whose step depends on anything else are never passed without a step: those that a signal
 * interrupted, those in generated code, those that use other registers or read other words.
 *
 * A list of mappings is known by the number of its first word, which is given to another list
 * only after SB_UWPOOL_REST_NS (user/capture/uwpool.h). What is remembered is forgotten in less
 * than that. It also lets the walk use each table once in a while, and tables that are not used
 * are evicted first.
 *
 * The memory belongs to one CPU, and only programs of one kind use it, which do not interrupt one
 * another. Threads that share a place overwrite each other's walk; a walk of another thread, or
 * of one whose ID was used before, is told by its address space and by the comparisons.
 */
#include "bpf/core/sb_last_walk.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

#define LAST_FRAMES	  128u /* a power of two. Of deeper stacks, the frames next to the root */
#define LAST_PLACES	  32u  /* threads for each CPU; a power of two */
#define LAST_PIECE_WORDS  128ull
/*
 * Frames compared with one piece; pieces at once; frames passed over in search of one. These
 * bound the work of the verifier: where there are more, the walk takes a step and goes on with
 * the rest.
 */
#define LAST_PIECE_FRAMES 6u
#define LAST_PIECES	  32u
#define LAST_SEARCH	  12u
/* Frames copied at once. */
#define LAST_COPY	  32u
/* Of frame.ra_at: the step is to be taken. Nothing can be read at this address. */
#define STEP_ANEW	  1ull
/* Of frame.ra_at and fp_at: the step reads no such word. */
#define NOT_READ	  0ull
/* Of piece_at: it could not be read. No address of a process is near it. */
#define NO_PIECE	  (1ull << 63)

const volatile bool cfg_last_walk = false;

/* A frame, and the words from which the step to its caller gets the registers there. */
struct last_frame {
	__u64 ip; /* with its SB_IP_* */
	__u64 sp, fp, bx_at;
	__u64 ra_at, fp_at; /* of the root's: words that are 0 */
};

struct last_walk {
	__u64 start_ns; /* with tgid and exec_id: of struct sb_sample_key */
	__u32 tgid, exec_id;
	__u32 segs_word; /* of the list of mappings it went by */
	__u32 epoch;
	__u64 nr_frames;
	/*
	 * The root is element LAST_FRAMES - 1. What is behind it is not in use: the verifier
	 * takes any copy for one of LAST_COPY frames.
	 */
	struct last_frame at[LAST_FRAMES + LAST_COPY];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load: LAST_PLACES */
	__type(key, __u32);
	__type(value, struct last_walk);
} last_walks SEC(".maps");

/* The walk that is being taken. */
struct this_walk {
	__u32 place;
	__u32 epoch;
	/* Frames of the last walk, from the root, that may still be met. */
	__u64 nr_left;
	__u64 nr_new;	/* frames up to those */
	__u64 is_inner; /* the step is not from an interrupted frame */
	__u64 piece_at;
	__u64 piece[LAST_PIECE_WORDS];
	struct last_frame at[LAST_FRAMES + LAST_COPY]; /* leaf first */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct this_walk);
} this_walks SEC(".maps");

static struct this_walk *this_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&this_walks, &zero);
}

static struct last_walk *last_walk(const struct this_walk *this)
{
	__u32 place = this->place;

	return bpf_map_lookup_elem(&last_walks, &place);
}

/* @i: the number of frames between this one and the root */
static struct last_frame *frame_at(struct last_walk *last, __u64 i)
{
	i = LAST_FRAMES - 1 - i;
	sb_opaque(i);
	return &last->at[i & (LAST_FRAMES - 1)];
}

static struct last_frame *new_frame(struct this_walk *this, __u64 i)
{
	sb_opaque(i);
	return &this->at[i & (LAST_FRAMES - 1)];
}

/* At most LAST_COPY. By a helper, because the verifier would follow each round of a loop. */
static void copy_frames(struct last_frame *to, const struct last_frame *from, __u64 nr)
{
	sb_opaque(nr);
	if (nr <= LAST_COPY)
		bpf_probe_read_kernel(to, nr * sizeof(*to), from);
}

/* Before the step from a frame. */
static void note_frame(struct sb_scratch *s, struct this_walk *this)
{
	struct last_frame *frame;

	/* Of a deep stack those next to the leaf have to go. */
	if (this->nr_new >= LAST_FRAMES) {
		bpf_probe_read_kernel(this->at, LAST_FRAMES / 2 * sizeof(*frame),
				      &this->at[LAST_FRAMES / 2]);
		this->nr_new = LAST_FRAMES / 2;
	}
	frame = new_frame(this, this->nr_new);
	frame->ip = s->walk.pc | s->walk.mark;
	frame->sp = s->walk.sp;
	frame->fp = s->walk.fp;
	frame->bx_at = s->walk.bx_at;
	s->walk.uses &= ~SB_WALK_USES_REGS;
	s->log.nr = 0;
	this->is_inner = !s->walk.flags;
}

__noinline int sb_last_walk_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	const struct sb_sample_key *key;
	struct last_walk *last;

	if (!s)
		return 0;
	s->map.is_last_walk_on = 0;
	if (!cfg_last_walk || !this || slot != SB_SCRATCH_TIMER || s->interp.has_hook ||
	    !s->map.nr_segs || s->map.returns.trampoline)
		return 0;
	key = &s->capture.key;
	this->place = (__u32)bpf_get_current_pid_tgid() % LAST_PLACES;
	this->epoch = sb_unwind_epoch(s);
	this->nr_left = this->nr_new = 0;
	this->piece_at = NO_PIECE;
	last = last_walk(this);
	if (!last)
		return 0;
	s->map.is_last_walk_on = 1;
	if (last->tgid == key->tgid && last->start_ns == key->start_ns &&
	    last->exec_id == key->exec_id && last->segs_word == s->map.segs_word &&
	    last->epoch == this->epoch)
		this->nr_left = last->nr_frames;
	note_frame(s, this);
	return 0;
}

/* After the step: note where it read what it found, if the step depends on nothing else. */
static void note_reads(struct sb_scratch *s, struct this_walk *this, bool is_end)
{
	struct last_frame *frame = new_frame(this, this->nr_new);
	const struct sb_read *first = &s->log.at[0], *second = &s->log.at[1];
	__u64 pc = is_end ? 0 : s->walk.pc, fp = is_end ? 0 : s->walk.fp;

	this->nr_new++;
	frame->ra_at = STEP_ANEW;
	frame->fp_at = NOT_READ;
	if ((s->walk.uses & SB_WALK_USES_REGS) || (s->map.seg_flags & SB_UW_SEG_ANON) ||
	    (!is_end && s->walk.flags))
		return;
	if (!s->log.nr && is_end) {
		frame->ra_at = NOT_READ;
	} else if (s->log.nr == 1 && first->addr & SB_LOG_PAIR) {
		if (first->val[1] != pc || first->val[0] != fp)
			return;
		frame->fp_at = first->addr & ~SB_LOG_PAIR;
		frame->ra_at = frame->fp_at + 8;
	} else if (s->log.nr == 1) {
		if (first->val[0] == pc)
			frame->ra_at = first->addr;
	} else if (s->log.nr == 2 && !((first->addr | second->addr) & SB_LOG_PAIR)) {
		if (first->val[0] != pc || second->val[0] != fp)
			return;
		frame->ra_at = first->addr;
		frame->fp_at = second->addr;
	}
}

static bool is_in_piece(const struct this_walk *this, const struct last_frame *frame)
{
	return frame->ra_at - this->piece_at < LAST_PIECE_WORDS * 8;
}

/* Copy the piece that begins with the words of @frame. */
static void read_piece(struct this_walk *this, const struct last_frame *frame)
{
	__u64 at = frame->ra_at;

	if (frame->fp_at != NOT_READ && frame->fp_at < at)
		at = frame->fp_at;
	this->piece_at = at;
	if (bpf_probe_read_user(this->piece, sizeof(this->piece), (const void *)at))
		this->piece_at = NO_PIECE;
}

/*
 * Compare the words of @frame with the registers of its caller, in the piece and without a
 * branch, so that the verifier has little to follow. *@missing: not 0 if the piece does not have
 * them. Return: 0 if they are the same.
 */
static __always_inline __u64 differs(const struct this_walk *this, const struct last_frame *frame,
				     const struct last_frame *caller, __u64 *missing)
{
	__u64 fp_at = frame->fp_at, has_fp = fp_at | (0 - fp_at);
	__u64 ra = frame->ra_at - this->piece_at, fp;

	sb_opaque(has_fp);
	has_fp = 0 - (has_fp >> 63);
	sb_opaque(has_fp);
	fp = (fp_at - this->piece_at) & has_fp;
	*missing = (ra | fp) & ~(LAST_PIECE_WORDS * 8 - 8);
	ra /= 8;
	fp /= 8;
	sb_opaque(ra);
	sb_opaque(fp);
	return (this->piece[ra & (LAST_PIECE_WORDS - 1)] ^ (caller->ip & ~SB_IP_MARKS)) |
	       ((this->piece[fp & (LAST_PIECE_WORDS - 1)] ^ caller->fp) & has_fp);
}

static bool is_word(__u64 at, __u64 val)
{
	__u64 word = 0;

	return at == NOT_READ ||
	       (!bpf_probe_read_user(&word, sizeof(word), (const void *)at) && word == val);
}

/* Whether the step from frame number @i would read what it read; the words are read one by one. */
__noinline int sb_last_walk_is_same(__u64 i)
{
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	const struct last_frame *frame, *caller;
	__u64 pc = 0, fp = 0;

	if (!last)
		return 0;
	frame = frame_at(last, i);
	if (i) {
		caller = frame_at(last, i - 1);
		pc = caller->ip & ~SB_IP_MARKS;
		fp = caller->fp;
	}
	return frame->ra_at != STEP_ANEW && is_word(frame->ra_at, pc) && is_word(frame->fp_at, fp);
}

/* Return: whether there is room for one more frame. */
static bool push_ip(struct sb_scratch *s, __u64 ip)
{
	__u64 at = s->stack.nr_frames;

	sb_opaque(at);
	if (at >= cfg_ustack_depth_max)
		return false;
	s->ip[at & (SB_USTACK_DEPTH_MAX - 1)] = ip;
	s->stack.nr_frames = at + 1;
	s->map.nr_by_fp += ip >> 63;
	return true;
}

/*
 * Pass frames that stand as they stood, from nr_left - 1 on. Return: SB_STEP_GO_ON: all of them
 * do, and there are more; SB_STEP_END: up to the root; SB_STEP_FP_CHAIN: nr_left - 1 does not.
 */
__noinline int sb_last_walk_pass(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	struct last_frame *frame, *caller;
	__u64 at, differ, missing = 0;
	__u32 i;

	if (!s || !last)
		return SB_STEP_FP_CHAIN;
	at = this->nr_left - 1;
	frame = frame_at(last, at);
	if (!is_in_piece(this, frame))
		read_piece(this, frame);
	for (i = 0; i < LAST_PIECE_FRAMES; i++) {
		if (!at)
			break;
		caller = frame_at(last, at - 1);
		differ = differs(this, frame, caller, &missing);
		if (missing)
			differ = !sb_last_walk_is_same(at);
		if (differ || !push_ip(s, caller->ip))
			goto stop;
		frame = caller;
		at--;
		if (!is_in_piece(this, frame))
			break;
	}
	this->nr_left = at + 1;
	if (at)
		return SB_STEP_GO_ON;
	return sb_last_walk_is_same(0) ? SB_STEP_END : SB_STEP_FP_CHAIN;
stop:
	this->nr_left = at + 1;
	return SB_STEP_FP_CHAIN;
}

/*
 * Add the frames of the last walk from @nr - 1 down to nr_left, or LAST_COPY of them, to the new
 * ones. Return: the number of those that are left to be added, and of nr_left.
 */
__noinline int sb_last_walk_take(__u64 nr)
{
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	__u64 nr_taken;

	if (!last || nr <= this->nr_left)
		return 0;
	nr_taken = nr - this->nr_left;
	if (nr_taken > LAST_COPY)
		nr_taken = LAST_COPY;
	if (this->nr_new + nr_taken > LAST_FRAMES)
		this->nr_new = 0;
	copy_frames(new_frame(this, this->nr_new), frame_at(last, nr - 1), nr_taken);
	this->nr_new += nr_taken;
	return nr - nr_taken;
}

/* The walk goes on at frame nr_left - 1 of the last one. It has passed those from @first on. */
__noinline int sb_last_walk_resume(__u32 slot, __u32 first)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	const struct last_frame *frame;
	__u32 i, nr = first + 1;

	if (!s || !last)
		return 0;
	for (i = 0; i < LAST_FRAMES / LAST_COPY && nr; i++)
		nr = sb_last_walk_take(nr);
	frame = frame_at(last, this->nr_left - 1);
	s->walk.pc = frame->ip & ~SB_IP_MARKS;
	s->walk.mark = frame->ip & SB_IP_MARKS;
	s->walk.sp = frame->sp;
	s->walk.fp = frame->fp;
	s->walk.bx_at = frame->bx_at;
	s->walk.flags = 0;
	this->nr_left--;
	return 0;
}

/* Return: whether the walk stands at a frame of the last one, which then is nr_left - 1. */
__noinline int sb_last_walk_is_met(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	const struct last_frame *frame;
	__u64 nr_left, sp;
	__u32 i;

	if (!s || !last || s->walk.flags)
		return 0;
	sp = s->walk.sp;
	nr_left = this->nr_left;
	for (i = 0; i < LAST_SEARCH; i++) {
		if (!nr_left)
			break;
		frame = frame_at(last, nr_left - 1);
		if (frame->sp >= sp) {
			this->nr_left = nr_left;
			return frame->sp == sp && frame->fp == s->walk.fp &&
			       frame->ip == (s->walk.pc | s->walk.mark) &&
			       frame->bx_at == s->walk.bx_at;
		}
		nr_left--;
	}
	this->nr_left = nr_left;
	return 0;
}

__noinline int sb_last_walk_go_on(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	__u32 i, first;
	int step;

	if (!s || !this)
		return SB_STEP_GO_ON;
	first = this->nr_left - 1;
	for (i = 0; i < LAST_PIECES; i++) {
		step = sb_last_walk_pass(slot);
		if (step == SB_STEP_GO_ON)
			continue;
		if (step == SB_STEP_END) {
			sb_stat_add(SB_STAT_SAME_FRAMES, first);
			this->nr_left = first + 1;
			s->walk.status = SB_STACK_COMPLETE;
			return SB_STEP_END;
		}
		break;
	}
	sb_stat_add(SB_STAT_SAME_FRAMES, first - (this->nr_left - 1));
	sb_last_walk_resume(slot, first);
	return SB_STEP_GO_ON;
}

__noinline int sb_last_walk_after(__u32 slot, __u32 step)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();

	if (!s || !this)
		return SB_STEP_END;
	if (this->is_inner)
		note_reads(s, this, step != SB_STEP_GO_ON);
	if (step != SB_STEP_GO_ON) {
		this->nr_left = 0; /* it has its own root */
		return SB_STEP_END;
	}
	if (this->nr_left && sb_last_walk_is_met(slot) && sb_last_walk_go_on(slot) != SB_STEP_GO_ON)
		return SB_STEP_END;
	note_frame(s, this);
	return SB_STEP_GO_ON;
}

/* Add the new frames next to those that are left, LAST_COPY at most, to the last walk. */
__noinline int sb_last_walk_give(void)
{
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	__u64 nr;

	if (!last)
		return 0;
	nr = this->nr_new;
	if (nr > LAST_FRAMES - this->nr_left)
		nr = LAST_FRAMES - this->nr_left;
	if (nr > LAST_COPY)
		nr = LAST_COPY;
	this->nr_new -= nr;
	this->nr_left += nr;
	copy_frames(frame_at(last, this->nr_left - 1), new_frame(this, this->nr_new), nr);
	return 0;
}

__noinline int sb_last_walk_keep(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	struct this_walk *this = this_walk();
	struct last_walk *last = this ? last_walk(this) : NULL;
	__u32 i;

	if (!s || !last || s->stack.status != SB_STACK_COMPLETE)
		return 0;
	for (i = 0; i < LAST_FRAMES / LAST_COPY && this->nr_new; i++)
		sb_last_walk_give();
	last->nr_frames = this->nr_left;
	last->start_ns = s->capture.key.start_ns;
	last->tgid = s->capture.key.tgid;
	last->exec_id = s->capture.key.exec_id;
	last->segs_word = s->map.segs_word;
	last->epoch = this->epoch;
	return 0;
}
