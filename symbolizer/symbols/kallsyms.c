// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/index.h"
#include "base/num.h"
#include "base/search.h"
#include "base/str.h"
#include "base/time.h"

#define CHUNK_BYTES	  (64u << 10)
/* Offsets of names are 32 bits wide. */
#define NAMES_BYTES_MAX	  (1u << 30)
#define WAIT_MIN_NS	  SB_NS_PER_SEC
#define WAIT_MAX_NS	  (60 * SB_NS_PER_SEC)
#define MODULES_PATH	  "/proc/modules"
#define MODULES_BYTES_MAX (16u << 20)
/* Bound of BPF programs that are listed to see whether any was loaded or unloaded. */
#define BPF_PROGS_MAX	  100000u
/* Name of an entry that only ends the one before it. */
#define NO_NAME		  UINT32_MAX
#define MOD_BYTES	  sizeof(uint16_t)

/* Reading. The text comes in pieces, and a line may be split between two. */
struct reader {
	struct sb_kallsyms_table *table;
	char line[SB_KALLSYMS_NAME_MAX + 64];
	size_t line_len;
	bool is_too_long;
	uint32_t last_mod;
	const char *modules; /* text of /proc/modules, or NULL */
};

void sb_kallsyms_table_release(struct sb_kallsyms_table *table)
{
	size_t i;

	for (i = 0; i < table->mods.nr; i++)
		free(table->mods.at[i].name);
	sb_vec_release(&table->mods);
	sb_vec_release(&table->syms);
	sb_vec_release(&table->names);
	*table = (struct sb_kallsyms_table){};
}

/* A line of /proc/modules: "name size refs users state 0xaddress". Return: end of memory, or 0. */
static uint64_t module_end(const char *modules, const char *name, size_t len)
{
	const char *line, *p, *end;
	uint64_t size, addr;
	int i;

	for (line = modules; line && *line; line = *end ? end + 1 : NULL) {
		end = line + strcspn(line, "\n");
		if ((size_t)(end - line) <= len || memcmp(line, name, len) || line[len] != ' ')
			continue;
		p = line + len + 1;
		if (!sb_scan_u64(&p, end, &size))
			return 0;
		for (i = 0; i < 3 && p < end; i++) {
			p++;
			p += strcspn(p, " \n");
		}
		if (end - p < 3 || memcmp(p, " 0x", 3))
			return 0;
		p += 3;
		return sb_scan_hex(&p, end, &addr) && addr ? addr + size : 0;
	}
	return 0;
}

/* Get the number of module @name, "[nf_tables]". Adjacent symbols are mostly of the same module. */
static int get_mod(struct reader *reader, const char *name, size_t len, uint32_t *ret_mod)
{
	struct sb_kallsyms_table *table = reader->table;
	struct sb_kallsyms_mod mod = {};
	uint32_t i;
	int err;

	i = reader->last_mod;
	if (i && sb_text_is(name, len, table->mods.at[i].name)) {
		*ret_mod = i;
		return 0;
	}
	for (i = 1; i < table->mods.nr; i++)
		if (sb_text_is(name, len, table->mods.at[i].name))
			break;
	if (i == SB_KALLSYMS_MODS_MAX)
		return -E2BIG;
	if (i == table->mods.nr) {
		mod.name = strndup(name, len);
		if (!mod.name)
			return -ENOMEM;
		if (reader->modules && len > 2)
			mod.end = module_end(reader->modules, name + 1, len - 2);
		err = sb_vec_push(&table->mods, mod);
		if (err) {
			free(mod.name);
			return err;
		}
	}
	reader->last_mod = i;
	*ret_mod = i;
	return 0;
}

static int add_name(struct sb_kallsyms_table *table, const char *name, size_t len, uint32_t mod,
		    uint32_t *ret_name)
{
	uint16_t mod16 = (uint16_t)mod;
	size_t at = table->names.nr;
	int err = sb_vec_reserve(&table->names, at + MOD_BYTES + len + 1);

	if (err)
		return err;
	memcpy(table->names.at + at, &mod16, MOD_BYTES);
	memcpy(table->names.at + at + MOD_BYTES, name, len);
	table->names.at[at + MOD_BYTES + len] = '\0';
	table->names.nr = at + MOD_BYTES + len + 1;
	*ret_name = (uint32_t)(at + MOD_BYTES);
	return 0;
}

