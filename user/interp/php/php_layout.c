// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds where things lie in one build of PHP. Every build exports zend_get_executed_scope() and
 * zend_get_executed_filename_ex(), which do nothing but walk the frames, so their code has the
 * offsets. Where it does not tell (another compiler, threads), there is a table of versions. Where
 * both tell, they must agree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/stub.h"
#include "interp/php/php_priv.h"
#include "symbolizer/elf/disasm.h"

#include "bpf/step/sb_step_php.h"

#define FUNC_BYTES_MAX	 256u
#define PROLOGUE_BYTES	 48u
#define RODATA_BYTES_MAX (16u << 20)
#define RODATA_PIECE	 (64u << 10)
/* ZEND_VM_KIND_HYBRID: the loop is one function, and code of the JIT runs within it. */
#define VM_KIND_HYBRID	 4

/* struct _zend_execute_data, _zend_function: as in sb_step_php.h. */
#define EX_FUNC		 0x18
#define EX_PREV		 0x30
#define FUNC_SCOPE	 0x10

static const char banner[] = "X-Powered-By: PHP/";

static const struct version {
	uint32_t minor; /* 0x0804: 8.4 */
	uint16_t current, filename;
} versions[] = {
	{ 0x0704, 488, 136 }, { 0x0801, 488, 144 }, { 0x0802, 488, 152 }, { 0x0803, 488, 144 },
	{ 0x0804, 488, 168 }, { 0x0805, 512, 168 }, { 0x0806, 512, 168 },
};

/* What the loads of a function are. */
struct loads {
	uint64_t
		global; /* what the first instruction with an absolute address loads, or addresses */
	bool is_got;	/* loads */
	bool has_func, has_prev, has_scope;
	uint16_t current, filename; /* 0: none, or more than one */
};

/* What a file says, in any process. Addresses are those of the first one. */
struct build {
	uint64_t bias;
	char version[32];
	bool is_threaded;
	uint64_t globals; /* executor_globals */
	struct sb_range loop[SB_RUNTIME_ANCHORS_MAX - 1];
	size_t nr_loops; /* 0: it has none */
	struct loads scope, filename;
	uint16_t frame_bytes, fp_slot, bx_slot; /* of struct sb_php_conf */
};

/* The text behind @banner somewhere in .rodata: "8.2.35". */
static int find_version(struct sb_runtime *rt, struct build *build)
{
	sb_cleanup(sb_freep) char *piece = malloc(RODATA_PIECE);
	uint64_t at, size, done, nr;
	const char *found = NULL;

	if (!piece)
		return -ENOMEM;
	if (sb_image_section(rt->image, ".rodata", &at, &size))
		return -ENOENT;
	if (size > RODATA_BYTES_MAX)
		size = RODATA_BYTES_MAX;
	for (done = 0; done < size && !found; done += RODATA_PIECE - 64) {
		nr = size - done < RODATA_PIECE ? size - done : RODATA_PIECE;
		if (sb_image_read(rt->image, at + done, piece, nr))
			return -ENOENT;
		found = memmem(piece, nr, banner, sizeof(banner) - 1);
		/* Cut off at the end of the piece: it is at the beginning of the next one. */
		if (found && (size_t)(piece + nr - found) < 64 && done + nr < size)
			found = NULL;
	}
	if (!found)
		return -ENOENT;
	found += sizeof(banner) - 1;
	snprintf(build->version, sizeof(build->version), "%.*s",
		 (int)strnlen(found, (size_t)(piece + nr - found)), found);
	return 0;
}

static const struct version *known_version(const struct sb_runtime *rt)
{
	unsigned int major, minor;
	size_t i;

	if (sscanf(rt->version, "%2u.%2u", &major, &minor) != 2)
		return NULL;
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (versions[i].minor == (major << 8 | minor))
			return &versions[i];
	return NULL;
}

static void note_offset(int64_t disp, int64_t low, int64_t high, uint16_t *offset)
{
	if (disp < low || disp > high || (disp & 7))
		return;
	*offset = !*offset || *offset == disp ? (uint16_t)disp : 0;
}

