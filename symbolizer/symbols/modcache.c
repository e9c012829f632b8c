// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The modules of the cache: what they take of memory and descriptors, and which are evicted for
 * others. modcache_files.c has the files, modcache_open.c the ways from a file to its module.
 */
#include "symbolizer/symbols/modcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/time.h"
#include "symbolizer/symbols/modcache_priv.h"

/* An unwind table that was not used for so long is freed. */
#define RESTED_NS	  (10 * SB_NS_PER_SEC)
/* Usual size of headers: some 40 sections, and their names. */
#define HEADER_BYTES_FAIR (64u << 10)

/* Of all descriptors this process may have, a quarter for pins and a quarter for modules. */
static void set_fd_budget(struct sb_modcache *cache)
{
	struct rlimit limit;
	uint64_t quarter = 256;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		quarter = limit.rlim_cur / 4;
	cache->pins_max = quarter < 16384 ? (uint32_t)quarter : 16384;
	/* A module may hold two, but few are busy at a time. */
	cache->modules_max =
		quarter < SB_MODCACHE_MODULES_MAX ? (uint32_t)quarter : SB_MODCACHE_MODULES_MAX;
	if (!cache->modules_max)
		cache->modules_max = 1;
}

static void reclaim(void *arg, const struct sb_budget *keep_budget, size_t bytes);

int sb_modcache_init(struct sb_modcache *cache, const struct sb_module_opts *opts)
{
	struct sb_file none = { .fd = -1, .kind = SB_MAP_SPECIAL };

	*cache = (struct sb_modcache){ .opts = *opts };
	cache->heavy_bytes_max =
		opts->sym->heavy_bytes_max ? opts->sym->heavy_bytes_max : SB_MODCACHE_HEAVY_BYTES;
	set_fd_budget(cache);
	if (opts->pool) {
		opts->pool->reclaim = reclaim;
		opts->pool->reclaim_arg = cache;
	}
	return sb_vec_push(&cache->files, none);
}

void sb_modcache_release(struct sb_modcache *cache)
{
	size_t i;

	for (i = 0; i < cache->files.nr; i++) {
		sb_modcache_unpin(cache, &cache->files.at[i]);
		free(cache->files.at[i].path);
	}
	for (i = 0; i < cache->modules.nr; i++) {
		sb_module_free(cache->modules.at[i]->module);
		free(cache->modules.at[i]);
	}
	sb_vec_release(&cache->files);
	sb_vec_release(&cache->free_files);
	sb_vec_release(&cache->modules);
	sb_index_release(&cache->files_index);
}

struct sb_cached_module *sb_modcache_find_id(const struct sb_modcache *cache, uint32_t id)
{
	size_t at = sb_bisect(cache->modules.nr, i, cache->modules.at[i]->id < id);

	return at < cache->modules.nr && cache->modules.at[at]->id == id ? cache->modules.at[at]
									 : NULL;
}

static void drop_module(struct sb_modcache *cache, size_t i)
{
	struct sb_cached_module *module = cache->modules.at[i];

	/* Files that refer to its id will find that it is gone. */
	cache->light_bytes -= module->light_bytes;
	cache->heavy_bytes -= module->heavy_bytes;
	sb_module_free(module->module);
	free(module);
	memmove(&cache->modules.at[i], &cache->modules.at[i + 1],
		(cache->modules.nr - i - 1) * sizeof(*cache->modules.at));
	cache->modules.nr--;
	cache->nr_evictions++;
}

/* Return: the index of the least recently used module. There must be one. */
static size_t find_oldest(const struct sb_modcache *cache)
{
	size_t i, oldest = 0;

	for (i = 1; i < cache->modules.nr; i++)
		if (cache->modules.at[i]->used < cache->modules.at[oldest]->used)
			oldest = i;
	return oldest;
}

static size_t heavy_bytes_of(const struct sb_cached_module *module)
{
	return module->heavy_bytes;
}

static size_t light_bytes_of(const struct sb_cached_module *module)
{
	return module->light_bytes;
}

/* Return: the least recently used module, other than @keep, that has any such bytes; or NULL. */
static struct sb_cached_module *find_idle(const struct sb_modcache *cache,
					  const struct sb_cached_module *keep,
					  size_t (*bytes_of)(const struct sb_cached_module *module))
{
	struct sb_cached_module *oldest = NULL, *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (module != keep && bytes_of(module) && (!oldest || module->used < oldest->used))
			oldest = module;
	}
	return oldest;
}

int sb_modcache_add_module(struct sb_modcache *cache, struct sb_module *module,
			   const struct sb_file_stamp *stamp, struct sb_cached_module **ret_module)
{
	struct sb_cached_module *new;
	int err;

	if (cache->modules.nr >= cache->modules_max)
		drop_module(cache, find_oldest(cache));
	new = calloc(1, sizeof(*new));
	err = new ? sb_vec_push(&cache->modules, new) : -ENOMEM;
	if (err) {
		free(new);
		sb_module_free(module);
		return err;
	}
	new->module = module;
	new->id = ++cache->last_id;
	new->used = ++cache->tick;
	new->stamp = *stamp;
	cache->nr_opened++;
	*ret_module = new;
	return 0;
}

