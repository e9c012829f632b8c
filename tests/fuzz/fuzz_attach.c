// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How runtimes are found and laid out: attach() of each, on a library and a process that are
 * forged. The library is a sound small ELF file, made here: it has the symbols that the runtime
 * looks for, where and as long as the input says, their unwind information, relocations, and for
 * contents the input. The process's memory is that library, and the input again and again at all
 * other addresses.
 *
 * What attaches is walked, and its frames are named, with the layout it claims to have. Its code
 * goes through the disassembler in any case.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "interp/core/image.h"
#include "interp/core/image_priv.h"
#include "interp/core/runtime.h"
#include "interp/core/step.h"
#include "interp/core/stub.h"
#include "must.h"
#include "symbolizer/elf/disasm.h"

#define NAMES_MAX   96u
#define CONTENT_MAX (16u << 10)
#define CONTENT_AT  0x1000u
#define IMAGE_MAX   (64u << 10)
#define BIAS	    0x7f1234000000ull
#define READS_MAX   20000u /* as interp.c has it */
#define FRAMES_MAX  16u
#define ABSENT	    0xffffu
#define NR_SECTIONS 9

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What sb_image_symbol() and sb_image_symbols() are asked for; see sb_runtimes. */
static const char *const names[][NAMES_MAX] = {
	[SB_RUNTIME_PYTHON] = { "_PyRuntime", "Py_Version", "PyCode_Type",
				"PyGILState_GetThisThreadState", "_PyEval_EvalFrameDefault",
				"PyEval_EvalFrameEx", "PyGILState_Ensure", "_PyThreadState_Current",
				"PyInterpreterState_Head", "_PyInterpreterState_Get",
				"PyThreadState_Get", "autoTLSkey" },
	[SB_RUNTIME_PERL] = { "PL_thr_key", "PL_revision", "PL_version", "PL_subversion",
			      "PL_curinterp", "PL_op_name", "PL_ppaddr", "PL_curcop",
			      "PL_curstackinfo", "PL_compiling", "Perl_call_sv", "Perl_amagic_call",
			      "Perl_eval_sv", "perl_run", "Perl_runops_standard",
			      "Perl_runops_debug" },
	[SB_RUNTIME_RUBY] = { "ruby_version", "ruby_current_vm_ptr", "ruby_current_ec",
			      "ruby_vm_at_exit", "rb_thread_current", "rb_vm_exec",
			      "ruby_global_symbols", "global_symbols", "ruby_current_vm" },
	[SB_RUNTIME_PHP] = { "execute_ex", "executor_globals", "executor_globals_offset",
			     "tsrm_get_ls_cache", "zend_vm_kind", "zend_get_executed_lineno",
			     "zend_get_executed_filename", "get_active_function_name",
			     "zend_get_executed_scope", "zend_call_function" },
	[SB_RUNTIME_LUAJIT] = { "luaJIT_setmode", "luaJIT_version_2_1_0_beta3", "lua_close",
				"lua_gettop", "lua_call", "lua_pcall", "lj_vm_call" },
	[SB_RUNTIME_LUA] = { "lua_ident", "luaV_execute", "lua_callk", "lua_pcallk", "lua_call",
			     "lua_resume", "lua_getinfo", "lua_gethookcount", "lua_sethook",
			     "lua_gettop" },
	[SB_RUNTIME_V8] = { "v8dbg_SmiTagMask",
			    "v8_Default_embedded_blob_code_size_",
			    "v8_Default_embedded_blob_code_data_",
			    "v8_Default_embedded_blob_code_",
			    "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
			    "_ZN2v88internal7Version6major_E",
			    "_ZN2v88internal7Version6minor_E",
			    "_ZN2v88internal7Version6build_E",
			    "v8dbg_SmiShiftSize",
			    "v8dbg_TaggedSize",
			    "v8dbg_off_fp_function",
			    "v8dbg_off_fp_context",
			    "v8dbg_off_fp_bytecode_array",
			    "v8dbg_off_fp_bytecode_offset",
			    "v8dbg_frametype_BuiltinExitFrame",
			    "v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
			    "v8dbg_FirstJSFunctionType",
			    "v8dbg_LastJSFunctionType",
			    "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
			    "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
			    "v8dbg_type_Script__SCRIPT_TYPE",
			    "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE",
			    "v8dbg_type_Code__CODE_TYPE",
			    "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE",
			    "v8dbg_type_DebugInfo__DEBUG_INFO_TYPE",
			    "v8dbg_type_Map__MAP_TYPE",
			    "v8dbg_FirstNonstringType",
			    "v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE",
			    "v8dbg_type_BaselineData__BASELINE_DATA_TYPE",
			    "v8dbg_class_Map__instance_type__uint16_t",
			    "v8dbg_class_String__length__int32_t",
			    "v8dbg_class_SeqOneByteString__chars__char",
			    "v8dbg_class_ConsString__first__String",
			    "v8dbg_class_ConsString__second__String",
			    "v8dbg_class_SlicedString__parent__String",
			    "v8dbg_class_SlicedString__offset__SMI",
			    "v8dbg_class_ThinString__actual__String",
			    "v8dbg_class_ExternalString__resource__Object",
			    "v8dbg_class_FixedArrayBase__length__SMI",
			    "v8dbg_class_FixedArray__data__uintptr_t",
			    "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
			    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
			    "v8dbg_class_SharedFunctionInfo__script__Object",
			    "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
			    "v8dbg_class_SharedFunctionInfo__flags__int",
			    "v8dbg_class_Script__name__Object",
			    "v8dbg_class_Script__source__Object",
			    "v8dbg_class_Script__line_ends__Object",
			    "v8dbg_class_BytecodeArray__data__uintptr_t",
			    "v8dbg_scopeinfo_idx_ncontextlocals",
			    "v8dbg_scopeinfo_idx_first_vars",
			    "v8dbg_class_Code__instruction_start__uintptr_t",
			    "v8dbg_class_Code__instruction_size__int",
			    "v8dbg_class_Code__flags__int",
			    "v8dbg_class_InstructionStream__instruction_start__uintptr_t",
			    "v8dbg_CodeKindBaseline",
			    "v8dbg_DeoptimizationDataLiteralArrayIndex",
			    "v8dbg_DeoptimizationDataInliningPositionsIndex",
			    "v8dbg_DeoptimizationDataSharedFunctionInfoIndex" },
	[SB_RUNTIME_HOTSPOT] = { "gHotSpotVMStructs", "gHotSpotVMTypes",
				 "gHotSpotVMStructEntryTypeNameOffset",
				 "gHotSpotVMStructEntryFieldNameOffset",
				 "gHotSpotVMStructEntryOffsetOffset",
				 "gHotSpotVMStructEntryAddressOffset",
				 "gHotSpotVMStructEntryIsStaticOffset",
				 "gHotSpotVMStructEntryArrayStride",
				 "gHotSpotVMTypeEntryTypeNameOffset",
				 "gHotSpotVMTypeEntrySizeOffset",
				 "gHotSpotVMTypeEntryArrayStride" },
};

