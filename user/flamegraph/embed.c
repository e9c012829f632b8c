// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/embed.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "flamegraph/diff.h"
#include "flamegraph/layout.h"
#include "flamegraph/tree.h"

#define BASE64_LINE_MAX 120 /* a multiple of 4: editors and diffs dislike lines of megabytes */
#define CHUNK_BYTES	(64u << 10)
#define GZIP_WINDOW	(15 + 16) /* zlib.h: 16 more asks for the gzip wrapper, whose time is 0 */
#define OPEN_TAG	"<folded"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- writing: text -> gzip -> base64 -> file ---- */

struct packer {
	z_stream z;
	FILE *out;
	uint8_t rest[3]; /* bytes that are not enough for four characters */
	size_t nr_rest, column;
	uint8_t chunk[CHUNK_BYTES];
};

static void put_quad(struct packer *packer)
{
	const uint8_t *r = packer->rest;
	uint32_t bits = (uint32_t)r[0] << 16 | (uint32_t)r[1] << 8 | r[2];
	char quad[5] = { alphabet[bits >> 18], alphabet[bits >> 12 & 63], alphabet[bits >> 6 & 63],
			 alphabet[bits & 63], '\n' };

	if (packer->nr_rest < 3)
		quad[3] = '=';
	if (packer->nr_rest < 2)
		quad[2] = '=';
	packer->column += 4;
	fwrite(quad, 1, packer->column == BASE64_LINE_MAX ? 5 : 4, packer->out);
	if (packer->column == BASE64_LINE_MAX)
		packer->column = 0;
	memset(packer->rest, 0, sizeof(packer->rest));
	packer->nr_rest = 0;
}

static void put_base64(struct packer *packer, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		packer->rest[packer->nr_rest++] = data[i];
		if (packer->nr_rest == 3)
			put_quad(packer);
	}
}

/* Errors are detected by ferror() at the end. */
static void pack(struct packer *packer, const char *data, size_t len, int flush)
{
	/* zlib without ZLIB_CONST takes a pointer to what it only reads. */
	packer->z.next_in = (Bytef *)(uintptr_t)data;
	packer->z.avail_in = (uInt)len;
	do {
		packer->z.next_out = packer->chunk;
		packer->z.avail_out = sizeof(packer->chunk);
		deflate(&packer->z, flush);
		put_base64(packer, packer->chunk, sizeof(packer->chunk) - packer->z.avail_out);
	} while (!packer->z.avail_out);
}

static int pack_piece(void *arg, const char *s, size_t len)
{
	pack(arg, s, len, Z_NO_FLUSH);
	return 0;
}

static int add_header(struct sb_str *line, const struct sb_fg_metadata *metadata)
{
	int err = sb_metadata_print(line, &metadata->known);

	for (size_t i = 0; i < metadata->others.nr && !err; i++)
		err = sb_metadata_print_part(line, metadata->others.at[i].key,
					     metadata->others.at[i].value);
	if (err)
		return err;
	if (strchr(line->s, '='))
		return sb_str_addc(line, '\n');
	sb_str_clear(line); /* nothing is known */
	return 0;
}

static int count_piece(void *arg, const char *s, size_t len)
{
	uint64_t *nr_bytes = arg;

	*nr_bytes += len;
	return *nr_bytes > SB_FG_EMBED_MAX_BYTES ? -EFBIG : 0;
}

int sb_fg_embed_check(const struct sb_tree *tree)
{
	uint64_t nr_bytes = 0;

	return sb_fg_tree_fold(tree, count_piece, &nr_bytes);
}

int sb_fg_embed(const struct sb_tree *tree, const struct sb_fg_metadata *metadata, FILE *out)
{
	sb_cleanup(sb_freep) struct packer *packer = calloc(1, sizeof(*packer));
	sb_cleanup(sb_str_release) struct sb_str header = {};
	int err;

	if (!packer)
		return -ENOMEM;
	packer->out = out;
	if (deflateInit2(&packer->z, 6, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY))
		return -ENOMEM;
	fputs(OPEN_TAG " xmlns=\"urn:stackbpf\" encoding=\"base64 gzip\">\n", out);
	err = add_header(&header, metadata);
	if (!err && header.len)
		pack(packer, header.s, header.len, Z_NO_FLUSH);
	err = err ?: sb_fg_tree_fold(tree, pack_piece, packer);
	pack(packer, NULL, 0, Z_FINISH);
	if (packer->nr_rest)
		put_quad(packer);
	deflateEnd(&packer->z);
	fputs("</folded>\n", out);
	return err ?: ferror(out) ? -EIO : 0;
}

