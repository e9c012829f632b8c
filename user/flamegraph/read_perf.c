// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The text of `perf script`: a line for the sample, its frames leaf first, an empty line:
 *
 *	ssh worker  24636/25607 [000] 94564.109216:     250000 cpu-clock:u:
 *		    7f2a3c4d5e6f memcpy+0x12 (/usr/lib/libc.so.6)
 *		          401234 main (inlined)
 *
 * Each sample has weight 1: with -F the period is the kernel's estimate of what a sample stands
 * for. Names are those that stackcollapse-perf.pl makes.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/reader.h"
#include "flamegraph/text.h"

#define EVENT_BYTES_MAX 256 /* that are compared; "cpu/event=0xc0,umask=1/u" is a long one */

struct token {
	const char *at;
	size_t len;
};

/* Return: false at the end of the line. */
static bool next_token(const char **p, const char *end, struct token *ret)
{
	while (*p < end && isspace((unsigned char)**p))
		++*p;
	ret->at = *p;
	while (*p < end && **p != ' ')
		++*p;
	ret->len = (size_t)(*p - ret->at);
	return ret->len > 0;
}

static bool is_all(const struct token *token, const char *allowed)
{
	size_t i;

	for (i = 0; i < token->len; i++)
		if (!token->at[i] || !strchr(allowed, token->at[i]))
			return false;
	return token->len > 0;
}

/* "1234" or "1234/1235"; perf writes -1 if it does not know it. */
static bool is_pid(const struct token *token)
{
	return is_all(token, "0123456789/-") && isdigit((unsigned char)token->at[token->len - 1]);
}

/* "94564.109216:" */
static bool is_time(const struct token *token)
{
	return token->len > 3 && token->at[token->len - 1] == ':' &&
	       memchr(token->at, '.', token->len) && is_all(token, "0123456789.:");
}

struct sample {
	struct token comm, event;
	struct token rest; /* after the event: fields of a tracepoint, or the only frame */
	bool has_time;
};

/* Names of threads may contain spaces: the name ends before the first number. */
static bool parse_sample(const char *line, size_t len, struct sample *ret_sample)
{
	const char *p = line, *end = line + len;
	struct sample sample = {};
	struct token token;

	if (!len || *line == ' ' || !next_token(&p, end, &token))
		return false;
	sample.comm = token;
	while (next_token(&p, end, &token) && !is_pid(&token)) {
		if (is_time(&token))
			break;
		sample.comm.len = (size_t)(token.at + token.len - line);
	}
	if (!token.len)
		return false;
	do {
		if (is_time(&token))
			sample.has_time = true;
		else if (token.at[token.len - 1] == ':')
			break;
	} while (next_token(&p, end, &token));
	sample.event = token;
	next_token(&p, end, &sample.rest);
	sample.rest.len = (size_t)(end - sample.rest.at);
	*ret_sample = sample;
	return sample.has_time || token.len;
}

struct frame_line {
	struct token symbol, dso;
};

/* "7f2a3c4d5e6f memcpy+0x12 (/usr/lib/libc.so.6)"; the file may be "(... (deleted))". */
static bool parse_frame(const char *line, size_t len, struct frame_line *ret)
{
	static const char deleted[] = " (deleted)";
	const char *p = line, *end = line + len, *open;
	struct token addr;
	size_t search;

	while (end > p && end[-1] == ' ')
		end--;
	if (!next_token(&p, end, &addr) || !is_all(&addr, "0123456789abcdef") || end[-1] != ')')
		return false;
	while (p < end && *p == ' ')
		p++;
	ret->dso.len = (size_t)(end - p);
	search = ret->dso.len;
	if (search > sizeof(deleted) && sb_text_ends(p, search - 1, deleted))
		search -= sizeof(deleted);
	for (open = memrchr(p, '(', search); open && open > p && open[-1] != ' ';)
		open = memrchr(p, '(', (size_t)(open - p));
	if (!open)
		return false;
	ret->dso = (struct token){ open + 1, (size_t)(end - open - 2) };
	while (open > p && open[-1] == ' ')
		open--;
	ret->symbol = (struct token){ p, (size_t)(open - p) };
	return true;
}

static bool token_is(const struct token *token, const char *s)
{
	return sb_text_is(token->at, token->len, s);
}

