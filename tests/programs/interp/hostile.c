// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looks like a program with an interpreter in it: it exports what that exports (-DFORGE_...: which
 * one). All there is behind it is a swamp: words that lead into it, to themselves, to pages that
 * are not there, to the kernel, or to nothing; written anew all the time. Meanwhile it does what
 * split.c does: main > turn > seventy, twenty, ten > spin, 70, 20 and 10 % of the time. "hostile
 * NAME SEED".
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define CHUNK	    100000u
#define SWAMP_WORDS (1u << 17)
#define TURN_WORDS  2000u
#define PAGE_BYTES  4096u

static volatile uint32_t sink;
static uint64_t *swamp, unmapped, seed;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* What stands at @at. */
static uint64_t bad_word(const uint64_t *at)
{
	uint64_t random = next();

	switch (next() % 12) {
	case 0:
		return (uint64_t)at;
	case 1:
		return unmapped + random % PAGE_BYTES;
	case 2: /* the last bytes before a page that is not there */
		return unmapped - 1 - random % 16;
	case 3:
		return 0xffff888000000000ull | random >> 24;
	case 4:
		return 0x800000000000ull + (random >> 40);
	case 5:
		return random % 64;
	case 6:
		return UINT64_MAX - random % 64;
	case 7:
		return random;
	case 8:
		return (uint64_t)swamp + random % (8 * SWAMP_WORDS);
	default:
		return (uint64_t)(swamp + random % SWAMP_WORDS);
	}
}

static void fill(uint64_t *words, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		words[i] = bad_word(&words[i]);
}

/* An exported variable, in memory only; code, as it is in the file. */
#define DATA(name, nr) uint64_t name[nr]
#define CODE(name, ...)                                                                    \
	__asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name \
		": " __VA_ARGS__ "\nret\n.fill 64, 1, 0xcc\n.size " #name ", . - " #name   \
		"\n.popsection")
#define GARBAGE "mov 0x123456(%rip), %rdi; lea (%rdi,%rdi,8), %rax; mov 0x28(%rax), %rax; jmp *%rax"

static void arrange(void);

#ifdef FORGE_PYTHON
const uint32_t Py_Version = FORGE_PYTHON;
DATA(_PyRuntime, 4096);
DATA(PyCode_Type, 64);
CODE(PyGILState_GetThisThreadState, GARBAGE);
CODE(_PyEval_EvalFrameDefault, GARBAGE);

/* An interpreter and a thread that are their own successors, and frames that never end: as much
 * work as there can be. Offsets are those of 3.11; others describe themselves, in odd ways. */
static void arrange(void)
{
	static pthread_key_t key;
	uint64_t *interp = swamp + 1024, *state = swamp + 2048, *frame = swamp + 3072;
	uint64_t i;

	if (!key)
		pthread_key_create(&key, NULL);
	if (FORGE_PYTHON >> 16 != 0x30b) {
		for (i = 3; i < 96; i++)
			_PyRuntime[i] = next() % (next() % 8 ? 512 : 70000);
		_PyRuntime[0] = 0x7970677562656478ull;
		_PyRuntime[1] = FORGE_PYTHON;
		_PyRuntime[2] = next() & 1;
		return;
	}
	_PyRuntime[5] = _PyRuntime[6] = (uint64_t)interp;
	((uint32_t *)_PyRuntime)[149] = key;
	pthread_setspecific(key, state);
	interp[0] = (uint64_t)interp;
	interp[2] = (uint64_t)state;
	state[1] = (uint64_t)state;
	state[2] = (uint64_t)interp;
	state[7] = (uint64_t)(state + 64);
	state[19] = (uint64_t)pthread_self();
	state[64 + 1] = (uint64_t)frame;
	frame[4] = (uint64_t)(swamp + next() % SWAMP_WORDS);
	frame[6] = next() % 4 ? (uint64_t)frame : (uint64_t)(swamp + next() % SWAMP_WORDS);
}
#elif defined(FORGE_PERL)
const uint8_t PL_revision = 5, PL_version = FORGE_PERL, PL_subversion = 255;
DATA(PL_curinterp, 1);
DATA(PL_op_name, 400);
DATA(PL_ppaddr, 400);
#if FORGE_PERL % 4
DATA(PL_thr_key, 1);
#else
DATA(PL_curstackinfo, 1);
DATA(PL_curcop, 1);
DATA(PL_compiling, 64);
#endif
CODE(Perl_runops_standard, GARBAGE);
CODE(perl_run, GARBAGE);

