/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of `allocations` share: modules, each of which is taken through its life once.
 * Return: 0; -ENOMEM: memory was missing and this was told; others: a mistake. */
#ifndef SB_UNIT_ALLOCATIONS_H
#define SB_UNIT_ALLOCATIONS_H

#include <stdio.h>

/* Where results are written; open before the first module runs. */
extern FILE *nowhere;

int profiles(void);
int outputs(void);
int comparisons(void);
int exports(void);
int pictures(void);

#endif
