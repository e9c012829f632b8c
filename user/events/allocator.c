// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/allocator.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/preset.h"
#include "events/probe_priv.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* All places share a name: a stack says by itself how it allocated. */
#define PLACE_NAME "alloc"
#define PROVIDER   "otel_memory"
#define OBJECT	   "1000"
_Static_assert(SB_ALLOC_OBJECT == 1000, "OBJECT is the same as text");

/* The last expressions are what a pair begins with and what it ends with; a function can do
 * both. */
struct allocating {
	const char *name;
	struct sb_preset bytes, objects; /* no weight: it does not allocate */
	const char *freed;
	unsigned int of; /* kinds of files that it is in */
};

/* Kinds of files that have functions. */
enum {
	MUSL = 1,
	GLIBC = 2,
	OTHERS = 4,
	ANY = MUSL | GLIBC | OTHERS,
	GO = 8,
	LUMP = 16,
	GO_BY_SIZE = 32, /* of Go, with functions for small sizes */
};

/* Memory of no bytes is counted as one, because an event has a weight. */
#define AT_LEAST_ONE(text) (sizeof(text) > 1 ? "(" text ") + !(" text ")" : NULL)

#define SB_ALLOCATOR(function, size, pointer, given_back, condition, files)           \
	{ .name = #function,                                                          \
	  .bytes = { .name = PLACE_NAME,                                              \
		     .when = condition,                                               \
		     .weight = AT_LEAST_ONE(size),                                    \
		     .key = pointer,                                                  \
		     .to_key = given_back },                                          \
	  .objects = { .name = PLACE_NAME,                                            \
		       .when = condition,                                             \
		       .weight = sizeof(size) > 1 && !((files)&LUMP) ? OBJECT : NULL, \
		       .key = pointer,                                                \
		       .to_key = given_back },                                        \
	  .freed = given_back,                                                        \
	  .of = files },
static const struct allocating functions[] = {
#include "events/allocators.def"
};

#define SB_OWN_HEAP(runtime, marker, what, of_lump, seen, is_moving, has_profile, asking) \
	{ .name = runtime,                                                                \
	  .function = #marker,                                                            \
	  .objects = what,                                                                \
	  .lump = of_lump,                                                                \
	  .seen_by = seen,                                                                \
	  .moves = is_moving,                                                             \
	  .profiles = has_profile,                                                        \
	  .ask = asking },
const struct sb_own_heap sb_own_heaps[] = {
#include "events/allocators.def"
	{}
};

static const struct allocating probes_of_producers[] = {
	{ .name = "alloc",
	  .bytes = { .name = PLACE_NAME, .weight = "arg2", .key = "arg0" },
	  .objects = { .name = PLACE_NAME,
		       .weight = "arg2 * " OBJECT " / (arg1 + !arg1)",
		       .key = "arg0" } },
	{ .name = "free",
	  .bytes = { .name = PLACE_NAME, .to_key = "arg0" },
	  .objects = { .name = PLACE_NAME, .to_key = "arg0" },
	  .freed = "arg0" },
};

/* Functions that no C library has. */
static const char *const markers[] = { "mallctl", "je_mallctl", "tc_malloc", "mi_malloc" };

/* Since Go 1.17, whose functions have their arguments in registers, those that have not are named
 * so. */
static const char go_marker[] = "runtime.goexit.abi0";
/* Go's allocator. Since Go 1.27, code whose objects are small calls functions for their size class
 * instead, "runtime.mallocgcSmallNoScanSC2"; and so does the allocator itself. */
static const char go_allocator[] = "runtime.mallocgc";
#define GO_SIZE_CLASS "SC"

static const char *const prefixes[] = { "", "je_", "tc_", "mi_" };

/* The beginnings of names of files that have an allocator, or a runtime. A program can have one,
 * too. */
static const char *const libraries[] = { "libc.so",	"libc-",       "ld-musl-",    "libc.musl-",
					 "libjemalloc", "libtcmalloc", "libmimalloc", "libjvm.so",
					 "libnode.so",	"libpython",   "libruby",     "libphp" };

struct file {
	char *path; /* as we can open it; owned */
	dev_t dev;
	ino_t ino;
	bool may_have_functions;
};

/* Processes can map files without end: 256 KiB. What is beyond is looked at for each process that
 * maps it. */