/* Stacks of which each is the one before itself. */
static void arrange(void)
{
	uint64_t *si = swamp + 1024, i;

	PL_curinterp[0] = (uint64_t)swamp;
	for (i = 0; i < 64; i++)
		swamp[i] = (uint64_t)si;
	for (i = 0; i < 16; i++)
		si[i] = next() % 2 ? (uint64_t)si : bad_word(si);
}
#elif defined(FORGE_RUBY)
const char ruby_version[] = FORGE_RUBY;
DATA(ruby_current_vm_ptr, 1);
DATA(ruby_global_symbols, 64);
DATA(ruby_current_ec, 1);
CODE(rb_thread_current, GARBAGE);
CODE(ruby_vm_at_exit, GARBAGE);
CODE(rb_vm_exec, GARBAGE);
static void arrange(void)
{
	ruby_current_vm_ptr[0] = (uint64_t)swamp;
}
#elif defined(FORGE_PHP)
const char php_banner[] = "X-Powered-By: PHP/" FORGE_PHP;
DATA(executor_globals, 1024);
DATA(compiler_globals, 64);
const uint32_t zend_vm_kind = 4;
CODE(execute_ex, "sub $8, %rsp; " GARBAGE);
CODE(zend_get_executed_scope, "mov executor_globals@GOTPCREL(%rip), %rax; mov 0x1e8(%rax), %rax;"
			      "mov 0x18(%rax), %rdx; mov 0x30(%rax), %rcx; mov 0x10(%rdx), %rax");
CODE(zend_get_executed_filename_ex, "mov executor_globals@GOTPCREL(%rip), %rax;"
				    "mov 0x1e8(%rax), %rax; mov 0x18(%rax), %rdx;"
				    "mov 0x30(%rax), %rcx; mov 0x98(%rdx), %rax");
static void arrange(void)
{
	executor_globals[0x1e8 / 8] = (uint64_t)(swamp + next() % SWAMP_WORDS);
}
#elif defined(FORGE_LUA)
/* This one is believed: its code is as it should be. It has frames, but they are its own affair. */
char lua_ident[128];
CODE(lua_close, "mov 24(%rdi), %rax; mov 264(%rax), %rdi");
CODE(lua_gettop, "mov 32(%rdi), %rax");
static void arrange(void)
{
	strcpy(lua_ident, "$LuaVersion: Lua 5.4.4\033[31m\n  Copyright");
}
#elif defined(FORGE_LUAJIT)
CODE(luaJIT_setmode, GARBAGE);
CODE(luaJIT_version_2_1_FORGED, GARBAGE);
CODE(lua_gettop, "mov 0x28(%rdi), %rax; sub 0x20(%rdi), %rax");
CODE(lua_close, "mov 0x10(%rdi), %rax; mov 0xc0(%rax), %rdi; mov %rdi, 0x170(%rax)");
CODE(lua_call, "call lj_forged + 128");
__asm__(".pushsection .text\n.type lj_forged, @function\nlj_forged: .cfi_startproc\n"
	".rept 1000\nadd $0x12345, %r14\n.endr\nret\n.cfi_endproc\n.popsection");
static void arrange(void) {}
#elif defined(FORGE_HOTSPOT)
#include "interp/hotspot/hotspot_priv.h"
struct entry {
	const char *type, *field;
	uint64_t is_static, offset, address, size;
};
#define FIELD(name, type, field) { type, field, 0, 0, 0, 0 },
#define SIZE(name, type)	 { type, NULL, 0, 0, 0, 0 },
static struct entry fields[] = { SB_HOTSPOT_FIELDS(FIELD){} };
static struct entry sizes[] = { SB_HOTSPOT_SIZES(SIZE){} };
struct entry *gHotSpotVMStructs = fields, *gHotSpotVMTypes = sizes;
#define EXPORT(name, val)	 uint64_t gHotSpotVM##name = val
EXPORT(StructEntryArrayStride, sizeof(struct entry));
EXPORT(StructEntryTypeNameOffset, 0);
EXPORT(StructEntryFieldNameOffset, 8);
EXPORT(StructEntryIsStaticOffset, 16);
EXPORT(StructEntryOffsetOffset, 24);
EXPORT(StructEntryAddressOffset, 32);
EXPORT(TypeEntryArrayStride, sizeof(struct entry));
EXPORT(TypeEntryTypeNameOffset, 0);
EXPORT(TypeEntrySizeOffset, 40);

