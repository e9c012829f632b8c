// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions and USDT probes of ELF files, as offsets in the file, which is what the kernel
 * hooks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/str.h"
#include "events/probe_priv.h"
#include "symbolizer/elf/disasm.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/goreturns.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/symbols/demangle.h"

#define STRINGS_BYTES_MAX (256u << 20)
#define NOTES_BYTES_MAX	  (16u << 20)
/* <sys/sdt.h>: the type of a note, whose owner is "stapsdt". */
#define NOTE_STAPSDT	  3u
/* What is looked at of the beginning of a function; endbr64 may be before the rest. */
#define BEGIN_BYTES	  16u
#define ENDBR64		  "\xf3\x0f\x1e\xfa"

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)

/* How Go names its functions in assembly since 1.17, when those in Go got their arguments in
 * registers, and one of them that each program has. Sources: cmd/link,
 * src/cmd/compile/abi-internal.md. */
#define ASSEMBLY_SUFFIX ".abi0"
static const char go_marker[] = "runtime.goexit" ASSEMBLY_SUFFIX;
/* Between these two is the code of Go; what is C in a program is elsewhere
 * (cmd/link/internal/ld/data.go). */
static const char go_begin[] = "runtime.text", go_end[] = "runtime.etext";

/* A file in which an event is looked for. */
struct search {
	struct sb_resolving *to;
	struct sb_elf *elf;
	char *path;
	struct sb_nearest_copy nearest;
	struct sb_str shown; /* a name as it is shown */
	/* Functions of that name that are chosen when the file is loaded, and one of them. */
	size_t nr_ifuncs;
	char ifunc[SB_EVENT_NAME_BYTES];
	bool is_go, wants_marker;   /* a Go program; only symbols of Go are looked for now */
	enum sb_probe_args go_args; /* of its functions in Go */
	uint64_t go_begin, go_end;  /* addresses of these symbols; 0 */
	/* Of a Go program whose functions are probed at their returns; zeroed otherwise. */
	struct sb_gopcln table;
	/* Functions whose returns cannot be found, one of them, and why. */
	size_t nr_refused;
	char refused[SB_EVENT_NAME_BYTES];
	const char *why_refused;
};

static void release(struct search *search)
{
	sb_str_release(&search->shown);
	sb_gopcln_release(&search->table);
	sb_elf_free(search->elf);
	free(search->path);
}

static int open_file(struct sb_resolving *to, struct search *ret)
{
	sb_cleanup(sb_closep) int fd = -1;
	int err = sb_library_find(to, &ret->path);

	ret->to = to;
	ret->nearest.nearest.typed = to->spec->name;
	if (err)
		return err;
	fd = sb_procfs_open(-1, ret->path);
	if (fd < 0)
		return sb_reason_set(to->reason, fd, "event '%s': cannot open '%s'", to->text,
				     ret->path);
	if (to->tgid && !to->is_list && !sb_library_is_mapped(to->tgid, ret->path, fd))
		sb_warn("event '%s': process %u does not map '%s' now, so nothing is traced unless "
			"it loads that file",
			to->text, to->tgid, ret->path);
	err = sb_elf_new_fd(fd, &ret->elf);
	if (!err)
		to->file_fd = ret->elf->fd;
	if (err == -ENOEXEC)
		return sb_reason_set(to->reason, 0,
				     "event '%s': '%s' is neither a program nor a library (ELF); "
				     "name the file that has the function",
				     to->text, ret->path),
		       err;
	return err ? sb_reason_set(to->reason, err, "event '%s': cannot read '%s'", to->text,
				   ret->path)
		   : 0;
}

/* "/path/to/file:NAME", or "c:NAME" as it was spelled. */
static void spell(const struct sb_resolving *to, const char *kind, const char *provider,
		  const char *name, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s:%s%s%s", kind, to->spec->file, provider, *provider ? ":" : "",
		 name);
}

/* Return: 0; -EOPNOTSUPP: the function is to be left out, which is noted; or another negative errno
 * with the reason. */
static int add_returns(struct search *search, const char *name, uint64_t addr,
		       struct sb_probe *probe)
{
	struct sb_resolving *to = search->to;
	struct sb_go_returns found = {};
	int err =
		sb_go_returns_find(search->elf, &search->table, addr, &found, &search->why_refused);

