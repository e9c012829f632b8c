// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf store: prints statistics of a store, checks it, prunes it, or merges another one into
 * it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/recorder_opts.h"
#include "cli/store_opts.h"
#include "cli/wrap.h"
#include "serve/store_json.h"
#include "store/check.h"
#include "store/segment.h"

#define VALUES_SHOWN 5
/* What ended so long ago is summed, if anybody writes. */
#define SETTLE_S     60

enum { TABLE, JSON };

static const struct sb_opt_word formats[] = { { "table", TABLE }, { "json", JSON }, {} };

struct store_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args store;
	const char *older;
	struct sb_recorder_config retain; /* keep_s and has_keep of it */
	uint64_t bytes_max;
	uint32_t format;
	bool cardinality, dry_run;
};

/* clang-format off */
const struct sb_opt sb_store_rows[] = {
	SB_STORE_DIR_ROW(struct store_opts, store),
	{ .name = "cardinality", .type = SB_OPT_ON, .group = SB_OPT_STORE,
	  .offset = offsetof(struct store_opts, cardinality),
	  .help = "stat: show how many values each tag has, and the heaviest values" },
	{ .name = "older", .metavar = "TIME", .type = SB_OPT_TIME, .group = SB_OPT_STORE,
	  .offset = offsetof(struct store_opts, older),
	  .help = "prune: delete files of all resolutions that are older than TIME: 30d, "
		  "1y, 2026-01-01" },
	{ .name = "retain", .metavar = "LIST", .type = SB_OPT_PARSED, .group = SB_OPT_STORE,
	  .offset = offsetof(struct store_opts, retain), .parse = sb_recorder_parse_retain,
	  .help = "prune: how long to keep blocks of each resolution, such as "
		  "10s=7d,10min=30d,1h=1y,1d=0 (0: forever)" },
	{ .name = "max-size", .metavar = "BYTES", .type = SB_OPT_BYTES, .group = SB_OPT_STORE,
	  .offset = offsetof(struct store_opts, bytes_max), .min = 1,
	  .help = "prune: delete the oldest files of the finest resolution until the store "
		  "is at most this large: 2G" },
	{ .name = "dry-run", .type = SB_OPT_ON, .group = SB_OPT_STORE,
	  .offset = offsetof(struct store_opts, dry_run),
	  .help = "prune: only print what would be deleted" },
	{ .name = "format", .metavar = "NAME", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct store_opts, format), .words = formats,
	  .help = "stat: table (default), json" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

static int failed(int err, const char *dir)
{
	if (err == -EFBIG)
		return sb_fail(
			SB_EXIT_FAILED, 0,
			"cannot read the store at '%s': one of its files is larger than 1 GiB or "
			"has more than %u blocks, or a directory has more than %u files; "
			"stackbpf does not write such files, so remove them",
			dir, SB_SEGMENT_BLOCKS_MAX, SB_STORE_FILES_MAX);
	return sb_fail(SB_EXIT_FAILED, err, "cannot read the store at '%s'", dir);
}

static const char *dir_of(const struct store_opts *fields)
{
	return fields->store.dir ? fields->store.dir : SB_STORE_DIR_DEFAULT;
}

/* stat */

struct level_stat {
	uint64_t nr_files, bytes, nr_blocks, nr_rows, nr_nodes;
	int64_t from_s, to_s;
};
struct stat_sums {
	struct level_stat level[SB_STORE_LEVELS];
	uint64_t nr_bad; /* files with anything wrong */
};

static bool is_injured(const struct sb_store_file_info *info)
{
	return info->err || info->nr_damaged_dicts || info->nr_skipped_bytes ||
	       info->nr_damaged_blocks || info->nr_lost_entries || info->lost_weight;
}

static void add_file(void *arg, const struct sb_store_file_info *info)
{
	struct stat_sums *sums = arg;
	struct level_stat *level = &sums->level[info->level];

	level->nr_files++;
	level->bytes += info->bytes;
	level->nr_blocks += info->nr_blocks;
	level->nr_rows += info->nr_rows;
	level->nr_nodes += info->nr_nodes;
	if (info->from_s && (!level->from_s || info->from_s < level->from_s))
		level->from_s = info->from_s;
	if (info->to_s > level->to_s)
		level->to_s = info->to_s;
	sums->nr_bad += is_injured(info);
}

static void print_stat(const struct stat_sums *sums)
{
	uint64_t bytes = 0;
	size_t i;

	printf("LEVEL   FILES        BYTES     BLOCKS  BYTES/BLOCK       ROWS\n");
	for (i = 0; i < SB_STORE_LEVELS; i++) {
		const struct level_stat *level = &sums->level[i];

		bytes += level->bytes;
		printf("%-6s %6" PRIu64 " %12" PRIu64 " %10" PRIu64 " %12" PRIu64 " %10" PRIu64
		       "\n",
		       sb_levels[i].name, level->nr_files, level->bytes, level->nr_blocks,
		       level->nr_blocks ? level->bytes / level->nr_blocks : 0, level->nr_rows);
	}
	printf("all    %19" PRIu64 "\n", bytes);
}

/* A table of its own: beside the sizes it would be wider than 80 columns. */
static void print_ranges(const struct stat_sums *sums)
{
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES];
	size_t i;

	printf("\nLEVEL   FROM                       TO\n");
	for (i = 0; i < SB_STORE_LEVELS; i++) {
		const struct level_stat *level = &sums->level[i];

		if (!level->nr_blocks)
			continue;
		sb_ask_print_time(level->from_s, from);
		sb_ask_print_time(level->to_s, to);
		printf("%-6s  %-25s  %s\n", sb_levels[i].name, from, to);
	}
}