/* Now and then the tables have no end. */
static void arrange(void)
{
	size_t i, nr = sizeof(fields) / sizeof(fields[0]) - 1;
	bool is_huge = next() % 4 == 0;

	for (i = 0; i < nr; i++) {
		/* static ones: the tables of heaps, the interpreter, versions, classes */
		fields[i].is_static = !strncmp(fields[i].type, "Abstract", 8) ||
				      !strcmp(fields[i].type, "CodeCache") ||
				      !strcmp(fields[i].type, "SystemDictionary") ||
				      !strcmp(fields[i].type, "vmClasses");
		fields[i].offset = is_huge ? bad_word(swamp) : next() % 32 * 8;
		fields[i].address = (uint64_t)(swamp + next() % 64);
	}
	for (i = 0; i < 64; i++)
		swamp[i] = (uint64_t)(swamp + next() % 64);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) - 1; i++)
		sizes[i].size = next() % 64;
	gHotSpotVMStructs = next() % 8 ? fields : (struct entry *)swamp;
}
#elif defined(FORGE_V8)
#define V8(name, val) const int32_t v8dbg_##name = (val)
int32_t v8dbg_SmiTagMask = 1;
V8(SmiShiftSize, 31);
V8(TaggedSize, 8);
V8(off_fp_function, -16);
V8(off_fp_context, -8);
V8(off_fp_bytecode_array, -32);
V8(off_fp_bytecode_offset, -40);
V8(frametype_BuiltinExitFrame, INT32_MAX);
V8(type_JSFunction__X, 5);
V8(FirstJSFunctionType, 0);
V8(LastJSFunctionType, INT32_MAX);
V8(type_SharedFunctionInfo__X, 0);
V8(type_ScopeInfo__X, 1);
V8(type_Script__X, 2);
V8(type_BytecodeArray__X, 3);
V8(type_Code__X, 4);
V8(type_Map__X, 7);
V8(FirstNonstringType, 128);
V8(class_Map__instance_type__X, 12);
V8(class_String__length__X, 12);
V8(class_SeqOneByteString__chars__X, 16);
V8(class_ConsString__first__X, 16);
V8(class_ConsString__second__X, 24);
V8(class_SlicedString__parent__X, 16);
V8(class_SlicedString__offset__X, 24);
V8(class_ThinString__actual__X, 16);
V8(class_ExternalString__resource__X, 16);
V8(class_FixedArrayBase__length__X, 8);
V8(class_FixedArray__data__X, 16);
V8(class_JSFunction__shared__X, 24);
V8(class_SharedFunctionInfo__name_or_scope_info__X, 16);
V8(class_SharedFunctionInfo__script__X, 32);
V8(class_SharedFunctionInfo__flags__X, 48);
V8(class_Script__name__X, 16);
V8(class_Script__line_ends__X, 56);
V8(scopeinfo_idx_ncontextlocals, 2);
V8(scopeinfo_idx_first_vars, 3);
const uint32_t v8_Default_embedded_blob_code_size_ = 1 << 20;
CODE(v8_Default_embedded_blob_code_data_, GARBAGE);
const int32_t v8_major __asm__("_ZN2v88internal7Version6major_E") = FORGE_V8;
const int32_t v8_minor __asm__("_ZN2v88internal7Version6minor_E") = 2;
const int32_t v8_build __asm__("_ZN2v88internal7Version6build_E") = INT32_MIN;
static void arrange(void) {}
#endif

__attribute__((noinline)) static void spin(uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		sink = i;
}

__attribute__((noinline)) static void seventy(void)
{
	spin(7 * CHUNK);
}

__attribute__((noinline)) static void twenty(void)
{
	spin(2 * CHUNK);
}

__attribute__((noinline)) static void ten(void)
{
	spin(CHUNK);
}

__attribute__((noinline)) static void turn(void)
{
	seventy();
	twenty();
	ten();
}

/* The loop, for those who take it for one: registers lead into the swamp. */
void luaV_execute(const uint64_t *with);
__attribute__((noinline)) void luaV_execute(const uint64_t *with)
{
	__asm__ volatile("mov %0, %%r12; mov %0, %%r13; mov %0, %%r14; mov %0, %%r15"
			 :
			 : "r"(with)
			 : "r12", "r13", "r14", "r15");
	turn();
}

/* Variables are all zero up to here: they lie one after the other, ours as well. */
static void scribble(void)
{
	size_t i;

#ifdef FORGE_PYTHON
	if (FORGE_PYTHON >> 16 == 0x30b)
		fill(_PyRuntime, 4096);
#elif defined(FORGE_PERL)
	fill(PL_op_name, 400);
	fill(PL_ppaddr, 400);
#if FORGE_PERL % 4
	PL_thr_key[0] = next();
#else
	PL_curstackinfo[0] = (uint64_t)(swamp + 1024);
	PL_curcop[0] = bad_word(swamp);
	fill(PL_compiling, 64);
#endif
#elif defined(FORGE_RUBY)
	fill(ruby_global_symbols, 64);
	fill(ruby_current_ec, 1);
#elif defined(FORGE_PHP)
	fill(executor_globals, 1024);
#endif
	for (i = 0; i < TURN_WORDS; i++) {
		uint64_t *at = swamp + next() % SWAMP_WORDS;

		*at = bad_word(at);
	}
	arrange();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	prctl(PR_SET_NAME, argv[1]);
	seed = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	swamp = mmap(NULL, 8 * SWAMP_WORDS + PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (swamp == MAP_FAILED)
		return 1;
	unmapped = (uint64_t)(swamp + SWAMP_WORDS);
	munmap(swamp + SWAMP_WORDS, PAGE_BYTES);
	fill(swamp, SWAMP_WORDS);
	scribble();
	puts("ready");
	fflush(stdout);
	for (;;) {
		luaV_execute(swamp + next() % SWAMP_WORDS);
		scribble();
	}
}