	probe->returns = found.returns;
	if (to->is_call)
		probe->offset = found.begin;
	if (err == -EOPNOTSUPP) {
		snprintf(search->refused, sizeof(search->refused), "%s", name);
		search->nr_refused++;
	} else if (err) {
		sb_reason_set(to->reason, err, "event '%s': cannot read '%s'", to->text,
			      search->path);
	}
	return err;
}

static size_t behind_endbr(const uint8_t code[BEGIN_BYTES])
{
	return memcmp(code, ENDBR64, strlen(ENDBR64)) ? 0 : strlen(ENDBR64);
}

/* Return: whether the kernel emulates the instruction: push, which has one or two bytes. */
static bool is_emulated(const uint8_t *code)
{
	return (code[0] == 0x41 ? code[1] : code[0]) >> 3 == 0x50 >> 3;
}

/*
 * An instruction that the kernel does not emulate is executed out of line, and a debug exception
 * ends that: this takes another 8 us in a virtual machine that has to leave the guest for it. So
 * find a push (push_setup_xol_ops() in arch/x86/kernel/uprobes.c) that each call comes to first,
 * but for endbr64, or for a look at whether the first argument is 0: "test %rdi,%rdi; je".
 */
static void find_cheap(const struct sb_elf *elf, struct sb_probe *probe)
{
	uint8_t code[BEGIN_BYTES];
	size_t at;

	if (elf->machine != EM_X86_64 || sb_elf_read(elf, probe->offset, code, sizeof(code)))
		return;
	at = behind_endbr(code);
	if (is_emulated(code + at))
		probe->cheap = (uint8_t)at;
	if (memcmp(code + at, "\x48\x85\xff", 3))
		return;
	at += 3;
	at += code[at] == 0x74 ? 2 : code[at] == 0x0f && code[at + 1] == 0x84 ? 6 : sizeof(code);
	if (at + 2 <= sizeof(code) && is_emulated(code + at))
		probe->cheap_of_pointer = (uint8_t)at;
}

/* Return: where in the file the function at @addr, which begins with a jump, goes; 0: it does
 * not. */
static uint64_t jump_of(const struct sb_elf *elf, uint64_t addr, uint64_t offset)
{
	const struct sb_insn_set *set = elf->machine == EM_AARCH64 ? &sb_insn_arm64 : &sb_insn_x86;
	uint8_t code[BEGIN_BYTES];
	struct sb_insn insn;
	uint64_t ret = 0;
	size_t at;

	if (sb_elf_read(elf, offset, code, sizeof(code)))
		return 0;
	at = behind_endbr(code);
	if (set->decode(code + at, sizeof(code) - at, addr + at, &insn) ||
	    insn.kind != SB_INSN_JMP || !sb_elf_addr_to_offset(elf, insn.target, &ret))
		return 0;
	return ret;
}

/* Functions of C in a Go program have no package, and so no dot in their names, but for the parts
 * and copies that compilers make of some ("f.part.0"). */
static enum sb_probe_args args_of(const struct search *search, const char *name, uint64_t addr)
{
	const size_t len = strlen(name), len_of_suffix = strlen(ASSEMBLY_SUFFIX);

	if (!search->is_go || !strchr(name, '.') ||
	    (search->go_end && (addr < search->go_begin || addr >= search->go_end)))
		return SB_ARGS_OF_C;
	return len >= len_of_suffix && sb_streq(name + len - len_of_suffix, ASSEMBLY_SUFFIX)
		       ? SB_ARGS_ON_STACK
		       : search->go_args;
}

static int found_address(struct search *search, const char *name, uint64_t addr)
{
	struct sb_resolving *to = search->to;
	struct sb_probe probe = { .kind = SB_PROBE_USER,
				  .is_return = to->spec->is_return,
				  .path = search->path,
				  .function = (char *)name,
				  .of_args = args_of(search, name, addr) };
	const char *shown = search->shown.s;
	char text[2 * SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];
	int err = 0;

	if (!sb_elf_is_code(search->elf, addr) ||
	    !sb_elf_addr_to_offset(search->elf, addr, &probe.offset))
		return 0;
	if (to->wants_jumps)
		probe.jumps_to = jump_of(search->elf, addr, probe.offset);
	if (search->table.bytes)
		err = add_returns(search, name, addr, &probe);
	else if (to->wants_jumps || !to->is_list)
		find_cheap(search->elf, &probe);
	if (err)
		return err == -EOPNOTSUPP ? 0 : err;
	if (!to->wants_jumps) {
		probe.behind = probe.cheap;
		probe.offset += probe.behind;
	}
	spell(to, to->spec->is_return ? "r:" : "", "", name, text, sizeof(text));
	/* What a list says behind a name. */
	if (to->is_list && shown && strcmp(shown, name))
		probe.args = (char *)shown;
	err = to->found(to, text, &probe);
	sb_vec_release(&probe.returns);
	return err;
}