static void print_extents(const struct sb_store_extent *extents, int nr)
{
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES];
	int i, width = 8;

	for (i = 0; i < nr; i++)
		if (width < (int)strlen(extents[i].kind.name))
			width = (int)strlen(extents[i].kind.name);
	printf("\n%-*s UNIT           HZ  FROM                       TO\n", width, "KIND");
	for (i = 0; i < nr; i++) {
		struct sb_store_kind kind = extents[i].kind;

		sb_replace_controls(kind.name, strlen(kind.name));
		sb_replace_controls(kind.unit, strlen(kind.unit));
		sb_ask_print_time(extents[i].from_s, from);
		sb_ask_print_time(extents[i].to_s, to);
		printf("%-*s %-12s %4" PRIu64 "  %-25s  %s\n", width, kind.name, kind.unit,
		       extents[i].hz, from, to);
	}
}

static void json_stat(struct sb_json *json, const struct stat_sums *sums,
		      const struct sb_store_extent *extents, int nr)
{
	size_t i;

	sb_json_object(json, NULL);
	sb_json_array(json, "levels");
	for (i = 0; i < SB_STORE_LEVELS; i++) {
		const struct level_stat *level = &sums->level[i];

		sb_json_object(json, NULL);
		sb_json_string(json, "name", sb_levels[i].name);
		sb_json_u64(json, "files", level->nr_files);
		sb_json_u64(json, "bytes", level->bytes);
		sb_json_u64(json, "blocks", level->nr_blocks);
		sb_json_u64(json, "rows", level->nr_rows);
		sb_json_close(json);
	}
	sb_json_close(json);
	sb_json_extents(json, "kinds", extents, nr);
	sb_json_u64(json, "damaged_files", sums->nr_bad);
}

static int print_tags(const struct sb_tags *tags)
{
	size_t i, k;

	for (i = 0; i < tags->keys.nr; i++) {
		const struct sb_tag_counts *counts = &tags->keys.at[i];
		sb_cleanup(sb_str_release) struct sb_str line = {};
		int err = sb_str_addf(&line, "%-12s %8llu%s%s", counts->key,
				      (unsigned long long)(counts->values.nr + counts->nr_more),
				      counts->has_more ? " or more" : "",
				      counts->is_wide ? " (10 s only)" : "");

		for (k = 0; k < counts->values.nr && k < VALUES_SHOWN && !err; k++)
			err = sb_str_addf(&line, "%s %s", k ? "," : " ",
					  counts->values.at[k].value);
		if (!err && counts->values.nr + counts->nr_more > VALUES_SHOWN)
			err = sb_str_add(&line, ", ...");
		if (err)
			return err;
		sb_replace_controls(line.s, line.len);
		puts(line.s);
	}
	if (tags->has_more)
		puts("... and tags beyond the first 256, which are not listed");
	return 0;
}

