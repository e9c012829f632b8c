/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Presets: `stackbpf trace syscalls` is short for the events and expressions that the preset "syscalls"
 * stands for. The presets are the rows of presets.def. Thread: any.
 */
#ifndef SB_EVENTS_PRESET_H
#define SB_EVENTS_PRESET_H

#define SB_PRESET_EVENTS_MAX 2u

struct sb_preset {
	const char *name;
	const char *events[SB_PRESET_EVENTS_MAX]; /* as users spell them; NULL: no more */
	/* Expressions for what the user does not say with --when, --weight, --value; NULL: none. */
	const char *when, *weight, *value;
	const char *until;   /* of --in: the event that ends what its events begin; NULL: none */
	const char *summary; /* one line for lists */
};

/* Get the @i-th row, a constant. Return: NULL past the last one. */
const struct sb_preset *sb_preset_at(unsigned int i);

/* Return: the row with the name @name, which is not NULL, a constant; NULL if there is none. */
const struct sb_preset *sb_preset_find(const char *name);

#endif
