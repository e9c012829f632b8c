// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/search.h"
#include "base/time.h"
#include "symbolizer/process/reader.h"

#define CHUNK_BYTES	(256u << 10)
/* Bound of the memory that one process can make us hold; offsets of names have 32 bits. */
#define NAMES_BYTES_MAX (64u << 20)
/* Work of reading and parsing a byte, and of sorting an entry, for each halving of the array. */
#define WORK_OF_BYTE	3u
#define WORK_OF_ENTRY	12u

void sb_perfmap_release(struct sb_perfmap *map)
{
	sb_vec_release(&map->entries);
	sb_vec_release(&map->names);
	sb_budget_settle(&map->budget, 0);
	*map = (struct sb_perfmap){};
}

/* "START SIZE NAME", hexadecimal with or without 0x. */
static bool scan_line(const char *p, const char *end, struct sb_perfmap_entry *ret,
		      const char **ret_name)
{
	uint64_t start, size;

	if (end - p > 2 && p[0] == '0' && p[1] == 'x')
		p += 2;
	if (!sb_scan_hex(&p, end, &start) || p == end || *p++ != ' ')
		return false;
	if (end - p > 2 && p[0] == '0' && p[1] == 'x')
		p += 2;
	if (!sb_scan_hex(&p, end, &size) || p == end || *p++ != ' ')
		return false;
	if (p == end || memchr(p, '\0', (size_t)(end - p)) || start + size < start)
		return false;
	*ret = (struct sb_perfmap_entry){ .start = start,
					  .end = start + size,
					  .func_start = start };
	*ret_name = p;
	return true;
}

static int add_line(struct sb_perfmap *map, const char *line, size_t len)
{
	struct sb_perfmap_entry entry;
	const char *name;
	size_t name_len;
	int err;

	map->nr_lines++;
	if (!scan_line(line, line + len, &entry, &name)) {
		map->nr_bad_lines++;
		return 0;
	}
	name_len = (size_t)(line + len - name);
	if (name_len > SB_PERFMAP_NAME_MAX)
		name_len = SB_PERFMAP_NAME_MAX;
	if (map->entries.nr >= SB_PERFMAP_ENTRIES_MAX ||
	    map->names.nr + name_len >= NAMES_BYTES_MAX) {
		map->is_cut = true;
		return 0;
	}
	err = sb_budget_charge_vec(&map->budget, map->names.nr + name_len + 1, map->names.cap, 1);
	if (!err)
		err = sb_vec_reserve(&map->names, map->names.nr + name_len + 1);
	if (err)
		return err;
	entry.name = (uint32_t)map->names.nr;
	entry.seq = (uint32_t)map->entries.nr;
	err = sb_budget_push(&map->budget, &map->entries, entry);
	if (err)
		return err;
	memcpy(map->names.at + entry.name, name, name_len);
	map->names.at[entry.name + name_len] = '\0';
	map->names.nr += name_len + 1;
	return 0;
}

int sb_perfmap_add(struct sb_perfmap *map, const char *text, size_t len, size_t *ret_used)
{
	const char *p = text, *end = text + len, *eol;
	int err;

	for (; (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
		err = add_line(map, p, (size_t)(eol - p));
		if (err)
			return err;
	}
	*ret_used = (size_t)(p - text);
	return 0;
}

static int read_on(struct sb_perfmap *map, int fd, char *chunk)
{
	size_t len = 0, used;
	ssize_t n;
	int err;

	for (;;) {
		n = pread(fd, chunk + len, CHUNK_BYTES - len, (off_t)(map->offset + len));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if (map->offset + (uint64_t)n > SB_PERFMAP_BYTES_MAX ||
		    sb_budget_work(&map->budget, (uint64_t)n * WORK_OF_BYTE))
			return -EFBIG;
		len += (size_t)n;
		err = sb_perfmap_add(map, chunk, len, &used);
		if (err)
			return err;
		if (!used && len == CHUNK_BYTES) {
			/*
			 * No line is that long. What follows, up to a newline, is a bad line, too.
			 */
			map->nr_lines++;
			map->nr_bad_lines++;
			used = len;
		}
		map->offset += used;
		len -= used;
		memmove(chunk, chunk + used, len);
	}
}

/* Inode numbers are reused; the time when a file was made tells it from an earlier file. */
static uint64_t birth_ns(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx) || !(stx.stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)stx.stx_btime.tv_sec * SB_NS_PER_SEC + stx.stx_btime.tv_nsec;
}

static bool is_of(const struct sb_perfmap *map, const struct stat *st, uint64_t born_ns)
{
	return st->st_dev == map->dev && st->st_ino == map->ino && born_ns == map->birth_ns &&
	       (uint64_t)st->st_size >= map->offset;
}

static int read_rest(struct sb_perfmap *map, int fd, const struct stat *st)
{
	sb_cleanup(sb_freep) char *chunk = NULL;
	int err;

	if ((uint64_t)st->st_size == map->offset)
		return 0;
	if (map->is_cut && !sb_budget_may_retry(&map->budget))
		return 0;
	chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	err = read_on(map, fd, chunk);
	if (err != -EFBIG)
		return err;
	map->is_cut = true;
	return 0;
}

