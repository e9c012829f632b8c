// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All versions export PyGILState_GetThisThreadState(), which does nothing but read where a thread's
 * state is. This is its machine code:
 *
 *	3.6 library		mov K(%rip),%edi; jmp PyThread_get_key_value
 *	3.7-3.11 library	mov GOT(%rip),%rax; lea d(%rax),%rdi; jmp PyThread_tss_get
 *	3.12-3.14 library	the same by way of %rbx, and PyThread_tss_is_created() before
 *	3.8-3.13 program	mov K(%rip),%edi; jmp pthread_getspecific
 *	3.14 program		mov $imm,%edi; jmp PyThread_tss_get
 *	3.15 program		mov %fs:d,%rax; ret
 *	3.15 library		lea GOT(%rip),%rdi; call __tls_get_addr; mov d(%rax),%rax; ret
 *
 * That is on x86-64. On other machines, the table of layouts has the place of the key.
 */
#include <errno.h>
#include <string.h>

#include "interp/core/stub.h"
#include "interp/python/python_priv.h"
#include "symbolizer/elf/disasm.h"

#define STUB	       "PyGILState_GetThisThreadState"

/* The shapes of its code are those of x86-64. */
#define IS_CODE_READ   (SB_INSN_HERE == &sb_insn_x86)
/* Py_tss_t is {is_initialized, key}. */
#define TSS_KEY_OFFSET 4u

struct seek {
	struct sb_runtime *rt;
	struct sb_python_conf *conf;
};

static int see_variable(struct seek *seek, const struct sb_stub_value *value)
{
	struct sb_python_conf *conf = seek->conf;
	uint64_t off;

	if (value->nr_loads != 1)
		return 0;
	switch (value->base) {
	case SB_STUB_FS:
		conf->tls = (uint64_t)value->off[0];
		conf->flags |= SB_PYTHON_TLS_FS;
		return 1;
	case SB_STUB_FS_SLOT:
		if (sb_memory_u64(seek->rt->memory, value->addr, &off))
			return 0;
		conf->tls = off + (uint64_t)value->off[0];
		conf->flags |= SB_PYTHON_TLS_FS;
		return 1;
	case SB_STUB_TLS:
		conf->tls = value->addr;
		conf->tls_off = (uint32_t)value->off[0];
		conf->flags |= SB_PYTHON_TLS_GOT;
		return 1;
	default:
		return 0;
	}
}

/* The argument is the key, read from its address, or the address of the Py_tss_t that holds it. */
static int see_argument(struct seek *seek, const struct sb_stub_value *value)
{
	const struct sb_memory *memory = seek->rt->memory;
	uint64_t addr;
	bool is_address = !value->nr_loads || value->off[value->nr_loads];

	if (value->base != SB_STUB_CONST)
		return 0;
	if (is_address ? sb_stub_value(memory, value, &addr)
		       : sb_stub_address(memory, value, &addr))
		return 0;
	if (is_address)
		addr += TSS_KEY_OFFSET;
	seek->conf->key_addr = addr;
	return 1;
}

static int see(void *arg, const struct sb_stub *stub)
{
	struct seek *seek = arg;
	const char *name;

	if (stub->exit == SB_STUB_RET)
		return see_variable(seek, &stub->reg[SB_STUB_RESULT]);
	name = sb_stub_callee(seek->rt->image, stub);
	if (name && !strcmp(name, "__tls_get_addr"))
		return 0;
	return see_argument(seek, &stub->reg[SB_INSN_HERE->reg_argument]);
}

/* Up to 3.6: cmpq $0,autoInterpreterState(%rip) begins it. */
static int find_interp(struct sb_runtime *rt, uint64_t addr, struct sb_python_conf *conf)
{
	uint8_t code[32];
	struct sb_insn insn;
	size_t at = 0;

	if (sb_image_read(rt->image, addr, code, sizeof(code)))
		return -ENOENT;
	while (at < sizeof(code) &&
	       !sb_insn_x86.decode(code + at, sizeof(code) - at, addr + at, &insn)) {
		if (insn.kind == SB_INSN_CMP_IMM && insn.base == SB_INSN_NO_BASE && !insn.imm) {
			conf->interps = (uint64_t)insn.disp;
			return 0;
		}
		at += insn.len;
	}
	return -ENOENT;
}

int sb_python_find_state(struct sb_runtime *rt, const struct sb_python_layout *layout,
			 struct sb_python_conf *conf)
{
	struct seek seek = { rt, conf };
	uint64_t addr;

	if (sb_image_symbol(rt->image, STUB, &addr, NULL))
		addr = 0;
	if (layout->runtime)
		conf->interps = layout->runtime + layout->heads;
	else if (!IS_CODE_READ || !addr || find_interp(rt, addr, conf))
		return -ENOENT;
	if (conf->flags & SB_PYTHON_LISTED)
		return 0;
	if (IS_CODE_READ && addr && sb_stub_follow(rt->image, addr, see, &seek) > 0)
		return 0;
	if (!layout->key)
		return -ENOENT;
	conf->key_addr = layout->runtime + layout->key;
	return 0;
}