static void note_load(const struct sb_insn *insn, struct loads *loads)
{
	if (insn->base == SB_INSN_NO_BASE) {
		if (!loads->global && !insn->is_fs) {
			loads->global = (uint64_t)insn->disp;
			loads->is_got = insn->kind == SB_INSN_LOAD;
		}
		return;
	}
	/* Not of the stack, which -O0 goes by. */
	if (insn->kind != SB_INSN_LOAD || insn->nr_bytes != 8 || insn->base == SB_INSN_HERE->reg_sp)
		return;
	loads->has_func |= insn->disp == EX_FUNC;
	loads->has_prev |= insn->disp == EX_PREV;
	loads->has_scope |= insn->disp == FUNC_SCOPE;
	note_offset(insn->disp, 0x1c0, 0x240, &loads->current);
	note_offset(insn->disp, 0x78, 0xc0, &loads->filename);
}

static int read_loads(struct sb_runtime *rt, const char *name, struct loads *ret)
{
	struct sb_image_code code;
	struct loads loads = {};
	struct sb_insn insn;
	size_t at = 0;

	if (sb_image_code(rt->image, name, &code))
		return -ENOENT;
	while (at < code.len && at < FUNC_BYTES_MAX && !sb_image_next_insn(&code, &at, &insn))
		if (insn.kind == SB_INSN_LEA || insn.kind == SB_INSN_LOAD)
			note_load(&insn, &loads);
	*ret = loads;
	return 0;
}

static void refuse(struct sb_runtime *rt, const char *why)
{
	sb_str_clear(&rt->why);
	sb_str_addf(&rt->why, "%s (version %s, %s)", why, rt->version[0] ? rt->version : "unknown",
		    sb_image_build_id(rt->image));
}

/* The offsets that differ. Return: 0 or -ENOTSUP. */
static int find_offsets(struct sb_runtime *rt, const struct build *build, struct sb_php_conf *conf)
{
	const struct loads *scope = &build->scope, *filename = &build->filename;
	const struct version *known = known_version(rt);

	if (scope->has_func && scope->has_prev && scope->has_scope && scope->current) {
		conf->current = scope->current;
		if (filename->has_func && filename->has_prev && filename->current == conf->current)
			conf->filename = filename->filename;
	}
	if (known && ((conf->current && conf->current != known->current) ||
		      (conf->filename && conf->filename != known->filename))) {
		refuse(rt, "its machine code does not match its version");
		return -ENOTSUP;
	}
	if (known) {
		conf->current = known->current;
		conf->filename = known->filename;
	}
	if (conf->current && conf->filename)
		return 0;
	refuse(rt, "the memory layout of this version is not known");
	return -ENOTSUP;
}

/*
 * Without threads: executor_globals. What a program that embeds PHP refers to may be a copy of its
 * own (R_X86_64_COPY), so a library is asked through its GOT.
 */
static int find_globals(struct sb_runtime *rt, const struct build *build, struct sb_php_conf *conf)
{
	const struct loads *scope = &build->scope;
	uint64_t symbol = build->globals, slot;

	conf->state = SB_PHP_GLOBAL;
	conf->globals = symbol;
	if (!scope->global || !scope->is_got || scope->global - symbol < 4096)
		return 0;
	if (sb_memory_u64(rt->memory, scope->global, &slot))
		return -EAGAIN;
	/* Not filled in yet: what is in the file is an offset, or nothing. */
	if (slot < SB_PC_MIN || slot == symbol - sb_image_bias(rt->image))
		return -EAGAIN;
	conf->globals = slot;
	return 0;
}

/* What tsrm_get_ls_cache() returns: a thread-local variable. Return: 1 when it is one. */
static int on_cache(void *arg, const struct sb_stub *stub)
{
	struct sb_stub_value *cache = arg;

	if (stub->exit != SB_STUB_RET || stub->reg[SB_STUB_RESULT].nr_loads != 1 ||
	    stub->reg[SB_STUB_RESULT].off[1])
		return 0;
	*cache = stub->reg[SB_STUB_RESULT];
	return 1;
}