struct where {
	uint16_t at, bytes;
};

static struct library {
	const struct sb_runtime_ops *ops;
	uint8_t how;
	struct where where[NAMES_MAX];
	size_t nr_names;
	const uint8_t *content;
	size_t nr_content;
	uint8_t image[IMAGE_MAX];
	size_t len;
} lib;

static bool take(const uint8_t *data, size_t size)
{
	size_t i, nr = 0;

	if (size < 2)
		return false;
	lib.ops = sb_runtimes[data[0] % (SB_RUNTIME_MAX - 1)];
	lib.how = data[1];
	data += 2, size -= 2;
	while (nr < NAMES_MAX && names[lib.ops->runtime][nr])
		nr++;
	lib.nr_names = nr;
	if (size < nr * sizeof(struct where) + 64)
		return false;
	memcpy(lib.where, data, nr * sizeof(struct where));
	lib.content = data + nr * sizeof(struct where);
	lib.nr_content = size - nr * sizeof(struct where);
	if (lib.nr_content > CONTENT_MAX)
		lib.nr_content = CONTENT_MAX;
	for (i = 0; i < nr; i++)
		if (lib.where[i].at != ABSENT)
			lib.where[i].at %= (uint16_t)lib.nr_content;
	return true;
}

/* Return: where it lies in the file, which is its address, too. */
static uint64_t put(const void *bytes, size_t len)
{
	uint64_t at = lib.len = (lib.len + 7) & ~7ull;

	must(lib.len + len <= IMAGE_MAX);
	memcpy(lib.image + at, bytes, len);
	lib.len += len;
	return at;
}

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t at, uint64_t len, uint64_t entry)
{
	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			     .sh_addr = at,
			     .sh_offset = at,
			     .sh_size = len,
			     .sh_entsize = entry,
			     .sh_addralign = 8 };
}

