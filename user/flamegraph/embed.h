/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data of a picture: folded text, compressed with gzip (RFC 1952) and encoded as base64 (RFC
 * 4648), in the element <folded> of <metadata>. The viewer draws from it, and sb_fg_extract() gives
 * it back. To write it, call sb_fg_embed_check(), and then sb_fg_embed() with the tree, or after
 * -EFBIG with that of sb_fg_embed_drawn(). Any thread, if nobody modifies the tree meanwhile. After
 * an error of a function that writes, a part may have been written. Pointers are not NULL; streams
 * stay the caller's and are not closed.
 */
#ifndef SB_FLAMEGRAPH_EMBED_H
#define SB_FLAMEGRAPH_EMBED_H

#include <stdio.h>

struct sb_tree;
struct sb_fg_metadata;
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

/* Check that a sealed tree is small enough for sb_fg_embed(), which does not check it. Return: 0;
 * -EFBIG if it has more than SB_FG_EMBED_MAX_BYTES of folded text; -ENOMEM. */
int sb_fg_embed_check(const struct sb_tree *tree);

/*
 * Write the element <folded>: metadata and a sealed tree as compressed folded text, in lines of
 * base64. Siblings keep the order of the tree, so that a reader gets the same tree by comparing
 * each line with the one before. Return: 0; -ENOMEM; -EIO if @out has an error. @out is not
 * flushed.
 */
int sb_fg_embed(const struct sb_tree *tree, const struct sb_fg_metadata *metadata, FILE *out);

/*
 * Make a sealed tree of what is drawn, for trees that are too large to embed: each box of @layout
 * that stands for others becomes a mark "[truncated: 12 frames not kept]". @tree: sealed, the one
 * that @layout was made of. @ret_tree: overwritten; the caller ends it with sb_tree_release(); it
 * has copies of the names and borrows nothing; untouched on error. Return: 0; -ENOMEM; -E2BIG for
 * more nodes than a tree can have.
 */
int sb_fg_embed_drawn(const struct sb_tree *tree, const struct sb_fg_layout *layout,
		      struct sb_tree *ret_tree);

/*
 * Read an SVG that we wrote, from where @svg is up to the end of its data, and write the folded
 * text in it, metadata first, to @out, which is flushed. Return: 0; -ENODATA if there is none;
 * -EBADMSG if it is damaged; -EFBIG beyond SB_FG_EXTRACT_MAX_BYTES of text; -ENOMEM; -EIO or
 * another error of the streams.
 */
int sb_fg_extract(FILE *svg, FILE *out);

#endif
