// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/format.h"
#include "events/preset.h"
#include "events/probe_priv.h"
#include "events/tracefs.h"
#include "symbolizer/process/reader.h"

void sb_nearest_offer_copy(struct sb_nearest_copy *copy, const char *name)
{
	const char *before = copy->nearest.name;

	sb_nearest_offer(&copy->nearest, name);
	if (copy->nearest.name == before)
		return;
	snprintf(copy->name, sizeof(copy->name), "%s", name);
	copy->nearest.name = copy->name;
}

static int explain_tracefs(struct sb_resolving *to, int err)
{
	if (err == -EACCES || err == -EPERM)
		return sb_reason_set(to->reason, err,
				     "cannot read the kernel's list of tracepoints (tracefs)");
	sb_reason_set(to->reason, err,
		      "this kernel has no list of tracepoints (tracefs); boot one that was built "
		      "with CONFIG_EVENT_TRACING=y");
	return -EOPNOTSUPP;
}

/* Return: the fields of a tracepoint, in @fields; NULL: they cannot be read. */
static char *describe(int events_fd, const char *name, struct sb_str *fields)
{
	sb_cleanup(sb_freep) char *format = NULL;

	if (sb_tracefs_read_format(events_fd, name, &format) || sb_format_describe(format, fields))
		return NULL;
	return fields->s;
}

static int found_tracepoint(void *arg, const char *category, const char *name, uint64_t id)
{
	struct sb_resolving *to = arg;
	char text[SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];
	struct sb_probe probe = { .kind = SB_PROBE_TRACEPOINT, .function = text, .id = id };
	sb_cleanup(sb_str_release) struct sb_str fields = {};

	snprintf(text, sizeof(text), "%s:%s", category, name);
	if (to->is_list)
		probe.args = describe(to->events_fd, text, &fields);
	return to->found(to, text, &probe);
}

static int offer_tracepoint(void *arg, const char *category, const char *name, uint64_t id)
{
	struct sb_nearest_copy *copy = arg;

	sb_nearest_offer_copy(copy, name);
	return 0;
}

static int no_tracepoint(struct sb_resolving *to, int events_fd)
{
	struct sb_nearest_copy copy = { .nearest.typed = to->spec->name };
	const char *category = to->spec->file;

	if (sb_event_is_glob(to->spec->name) ||
	    (sb_event_is_glob(category) && !sb_streq(category, "*")))
		return sb_reason_set(
			       to->reason, 0,
			       "no tracepoint matches '%s'; 'stackbpf trace --list' shows them",
			       to->text),
		       -ENOENT;
	if (!sb_tracefs_has_category(events_fd, category))
		category = "*";
	(void)sb_tracefs_each(events_fd, category, "*", offer_tracepoint, &copy);
	sb_reason_set(to->reason, 0, "there is no tracepoint '%s:%s'%s%s%s", to->spec->file,
		      to->spec->name,
		      copy.nearest.name ? "; did you mean '"
					: "; 'stackbpf trace --list' shows them",
		      copy.nearest.name ? copy.name : "", copy.nearest.name ? "'?" : "");
	return -ENOENT;
}

static const char no_list[] = "cannot read the list of tracepoints";

static int resolve_tracepoint(struct sb_resolving *to)
{
	sb_cleanup(sb_closep) int events_fd = sb_tracefs_open();
	int err;

	if (events_fd < 0 && !to->spec->is_either)
		return explain_tracefs(to, events_fd);
	to->events_fd = events_fd;
	if (to->spec->is_either &&
	    (events_fd < 0 || (!sb_event_is_glob(to->spec->file) &&
			       !sb_tracefs_has_category(events_fd, to->spec->file))))
		return sb_resolve_user(to);
	err = sb_tracefs_each(events_fd, to->spec->file, to->spec->name, found_tracepoint, to);
	if (err)
		return sb_reason_set(to->reason, err, no_list);
	return to->nr_found ? 0 : no_tracepoint(to, events_fd);
}

static int offer_kernel(struct sb_resolving *to, const char *name, struct sb_nearest_copy *copy)
{
	struct sb_probe probe = { .kind = SB_PROBE_KERNEL,
				  .is_return = to->spec->is_return,
				  .function = (char *)name,
				  .offset = to->spec->offset };
	char text[SB_EVENT_NAME_BYTES + 32];

	if (!sb_glob_matches(to->spec->name, strlen(to->spec->name), name)) {
		sb_nearest_offer_copy(copy, name);
		return 0;
	}
	snprintf(text, sizeof(text), "%s:%s", to->spec->is_return ? "kretprobe" : "kprobe", name);
	return to->found(to, text, &probe);
}

