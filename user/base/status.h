/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers of /proc/PID/status, proc_pid_status(5). Thread: any. */
#ifndef SB_BASE_STATUS_H
#define SB_BASE_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* Such a file is read up to here. It has about 1.5 KiB; lists of CPUs and memory nodes make it
 * longer, and supplementary groups, 65,536 of up to 11 bytes. */
#define SB_STATUS_BYTES_MAX (1u << 20)

/*
 * Find the line of @status that begins with "@key:" and read the decimal numbers that follow,
 * separated by blanks, up to the end of the line or to the first thing that is no number of 64
 * bits. The first @max of them are stored in @ret_nums, whose other elements are untouched.
 * @status: the text of the file, a string
 * @key: a string, without the colon
 * @ret_nums: may be NULL if @max is 0
 * Return: how many numbers the line has, which may be more than @max; 0 when there is no such line.
 */
size_t sb_status_numbers(const char *status, const char *key, uint64_t *ret_nums, size_t max);

#endif
