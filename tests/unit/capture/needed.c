// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library that test_cmdfiles.c needs; it lies where only that program's DT_RUNPATH says. */
int unit_needed(void);

int unit_needed(void)
{
	return 1;
}
