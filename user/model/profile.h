/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile: stacks of named frames with their weights; what a recording or a query results in.
 * Names and frames are interned, and equal stacks are one stack; all that is added is copied. A
 * frame's ID is valid as long as the profile, in this profile only. IDs and indexes begin with 0
 * and are not checked.
 *
 * Order: sb_profile_new(); frames, then rows that name them by ID; sb_profile_scale_by() if the
 * unit changes; sb_profile_set_squares() if they are known; sb_profile_seal(); then the functions
 * that read. sb_profile_clear() begins anew, and sb_profile_free() ends it. Texts that come back
 * are valid until sb_profile_free(), other pointers until the profile is modified.
 *
 * -E2BIG means that the profile would have more than 2^31 frames, frames of all stacks together, or
 * bytes of names. After it and after -ENOMEM, the profile has all that was added before, and can be
 * sealed and read; a call that adds one frame or one stack may be repeated. On error *ret_... is
 * untouched. Pointers are not NULL unless it says so. Not thread-safe; several threads may read one
 * that nobody modifies.
 */
#ifndef SB_MODEL_PROFILE_H
#define SB_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "kinds/metadata.h"
#include "tree/frames.h"

struct sb_profile;

/* What a frame is: a row SB_FRAME of tree/frames.def for each. */
enum sb_frame_kind {
#define SB_FRAME(kind, ...) SB_FRAME_##kind,
#include "tree/frames.def"
	SB_FRAME_KIND_MAX,
};

/* Indexed by enum sb_frame_kind. */
extern const struct sb_frame_kind_row {
	const char *name; /* "kernel_inlined"; part of file formats, so it must not change */
	enum sb_frame_kind function; /* as sb_function_kind() returns it */
	enum sb_fg_kind picture;     /* the kind in pictures, unless the frame is a mark */
} sb_frame_kinds[SB_FRAME_KIND_MAX];

/* Return: SB_FRAME_USER or SB_FRAME_KERNEL for the kind of their inlined frames; else @kind. */
enum sb_frame_kind sb_function_kind(enum sb_frame_kind kind);

struct sb_frame {
	const char *name;     /* never NULL: a name, "[module+0x1234]" or "[unknown]" */
	const char *module;   /* or NULL */
	const char *file;     /* or NULL */
	uint64_t func_offset; /* bytes from the beginning of the function */
	uint32_t line;	      /* in `file`; 0: not known */
	uint32_t attr;	      /* set if sb_profile_attr_at() has an attribute; 0: none */
	enum sb_frame_kind kind;
	bool is_unnamed; /* the name was made up because there is no symbol */
	uint8_t mark;	 /* of SB_FRAME_MARK: the enum sb_attr_kind that it shows; 0: none */
};

/*
 * What is known about samples apart from their code. A frame of the stack shows each attribute;
 * sb_fold_attr() makes the frame's name. The kinds from SB_ATTR_IDLE on are marks: frames of the
 * kind SB_FRAME_MARK show them, and a row SB_MARK in tree/frames.def defines each.
 */
enum sb_attr_kind {
	SB_ATTR_NONE,
	/* Process, thread or place: SB_FRAME_ROOT. */
	SB_ATTR_COMM,	   /* text */
	SB_ATTR_PROCESS,   /* text: the comm; pid */
	SB_ATTR_THREAD,	   /* text: the comm; pid, tid */
	SB_ATTR_CPU,	   /* cpu */
	SB_ATTR_CGROUP,	   /* text: its path */
	SB_ATTR_CONTAINER, /* text: its ID, or "[host]" */
	SB_ATTR_LABEL,	   /* key and text that a program set on a thread */
	SB_ATTR_TAG,	   /* key and text of a store's tag; only the text is shown */
#define SB_MARK(form, kind, attr) SB_ATTR_##attr,
#include "tree/frames.def"
	SB_ATTR_KIND_MAX,
};

struct sb_attr {
	enum sb_attr_kind kind;
	uint32_t pid, tid, cpu; /* these and the strings are set if the kind has them */
	const char *key, *text;
};

/* Make an empty profile, owned by the caller. Return: 0 or -ENOMEM. */
int sb_profile_new(struct sb_profile **ret_profile);
/* Free the profile and all that it holds; NULL is allowed. */
void sb_profile_free(struct sb_profile *profile);
SB_DEFINE_CLEANUP(struct sb_profile, sb_profile_free)

/*
 * Intern a frame: find one that is equal in all members but `attr`, which is ignored, or add it. A
 * frame with a `mark`, whose other strings a store or a text did not keep, is the one that
 * sb_profile_attr() made if the name is the same. Its strings, which the profile need not know, are
 * copied. Return: 0 and the ID of the frame; -ENOMEM; -E2BIG.
 */
int sb_profile_frame(struct sb_profile *profile, const struct sb_frame *frame, uint32_t *ret_id);