static bool ends_with(const struct token *token, const char *tail)
{
	return sb_text_ends(token->at, token->len, tail);
}

static enum sb_fg_kind kind_of_dso(const struct token *dso)
{
	static const char *const user_areas[] = { "[unknown]", "[vdso]", "[vsyscall]", "[heap]",
						  "[stack]",   "[anon]", "[uprobes]" };
	size_t i;

	if (token_is(dso, "inlined"))
		return SB_FG_INLINED;
	for (i = 0; i < SB_ARRAY_SIZE(user_areas); i++)
		if (token_is(dso, user_areas[i]))
			return SB_FG_PLAIN;
	if ((dso->len && dso->at[0] == '[') || ends_with(dso, "vmlinux") || ends_with(dso, ".ko"))
		return SB_FG_KERNEL;
	if (ends_with(dso, ".map") || memmem(dso->at, dso->len, "/jitted-", 8))
		return SB_FG_JIT;
	return SB_FG_PLAIN;
}

/* Remove "+0x12" and arguments, but keep "(anonymous namespace)" and Go's "(*T)". */
static void tidy(struct token *symbol)
{
	static const char anonymous[] = "(anonymous namespace)", call[] = "operator()";
	const char *p = memrchr(symbol->at, '+', symbol->len), *end;
	struct token offset;

	if (p && p > symbol->at) {
		offset = (struct token){ p + 1, symbol->len - (size_t)(p + 1 - symbol->at) };
		if (is_all(&offset, "0123456789abcdefx") && *offset.at == '0')
			symbol->len = (size_t)(p - symbol->at);
	}
	if (memmem(symbol->at, symbol->len, ".(", 2))
		return;
	end = symbol->at + symbol->len;
	for (p = symbol->at + 1; p < end; p++) {
		if (*p != '(')
			continue;
		if (sb_text_begins(p, (size_t)(end - p), anonymous))
			continue;
		if ((size_t)(p - symbol->at) >= sizeof(call) - 3 && end - p >= 2 &&
		    !memcmp(p - (sizeof(call) - 3), call, sizeof(call) - 1)) {
			p++;
			continue;
		}
		symbol->len = (size_t)(p - symbol->at);
		return;
	}
}

/* Name code without a symbol: "[libfoo.so]" or "[unknown]". */
static int add_unknown(struct sb_fg *fg, const struct token *dso)
{
	const char *slash = memrchr(dso->at, '/', dso->len);
	const char *base = slash ? slash + 1 : dso->at;
	int len = (int)(dso->at + dso->len - base);
	char name[SB_TREE_NAME_MAX];
	struct sb_tree_frame frame = { .name = name, .kind = SB_FG_UNKNOWN };

	if (!len || token_is(dso, "[unknown]"))
		frame.len = (size_t)snprintf(name, sizeof(name), "[unknown]");
	else if (*base == '[')
		frame.len = (size_t)snprintf(name, sizeof(name), "%.*s", len, base);
	else
		frame.len = (size_t)snprintf(name, sizeof(name), "[%.*s]", len, base);
	if (frame.len >= sizeof(name))
		frame.len = sizeof(name) - 1;
	return sb_fg_pending_add(&fg->pending, &frame);
}

static int add_named(struct sb_fg *fg, const char *name, size_t len, enum sb_fg_kind kind)
{
	struct sb_tree_frame frame;

	/* Java's descriptors: "Ljava/util/Map;::get". */
	if (sb_text_begins(fg->perf_comm.s, fg->perf_comm.len, "java") && len && name[0] == 'L' &&
	    memchr(name, '/', len)) {
		name++;
		len--;
	}
	if (!len)
		return 0;
	frame = sb_fg_frame_parse(name, len);
	if (frame.kind == SB_FG_PLAIN)
		frame.kind = kind;
	return sb_fg_pending_add(&fg->pending, &frame);
}

/*
 * perf map files may contain "outer->inner": one compiled function, and on the right what is
 * inlined.
 */
