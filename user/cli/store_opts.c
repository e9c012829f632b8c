// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/store_opts.h"

#include <errno.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/wrap.h"

void sb_store_args_release(struct sb_store_args *args)
{
	sb_vec_release(&args->tags);
}

static const char *dir_of(const struct sb_store_args *args)
{
	return args->dir ? args->dir : SB_STORE_DIR_DEFAULT;
}

static const char *side_of(const struct sb_store_args *args)
{
	return args->side ? args->side : "";
}

int sb_store_args_rules(const sb_vec_str *rules, const char *command, struct sb_ask *ask)
{
	size_t i;
	int err = 0;

	for (i = 0; i < rules->nr && !err; i++) {
		err = sb_ask_rule(ask, rules->at[i]);
		if (err == -EINVAL)
			return sb_fail(SB_EXIT_USAGE, 0,
				       "%s: '%s' is not a valid tag rule: " SB_ASK_RULE_HELP,
				       command, rules->at[i]);
	}
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "%s: cannot keep the rules of --tag", command);
	return -1;
}

int sb_store_args_ask(const struct sb_store_args *args, const char *command, int64_t now_s,
		      struct sb_ask *ask)
{
	const char *why = NULL;
	int status = sb_store_args_rules(&args->tags, command, ask);

	if (status >= 0)
		return status;
	if (sb_ask_range(ask, args->from, args->to, now_s, &why))
		return sb_fail(SB_EXIT_USAGE, 0, "%s: --%sfrom %s --%sto %s: %s", command,
			       side_of(args), args->from ? args->from : SB_ASK_FROM_DEFAULT,
			       side_of(args), args->to ? args->to : "now", why);
	if (args->kind && sb_ask_set_kind(ask, args->kind))
		return sb_fail(SB_EXIT_FAILED, -ENOMEM,
			       "%s: cannot select the --kind to read from the store", command);
	ask->by = args->by;
	return -1;
}

int sb_store_say_error(int err, const char *dir)
{
	if (err == -ENOENT)
		sb_err(0,
		       "there is no store at '%s'; 'stackbpf record --store %s' creates "
		       "one",
		       dir, dir);
	else if (err == -ENOTEMPTY)
		sb_err(0,
		       "'%s' is a directory, but not a store of stackbpf; choose another "
		       "--store",
		       dir);
	else if (err == -ENOTDIR)
		sb_err(0,
		       "'%s' is not a store of stackbpf, which is a directory; name the directory "
		       "of a store",
		       dir);
	else if (err == -EPROTO)
		sb_err(0,
		       "the store at '%s' has another format than this version of stackbpf "
		       "reads; use the version that wrote it, or choose another --store",
		       dir);
	else if (err == -EBUSY)
		sb_err(0, "another process is writing to the store at '%s'; stop it first", dir);
	else
		sb_err(err, "cannot open the store at '%s'", dir);
	return err == -EACCES || err == -EPERM ? SB_EXIT_PRIVILEGE : SB_EXIT_FAILED;
}

int sb_store_args_open(const struct sb_store_args *args, struct sb_store **ret_store)
{
	int err = sb_store_open(dir_of(args), ret_store);

	return err ? sb_store_say_error(err, dir_of(args)) : -1;
}

int sb_store_args_failed(const struct sb_store_args *args, const char *command, int err)
{
	return sb_fail(SB_EXIT_FAILED, err, "%s: cannot read the store at '%s'", command,
		       dir_of(args));
}

/* Check that the tag of --by occurs in the range. Return: -1 to go on, or the exit status. */
static int check_by(const struct sb_store_args *args, struct sb_store *store,
		    const struct sb_ask *ask, const char *command)
{
	sb_cleanup(sb_str_release) struct sb_str why = {};
	int err = sb_ask_check_by(store, ask, &why);

	if (err == -ENOENT)
		return sb_fail(SB_EXIT_USAGE, 0, "%s: --by %s: %s", command, ask->by, why.s);
	return err ? sb_store_args_failed(args, command, err) : -1;
}

static int ask_store(const struct sb_store_command *asked, const char *name)
{
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL;
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	int status = asked->check(asked->fields);

	if (status < 0)
		status = sb_store_args_ask(asked->args, name, time(NULL), &ask);
	if (status < 0)
		status = sb_store_args_open(asked->args, &store);
	if (status < 0)
		status = check_by(asked->args, store, &ask, name);
	return status < 0 ? asked->answer(asked->fields, store, &ask) : status;
}

int sb_store_command_run(const struct sb_store_command *asked, const struct sb_command *command,
			 char **argv)
{
	struct sb_opts opts = { .fields = asked->fields };
	int status = sb_command_parse_options(command, &opts, argv, "store with --store");

	if (status < 0)
		status = ask_store(asked, command->name);
	sb_opts_release(&opts);
	sb_store_args_release(asked->args);
	return status;
}

static void say_other_kinds(const char *kind, const struct sb_store_extent *extents, int nr)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	int i;

	for (i = 0; i < nr; i++)
		if (sb_str_addf(&list, "%s%s", i ? ", " : "", extents[i].kind.name))
			return;
	sb_replace_controls(list.s, list.len);
	sb_err(0, "this store has no data of kind %s; try --kind with one of: %s", kind, list.s);
}