/* Code has a name; data, paddings before functions and marks of the linker only end what is before
 * them. */
static bool is_function(char type, const char *name, size_t len)
{
	static const char *const marks[] = { "_text", "_stext", "_etext", "_sinittext",
					     "_einittext" };
	size_t i;

	if (type != 't' && type != 'T' && type != 'w' && type != 'W')
		return false;
	for (i = 0; i < SB_ARRAY_SIZE(marks); i++)
		if (sb_text_is(name, len, marks[i]))
			return false;
	return !sb_text_begins(name, len, "__pfx_") && !sb_text_begins(name, len, "__cfi_");
}

/* "ffffffff81000000 T name\t[module]" */
static int add_line(struct reader *reader, const char *line, size_t len)
{
	struct sb_kallsyms_table *table = reader->table;
	struct sb_kallsyms_entry sym = { .name = NO_NAME };
	const char *p = line, *end = line + len, *name, *name_end;
	uint32_t mod = 0;
	int err = 0;
	char type;

	table->nr_lines++;
	if (!sb_scan_hex(&p, end, &sym.addr) || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		goto bad;
	type = p[1];
	name = p + 3;
	name_end = memchr(name, '\t', (size_t)(end - name));
	if (name_end) {
		if (end - name_end < 4 || name_end[1] != '[' || end[-1] != ']')
			goto bad;
		err = get_mod(reader, name_end + 1, (size_t)(end - name_end - 1), &mod);
	} else {
		name_end = end;
	}
	if (name == name_end || memchr(name, '\0', (size_t)(end - name)))
		goto bad;
	if (sym.addr == 0) {
		table->nr_zero++;
		return 0;
	}
	if (err == -E2BIG || table->syms.nr >= SB_KALLSYMS_MAX ||
	    table->names.nr >= NAMES_BYTES_MAX) {
		table->is_cut = true;
		return 0;
	}
	if (!err && is_function(type, name, (size_t)(name_end - name)))
		err = add_name(table, name, (size_t)(name_end - name), mod, &sym.name);
	/*
	 * The type is needed to choose among aliases; until then it is stored in place of the
	 * size.
	 */
	sym.size = (uint32_t)(unsigned char)type;
	return err ? err : sb_vec_push(&table->syms, sym);
bad:
	table->nr_bad_lines++;
	return 0;
}

static int feed(struct reader *reader, const char *text, size_t len)
{
	const char *end = text + len, *eol;
	size_t n;
	int err;

	while (text < end) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (eol && !reader->line_len && !reader->is_too_long) {
			err = add_line(reader, text, (size_t)(eol - text));
			if (err)
				return err;
			text = eol + 1;
			continue;
		}
		n = (size_t)((eol ? eol : end) - text);
		if (n > sizeof(reader->line) - reader->line_len)
			reader->is_too_long = true;
		else
			memcpy(reader->line + reader->line_len, text, n);
		reader->line_len += reader->is_too_long ? 0 : n;
		text += n;
		if (!eol)
			break;
		text++;
		if (reader->is_too_long) {
			reader->table->nr_lines++;
			reader->table->nr_bad_lines++;
			err = 0;
		} else {
			err = add_line(reader, reader->line, reader->line_len);
		}
		reader->line_len = 0;
		reader->is_too_long = false;
		if (err)
			return err;
	}
	return 0;
}

static const char *name_of(const struct sb_kallsyms_table *table,
			   const struct sb_kallsyms_entry *sym)
{
	return table->names.at + sym->name;
}

static uint32_t mod_of(const struct sb_kallsyms_table *table, const struct sb_kallsyms_entry *sym)
{
	uint16_t mod;

	memcpy(&mod, name_of(table, sym) - MOD_BYTES, sizeof(mod));
	return mod;
}

static size_t nr_underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Entry points of system calls for 32-bit programs; without arguments they are aliases of the
 * others.
 */