static int add_symbol(struct sb_fg *fg, const struct token *symbol, enum sb_fg_kind kind)
{
	const char *name = symbol->at, *last, *next;
	size_t len = symbol->len;
	int err = 0;

	while (kind == SB_FG_JIT && !err && (last = memmem(name, len, "->", 2))) {
		/* From the right, because frames are collected leaf first. */
		while ((next = memmem(last + 2, (size_t)(name + len - last - 2), "->", 2)))
			last = next;
		err = add_named(fg, last + 2, (size_t)(name + len - last - 2), SB_FG_INLINED);
		len = (size_t)(last - name);
	}
	return err ? err : add_named(fg, name, len, kind);
}

static int add_frame(struct sb_fg *fg, struct frame_line *line)
{
	if (!line->symbol.len || token_is(&line->symbol, "[unknown]"))
		return add_unknown(fg, &line->dso);
	if (line->symbol.at[0] == '(' && !memmem(line->symbol.at, line->symbol.len, "::", 2))
		return 0; /* the name of a process; old versions print it here */
	tidy(&line->symbol);
	return add_symbol(fg, &line->symbol, kind_of_dso(&line->dso));
}

/* The sample is complete. Return: 0, -E2BIG, -ENOMEM. */
static int finish(struct sb_fg *fg)
{
	int err = 0;

	if (fg->perf_comm.len)
		err = sb_fg_pending_take(fg, fg->perf_comm.s, 1);
	sb_str_clear(&fg->perf_comm);
	return err;
}

/* Accept only the first of several events: their sum would have no meaning. */
static bool is_wanted(struct sb_fg *fg, const struct token *event)
{
	size_t len = event->len < EVENT_BYTES_MAX ? event->len : EVENT_BYTES_MAX;

	if (!len)
		return true;
	if (!fg->perf_event.len)
		return !sb_str_addn(&fg->perf_event, event->at, len);
	return fg->perf_event.len == len && !memcmp(fg->perf_event.s, event->at, len);
}

static int begin_sample(struct sb_fg *fg, const struct sample *sample)
{
	struct frame_line frame;
	size_t i;
	int err = finish(fg), too_many = err;

	if (err && err != -E2BIG)
		return err;
	if (!is_wanted(fg, &sample->event)) {
		sb_fg_complain(fg, SB_FG_OTHER_EVENT);
		return too_many;
	}
	err = sb_str_addn(&fg->perf_comm, sample->comm.at, sample->comm.len);
	if (err)
		return err;
	for (i = 0; i < fg->perf_comm.len; i++)
		if (fg->perf_comm.s[i] == ' ')
			fg->perf_comm.s[i] = '_';
		else if (fg->perf_comm.s[i] == ';')
			fg->perf_comm.s[i] = ':';
	if (parse_frame(sample->rest.at, sample->rest.len, &frame))
		err = add_frame(fg, &frame);
	return err ? err : too_many;
}

static int feed(struct sb_fg *fg, const char *line, size_t len)
{
	struct frame_line frame;
	struct sample sample;

	if (len && line[0] == '#')
		return sb_fg_read_header(fg, line, len);
	if (!len)
		return finish(fg);
	if (line[0] != ' ' && parse_sample(line, len, &sample))
		return begin_sample(fg, &sample);
	if (parse_frame(line, len, &frame))
		return fg->perf_comm.len ? add_frame(fg, &frame) : 0;
	sb_fg_complain(fg, SB_FG_NO_FRAME);
	return -EINVAL;
}

/*
 * The first line is a sample that ends with its event or with a frame, or it is followed by a
 * frame. No folded line ends like that.
 */
static bool sniff(const char *head, size_t len)
{
	const char *end = head + len, *next, *last;
	struct frame_line frame;
	struct sample sample;
	bool seen = false;

	for (; head < end; head = next + 1) {
		next = memchr(head, '\n', (size_t)(end - head));
		next = next ? next : end;
		for (last = next; last > head && isspace((unsigned char)last[-1]);)
			last--;
		if (last == head || *head == '#')
			continue;
		if (seen)
			return parse_frame(head, (size_t)(last - head), &frame);
		if (!parse_sample(head, (size_t)(last - head), &sample))
			return false;
		if (sample.has_time && (last[-1] == ':' || last[-1] == ')'))
			return true;
		seen = true;
	}
	return false;
}

const struct sb_fg_reader sb_fg_reader_perf = {
	.name = "perf", .sniff = sniff, .feed = feed, .finish = finish
};
