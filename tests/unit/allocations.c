// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory that is not to be had, in each module that parses or keeps something. Each is taken
 * through its life again and again: with the first allocation failing, with the second, ..., until
 * there are no more; and the same with all from that one on. It ends with -ENOMEM or with less than
 * there is, and with nothing left over; crashes and leaks are the sanitizers' to see.
 *
 * allocations SUBJECT [NAME...]: SUBJECT is a program with DWARF.
 */
#include "allocations.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_io.h"
#include "capture/batch_builder.h"
#include "capture/interpwatch_priv.h"
#include "capture/rawstack.h"
#include "capture/uwprocs.h"
#include "interp/core/interp_priv.h"
#include "interp/core/pages.h"
#include "resolve/resolve.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/process/procmaps.h"
#include "symbolizer/symbols/kallsyms.h"
#include "symbolizer/symbols/modcache.h"
#include "symbolizer/symbols/perfmap.h"
#include "symbolizer/symbols/plt.h"
#include "symbolizer/symbols/symtab.h"
#include "symbolizer/unwind/cfi.h"
#include "views/views.h"
#include "without_memory.h"

/* Allocations of one module; more are a mistake here. What libraries allocate does not fail. */
#define NR_MAX	   20000u
/* Above PID_MAX_LIMIT: never a process. */
#define NOBODY	   5000000u
#define LIB_AT	   0x7000000000ull
#define NR_ADDRS   24u
#define FRAMES_MAX 16u

/* Where there is no such sanitizer, leaks are not seen. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)

/* What the modules are given, made before anything fails. */

static const char *subject_path;
static int subject_fd;
static struct stat subject;
static void *subject_image;
static struct sb_cfi_function *functions;
static size_t nr_functions;
static uint64_t text_offset; /* in the file, of its code */
FILE *nowhere;
static const char *const no_dirs[] = { "/nonexistent", NULL };
static const struct sb_symbolizer_opts sym_opts = {
	.inlines = true,
	.lines = true,
	.debug_dirs = no_dirs,
	.kallsyms_path = "/dev/null",
};

static uint64_t addr_of(size_t i)
{
	return functions[i * nr_functions / NR_ADDRS].lo + 1;
}

/* What processes map. */

static int process_maps(void)
{
	const struct sb_procmaps_new maps[] = {
		{ .start = 0x1000, .end = 0x3000, .file = 1 },
		{ .start = 0x2000, .end = 0x4000, .file = 2 },
		{ .start = 0x1000, .end = 0x3000, .file = 1, .is_anon = true },
	};
	struct sb_procmaps pm = {};
	struct sb_procgen *gen = NULL;
	uint32_t tgid, i;
	int err = 0;

	/* Each the child of the one before: more than a lookup goes through. */
	for (tgid = 1; tgid <= SB_PROCMAPS_FORKS_MAX + 10 && !err; tgid++) {
		if (tgid > 1)
			err = sb_procmaps_fork(&pm, 10 * tgid, tgid, tgid - 1);
		for (i = 0; i < SB_ARRAY_SIZE(maps) && !err; i++)
			err = sb_procmaps_mmap(&pm, 10 * tgid + 1 + i, tgid, &maps[i]);
	}
	/* Of times that have been, so that what is known is parted. */
	for (tgid = 1; tgid <= 20 && !err; tgid++) {
		err = sb_procmaps_exec(&pm, 10 * tgid + 2, tgid);
		if (!err)
			err = sb_procmaps_exit(&pm, 1000 + tgid, tgid);
	}
	if (!err)
		err = sb_procmaps_seed_begin(&pm, 2000, 500, &gen);
	if (!err && gen)
		err = sb_procmaps_seed(&pm, gen, 0, maps, 1);
	sb_procmaps_forget(&pm, 1010);
	sb_procmaps_release(&pm);
	return err;
}

static int add_files(struct sb_modcache *cache, uint32_t *ret_subject)
{
	struct sb_mapped_file id = { .path = "/nonexistent/subject" };
	char path[32];
	uint32_t i;
	int err = 0;

	for (i = 0; i < 40 && !err; i++) {
		snprintf(path, sizeof(path), "/nonexistent/%u", i);
		err = sb_modcache_file(cache,
				       &(struct sb_mapped_file){
					       .path = path, .path_len = strlen(path), .ino = 1 },
				       ret_subject);
	}
	id.path_len = strlen(id.path);
	return err ? err : sb_modcache_file(cache, &id, ret_subject);
}

