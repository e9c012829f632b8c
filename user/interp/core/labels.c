// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds where processes keep the labels of their threads, and decodes label sets. */
#include "interp/core/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/time.h"
#include "base/utf8.h"
#include "interp/core/interp.h"
#include "interp/core/interp_priv.h"
#include "interp/core/step.h"
#include "symbolizer/elf/elf_file.h"

#include "bpf/step/sb_step_label.h"

/* A process whose table of keys lacks one that it uses is looked at again so often. */
#define CONTEXT_REST_NS (50 * SB_NS_PER_MS)
/* How often SB_LABELS_AGAIN is returned for one process, so that one that never names its keys
 * costs no more. */
#define AGAIN_MAX	1000u

static const char *const symbols[SB_LABEL_KIND_MAX] = {
	[SB_LABEL_OTEL] = "otel_thread_ctx_v1",
	[SB_LABEL_CUSTOM] = "custom_labels_current_set",
};

uint64_t sb_label_program_offset(const struct sb_elf *elf, uint64_t offset)
{
	const Elf64_Phdr *tls = sb_elf_phdr_typed(elf, PT_TLS);
	const uint64_t align = tls && tls->p_align ? tls->p_align : 1;
	const uint64_t nr_bytes = tls ? tls->p_memsz : 0;

	if (elf->machine == EM_AARCH64)
		return (16 + align - 1) / align * align + offset;
	return offset - (nr_bytes + align - 1) / align * align;
}

bool sb_label_place_find(struct sb_image *image, struct sb_label_place *ret_place)
{
	struct sb_label_place place = { .kind = SB_LABEL_NONE };
	uint32_t kind;

	for (kind = SB_LABEL_NONE + 1; kind < SB_LABEL_KIND_MAX; kind++)
		if (symbols[kind] && !sb_image_symbol(image, symbols[kind], &place.offset, NULL))
			break;
	if (kind == SB_LABEL_KIND_MAX)
		return sb_label_go_find(image, ret_place);
	place.kind = kind;
	place.reloc = sb_image_tls_access(image, symbols[kind], place.offset, &place.got);
	if (place.reloc == SB_IMAGE_TLS_NONE)
		place.offset = sb_label_program_offset(sb_image_elf(image), place.offset);
	*ret_place = place;
	return true;
}

static int by_descriptor(uint64_t got, const struct sb_memory *memory, struct sb_label_conf *conf)
{
	uint64_t arg, pair[2];
	bool is_pair;
	int err = sb_threads_descriptor(memory, got, &is_pair, &arg);

	if (err)
		return err;
	conf->at = arg;
	if (!is_pair)
		return 0;
	if (sb_memory_read(memory, pair, sizeof(pair), arg))
		return -EAGAIN;
	conf->module = pair[0];
	conf->at = pair[1];
	return 0;
}

static int by_reloc(const struct sb_label_place *place, const struct sb_memory *memory,
		    struct sb_label_conf *conf)
{
	uint64_t word = 0;

	conf->at = place->offset;
	switch (place->reloc) {
	case SB_IMAGE_TLS_NONE:
		return 0;
	case SB_IMAGE_TLS_OFFSET:
		if (sb_memory_u64(memory, place->got, &word) || !word)
			return -EAGAIN;
		conf->at = word;
		return 0;
	case SB_IMAGE_TLS_PAIR:
		if (sb_memory_u64(memory, place->got, &word) || !word)
			return -EAGAIN;
		conf->module = word;
		return 0;
	default:
		return by_descriptor(place->got, memory, conf);
	}
}

/* Make the configuration for the kernel, all but the keys, from what the dynamic linker left in the
 * process. Return: 0; -EAGAIN: it has not done it yet, or memory cannot be read; -ENOTSUP. */