/* Somebody who wrote a single word may have meant a preset or a counter. */
static void offer_words(struct sb_nearest *nearest)
{
	const struct sb_preset *preset;
	const char *name;
	unsigned int i;

	for (i = 0; (preset = sb_preset_at(i)); i++)
		sb_nearest_offer(nearest, preset->name);
	for (i = 0; sb_counter_at(i, &name); i++)
		sb_nearest_offer(nearest, name);
}

static int no_kprobes(struct sb_resolving *to)
{
	struct sb_nearest nearest = { .typed = to->text };
	char elsewhere[SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];

	if (sb_suggest_find(to, elsewhere, sizeof(elsewhere)))
		nearest.name = elsewhere;
	else
		offer_words(&nearest);
	sb_reason_set(to->reason, 0,
		      "this kernel has no probes at its functions (CONFIG_KPROBE_EVENTS), so '%s' "
		      "cannot be traced; %s%s%s",
		      to->text,
		      nearest.name ? "did you mean '"
				   : "'stackbpf trace --list' shows tracepoints that may be near",
		      nearest.name ? nearest.name : "", nearest.name ? "'?" : "");
	return -EOPNOTSUPP;
}

static int no_event(struct sb_resolving *to, const char *nearest)
{
	sb_reason_set(to->reason, 0, "there is no event '%s'; %s%s%s", to->text,
		      nearest ? "did you mean '" : "'stackbpf trace --list' shows all",
		      nearest ? nearest : "", nearest ? "'?" : "");
	return -ENOENT;
}