static bool is_compat(const char *name)
{
	static const char *const prefixes[] = { "__ia32_", "__compat_", "__arm64_compat_" };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Return: whether @a is the better of two names of one address, in the usual order of perf(1). */
static bool is_better(const struct sb_kallsyms_table *table, const struct sb_kallsyms_entry *a,
		      const struct sb_kallsyms_entry *b)
{
	bool a_weak = a->size == 'w' || a->size == 'W', b_weak = b->size == 'w' || b->size == 'W';
	bool a_local = a->size == 't' || a->size == 'w', b_local = b->size == 't' || b->size == 'w';
	const char *x = name_of(table, a), *y = name_of(table, b);

	if (a_weak != b_weak)
		return b_weak;
	if (a_local != b_local)
		return b_local;
	if (is_compat(x) != is_compat(y))
		return is_compat(y);
	if (nr_underscores(x) != nr_underscores(y))
		return nr_underscores(x) < nr_underscores(y);
	if (strlen(x) != strlen(y))
		return strlen(x) > strlen(y);
	return strcmp(x, y) < 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct sb_kallsyms_entry *x = a, *y = b;

	return sb_compare(x->addr, y->addr) ?: sb_compare(x->name, y->name);
}

static bool is_sorted(const struct sb_kallsyms_table *table)
{
	size_t i;

	for (i = 1; i < table->syms.nr; i++)
		if (table->syms.at[i - 1].addr > table->syms.at[i].addr)
			return false;
	return true;
}

/*
 * Return: the size of a symbol. It extends to the next one, but not beyond its module, or a bound.
 */
static uint32_t reach(const struct sb_kallsyms_table *table, const struct sb_kallsyms_entry *sym,
		      const struct sb_kallsyms_entry *next)
{
	const struct sb_kallsyms_mod *mod = &table->mods.at[mod_of(table, sym)];
	uint64_t end = next ? next->addr : UINT64_MAX;
	bool is_inside = next && next->name != NO_NAME &&
			 mod_of(table, next) == mod_of(table, sym) && !mod->end;

	if (mod->end > sym->addr && mod->end < end)
		end = mod->end;
	if (!is_inside && end - sym->addr > SB_KALLSYMS_REACH_MAX && mod->end != end)
		end = sym->addr + SB_KALLSYMS_REACH_MAX;
	return end - sym->addr > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - sym->addr);
}

/* Sort the symbols, choose one of each group of aliases, set sizes, drop what is not a function. */
static void finish(struct sb_kallsyms_table *table)
{
	struct sb_kallsyms_entry *syms = table->syms.at, *best;
	size_t i, next, nr_kept = 0, nr = table->syms.nr;
	void *smaller;

	if (nr && !is_sorted(table))
		qsort(syms, nr, sizeof(*syms), by_addr);
	for (i = 0; i < nr; i = next) {
		best = NULL;
		for (next = i; next < nr && syms[next].addr == syms[i].addr; next++)
			if (syms[next].name != NO_NAME &&
			    (!best || is_better(table, &syms[next], best)))
				best = &syms[next];
		if (!best)
			continue;
		best->size = reach(table, best, next < nr ? &syms[next] : NULL);
		syms[nr_kept++] = *best;
	}
	table->syms.nr = nr_kept;
	smaller = nr_kept ? realloc(syms, nr_kept * sizeof(*syms)) : NULL;
	if (smaller) {
		table->syms.at = smaller;
		table->syms.cap = nr_kept;
	}
	smaller = table->names.nr ? realloc(table->names.at, table->names.nr) : NULL;
	if (smaller) {
		table->names.at = smaller;
		table->names.cap = table->names.nr;
	}
}

static int reader_begin(struct reader *reader, struct sb_kallsyms_table *table)
{
	struct sb_kallsyms_mod core = {};

	reader->table = table;
	core.name = strdup("");
	if (!core.name)
		return -ENOMEM;
	if (sb_vec_push(&table->mods, core)) {
		free(core.name);
		return -ENOMEM;
	}
	return 0;
}

static int reader_end(struct reader *reader)
{
	int err = reader->line_len ? add_line(reader, reader->line, reader->line_len) : 0;

	finish(reader->table);
	return err;
}

int sb_kallsyms_table_parse(struct sb_kallsyms_table *table, const char *text, size_t len,
			    const char *modules)
{
	sb_cleanup(sb_freep) struct reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->modules = modules;
	err = reader_begin(reader, table);
	err = err ? err : feed(reader, text, len);
	return err ? err : reader_end(reader);
}

