/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the api_*.c: turns parameters into queries to the store, and writes pieces of JSON.
 * Runs in a worker process, which has one thread. -EINVAL means that sb_asked_fail() (routes.h) has
 * set the reply. Other errors are -ENOMEM and those of I/O. After an error the caller releases what
 * it has, and returns it. Pointers are not NULL unless it says so.
 *
 * Order: sb_api_ask() for each query, sb_api_number() for each number, sb_asked_all(), then
 * sb_api_tree() or a function of ask.h, JSON to asked->json, and sb_ask_release().
 */
#ifndef SB_SERVE_API_H
#define SB_SERVE_API_H

#include "base/cleanup.h"
#include "model/calltree.h"
#include "serve/routes.h"
#include "store/ask.h"

/* Nodes of a tree in an answer: by default, and at most. */
#define SB_API_NODES	 8192u
#define SB_API_NODES_MAX 65536u

/*
 * Make a query from the parameters PREFIXfrom, PREFIXto and PREFIXtag, and from kind and by, which
 * have no prefix, and check in the store that the tags of `by` occur. @prefix is "" or "vs_".
 * @ret_ask: zero-initialized by the caller; it borrows from the parameters, and must be released
 * with sb_ask_release(), also after an error. Return: 0; -EINVAL; another negative errno.
 */
int sb_api_ask(struct sb_asked *asked, const char *prefix, struct sb_ask *ret_ask);
/*
 * Read a parameter that is a number from @min to @max; *ret is @otherwise if it is missing. Return:
 * 0; -EINVAL, and *ret is untouched.
 */
int sb_api_number(struct sb_asked *asked, const char *name, uint32_t min, uint32_t max,
		  uint32_t otherwise, uint32_t *ret);
/*
 * Run a query, and make a sealed tree of at most @nr_nodes_max nodes, which is SB_API_NODES_MAX at
 * most; 0: of all. The caller owns the profile and the tree. @ask: of sb_api_ask(), so that its
 * range is not empty; its nr_nodes_max is set here. @ret_answer: figures of the answer; may be
 * NULL. Return: 0; a negative errno, and then profile and tree are untouched, and the answer may be
 * set.
 */
int sb_api_tree(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes_max,
		struct sb_profile **ret_profile, struct sb_tree **ret_tree,
		struct sb_store_answer *ret_answer);

/*
 * Gives numbers to the strings of a tree that are used, in the order in which they are first used.
 */
struct sb_numbering {
	uint32_t *number; /* by string: its number + 1; 0: none yet */
	uint32_t *string; /* by number */
	uint32_t nr;
};
/*
 * Prepare to number the names of @tree that an answer uses, in the order in which sb_numbering_of()
 * is asked for them. @numbering: zero-initialized. @tree: only used during the call, but must not
 * get more names afterwards.
 * Return: 0 or -ENOMEM; release it in both cases.
 */
int sb_numbering_init(struct sb_numbering *numbering, const struct sb_tree *tree);
/* Free both tables, also after an error and of a zero-initialized one; call it once. */
void sb_numbering_release(struct sb_numbering *numbering);
/* Return: the number of @string, an index of the tree's names, which is not checked: the next one,
 * from 0 on, if it had none. */
uint32_t sb_numbering_of(struct sb_numbering *numbering, uint32_t string);

#endif