static int use_files(struct sb_modcache *cache)
{
	const struct sb_mapped_at at = { .tgid = NOBODY, .start = LIB_AT, .end = LIB_AT + 4096 };
	struct sb_cached_module *module;
	uint32_t file;
	int err = add_files(cache, &file);

	if (err)
		return err;
	sb_modcache_pin(cache, file, fcntl(subject_fd, F_DUPFD_CLOEXEC, 0));
	err = sb_modcache_get(cache, file, &at, &module);
	if (!err)
		sb_modcache_account(cache, module);
	if (!err && !sb_modcache_name(cache, file))
		err = -ENOMEM;
	if (!err)
		err = sb_modcache_get_image(cache, subject_image, (size_t)subject.st_size, "image",
					    &module);
	sb_modcache_forget_end(cache);
	/* In the places of those that were forgotten. */
	return err ? err : add_files(cache, &file);
}

static int files(void)
{
	struct sb_module_opts opts = { .sym = &sym_opts };
	struct sb_modcache cache = {};
	struct sb_strtab strings;
	int err = sb_strtab_init(&strings);

	opts.strings = &strings;
	if (!err)
		err = sb_modcache_init(&cache, &opts);
	if (!err)
		err = use_files(&cache);
	sb_modcache_release(&cache);
	sb_strtab_release(&strings);
	return err;
}

/* What ELF files say. */

static int symbols(void)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	struct sb_symtab *tab = NULL;
	struct sb_plt *plt = NULL;
	struct sb_plt_stub stub;
	struct sb_str name = {};
	uint32_t i;
	int err = sb_elf_new_image(subject_image, (size_t)subject.st_size, &elf);

	if (err)
		return err;
	tab = sb_symtab_new(NULL);
	err = tab ? sb_symtab_add(tab, elf, SHT_SYMTAB, 0) : -ENOMEM;
	if (!err)
		err = sb_symtab_finish(tab);
	for (i = 0; !err && i < sb_symtab_nr(tab); i++)
		err = sb_symtab_name(tab, i, &name);
	if (!err)
		err = sb_plt_new(elf, &plt);
	for (i = 0; !err && i < NR_ADDRS; i++)
		if (sb_plt_find(plt, addr_of(i), &stub))
			err = sb_plt_name(plt, stub.idx, &name);
	sb_str_release(&name);
	sb_plt_free(plt);
	sb_symtab_free(tab);
	return err;
}

static int unwind_rows(void)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	struct sb_cfi_function *found = NULL;
	struct sb_cfi *cfi = NULL;
	size_t nr;
	int err = sb_elf_new_fd(subject_fd, &elf);

	if (!err)
		err = sb_cfi_new(elf, NULL, &cfi);
	if (!err)
		err = sb_cfi_functions(elf, &found, &nr);
	free(found);
	sb_cfi_free(cfi);
	return err;
}

static int dwarf(void)
{
	struct sb_dwarf_frame frames[FRAMES_MAX];
	struct sb_dwarf *dw = NULL;
	size_t i, nr;
	int err = sb_dwarf_new(subject_fd, -1, true, NULL, &dw);

	for (i = 0; i < NR_ADDRS && !err; i++)
		err = sb_dwarf_lookup(dw, addr_of(i), frames, FRAMES_MAX, &nr);
	sb_dwarf_free(dw);
	return err;
}

/* What is text. */

static int perf_map(void)
{
	struct sb_perfmap map = {};
	char line[64];
	size_t used;
	uint64_t start;
	int err = 0, i, len;

	for (i = 0; i < 300 && !err; i++) {
		len = snprintf(line, sizeof(line), "%x 20 function %d /a/b.js:%d\n",
			       0x1000 + i % 50 * 16, i, i);
		err = sb_perfmap_add(&map, line, (size_t)len, &used);
		if (!err)
			sb_perfmap_lookup(&map, 0x1008, &start);
	}
	sb_perfmap_release(&map);
	return err;
}