/* Of each kind, over all of its time. */
static int print_cardinality(struct sb_store *store, const struct sb_store_extent *extents, int nr)
{
	int i, err = 0;

	for (i = 0; i < nr && !err; i++) {
		struct sb_ask ask = { .from_s = extents[i].from_s, .to_s = extents[i].to_s };
		sb_cleanup(sb_tags_freep) struct sb_tags *tags = NULL;
		struct sb_store_kind kind = extents[i].kind;

		err = sb_ask_set_kind(&ask, kind.name);
		if (!err)
			err = sb_store_tags(store, &ask, VALUES_SHOWN, &tags);
		sb_replace_controls(kind.name, strlen(kind.name));
		printf("\n%s: TAG     VALUES\n", kind.name);
		if (!err)
			err = print_tags(tags);
		sb_ask_release(&ask);
	}
	return err;
}

static int cmd_stat(const struct store_opts *fields)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL;
	struct sb_json json = { .put = sb_json_put_file, .arg = stdout };
	struct stat_sums sums = {};
	const struct sb_store_look look = { .on_file = add_file, .arg = &sums };
	int status = sb_store_args_open(&fields->store, &store), nr, err;

	if (status >= 0)
		return status;
	err = sb_store_look(store, &look);
	nr = err ? err : sb_store_extents(store, extents);
	if (nr < 0)
		return failed(nr, dir_of(fields));
	if (fields->format == JSON) {
		json_stat(&json, &sums, extents, nr);
		err = sb_json_end(&json);
	} else {
		print_stat(&sums);
		print_ranges(&sums);
		print_extents(extents, nr);
		if (fields->cardinality)
			err = print_cardinality(store, extents, nr);
	}
	if (sums.nr_bad)
		sb_warn("%" PRIu64 " %s damaged; 'stackbpf store check' lists the damage",
			sums.nr_bad, sb_plural(sums.nr_bad, "file is", "files are"));
	return err ? failed(err, dir_of(fields)) : SB_EXIT_DATA;
}

/* check */

struct check {
	uint64_t nr_files, nr_blocks, nr_injured;
};

static void on_damaged(void *arg, const char *name, const struct sb_record *block)
{
	struct sb_store_kind kind = block->kind;
	char from[SB_ASK_TIME_BYTES];

	sb_replace_controls(kind.name, strlen(kind.name));
	sb_ask_print_time(block->begin_s, from);
	printf("%s: the block of kind %s at %s (%" PRIu32 " s) is damaged: its samples are "
	       "missing from results\n",
	       name, kind.name, from, block->seconds);
}

static void check_file(void *arg, const struct sb_store_file_info *info)
{
	struct check *check = arg;

	check->nr_files++;
	check->nr_blocks += info->nr_blocks;
	check->nr_injured += is_injured(info);
	if (info->err)
		printf("%s: the file cannot be read: %s\n", info->name, strerror(-info->err));
	if (info->nr_skipped_bytes && info->nr_skipped_bytes != info->nr_tail_bytes)
		printf("%s: %" PRIu64 " bytes are not valid records: blocks are missing, or "
		       "a writer was interrupted\n",
		       info->name, info->nr_skipped_bytes);
	if (info->nr_damaged_dicts || info->nr_lost_entries)
		printf("%s: %" PRIu64 " %s damaged: %" PRIu64 " %s shown as \"(lost)\"\n",
		       info->name, info->nr_damaged_dicts,
		       sb_plural(info->nr_damaged_dicts, "part of the dictionary is",
				 "parts of the dictionary are"),
		       info->nr_lost_entries,
		       sb_plural(info->nr_lost_entries, "name, stack or tag is",
				 "names, stacks and tags are"));
	if (info->lost_weight)
		printf("%s: stacks with a weight of %" PRIu64 " are lost\n", info->name,
		       info->lost_weight);
	if (info->nr_tail_bytes)
		printf("%s: the last %" PRIu64 " bytes are an incomplete record: it is being "
		       "written, or the writer was interrupted; the next writer removes it\n",
		       info->name, info->nr_tail_bytes);
}