/* Subtract a box from its parent: in the end `selves` has what is in no box above each box. */
static void take_from_parent(const struct sb_fg_layout *layout, double *selves, size_t i)
{
	selves[i] += layout->boxes.at[i].weight;
	if (i)
		selves[layout->boxes.at[i].parent] -= layout->boxes.at[i].weight;
}

static int add_box(struct sb_tree *to, const struct sb_tree *from, const struct sb_fg_box *box,
		   uint32_t parent, uint32_t *ret_node)
{
	struct sb_tree_frame frame = { .kind = from->kinds.at[box->node] };
	char mark[64];

	frame.name = sb_strtab_get(&from->names, from->nodes.at[box->node].name, &frame.len);
	if (box->kind != SB_FG_BOX_FRAME) {
		/* The beginning makes it a mark when it is read again. */
		frame.len = (size_t)snprintf(mark, sizeof(mark), "[truncated: %u frames not kept]",
					     box->nr_cut);
		frame.name = mark;
		frame.kind = SB_FG_MARK;
	}
	return sb_tree_child(to, parent, &frame, ret_node);
}

/* The same for both weights of a comparison. Return: 0 or -ENOMEM. */
static int weigh_pairs(struct sb_tree *drawn, const struct sb_tree *tree,
		       const struct sb_fg_layout *layout, const uint32_t *nodes)
{
	size_t nr = layout->boxes.nr, i;
	sb_cleanup(sb_freep) struct sb_tree_pair *selves = calloc(nr, sizeof(*selves));
	int side, err = 0;

	if (!selves)
		return -ENOMEM;
	for (i = nr; i-- > 0;) {
		const struct sb_tree_pair all = sb_fg_diff_box(tree, &layout->boxes.at[i]);
		struct sb_tree_pair *parent = &selves[layout->boxes.at[i].parent];

		for (side = 0; side < 2; side++) {
			selves[i].weight[side] += all.weight[side];
			selves[i].squares[side] += all.squares[side];
			if (!i)
				continue;
			parent->weight[side] -= all.weight[side];
			parent->squares[side] -= all.squares[side];
		}
	}
	/* All nodes exist, so that none is inserted between others. */
	drawn->in_order = false;
	for (i = 1; i < nr && !err; i++) {
		for (side = 0; side < 2; side++) {
			selves[i].weight[side] = fmax(selves[i].weight[side], 0);
			/* A remainder of subtractions belongs to no sample. */
			if (selves[i].squares[side] < 0)
				selves[i].squares[side] = 0;
		}
		err = sb_tree_weigh(drawn, nodes[i], layout->boxes.at[i].level, 0, &selves[i]);
	}
	return err;
}

int sb_fg_embed_drawn(const struct sb_tree *tree, const struct sb_fg_layout *layout,
		      struct sb_tree *ret_tree)
{
	size_t nr = layout->boxes.nr;
	sb_cleanup(sb_freep) double *selves = calloc(nr, sizeof(*selves));
	sb_cleanup(sb_freep) uint32_t *nodes = calloc(nr, sizeof(*nodes));
	struct sb_tree drawn;
	int err;

	if (!selves || !nodes)
		return -ENOMEM;
	err = sb_tree_init(&drawn);
	if (err)
		return err;
	drawn.in_order = true; /* the boxes are in order */
	drawn.has_fractions = tree->has_fractions;
	for (size_t i = 0; i < nr; i++)
		take_from_parent(layout, selves, i);
	for (size_t i = 1; i < nr && !err; i++) {
		const struct sb_fg_box *box = &layout->boxes.at[i];

		err = add_box(&drawn, tree, box, nodes[box->parent], &nodes[i]);
	}
	if (tree->pairs.nr && !err)
		err = weigh_pairs(&drawn, tree, layout, nodes);
	for (size_t i = 1; i < nr && !err && !tree->pairs.nr; i++) {
		if (selves[i] > layout->boxes.at[i].weight * 1e-9)
			err = sb_tree_weigh(&drawn, nodes[i], layout->boxes.at[i].level, selves[i],
					    NULL);
	}
	err = err ?: sb_tree_seal(&drawn, SB_TREE_SORT_NONE);
	if (err)
		sb_tree_release(&drawn);
	else
		*ret_tree = drawn;
	return err;
}

