/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What short accessor functions say of where an interpreter keeps its state. They are followed
 * symbolically: at each call, jump out and return, it is known where the registers' values come
 * from, as far as they come from constants, the thread pointer, or __tls_get_addr().
 *
 *	mov GOT(%rip),%rax; lea 8(%rax),%rdi; call f	rdi = CONST GOT, load, + 8
 *	mov x(%rip),%edi; jmp f				rdi = CONST x, load
 *	mov %fs:-24,%rax; mov 16(%rax),%rax; ret	rax = FS - 24, load, + 16, load
 *	lea GOT(%rip),%rdi; call __tls_get_addr;	rax = TLS GOT, + 8, load
 *	mov 8(%rax),%rax; ret
 *
 * Any thread.
 */
#ifndef SB_INTERP_STUB_H
#define SB_INTERP_STUB_H

#include <stddef.h>
#include <stdint.h>

struct sb_image;
struct sb_memory;

#define SB_STUB_LOADS_MAX 4

enum sb_stub_base {
	SB_STUB_UNKNOWN,
	SB_STUB_CONST,	 /* addr */
	SB_STUB_FS,	 /* the thread pointer */
	SB_STUB_FS_SLOT, /* the thread pointer and the word at addr: initial-exec TLS */
	SB_STUB_TLS,	 /* what __tls_get_addr() makes of the pair at addr */
};

/* base + off[0], then nr_loads times: the word there, + off[i]. */
struct sb_stub_value {
	uint8_t base; /* enum sb_stub_base */
	uint8_t nr_loads;
	uint64_t addr;
	int64_t off[SB_STUB_LOADS_MAX + 1];
};

enum sb_stub_exit {
	SB_STUB_CALL,
	SB_STUB_JUMP, /* a tail call */
	SB_STUB_RET,
};

struct sb_stub {
	enum sb_stub_exit exit;
	uint64_t at;		      /* the instruction */
	uint64_t target;	      /* of a call or jump; 0: not known */
	uint64_t target_slot;	      /* or the GOT entry that it goes through; 0: none */
	struct sb_stub_value reg[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8...: before the call */
};
#define SB_STUB_RAX 0
#define SB_STUB_RDI 7

/* Return: 0: go on; else it ends, and is returned. */
typedef int (*sb_stub_fn)(void *arg, const struct sb_stub *stub);
/* Return: whether what is called is __tls_get_addr(). */
typedef int (*sb_stub_is_tls_fn)(void *arg, const struct sb_stub *stub);

/*
 * Follow the function at @addr of @image, both sides of its branches, at most 96 instructions.
 * Return: what @fn returned, 0 at the end, -EFAULT.
 */
int sb_stub_follow(struct sb_image *image, uint64_t addr, sb_stub_fn fn, void *arg);
/* The same for @len bytes of code. @is_tls gets @arg, too, and may be NULL. */
int sb_stub_follow_code(const uint8_t *code, size_t len, uint64_t addr, sb_stub_fn fn,
			sb_stub_is_tls_fn is_tls, void *arg);
/* The name of what is called through the PLT or the GOT; or NULL. Valid until the next call. */
const char *sb_stub_callee(struct sb_image *image, const struct sb_stub *stub);

/*
 * What a value is in a process; sb_stub_address(): where it was loaded from last. Of constants only.
 * Return: 0, -EINVAL: it has another base, or was never loaded; -EFAULT.
 */
int sb_stub_value(const struct sb_memory *memory, const struct sb_stub_value *value, uint64_t *ret);
int sb_stub_address(const struct sb_memory *memory, const struct sb_stub_value *value,
		    uint64_t *ret);

#endif