static int conf_of(const struct sb_label_place *place, const struct sb_memory *memory,
		   const struct sb_process_maps *maps, struct sb_label_conf *ret_conf)
{
	struct sb_label_conf conf = { .kind = place->kind,
				      .go_labels = place->go_labels,
				      .go_curg = place->go_curg,
				      .go_is_map = place->go_is_map,
				      .go_in_register = place->go_in_register };
	int err = by_reloc(place, memory, &conf);

	if (err)
		return err;
	if (conf.module > SB_LABEL_MODULES_MAX)
		return -ENOTSUP;
	conf.is_musl = sb_threads_are_musl(maps);
	conf.dtv_at = sb_interp_dtv_at(conf.is_musl);
	*ret_conf = conf;
	return 0;
}

static struct sb_label_names names_of(const struct sb_interp *interp)
{
	return (struct sb_label_names){ .at = interp->opts.labels,
					.nr = interp->opts.nr_labels,
					.span = interp->opts.span_label };
}

/* Return: as sb_label_key_hash(); 0 for a key that is too long. */
static uint64_t hash_of(const char *name)
{
	uint64_t key[SB_LABEL_KEY_BYTES / 8] = {};
	size_t len = strlen(name);

	if (len > sizeof(key))
		return 0;
	memcpy(key, name, len);
	return sb_label_key_hash((const __u64 *)key);
}

/* Return: SB_LABEL_TRACE_ID or SB_LABEL_SPAN_ID, if that is what the label @name stands for; or
 * 0. */
static uint32_t id_of(const char *name)
{
	return sb_streq(name, "trace_id")  ? SB_LABEL_TRACE_ID
	       : sb_streq(name, "span_id") ? SB_LABEL_SPAN_ID
					   : 0;
}

/* Set in the configuration for the kernel what is wanted, but for the keys of OTEL's table. */
static void want_names(const struct sb_interp *interp, struct sb_label_conf *conf)
{
	const char *span = interp->opts.span_label;
	size_t i;

	for (i = 0; i < interp->opts.nr_labels && i < SB_LABELS_MAX; i++) {
		conf->key_hash[i] = hash_of(interp->opts.labels[i]);
		conf->ids |= id_of(interp->opts.labels[i]);
	}
	conf->span_ids = span ? id_of(span) : 0;
	conf->span_key = span && conf->kind != SB_LABEL_OTEL ? hash_of(span) : SB_LABEL_NO_KEY;
}

/* Return: whether @place stands for the key on which spans depend. */
static bool is_of_span(const struct sb_interp *interp, uint8_t place)
{
	const char *span = interp->opts.span_label;

	return place == SB_LABEL_OF_SPAN || (span && place < interp->opts.nr_labels &&
					     sb_streq(interp->opts.labels[place], span));
}

/* Set in the configuration for the kernel which of the process's keys are wanted. Return: whether
 * it changed. */
static bool mask_keys(const struct sb_interp *interp, struct sb_labels *labels)
{
	const struct sb_label_keys *keys = &labels->keys;
	struct sb_label_conf before = labels->conf;
	uint32_t i;

	memset(labels->conf.wanted, 0, sizeof(labels->conf.wanted));
	labels->conf.nr_keys = keys->nr;
	for (i = 0; i < keys->nr; i++) {
		if (keys->place[i] < SB_LABELS_MAX)
			labels->conf.wanted[i / 64] |= 1ull << i % 64;
		if (is_of_span(interp, keys->place[i]))
			labels->conf.span_key = i;
	}
	return memcmp(&before, &labels->conf, sizeof(before)) != 0;
}

static int on_line(void *arg, const struct sb_maps_line *line)
{
	uint64_t *addr = arg;

	if (!*addr && sb_label_is_context(line->path, line->path_len))
		*addr = line->start;
	return 0;
}

/* Read the key table again. Return: whether it has a key @number now. */
static bool read_keys(const struct sb_interp *interp, struct space *space, uint32_t number)
{
	struct sb_labels *labels = space->labels;
	const struct sb_label_names names = names_of(interp);

	if (labels->context_addr &&
	    !sb_label_keys_read(&space->memory, labels->context_addr, &names, &labels->keys) &&
	    number < labels->keys.nr)
		return true;
	if (sb_now_ns() - labels->read_ns < CONTEXT_REST_NS)
		return false;
	labels->read_ns = sb_now_ns();
	labels->context_addr = 0;
	/* If the mappings cannot be read, there is no table. */
	(void)sb_procfs_maps(space->key.tgid, on_line, &labels->context_addr);
	return labels->context_addr &&
	       !sb_label_keys_read(&space->memory, labels->context_addr, &names, &labels->keys) &&
	       number < labels->keys.nr;
}

