/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names that an administrator gives to events and spans, for `stackbpf record --kinds trace:NAME`.
 * They are in a text file, a line each:
 *
 *	# Calls of OpenSSL, by the bytes that they wrote.
 *	ssl: r:ssl:SSL_write --when 'retval > 0' --weight retval
 *	fsync: c:fsync c:fdatasync --min 10ms
 *	request: --from ./server:begin --to ./server:done --key arg0
 *	slow: --in ./server:handle --slower-than 100ms
 *
 * The last line defines spans: `--kinds oncpu:slow` records samples in them alone.
 *
 * Words are separated by blanks; '...' and "..." hold blanks together; # begins a comment. The file
 * decides what a privileged process attaches to, so nobody else may be able to write it. Order: a
 * list begins zeroed; sb_definitions_read() once; sb_definitions_find(); sb_definitions_release().
 * Thread: any. Pointers are not NULL; only @reason may be, and then no reason is kept.
 */
#ifndef SB_EVENTS_DEFINITION_H
#define SB_EVENTS_DEFINITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "events/probe.h"

struct sb_reason;

#define SB_DEFINITIONS_PATH	 "/etc/stackbpf/events"
#define SB_DEFINITIONS_BYTES_MAX 65536u
#define SB_DEFINITIONS_MAX	 64u /* lines that define something */
#define SB_DEFINITION_EVENTS_MAX 32u /* in a list */
#define SB_DEFINITION_NAME_MAX	 14u /* bytes, of letters, digits, '_' and '-' */

/* One line. Strings are parts of sb_definitions.text; NULL: not said. At least one
 * of the lists of events has an event, or there are spans, and then nothing else is said; which of
 * the other options go together is not checked yet. */
struct sb_definition {
	const char *name;
	struct sb_event_request request; /* not checked yet; each list has a bound */
	uint64_t min_ns, max_ns;	 /* of a call; 0: no bound */
	const char *in, *until;	 /* where spans begin and end, not checked yet; NULL: no spans */
	uint64_t slower_than_ns; /* only spans that take so long; 0: all */
	unsigned int line;	 /* from 1 */
};

struct sb_definitions {
	SB_VEC(struct sb_definition) at;
	char *text;
};

/**
 * sb_definitions_parse() - parse the text of a file
 * @text: allocated by malloc(), ends in NUL; the list takes it over, also on error, and cuts it up
 * @path: for messages; not kept
 * @list: empty; on error it has the definitions before that line. The caller always releases it
 * @reason: why not, a sentence with path and line
 *
 * Return: 0; -EINVAL with @reason; -ENOMEM.
 */
int sb_definitions_parse(char *text, const char *path, struct sb_definitions *list,
			 struct sb_reason *reason);

/* Read and parse the file @path. @list: empty; on error it may have a part of the definitions; the
 * caller always releases it. Return: 0; -EINVAL: a line is wrong, or the file has a NUL byte;
 * -EPERM: it is no regular file, or others than root and this user own it or can write it; -EFBIG:
 * it is longer than SB_DEFINITIONS_BYTES_MAX; -ENOMEM; or another negative errno of reading it.
 * @reason is set for each of these, except where parsing runs out of memory. */
int sb_definitions_read(const char *path, struct sb_definitions *list, struct sb_reason *reason);

/* Find the definition of a name. @path: of the file that @list was read from, for @reason; not
 * kept. Return: the definition, which lives until @list is released; NULL if there is none, with
 * @reason, which names @path and the nearest name. */
const struct sb_definition *sb_definitions_find(const struct sb_definitions *list, const char *name,
						const char *path, struct sb_reason *reason);

/* Free the list with all strings, also after an error; it is empty then. */
void sb_definitions_release(struct sb_definitions *list);

#endif