#define SEEN_MAX 16384u

/* A file as /proc/PID/maps names it, so that it is looked at once. */
struct identity {
	uint64_t ino, dev;
};

struct finding {
	struct sb_probes *probes;
	const struct sb_alloc_ask *ask;
	struct sb_alloc_found *found;
	struct sb_reason *reason;
	SB_VEC(struct file) files;
	SB_VEC(struct identity)
	seen; /* at most SEEN_MAX: of others, files are compared by what they are */
	struct sb_index by_identity; /* of `seen` */
	uint32_t tgid;		     /* whose mappings are read */
	bool is_first;		     /* no file of it was seen yet: it is the program itself */
	/* Of the file whose functions are looked at; own heaps of which no function was found. */
	unsigned int is;
	uint32_t own_heaps;
};

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && sb_streq(text + len - end_len, end);
}

static bool is_of_library(const char *path)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(libraries); i++)
		if (sb_begins(sb_base_name(path), libraries[i]))
			return true;
	return false;
}

static int add_file(struct finding *finding, char *path, bool may_have_functions)
{
	const struct sb_reader_file where = { .place = SB_READER_HERE, .path = path };
	struct file file = { .path = path, .may_have_functions = may_have_functions };
	struct stat st;
	size_t i;
	int err;

	if (sb_reader_stat(&where, &st)) {
		free(path);
		return 0;
	}
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	/* A library can be found by several paths, and would be probed twice. */
	for (i = 0; i < finding->files.nr; i++)
		if (finding->files.at[i].dev == file.dev && finding->files.at[i].ino == file.ino) {
			finding->files.at[i].may_have_functions |= may_have_functions;
			free(path);
			return 0;
		}
	if (i == SB_ALLOC_FILES_MAX) {
		finding->found->nr_files_skipped++;
		free(path);
		return 0;
	}
	err = sb_vec_push(&finding->files, file);
	if (err)
		free(path);
	return err;
}

/* Return: whether it was seen before; -ENOMEM. */
static int note_identity(struct finding *finding, const struct sb_maps_line *line)
{
	const struct identity identity = { line->ino, (uint64_t)line->maj << 32 | line->min };
	const uint64_t hash = sb_hash(&identity, sizeof(identity), 0);

	sb_index_each(it, &finding->by_identity, hash)
		if (finding->seen.at[it.id].ino == identity.ino &&
		    finding->seen.at[it.id].dev == identity.dev)
			return 1;
	if (finding->seen.nr == SEEN_MAX)
		return 0;
	return sb_index_push(&finding->by_identity, hash, &finding->seen, identity);
}

static int look_at_mapping(void *arg, const struct sb_maps_line *line)
{
	struct finding *finding = arg;
	char mapped[PATH_MAX], *path;
	bool is_program;
	int err;

	if (!line->is_exec || !line->ino || line->path[0] != '/' ||
	    line->path_len >= sizeof(mapped))
		return 0;
	is_program = finding->is_first;
	finding->is_first = false;
	err = note_identity(finding, line);
	if (err)
		return err < 0 ? err : 0;
	memcpy(mapped, line->path, line->path_len);
	mapped[line->path_len] = '\0';
	/* What is deleted, or not ours to open, has no probe for us. */
	if (sb_library_of_mapping(finding->tgid, mapped, line->ino, &path))
		return 0;
	return add_file(finding, path, is_program || is_of_library(mapped));
}

static int look_at_processes(struct finding *finding)
{
	const struct sb_alloc_ask *ask = finding->ask;
	size_t i;
	int err = 0;

	for (i = 0; i < ask->nr_tgids && !err; i++) {
		finding->tgid = ask->tgids[i];
		finding->is_first = true;
		err = sb_procfs_maps(finding->tgid, look_at_mapping, finding);
		/* Of many, some end meanwhile or are closed to us; of a long list the lines up to
		 * there were looked at. */
		if (err == -EFBIG || err == -EBADMSG || (err != -ENOMEM && ask->nr_tgids > 1))
			err = 0;
	}
	if (err == -ESRCH)
		sb_reason_set(finding->reason, 0, "there is no process %u; it may have ended",
			      finding->tgid);
	else if (err)
		sb_reason_set(finding->reason, err, "cannot read the mappings of process %u",
			      finding->tgid);
	return err;
}