/* With threads: in what a thread-local pointer points to, executor_globals_offset behind. */
static int find_thread_globals(struct sb_runtime *rt, struct sb_php_conf *conf)
{
	struct sb_stub_value cache = {};
	uint64_t offset_at, addr, word;
	struct sb_interp_tsd tsd;

	if (sb_image_symbol(rt->image, "executor_globals_offset", &offset_at, NULL) ||
	    sb_image_symbol(rt->image, "tsrm_get_ls_cache", &addr, NULL) ||
	    sb_stub_follow(rt->image, addr, on_cache, &cache) != 1) {
		refuse(rt, "the globals of its threads were not found");
		return -ENOTSUP;
	}
	if (sb_memory_u64(rt->memory, offset_at, &word) || !word)
		return -EAGAIN;
	conf->globals = word;
	sb_threads_tsd(rt->maps, &tsd);
	conf->is_musl = tsd.is_musl;
	conf->state = SB_PHP_TLS_OFFSET;
	conf->tls_offset = (uint64_t)cache.off[0];
	if (cache.base == SB_STUB_TLS) {
		conf->state = SB_PHP_TLS_GOT;
		conf->tls_got = cache.addr;
	} else if (cache.base == SB_STUB_FS_SLOT) {
		if (sb_memory_u64(rt->memory, cache.addr, &word) || !word)
			return -EAGAIN;
		conf->tls_offset += word;
	} else if (cache.base != SB_STUB_FS) {
		refuse(rt, "the globals of its threads were not found");
		return -ENOTSUP;
	}
	return 0;
}

/* What the loop has on its stack, by how it begins: pushes, and one subtraction. */
static bool read_prologue(struct sb_runtime *rt, uint64_t addr, struct build *conf)
{
	uint8_t code[PROLOGUE_BYTES];
	uint32_t at = 0, nr_pushed = 1; /* the return address */

	conf->fp_slot = conf->bx_slot = conf->frame_bytes = 0;
	if (sb_image_read(rt->image, addr, code, sizeof(code)))
		return false;
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		at = 4;
	while (at < sizeof(code) - 8) {
		const uint8_t *c = code + at;

		if ((c[0] & 0xf8) == 0x50) {
			nr_pushed++;
			if (c[0] == 0x55)
				conf->fp_slot = (uint16_t)nr_pushed;
			else if (c[0] == 0x53)
				conf->bx_slot = (uint16_t)nr_pushed;
			at++;
		} else if (c[0] == 0x41 && (c[1] & 0xf8) == 0x50) {
			nr_pushed++;
			at += 2;
		} else if (!memcmp(c, "\x48\x89\xe5", 3)) { /* mov %rsp, %rbp */
			at += 3;
		} else if (!memcmp(c, "\x48\x83\xec", 3)) { /* sub $x, %rsp */
			conf->frame_bytes = (uint16_t)(8 * nr_pushed + c[3]);
			return c[3] < 0x80;
		} else if (!memcmp(c, "\x48\x81\xec", 3) && !c[5] && !c[6]) {
			conf->frame_bytes = (uint16_t)(8 * nr_pushed + c[3] + (c[4] << 8));
			return conf->frame_bytes < 4096;
		} else {
			return false;
		}
	}
	return false;
}

static bool is_hybrid(struct sb_runtime *rt)
{
	struct sb_image_code code;
	struct sb_insn insn;
	size_t at = 0;
	int i;

	if (sb_image_code(rt->image, "zend_vm_kind", &code))
		return false;
	/* The first one may be endbr64. */
	for (i = 0; i < 2 && !sb_image_next_insn(&code, &at, &insn); i++)
		if (insn.kind == SB_INSN_IMM)
			return insn.imm == VM_KIND_HYBRID;
	return false;
}

static bool is_opcache(const struct sb_maps_line *map)
{
	return map->is_exec &&
	       (!strncmp(map->path, "/dev/zero", 9) || !strncmp(map->path, "/SYSV", 5) ||
		strstr(map->path, "/ZendAccelerator"));
}