static void say_no_blocks(const struct sb_store *store)
{
	if (sb_store_has_writer(store))
		sb_err(0,
		       "this store is still empty; a recorder writes to it, whose first block comes "
		       "about %d s after it began, so try again then",
		       SB_STORE_BLOCK_S);
	else
		sb_err(0, "this store is still empty; 'stackbpf record' fills it");
}

/* What there would be. */
static int say_empty(const struct sb_store_args *args, struct sb_store *store,
		     const struct sb_ask *ask)
{
	const char *side = side_of(args);
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES], first[SB_ASK_TIME_BYTES],
		last[SB_ASK_TIME_BYTES], advice[64];
	int i, nr = sb_store_extents(store, extents);
	bool is_within, has_rules = ask->rules.rules.nr;

	sb_ask_print_time(ask->from_s, from);
	sb_ask_print_time(ask->to_s, to);
	if (nr < 0) {
		sb_err(nr, "cannot tell which data the store at '%s' has", dir_of(args));
		return SB_EXIT_FAILED;
	}
	if (!nr) {
		say_no_blocks(store);
		return SB_EXIT_EMPTY;
	}
	for (i = 0; i < nr && !sb_streq(extents[i].kind.name, sb_ask_kind(ask)); i++)
		;
	if (i == nr) {
		say_other_kinds(sb_ask_kind(ask), extents, nr);
		return SB_EXIT_EMPTY;
	}
	sb_ask_print_time(extents[i].from_s, first);
	sb_ask_print_time(extents[i].to_s, last);
	is_within = !has_rules && extents[i].from_s < ask->to_s && extents[i].to_s > ask->from_s;
	if (is_within)
		snprintf(advice, sizeof(advice), "'stackbpf timeline' shows when");
	else
		snprintf(advice, sizeof(advice), "choose %s--%sfrom and --%sto in that range",
			 has_rules ? "other tags, or " : "", side, side);
	sb_err(0, "no %s%s data%s %s from %s to %s; the store has %s data from %s to %s; %s",
	       is_within ? "block of " : "", sb_ask_kind(ask), has_rules ? " with these tags" : "",
	       is_within ? "began" : "was recorded", from, to, sb_ask_kind(ask), first, last,
	       advice);
	return SB_EXIT_EMPTY;
}

static void say_coarse(const struct sb_ask *ask, const struct sb_store_answer *answer)
{
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES];

	/* Where there is nothing, nothing may have been recorded, too. */
	if (answer->is_fine_only && answer->from_s >= ask->from_s + SB_STORE_BLOCK_S) {
		sb_ask_print_time(answer->from_s, from);
		sb_info("only blocks of 10 s have these tags, and the first such block in "
			"this range begins at %s",
			from);
	}
	if (answer->from_s > ask->from_s - SB_STORE_BLOCK_S &&
	    answer->to_s < ask->to_s + SB_STORE_BLOCK_S)
		return;
	sb_ask_print_time(answer->from_s, from);
	sb_ask_print_time(answer->to_s, to);
	sb_warn("blocks of finer resolution have expired, so the result covers %s to %s, which "
		"is more than requested",
		from, to);
}

int sb_store_say_answer(const struct sb_store_args *args, struct sb_store *store,
			const struct sb_ask *ask, const struct sb_store_answer *answer)
{
	const char *unit = answer->kind.unit;

	if (answer->nr_damaged || answer->nr_skipped_bytes)
		sb_warn("the store is damaged: skipped %llu %s and %llu bytes; "
			"'stackbpf store check' lists them",
			(unsigned long long)answer->nr_damaged,
			sb_plural(answer->nr_damaged, "record", "records"),
			(unsigned long long)answer->nr_skipped_bytes);
	if (answer->lost_weight)
		sb_warn("%llu %s are shown as \"(lost)\", because their stacks are in "
			"damaged records",
			(unsigned long long)answer->lost_weight, unit);
	if (answer->nr_other_unit)
		sb_warn("left out %llu %s not count in %s (recorded with another "
			"--event); to see them, query their time alone",
			(unsigned long long)answer->nr_other_unit,
			sb_plural(answer->nr_other_unit, "block that does", "blocks that do"),
			unit);
	if (!answer->nr_blocks || !answer->weight)
		return say_empty(args, store, ask);
	say_coarse(ask, answer);
	if (answer->figure[SB_BLOCK_OTHER])
		sb_warn("%llu %s are shown as \"(other)\" below their tags: a file of the "
			"store, or the share of one user or service in it, was full of "
			"stacks and tags",
			(unsigned long long)answer->figure[SB_BLOCK_OTHER], unit);
	return SB_EXIT_DATA;
}

/* By its end, because the names in a store are not marked. */
static bool is_cut(const char *name)
{
	static const char mark[] = "...";
	size_t len = name ? strlen(name) : 0;

	/* A cut is between two characters of UTF-8. */
	return len > SB_DICT_NAME_MAX - 4 && len <= SB_DICT_NAME_MAX &&
	       sb_streq(name + len - strlen(mark), mark);
}

void sb_store_say_names(const struct sb_profile *profile)
{
	const struct sb_frame *frame;
	size_t nr = 0;
	uint32_t i;

	for (i = 0; i < sb_profile_nr_frames(profile); i++) {
		frame = sb_profile_frame_at(profile, i);
		nr += is_cut(frame->name) || is_cut(frame->module);
	}
	if (nr)
		sb_warn("%zu %s longer than %u bytes, and cut to that length with '...'", nr,
			sb_plural(nr, "name in the result was", "names in the result were"),
			SB_DICT_NAME_MAX);
}