/* ---- reading: file -> base64 -> gzip -> text ---- */

struct unpacker {
	z_stream z;
	FILE *out;
	uint32_t bits;
	unsigned int nr_bits;
	uint64_t nr_bytes; /* written */
	bool is_end;	   /* of the gzip data */
	uint8_t in[4096];
	uint8_t chunk[CHUNK_BYTES];
};

/* Read up to the end of @text, of which no prefix is a suffix. Return: whether it was found. */
static bool skip_past(FILE *in, const char *text)
{
	size_t at = 0;
	int c;

	while (text[at] && (c = getc_unlocked(in)) != EOF) {
		if (c == text[at])
			at++;
		else
			at = c == text[0];
	}
	return !text[at];
}

static int unpack(struct unpacker *unpacker, size_t len)
{
	z_stream *z = &unpacker->z;
	int status = Z_OK;

	z->next_in = unpacker->in;
	z->avail_in = (uInt)len;
	while (status == Z_OK && (z->avail_in || !z->avail_out) && !unpacker->is_end) {
		size_t nr;

		z->next_out = unpacker->chunk;
		z->avail_out = sizeof(unpacker->chunk);
		status = inflate(z, Z_NO_FLUSH);
		nr = sizeof(unpacker->chunk) - z->avail_out;
		unpacker->nr_bytes += nr;
		if (unpacker->nr_bytes > SB_FG_EXTRACT_MAX_BYTES)
			return -EFBIG;
		if (fwrite(unpacker->chunk, 1, nr, unpacker->out) != nr)
			return errno ? -errno : -EIO;
		unpacker->is_end = status == Z_STREAM_END;
	}
	if (status == Z_MEM_ERROR)
		return -ENOMEM;
	return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? 0 : -EBADMSG;
}

/* Return: 1: a byte was added to in[], 0: not yet, -EBADMSG: not base64. */
static int take_char(struct unpacker *unpacker, int c, size_t nr_in)
{
	const char *at;

	if (c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == '=')
		return 0;
	at = c ? strchr(alphabet, c) : NULL;
	if (!at)
		return -EBADMSG;
	unpacker->bits = unpacker->bits << 6 | (uint32_t)(at - alphabet);
	unpacker->nr_bits += 6;
	if (unpacker->nr_bits < 8)
		return 0;
	unpacker->nr_bits -= 8;
	unpacker->in[nr_in] = (uint8_t)(unpacker->bits >> unpacker->nr_bits);
	return 1;
}

int sb_fg_extract(FILE *svg, FILE *out)
{
	sb_cleanup(sb_freep) struct unpacker *unpacker = calloc(1, sizeof(*unpacker));
	size_t nr_in = 0;
	int c, err = 0;

	if (!unpacker)
		return -ENOMEM;
	if (!skip_past(svg, OPEN_TAG) || !skip_past(svg, ">"))
		return ferror(svg) ? -EIO : -ENODATA;
	unpacker->out = out;
	if (inflateInit2(&unpacker->z, GZIP_WINDOW))
		return -ENOMEM;
	while (!err && (c = getc_unlocked(svg)) != EOF && c != '<') {
		int taken = take_char(unpacker, c, nr_in);

		if (taken < 0)
			err = taken;
		else
			nr_in += (size_t)taken;
		if (nr_in == sizeof(unpacker->in)) {
			err = unpack(unpacker, nr_in);
			nr_in = 0;
		}
	}
	if (!err && nr_in)
		err = unpack(unpacker, nr_in);
	inflateEnd(&unpacker->z);
	if (!err && !unpacker->is_end)
		err = -EBADMSG;
	if (!err && fflush(out))
		err = errno ? -errno : -EIO;
	return err;
}