/* @are_all: all may have the functions; else the first one, and those that are called like it. */
static int look_at_named(struct finding *finding, const char *const *files, size_t nr, bool are_all)
{
	struct sb_event_spec spec = { .kind = SB_PROBE_USER };
	struct sb_reason ignored = {};
	struct sb_resolving to = { .text = spec.file, .spec = &spec, .reason = &ignored };
	char *path;
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		snprintf(spec.file, sizeof(spec.file), "%s", files[i]);
		if (!sb_library_find(&to, &path))
			err = add_file(finding, path, are_all || !i || is_of_library(path));
	}
	return err;
}

/* Add a place for what @row begins, if it is to be sampled or followed, and one for what it
 * ends. */
static int add_places(struct sb_resolving *to, const struct allocating *row,
		      const struct sb_probe *probe)
{
	struct finding *finding = to->arg;
	struct sb_probes *probes = finding->probes;
	const struct sb_preset *preset = finding->ask->is_of_objects ? &row->objects : &row->bytes;
	bool is_held = finding->ask->is_held;
	struct sb_probe place = *probe;
	int err = 0;

	/* To give back NULL gives back nothing. */
	place.behind = !row->bytes.weight && probe->cheap_of_pointer ? probe->cheap_of_pointer
								     : probe->cheap;
	place.offset += place.behind;
	to->preset = preset;
	if (preset->weight && (preset->key || !is_held)) {
		probes->roles = is_held ? SB_EVENT_BEGINS | SB_EVENT_HELD : 0;
		place.is_call = is_held && probe->kind == SB_PROBE_USER;
		err = sb_probes_take(probes, to, PLACE_NAME, &place);
	}
	place.is_call = false;
	probes->roles = SB_EVENT_ENDS | SB_EVENT_HELD;
	if (!err && row->freed && is_held)
		err = sb_probes_take(probes, to, PLACE_NAME, &place);
	probes->roles = 0;
	return err;
}

static const char *without_prefix(const char *name)
{
	size_t i;

	for (i = 1; i < SB_ARRAY_SIZE(prefixes); i++)
		if (sb_begins(name, prefixes[i]))
			return name + strlen(prefixes[i]);
	return name;
}

/* Return: the length of the name without its size class, if it is a function of Go's allocator;
 * otherwise of all of it. */
