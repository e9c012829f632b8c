/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sbsym --cfi: the table the unwinder would use for a file. */
#ifndef SB_MAIN_CFI_H
#define SB_MAIN_CFI_H

/* What sbsym exits with. */
enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_TARGET = 5 };

/*
 * Print the rows of @path; with addresses, of each the one that holds there. @debug_dirs: see
 * sb_symbolizer_opts. Return: an exit code; what is wrong was told.
 */
int sb_main_cfi(const char *path, const char *const *debug_dirs, char **addrs, int nr);
/* One line of figures for each file that has a table, and one for all. Return: an exit code. */
int sb_main_cfi_summary(const char *const *debug_dirs, char **paths, int nr);

#endif