static int kernel_symbols(void)
{
	static char text[64 * 500];
	struct sb_kallsyms_table table = {};
	struct sb_ksym sym;
	size_t len = 0;
	int err, i;

	for (i = 0; i < 400; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"ffffffff8%07x t kernel_function_%d%s\n", i * 64, i,
					i % 8 ? "" : "\t[some_module]");
	err = sb_kallsyms_table_parse(&table, text, len,
				      "some_module 4096 0 - Live 0xffffffff80000000\n");
	if (!err)
		sb_kallsyms_table_find(&table, 0xffffffff80001001, &sym);
	sb_kallsyms_table_release(&table);
	return err;
}

/* The symbolizer as a whole. */

static int take(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	return 0;
}

/* A process that maps the subject, and a child of its. */
static int make_process(struct sb_symbolizer *sym)
{
	const struct sb_sym_mmap map = {
		.time_ns = 10,
		.addr = LIB_AT,
		.len = 1u << 20,
		.pgoff = 0,
		.tgid = NOBODY,
		.ino = subject.st_ino,
		.maj = 1,
		.path = "/nonexistent/subject",
		.fd = fcntl(subject_fd, F_DUPFD_CLOEXEC, 0),
	};
	int err = sb_symbolizer_exec(sym, 5, NOBODY);

	if (err)
		close(map.fd);
	else
		err = sb_symbolizer_mmap(sym, &map);
	return err ? err : sb_symbolizer_fork(sym, 20, NOBODY + 1, NOBODY);
}

static int symbolizer(void)
{
	struct sb_sym_req reqs[NR_ADDRS];
	const struct sb_sym_query query = { .reqs = reqs, .nr = NR_ADDRS, .emit = take };
	struct sb_symbolizer *sym;
	uint32_t i;
	int err = sb_symbolizer_new(&sym_opts, &sym);

	if (err)
		return err;
	for (i = 0; i < NR_ADDRS; i++)
		reqs[i] = (struct sb_sym_req){ .addr = LIB_AT + addr_of(i) - functions[0].lo +
						       text_offset };
	err = make_process(sym);
	for (i = 0; i < 2 && !err; i++)
		err = sb_symbolizer_user(sym, NOBODY + i, 100 + i, &query);
	if (!err)
		err = sb_symbolizer_kernel(sym, &query);
	if (!err)
		err = sb_symbolizer_file(sym, subject_path, &query);
	if (!err)
		sb_symbolizer_next_change(sym, NOBODY, 0, 1000, &query);
	if (!err)
		err = sb_symbolizer_seed(sym, 200, (uint32_t)getpid());
	if (!err)
		err = sb_symbolizer_exit(sym, 300, NOBODY + 1);
	sb_symbolizer_forget(sym, 400);
	sb_symbolizer_free(sym);
	return err;
}

static int keep(void *arg, const struct sb_batch_stack *stack)
{
	return 0;
}

static int raw_stacks(void)
{
	struct {
		struct sb_event_raw event;
		uint64_t stack[64];
	} record = { .event = {
			     .hdr = { .kind = SB_EVENT_RAW, .nr_bytes = sizeof(record) },
			     .id = { 1, 2 },
			     .now_ns = 50,
			     .tgid = NOBODY,
			     .nr_stack_bytes = sizeof(record.stack),
			     .stack_addr = 0x7ffe00000000,
			     .pc = LIB_AT + addr_of(0) - functions[0].lo + text_offset,
		     } };
	const struct sb_rawstacks_into into = { .modes = SB_UNWIND_CFI | SB_UNWIND_FP,
						.add = keep };
	struct sb_rawstacks raw = {};
	struct sb_symbolizer *sym;
	int err = sb_symbolizer_new(&sym_opts, &sym), i;

	if (err)
		return err;
	record.event.regs[7] = record.event.stack_addr + SB_RED_ZONE_BYTES;
	err = make_process(sym);
	for (i = 0; i < 30 && !err; i++)
		err = sb_rawstacks_add(&raw, &record, sizeof(record));
	if (!err)
		err = sb_rawstacks_unwind(&raw, sym, &into);
	sb_rawstacks_release(&raw);
	sb_symbolizer_free(sym);
	return err;
}

