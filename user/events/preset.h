/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Presets: `stackbpf trace syscalls` is short for the events and expressions that the preset
 * "syscalls" stands for. The presets are the rows of presets.def, constants. Thread: any.
 */
#ifndef SB_EVENTS_PRESET_H
#define SB_EVENTS_PRESET_H

#define SB_PRESET_EVENTS_MAX 2u

struct sb_preset {
	const char *name;
	const char *events[SB_PRESET_EVENTS_MAX]; /* as users spell them; NULL: no more */
	/* Expressions for what the user does not say with --when, --weight, --value; NULL: none. */
	const char *when, *weight, *value;
	/* Expressions that match the ends of pairs, where one begins and where it ends; NULL:
	 * none. */
	const char *key, *to_key;
	const char *until;   /* of --in: the event that ends what its events begin; NULL: none */
	const char *summary; /* one line for lists */
};

/* Return: row @i of the table, from 0; NULL past the end. */
const struct sb_preset *sb_preset_at(unsigned int i);

/* Return: the row with the name @name, which is not NULL; NULL if there is none. */
const struct sb_preset *sb_preset_find(const char *name);

#endif