static void on_wrong_sum(void *arg, const struct sb_store_wrong_sum *sum)
{
	struct sb_store_kind kind = sum->kind;
	char from[SB_ASK_TIME_BYTES];

	sb_replace_controls(kind.name, strlen(kind.name));
	sb_ask_print_time(sum->begin_s, from);
	if (sum->is_missing)
		printf("%s: there is no aggregate of kind %s at %s (%" PRIu32 " s) of the "
		       "blocks in %s: their data is lost when they expire\n",
		       sum->name, kind.name, from, sum->seconds, sum->finer);
	else
		printf("%s: the aggregate of kind %s at %s (%" PRIu32 " s) has weight %" PRIu64
		       ", but its blocks in %s have %" PRIu64 "; %" PRIu64 " stacks and %" PRIu64
		       " figures differ\n",
		       sum->name, kind.name, from, sum->seconds, sum->weight, sum->finer,
		       sum->finer_weight, sum->nr_stacks, sum->nr_figures);
}

static int say_checked(const struct check *check, const struct sb_store_sums_check *sums)
{
	uint64_t nr_sums = sums->nr_equal + sums->nr_wrong;

	if (sums->nr_left)
		printf("%" PRIu64 " aggregates were not checked, because their blocks have "
		       "expired or are damaged\n",
		       sums->nr_left);
	if (sums->nr_wrong)
		printf("%" PRIu64 " of %" PRIu64 " aggregates differ from their blocks\n",
		       sums->nr_wrong, nr_sums);
	if (check->nr_injured)
		printf("%" PRIu64 " of %" PRIu64 " %s damaged; undamaged records can still "
		       "be read\n",
		       check->nr_injured, check->nr_files,
		       sb_plural(check->nr_files, "file is", "files are"));
	if (sums->nr_wrong || check->nr_injured)
		return SB_EXIT_FAILED;
	printf("%" PRIu64 " %s, %" PRIu64 " %s: nothing is damaged; %" PRIu64 " %s\n",
	       check->nr_files, sb_plural(check->nr_files, "file", "files"), check->nr_blocks,
	       sb_plural(check->nr_blocks, "block", "blocks"), nr_sums,
	       sb_plural(nr_sums, "aggregate matches its blocks",
			 "aggregates match their "
			 "blocks"));
	return SB_EXIT_DATA;
}

static int cmd_check(const struct store_opts *fields)
{
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL;
	struct check check = {};
	struct sb_store_sums_check sums = { .on_wrong = on_wrong_sum,
					    .now_s = time(NULL) - SETTLE_S };
	const struct sb_store_look look = {
		.reads_blocks = true,
		.on_file = check_file,
		.on_damaged = on_damaged,
		.arg = &check,
	};
	int status = sb_store_args_open(&fields->store, &store), err;

	if (status >= 0)
		return status;
	err = sb_store_look(store, &look);
	if (!err)
		err = sb_store_check_sums(store, &sums);
	return err ? failed(err, dir_of(fields)) : say_checked(&check, &sums);
}

/* prune */

struct pruned {
	uint64_t nr, bytes;
	bool is_dry;
};

static void say_removed(void *arg, const char *name, uint64_t bytes)
{
	struct pruned *pruned = arg;

	pruned->nr++;
	pruned->bytes += bytes;
	printf("%s %s, %" PRIu64 " bytes\n", pruned->is_dry ? "would delete" : "removed", name,
	       bytes);
}

/* "30d" or a time. */
static int parse_older(const struct store_opts *fields, int64_t now_s, struct sb_store_prune *prune)
{
	int64_t length_s, at_s = 0;
	size_t i;

	if (!fields->older)
		return -1;
	if (sb_ask_length(fields->older, &length_s) || length_s > now_s) {
		if (sb_ask_time(fields->older, now_s, &at_s) || at_s >= now_s)
			return sb_fail(SB_EXIT_USAGE, 0,
				       "store: --older '%s' is not a time in the past: try 30d or "
				       "2026-01-01",
				       fields->older);
		length_s = now_s - at_s;
	}
	for (i = 0; i < SB_STORE_LEVELS; i++)
		prune->keep_s[i] = length_s > 0 ? (uint64_t)length_s : 1;
	return -1;
}