static void put_symbols(Elf64_Shdr *shdr)
{
	Elf64_Sym syms[NAMES_MAX + 1] = {};
	Elf64_Rela relas[NAMES_MAX] = {};
	static const uint32_t types[] = { R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT,
					  R_X86_64_DTPMOD64 };
	char text[8192] = "";
	size_t i, len = 1, at;

	for (i = 0; i < lib.nr_names; i++) {
		const char *name = names[lib.ops->runtime][i];

		syms[i + 1] = (Elf64_Sym){
			.st_name = (uint32_t)len,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, i % 2 ? STT_FUNC : STT_OBJECT),
			.st_shndx = lib.where[i].at == ABSENT ? SHN_UNDEF : 1,
			.st_value = CONTENT_AT + lib.where[i].at,
			.st_size = lib.where[i].bytes,
		};
		relas[i] = (Elf64_Rela){
			.r_offset = CONTENT_AT + lib.where[i].bytes * 8ull % lib.nr_content,
			.r_info = ELF64_R_INFO((uint64_t)i + 1, types[i % 3]),
		};
		must(len + strlen(name) + 1 <= sizeof(text));
		memcpy(text + len, name, strlen(name) + 1);
		len += strlen(name) + 1;
	}
	at = put(text, len);
	shdr[1] = section(1, SHT_STRTAB, at, len, 0);
	at = put(syms, (lib.nr_names + 1) * sizeof(*syms));
	shdr[0] = section(1, SHT_DYNSYM, at, (lib.nr_names + 1) * sizeof(*syms), sizeof(*syms));
	shdr[0].sh_link = 3;
	at = put(relas, lib.nr_names * sizeof(*relas));
	shdr[2] = section(1, SHT_RELA, at, lib.nr_names * sizeof(*relas), sizeof(*relas));
	shdr[2].sh_link = 2;
}

/* One CIE (zR: pcrel, sdata4), and an entry for each function. */
static Elf64_Shdr put_frames(void)
{
	static const uint8_t cie[] = { 20, 0,	 0,  0, 0,    0,  0, 0, 1,    'z', 'R', 0,
				       1,  0x78, 16, 1, 0x1b, 12, 7, 8, 0x90, 1,   0,	0 };
	uint64_t first = put(cie, sizeof(cie)), at;
	size_t i;

	for (i = 0; i < lib.nr_names; i++) {
		uint32_t fde[6] = { 20 };

		at = (lib.len + 7) & ~7ull;
		fde[1] = (uint32_t)(at + 4 - first);
		fde[2] = (uint32_t)(CONTENT_AT + lib.where[i].at - (at + 8));
		fde[3] = lib.where[i].bytes;
		if (lib.where[i].at != ABSENT && lib.where[i].bytes)
			put(fde, sizeof(fde));
	}
	put(&(uint64_t){ 0 }, 8);
	return section(1 + 10, SHT_PROGBITS, first, lib.len - first, 0);
}