/* What the BPF side ships. A record that is lost must not shift what is behind it: a frame of stack
 * i is 1000 * i and more, and so is a word of object i. */

#define NR_RECORDS 60u

static int ship(struct sb_batch_builder *builder, uint32_t i, bool is_stack)
{
	struct {
		union {
			struct sb_event_stack stack;
			struct sb_event_object object;
		};
		uint64_t words[20];
	} record = {};
	uint32_t nr = i % 20 + 1, k;
	uint64_t *words =
		is_stack ? (uint64_t *)(&record.stack + 1) : (uint64_t *)(&record.object + 1);

	for (k = 0; k < nr; k++)
		words[k] = 1000 * i + k;
	if (is_stack)
		record.stack = (struct sb_event_stack){ .hdr = { .kind = SB_EVENT_STACK },
							.id = { i, 1 },
							.nr_frames = nr };
	else
		record.object = (struct sb_event_object){ .hdr = { .kind = SB_EVENT_OBJECT },
							  .id = i,
							  .nr_bytes = nr * 8 };
	return sb_batch_builder_record(builder, &record, sizeof(record));
}

static bool is_shifted(const struct sb_batch *batch)
{
	size_t i;

	for (i = 0; i < batch->nr_stacks; i++) {
		const struct sb_batch_stack *stack = &batch->stacks[i];

		if (stack->ip[0] != 1000 * stack->id.lo ||
		    stack->ip[stack->nr_frames - 1] != 1000 * stack->id.lo + stack->nr_frames - 1)
			return true;
	}
	for (i = 0; i < batch->nr_objects; i++)
		if (*(const uint64_t *)batch->objects[i].data != 1000 * batch->objects[i].id)
			return true;
	return false;
}

static int shipped(void)
{
	struct sb_batch_builder builder = {};
	struct sb_batch batch;
	size_t nr_lost = 0;
	int err = 0;
	uint32_t i;

	for (i = 0; i < NR_RECORDS && (!err || err == -ENOMEM); i++) {
		err = ship(&builder, i, i % 3);
		nr_lost += err == -ENOMEM;
	}
	sb_batch_builder_batch(&builder, &batch);
	if (is_shifted(&batch) || batch.nr_stacks + batch.nr_objects + nr_lost != NR_RECORDS)
		err = -EILSEQ;
	sb_batch_builder_release(&builder);
	return err ? err : nr_lost ? -ENOMEM : 0;
}

/* Label i of threads that sleep is "i". */
static int label_sets(void)
{
	struct sb_interpwatch watch = { .ring_lock = PTHREAD_MUTEX_INITIALIZER };
	const struct sb_batch_labels *sets;
	size_t nr_lost = 0, nr;
	char text[16];
	uint32_t i;
	int err = 0;

	for (i = 1; i <= NR_RECORDS; i++) {
		struct sb_str str = { .s = text };

		str.len = (size_t)snprintf(text, sizeof(text), "%u", i);
		nr_lost += sb_interpwatch_keep_labels(&watch, &(struct sb_asleep){ .labels = i },
						      &str) == -ENOMEM;
	}
	nr = sb_interpwatch_take_labels(&watch, &sets);
	if (nr + nr_lost != NR_RECORDS)
		err = -EILSEQ;
	for (i = 0; i < nr && !err; i++) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)sets[i].id);
		if (sets[i].nr_bytes != strlen(text) ||
		    memcmp(sets[i].text, text, sets[i].nr_bytes))
			err = -EILSEQ;
	}
	sb_vec_release(&watch.taken_labels.at);
	sb_str_release(&watch.taken_labels.texts);
	return err ? err : nr_lost ? -ENOMEM : 0;
}

static int memory_pages(void)
{
	struct sb_pages pages = { .tgid = (uint32_t)getpid(), .is_noting = true };
	uint8_t byte;
	bool is_good;
	size_t i;

	for (i = 0; i < 20; i++) {
		pages.is_short = false;
		sb_pages_read(&pages, &byte, 1, (uint64_t)(uintptr_t)subject_image + i * 4096);
	}
	is_good = sb_pages_fetch(&pages);
	sb_pages_release(&pages);
	return is_good ? 0 : -ENOMEM;
}

