// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A window sees each free() and, in its first part, each malloc(). Of memory that was allocated in
 * one window and given back between two others, there is proof as soon as a window sees its address
 * again: heaps hand out an address again, and what was handed out is given back again. But the
 * address may also never be seen again, because nobody needs it, or because memory that leaks is
 * there now.
 *
 * So of D pieces of a stack that were given back, a part f was given back in a window, which is the
 * part of the time that windows have. Of the others a part q was not seen again until the run
 * ended. Both happen to an address at the same moment, when it is given back, and so q is the part
 * of those with proof whose address no window has seen since that proof. Of D, 1 - (1 - f) q have
 * proof: this gives D (Horvitz and Thompson 1952), and what is held is the rest of all pieces. As
 * proof comes later than the end itself, less time is left to see the address again, which makes q
 * too large, and what is held too little. This matters only for stacks that give back a part of
 * what they allocate. But addresses that are used again often have proof more often, which makes q
 * too small if the addresses of a stack differ in that; then memory that was given back counts as
 * held. Sizes are such a difference, as heaps reuse an address for one size. Stacks are not divided
 * by size, because then more parts have too few pieces to see any of them given back, and all of
 * such a part counts as held.
 *
 * Pieces of one window often end in one window, so that errors go by windows in which something was
 * seen, not by pieces; 64 windows are told apart at most. An estimate of less than three standard
 * errors counts as zero: the many pieces of a stack whose memory comes and goes would hide a leak
 * otherwise.
 */
#include <math.h>

#include "views/views.h"

/* Standard errors. */
#define SURE 3.0

static struct sb_survival_group *find(const struct sb_survival *survival, uint64_t stack)
{
	sb_index_each(it, &survival->by_hash, stack)
		if (survival->groups.at[it.id].hash == stack)
			return &survival->groups.at[it.id];
	return NULL;
}

int sb_survival_add(struct sb_survival *survival, uint64_t stack, const struct sb_held_watch *watch,
		    double nr)
{
	struct sb_survival_group *group = find(survival, stack);
	int err;

	if (!group) {
		err = sb_index_push(&survival->by_hash, stack, &survival->groups,
				    (struct sb_survival_group){ .hash = stack });
		if (err)
			return err;
		group = &survival->groups.at[survival->groups.nr - 1];
	}
	if (!watch->proof) {
		group->unproven += nr;
		return 0;
	}
	group->proven += nr;
	group->windows |= 1ull << watch->proof % 64;
	/* If other memory is followed at once, the address is not watched any more. */
	if (watch->until == watch->proof)
		return 0;
	group->watched += nr;
	group->windows_watched |= 1ull << watch->proof % 64;
	group->silent += watch->last == watch->proof ? nr : 0;
	return 0;
}

/* That few windows have seen all addresses again does not say that it is always so: by Laplace's
 * rule of succession, but never less than was seen, which would let more count as held. */
static double part_silent(const struct sb_survival_group *group)
{
	const double windows = __builtin_popcountll(group->windows_watched);
	const double share = windows > 0 ? group->silent / group->watched : 1;

	return fmax(share, (share * windows + 1) / (windows + 2));
}

static double part_of(const struct sb_survival_group *group, double traced)
{
	const double windows = __builtin_popcountll(group->windows);
	const double unseen = 1 - traced;
	const double silent = part_silent(group);
	const double has_proof = 1 - unseen * silent;
	double gone, held, variance;

	if (group->proven <= 0 || group->unproven <= 0)
		return 1;
	if (has_proof <= 0)
		return 0;
	gone = group->proven / has_proof;
	held = group->unproven + group->proven - gone;
	variance = (1 - has_proof) / has_proof / windows;
	if (group->windows_watched)
		variance += unseen * unseen * silent * (1 - silent) / has_proof / has_proof /
			    __builtin_popcountll(group->windows_watched);
	return held > SURE * gone * sqrt(variance) ? held / group->unproven : 0;
}

void sb_survival_judge(struct sb_survival *survival, double traced)
{
	size_t i;

	for (i = 0; i < survival->groups.nr; i++)
		survival->groups.at[i].part = part_of(&survival->groups.at[i], traced);
}

double sb_survival_part(const struct sb_survival *survival, uint64_t stack)
{
	const struct sb_survival_group *group = find(survival, stack);

	return group ? group->part : 1;
}

void sb_survival_release(struct sb_survival *survival)
{
	sb_vec_release(&survival->groups);
	sb_index_release(&survival->by_hash);
}