static void make_library(void)
{
	/* .text is first, .eh_frame at 11. */
	static const char text[] = "\0.dynamics\0.eh_frame\0.text\0.rodata\0.data\0.shstrtab";
	static const char dot_text[] = ".text", dot_rodata[] = ".rodata", dot_data[] = ".data";
	Elf64_Shdr shdr[NR_SECTIONS] = {};
	Elf64_Ehdr ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(ehdr),
			    .e_ehsize = sizeof(ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = NR_SECTIONS,
			    .e_shstrndx = NR_SECTIONS - 1 };
	Elf64_Phdr phdr = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 4096 };
	uint64_t third = lib.nr_content / 3;
	size_t len = sizeof(text);
	uint64_t at;

	memset(lib.image, 0, CONTENT_AT);
	lib.len = CONTENT_AT;
	put(lib.content, lib.nr_content);
	put_symbols(shdr + 2);
	shdr[5] = put_frames();
#define NAME_AT(name) \
	(uint32_t)((const char *)memmem(text, sizeof(text), name, sizeof(name)) - text)
	/* The contents are code, constants and variables, and some of each is the others', too. */
	shdr[1] = section(NAME_AT(dot_text), SHT_PROGBITS, CONTENT_AT, lib.nr_content, 0);
	shdr[6] = section(NAME_AT(dot_rodata), SHT_PROGBITS, CONTENT_AT + third, 2 * third, 0);
	shdr[7] = section(NAME_AT(dot_data), SHT_PROGBITS, CONTENT_AT + 2 * third, third, 0);
	at = put(text, len);
	shdr[8] = section(NAME_AT(dot_data), SHT_STRTAB, at, len, 0);
	ehdr.e_shoff = put(shdr, sizeof(shdr));
	phdr.p_filesz = phdr.p_memsz = lib.len;
	memcpy(lib.image, &ehdr, sizeof(ehdr));
	memcpy(lib.image + sizeof(ehdr), &phdr, sizeof(phdr));
}

static int read_process(void *arg, void *dst, size_t len, uint64_t addr)
{
	size_t i;

	if (addr - BIAS < lib.len && len <= lib.len - (addr - BIAS)) {
		memcpy(dst, lib.image + (addr - BIAS), len);
		return 0;
	}
	if (addr >= 1ull << 47 || (lib.how & 1 && addr >> 46))
		return -EFAULT;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = lib.content[(addr + i) % lib.nr_content];
	return 0;
}

static int on_stub(void *arg, const struct sb_stub *stub)
{
	const struct sb_memory *memory = arg;
	uint64_t val;

	must(stub->exit <= SB_STUB_RET);
	for (size_t i = 0; i < SB_INSN_REGS; i++) {
		must(stub->reg[i].nr_loads <= SB_STUB_LOADS_MAX);
		sb_stub_value(memory, &stub->reg[i], &val);
		sb_stub_address(memory, &stub->reg[i], &val);
	}
	return 0;
}

static int on_function(void *arg, uint64_t begin, uint64_t end)
{
	must(begin < end);
	return 0;
}

/* Registers index arrays. */
static void check_insn(const struct sb_insn *insn, size_t left)
{
	bool has_reg = insn->kind >= SB_INSN_LEA && insn->kind <= SB_INSN_ADD_IMM;

	must(insn->len && insn->len <= SB_INSN_BYTES_MAX && insn->len <= left);
	must(insn->reg < SB_INSN_REGS || !has_reg);
	must(insn->base <= SB_INSN_NO_BASE);
}