static struct btf *kernel_btf; /* a type that has another one in it */

static int make_kernel(void)
{
	int word;

	kernel_btf = btf__new_empty();
	word = kernel_btf ? btf__add_int(kernel_btf, "word", 8, 0) : -ENOMEM;
	if (word < 0 || btf__add_struct(kernel_btf, "outer", 8) < 0)
		return -ENOMEM;
	return btf__add_field(kernel_btf, "it", word, 0, 0);
}

static int kernel_types(void)
{
	struct sb_str out = {};
	uint32_t len;
	const void *raw = btf__raw_data(kernel_btf, &len);
	int err = sb_kernel_types(raw, len, kernel_btf, NULL, &out);

	sb_str_release(&out);
	return err;
}

/* Unwind tables of processes. */

static struct sb_uw_bin bins[64];

static int add_part(void *arg, uint32_t idx, void *at)
{
	void *mem = mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return mem == at ? 0 : -ENOMEM;
}

static int publish(void *arg, uint32_t tgid, const struct sb_uw_proc *proc, bool is_same)
{
	return 0;
}

static void unpublish(void *arg, uint32_t tgid) {}

static int use_tables(struct sb_uwtables *tables, struct sb_uwprocs *procs)
{
	const struct sb_uw_need_event need = { .tgid = (uint32_t)getpid(),
					       .start_ns = 1,
					       .need = SB_UW_NEED_PROC };
	struct sb_uwtables_spot spot;
	int err = sb_uwtables_add(tables, subject_fd, text_offset & ~4095ull, &spot);

	if (err)
		return err;
	err = sb_uwtables_build(tables, spot.bin, subject_fd, NOBODY);
	sb_uwtables_drop(tables, spot.bin);
	return err ? err : sb_uwprocs_need(procs, &need);
}

static int unwind_tables(void)
{
	struct sb_uwpool_opts pool_opts = { .add_part = add_part };
	struct sb_uwtables_opts table_opts = { .bins = bins, .nr_bins_max = SB_ARRAY_SIZE(bins) };
	struct sb_uwprocs_opts opts = { .nr_procs_max = 4,
					.publish = publish,
					.unpublish = unpublish };
	struct sb_uwtables *tables = NULL;
	struct sb_uwprocs *procs = NULL;
	struct sb_uwpool *pool = NULL;
	struct sb_processes *processes = NULL;
	int err = sb_uwpool_new(&pool_opts, &pool);

	memset(bins, 0, sizeof(bins));
	if (!err)
		err = sb_processes_new(NULL, &processes);
	opts.processes = processes;
	opts.pool = table_opts.pool = pool;
	if (!err)
		err = sb_uwtables_new(&table_opts, &tables);
	opts.tables = tables;
	if (!err)
		err = sb_uwprocs_new(&opts, &procs);
	if (!err)
		err = use_tables(tables, procs);
	sb_uwprocs_free(procs);
	sb_processes_free(processes);
	sb_uwtables_free(tables);
	sb_uwpool_free(pool);
	return err;
}

/* Interpreters in processes. This program looks as if it were one of Lua's. */

extern const char lua_ident[];
__attribute__((used, visibility("default"))) const char lua_ident[] = "$LuaVersion: Lua 5.4 $";

static int name_of(struct sb_runtime *rt, const struct sb_interp_frame *frame,
		   struct sb_runtime_text *text)
{
	if (!(frame->obj % 7))
		return -EFAULT;
	return sb_str_addf(&text->name, "function %llu", (unsigned long long)frame->obj);
}

static int names_of(struct sb_interp *interp, const struct sb_space_key *key)
{
	struct sb_interp_frame frame = { .where = (uint64_t)SB_RUNTIME_PYTHON
						  << SB_WHERE_RUNTIME_SHIFT };
	struct sb_interp_name name = {};
	int err = 0;

	for (frame.obj = 1; frame.obj < 60 && !err; frame.obj++) {
		err = sb_interp_fetch(interp, key, &frame, 1);
		if (!err)
			err = sb_interp_name(interp, key, &frame, 0, &name);
		err = err > 0 ? 0 : err;
	}
	sb_interp_name_release(&name);
	return err;
}

