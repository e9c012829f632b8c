// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A shortage of memory passes. Whoever keeps answers must not keep "there is none" as the answer to
 * a question that only lacked memory: each question is asked with one allocation failing, with each
 * in turn, and then once more with memory.
 *
 * test_shortage SPLIT: a program whose DWARF is in .dwo files.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/reason.h"
#include "base/str.h"
#include "events/probe_priv.h"
#include "interp/core/interp_priv.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/symbols/kallsyms.h"
#include "symbolizer/symbols/module.h"
#include "symbolizer/symbols/module_priv.h"
#include "symbolizer/unwind/cfi.h"
#include "without_memory.h"

#define NR_MAX	   20000u
#define FRAMES_MAX 16u

/* A file that defines this has Lua in it, to those who only look at its symbols. */
extern const char lua_ident[];
const char lua_ident[] __attribute__((used)) = "none";

static const char *split_path;
static struct sb_strtab strings;

/* A charge is no allocation, but notes the owner of the file, for which there may be no room. */
int __real_sb_budget_charge(struct sb_budget *budget, size_t bytes);
int __wrap_sb_budget_charge(struct sb_budget *budget, size_t bytes);

int __wrap_sb_budget_charge(struct sb_budget *budget, size_t bytes)
{
	return is_due() ? -ENOMEM : __real_sb_budget_charge(budget, bytes);
}

/* Begin failing allocation @nr. */
static void begin_failing(uint64_t nr)
{
	allocs.nr = 0;
	allocs.from = allocs.to = nr;
	allocs.is_on = true;
}

/* End it. Return: whether there was such an allocation. */
static bool has_failed(void)
{
	allocs.is_on = false;
	assert_true(allocs.nr < NR_MAX);
	return allocs.nr >= allocs.from;
}

static struct sb_image_file *image_of_self(void)
{
	struct sb_image_file *file = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sb_image_file_new(fd, "self", &file), 0);
	close(fd);
	return file;
}

static void test_symbols_of_image(void **state)
{
	struct sb_image image = {};
	uint64_t addr, nr;
	bool is_over;

	for (nr = 1, is_over = false; !is_over; nr++) {
		image.file = image_of_self();
		begin_failing(nr);
		(void)sb_image_symbol(&image, "lua_ident", &addr, NULL);
		is_over = !has_failed();
		sb_image_file_unload(image.file);
		assert_int_equal(sb_image_symbol(&image, "lua_ident", &addr, NULL), 0);
		sb_image_file_free(image.file);
	}
	assert_true(nr > 3);
}

/* Slots of the GOT with their names, from the relocations. */
static uint64_t a_named_slot(void)
{
	struct sb_image image = { .file = image_of_self() };
	uint64_t begin = 0, size = 0, at, found = 0;

	if (sb_image_section(&image, ".got.plt", &begin, &size) ||
	    !sb_image_reloc_name(&image, begin + size - 8))
		assert_int_equal(sb_image_section(&image, ".got", &begin, &size), 0);
	for (at = begin; at < begin + size && !found; at += 8)
		if (sb_image_reloc_name(&image, at))
			found = at;
	sb_image_file_free(image.file);
	assert_true(found);
	return found;
}

static void test_relocations_of_image(void **state)
{
	uint64_t nr, slot = a_named_slot();
	struct sb_image image = {};
	bool is_over;

	for (nr = 1, is_over = false; !is_over; nr++) {
		image.file = image_of_self();
		begin_failing(nr);
		(void)sb_image_reloc_name(&image, slot);
		is_over = !has_failed();
		sb_image_file_unload(image.file);
		assert_non_null(sb_image_reloc_name(&image, slot));
		sb_image_file_free(image.file);
	}
	assert_true(nr > 3);
}

/* The mapping of this program's code. */
struct own_code {
	char path[4096];
	struct sb_maps_line map;
};

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct own_code *own = arg;

	if (!line->is_exec || own->map.path || line->path_len != strlen(own->path) ||
	    memcmp(line->path, own->path, line->path_len) != 0)
		return 0;
	own->map = *line;
	own->map.path = own->path;
	return 0;
}

