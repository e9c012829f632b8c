// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/utf8.h"
#include "cli/top.h"
#include "cli/wrap.h"

/* Rows of the screen: metadata, the spans, the heading, then what there is; keys at the bottom. */
enum { ROW_RUN, ROW_FACTS, ROW_SPANS, ROW_HEADING, ROW_FIRST };

#define COLS_SPAN	17 /* two shares */
#define COLS_NAME_MIN	16 /* of a function; the rest makes room for it */
#define COLS_MODULE_MIN 8
#define COLS_MODULE_MAX 24

static const char *const span_names[] = { [SB_TOP_RECENT] = "last", [SB_TOP_ALL] = "in all" };
_Static_assert(SB_ARRAY_SIZE(span_names) == SB_TOP_SPAN_MAX, "a name for each span");

static const char *const keys_of[] = {
	[SB_TOP_LIST] = "q quit  ? help  p pause  s sort  w span  f tree  / filter  r reset",
	[SB_TOP_TREE] = "q quit  ? help  p pause  w span  f functions  arrows, Enter zoom  / find",
	[SB_TOP_HELP] = "any key: back",
};
_Static_assert(SB_ARRAY_SIZE(keys_of) == SB_TOP_SCREEN_MAX, "keys for each screen");

static const char *const help[] = {
	"q        quit",
	"p Space  pause the screen; sampling goes on",
	"f        switch between functions and the call tree",
	"w        switch between the last seconds and the time since the start",
	"s        sort by own weight (SELF) or including called functions (TOTAL)",
	"/        show only functions whose name contains a text; in the tree: mark",
	"         them (Enter keeps the filter, Escape clears it)",
	"r        reset: discard all samples so far",
	"",
	"Functions: Up, Down, PageUp, PageDown, Home, End",
	"Tree:      Left and Right go to the neighbours, Down to the called function,",
	"           Up to the caller; Enter zooms in, Backspace out, Escape to the root",
	"",
	"Shares are relative to all samples of the targets. A recursive function",
	"counts once in TOTAL.",
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* A weight of the run, with its unit: "12 samples", "1.50 s", "3.1 MB". */
static void weigh(const struct sb_top_metadata *metadata, uint64_t weight, char *text,
		  size_t nr_bytes)
{
	double in_unit = (double)weight / (double)metadata->divisor;
	const char *unit = metadata->unit;
	size_t len = strlen(unit);

	/* What is shown as 1 is one sample. Not every unit is a plural. */
	if (in_unit >= 0.5 && in_unit < 1.5 && sb_text_ends(unit, len, "s"))
		len--;
	if (sb_streq(unit, "us"))
		snprintf(text, nr_bytes, "%.2f s", in_unit / 1e6);
	else if (sb_streq(unit, "bytes"))
		snprintf(text, nr_bytes, "%.1f MB", in_unit / 1e6);
	else
		snprintf(text, nr_bytes, "%.0f %.*s", in_unit, (int)len, unit);
}

/* "last 10.0 s: 390 samples, 0.98 CPUs" */
static void describe_span(const struct sb_top *top, enum sb_top_span span, char *text,
			  size_t nr_bytes)
{
	const struct sb_top_metadata *metadata = &top->metadata;
	double s = (double)top->data.ns[span] / 1e9;
	char weight[48];
	int n;

	weigh(metadata, top->data.weight[span], weight, sizeof(weight));
	n = snprintf(text, nr_bytes, "%s %.1f s: %s", span_names[span], s, weight);
	if (n < 0 || (size_t)n >= nr_bytes || !s)
		return;
	if (metadata->hz > 0 && sb_streq(metadata->unit, "samples"))
		snprintf(text + n, nr_bytes - (size_t)n, ", %.2f CPUs",
			 (double)top->data.weight[span] / metadata->hz / s);
}

static void describe_run(const struct sb_top *top, char *text, size_t nr_bytes)
{
	const struct sb_top_metadata *metadata = &top->metadata;

	snprintf(text, nr_bytes, "%llu lost, %.1f %% complete",
		 (unsigned long long)metadata->nr_lost,
		 100 - percent(metadata->nr_cut, metadata->nr_samples));
	if (top->data.nr_shed)
		snprintf(text + strlen(text), nr_bytes - strlen(text),
			 ", %llu %s became \"(other)\"", (unsigned long long)top->data.nr_shed,
			 sb_plural(top->data.nr_shed, "stack", "stacks"));
}

/* Return: whether both spans have room beside the name of a function. */
static bool has_both_spans(const struct sb_top *top)
{
	return top->canvas.nr_cols >= 2 * COLS_SPAN + COLS_NAME_MIN;
}

/* The whole row from @col on. */
static struct sb_place from(const struct sb_canvas *canvas, int row, int col)
{
	return (struct sb_place){ .row = row, .col = col, .nr_cols = canvas->nr_cols };
}

static void draw_head(struct sb_top *top)
{
	struct sb_canvas *canvas = &top->canvas;
	char spans[SB_TOP_SPAN_MAX][96], run[128];
	char rate[32] = "";

	if (top->metadata.hz > 0)
		snprintf(rate, sizeof(rate), " %.4g Hz", top->metadata.hz);
	sb_canvas_textf(canvas, from(canvas, ROW_RUN, 0), SB_INK_BOLD, "stackbpf top: %s%s, %s",
			top->metadata.kind, rate, top->metadata.targets);
	if (top->is_paused)
		sb_canvas_text(canvas, from(canvas, ROW_RUN, canvas->nr_cols - 8), SB_INK_FOUND,
			       " paused ");
	describe_run(top, run, sizeof(run));
	sb_canvas_text(canvas, from(canvas, ROW_FACTS, 0), SB_INK_PLAIN, run);
	describe_span(top, SB_TOP_RECENT, spans[SB_TOP_RECENT], sizeof(spans[0]));
	describe_span(top, SB_TOP_ALL, spans[SB_TOP_ALL], sizeof(spans[0]));
	if (has_both_spans(top))
		sb_canvas_textf(canvas, from(canvas, ROW_SPANS, 0), SB_INK_PLAIN, "%s; %s",
				spans[0], spans[1]);
	else
		sb_canvas_text(canvas, from(canvas, ROW_SPANS, 0), SB_INK_PLAIN, spans[top->span]);
}

static void draw_foot(struct sb_top *top)
{
	struct sb_canvas *canvas = &top->canvas;
	int row = canvas->nr_rows - 1, col = 0;

	if (top->is_typing || top->filter.len) {
		col = sb_canvas_textf(canvas, from(canvas, row, 0), SB_INK_FOUND, "/%s%s",
				      top->filter.len ? top->filter.s : "",
				      top->is_typing ? "_" : "");
		col += 2;
	}
	if (!top->is_typing)
		sb_canvas_text(canvas, from(canvas, row, col), SB_INK_DIM, keys_of[top->screen]);
}

/* Return: how many columns modules have; 0: there is no room for them. */
static int module_cols(int nr_cols)
{
	int cols = nr_cols / 5;

	cols = cols < COLS_MODULE_MIN ? COLS_MODULE_MIN : cols;
	cols = cols > COLS_MODULE_MAX ? COLS_MODULE_MAX : cols;
	return nr_cols - 2 * COLS_SPAN - cols - 1 < COLS_NAME_MIN ? 0 : cols;
}

static const char *module_of(const struct sb_tree *tree, uint32_t module, enum sb_frame_kind kind)
{
	if (module)
		return sb_base_name(sb_strtab_get(&tree->names, module, NULL));
	switch (kind) {
	case SB_FRAME_KERNEL:
	case SB_FRAME_KERNEL_INLINED:
		return "[kernel]";
	case SB_FRAME_FILE:
		return "[file]";
	case SB_FRAME_JIT:
		return "[jit]";
	default:
		return "";
	}
}

struct shares {
	double self[SB_TOP_SPAN_MAX], total[SB_TOP_SPAN_MAX];
};

static struct shares shares_of(const struct sb_top *top, const struct sb_top_func *func)
{
	struct shares shares;
	int span;

	for (span = 0; span < SB_TOP_SPAN_MAX; span++) {
		shares.self[span] = percent(func->self[span], top->data.weight[span]);
		shares.total[span] = percent(func->total[span], top->data.weight[span]);
	}
	return shares;
}

static void draw_func(struct sb_top *top, const struct sb_top_func *func, int row)
{
	struct sb_canvas *canvas = &top->canvas;
	int nr_module = module_cols(canvas->nr_cols), col = 0;
	enum sb_top_span span;
	struct shares shares = shares_of(top, func);

	for (span = 0; span < SB_TOP_SPAN_MAX; span++)
		if (has_both_spans(top) || span == top->span) {
			sb_canvas_textf(canvas, from(canvas, row, col), SB_INK_PLAIN, "%7.2f %7.2f",
					shares.self[span], shares.total[span]);
			col += COLS_SPAN;
		}
	sb_canvas_text(
		canvas,
		(struct sb_place){ row, col, canvas->nr_cols - col - nr_module - !!nr_module },
		SB_INK_BOLD, sb_top_name(top, func));
	sb_canvas_text(canvas, (struct sb_place){ row, canvas->nr_cols - nr_module, nr_module },
		       SB_INK_PLAIN, module_of(top->data.tree, func->module, func->kind));
}

static void draw_heading(struct sb_top *top)
{
	struct sb_canvas *canvas = &top->canvas;
	int nr_module = module_cols(canvas->nr_cols), col = 0;
	enum sb_top_span span;

	sb_canvas_fill(canvas, from(canvas, ROW_HEADING, 0), SB_INK_BAR);
	for (span = 0; span < SB_TOP_SPAN_MAX; span++)
		if (has_both_spans(top) || span == top->span) {
			sb_canvas_textf(canvas, from(canvas, ROW_HEADING, col), SB_INK_BAR,
					"%c SELF%% %cTOTAL%%",
					span == top->span && !top->by_total ? '*' : ' ',
					span == top->span && top->by_total ? '*' : ' ');
			col += COLS_SPAN;
		}
	sb_canvas_text(canvas, from(canvas, ROW_HEADING, col), SB_INK_BAR, "FUNCTION");
	if (nr_module)
		sb_canvas_text(canvas, from(canvas, ROW_HEADING, canvas->nr_cols - nr_module),
			       SB_INK_BAR, "MODULE");
}

static void draw_list(struct sb_top *top)
{
	struct sb_canvas *canvas = &top->canvas;
	size_t i;
	int row;

	draw_heading(top);
	row = ROW_FIRST;
	for (i = top->scroll; i < top->order.nr && row < canvas->nr_rows - 1; i++)
		draw_func(top, &top->data.funcs.at[top->order.at[i]], row++);
	if (!top->order.nr)
		sb_canvas_text(canvas, from(canvas, ROW_FIRST, 2), SB_INK_DIM,
			       top->filter.len ? "no function name contains this text"
					       : "nothing was sampled so far");
}

static enum sb_ink ink_of(enum sb_frame_kind kind)
{
	static const uint8_t inks[SB_FRAME_KIND_MAX] = {
		[SB_FRAME_ROOT] = SB_INK_OTHER,	     [SB_FRAME_USER] = SB_INK_USER,
		[SB_FRAME_INLINED] = SB_INK_USER,    [SB_FRAME_JIT] = SB_INK_INTERP,
		[SB_FRAME_KERNEL] = SB_INK_KERNEL,   [SB_FRAME_KERNEL_INLINED] = SB_INK_KERNEL,
		[SB_FRAME_DELIMITER] = SB_INK_OTHER, [SB_FRAME_MARK] = SB_INK_OTHER,
		[SB_FRAME_FILE] = SB_INK_OTHER,	     [SB_FRAME_INTERP] = SB_INK_INTERP,
		[SB_FRAME_WAKER] = SB_INK_KERNEL,
	};

	return inks[kind];
}

/*
 * Columns of all nodes below the zoomed one that are wide enough for one. A parent comes before its
 * children, whose first begins where it does. *ret_nr_narrow: those that are not wide enough.
 */
static int layout(struct sb_top *top, size_t *ret_nr_narrow)
{
	const struct sb_tree_node *nodes = top->data.tree->nodes.at, *zoomed = &nodes[top->zoom];
	sb_cleanup(sb_freep) double *starts = NULL;
	double whole = sb_tree_total(top->data.tree, top->zoom, top->span), scale;
	uint32_t nr_levels = 0, level;
	size_t i;
	int err = 0;

	top->boxes.nr = 0;
	*ret_nr_narrow = 0;
	for (i = top->zoom; i < zoomed->end; i++)
		if (nodes[i].depth - zoomed->depth > nr_levels)
			nr_levels = nodes[i].depth - zoomed->depth;
	starts = calloc(nr_levels + 2, sizeof(*starts));
	if (!starts)
		return -ENOMEM;
	scale = whole > 0 ? (double)top->canvas.nr_cols / whole : 0;
	for (i = top->zoom; i < zoomed->end && !err; i++) {
		struct sb_top_box box = { .node = i };
		double start, weight = sb_tree_total(top->data.tree, i, top->span);

		level = nodes[i].depth - zoomed->depth;
		start = starts[level];
		starts[level] += weight;
		starts[level + 1] = start;
		box.level = (int)level;
		box.x = (int)(start * scale + 0.5);
		box.end = (int)((start + weight) * scale + 0.5);
		if (i == top->zoom)
			box.end = top->canvas.nr_cols;
		if (box.end > box.x)
			err = sb_vec_push(&top->boxes, box);
		else
			*ret_nr_narrow += weight > 0;
	}
	return err;
}

/* Levels above the first row that is shown, so that the chosen one is. */
static int first_level(const struct sb_top *top, int nr_rows)
{
	const struct sb_tree_node *nodes = top->data.tree->nodes.at;
	int level = (int)nodes[top->chosen].depth - (int)nodes[top->zoom].depth;

	return level >= nr_rows ? level - nr_rows + 1 : 0;
}

static void draw_box(struct sb_top *top, const struct sb_top_box *box, int row)
{
	struct sb_canvas *canvas = &top->canvas;
	const struct sb_tree *tree = top->data.tree;
	const char *name = sb_tree_name(tree, box->node);
	struct sb_place at = { row, box->x, box->end - box->x };
	/* By the name, so that it remains what it was when others come and go beside it. */
	enum sb_ink ink = ink_of(tree->kinds.at[box->node]) + (sb_hash(name, strlen(name), 0) & 1);

	if (top->filter.len && sb_top_is_found(top, name))
		ink = SB_INK_FOUND;
	if (box->node == top->chosen)
		ink = SB_INK_CHOSEN;
	sb_canvas_fill(canvas, at, ink);
	sb_canvas_textf(canvas, at, ink, "|%s", name);
}

static void draw_chosen(struct sb_top *top, size_t nr_narrow)
{
	const struct sb_tree *tree = top->data.tree;
	struct sb_canvas *canvas = &top->canvas;
	struct sb_top_func func = {};
	struct shares shares;
	int row = canvas->nr_rows - 2, col, span;

	for (span = 0; span < SB_TOP_SPAN_MAX; span++) {
		func.self[span] = sb_tree_whole(sb_tree_self(tree, top->chosen, span));
		func.total[span] = sb_tree_whole(sb_tree_total(tree, top->chosen, span));
	}
	shares = shares_of(top, &func);
	col = sb_canvas_textf(canvas, from(canvas, row, 0), SB_INK_PLAIN,
			      "self %.2f %%, total %.2f %%  ", shares.self[top->span],
			      shares.total[top->span]);
	col += sb_canvas_text(canvas, from(canvas, row, col), SB_INK_BOLD,
			      sb_tree_name(tree, top->chosen));
	sb_canvas_textf(
		canvas, from(canvas, row, col), SB_INK_PLAIN, "  %s",
		module_of(tree, tree->modules.at[top->chosen], tree->kinds.at[top->chosen]));
	if (nr_narrow)
		sb_canvas_textf(canvas, from(canvas, ROW_HEADING, canvas->nr_cols - 30), SB_INK_BAR,
				"%zu narrower than a cell", nr_narrow);
}

static int draw_tree(struct sb_top *top)
{
	struct sb_canvas *canvas = &top->canvas;
	int nr_rows = canvas->nr_rows - ROW_FIRST - 2, first, level;
	size_t nr_narrow, i;
	char span[96];
	int err;

	if (!top->data.tree)
		return 0;
	err = layout(top, &nr_narrow);
	if (err)
		return err;
	describe_span(top, top->span, span, sizeof(span));
	sb_canvas_fill(canvas, from(canvas, ROW_HEADING, 0), SB_INK_BAR);
	sb_canvas_textf(canvas, from(canvas, ROW_HEADING, 0), SB_INK_BAR, "calls, %s%s", span,
			top->zoom ? ", zoomed" : "");
	first = first_level(top, nr_rows);
	for (i = 0; i < top->boxes.nr; i++) {
		const struct sb_top_box *box = &top->boxes.at[i];

		level = box->level - first;
		if (level >= 0 && level < nr_rows)
			draw_box(top, box, ROW_FIRST + level);
	}
	draw_chosen(top, nr_narrow);
	return 0;
}

static void draw_help(struct sb_top *top)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(help); i++)
		sb_canvas_text(&top->canvas, from(&top->canvas, ROW_FIRST + (int)i, 2),
			       SB_INK_PLAIN, help[i]);
}

