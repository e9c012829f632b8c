/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places that events happen at, and the expressions over their arguments, for views that take
 * events. User space fills the maps `event_places` and `event_exprs` before the first event
 * (sb_places_attach() of user/views), and the lower half of a program's cookie is the index of its
 * place. All of this runs in BPF programs, for the current task. Order for an event that is sampled
 * at once: sb_event_place(); sb_begin(); sb_event_is_wanted() and sb_event_weight(), and if both
 * want the event, sb_event_value() and sb_take_stacks().
 *
 * @place_idx: of a place in the map. @nr: 1 + the index of an expression in the map, as in struct
 * sb_trace_place; 0: there is none. Neither is checked: with an index that is not in the map the
 * result means nothing. @slot: SB_SCRATCH_PROBE, which the program has taken (sb_probe_take()), or
 * another one of which no two programs interrupt each other on a CPU: all others share one state of
 * an evaluation. The slot's record is not used. @ctx: the context of the program, not NULL, whose
 * layout the expression was compiled for; it is read during the call only.
 *
 * An evaluation always has a result. Memory that cannot be read counts as 0 or "", what is divided
 * by 0 is 0, and a string is cut after 63 bytes; each of these is counted (SB_STAT_EXPR_*).
 * Implemented in core/expr.bpf.c.
 */
#ifndef SB_EXPR_BPF_H
#define SB_EXPR_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/abi/sb_abi_trace.h"

/*
 * Return: the place with this index, in the map `event_places`, borrowed and valid until the
 * program ends; NULL: there is none.
 */
const struct sb_trace_place *sb_event_place(__u32 idx);

/* Return: whether --when takes the event; true without expression. If not, the event is left out,
 * which is counted (SB_STAT_WHEN_FALSE). */
bool sb_event_is_wanted(void *ctx, __u32 place_idx, __u32 nr, __u32 slot);

/* Return: the value of --weight; 1 without expression. 0: it is 0 or negative, and the event is
 * left out, which is counted (SB_STAT_WEIGHT_NONE). */
__u64 sb_event_weight(void *ctx, __u32 place_idx, __u32 nr, __u32 slot);

/* Return: the value of an expression (--key), by which the two ends of a pair are matched, as one
 * word: an integer itself, a hash of a string; either may be 0. 0 without expression. */
__u64 sb_event_word(void *ctx, __u32 place_idx, __u32 nr, __u32 slot);

/*
 * Evaluate --value and ship the result as an object (struct sb_object_value), unless user space has
 * it. If the ring is full, that is counted (SB_STAT_OBJECT_FULL), and the next event with this
 * value tries again. Return: the object's ID, shipped or not, for sb_sample_key.object, never 0; 0
 * without expression.
 */
__u64 sb_event_value(void *ctx, __u32 place_idx, __u32 nr, __u32 slot);

#endif
