/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sbsym --cfi: print the unwind table that the unwinder would use for a file. */
#ifndef SB_MAIN_CFI_H
#define SB_MAIN_CFI_H

/* The exit codes of sbsym. */
enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_TARGET = 5 };

/*
 * Print to stdout the rows of the unwind table of the file @path or, if @nr is not 0, for each of
 * the ELF addresses @addrs (hexadecimal text) the row that is valid there. Errors go to stderr.
 * @debug_dirs: where to look for separate debug files, NULL-terminated; NULL: the usual places.
 * Return: an exit code.
 */
int sb_main_cfi(const char *path, const char *const *debug_dirs, char **addrs, int nr);
/*
 * Print one line of counters for each of the @nr files @paths that has a table, and one for all of
 * them. @debug_dirs: as above. Return: an exit code.
 */
int sb_main_cfi_summary(const char *const *debug_dirs, char **paths, int nr);

#endif
