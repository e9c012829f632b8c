/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sbsym --cfi: print the unwind table that the unwinder would use for a file. */
#ifndef SB_MAIN_CFI_H
#define SB_MAIN_CFI_H

/* The exit codes of sbsym. */
enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_TARGET = 5 };

/*
 * Print the rows of @path or, if there are @addrs, for each address the row that is valid there.
 * Errors are printed, too. @debug_dirs: see sb_symbolizer_opts. Return: an exit code.
 */
int sb_main_cfi(const char *path, const char *const *debug_dirs, char **addrs, int nr);
/*
 * Print one line of counters for each file that has a table, and one in all. Return: an exit code.
 */
int sb_main_cfi_summary(const char *const *debug_dirs, char **paths, int nr);

#endif