bool sb_kallsyms_table_find(const struct sb_kallsyms_table *table, uint64_t addr,
			    struct sb_ksym *ret_sym)
{
	const struct sb_kallsyms_entry *sym;
	size_t behind = sb_bisect(table->syms.nr, i, table->syms.at[i].addr <= addr);
	uint32_t mod;

	if (!behind)
		return false;
	sym = &table->syms.at[behind - 1];
	if (addr - sym->addr >= sym->size)
		return false;
	mod = mod_of(table, sym);
	*ret_sym = (struct sb_ksym){
		.name = name_of(table, sym),
		.module = mod ? table->mods.at[mod].name : NULL,
		.start = sym->addr,
	};
	return true;
}

static int open_error(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return -EACCES;
	case EMFILE:
	case ENFILE:
		return -EMFILE;
	case ENOMEM:
		return -ENOMEM;
	default:
		return -ENODATA;
	}
}

static int read_table(const char *path, struct sb_kallsyms_table *table)
{
	sb_cleanup(sb_freep) struct reader *reader = calloc(1, sizeof(*reader));
	sb_cleanup(sb_freep) char *modules = NULL;
	sb_cleanup(sb_freep) char *chunk = malloc(CHUNK_BYTES);
	sb_cleanup(sb_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;
	int err;

	if (fd < 0)
		return open_error(errno);
	if (!reader || !chunk)
		return -ENOMEM;
	/* Without it only the end of the last symbol of each module is unknown. */
	if (!sb_read_file(MODULES_PATH, MODULES_BYTES_MAX, &modules, NULL))
		reader->modules = modules;
	err = reader_begin(reader, table);
	while (!err && (n = read(fd, chunk, CHUNK_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		err = n < 0 ? (errno == ENOMEM ? -ENOMEM : -ENODATA)
			    : feed(reader, chunk, (size_t)n);
	}
	if (!err)
		err = reader_end(reader);
	reader->modules = NULL;
	if (!err && !table->syms.nr)
		err = table->nr_zero ? -EACCES : -ENODATA;
	return err;
}

/* The identities of all BPF programs; *@ret_is_whole becomes false without CAP_SYS_ADMIN. The one
 * command of bpf(2) used here, which is not worth a dependency of this library on BPF headers. */
static uint64_t hash_bpf_progs(uint64_t hash, bool *ret_is_whole)
{
	const int prog_get_next_id = 11;
	struct {
		uint32_t start_id, next_id, open_flags;
	} attr = {};
	uint32_t nr;

	for (nr = 0; nr < BPF_PROGS_MAX; nr++) {
		if (syscall(SYS_bpf, prog_get_next_id, &attr, sizeof(attr))) {
			*ret_is_whole = errno == ENOENT;
			break;
		}
		attr.start_id = attr.next_id;
		hash = sb_hash(&attr.start_id, sizeof(attr.start_id), hash);
	}
	return hash;
}

/* A number that changes when modules or programs come or go (or the file does, if it is one). Where
 * it does not tell all, *@ret_is_whole becomes false. */
static uint64_t state_of_kernel(const char *path, bool *ret_is_whole)
{
	sb_cleanup(sb_freep) char *modules = NULL;
	uint64_t hash = 0;
	struct stat st;
	size_t len;

	if (!stat(path, &st) && st.st_size) {
		hash = sb_hash(&st.st_mtim, sizeof(st.st_mtim), hash);
		hash = sb_hash(&st.st_size, sizeof(st.st_size), hash);
		return sb_hash(&st.st_ino, sizeof(st.st_ino), hash);
	}
	if (!sb_read_file(MODULES_PATH, MODULES_BYTES_MAX, &modules, &len))
		hash = sb_hash(modules, len, hash);
	return hash_bpf_progs(hash, ret_is_whole);
}

static void read_again(struct sb_kallsyms *ks)
{
	const char *path = ks->path ? ks->path : "/proc/kallsyms";
	struct sb_kallsyms_table table = {};
	bool is_whole = true;
	uint64_t state = state_of_kernel(path, &is_whole);
	int err = read_table(path, &table);

	ks->nr_reads++;
	ks->read_ns = sb_now_ns();
	/* A shortage passes: what is known stays, and the file is read again. */
	if (err == -ENOMEM) {
		sb_kallsyms_table_release(&table);
		ks->err = ks->is_read ? ks->err : err;
		return;
	}
	ks->state = err == -EMFILE ? ~state : state;
	/* If the file cannot be read any more, the old table is kept. */
	if (err) {
		sb_kallsyms_table_release(&table);
		if (!ks->is_read)
			ks->err = err == -EMFILE ? -ENODATA : err;
	} else {
		sb_kallsyms_table_release(&ks->table);
		ks->table = table;
		ks->err = 0;
	}
	ks->is_read = true;
}

/* Did anything change since the last reading? Asked seldom: an address that nobody knows must not
 * make us look each time. */
static bool should_read_again(struct sb_kallsyms *ks)
{
	const char *path = ks->path ? ks->path : "/proc/kallsyms";
	uint64_t now_ns = sb_now_ns();
	bool is_whole = true;

	if (!ks->wait_ns)
		ks->wait_ns = ks->wait_min_ns ? ks->wait_min_ns : WAIT_MIN_NS;
	if (now_ns - ks->read_ns < ks->wait_ns)
		return false;
	ks->read_ns = now_ns;
	if (state_of_kernel(path, &is_whole) != ks->state) {
		ks->wait_ns = 0;
		return true;
	}
	if (!ks->wait_min_ns && ks->wait_ns < WAIT_MAX_NS)
		ks->wait_ns *= 2;
	/* Without privileges changes are not visible: then read it again, at growing intervals. */
	return !is_whole;
}

/* Scan "0x1d". */
static bool scan_0x(const char **p, const char *end, uint64_t *ret)
{
	const char *digits = *p + 2;

	if (end - *p < 3 || memcmp(*p, "0x", 2) || !sb_scan_hex(&digits, end, ret))
		return false;
	*p = digits;
	return true;
}

int sb_kallsyms_split(char *text, uint64_t addr, struct sb_ksym *ret_sym)
{
	char *plus = strrchr(text, '+'), *module = NULL;
	const char *end = text + strlen(text), *p = plus ? plus + 1 : text;
	uint64_t offset, size;

	if (!plus)
		return scan_0x(&p, end, &offset) && p == end ? -ENOENT : -EAGAIN;
	if (plus == text || !scan_0x(&p, end, &offset) || offset > addr || *p++ != '/' ||
	    !scan_0x(&p, end, &size))
		return -EAGAIN;
	if (p != end) {
		if (end - p < 4 || memcmp(p, " [", 2) || end[-1] != ']')
			return -EAGAIN;
		module = text + (p + 1 - text);
	}
	if (!is_function('T', text, (size_t)(plus - text)))
		return -EAGAIN;
	*plus = '\0';
	if (is_compat(text))
		return -EAGAIN;
	*ret_sym = (struct sb_ksym){ .name = text, .module = module, .start = addr - offset };
	return 0;
}

int sb_kallsyms_lookup(struct sb_kallsyms *ks, uint64_t addr, struct sb_ksym *ret_sym)
{
	int err = -EAGAIN;

	if (ks->ask && !ks->ask(ks->ask_arg, addr, ks->asked, sizeof(ks->asked)))
		err = sb_kallsyms_split(ks->asked, addr, ret_sym);
	if (!err || err == -ENOENT)
		return err;
	if (!ks->is_read)
		read_again(ks);
	if (sb_kallsyms_table_find(&ks->table, addr, ret_sym))
		return 0;
	if (should_read_again(ks)) {
		read_again(ks);
		if (sb_kallsyms_table_find(&ks->table, addr, ret_sym))
			return 0;
	}
	if (ks->err)
		return ks->err;
	return ks->table.is_cut ? -EFBIG : -ENOENT;
}

size_t sb_kallsyms_bytes(const struct sb_kallsyms *ks)
{
	return ks->table.syms.cap * sizeof(*ks->table.syms.at) + ks->table.names.cap;
}

void sb_kallsyms_release(struct sb_kallsyms *ks)
{
	sb_kallsyms_table_release(&ks->table);
}
