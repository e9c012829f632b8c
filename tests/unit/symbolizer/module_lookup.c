// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * module_lookup [-il] [-m off|short|full] [-p PATH] [-r ROOT] [-d DIR]... [-n TIMES] FILE
 *
 * What tests of symbols from outside talk to. Lines of standard input, and the answers to them:
 *	HEX	the frames at that address, innermost first, and an empty line:
 *		"name|raw name|source file:line|offset in the function|kind|reason|inlined|has start"
 *	+HEX	the address of that offset in the file, or "none"
 *	drop	give DWARF back; no answer
 *	source	"symbols|debug file|unwind|has DWARF|build ID"
 *	bytes	"light|heavy"
 * -p: what the file is called; -i: inlined frames; -l: lines; -M: read the file into memory first
 * -n: look everything up that often and print nanoseconds for each lookup, nothing else
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/str.h"
#include "base/time.h"
#include "symbolizer/symbols/module.h"

#define DIRS_MAX	8
#define IMAGE_BYTES_MAX (1u << 30)

struct setup {
	struct sb_symbolizer_opts sym;
	struct sb_module_opts opts;
	const char *dirs[DIRS_MAX + 1];
	const char *path;
	bool is_image;
	uint64_t nr_times;
};

static const char *or_none(const char *s)
{
	return s ? s : "??";
}

static int look_up(struct sb_module *mod, uint64_t addr)
{
	struct sb_sym_frame frames[SB_MODULE_FRAMES_MAX];
	size_t i, nr;
	int err = sb_module_lookup(mod, addr, frames, SB_MODULE_FRAMES_MAX, &nr);

	for (i = 0; i < nr && !err; i++)
		printf("%s|%s|%s:%u|%lu|%u|%u|%u|%u\n", or_none(frames[i].name), frames[i].raw_name,
		       or_none(frames[i].file), frames[i].line, frames[i].func_offset,
		       frames[i].kind, frames[i].reason, frames[i].is_inlined, frames[i].has_start);
	putchar('\n');
	return err;
}

static void print_source(struct sb_module *mod)
{
	struct sb_sym_source source = {};
	uint32_t i;

	sb_module_source(mod, &source);
	printf("%s|%s|%s|%u|", source.symbols, or_none(source.debug_path), source.unwind,
	       source.has_dwarf);
	for (i = 0; i < source.build_id_bytes; i++)
		printf("%02x", source.build_id[i]);
	putchar('\n');
}

static int answer(struct sb_module *mod, const char *line)
{
	uint64_t val;

	if (sb_streq(line, "drop")) {
		sb_module_drop_heavy(mod);
		return 0;
	}
	if (sb_streq(line, "source")) {
		print_source(mod);
		return 0;
	}
	if (sb_streq(line, "bytes")) {
		printf("%zu|%zu\n", sb_module_light_bytes(mod), sb_module_heavy_bytes(mod));
		return 0;
	}
	if (sb_parse_hex(line[0] == '+' ? line + 1 : line, &val))
		return -EINVAL;
	if (line[0] != '+')
		return look_up(mod, val);
	if (sb_module_offset_to_addr(mod, val, &val))
		printf("%lx\n", val);
	else
		puts("none");
	return 0;
}

static int converse(struct sb_module *mod)
{
	char line[64];
	int err = 0;

	while (!err && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		err = answer(mod, line);
	}
	return err;
}

static int read_addrs(uint64_t **ret_addrs, size_t *ret_nr)
{
	SB_VEC(uint64_t) addrs = {};
	char line[64];
	uint64_t addr;
	int err = 0;

	while (!err && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		err = sb_parse_hex(line, &addr);
		if (!err)
			err = sb_vec_push(&addrs, addr);
	}
	*ret_addrs = addrs.at;
	*ret_nr = addrs.nr;
	return err;
}

