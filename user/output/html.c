// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An HTML page: the picture of svg.c with its viewer, a table of functions, the metadata. It loads
 * nothing, and its policy forbids that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/text.h"
#include "output/functions.h"
#include "output/jsontext.h"
#include "output/measure.h"
#include "output/outputs.h"
#include "output/page.h"
#include "output/picture.h"

struct page {
	const struct sb_profile *profile;
	struct sb_functions functions;
	/* By function. */
	uint64_t *self, *total;
	uint32_t *seen; /* the last stack that has it, counted from 1 */
	struct sb_json json;
};

static int count(struct page *page, size_t nr_stacks)
{
	size_t nr_functions = page->functions.frames.nr, i, at;

	page->self = calloc(nr_functions + 1, sizeof(*page->self));
	page->total = calloc(nr_functions + 1, sizeof(*page->total));
	page->seen = calloc(nr_functions + 1, sizeof(*page->seen));
	if (!page->self || !page->total || !page->seen)
		return -ENOMEM;
	for (i = 0; i < nr_stacks; i++) {
		const struct sb_row row = sb_profile_row_at(page->profile, i);

		for (at = 0; at < row.nr; at++) {
			uint32_t function = page->functions.of_frame[row.frames[at]];

			if (page->seen[function] != i + 1)
				page->total[function] += row.weight;
			page->seen[function] = (uint32_t)i + 1;
		}
		if (row.nr)
			page->self[page->functions.of_frame[row.frames[row.nr - 1]]] += row.weight;
	}
	return 0;
}

static void put_functions(struct page *page)
{
	struct sb_json *json = &page->json;
	size_t i;

	sb_json_rows(json, "functions");
	for (i = 0; i < page->functions.frames.nr; i++) {
		const struct sb_frame *frame = sb_functions_at(&page->functions, (uint32_t)i);

		sb_json_object(json, NULL);
		sb_json_string(json, "name", frame->name);
		sb_json_string_if(json, "module", frame->module);
		sb_json_string_if(json, "file", frame->file);
		sb_json_u64(json, "self", page->self[i]);
		sb_json_u64(json, "total", page->total[i]);
		sb_json_close(json);
	}
}

static void put_data(struct page *page, size_t nr_stacks)
{
	struct sb_json *json = &page->json;

	sb_json_object(json, NULL);
	sb_json_string(json, "unit", sb_measure_of(page->profile).unit);
	sb_json_u64(json, "total", sb_profile_weight_of(page->profile, nr_stacks));
	sb_json_meta(json, "facts", page->profile);
	put_functions(page);
}

static int put_title(FILE *out, const char *title)
{
	sb_cleanup(sb_str_release) struct sb_str clean = {};
	const char *s;

	if (sb_fg_text_set(&clean, title))
		return -ENOMEM;
	for (s = clean.s; *s; s++) {
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else
			putc(*s, out);
	}
	return 0;
}

int sb_page_begin(const char *title, FILE *out)
{
	int err;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
	      "form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	err = put_title(out, title);
	fputs("</title>\n<style>\n", out);
	fputs(sb_page_css, out);
	fputs("</style>\n</head>\n<body>\n", out);
	return err;
}

static int put_table(const struct sb_profile *profile, const struct sb_output_opts *opts, FILE *out)
{
	size_t nr_stacks = sb_output_nr_stacks(profile, opts);
	struct page page = { .profile = profile, .json = { .put = sb_json_put_file, .arg = out } };
	int err = sb_functions_init(&page.functions, profile, nr_stacks), err_json;

	err = err ?: count(&page, nr_stacks);
	fputs("<button type=\"button\" id=\"open-table\" aria-controls=\"table\" "
	      "aria-expanded=\"false\" hidden>Functions</button>\n"
	      "<section id=\"table\" aria-label=\"Functions\" hidden></section>\n"
	      "<script type=\"application/json\" id=\"functions\">\n",
	      out);
	if (!err)
		put_data(&page, nr_stacks);
	err_json = sb_json_end(&page.json);
	fputs("</script>\n<script>\n", out);
	fputs(sb_page_js, out);
	fputs("</script>\n</body>\n</html>\n", out);
	sb_functions_release(&page.functions);
	free(page.self);
	free(page.total);
	free(page.seen);
	return err ?: err_json;
}

static int write_html(const struct sb_profile *profile, const struct sb_output_opts *opts,
		      FILE *out)
{
	const char *kind = sb_profile_metadata(profile)->kind;
	int err = sb_page_begin(opts->title ? opts->title : kind ? kind : "stackbpf", out);

	err = err ?: sb_picture_write(profile, opts, sb_fg_render_inline, out);
	/* A picture that says that there is nothing to see is valid. */
	if (err && err != -ENODATA)
		return err;
	return put_table(profile, opts, out) ?: err;
}

const struct sb_output sb_output_html = {
	.name = "html",
	.extension = ".html",
	.summary = "page with the flame graph and a table of functions",
	.has_places = true,
	.write = write_html,
};
