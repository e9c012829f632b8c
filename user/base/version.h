/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which stackbpf this is: constants, for any thread. */
#ifndef SB_BASE_VERSION_H
#define SB_BASE_VERSION_H

extern const char sb_version[]; /* "0.1.0" */
/* Of the source: twelve digits, "-dirty" behind them if files were changed; or "unknown". */
extern const char sb_commit[];

/* Print the line "PROGRAM VERSION (commit COMMIT)" with its newline to stdout; the caller checks
 * stdout for errors. */
void sb_version_print(const char *program);

#endif
