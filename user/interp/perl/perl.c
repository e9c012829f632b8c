// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Perl 5: where things lie. The layout changed three times from 5.26 to 5.44. A table has the
 * layouts, and the one that applies is tried on the process. The walker is sb_step_perl.h;
 * perl_names.c reads names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/runtimes.h"
#include "interp/perl/perl_priv.h"

/* Where things lie, from a version on. intrpvar.h, cop.h. */
static const struct layout {
	uint8_t minor;
	uint8_t si_type, cx_bytes, cx_cv;
	uint16_t curcop, curstackinfo; /* with threads */
} layouts[] = {
	{ 26, 40, 96, 64, 224, 240 },
	{ 32, 44, 104, 72, 224, 240 },
	{ 34, 44, 104, 72, 208, 224 },
};
#define MINOR_FIRST	26u
#define MINOR_LAST	44u

/* PL_compiling lies within these first bytes of the interpreter, beside nothing that is a COP. */
#define COMPILING_BYTES 2048u
/* The process runs while we look: a walk may be wrong once, and not again and again. */
#define NR_TRIES	16

static int read_version(struct sb_runtime *rt, uint8_t version[3])
{
	static const char *const names[] = { "PL_revision", "PL_version", "PL_subversion" };
	uint64_t addr;
	size_t i;

	for (i = 0; i < 3; i++)
		if (sb_image_symbol(rt->image, names[i], &addr, NULL) ||
		    sb_image_read(rt->image, addr, &version[i], 1))
			return -ENOENT;
	return 0;
}

static const struct layout *layout_of(uint32_t minor)
{
	size_t i = sizeof(layouts) / sizeof(layouts[0]);

	while (i-- > 1)
		if (minor >= layouts[i].minor)
			break;
	return &layouts[i];
}

/* Return: 0; -ENOENT: what is needed is not there. */
static int fill_conf(struct sb_runtime *rt, const struct layout *layout, bool has_threads)
{
	struct sb_perl_conf *conf = (struct sb_perl_conf *)rt->conf.word;
	uint64_t addr;

	memset(conf, 0, sizeof(*conf));
	conf->si_type = layout->si_type;
	conf->cx_bytes = layout->cx_bytes;
	conf->cx_cv = layout->cx_cv;
	if (has_threads) {
		conf->curcop = layout->curcop;
		conf->curstackinfo = layout->curstackinfo;
		conf->compiling_bytes = COMPILING_BYTES;
		sb_threads_tsd(rt->maps, &conf->tsd);
		if (sb_image_symbol(rt->image, "PL_thr_key", &addr, NULL))
			return -ENOENT;
		conf->key_addr = addr;
		return 0;
	}
	if (!sb_image_symbol(rt->image, "PL_compiling", &addr, NULL)) {
		conf->compiling = addr;
		conf->compiling_bytes = 8;
	}
	if (sb_image_symbol(rt->image, "PL_curcop", &addr, NULL))
		return -ENOENT;
	conf->curcop = addr;
	if (sb_image_symbol(rt->image, "PL_curstackinfo", &addr, NULL))
		return -ENOENT;
	conf->curstackinfo = addr;
	return 0;
}

/* Whether the names of what was found are names. */
static bool has_names(struct sb_runtime *rt, const struct sb_interp_walk *walk)
{
	struct sb_runtime_text text = {};
	bool is_good = true;
	size_t i;

	for (i = 0; i < walk->nr_frames && i < 8 && is_good; i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		is_good = !sb_perl_describe(rt, &walk->frame[i], &text) && text.name.len;
	}
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return is_good;
}

