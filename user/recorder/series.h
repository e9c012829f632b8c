/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Assigns samples to series by their tags. Tags are what is known of the process, read once while
 * it lives, and what the sample's own key says; samples with the same tags are one series. What a
 * process says of itself (environment, name) is untrusted text: values are truncated to 200 bytes,
 * and control characters are replaced. Used by blocks.c.
 *
 *	cgroup unit container	of the process, from /proc/PID/cgroup
 *	service			OTEL_SERVICE_NAME, service.name of OTEL_RESOURCE_ATTRIBUTES,
 *				or the unit, the container, the name of the program
 *	runtime			sb_interp_runtime_of(), or "kernel"; none if nobody looked in time
 *	comm			of the thread
 *	uid			the real user ID of the process
 *	pid tid			wide tags: tid only if asked for; of processes that began before the
 *				block or outlive it
 *
 * One thread. Pointers are not NULL unless it says so; @text and @env below are not kept. Order of
 * calls: sb_series_new(), sb_series_begin(); for each block sb_series_next_block(), sb_series_of()
 * for its samples, and sb_series_all(); at last sb_series_free().
 */
#ifndef SB_RECORDER_SERIES_H
#define SB_RECORDER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi.h"
#include "store/block.h"

struct sb_interp;
struct sb_processes;
struct sb_series_table;

struct sb_series_opts {
	bool by_thread;		   /* tag with tid */
	const char *const *labels; /* keys of labels that become tags; borrowed */
	size_t nr_labels;
	/* Views whose samples come together, SB_VIEWS_MAX at most: sb_sample_key.view is below. */
	uint32_t nr_kinds;
};
/* Make an empty table. @opts is copied; the labels are borrowed until the free. Return: 0 and
 * *ret_table, owned by the caller; -ENOMEM, and it is untouched. */
int sb_series_new(const struct sb_series_opts *opts, struct sb_series_table **ret_table);
/* Free the table; NULL is allowed. */
void sb_series_free(struct sb_series_table *table);
/**
 * sb_series_begin() - set the registry of processes, before the first sample
 * @processes: borrowed until sb_series_free(), which does not give back the references that the
 *	table keeps in it
 * @interp: source of the tag "runtime"; borrowed until sb_series_free(); NULL: there is none
 */
void sb_series_begin(struct sb_series_table *table, struct sb_processes *processes,
		     struct sb_interp *interp);
/*
 * Return: the bits SB_BY_* of the fields of sb_sample_key that sb_series_of() reads, so that the
 * BPF side must fill them in and count samples that differ by them apart: for sb_run_sink.by, which
 * is read before the BPF programs are loaded. Set by the options; may be called before
 * sb_series_begin().
 */
uint32_t sb_series_by(const struct sb_series_table *table);

/*
 * Find the series of @key in the current block; for struct sb_resolve_opts, hence @table is a void
 * pointer. @key: borrowed for the call; its view is not checked. @labels: the values of the
 * options' labels, NULL where the thread has none; copied; the array may be NULL without labels.
 * @ret_series: an index of what sb_series_all() gives. When there are nearly SB_BLOCK_SERIES_MAX
 * series of a kind, owners, which are users, services and containers, get fair shares
 * (store/share.h); samples of an owner beyond its share are in its series "(other)". Return: 0;
 * -ENOMEM, and the sample has no series and *ret_series is not to be used.
 */
int sb_series_of(void *table, const struct sb_sample_key *key, const char *const *labels,
		 uint32_t *ret_series);

/*
 * Get the tags of all series of the block, at its end: an array that is indexed by what
 * sb_series_of() gave. What is known of a process by now is in the tags of all of its samples. The
 * array and its strings are the table's, valid until the next sb_series_all() or sb_series_free();
 * it has no elements, and may be NULL, if the block has no samples. Return: 0; -ENOMEM, and the
 * array is not to be used.
 */
int sb_series_all(struct sb_series_table *table, const struct sb_block_tags **ret_tags,
		  size_t *ret_nr);
/* Begin a new block: series get new indexes, from the beginning, and processes that had no samples
 * in the last two blocks are dropped. */
void sb_series_next_block(struct sb_series_table *table);

/* For tests: append the path of a process's cgroup to @path. @text: contents of /proc/PID/cgroup;
 * the first path that is not the root, of version 2, or of version 1 systemd's hierarchy, that of
 * memory, that of pids. Return: 0; -ENOENT: there is none; -ENOMEM; on error nothing is
 * appended. */
int sb_series_cgroup(const char *text, struct sb_str *path);
/* For tests: append the service that an environment names to @service: OTEL_SERVICE_NAME, or else
 * service.name of OTEL_RESOURCE_ATTRIBUTES, if it is not empty; neither truncated nor cleaned.
 * @env: strings ended by NUL, @len bytes in all; a last one without NUL is ignored. Return: 0;
 * -ENOENT if it names none; -ENOMEM; on error nothing is appended. */
int sb_series_service(const char *env, size_t len, struct sb_str *service);

#endif