/* Memory that opcache shares between processes, where it is code. Nobody else has code there. */
void sb_php_find_jit(struct sb_runtime *rt)
{
	struct sb_php_conf *conf = (struct sb_php_conf *)rt->conf.word;
	uint64_t begin = 0, end = 0;
	size_t i;

	for (i = 0; conf->frame_bytes && i < rt->maps->nr; i++) {
		if (!is_opcache(&rt->maps->at[i]))
			continue;
		begin = begin ? begin : rt->maps->at[i].start;
		end = rt->maps->at[i].end;
	}
	/* While code is being made, it may not be executable: what was known holds. */
	if (!end || (begin == conf->jit_begin && end == conf->jit_end))
		return;
	if (!conf->jit_end && rt->nr_anchors < SB_RUNTIME_ANCHORS_MAX)
		rt->nr_anchors++;
	conf->jit_begin = rt->conf.hook_begin = begin;
	conf->jit_end = rt->conf.hook_end = end;
	rt->anchors[rt->nr_anchors - 1] = (struct sb_range){ begin, end };
	rt->conf.flags |= SB_INTERP_BY_NATIVE;
	rt->code = (struct sb_sym_rule){
		.begin = begin,
		.end = end,
		.rule = {
			.cfa = SB_UW_CFA_SP,
			.cfa_off = conf->frame_bytes,
			.fp = conf->fp_slot ? SB_UW_FP_AT_CFA : SB_UW_FP_SAME,
			.fp_off = (int16_t)(-8 * conf->fp_slot),
			.bx = conf->bx_slot & SB_UW_BX_SLOT_MAX,
		},
	};
}

static int read_build(struct sb_runtime *rt, struct build *build)
{
	uint64_t loop, size;

	build->bias = sb_image_bias(rt->image);
	if (find_version(rt, build) == -ENOMEM)
		return -ENOMEM;
	if (sb_image_symbol(rt->image, "execute_ex", &loop, &size))
		return 0;
	build->loop[0] = (struct sb_range){ loop, loop + size };
	build->nr_loops = 1 + sb_image_cold_parts(rt->image, loop, loop + size, &build->loop[1],
						  SB_RUNTIME_ANCHORS_MAX - 2);
	build->is_threaded = sb_image_symbol(rt->image, "executor_globals", &build->globals, NULL);
	read_loads(rt, "zend_get_executed_scope", &build->scope);
	read_loads(rt, "zend_get_executed_filename_ex", &build->filename);
	/* The prologue and the code of the JIT are known on x86-64. */
	if (SB_INSN_HERE != &sb_insn_x86 || !is_hybrid(rt) || !read_prologue(rt, loop, build))
		build->frame_bytes = 0;
	return 0;
}

/* As it is in this process. */
static void move_build(struct build *build, uint64_t bias)
{
	uint64_t by = bias - build->bias;
	size_t i;

	build->bias = bias;
	build->globals += by;
	build->scope.global += build->scope.global ? by : 0;
	for (i = 0; i < build->nr_loops; i++) {
		build->loop[i].begin += by;
		build->loop[i].end += by;
	}
}

static int build_of(struct sb_runtime *rt, struct build *ret)
{
	const struct build *kept = sb_image_kept(rt->image, versions);
	sb_cleanup(sb_freep) struct build *build = NULL;
	int err;

	if (!kept) {
		build = calloc(1, sizeof(*build));
		err = build ? read_build(rt, build) : -ENOMEM;
		if (err)
			return err;
		kept = build;
		sb_image_keep(rt->image, versions, sb_take(build));
	}
	*ret = *kept;
	move_build(ret, sb_image_bias(rt->image));
	return 0;
}

int sb_php_layout(struct sb_runtime *rt)
{
	struct sb_php_conf *conf = (struct sb_php_conf *)rt->conf.word;
	struct build build;
	int err = build_of(rt, &build);

	if (err)
		return err;
	memcpy(rt->version, build.version, sizeof(rt->version));
	if (!build.nr_loops) {
		refuse(rt, "its interpreter loop was not found");
		return -ENOTSUP;
	}
	err = build.is_threaded ? find_thread_globals(rt, conf) : find_globals(rt, &build, conf);
	if (!err)
		err = find_offsets(rt, &build, conf);
	if (err)
		return err;
	memcpy(rt->anchors, build.loop, build.nr_loops * sizeof(build.loop[0]));
	rt->nr_anchors = build.nr_loops;
	conf->frame_bytes = build.frame_bytes;
	conf->fp_slot = build.fp_slot;
	conf->bx_slot = build.bx_slot;
	return 0;
}