/* Walk the first interpreter, which is some thread's. */
static int try_walk(struct sb_runtime *rt, struct sb_interp_walk *walk, uint64_t base)
{
	struct sb_perl_conf *conf = (struct sb_perl_conf *)walk->conf.word;

	memset(walk, 0, offsetof(struct sb_interp_walk, frame));
	walk->conf = rt->conf;
	walk->wants_lines = true;
	conf->key_addr = 0;
	conf->curcop += base;
	conf->curstackinfo += base;
	conf->compiling += base;
	sb_runtime_walk(rt, walk);
	/* One that is deep is one, too. */
	return walk->status == SB_STACK_COMPLETE || walk->status == SB_STACK_DEPTH ? 0 : -EBADMSG;
}

static int test_self(struct sb_runtime *rt, bool has_threads, bool is_known)
{
	sb_cleanup(sb_freep) struct sb_interp_walk *walk = malloc(sizeof(*walk));
	uint64_t addr, base = 0, si;
	int i;

	if (!walk)
		return -ENOMEM;
	if (has_threads && (sb_image_symbol(rt->image, "PL_curinterp", &addr, NULL) ||
			    sb_memory_u64(rt->memory, addr, &base)))
		return -EFAULT;
	if (has_threads && !base)
		return -EAGAIN;
	addr = base + ((struct sb_perl_conf *)rt->conf.word)->curstackinfo;
	if (sb_memory_u64(rt->memory, addr, &si))
		return -EFAULT;
	if (!si)
		return -EAGAIN;
	for (i = 0; i < NR_TRIES; i++) {
		sb_memory_forget(rt->memory);
		if (try_walk(rt, walk, base) || !has_names(rt, walk))
			continue;
		/* Of a layout that is guessed, something has to be seen. */
		return is_known || walk->nr_frames ? 0 : -EAGAIN;
	}
	return -EBADMSG;
}

static int attach_by(struct sb_runtime *rt, const uint8_t version[3])
{
	const struct layout *layout = layout_of(version[1]);
	bool is_known = version[1] % 2 == 0 && version[1] <= MINOR_LAST;
	struct sb_perl *perl = rt->state;
	int err;

	err = fill_conf(rt, layout, perl->has_threads);
	if (err)
		return sb_runtime_refuse(rt, "it does not export the symbols that locate its "
					     "stacks");
	err = test_self(rt, perl->has_threads, is_known);
	if (err == -EBADMSG)
		return sb_runtime_doubt(rt);
	if (err)
		return err;
	if (is_known)
		snprintf(rt->version, sizeof(rt->version), "%u.%u.%u%s", version[0], version[1],
			 version[2], perl->has_threads ? "" : " without threads");
	else
		snprintf(rt->version, sizeof(rt->version), "%u.%u.%u, walked as 5.%u", version[0],
			 version[1], version[2], layout->minor);
	sb_perl_find_loop(rt);
	rt->conf.flags = SB_INTERP_BY_STATE;
	return 0;
}

static int attach(struct sb_runtime *rt)
{
	uint8_t version[3];
	struct sb_perl *perl;
	uint64_t addr;
	int err;

	if (read_version(rt, version))
		return sb_runtime_refuse(rt, "its version cannot be read");
	snprintf(rt->version, sizeof(rt->version), "%u.%u.%u", version[0], version[1], version[2]);
	if (version[0] != 5 || version[1] < MINOR_FIRST)
		return sb_runtime_refuse(rt, "stackbpf does not support this version");
	perl = calloc(1, sizeof(*perl));
	if (!perl)
		return -ENOMEM;
	perl->minor = version[1];
	perl->has_threads = !sb_image_symbol(rt->image, "PL_thr_key", &addr, NULL);
	rt->state = perl;
	err = attach_by(rt, version);
	if (err)
		sb_runtime_free_state(rt);
	return err;
}

/* Names of operations: most lie side by side. */
struct op_names {
	uint64_t begin;
	size_t len;
	char text[8192 + 1];
};