static void drop_heavy(struct sb_modcache *cache, struct sb_cached_module *module)
{
	sb_module_drop_heavy(module->module);
	sb_module_settle(module->module);
	cache->heavy_bytes -= module->heavy_bytes;
	module->heavy_bytes = 0;
	cache->nr_evictions++;
}

static void drop_light(struct sb_modcache *cache, struct sb_cached_module *module)
{
	sb_module_drop_light(module->module);
	sb_module_settle(module->module);
	cache->light_bytes -= module->light_bytes;
	module->light_bytes = 0;
	cache->nr_evictions++;
}

void sb_modcache_account(struct sb_modcache *cache, struct sb_cached_module *module)
{
	struct sb_cached_module *oldest;

	cache->light_bytes -= module->light_bytes;
	cache->heavy_bytes -= module->heavy_bytes;
	module->light_bytes = sb_module_light_bytes(module->module);
	module->heavy_bytes = sb_module_heavy_bytes(module->module);
	sb_module_settle(module->module);
	cache->light_bytes += module->light_bytes;
	cache->heavy_bytes += module->heavy_bytes;
	if (cache->heavy_bytes > cache->heavy_bytes_peak)
		cache->heavy_bytes_peak = cache->heavy_bytes;
	while (cache->heavy_bytes > cache->heavy_bytes_max) {
		/* This module alone exceeds the bound. */
		oldest = find_idle(cache, module, heavy_bytes_of);
		if (!oldest)
			oldest = find_idle(cache, NULL, heavy_bytes_of);
		if (!oldest)
			break;
		drop_heavy(cache, oldest);
	}
	/* The file stays open, because it may have been deleted. */
	while (cache->light_bytes > cache->heavy_bytes_max) {
		oldest = find_idle(cache, module, light_bytes_of);
		if (!oldest)
			break;
		drop_light(cache, oldest);
	}
}

/*
 * Headers that are larger than usual. Such a module can be closed, and is opened again if
 * necessary.
 */
static size_t odd_header_bytes_of(const struct sb_cached_module *module)
{
	size_t bytes = sb_module_header_bytes(module->module);

	return bytes > HEADER_BYTES_FAIR ? bytes : 0;
}

static void close_module(struct sb_modcache *cache, struct sb_cached_module *module)
{
	size_t i;

	for (i = 0; cache->modules.at[i] != module; i++)
		;
	drop_module(cache, i);
}

/*
 * See struct sb_budget_pool. What is cheapest to load again is evicted first, least recently used
 * first.
 */
static void reclaim(void *arg, const struct sb_budget *keep_budget, size_t bytes)
{
	static const struct {
		size_t (*bytes_of)(const struct sb_cached_module *module);
		void (*drop)(struct sb_modcache *cache, struct sb_cached_module *module);
	} kinds[] = {
		{ light_bytes_of, drop_light },
		{ heavy_bytes_of, drop_heavy },
		{ odd_header_bytes_of, close_module },
	};
	struct sb_modcache *cache = arg;
	const struct sb_budget_pool *pool = cache->opts.pool;
	const struct sb_cached_module *keep = NULL;
	struct sb_cached_module *oldest;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++)
		if (sb_module_is_charged(cache->modules.at[i]->module, keep_budget))
			keep = cache->modules.at[i];
	for (i = 0; i < SB_ARRAY_SIZE(kinds); i++) {
		while (pool->bytes + bytes > pool->bytes_max) {
			oldest = find_idle(cache, keep, kinds[i].bytes_of);
			if (!oldest)
				break;
			kinds[i].drop(cache, oldest);
		}
	}
}

void sb_modcache_rest(struct sb_modcache *cache, uint64_t now_ns)
{
	bool is_first = !cache->now_ns;
	struct sb_cached_module *module;
	size_t i;

	if (now_ns < cache->now_ns + RESTED_NS / 2)
		return;
	cache->now_ns = now_ns;
	if (is_first)
		return;
	for (i = 0; i < cache->modules.nr; i++) {
		module = cache->modules.at[i];
		if (!module->table_ns || now_ns - module->table_ns < RESTED_NS)
			continue;
		sb_module_drop_table(module->module);
		module->table_ns = 0;
		sb_modcache_account(cache, module);
	}
}

void sb_modcache_drop_idle(struct sb_modcache *cache)
{
	struct sb_cached_module *module;
	size_t i;

	for (i = 0; i < cache->modules.nr; i++)
		cache->modules.at[i]->is_mapped = false;
	for (i = 1; i < cache->files.nr; i++) {
		module = sb_modcache_find_id(cache, cache->files.at[i].module_id);
		if (module)
			module->is_mapped = true;
	}
	for (i = cache->modules.nr; i--;) {
		module = cache->modules.at[i];
		if (!module->is_mapped && module->used <= cache->tick_forgot)
			drop_module(cache, i);
	}
	cache->tick_forgot = cache->tick;
}