static size_t len_without_class(const char *name)
{
	const size_t len = strlen(name), class_len = strlen(GO_SIZE_CLASS);
	size_t at = len;

	if (!sb_begins(name, go_allocator))
		return len;
	while (name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	if (at == len || strncmp(name + at - class_len, GO_SIZE_CLASS, class_len) != 0)
		return len;
	return at - class_len;
}

/* A heap whose own function is probed is seen. */
static void note_seen(struct finding *finding, const char *function)
{
	size_t i;

	for (i = 0; sb_own_heaps[i].name; i++)
		if (sb_own_heaps[i].seen_by && ends_with(function, sb_own_heaps[i].seen_by)) {
			finding->own_heaps &= ~(1u << i);
			finding->found->lumps |= sb_own_heaps[i].lump ? 1u << i : 0;
		}
}

static int found_function(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	struct finding *finding = to->arg;
	const size_t before = finding->probes->places.nr;
	const char *bare = without_prefix(probe->function);
	const size_t len = len_without_class(bare);
	size_t i;
	int err;

	(void)name;
	for (i = 0; i < SB_ARRAY_SIZE(functions); i++)
		if (functions[i].of & finding->is && sb_text_is(bare, len, functions[i].name))
			break;
	if (i == SB_ARRAY_SIZE(functions))
		return 0;
	err = add_places(to, &functions[i], probe);
	/* None, if it is to be followed and cannot be. */
	if (finding->probes->places.nr == before)
		return err;
	to->nr_found++;
	note_seen(finding, functions[i].of == GO_BY_SIZE ? go_allocator : functions[i].name);
	return err;
}

static int found_marker(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	struct finding *finding = to->arg;
	size_t i;

	(void)name;
	for (i = 0; i < SB_ARRAY_SIZE(markers); i++)
		if (sb_streq(markers[i], probe->function))
			finding->is = (finding->is & (GO | GO_BY_SIZE)) | OTHERS;
	if (sb_streq(go_marker, probe->function))
		finding->is |= GO;
	if (probe->function[len_without_class(probe->function)])
		finding->is |= GO_BY_SIZE;
	for (i = 0; sb_own_heaps[i].name; i++)
		if (sb_streq(sb_own_heaps[i].function, probe->function))
			finding->own_heaps |= 1u << i;
	return 0;
}

/* Its table of functions is there, but no symbol. */
static void note_stripped_go(struct finding *finding, const struct file *file)
{
	size_t i;

	for (i = 0; sb_own_heaps[i].name; i++)
		if (sb_streq(sb_own_heaps[i].function, go_allocator))
			finding->own_heaps |= 1u << i;
	snprintf(finding->found->stripped_go, sizeof(finding->found->stripped_go), "%s",
		 file->path);
}

static int found_probe(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	size_t i;

	(void)name;
	for (i = 0; i < SB_ARRAY_SIZE(probes_of_producers); i++) {
		if (!sb_streq(probes_of_producers[i].name, probe->function))
			continue;
		to->nr_found++;
		return add_places(to, &probes_of_producers[i], probe);
	}
	return 0;
}

/* Add the places of a file. What is no ELF file, or has none, is no error. */
static int look_at_file(struct finding *finding, const struct file *file,
			enum sb_alloc_source source)
{
	struct sb_event_spec spec = { .kind = source == SB_ALLOC_PRODUCERS ? SB_PROBE_USDT
									   : SB_PROBE_USER,
				      .name = "*" };
	struct sb_reason why = {};
	char text[SB_EVENT_FILE_BYTES + 8];
	struct sb_resolving to = {
		.text = text, .spec = &spec, .arg = finding, .reason = &why, .is_list = true
	};
	const size_t first = finding->probes->places.nr;
	int err;

	if (strlen(file->path) >= sizeof(spec.file) ||
	    (source == SB_ALLOC_FUNCTIONS && !file->may_have_functions))
		return 0;
	snprintf(spec.file, sizeof(spec.file), "%s", file->path);
	/* As a pattern: a function that the kernel cannot hook is left out, and told. */
	snprintf(text, sizeof(text), "%s:*", file->path);
	if (source == SB_ALLOC_PRODUCERS)
		snprintf(spec.provider, sizeof(spec.provider), PROVIDER);
	finding->is = sb_begins(sb_base_name(file->path), "ld-musl-") ||
				      sb_begins(sb_base_name(file->path), "libc.musl-")
			      ? MUSL
			      : GLIBC;
	finding->own_heaps = 0;
	to.found = source == SB_ALLOC_PRODUCERS ? found_probe : found_marker;
	if (source == SB_ALLOC_FUNCTIONS)
		(void)sb_resolve_user(&to);
	if (to.is_go && !finding->own_heaps)
		note_stripped_go(finding, file);
	if (finding->is & GO_BY_SIZE)
		finding->is &= ~(unsigned int)GO;
	if (source == SB_ALLOC_FUNCTIONS) {
		to.found = found_function;
		to.wants_jumps = true;
	}
	err = source == SB_ALLOC_PRODUCERS ? sb_resolve_usdt(&to) : sb_resolve_user(&to);
	/* operator new[] of jemalloc jumps to operator new, and would be counted twice. */
	sb_probes_drop_jumps(finding->probes, first);
	finding->found->own_heaps |= finding->own_heaps;
	if (to.nr_found) {
		if (!finding->found->nr_files++)
			snprintf(finding->found->file, sizeof(finding->found->file), "%s",
				 file->path);
		finding->found->source = source;
	}
	if (err != -EINVAL && err != -ENOMEM)
		return 0;
	if (sb_reason_is_set(&why))
		sb_reason_set(finding->reason, why.err, "%s", why.text);
	return err;
}

/* Tracepoints of the kernel's allocators: what begins a pair, and what ends it. Those of a layer
 * have the same fields. */
struct kernel_layer {
	const char *begins[2]; /* the second one is there before Linux 6.1 only */
	const char *ends[2];
	const char *when, *bytes, *key; /* bytes: NULL: those of 2^order pages */
};

static const struct kernel_layer kernel_layers[SB_ALLOC_LAYER_MAX] = {
	/* kfree() takes what kmem_cache_alloc() gave, too. */
	[SB_ALLOC_KMALLOC] = { { "kmem:kmalloc", "kmem:kmalloc_node" },
			       { "kmem:kfree", "kmem:kmem_cache_free" },
			       NULL,
			       "bytes_alloc",
			       "ptr" },
	[SB_ALLOC_SLAB] = { { "kmem:kmem_cache_alloc", "kmem:kmem_cache_alloc_node" },
			    { "kmem:kmem_cache_free", "kmem:kfree" },
			    NULL,
			    "bytes_alloc",
			    "ptr" },
	/* A page without a number is none. The key is not 0. */
	[SB_ALLOC_PAGES] = { { "kmem:mm_page_alloc", NULL },
			     { "kmem:mm_page_free", NULL },
			     "pfn + 1",
			     NULL,
			     "pfn" },
};

static int add_kernel_event(struct sb_probes *probes, const char *event, uint32_t roles,
			    bool is_optional, struct sb_reason *reason)
{
	struct sb_reason why = {};
	int err;

	if (!event)
		return 0;
	probes->roles = roles;
	err = sb_probes_add(probes, event, &why);
	probes->roles = 0;
	if (err && !(is_optional && err == -ENOENT)) {
		sb_reason_set(reason, why.err, "%s", why.text);
		return err;
	}
	return 0;
}

static int find_in_kernel(struct sb_probes *probes, const struct sb_alloc_ask *ask,
			  struct sb_alloc_found *ret, struct sb_reason *reason)
{
	const struct kernel_layer *layer = &kernel_layers[ask->layer];
	const uint32_t held = SB_EVENT_HELD | SB_EVENT_OF_KERNEL;
	char of_pages[32];
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(layer->begins) && !err; i++)
		err = add_kernel_event(probes, layer->begins[i],
				       ask->is_held ? SB_EVENT_BEGINS | held : 0, i, reason);
	for (i = 0; i < SB_ARRAY_SIZE(layer->ends) && ask->is_held && !err; i++)
		err = add_kernel_event(probes, layer->ends[i], SB_EVENT_ENDS | held, false, reason);
	snprintf(of_pages, sizeof(of_pages), "%ld << order", sysconf(_SC_PAGESIZE));
	err = err
		      ?: sb_probes_compile(probes, layer->when,
					   ask->is_of_objects ? OBJECT
					   : layer->bytes     ? layer->bytes
							      : of_pages,
					   NULL, reason);
	if (!err && ask->is_held)
		err = sb_probes_compile_keys(probes, layer->key, NULL, reason);
	if (err)
		return err;
	ret->source = SB_ALLOC_KERNEL;
	snprintf(ret->file, sizeof(ret->file), "%s", layer->begins[0]);
	return 0;
}