static const char *op_name(struct sb_runtime *rt, struct op_names *names, uint64_t addr)
{
	static const size_t lens[] = { 8192, 32 };
	size_t i;

	if (addr - names->begin < names->len && names->len - (addr - names->begin) > 32)
		return names->text + (addr - names->begin);
	names->len = 0;
	/* They are constants of the file, and to ask the process for one takes longer. */
	for (i = 0; i < 2 && !names->len; i++)
		if (!sb_image_read(rt->image, addr, names->text, lens[i]) ||
		    !sb_memory_read(rt->memory, names->text, lens[i], addr))
			names->len = lens[i];
	names->begin = addr;
	names->text[names->len] = '\0';
	return names->text;
}

/* Operations by the table of them: PL_op_name[i] is done by PL_ppaddr[i]. Return: 0 and i. */
static int find_op(struct sb_runtime *rt, const char *name, size_t *ret_i)
{
	sb_cleanup(sb_freep) struct op_names *texts = calloc(1, sizeof(*texts));
	uint64_t at[SB_PERL_OPS_MAX], names, bytes;
	size_t i, nr;

	if (!texts)
		return -ENOMEM;
	if (sb_image_symbol(rt->image, "PL_op_name", &names, &bytes))
		return -ENOENT;
	nr = bytes / 8 < SB_PERL_OPS_MAX ? bytes / 8 : SB_PERL_OPS_MAX;
	if (sb_memory_read(rt->memory, at, nr * 8, names))
		return -EFAULT;
	for (i = 0; i < nr; i++)
		if (at[i] && !strcmp(op_name(rt, texts, at[i]), name)) {
			*ret_i = i;
			return 0;
		}
	return -ENOENT;
}

/* Which number it has is the file's. */
int sb_perl_entertry(struct sb_runtime *rt, uint64_t *ret_addr)
{
	static const char who;
	size_t *kept = sb_image_kept(rt->image, &who), i;
	uint64_t addrs;

	if (sb_image_symbol(rt->image, "PL_ppaddr", &addrs, NULL))
		return -ENOENT;
	if (kept) {
		i = *kept;
	} else {
		int err = find_op(rt, "entertry", &i);

		if (err)
			return err;
		kept = malloc(sizeof(*kept));
		if (kept)
			*kept = i;
		sb_image_keep(rt->image, &who, kept);
	}
	return sb_memory_u64(rt->memory, addrs + 8 * i, ret_addr);
}

static const char *const anchors[] = { "Perl_runops_standard", "Perl_runops_debug", NULL };
/* What a call goes through, from Perl to C and back. The operations stay: Perl_pp_sort,
 * Perl_pp_match, Perl_pp_require say why there are frames above them. */
static const char *const glue[] = {
	"Perl_runops_*",
	"perl_run",
	"S_run_body",
	"S_docatch*",
	"Perl_docatch*",
	"Perl_pp_entersub",
	"Perl_pp_entertry*",
	"Perl_pp_entereval",
	"Perl_call_sv",
	"Perl_call_pv",
	"Perl_call_method",
	"Perl_call_argv",
	"Perl_call_list",
	"Perl_eval_sv",
	"Perl_eval_pv",
	"S_call_list_body",
	"Perl_amagic_call",
	"Perl_try_amagic_*",
	"Perl_magic_methcall",
	"S_magic_method*",
	"S_curse",
	"Perl_sighandler*",
	"Perl_sortsv*",
	"S_sortsv*",
	"S_sortcv*",
	"S_mergesortsv*",
	"S_dynprep*",
	"S_qsortsv*",
	NULL,
};

const struct sb_runtime_ops sb_runtime_perl = {
	.runtime = SB_RUNTIME_PERL,
	.name = "perl",
	.describes_purely = true,
	.is_for_any_machine = true,
	.markers = { "PL_thr_key", "PL_curstackinfo" },
	.programs = { "perl" },
	.attach = attach,
	.detach = sb_runtime_free_state,
	.describe = sb_perl_describe,
	.begin = sb_perl_begin,
	.step = sb_perl_step,
	.anchors = anchors,
	.glue = glue,
};