void sb_labels_look_begin(struct space *space, const struct sb_process_maps *maps)
{
	struct sb_labels *labels = space->labels;
	size_t i;

	if (!labels)
		return;
	labels->is_seen = false;
	labels->context_addr = 0;
	for (i = 0; i < maps->nr && !labels->context_addr; i++)
		if (sb_label_is_context(maps->at[i].path, strlen(maps->at[i].path)))
			labels->context_addr = maps->at[i].start;
}

/* The first file with the variable counts, because the other files' references are bound to it. */
int sb_labels_look_at(struct sb_interp *interp, struct space *space, const struct sb_image *image,
		      const struct sb_process_maps *maps)
{
	struct sb_labels *labels = space->labels;
	int err;

	if (!labels) {
		labels = calloc(1, sizeof(*labels));
		if (!labels)
			return -ENOMEM;
		space->labels = labels;
		sb_labels_look_begin(space, maps);
	}
	if (labels->is_seen)
		return 0;
	if (labels->image.file != image->file || labels->image.bias != image->bias) {
		labels->image = *image;
		labels->has_conf = false;
		labels->keys.nr = 0;
		if (!sb_label_place_find(&labels->image, &labels->place))
			return 0;
	}
	labels->is_seen = true;
	if (labels->has_conf)
		return 0;
	err = conf_of(&labels->place, &space->memory, maps, &labels->conf);
	if (err)
		return err == -ENOTSUP ? 0 : err;
	labels->has_conf = true;
	want_names(interp, &labels->conf);
	if (labels->conf.kind == SB_LABEL_OTEL && labels->context_addr)
		read_keys(interp, space, 0);
	mask_keys(interp, labels);
	return 0;
}

void sb_labels_look_end(struct space *space)
{
	if (space->labels && !space->labels->is_seen)
		memset(&space->labels->image, 0, sizeof(space->labels->image));
	if (space->labels && !space->labels->is_seen)
		space->labels->has_conf = false;
}

/* Decoding of sets. */

struct values {
	const uint8_t *at[SB_LABELS_MAX]; /* NULL: the key is not in it */
	uint8_t len[SB_LABELS_MAX];
	char trace_id[33], span_id[17]; /* in hexadecimal, which `at` points to */
};

/* Return: the index in the run's list, or NOT_WANTED. @bits: SB_LABELS_* are added. */
static uint8_t place_of(struct sb_interp *interp, struct space *space, uint32_t kind,
			uint8_t number, int *bits)
{
	struct sb_labels *labels = space->labels;

	if (kind != SB_LABEL_OTEL)
		return number;
	if (!labels)
		return SB_LABEL_NOT_WANTED;
	if (number >= labels->keys.nr && read_keys(interp, space, number) &&
	    mask_keys(interp, labels))
		*bits |= SB_LABELS_CHANGED;
	if (number < labels->keys.nr)
		return labels->keys.place[number];
	/* The process may be changing its table at this moment. */
	if (labels->nr_again < AGAIN_MAX) {
		labels->nr_again++;
		*bits |= SB_LABELS_AGAIN;
	}
	interp->stats.nr_unknown_keys++;
	return SB_LABEL_NOT_WANTED;
}

static void put_id(const struct sb_interp *interp, struct values *values, uint32_t id, char *text,
		   const uint8_t *bytes, size_t nr_bytes)
{
	bool is_set = false;
	size_t i;

	for (i = 0; i < nr_bytes; i++) {
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
		is_set |= bytes[i];
	}
	for (i = 0; is_set && i < interp->opts.nr_labels && i < SB_LABELS_MAX; i++)
		if (id_of(interp->opts.labels[i]) == id) {
			values->at[i] = (const uint8_t *)text;
			values->len[i] = (uint8_t)(2 * nr_bytes);
		}
}

