// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The other half of dwarf_prog.c. Large enough that its unit is found by a range of its own. */
#define probe(x) __asm__ volatile(".globl probe_" #x "\nprobe_" #x ": nop")

#ifdef __cplusplus
extern "C"
#endif
	int
	other_half(int a);

int other_half(int a)
{
	probe(other); /* @other.0: */
	return a ^ 5;
}
