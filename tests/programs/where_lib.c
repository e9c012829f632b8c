// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library to be loaded by `where`. */
int lib_one(void);
int lib_two(void);

int lib_one(void)
{
	return 1;
}

int lib_two(void)
{
	return 2;
}