/* A file in which nothing was found for want of memory is looked at again. */
static void test_runtimes_of_file(void **state)
{
	const uint32_t tgid = (uint32_t)getpid();
	struct own_code own = {};
	struct seen_file *seen;
	struct sb_interp *interp;
	uint64_t nr;
	bool is_over;

	assert_non_null(realpath("/proc/self/exe", own.path));
	assert_int_equal(sb_procfs_code(tgid, on_line, &own), 0);
	assert_non_null(own.map.path);
	for (nr = 1, is_over = false; !is_over; nr++) {
		assert_int_equal(sb_interp_new(&(struct sb_interp_opts){}, &interp), 0);
		begin_failing(nr);
		(void)sb_interp_look_at_file(interp, tgid, &own.map, &seen);
		is_over = !has_failed();
		assert_int_equal(sb_interp_look_at_file(interp, tgid, &own.map, &seen), 0);
		assert_non_null(seen);
		assert_true(seen->runtimes & 1u << SB_RUNTIME_LUA);
		sb_interp_free(interp);
	}
	assert_true(nr > 3);
}

static struct sb_module *module_of(const char *path, const struct sb_symbolizer_opts *sym)
{
	struct sb_module_opts opts = { .sym = sym, .strings = &strings };
	struct sb_module *mod = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sb_module_new_fd(fd, path, &opts, &mod), 0);
	return mod;
}

/* An address of the program whose function DWARF knows, with its line. */
static uint64_t known_address(const char *path, const struct sb_symbolizer_opts *sym)
{
	struct sb_module *mod = module_of(path, sym);
	struct sb_cfi_function *functions = NULL;
	struct sb_sym_frame frames[FRAMES_MAX];
	size_t i, nr = 0, nr_frames;
	uint64_t found = 0;

	assert_int_equal(sb_cfi_functions(mod->elf, &functions, &nr), 0);
	for (i = 0; i < nr && !found; i++) {
		assert_int_equal(
			sb_module_lookup(mod, functions[i].lo + 1, frames, FRAMES_MAX, &nr_frames),
			0);
		if (frames[0].line && frames[0].decl_line)
			found = functions[i].lo + 1;
	}
	free(functions);
	sb_module_free(mod);
	assert_true(found);
	return found;
}

static void look_up_dwarf(const char *path)
{
	static const char *const no_dirs[] = { "/nonexistent", NULL };
	const struct sb_symbolizer_opts sym = { .debug_dirs = no_dirs,
						.inlines = true,
						.lines = true };
	uint64_t nr, addr = known_address(path, &sym);
	struct sb_sym_frame frames[FRAMES_MAX];
	struct sb_module *mod;
	size_t nr_frames;
	bool is_over;
	int err;

	for (nr = 1, is_over = false; !is_over; nr++) {
		mod = module_of(path, &sym);
		begin_failing(nr);
		err = sb_module_lookup(mod, addr, frames, FRAMES_MAX, &nr_frames);
		is_over = !has_failed();
		assert_true(!err || err == -ENOMEM);
		assert_int_equal(sb_module_lookup(mod, addr, frames, FRAMES_MAX, &nr_frames), 0);
		assert_true(frames[0].line && frames[0].decl_line);
		sb_module_free(mod);
	}
	assert_true(nr > 3);
}

static void test_dwarf(void **state)
{
	look_up_dwarf(split_path);
}

static void test_unwind_table(void **state)
{
	const struct sb_symbolizer_opts sym = {};
	const struct sb_walk_table *table;
	struct sb_module *mod;
	uint64_t nr;
	bool is_over;
	int err;

	for (nr = 1, is_over = false; !is_over; nr++) {
		mod = module_of(split_path, &sym);
		begin_failing(nr);
		err = sb_module_table(mod, &table);
		is_over = !has_failed();
		assert_int_equal(err, is_over ? 0 : -ENOMEM);
		assert_int_equal(sb_module_table(mod, &table), 0);
		assert_non_null(table);
		sb_module_free(mod);
	}
	assert_true(nr > 3);
}