int sb_alloc_find(struct sb_probes *probes, const struct sb_alloc_ask *ask,
		  struct sb_alloc_found *ret, struct sb_reason *reason)
{
	struct finding finding = { .probes = probes, .ask = ask, .found = ret, .reason = reason };
	enum sb_alloc_source source;
	size_t i;
	int err;

	*ret = (struct sb_alloc_found){};
	if (ask->layer)
		return find_in_kernel(probes, ask, ret, reason);
	err = look_at_processes(&finding);
	err = err ?: look_at_named(&finding, ask->files, ask->nr_files, true);
	err = err ?: look_at_named(&finding, ask->of_command, ask->nr_of_command, false);
	for (source = SB_ALLOC_PRODUCERS; source <= SB_ALLOC_FUNCTIONS && !err && !ret->nr_files;
	     source++)
		for (i = 0; i < finding.files.nr && !err; i++)
			err = look_at_file(&finding, &finding.files.at[i], source);
	for (i = 0; i < finding.files.nr; i++)
		free(finding.files.at[i].path);
	sb_vec_release(&finding.files);
	sb_vec_release(&finding.seen);
	sb_index_release(&finding.by_identity);
	if (!err && ret->nr_files)
		err = sb_probes_compile(probes, NULL, NULL, NULL, reason);
	if (!err && ret->nr_files)
		err = sb_probes_compile_keys(probes, NULL, NULL, reason);
	return err && !sb_reason_is_set(reason)
		       ? sb_reason_set(
				 reason, err,
				 "cannot look for allocators in the files that the targets map")
		       : err;
}
