/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes of the provider "otel_memory", as <sys/sdt.h> of SystemTap would write them: a nop, a
 * note in the file that says where it is and in which registers its arguments are, and a counter of
 * listeners, which the kernel keeps. The contract is that of OpenTelemetry's profiler (design
 * document 00003): alloc(ptr, size, weighted_bytes), and free(ptr) for what was in an alloc.
 *
 * Thread: any. Without a listener a probe does nothing; nothing is returned, and a pointer is
 * passed on as a number, whether or not it is NULL.
 */
#ifndef SB_PRELOAD_USDT_H
#define SB_PRELOAD_USDT_H

#include <stdint.h>

/* How many listen to each probe, 0: nobody. Both are in alloc.c, and exported so that a program can
 * pretend to listen. */
extern volatile uint16_t otel_memory_alloc_semaphore, otel_memory_free_semaphore;

/* The anchor .stapsdt.base tells readers by how much a file was moved by prelink(8). */
#define SB_USDT_NOTE(name, args)                                                \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
	".balign 4\n"                                                           \
	".4byte 992f-991f, 994f-993f, 3\n"                                      \
	"991: .asciz \"stapsdt\"\n"                                             \
	"992: .balign 4\n"                                                      \
	"993: .8byte 990b, _.stapsdt.base, otel_memory_" name "_semaphore\n"    \
	".asciz \"otel_memory\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n"    \
	"994: .balign 4\n"                                                      \
	".popsection\n"                                                         \
	".ifndef _.stapsdt.base\n"                                              \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                        \
	"_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                   \
	".popsection\n.endif\n"

#if defined(__x86_64__)
#define SB_USDT_IN_1 "rdi"
#define SB_USDT_IN_2 "rsi"
#define SB_USDT_IN_3 "rdx"
#define SB_USDT_NAME "%%"
#elif defined(__aarch64__)
#define SB_USDT_IN_1 "x0"
#define SB_USDT_IN_2 "x1"
#define SB_USDT_IN_3 "x2"
#define SB_USDT_NAME ""
#else
#error "which registers take the arguments of a probe?"
#endif

/* Fire alloc: @pointer was allocated with @size bytes and is a sample, which stands for @weighted
 * bytes. Inlined, so that the leaf of the stack is the function that the program called. */
static inline __attribute__((always_inline)) void sb_usdt_alloc(const void *pointer, uint64_t size,
								uint64_t weighted)
{
	register const void *in_1 __asm__(SB_USDT_IN_1) = pointer;
	register uint64_t in_2 __asm__(SB_USDT_IN_2) = size;
	register uint64_t in_3 __asm__(SB_USDT_IN_3) = weighted;

	__asm__ volatile("990: nop\n" SB_USDT_NOTE("alloc", "8@" SB_USDT_NAME SB_USDT_IN_1
							    " 8@" SB_USDT_NAME SB_USDT_IN_2
							    " 8@" SB_USDT_NAME SB_USDT_IN_3)
			 :
			 : "r"(in_1), "r"(in_2), "r"(in_3));
}

/* Fire free: @pointer, of an alloc before, is about to be freed. */
static inline __attribute__((always_inline)) void sb_usdt_free(const void *pointer)
{
	register const void *in_1 __asm__(SB_USDT_IN_1) = pointer;

	__asm__ volatile("990: nop\n" SB_USDT_NOTE("free", "8@" SB_USDT_NAME SB_USDT_IN_1)
			 :
			 : "r"(in_1));
}

#endif
