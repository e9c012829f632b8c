/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data of a picture: folded text, compressed with gzip (RFC 1952) and encoded as base64 (RFC
 * 4648), in the element <folded> of <metadata>. The viewer draws from it, and sb_fg_extract() gives
 * it back. Not thread-safe.
 */
#ifndef SB_FLAMEGRAPH_EMBED_H
#define SB_FLAMEGRAPH_EMBED_H

#include <stdint.h>
#include <stdio.h>

struct sb_tree;
struct sb_fg_facts;
struct sb_fg_layout;

/*
 * With more folded text than this, the file has only the frames that are drawn. A browser has to
 * decompress and hold all of it; at this size it takes 1 to 4 MB, which can still be mailed.
 */
#define SB_FG_EMBED_MAX_BYTES	(32u << 20)

/*
 * Extraction fails with -EFBIG beyond this: 1 MB of gzip may expand to 1 GB, and files may be
 * hostile.
 */
#define SB_FG_EXTRACT_MAX_BYTES (4ull << 30)

/* Return: 0; -EFBIG if the tree has more than SB_FG_EMBED_MAX_BYTES of folded text; -ENOMEM. */
int sb_fg_embed_check(const struct sb_tree *tree);

/*
 * Write metadata and tree as compressed folded text, in lines of base64. Siblings keep the order of
 * the tree, so that a reader gets the same tree by comparing each line with the one before. Return:
 * 0; -ENOMEM; -EIO.
 */
int sb_fg_embed(const struct sb_tree *tree, const struct sb_fg_facts *facts, FILE *out);

/*
 * Make a sealed tree of what is drawn, for trees that are too large to embed: each cut box becomes
 * a mark. The caller releases *@ret_tree. Return: 0; -ENOMEM; -E2BIG.
 */
int sb_fg_embed_drawn(const struct sb_tree *tree, const struct sb_fg_layout *layout,
		      struct sb_tree *ret_tree);

/*
 * Read an SVG that we wrote, and write the folded text in it, metadata first. Return: 0; -ENODATA
 * if there is none; -EBADMSG if it is damaged; -EFBIG; -ENOMEM; -EIO or another error of the
 * streams.
 */
int sb_fg_extract(FILE *svg, FILE *out);

#endif