/*
 * Find the map of the file and count one more user, or make a new one. Return: NULL without
 * memory.
 */
static struct sb_perfmap *find_map(struct sb_perfmaps *maps, const struct stat *st,
				   uint64_t born_ns)
{
	struct sb_perfmap *map;
	size_t i;

	for (i = 0; i < maps->at.nr; i++) {
		map = maps->at.at[i];
		if (is_of(map, st, born_ns)) {
			map->nr_users++;
			return map;
		}
	}
	map = calloc(1, sizeof(*map));
	if (!map || sb_vec_push(&maps->at, map)) {
		free(map);
		return NULL;
	}
	sb_budget_init(&map->budget, maps->pool, st->st_uid, "perf map");
	map->nr_users = 1;
	map->dev = st->st_dev;
	map->ino = st->st_ino;
	map->birth_ns = born_ns;
	return map;
}

int sb_perfmaps_read(struct sb_perfmaps *maps, int fd, struct sb_perfmap **map)
{
	struct sb_perfmap *found;
	uint64_t born_ns;
	struct stat st;
	int err = sb_reader_fstat(fd, &st);

	if (err)
		return err;
	born_ns = birth_ns(fd);
	if (!*map || !is_of(*map, &st, born_ns)) {
		found = find_map(maps, &st, born_ns);
		if (!found)
			return -ENOMEM;
		sb_perfmaps_put(maps, *map);
		*map = found;
	}
	return read_rest(*map, fd, &st);
}

void sb_perfmaps_put(struct sb_perfmaps *maps, struct sb_perfmap *map)
{
	size_t i;

	if (!map || --map->nr_users)
		return;
	for (i = 0; maps->at.at[i] != map; i++)
		;
	maps->at.at[i] = maps->at.at[--maps->at.nr];
	sb_perfmap_release(map);
	free(map);
}

void sb_perfmaps_release(struct sb_perfmaps *maps)
{
	sb_vec_release(&maps->at);
}

static size_t bytes_of(const struct sb_perfmap *map)
{
	return map->entries.cap * sizeof(*map->entries.at) + map->names.cap;
}

size_t sb_perfmaps_bytes(const struct sb_perfmaps *maps)
{
	size_t i, bytes = 0;

	for (i = 0; i < maps->at.nr; i++)
		bytes += bytes_of(maps->at.at[i]);
	return bytes;
}

static int by_start(const void *a, const void *b)
{
	const struct sb_perfmap_entry *x = a, *y = b;

	return sb_compare(x->start, y->start) ?: sb_compare(x->seq, y->seq);
}

/* Let an entry without a size extend to the next one. */
static void give_sizes(struct sb_perfmap *map)
{
	struct sb_perfmap_entry *at = map->entries.at;
	uint64_t next = UINT64_MAX, reach;
	size_t i;

	for (i = map->entries.nr; i-- > 0;) {
		if (i + 1 < map->entries.nr && at[i + 1].start != at[i].start)
			next = at[i + 1].start;
		if (at[i].end != at[i].start)
			continue;
		reach = next - at[i].start;
		at[i].end += reach < SB_PERFMAP_REACH_MAX ? reach : SB_PERFMAP_REACH_MAX;
	}
}

/* A binary heap of the entries that cover the current position, with the newest on top. */
struct heap {
	const struct sb_perfmap_entry *entries;
	uint32_t *at;
	size_t nr;
};

static bool is_above(const struct heap *heap, size_t a, size_t b)
{
	return heap->entries[heap->at[a]].seq > heap->entries[heap->at[b]].seq;
}

static void swap(struct heap *heap, size_t a, size_t b)
{
	uint32_t was = heap->at[a];

	heap->at[a] = heap->at[b];
	heap->at[b] = was;
}