/* Code, whoever's. */
static void check_code(struct sb_image *image, struct sb_memory *memory)
{
	static const struct sb_insn_set *const sets[] = { &sb_insn_x86, &sb_insn_arm64 };
	struct sb_range parts[SB_RUNTIME_ANCHORS_MAX];
	struct sb_insn insn;
	uint64_t begin, end;
	size_t i, at, nr;

	for (i = 0; i < SB_ARRAY_SIZE(sets); i++)
		for (at = 0; at < lib.nr_content; at += insn.len) {
			if (sets[i]->decode(lib.content + at, lib.nr_content - at, BIAS + at,
					    &insn))
				insn.len = 1;
			else
				check_insn(&insn, lib.nr_content - at);
		}
	sb_image_functions(image, on_function, NULL);
	for (i = 0; i < lib.nr_names && i < 8; i++) {
		uint64_t addr = BIAS + CONTENT_AT + lib.where[i].at;

		if (lib.where[i].at == ABSENT)
			continue;
		sb_stub_follow(image, addr, on_stub, memory);
		sb_image_reloc_name(image, addr);
		sb_image_tls_got(image, names[lib.ops->runtime][i], &begin);
		if (sb_image_function(image, addr, &begin, &end))
			continue;
		must(begin <= addr && addr < end);
		nr = sb_image_cold_parts(image, begin, end, parts, SB_RUNTIME_ANCHORS_MAX);
		must(nr <= SB_RUNTIME_ANCHORS_MAX);
	}
}

/* By what it has found out, as interp.c and the kernel do. */
static void use(struct sb_runtime *rt)
{
	static struct sb_interp_walk walk;
	static struct sb_runtime_text text;
	size_t i;

	must(rt->nr_anchors <= SB_RUNTIME_ANCHORS_MAX && rt->nr_callers <= SB_RUNTIME_ANCHORS_MAX &&
	     rt->nr_inner <= SB_RUNTIME_ANCHORS_MAX);
	must(rt->conf.flags & (SB_INTERP_BY_STATE | SB_INTERP_BY_NATIVE));
	rt->wants_lines = true;
	if (rt->ops->look_again)
		rt->ops->look_again(rt);
	memset(&walk, 0, offsetof(struct sb_interp_walk, frame));
	walk.conf = rt->conf;
	walk.thread_pointer = BIAS;
	walk.wants_lines = 1;
	if (rt->ops->begin && rt->ops->begin(&walk, (void *)rt->memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
			if (rt->ops->step(&walk, (void *)rt->memory) != SB_STEP_GO_ON)
				break;
	must(walk.nr_frames <= SB_INTERP_FRAMES_MAX);
	for (i = 0; i < walk.nr_frames && i < FRAMES_MAX; i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		rt->ops->describe(rt, &walk.frame[i], &text);
	}
}

static void attach(struct sb_image *image)
{
	const struct sb_maps_line map[] = {
		{ .start = BIAS,
		  .end = BIAS + ((lib.len + 4095) & ~4095ull),
		  .ino = 7,
		  .is_exec = true,
		  .path = "/usr/lib/librt.so" },
		{ .start = BIAS + (1 << 20),
		  .end = BIAS + (2 << 20),
		  .is_exec = true,
		  .is_writable = true,
		  .path = "" },
	};
	const struct sb_process_maps maps = { .at = map, .nr = SB_ARRAY_SIZE(map) };
	uint64_t nr_left = READS_MAX;
	struct sb_memory memory = { .read = read_process, .nr_left = &nr_left };
	struct sb_runtime rt = { .ops = lib.ops, .memory = &memory, .image = image, .maps = &maps };
	int err;

	check_code(image, &memory);
	nr_left = READS_MAX;
	rt.conf.runtime = lib.ops->runtime;
	err = lib.ops->attach(&rt);
	must(err <= 0);
	must(strnlen(rt.version, sizeof(rt.version)) < sizeof(rt.version));
	if (!err) {
		memory.nr_left = NULL;
		use(&rt);
		if (lib.ops->detach)
			lib.ops->detach(&rt);
	}
	sb_str_release(&rt.why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_image image = { .bias = BIAS };
	sb_cleanup(sb_closep) int fd = -1;

	if (!take(data, size))
		return 0;
	make_library();
	fd = memfd_create("library", MFD_CLOEXEC);
	must(fd >= 0 && !sb_write_all(fd, lib.image, lib.len));
	must(!sb_image_file_new(fd, "/usr/lib/librt.so", &image.file));
	attach(&image);
	sb_image_file_free(image.file);
	return 0;
}