/* Intern an attribute, such as the process or the state of a thread (enum sb_attr_kind), which is
 * not SB_ATTR_NONE and has the strings of its kind, with the frame that shows it. Return: 0 and the
 * ID of that frame; -ENOMEM; -E2BIG. */
int sb_profile_attr(struct sb_profile *profile, const struct sb_attr *attr, uint32_t *ret_id);

/* Intern frame @id of profile @from, with its attribute. Return: 0 and the ID in @profile; -ENOMEM;
 * -E2BIG. */
int sb_profile_copy_frame(struct sb_profile *profile, const struct sb_profile *from, uint32_t id,
			  uint32_t *ret_id);

/*
 * Append a frame, without an attribute, and without looking for a duplicate, in a quarter of the
 * time. The caller guarantees that the frame is new; this is not checked. Return: 0 and the ID of
 * the frame; -ENOMEM; -E2BIG.
 */
int sb_profile_push_frame(struct sb_profile *profile, const struct sb_frame *frame,
			  uint32_t *ret_id);
/* The same, but the strings of the frame are not copied: they must stay until the profile is freed.
 */
int sb_profile_push_borrowed(struct sb_profile *profile, const struct sb_frame *frame,
			     uint32_t *ret_id);

/*
 * Make room for @nr_frames further distinct frames and @nr_stacks further stacks, with
 * @nr_stack_frames frame IDs in all of these stacks together. Only saves time. Return: 0; -ENOMEM,
 * which may be ignored: the contents are as before, and stacks can be added all the same.
 */
int sb_profile_reserve(struct sb_profile *profile, size_t nr_frames, size_t nr_stacks,
		       size_t nr_stack_frames);

/*
 * Durations are counted in buckets by their logarithm: bucket k has those from 2^k to 2^(k+1) - 1
 * ns, bucket 0 also those of 0 ns. There are counts for each row that has durations, and for all
 * rows together.
 */
#define SB_PROFILE_NR_LOG2  64

/* The frame that a stack without frames gets when it is added. */
#define SB_PROFILE_NO_STACK "[no stack]"

/* A row of a profile: one stack of one series, with the sum of its samples. */
struct sb_row {
	const uint32_t *frames; /* IDs of frames, root first */
	size_t nr;		/* in a profile not 0 */
	uint32_t series;	/* chosen by the caller to keep samples apart; or 0 */
	uint32_t log2_ns;	/* to add: 1 + the bucket of all nr_samples durations; 0: none */
	uint64_t weight;
	uint64_t nr_samples; /* how many samples, waits or calls; 0: not known */
};

/**
 * sb_profile_add_row() - add weight and samples to the row of a stack and a series
 * @row: copied with its frame IDs; a new row is made if there is none yet. If `nr` is 0, `frames`
 *	may be NULL, and the row has the frame SB_PROFILE_NO_STACK. Sums above UINT64_MAX wrap
 *	around
 *
 * Return: 0; -EINVAL if log2_ns is above SB_PROFILE_NR_LOG2; -ENOMEM; -E2BIG. On error nothing is
 * added.
 */
int sb_profile_add_row(struct sb_profile *profile, const struct sb_row *row);

/* Add weight to the stack of @nr frames, root first, in series 0, without a number of samples. @nr
 * may be 0, and @frame_ids NULL then. Return: 0; -ENOMEM; -E2BIG; on error nothing is added. */
int sb_profile_add(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		   uint64_t weight);

/* Append a new stack, given as to sb_profile_add(), to series 0, without looking for a duplicate.
 * The caller guarantees that the stack is new; this is not checked. Return: 0; -ENOMEM; -E2BIG; on
 * error nothing is added. */
int sb_profile_push(struct sb_profile *profile, const uint32_t *frame_ids, size_t nr,
		    uint64_t weight);

/**
 * sb_profile_copy_row() - add a row of another profile
 * @from: not modified
 * @row: a row of @from; its weight and samples are added as by sb_profile_add_row()
 * @known: the caller's cache of frame IDs for this pair of profiles: an element for each frame of
 *	@from, all 0 before the first row; it stays valid after an error
 *
 * Only frames that the copied rows use are copied. The durations of the row are not.
 *
 * Return: 0; -ENOMEM; -E2BIG; on error the row is not added.
 */
int sb_profile_copy_row(struct sb_profile *profile, const struct sb_profile *from,
			const struct sb_row *row, uint32_t *known);

/*
 * Add all rows of @from with their durations, but not its metadata or squares, nor what
 * sb_profile_scale_by() left out of it. @from is another profile, sealed or not; it is not
 * modified, and not needed afterwards. Return: 0; -ENOMEM; -E2BIG. On error some rows may have been
 * added, which another call would add once more.
 */
int sb_profile_merge(struct sb_profile *profile, const struct sb_profile *from);