static void heap_push(struct heap *heap, uint32_t entry)
{
	size_t i = heap->nr++;

	heap->at[i] = entry;
	for (; i && is_above(heap, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(heap, i, (i - 1) / 2);
}

static void heap_pop(struct heap *heap)
{
	size_t i = 0, child;

	heap->at[0] = heap->at[--heap->nr];
	for (; (child = 2 * i + 1) < heap->nr; i = child) {
		if (child + 1 < heap->nr && is_above(heap, child + 1, child))
			child++;
		if (!is_above(heap, child, i))
			break;
		swap(heap, i, child);
	}
}

/*
 * Sweep over the entries, which are sorted by start, and write pieces: which entry is on top
 * where.
 */
static size_t sweep(struct heap *heap, size_t nr, struct sb_perfmap_entry *out)
{
	const struct sb_perfmap_entry *in = heap->entries, *top;
	uint64_t pos = 0, end;
	size_t i = 0, nr_out = 0;

	while (i < nr || heap->nr) {
		if (!heap->nr)
			pos = in[i].start;
		while (i < nr && in[i].start <= pos)
			heap_push(heap, (uint32_t)i++);
		while (heap->nr && in[heap->at[0]].end <= pos)
			heap_pop(heap);
		if (!heap->nr)
			continue;
		top = &in[heap->at[0]];
		end = i < nr && in[i].start < top->end ? in[i].start : top->end;
		if (nr_out && out[nr_out - 1].end == pos && out[nr_out - 1].seq == top->seq) {
			out[nr_out - 1].end = end;
		} else {
			out[nr_out] = *top;
			out[nr_out].start = pos;
			out[nr_out++].end = end;
		}
		pos = end;
	}
	return nr_out;
}

/* Charge what sorting costs: so many bytes, and units of work. */
static int charge_flatten(struct sb_perfmap *map)
{
	const size_t nr = map->entries.nr;
	unsigned int halvings = 1;

	while (nr >> halvings)
		halvings++;
	return sb_budget_charge(&map->budget,
				nr * (sizeof(uint32_t) + 2 * sizeof(*map->entries.at)))
		       ?: sb_budget_work(&map->budget, (uint64_t)nr * halvings * WORK_OF_ENTRY);
}

/*
 * Sort the entries and remove overlaps. Return: 0; -ENOMEM or -EFBIG, and then nothing has
 * changed.
 */
static int flatten(struct sb_perfmap *map)
{
	struct heap heap = { .entries = map->entries.at };
	struct sb_perfmap_entry *out, *less;
	size_t nr = map->entries.nr, i;
	int err = charge_flatten(map);

	if (err)
		return err;

	heap.at = calloc(nr, sizeof(*heap.at));
	/* Each start and each end begins at most one piece. */
	out = calloc(2 * nr, sizeof(*out));
	if (!heap.at || !out) {
		free(heap.at);
		free(out);
		return -ENOMEM;
	}
	qsort(map->entries.at, nr, sizeof(*map->entries.at), by_start);
	give_sizes(map);
	nr = sweep(&heap, nr, out);
	free(heap.at);
	free(map->entries.at);
	less = realloc(out, (nr + 1) * sizeof(*out));
	map->entries.cap = less ? nr + 1 : 2 * map->entries.nr;
	map->entries.at = out = less ? less : out;
	map->entries.nr = map->nr_flat = nr;
	/* All of these are older than entries to come, and do not overlap any more. */
	for (i = 0; i < nr; i++)
		out[i].seq = (uint32_t)i;
	sb_budget_settle(&map->budget, bytes_of(map));
	return 0;
}

const char *sb_perfmap_lookup(struct sb_perfmap *map, uint64_t addr, uint64_t *ret_start)
{
	const struct sb_perfmap_entry *entry;
	size_t behind;

	if (map->nr_flat < map->entries.nr && flatten(map))
		map->is_cut = true;
	behind = sb_bisect(map->nr_flat, i, map->entries.at[i].start <= addr);
	if (!behind)
		return NULL;
	entry = &map->entries.at[behind - 1];
	if (addr >= entry->end)
		return NULL;
	*ret_start = entry->func_start;
	return map->names.at + entry->name;
}

/* V8's src/logging/code-events.h, log.cc: a tag, how it was compiled, the name, the place. */
static const char *skip_tag(const char *text)
{
	static const char *const tags[] = { "JS:", "LazyCompile:", "Function:", "Eval:",
					    "Script:" };
	size_t i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t len = strlen(tags[i]);

		if (!strncmp(text, tags[i], len))
			return text + len + (text[len] && strchr("~^+*", text[len]) ? 1 : 0);
	}
	return NULL;
}

/* Digits at the end of [from, *end), and the colon before them. Return: whether there are. */
static bool cut_number(const char *from, const char **end, uint32_t *ret_number)
{
	const char *p = *end;
	uint64_t number = 0, unit;

	for (unit = 1; p > from && p[-1] >= '0' && p[-1] <= '9' && unit < 10000000000; unit *= 10)
		number += unit * (uint64_t)(*--p - '0');
	if (p == *end || p == from || p[-1] != ':' || number > UINT32_MAX)
		return false;
	*end = p - 1;
	*ret_number = (uint32_t)number;
	return true;
}

/* Return: where the source position begins; names and paths may both contain blanks. */
static const char *find_place(const char *name)
{
	static const char *const begins[] = { " /", " node:", " file:" };
	const char *found = NULL;
	size_t i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]) && !found; i++)
		found = strstr(name, begins[i]);
	return found ? found : strrchr(name, ' ');
}

bool sb_perfmap_split(const char *text, struct sb_perfmap_name *ret_name)
{
	struct sb_perfmap_name name = { .name = skip_tag(text) };
	const char *place, *end;
	uint32_t before;

	if (!name.name)
		return false;
	place = find_place(name.name);
	end = name.name + strlen(name.name);
	name.name_len = (size_t)((place ? place : end) - name.name);
	if (place && cut_number(place + 1, &end, &name.line)) {
		/* If there are two numbers, the last one is the column. */
		if (cut_number(place + 1, &end, &before))
			name.line = before;
		name.file = place + 1;
		name.file_len = (size_t)(end - name.file);
	} else if (place) {
		name.name_len = strlen(name.name);
	}
	if (!name.name_len) {
		name.name = "(anonymous)";
		name.name_len = strlen(name.name);
	}
	*ret_name = name;
	return true;
}