/* Read the IDs with which the set begins, if it has any. Return: where its labels begin. */
static size_t read_ids(const struct sb_interp *interp, const struct sb_interp_label_set *set,
		       struct values *values)
{
	const uint8_t *data = set->data;

	if (!set->has_ids || set->nr_bytes < SB_LABEL_IDS_BYTES)
		return 0;
	put_id(interp, values, SB_LABEL_TRACE_ID, values->trace_id, data, 16);
	put_id(interp, values, SB_LABEL_SPAN_ID, values->span_id, data + 16, 8);
	return SB_LABEL_IDS_BYTES;
}

/* Of two with the same key the last one counts (OTEP 4947), also if the first one is an ID. */
static void read_values(struct sb_interp *interp, struct space *space,
			const struct sb_interp_label_set *set, struct values *values, int *bits)
{
	const uint8_t *data = set->data;
	size_t at, len;
	uint8_t place;

	for (at = read_ids(interp, set, values); at + 2 <= set->nr_bytes; at += 2 + len) {
		len = data[at + 1];
		if (len > set->nr_bytes - at - 2)
			return;
		place = place_of(interp, space, set->kind, data[at], bits);
		if (place >= interp->opts.nr_labels || place >= SB_LABELS_MAX)
			continue;
		values->at[place] = data + at + 2;
		values->len[place] = (uint8_t)len;
	}
}

static int add_text(const struct sb_interp *interp, const struct values *values,
		    struct sb_str *text)
{
	size_t i, first;
	int err = 0;

	for (i = 0; i < interp->opts.nr_labels && !err; i++) {
		first = text->len;
		if (values->at[i])
			err = sb_str_addn(text, (const char *)values->at[i],
					  strnlen((const char *)values->at[i], values->len[i]));
		if (!err && text->len > first)
			sb_replace_controls(text->s + first, text->len - first);
		if (!err)
			err = sb_str_addc(text, '\0');
	}
	return err;
}

int sb_interp_labels(struct sb_interp *interp, const struct sb_space_key *key,
		     const struct sb_interp_label_set *set, struct sb_str *text)
{
	struct values values = {};
	struct space *space;
	int err, bits = 0;

	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	if (space)
		read_values(interp, space, set, &values, &bits);
	else
		interp->stats.nr_unknown_keys++;
	interp->stats.nr_label_sets++;
	err = add_text(interp, &values, text);
	pthread_mutex_unlock(&interp->lock);
	return err ? err : bits;
}

/* Threads that sleep. */

static void walk(struct sb_label_walk *w, const struct sb_memory *memory)
{
	void *mem = (void *)memory;
	int i;

	if (sb_label_begin(w, mem) != SB_STEP_GO_ON)
		return;
	for (i = 0; i < SB_LABEL_ATTRS_MAX; i++)
		if (sb_label_step(w, mem) != SB_STEP_GO_ON)
			return;
}

int sb_interp_labels_outside(struct sb_interp *interp, const struct sb_space_key *key,
			     uint64_t thread_pointer, const __u64 *regs, struct sb_str *text)
{
	sb_cleanup(sb_freep) struct sb_label_walk *w = calloc(1, sizeof(*w));
	struct sb_interp_label_set set;
	struct space *space;
	bool has_conf;

	if (!w)
		return -ENOMEM;
	pthread_mutex_lock(&interp->lock);
	space = sb_interp_find(interp, key);
	has_conf = space && space->labels && space->labels->has_conf;
	if (has_conf) {
		w->conf = space->labels->conf;
		w->thread_pointer = thread_pointer;
#ifdef SB_MACHINE_ARM64
		w->go_register = regs[28];
#endif
		walk(w, &space->memory);
	}
	pthread_mutex_unlock(&interp->lock);
	if (!w->nr_bytes)
		return 0;
	set = (struct sb_interp_label_set){
		.kind = w->conf.kind,
		.has_ids = w->has_ids,
		.nr_bytes = w->nr_bytes,
		.data = w->data,
	};
	return sb_interp_labels(interp, key, &set, text);
}