int sb_top_draw(struct sb_top *top)
{
	int err = sb_canvas_resize(&top->canvas, top->canvas.nr_cols, top->canvas.nr_rows);

	if (err)
		return err;
	draw_head(top);
	if (top->screen == SB_TOP_HELP)
		draw_help(top);
	else if (top->screen == SB_TOP_TREE)
		err = draw_tree(top);
	else
		draw_list(top);
	draw_foot(top);
	return err;
}

/* Names are other people's bytes, and this may be a terminal, too. */
static void print_name(const char *name, FILE *out)
{
	sb_print_clean(out, name, strlen(name));
}

void sb_top_print(const struct sb_top *top, size_t nr_max, FILE *out)
{
	char spans[SB_TOP_SPAN_MAX][96], run[128];
	uint64_t self_rest = 0;
	size_t i;

	describe_span(top, SB_TOP_RECENT, spans[0], sizeof(spans[0]));
	describe_span(top, SB_TOP_ALL, spans[1], sizeof(spans[0]));
	describe_run(top, run, sizeof(run));
	fprintf(out, "%s, %s; %s; %s; %s\n  SELF%%  TOTAL%%    SELF%%  TOTAL%%  FUNCTION  MODULE\n",
		top->metadata.kind, top->metadata.targets, spans[0], spans[1], run);
	for (i = 0; i < top->order.nr; i++) {
		const struct sb_top_func *func = &top->data.funcs.at[top->order.at[i]];
		struct shares shares = shares_of(top, func);

		if (i >= nr_max) {
			self_rest += func->self[top->span];
			continue;
		}
		fprintf(out, "%7.2f %7.2f  %7.2f %7.2f  ", shares.self[SB_TOP_RECENT],
			shares.total[SB_TOP_RECENT], shares.self[SB_TOP_ALL],
			shares.total[SB_TOP_ALL]);
		print_name(sb_top_name(top, func), out);
		fputs("  ", out);
		print_name(module_of(top->data.tree, func->module, func->kind), out);
		putc('\n', out);
	}
	if (top->order.nr > nr_max)
		fprintf(out, "%7.2f  in %zu functions more (--limit)\n",
			percent(self_rest, top->data.weight[top->span]), top->order.nr - nr_max);
	putc('\n', out);
}