static int interpreters(void)
{
	static const struct sb_runtime_ops ops = { .runtime = SB_RUNTIME_PYTHON,
						   .name = "python",
						   .describe = name_of };
	struct sb_space_key key = { .start_ns = 1, .tgid = (uint32_t)getpid() };
	struct sb_interp_confs confs;
	struct sb_interp *interp;
	struct space *space;
	struct sb_processes *processes;
	int err = sb_processes_new(NULL, &processes), i;

	if (err)
		return err;
	err = sb_interp_new(&(struct sb_interp_opts){ .processes = processes, .lines = true },
			    &interp);
	if (err)
		sb_processes_free(processes);
	if (err)
		return err;

	for (i = 0; i < 3 && !err; i++, key.exec_id++) {
		err = sb_interp_look(interp, &key, &confs);
		space = err ? NULL : sb_interp_find(interp, &key);
		if (!space || space->nr_found != 1)
			continue;
		sb_str_release(&space->found[0]->rt.why);
		space->found[0]->is_attached = true;
		space->found[0]->rt.ops = &ops;
		space->found[0]->rt.memory = &space->memory;
		err = names_of(interp, &key);
		sb_interp_ended(interp, &key);
	}
	sb_processes_forget(processes, UINT64_MAX);
	sb_interp_free(interp);
	sb_processes_free(processes);
	return err;
}

/* Samples to profiles. */

#define PATH "c\0bb\0a"

static int add_samples(struct sb_resolver *resolver)
{
	static const uint64_t kernel[] = { 0xffffffff81000001, 0xffffffff81000002 };
	static const struct {
		struct sb_object_file file;
		char path[16];
	} file = { { .kind = SB_FILE_REG, .path_bytes = sizeof(PATH) }, PATH };
	const struct sb_object_waker waker = {
		.ustack = { 1, 1 }, .kstack = { 2, 1 }, .tgid = NOBODY, .comm = "w"
	};
	const struct sb_batch_object objects[] = {
		{ .id = 1, .kind = SB_OBJECT_FILE, .nr_bytes = sizeof(file), .data = &file },
		{ .id = 2, .kind = SB_OBJECT_WAKER, .nr_bytes = sizeof(waker), .data = &waker },
	};
	uint64_t user[FRAMES_MAX];
	struct sb_batch_stack stacks[20];
	struct sb_batch_count counts[40] = {};
	const struct sb_batch batch = { counts,	 SB_ARRAY_SIZE(counts),
					stacks,	 SB_ARRAY_SIZE(stacks),
					objects, SB_ARRAY_SIZE(objects) };
	uint32_t i;

	for (i = 0; i < FRAMES_MAX; i++)
		user[i] = LIB_AT + addr_of(i) - functions[0].lo + text_offset;
	for (i = 0; i < SB_ARRAY_SIZE(stacks); i++)
		stacks[i] = (struct sb_batch_stack){ .id = { i + 1, 1 },
						     .nr_frames = i % FRAMES_MAX,
						     .ip = user };
	stacks[1] = (struct sb_batch_stack){
		{ 2, 1 }, .flags = SB_STACK_KERNEL, .nr_frames = 2, .ip = kernel
	};
	for (i = 0; i < SB_ARRAY_SIZE(counts); i++) {
		counts[i].key = (struct sb_sample_key){ .ustack = { 1 + i % 20, 1 },
							.tgid = NOBODY + i % 2 };
		counts[i].key.kstack = (struct sb_stack_id){ i % 3 ? 2 : 0, i % 3 ? 1 : 0 };
		counts[i].key.object = i % 3;
		counts[i].key.log2_ns = (uint8_t)(i % 5);
		snprintf(counts[i].key.comm, sizeof(counts[i].key.comm), "comm%u", i);
		counts[i].count = (struct sb_count){ 5, 5, 30, 90 };
	}
	return sb_resolver_add(resolver, &batch);
}