/* By the lines of /proc/kallsyms: "ADDRESS TYPE NAME [MODULE]". */
static int resolve_kernel(struct sb_resolving *to)
{
	struct sb_nearest_copy copy = { .nearest.typed = to->spec->name };
	sb_cleanup(sb_fclosep) FILE *file = NULL;
	char line[1024], name[SB_EVENT_NAME_BYTES], type;
	char elsewhere[SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];
	int err = 0;

	offer_words(&copy.nearest);
	/* No function of the kernel has a '-' in its name, but many counters have. */
	if (strchr(to->spec->name, '-'))
		return no_event(to, copy.nearest.name);
	if (!sb_can_access("/sys/bus/event_source/devices/kprobe/type", F_OK))
		return no_kprobes(to);
	file = fopen("/proc/kallsyms", "re");
	if (!file)
		return sb_reason_set(to->reason, -errno, "cannot read '/proc/kallsyms'");
	while (!err && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*x %c %511s", &type, name) == 2 && (type == 't' || type == 'T'))
			err = offer_kernel(to, name, &copy);
	if (err || to->nr_found)
		return err;
	if (sb_suggest_find(to, elsewhere, sizeof(elsewhere)))
		copy.nearest.name = elsewhere;
	sb_reason_set(to->reason, 0, "the kernel has no function '%s'; %s%s%s", to->spec->name,
		      copy.nearest.name ? "did you mean '" : "",
		      copy.nearest.name ? copy.nearest.name : "",
		      copy.nearest.name ? "'?" : "/proc/kallsyms lists all");
	return -ENOENT;
}

static int resolve(struct sb_resolving *to)
{
	static int (*const resolvers[SB_PROBE_KIND_MAX])(struct sb_resolving * to) = {
		[SB_PROBE_TRACEPOINT] = resolve_tracepoint, [SB_PROBE_KERNEL] = resolve_kernel,
		[SB_PROBE_USER] = sb_resolve_user,	    [SB_PROBE_USDT] = sb_resolve_usdt,
		[SB_PROBE_PERF] = sb_resolve_counter,
	};

	int err = resolvers[to->spec->kind](to);

	/* The first reason stays. Where memory runs out, most have none. */
	return err ? sb_reason_set(to->reason, err, "cannot find '%s'", to->text) : 0;
}

static bool is_same_string(const char *a, const char *b)
{
	return a && b ? sb_streq(a, b) : a == b;
}

static bool is_same(const struct sb_probe *a, const struct sb_probe *b)
{
	return a->kind == b->kind && a->is_return == b->is_return && a->is_call == b->is_call &&
	       a->offset == b->offset && a->id == b->id &&
	       sb_counter_is_same(&a->counter, &b->counter) && is_same_string(a->path, b->path) &&
	       (a->kind != SB_PROBE_KERNEL || is_same_string(a->function, b->function));
}

static int name_of(struct sb_probes *probes, const char *name, uint32_t *ret_idx)
{
	sb_cleanup(sb_freep) char *frame = NULL;
	size_t i;
	int err;

	if (asprintf(&frame, "[%s]", name) < 0) {
		frame = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < probes->names.nr; i++)
		if (sb_streq(probes->names.at[i], frame))
			break;
	*ret_idx = (uint32_t)i;
	if (i < probes->names.nr)
		return 0;
	err = sb_vec_push(&probes->names, frame);
	if (!err)
		sb_take(frame);
	return err;
}

static int copy_string(char **string)
{
	if (*string)
		*string = strdup(*string);
	return 0;
}

static void release_probe(struct sb_probe *probe)
{
	sb_vec_release(&probe->returns);
	free(probe->path);
	free(probe->function);
	free(probe->args);
}

/* Keep the file open that is being read, once, so that the kernel finds it and no other. */
static int keep_file(struct sb_probes *probes, const struct sb_resolving *to,
		     char ret_link[SB_PROBE_LINK_BYTES])
{
	struct sb_probe_file file;
	struct stat st;
	size_t i;
	int err = sb_reader_fstat(to->file_fd, &st);

	for (i = 0; i < probes->files.nr && !err; i++)
		if (probes->files.at[i].dev == st.st_dev && probes->files.at[i].ino == st.st_ino)
			break;
	if (!err && i == probes->files.nr) {
		file = (struct sb_probe_file){ sb_reader_pin(to->file_fd), st.st_dev, st.st_ino };
		err = file.fd < 0 ? file.fd : sb_vec_push(&probes->files, file);
		if (err)
			sb_closep(&file.fd);
	}
	if (!err)
		snprintf(ret_link, SB_PROBE_LINK_BYTES, "/proc/self/fd/%d", probes->files.at[i].fd);
	return err;
}

static int add_place(struct sb_probes *probes, const struct sb_resolving *to,
		     const struct sb_probe *probe, uint32_t name_idx)
{
	struct sb_probe copy = *probe;
	size_t i;
	int err = 0;

	copy.returns = (sb_vec_u64){};
	for (i = 0; i < probe->returns.nr && !err; i++)
		err = sb_vec_push(&copy.returns, probe->returns.at[i]);
	copy.name_idx = name_idx;
	copy.preset = to->preset;
	copy.is_of_glob = sb_event_is_glob(to->text);
	copy.roles = probes->roles;
	copy_string(&copy.path);
	copy_string(&copy.function);
	copy_string(&copy.args);
	if ((probe->path && !copy.path) || (probe->function && !copy.function) ||
	    (probe->args && !copy.args))
		err = -ENOMEM;
	if (!err && probe->path)
		err = keep_file(probes, to, copy.link);
	if (!err)
		err = sb_vec_push(&probes->places, copy);
	if (err)
		release_probe(&copy);
	return err;
}

/* A user function at its beginning is the leaf of its own stack, if there is one, as any function
 * is whose calls are measured: those of one glob have one name. All others are told apart by their
 * own. */
static const char *shown_name(const struct sb_resolving *to, const char *name,
			      const struct sb_probe *probe)
{
	const struct sb_probes *probes = to->arg;
	bool is_leaf = (probe->kind == SB_PROBE_USER || probes->is_of_calls) && !probe->is_return &&
		       !probes->is_without_stacks;

	return is_leaf || !sb_event_is_glob(to->text) ? to->text : name;
}

int sb_probes_take(struct sb_probes *probes, const struct sb_resolving *to, const char *name,
		   const struct sb_probe *probe)
{
	uint32_t idx = 0;
	size_t i;
	int err;

	for (i = 0; i < probes->places.nr; i++)
		if (is_same(&probes->places.at[i], probe)) {
			probes->places.at[i].roles |= probes->roles;
			return 0;
		}
	if (i == SB_PROBES_MAX) {
		sb_reason_set(to->reason, 0,
			      "with '%s' there are more than %u places to trace; use a narrower "
			      "pattern or fewer events",
			      to->text, SB_PROBES_MAX);
		return -EINVAL;
	}
	err = name_of(probes, name, &idx);
	if (!err)
		err = add_place(probes, to, probe, idx);
	return err ? sb_reason_set(to->reason, err, "cannot keep the places of '%s' to trace",
				   to->text)
		   : 0;
}

static bool is_jumped_to(const struct sb_probes *probes, const struct sb_probe *from)
{
	size_t i;

	for (i = 0; i < probes->places.nr; i++)
		if (probes->places.at[i].kind == from->kind &&
		    probes->places.at[i].offset == from->jumps_to + probes->places.at[i].behind &&
		    sb_streq(probes->places.at[i].path, from->path))
			return true;
	return false;
}

void sb_probes_drop_jumps(struct sb_probes *probes, size_t first)
{
	size_t i, to = first;

	/* The places that stay are moved when it is known which these are: they are looked for. */
	for (i = first; i < probes->places.nr; i++)
		if (probes->places.at[i].jumps_to && !is_jumped_to(probes, &probes->places.at[i]))
			probes->places.at[i].jumps_to = 0;
	for (i = first; i < probes->places.nr; i++)
		if (probes->places.at[i].jumps_to)
			release_probe(&probes->places.at[i]);
		else
			probes->places.at[to++] = probes->places.at[i];
	probes->places.nr = to;
}

static int found_place(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	struct sb_probes *probes = to->arg;

	to->nr_found++;
	if (probes->roles && probe->kind == SB_PROBE_PERF) {
		sb_reason_set(
			to->reason, 0,
			"'%s' is a counter, which neither begins nor ends; name a function or a "
			"tracepoint",
			to->text);
		return -EINVAL;
	}
	return sb_probes_take(probes, to, shown_name(to, name, probe), probe);
}

static int found_call(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	const struct sb_probes *probes = to->arg;
	bool is_function = probe->kind == SB_PROBE_USER ||
			   (probe->kind == SB_PROBE_KERNEL && probes->is_of_kernel_calls);

	if (is_function && !probe->is_return && !to->spec->offset)
		return found_place(to, name, probe);
	sb_reason_set(to->reason, 0,
		      "'%s' is no function%s; name one whose calls are to be measured, such as "
		      "c:fsync, or also the event that ends it (--until, --to)",
		      to->text, probes->is_of_kernel_calls ? "" : " of a program or library");
	return -EINVAL;
}

static int add_event(struct sb_probes *probes, const char *text, const struct sb_preset *preset,
		     struct sb_reason *reason)
{
	struct sb_event_spec spec;
	struct sb_resolving to = { .text = text,
				   .spec = &spec,
				   .preset = preset,
				   .tgid = probes->tgid,
				   .is_call = probes->is_of_calls,
				   .found = probes->is_of_calls ? found_call : found_place,
				   .arg = probes,
				   .reason = reason };
	int err = sb_event_parse(text, &spec, reason);

	return err ? err : resolve(&to);
}

static int add_preset(struct sb_probes *probes, const struct sb_preset *preset,
		      struct sb_reason *reason)
{
	struct sb_reason why = {};
	unsigned int i;
	int err = 0;

	for (i = 0; i < SB_PRESET_EVENTS_MAX && preset->events[i] && !err; i++)
		err = add_event(probes, preset->events[i], preset, &why);
	if (err)
		sb_reason_set(reason, why.err, "the preset '%s' cannot be traced: %s", preset->name,
			      why.text);
	return err;
}

int sb_probes_add(struct sb_probes *probes, const char *text, struct sb_reason *reason)
{
	const struct sb_preset *preset = sb_preset_find(text);

	return preset ? add_preset(probes, preset, reason) : add_event(probes, text, NULL, reason);
}

void sb_event_request_release(struct sb_event_request *request)
{
	sb_vec_release(&request->events);
	sb_vec_release(&request->from);
	sb_vec_release(&request->to);
}

static int add_events(struct sb_probes *probes, const sb_vec_str *events, uint32_t roles,
		      struct sb_reason *reason)
{
	size_t i;
	int err = 0;

	probes->roles = roles;
	for (i = 0; i < events->nr && !err; i++)
		err = sb_probes_add(probes, events->at[i], reason);
	return err;
}

int sb_probes_find(struct sb_probes *probes, const struct sb_event_request *request,
		   struct sb_reason *reason)
{
	int err = add_events(probes, &request->events, 0, reason);

	err = err ?: add_events(probes, &request->from, SB_EVENT_BEGINS, reason);
	err = err ?: add_events(probes, &request->to, SB_EVENT_ENDS, reason);
	err = err
		      ?: sb_probes_compile(probes, request->when, request->weight, request->value,
					   reason);
	return err ?: sb_probes_compile_keys(probes, request->key, request->to_key, reason);
}

int sb_probes_find_boundary(struct sb_probes *probes, const char *event, struct sb_reason *reason)
{
	size_t i;
	int err = sb_probes_add(probes, event, reason);

	for (i = 0; i < probes->places.nr && !err; i++)
		if (probes->places.at[i].kind == SB_PROBE_PERF) {
			sb_reason_set(
				reason, 0,
				"'%s' is a counter, at which no span can begin or end; name a "
				"function or a tracepoint",
				event);
			err = -EINVAL;
		}
	return err;
}

void sb_probes_release(struct sb_probes *probes)
{
	size_t i;

	for (i = 0; i < probes->places.nr; i++)
		release_probe(&probes->places.at[i]);
	for (i = 0; i < probes->names.nr; i++)
		free(probes->names.at[i]);
	for (i = 0; i < probes->files.nr; i++)
		close(probes->files.at[i].fd);
	sb_vec_release(&probes->places);
	sb_vec_release(&probes->files);
	sb_vec_release(&probes->names);
	sb_vec_release(&probes->exprs);
}

struct listing {
	const char *glob;
	int (*fn)(void *arg, const char *event, const char *detail);
	void *arg;
	char last[3 * SB_EVENT_FILE_BYTES]; /* the place that was listed last */
	int events_fd;			    /* of tracefs */
};

static int list_place(struct sb_resolving *to, const char *name, const struct sb_probe *probe)
{
	struct listing *listing = to->arg;

	to->nr_found++;
	/* A symbol with several versions, or a probe at several places, is traced by one name. */
	if (!strcmp(name, listing->last))
		return 0;
	snprintf(listing->last, sizeof(listing->last), "%s", name);
	return listing->fn(listing->arg, name, probe->args);
}

static bool is_listed(const struct listing *listing, const char *name)
{
	return sb_glob_matches(listing->glob, strlen(listing->glob), name);
}

/* Presets and counters. */
static int list_words(const struct listing *listing)
{
	const struct sb_preset *preset;
	const char *name;
	unsigned int i;
	int err = 0;

	for (i = 0; !err && (preset = sb_preset_at(i)); i++)
		if (is_listed(listing, preset->name))
			err = listing->fn(listing->arg, preset->name, preset->summary);
	for (i = 0; !err && sb_counter_at(i, &name); i++)
		if (is_listed(listing, name) && !sb_preset_find(name))
			err = listing->fn(listing->arg, name, NULL);
	return err;
}

static int list_tracepoint(void *arg, const char *category, const char *name, uint64_t id)
{
	struct listing *listing = arg;
	char text[SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];
	sb_cleanup(sb_str_release) struct sb_str fields = {};

	snprintf(text, sizeof(text), "%s:%s", category, name);
	if (!is_listed(listing, text) && !is_listed(listing, name))
		return 0;
	return listing->fn(listing->arg, text, describe(listing->events_fd, text, &fields));
}

static int list_bare(struct listing *listing, struct sb_resolving *to)
{
	sb_cleanup(sb_closep) int events_fd = -1;
	int err = list_words(listing);

	if (err)
		return err;
	events_fd = sb_tracefs_open();
	if (events_fd < 0)
		return explain_tracefs(to, events_fd);
	listing->events_fd = events_fd;
	err = sb_tracefs_each(events_fd, "*", "*", list_tracepoint, listing);
	return err ? sb_reason_set(to->reason, err, no_list) : 0;
}

int sb_probes_list(const char *pattern, uint32_t tgid,
		   int (*fn)(void *arg, const char *event, const char *detail), void *arg,
		   struct sb_reason *reason)
{
	struct listing listing = { .glob = pattern, .fn = fn, .arg = arg };
	struct sb_event_spec spec;
	struct sb_resolving to = { .text = pattern,
				   .spec = &spec,
				   .tgid = tgid,
				   .is_list = true,
				   .found = list_place,
				   .arg = &listing,
				   .reason = reason };
	int err;

	if (!strchr(pattern, ':'))
		return list_bare(&listing, &to);
	err = sb_event_parse(pattern, &spec, reason);
	return err ? err : resolve(&to);
}