/* Names of C++ and Rust are also known as they are shown in stacks, "node::Start", without
 * parameters. *@ret_name: @name, or as it is shown, until the next call. */
static int match(struct search *search, const char *name, const char **ret_name, bool *ret_matches)
{
	const char *pattern = search->to->spec->name;
	int err = 0;

	*ret_name = name;
	*ret_matches = sb_glob_matches(pattern, strlen(pattern), name);
	sb_str_clear(&search->shown);
	if (*ret_matches ? !search->to->is_list : !strstr(pattern, "::"))
		return 0;
	err = sb_demangle(name, SB_SYM_DEMANGLE_SHORT, &search->shown);
	if (err)
		return sb_reason_set(search->to->reason, err,
				     "event '%s': cannot make names readable", search->to->text);
	if (!search->shown.s)
		return 0;
	*ret_name = search->shown.s;
	*ret_matches |= sb_glob_matches(pattern, strlen(pattern), *ret_name);
	return 0;
}

/* A label without a type may be that of a table of constants, in which a probe would change a
 * number. So it has to be named; a pattern stands for functions. */
static bool is_function(const struct search *search, const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_value && sym->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC ||
		(type == STT_NOTYPE && !sb_event_is_glob(search->to->spec->name)));
}

static int look_at_symbol(struct search *search, const Elf64_Sym *sym, const char *name)
{
	const struct sb_event_spec *spec = search->to->spec;
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	const char *shown;
	bool matches;
	int err;

	if (search->wants_marker) {
		if (sb_streq(name, go_marker))
			search->go_args = SB_ARGS_OF_GO;
		else if (sb_streq(name, go_begin))
			search->go_begin = sym->st_value;
		else if (sb_streq(name, go_end))
			search->go_end = sym->st_value;
		return 0;
	}
	if (!is_function(search, sym))
		return 0;
	err = match(search, name, &shown, &matches);
	if (!err && !matches && type == STT_FUNC)
		sb_nearest_offer_copy(&search->nearest, shown);
	if (err || !matches)
		return err;
	/* The symbol is that of the function that chooses one, which is called once. */
	if (type == STT_GNU_IFUNC) {
		snprintf(search->ifunc, sizeof(search->ifunc), "%s", name);
		search->nr_ifuncs++;
		return 0;
	}
	if (sym->st_size && spec->offset >= sym->st_size) {
		sb_reason_set(
			search->to->reason, 0,
			"event '%s': the offset is beyond the end of the function, which has %llu "
			"bytes; choose a smaller one",
			search->to->text, (unsigned long long)sym->st_size);
		return -EINVAL;
	}
	if (spec->offset)
		err = sb_boundary_check(search->to, search->elf, sym->st_value,
					sym->st_value + spec->offset);
	return err ? err : found_address(search, name, sym->st_value + spec->offset);
}

static int look_at_table(struct search *search, uint32_t type)
{
	const Elf64_Shdr *shdr = sb_elf_section_typed(search->elf, type);
	const Elf64_Shdr *strings = shdr ? sb_elf_section_at(search->elf, shdr->sh_link) : NULL;
	sb_cleanup(sb_freep) char *text = NULL;
	struct sb_elf_reader reader;
	Elf64_Sym sym;
	size_t len;
	int err, more;

	if (!strings)
		return 0;
	err = sb_elf_load(search->elf, strings, STRINGS_BYTES_MAX, &text, &len);
	if (!err)
		err = sb_elf_reader_init_section(&reader, search->elf, shdr,
						 sb_elf_sym_bytes(search->elf));
	while (!err && (more = sb_elf_next_sym(&reader, &sym))) {
		if (more < 0)
			err = more;
		else if (sym.st_name && sym.st_name < len)
			err = look_at_symbol(search, &sym, text + sym.st_name);
	}
	if (err == -ENODATA)
		return 0;
	if (err && !sb_reason_is_set(search->to->reason))
		sb_reason_set(search->to->reason, err,
			      "event '%s': cannot read the symbols of '%s'", search->to->text,
			      search->path);
	return err;
}