static int samples(void)
{
	const struct sb_resolve_opts opts = { .lines = true,
					      .offsets = true,
					      .stacks_max = 8,
					      .nr_roots = 2,
					      .roots = { SB_ATTR_COMM, SB_ATTR_PROCESS } };
	struct sb_profile *profile = NULL;
	struct sb_resolver *resolver = NULL;
	struct sb_symbolizer *sym = NULL;
	int err = sb_symbolizer_new(&sym_opts, &sym);

	if (!err)
		err = make_process(sym);
	if (!err)
		err = sb_profile_new(&profile);
	if (!err)
		err = sb_resolver_new(&opts, sym, profile, &resolver);
	if (!err)
		err = add_samples(resolver);
	if (!err)
		err = add_samples(resolver);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
	sb_symbolizer_free(sym);
	return err;
}

#define ROW(name)           \
	{                   \
#name, name \
	}

static const struct {
	const char *name;
	int (*live)(void);
} modules[] = {
	ROW(process_maps), ROW(files),	  ROW(symbols),	       ROW(unwind_rows),
	ROW(dwarf),	   ROW(perf_map), ROW(kernel_symbols), ROW(symbolizer),
	ROW(raw_stacks),   ROW(shipped),  ROW(label_sets),     ROW(unwind_tables),
	ROW(interpreters), ROW(profiles), ROW(outputs),	       ROW(comparisons),
	ROW(exports),	   ROW(samples),  ROW(pictures),       ROW(memory_pages),
	ROW(kernel_types),
};

static bool has_leaked(void)
{
	return __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check();
}

/* Return: whether there was such an allocation. */
static bool live(int (*module)(void), uint64_t from, uint64_t to, int *ret_err)
{
	allocs.nr = 0;
	allocs.from = from;
	allocs.to = to;
	allocs.is_on = true;
	*ret_err = module();
	allocs.is_on = false;
	return allocs.nr >= from;
}

/* Return: whether the module passed. */
static bool try_each(size_t i, bool and_on, bool is_for_leaks)
{
	uint64_t n, nr_said = 0;
	int err;

	for (n = 1; live(modules[i].live, n, and_on ? UINT64_MAX : n, &err); n++) {
		nr_said += err == -ENOMEM;
		if ((err && err != -ENOMEM) || n > NR_MAX || (is_for_leaks && has_leaked())) {
			printf("FAILED: %s without allocation %llu%s: %s%s\n", modules[i].name,
			       (unsigned long long)n, and_on ? " and those after it" : "",
			       strerror(-err), is_for_leaks ? ", a leak" : "");
			return false;
		}
	}
	if (err || !nr_said) {
		printf("FAILED: %s: %s with memory, %llu times -ENOMEM\n", modules[i].name,
		       strerror(-err), (unsigned long long)nr_said);
		return false;
	}
	if (!is_for_leaks)
		printf("ok: %s: %llu allocations%s, %llu times -ENOMEM\n", modules[i].name,
		       (unsigned long long)n - 1, and_on ? " and those after" : "",
		       (unsigned long long)nr_said);
	if (!is_for_leaks && has_leaked()) {
		try_each(i, and_on, true);
		return false;
	}
	return true;
}

static int prepare(const char *path)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	int err;

	subject_path = path;
	subject_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (subject_fd < 0 || fstat(subject_fd, &subject))
		return -errno;
	subject_image = mmap(NULL, (size_t)subject.st_size, PROT_READ, MAP_PRIVATE, subject_fd, 0);
	nowhere = fopen("/dev/null", "we");
	if (subject_image == MAP_FAILED || !nowhere)
		return -errno;
	err = make_kernel();
	if (!err)
		err = sb_elf_new_fd(subject_fd, &elf);
	if (!err)
		err = sb_cfi_functions(elf, &functions, &nr_functions);
	if (!err)
		text_offset = functions[0].lo; /* of a program that is linked to 0 */
	return err;
}

int main(int argc, char **argv)
{
	bool is_good = true;
	size_t i;
	int err = argc > 1 ? prepare(argv[1]) : -EINVAL;

	if (err) {
		printf("cannot use the subject: %s\n", strerror(-err));
		return 2;
	}
	for (i = 0; i < SB_ARRAY_SIZE(modules); i++) {
		if (argc > 2 && strcmp(argv[2], modules[i].name))
			continue;
		is_good &= try_each(i, false, false);
		is_good &= try_each(i, true, false);
		fflush(stdout);
	}
	btf__free(kernel_btf);
	free(functions);
	fclose(nowhere);
	return !is_good;
}