/* The first lookup reads the tables, the first pass makes the names: both are told apart. */
static int measure(struct sb_module *mod, uint64_t opened_ns, uint64_t nr_times)
{
	sb_cleanup(sb_freep) uint64_t *addrs = NULL;
	struct sb_sym_frame frames[SB_MODULE_FRAMES_MAX];
	uint64_t start, pass;
	size_t i, nr, nr_frames;
	int err;

	err = read_addrs(&addrs, &nr);
	if (err || !nr)
		return err;
	start = sb_now_ns();
	err = sb_module_lookup(mod, addrs[0], frames, SB_MODULE_FRAMES_MAX, &nr_frames);
	printf("open %lu ns, first %lu ns, %zu + %zu bytes\n", opened_ns, sb_now_ns() - start,
	       sb_module_light_bytes(mod), sb_module_heavy_bytes(mod));
	for (pass = 0; pass < nr_times && !err; pass++) {
		start = sb_now_ns();
		for (i = 0; i < nr && !err; i++)
			err = sb_module_lookup(mod, addrs[i], frames, SB_MODULE_FRAMES_MAX,
					       &nr_frames);
		printf("pass %lu: %.1f ns\n", pass, (double)(sb_now_ns() - start) / (double)nr);
	}
	return err;
}

static int module_open(const char *file, const struct setup *setup, struct sb_module **ret_mod)
{
	sb_cleanup(sb_freep) char *image = NULL;
	sb_cleanup(sb_closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	size_t len;
	int err;

	if (fd < 0)
		return -errno;
	if (!setup->is_image)
		return sb_module_new_fd(fd, setup->path, &setup->opts, ret_mod);
	err = sb_read_fd(fd, IMAGE_BYTES_MAX, &image, &len);
	return err ? err : sb_module_new_image(image, len, setup->path, &setup->opts, ret_mod);
}

static int parse_option(struct setup *setup, int opt)
{
	static const char *const modes[] = { "short", "full", "off" };
	size_t i;

	switch (opt) {
	case 'i':
		setup->sym.inlines = true;
		return 0;
	case 'l':
		setup->sym.lines = true;
		return 0;
	case 'm':
		for (i = 0; i < SB_ARRAY_SIZE(modes); i++)
			if (sb_streq(optarg, modes[i]))
				setup->sym.demangle = (enum sb_sym_demangle)i;
		return 0;
	case 'M':
		setup->is_image = true;
		return 0;
	case 'n':
		return sb_parse_u64(optarg, 1000, &setup->nr_times);
	case 'p':
		setup->path = optarg;
		return 0;
	case 'r':
		setup->opts.root = optarg;
		return 0;
	case 'd':
		for (i = 0; setup->dirs[i]; i++)
			;
		setup->dirs[i] = optarg;
		setup->sym.debug_dirs = setup->dirs;
		return i < DIRS_MAX ? 0 : -E2BIG;
	default:
		return -EINVAL;
	}
}

int main(int argc, char **argv)
{
	struct setup setup = {};
	struct sb_strtab strings;
	struct sb_module *mod = NULL;
	uint64_t start;
	int opt, err;

	while ((opt = getopt(argc, argv, "ilm:Mn:p:r:d:")) != -1)
		if (parse_option(&setup, opt))
			return 2;
	if (optind != argc - 1 || sb_strtab_init(&strings))
		return 2;
	setup.opts.sym = &setup.sym;
	setup.opts.strings = &strings;
	if (!setup.path)
		setup.path = argv[optind];
	start = sb_now_ns();
	err = module_open(argv[optind], &setup, &mod);
	if (!err && setup.nr_times)
		err = measure(mod, sb_now_ns() - start, setup.nr_times);
	else if (!err)
		err = converse(mod);
	if (err)
		fprintf(stderr, "%s: %s\n", argv[optind], strerror(-err));
	sb_module_free(mod);
	sb_strtab_release(&strings);
	return err ? 1 : 0;
}