static int find_go_args(struct search *search)
{
	int err;

	search->is_go = search->to->is_go = sb_gopcln_is_there(search->elf);
	search->go_args = SB_ARGS_ON_STACK;
	search->wants_marker = true;
	err = search->is_go ? look_at_table(search, SHT_SYMTAB) : 0;
	search->wants_marker = false;
	return err;
}

static const char list_hint[] = "'stackbpf trace --list' with a pattern shows all";

static int no_function(const struct search *search)
{
	const struct sb_resolving *to = search->to;
	const char *nearest = search->nearest.nearest.name;

	if (search->nr_ifuncs)
		sb_reason_set(
			to->reason, 0,
			"event '%s': '%s' has one '%s' for each kind of CPU and chooses when it is "
			"loaded (IFUNC); name one of those, which 'stackbpf trace --list' with a "
			"pattern shows",
			to->text, search->path, search->ifunc);
	else
		sb_reason_set(to->reason, 0, "event '%s': '%s' has no function '%s'; %s%s%s",
			      to->text, search->path, to->spec->name,
			      nearest ? "did you mean '" : "", nearest ? nearest : "",
			      nearest ? "'?" : list_hint);
	return -ENOENT;
}

/* The trampoline that the kernel puts in place of a return address is no address of Go's, whose
 * runtime ends the program when it moves a stack and finds it. So its return instructions are
 * probed. */
static int prepare_returns(struct search *search)
{
	const struct sb_resolving *to = search->to;
	int err;

	if ((!to->spec->is_return && !to->is_call) || !sb_gopcln_is_there(search->elf))
		return 0;
	err = sb_gopcln_load(search->elf, &search->table);
	if (!err)
		return 0;
	if (err == -ENODATA || err == -EBADMSG)
		sb_reason_set(
			to->reason, 0,
			"event '%s': '%s' is a Go program without a table of functions that "
			"stackbpf can read, so the returns of functions cannot be found; trace "
			"only where they begin",
			to->text, search->path);
	else
		sb_reason_set(to->reason, err, "event '%s': cannot read '%s'", to->text,
			      search->path);
	return err == -ENODATA || err == -EBADMSG ? -EOPNOTSUPP : err;
}

/* Functions whose returns cannot be probed are left out of a pattern. */
static int tell_refused(const struct search *search)
{
	const struct sb_resolving *to = search->to;

	if (to->nr_found && to->is_list)
		return 0;
	if (to->nr_found) {
		sb_warn("of the functions of '%s', %zu are left out, such as '%s': %s", to->text,
			search->nr_refused, search->refused, search->why_refused);
		return 0;
	}
	sb_reason_set(to->reason, 0,
		      "event '%s': the returns of '%s' cannot be probed: %s; trace "
		      "only where it begins",
		      to->text, search->refused, search->why_refused);
	return -EOPNOTSUPP;
}

int sb_resolve_user(struct sb_resolving *to)
{
	struct search search = {};
	int err = open_file(to, &search);

	if (!err)
		err = prepare_returns(&search);
	if (!err && !*to->spec->name) {
		err = sb_boundary_check_address(to, search.elf, to->spec->offset);
		if (!err)
			err = found_address(&search, "", to->spec->offset);
	} else if (!err) {
		err = find_go_args(&search);
		if (!err)
			err = look_at_table(&search, SHT_SYMTAB);
		if (!err)
			err = look_at_table(&search, SHT_DYNSYM);
	}
	if (!err && search.nr_refused)
		err = tell_refused(&search);
	else if (!err && (!to->nr_found || (search.nr_ifuncs && !sb_event_is_glob(to->spec->name))))
		err = no_function(&search);
	else if (!err && search.nr_ifuncs && !to->is_list)
		sb_warn("of the functions of '%s', %zu are left out, such as '%s', because '%s' has "
			"one for each kind of CPU (IFUNC); 'stackbpf trace --list' with a pattern "
			"shows those",
			to->text, search.nr_ifuncs, search.ifunc, search.path);
	release(&search);
	return err;
}

/* The words of a note; its strings follow. */
struct note {
	uint64_t addr, base, semaphore;
	const char *provider, *name, *args;
};

/* Return: the string at @at, and where the next one begins; NULL if it does not end. */
static const char *take_string(const char **at, const char *end)
{
	const char *string = *at,
		   *nul = string < end ? memchr(string, 0, (size_t)(end - string)) : NULL;

	*at = nul ? nul + 1 : end;
	return nul ? string : NULL;
}

