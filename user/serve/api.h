/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the api_*.c: from parameters to a question to the store; pieces of JSON. */
#ifndef SB_SERVE_API_H
#define SB_SERVE_API_H

#include "base/cleanup.h"
#include "model/tree.h"
#include "serve/routes.h"
#include "store/ask.h"

#define SB_API_NODES	 8192u
#define SB_API_NODES_MAX 65536u

SB_DEFINE_CLEANUP(struct sb_profile, sb_profile_free)
SB_DEFINE_CLEANUP(struct sb_tree, sb_tree_free)

/*
 * PREFIXfrom, PREFIXto, PREFIXtag of the parameters, and kind and by, which have no prefix. @prefix: "" or
 * "vs_". What @ask borrows is good as long as the parameters are. Return: 0, or an error that was said.
 */
int sb_api_ask(struct sb_asked *asked, const char *prefix, struct sb_ask *ret_ask);
/* A parameter that is a number, @otherwise if it is not there. Return: 0, or an error that was said. */
int sb_api_number(struct sb_asked *asked, const char *name, uint32_t min, uint32_t max,
		  uint32_t otherwise, uint32_t *ret);
/* The answer as a tree of few enough nodes. Return: 0 or a negative errno. */
int sb_api_tree(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes_max,
		struct sb_profile **ret_profile, struct sb_tree **ret_tree,
		struct sb_store_answer *ret_answer);

/* Return: the number that fact @key of @profile is, or 0. */
uint64_t sb_api_fact(const struct sb_profile *profile, const char *key);

/* Numbers of the strings of a tree that are used, in the order in which they are asked for. */
struct sb_numbering {
	uint32_t *number; /* by string; 0: none yet, else 1 more */
	uint32_t *string; /* by number */
	uint32_t nr;
};
/* Zeroed before. Return: 0 or -ENOMEM; release it in any case. */
int sb_numbering_init(struct sb_numbering *numbering, const struct sb_tree *tree);
void sb_numbering_release(struct sb_numbering *numbering);
uint32_t sb_numbering_of(struct sb_numbering *numbering, uint32_t string);

/* Return: the weight of what is "(other)" because there were to be few nodes. */
uint64_t sb_api_other(const struct sb_tree *tree);

#endif