/* What a full pool refuses is asked for again a minute later. */
static void test_refused_table(void **state)
{
	struct sb_symbolizer_opts sym = {};
	const struct sb_walk_table *table;
	struct sb_budget_pool pool;
	struct sb_module *mod = module_of(split_path, &sym);

	sb_budget_pool_init(&pool, 0);
	sb_budget_init(&mod->budget, &pool, 0, NULL);
	pool.bytes = pool.bytes_max;
	assert_int_equal(sb_module_table(mod, &table), 0);
	assert_null(table);
	pool.bytes = 0;
	assert_int_equal(sb_module_table(mod, &table), 0);
	assert_null(table);
	assert_true(mod->table_retry_ns);
	mod->table_retry_ns = 0;
	assert_int_equal(sb_module_table(mod, &table), 0);
	assert_non_null(table);
	sb_module_free(mod);
	sb_budget_pool_release(&pool);
}

/* What lacks memory is no wrong event. */
static void test_boundary(void **state)
{
	struct sb_event_spec spec = {};
	struct sb_resolving to = { .text = "uprobe:file:0x1", .spec = &spec };
	struct sb_image_file *file = image_of_self();
	struct sb_cfi_function *functions = NULL;
	size_t nr_functions = 0;
	uint64_t nr;
	bool is_over;
	int err;

	assert_int_equal(sb_cfi_functions(file->elf, &functions, &nr_functions), 0);
	for (nr = 1, is_over = false; !is_over; nr++) {
		begin_failing(nr);
		err = sb_boundary_check_address(&to, file->elf, functions[1].lo);
		is_over = !has_failed();
		assert_int_equal(err, is_over ? 0 : -ENOMEM);
	}
	free(functions);
	sb_image_file_free(file);
	assert_true(nr > 3);
}

static void test_kernel_symbols(void **state)
{
	struct sb_kallsyms ks;
	struct sb_ksym sym;
	bool is_over;
	uint64_t nr;
	FILE *file;
	char path[] = "/tmp/sb-kallsyms-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	fputs("ffffffff81000000 T first\nffffffff81000100 T second\t[module]\n", file);
	assert_int_equal(fclose(file), 0);
	for (nr = 1, is_over = false; !is_over; nr++) {
		ks = (struct sb_kallsyms){ .path = path };
		begin_failing(nr);
		err = sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym);
		is_over = !has_failed();
		assert_true(!err || err == -ENOMEM);
		assert_int_equal(sb_kallsyms_lookup(&ks, 0xffffffff81000000, &sym), 0);
		sb_kallsyms_release(&ks);
	}
	unlink(path);
	assert_true(nr > 3);
}

/* Whoever asks for an event is told why there is none, also that memory ran out. */
static void test_reason_of_probes(void **state)
{
	struct sb_probes probes;
	struct sb_reason reason;
	uint64_t nr;
	bool is_over;
	int err;

	for (nr = 1, is_over = false; !is_over; nr++) {
		probes = (struct sb_probes){};
		reason = (struct sb_reason){};
		begin_failing(nr);
		err = sb_probes_add(&probes, "c:malloc", &reason);
		is_over = !has_failed();
		assert_true(err ? err == -ENOMEM && sb_reason_is_set(&reason) : probes.places.nr);
		sb_probes_release(&probes);
	}
	assert_int_equal(err, 0);
	assert_true(nr > 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_of_image),
		cmocka_unit_test(test_relocations_of_image),
		cmocka_unit_test(test_runtimes_of_file),
		cmocka_unit_test(test_dwarf),
		cmocka_unit_test(test_unwind_table),
		cmocka_unit_test(test_refused_table),
		cmocka_unit_test(test_boundary),
		cmocka_unit_test(test_kernel_symbols),
		cmocka_unit_test(test_reason_of_probes),
	};

	if (argc < 2 || sb_strtab_init(&strings))
		return 2;
	split_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