static bool parse_note(const char *desc, size_t len, struct note *ret)
{
	const char *at = desc + 3 * sizeof(uint64_t), *end = desc + len;

	if (len < 3 * sizeof(uint64_t))
		return false;
	memcpy(&ret->addr, desc, sizeof(uint64_t));
	memcpy(&ret->base, desc + sizeof(uint64_t), sizeof(uint64_t));
	memcpy(&ret->semaphore, desc + 2 * sizeof(uint64_t), sizeof(uint64_t));
	ret->provider = take_string(&at, end);
	ret->name = take_string(&at, end);
	ret->args = take_string(&at, end);
	return ret->provider && ret->name && ret->args;
}

static int look_at_note(struct search *search, const struct note *note)
{
	const Elf64_Shdr *base = sb_elf_section_named(search->elf, ".stapsdt.base");
	struct sb_resolving *to = search->to;
	const struct sb_event_spec *spec = to->spec;
	/* A file that was prelinked has moved, and its notes have not. */
	uint64_t moved = base && note->base ? base->sh_addr - note->base : 0;
	struct sb_probe probe = { .kind = SB_PROBE_USDT,
				  .path = search->path,
				  .function = (char *)note->name,
				  .args = (char *)note->args };
	char text[3 * SB_EVENT_FILE_BYTES];

	if (!sb_glob_matches(spec->name, strlen(spec->name), note->name)) {
		sb_nearest_offer_copy(&search->nearest, note->name);
		return 0;
	}
	if (*spec->provider &&
	    !sb_glob_matches(spec->provider, strlen(spec->provider), note->provider))
		return 0;
	if (!sb_elf_is_code(search->elf, note->addr + moved) ||
	    !sb_elf_addr_to_offset(search->elf, note->addr + moved, &probe.offset))
		return 0;
	if (note->semaphore &&
	    !sb_elf_addr_to_offset(search->elf, note->semaphore + moved, &probe.semaphore))
		return 0;
	spell(to, "u:", note->provider, note->name, text, sizeof(text));
	return to->found(to, text, &probe);
}

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static int look_at_notes(struct search *search, const char *data, size_t len)
{
	const char *at = data, *end = data + len;
	Elf64_Nhdr head;
	struct note note;
	int err = 0;

	while (!err && (size_t)(end - at) >= sizeof(head)) {
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		if (align4(head.n_namesz) > (size_t)(end - at) ||
		    align4(head.n_descsz) > (size_t)(end - at) - align4(head.n_namesz))
			break;
		if (head.n_type == NOTE_STAPSDT && head.n_namesz == sizeof("stapsdt") &&
		    !memcmp(at, "stapsdt", sizeof("stapsdt")) &&
		    parse_note(at + align4(head.n_namesz), head.n_descsz, &note))
			err = look_at_note(search, &note);
		at += align4(head.n_namesz) + align4(head.n_descsz);
	}
	return err;
}

static int no_usdt(const struct search *search, bool has_notes)
{
	const struct sb_resolving *to = search->to;
	const char *nearest = search->nearest.nearest.name;

	if (!has_notes)
		sb_reason_set(to->reason, 0,
			      "event '%s': '%s' has no USDT probes; it must be built with them, or "
			      "name a function",
			      to->text, search->path);
	else
		sb_reason_set(to->reason, 0, "event '%s': '%s' has no USDT probe '%s'; %s%s%s",
			      to->text, search->path, to->spec->name,
			      nearest ? "did you mean '" : "", nearest ? nearest : "",
			      nearest ? "'?" : list_hint);
	return -ENOENT;
}

int sb_resolve_usdt(struct sb_resolving *to)
{
	sb_cleanup(sb_freep) char *data = NULL;
	const Elf64_Shdr *notes = NULL;
	struct search search = {};
	size_t len = 0;
	int err = open_file(to, &search);

	if (!err)
		notes = sb_elf_section_named(search.elf, ".note.stapsdt");
	if (notes) {
		err = sb_elf_load(search.elf, notes, NOTES_BYTES_MAX, &data, &len);
		if (err)
			sb_reason_set(to->reason, err,
				      "event '%s': cannot read the USDT probes of '%s'", to->text,
				      search.path);
	}
	if (!err && notes)
		err = look_at_notes(&search, data, len);
	if (!err && !to->nr_found)
		err = no_usdt(&search, notes != NULL);
	release(&search);
	return err;
}
