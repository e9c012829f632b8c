/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data in the picture: folded text, gzip (RFC 1952), base64 (RFC 4648), in the element
 * <folded> of <metadata>. The viewer draws from it, and sb_fg_extract() gives it back.
 */
#ifndef SB_FLAMEGRAPH_EMBED_H
#define SB_FLAMEGRAPH_EMBED_H

#include <stdint.h>
#include <stdio.h>

struct sb_fg_tree;
struct sb_fg_facts;
struct sb_fg_layout;

/*
 * Beyond this much folded text the file carries only the frames it draws: a browser has to inflate
 * and hold the whole of it, and base64 of gzip of 32 MiB is still 1 to 4 MB, what a mail bears.
 */
#define SB_FG_EMBED_MAX_BYTES	(32u << 20)

/* Extracting stops here with -EFBIG: gzip can blow 1 MB up to 1 GB, and the file may be hostile. */
#define SB_FG_EXTRACT_MAX_BYTES (4ull << 30)

/* Return: 0, -EFBIG: the tree's folded text is longer than SB_FG_EMBED_MAX_BYTES, -ENOMEM. */
int sb_fg_embed_check(const struct sb_fg_tree *tree);

/*
 * Write facts and tree as folded text, compressed, in lines of base64. Siblings come in the tree's
 * order, so a reader gets the tree back by comparing each line with the one before.
 * Return: 0, -ENOMEM, or -EIO.
 */
int sb_fg_embed(const struct sb_fg_tree *tree, const struct sb_fg_facts *facts, FILE *out);

/*
 * A sealed tree of what is drawn, for trees that are too long: a mark stands for each cut box.
 * Return: 0 and a tree that the caller releases; -ENOMEM, -E2BIG.
 */
int sb_fg_embed_drawn(const struct sb_fg_tree *tree, const struct sb_fg_layout *layout,
		      struct sb_fg_tree *ret_tree);

/*
 * Read an SVG that we wrote and write the folded text in it, facts first.
 * Return: 0, -ENODATA: there is none in it, -EBADMSG: damaged, -EFBIG, or the stream's error.
 */
int sb_fg_extract(FILE *svg, FILE *out);

#endif