/*
 * Set the sum of squares of the weights of a stack's samples, from which its variance is known; 0:
 * not known. Call it after sb_profile_scale_by(), if that is called, and before the seal; no stack
 * may be added in between. @i: the stack's index at that time. @squares: in the square of the unit
 * that weights have at that time. Return: 0; -ENOMEM, and nothing is set.
 */
int sb_profile_set_squares(struct sb_profile *profile, size_t i, double squares);

/* Set the metadata, in place of what was there. May be called after the seal. It is copied, as
 * sb_metadata_merge() does; strings of earlier metadata stay valid. Return: 0; -ENOMEM, and nothing
 * is set. */
int sb_profile_set_metadata(struct sb_profile *profile, const struct sb_metadata *metadata);

/*
 * Append metadata for which struct sb_metadata has no member, and which is only shown: tags of a
 * series, and keys of folded text that this program does not know. Headers show the members of
 * struct sb_metadata first, and then these in the order of the calls. A key that is there already
 * is not replaced. May be called after the seal. @key and the formatted value are copied.
 * Return: 0; -ENOMEM, and nothing is added.
 */
int sb_profile_meta(struct sb_profile *profile, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Multiply all weights by @factor and divide them by @divisor, such as 1 and 1000 to make us from
 * ns, rounded to nearest. A weight that does not fit becomes UINT64_MAX. Call it once, after all
 * stacks were added and before the seal. Stacks whose weight becomes 0 are removed; their durations
 * stay in the total. Return: 0; -EINVAL if the divisor is 0.
 */
int sb_profile_scale_by(struct sb_profile *profile, uint64_t factor, uint64_t divisor);

/* Return: how many stacks with a weight sb_profile_scale_by() removed; *ret_unscaled_weight is
 * always set: the sum of their weights before, in the unit from before the division. */
uint64_t sb_profile_nr_tiny(const struct sb_profile *profile, uint64_t *ret_unscaled_weight);

/*
 * Remove all stacks, squares and durations, with those of all rows together. Frames keep their IDs,
 * and metadata stays. The profile can be filled again, also after it was sealed.
 */
void sb_profile_clear(struct sb_profile *profile);

/*
 * Sort the stacks, heaviest first, then by the names of their frames and by series, so that the
 * same input gives the same bytes. No stack can be added afterwards, which is not checked, until
 * sb_profile_clear(). Return: 0; -ENOMEM, and then they are all there, unsorted, and it may be
 * called again.
 */
int sb_profile_seal(struct sb_profile *profile);

/*
 * Return: how many rows or frames there are. The functions below read them: rows sorted after the
 * seal, else in the order in which stacks were added.
 */
size_t sb_profile_nr_stacks(const struct sb_profile *profile);
size_t sb_profile_nr_frames(const struct sb_profile *profile);
/* Return: bytes of memory for names, modules and files. Before the seal, too. */
size_t sb_profile_text_bytes(const struct sb_profile *profile);
/* Return: the weight of all rows. */
uint64_t sb_profile_weight(const struct sb_profile *profile);
/* Return: the weight of the first @nr rows, or of all rows if there are fewer. */
uint64_t sb_profile_weight_of(const struct sb_profile *profile, size_t nr);
/* Return: the frame with this ID, valid until a frame is added. */
const struct sb_frame *sb_profile_frame_at(const struct sb_profile *profile, uint32_t id);
/* Return: the attribute that the frame with this ID shows, valid until one is added; one of kind
 * SB_ATTR_NONE if it shows none. */
const struct sb_attr *sb_profile_attr_at(const struct sb_profile *profile, uint32_t id);
/* Return: row @i, whose `frames` points into the profile. Its log2_ns is 0. */
struct sb_row sb_profile_row_at(const struct sb_profile *profile, size_t i);
/* Return: what sb_profile_set_squares() set for the stack of row @i, wherever the seal has put it;
 * 0: nothing. */
double sb_profile_squares_at(const struct sb_profile *profile, size_t i);
/* Return: the SB_PROFILE_NR_LOG2 counts of durations of row @i; NULL if it has none. */
const uint64_t *sb_profile_log2_at(const struct sb_profile *profile, size_t i);
/* Return: the SB_PROFILE_NR_LOG2 counts of all rows together; NULL if there are none. */
const uint64_t *sb_profile_log2_total(const struct sb_profile *profile);
/* Return: the metadata; all not known if they were not set. */
const struct sb_metadata *sb_profile_metadata(const struct sb_profile *profile);
/* Return: the unit of the weights; "samples" if it is not known. */
const char *sb_profile_unit(const struct sb_profile *profile);
/* Return: the key of the @i-th piece of metadata that sb_profile_meta() added, and its value in
 * *ret_value; NULL past the end, and *ret_value is untouched. */
const char *sb_profile_meta_at(const struct sb_profile *profile, size_t i, const char **ret_value);

#endif