static int cmd_prune(const struct store_opts *fields)
{
	struct pruned pruned = { .is_dry = fields->dry_run };
	struct sb_store_prune prune = {
		.bytes_max = fields->bytes_max,
		.is_dry = fields->dry_run,
		.fn = say_removed,
		.arg = &pruned,
	};
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL;
	int64_t now_s = time(NULL);
	bool has_rule = fields->older || fields->bytes_max;
	size_t i;
	int status = parse_older(fields, now_s, &prune), err;

	for (i = 0; i < SB_STORE_LEVELS; i++)
		if (fields->retain.has_keep[i]) {
			prune.keep_s[i] = fields->retain.keep_s[i];
			has_rule = true;
		}
	if (status < 0 && !has_rule)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "store: prune needs a limit: give --older, --retain or --max-size");
	if (status < 0)
		status = sb_store_args_open(&fields->store, &store);
	if (status >= 0)
		return status;
	err = sb_store_prune(store, &prune, now_s);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "cannot delete files of the store at '%s'",
			       dir_of(fields));
	printf("%" PRIu64 " %s, %" PRIu64 " bytes\n", pruned.nr,
	       sb_plural(pruned.nr, "file", "files"), pruned.bytes);
	return SB_EXIT_DATA;
}

/* merge */

static int say_overlap(const struct sb_store_overlap *overlap)
{
	if (!overlap->host)
		return sb_fail(
			SB_EXIT_FAILED, 0,
			"there are too many tags of kind %s to tell whether both stores have "
			"data of the same host, so nothing was merged; query the two stores "
			"one by one",
			overlap->kind.name);
	return sb_fail(SB_EXIT_FAILED, 0,
		       "both stores have data of kind %s of host '%s' for the same "
		       "time, which would be counted twice, so nothing was merged; "
		       "if this store was merged before, there is nothing to do; "
		       "else query the two stores one by one",
		       overlap->kind.name, overlap->host);
}

static int merge(struct sb_store *store, struct sb_store *from, const char *dir)
{
	struct sb_store_overlap overlap = {};
	int err = sb_store_find_overlap(store, from, &overlap), status;

	if (err == -EEXIST) {
		status = say_overlap(&overlap);
		free(overlap.host);
		return status;
	}
	if (err)
		return failed(err, dir);
	err = sb_store_merge(store, from, time(NULL));
	if (err)
		return sb_fail(
			SB_EXIT_FAILED, err,
			"cannot merge all of '%s': a part was added, and would count twice if it is merged "
			"again; merge into a new, empty store instead",
			dir);
	return SB_EXIT_DATA;
}

static int cmd_merge(const struct store_opts *fields, const char *dir)
{
	const struct sb_store_opts opts = { .no_sync = true };
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL, *from = NULL;
	struct sb_store *probe = NULL;
	int err = sb_store_open(dir, &probe);

	/* To open it for writing would make one. */
	sb_store_close(probe);
	if (!err)
		err = sb_store_open_to_write(dir, &opts, &from);
	if (err)
		return sb_store_say_error(err, dir);
	err = sb_store_open_to_write(dir_of(fields), &opts, &store);
	if (err)
		return sb_store_say_error(err, dir_of(fields));
	return merge(store, from, dir);
}

static int run(const struct store_opts *fields, const sb_vec_str *operands)
{
	const char *what = operands->nr ? operands->at[0] : "";
	size_t nr_wanted = sb_streq(what, "merge") ? 2 : 1;

	if (operands->nr > nr_wanted || (nr_wanted == 2 && operands->nr < 2)) {
		if (operands->nr < 2)
			sb_err(0, "store: merge needs the directory of a second store: stackbpf "
				  "store merge --store DIR DIR2");
		else
			sb_err(0,
			       "store: there is an unexpected argument '%s'; see "
			       "'stackbpf help store'",
			       operands->at[nr_wanted]);
		return SB_EXIT_USAGE;
	}
	if (sb_streq(what, "stat"))
		return cmd_stat(fields);
	if (sb_streq(what, "check"))
		return cmd_check(fields);
	if (sb_streq(what, "prune"))
		return cmd_prune(fields);
	if (sb_streq(what, "merge"))
		return cmd_merge(fields, operands->at[1]);
	if (*what)
		sb_err(0, "store: there is no action '%s'; use stat, check, prune or merge", what);
	else
		sb_err(0, "store: the action is missing; use stat, check, prune or merge");
	return SB_EXIT_USAGE;
}

int sb_cmd_store(const struct sb_command *command, char **argv)
{
	struct store_opts fields = {};
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse(command, &opts, argv);

	if (status < 0)
		status = run(&fields, &opts.operands);
	sb_opts_release(&opts);
	sb_store_args_release(&fields.store);
	return status;
}
