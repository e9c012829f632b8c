/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses to names: the only public header of the symbolizer, a library without BPF.
 *
 *	kernel, modules, BPF programs	kallsyms
 *	a process at a point in time	mappings, fed by the caller (side-band events) or read from /proc
 *	a file				any ELF, no process involved
 *
 * A lookup never fails: an address without a name gives one frame which says why. Return values
 * are 0 or a negative errno for what the caller did wrong and for -ENOMEM. A context is used by
 * one thread at a time. Everything read (ELF, DWARF, /proc, perf maps) is taken to be hostile.
 */
#ifndef SB_SYM_H
#define SB_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sb_abi.h"
#include "sb_abi_unwind.h"

struct sb_symbolizer;

#define SB_BUILD_ID_MAX 20

enum sb_sym_kind {
	SB_SYM_USER,
	SB_SYM_KERNEL,
	SB_SYM_KMOD,
	SB_SYM_BPF,
	SB_SYM_VDSO,
	SB_SYM_JIT,
	SB_SYM_PLT,
	SB_SYM_KIND_MAX,
};

/* Why a frame has no name. docs/loss.md explains each to users. */
enum sb_sym_reason {
	SB_SYM_OK,
	SB_SYM_UNMAPPED,   /* no executable mapping held the address at that time */
	SB_SYM_GONE,	   /* the process ended before anything of it was seen */
	SB_SYM_NO_FILE,	   /* the mapped file cannot be opened any more */
	SB_SYM_BAD_FILE,   /* it is not an ELF file, or a broken one */
	SB_SYM_NO_SYMBOLS, /* it is stripped, and no debug file was found */
	SB_SYM_NO_MATCH,   /* it has symbols, but none covers the address */
	SB_SYM_ANON,	   /* anonymous memory without a perf map */
	SB_SYM_RESTRICTED, /* kernel addresses are hidden (kptr_restrict, privileges) */
	SB_SYM_LIMIT,	   /* a bound of ours was hit */
	SB_SYM_REASON_MAX,
};

/* Short names for output, e.g. "no-symbols"; indexed by the enum. */
extern const char *const sb_sym_reason_names[SB_SYM_REASON_MAX];

/* One frame. Strings live as long as the symbolizer; none is NULL but name and file. */
struct sb_sym_frame {
	const char *name;     /* demangled unless told not to; NULL: see reason */
	const char *raw_name; /* as it stands in the symbol table */
	const char *module;   /* base name of the file, "[kernel]", "[nf_tables]", "[vdso]", "" */
	const char *file;     /* source file, or NULL */
	uint32_t line;	      /* 0: not known */
	uint32_t decl_line;   /* where the function is declared, 0: not known */
	uint64_t
		func_offset; /* address minus start of the symbol, or without a name of the function, if
				 has_start; 0 for inlined frames */
	uint64_t module_addr; /* the address as the module's own file has it, without a file: offset
				 in the mapping or the address itself */
	uint8_t kind, reason; /* enum sb_sym_kind, enum sb_sym_reason */
	bool is_inlined;
	bool is_absolute; /* module_addr is the address itself, in the process or the kernel */
	bool has_start;	  /* no name, but unwind tables say where the function begins */
};

struct sb_parser_seat;

enum sb_sym_demangle { SB_SYM_DEMANGLE_SHORT, SB_SYM_DEMANGLE_FULL, SB_SYM_DEMANGLE_OFF };

struct sb_symbolizer_opts {
	bool inlines, lines;	       /* need DWARF; nothing happens where there is none */
	bool debuginfod;	       /* ask debuginfod servers; off: no network, ever */
	enum sb_sym_demangle demangle; /* SHORT: without parameters */
	size_t heavy_bytes_max; /* bound of DWARF data and unwind tables kept, and of symbol tables; 0: 256 MiB */
	size_t bytes_max; /* of all files together, while they are loaded, too; 0: budget.h says how much */
	uint32_t memo_max; /* frames of addresses that are remembered; 0: 131,072, 10 MiB */
	struct sb_parser_seat
		*parser; /* borrowed: who compiles unwind tables; NULL: we do (parser.h) */
	const char *const *debug_dirs; /* NULL-terminated; NULL: /usr/lib/debug */
	const char *kallsyms_path;     /* NULL: /proc/kallsyms */
};

/* Return: whether debuginfod's client library can be loaded, without which the option does nothing. */
bool sb_sym_has_debuginfod(void);

int sb_symbolizer_new(const struct sb_symbolizer_opts *opts, struct sb_symbolizer **ret_sym);
void sb_symbolizer_free(struct sb_symbolizer *sym);

/*
 * What happens to processes, in the order of time; time_ns is CLOCK_MONOTONIC. An event older
 * than one already applied to the same process is sorted in. Source of the records:
 * perf_event_open(2), PERF_RECORD_MMAP2, FORK, COMM, EXIT.
 */
struct sb_sym_mmap {
	uint64_t time_ns;
	uint64_t addr, len, pgoff;
	uint64_t ino, ino_generation;
	uint32_t tgid;
	uint32_t maj, min;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: not known */
	const char *path; /* as the kernel names it: "/usr/lib/x.so", "[vdso]", "//anon", ... */
	int fd;		  /* the file, opened while the process lived, or -1; the
					 * symbolizer takes it over, on failure too */
};

int sb_symbolizer_mmap(struct sb_symbolizer *sym, const struct sb_sym_mmap *ev);
int sb_symbolizer_fork(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid,
		       uint32_t parent_tgid);
int sb_symbolizer_exec(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
int sb_symbolizer_exit(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
/* Events were lost: what is known of living processes is read anew from /proc at their next use. */
int sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns);
/* Forget processes that ended, and mappings that were replaced, before @time_ns. */
void sb_symbolizer_forget(struct sb_symbolizer *sym, uint64_t time_ns);

/*
 * Read the mappings of a living process from /proc, as of @time_ns. Events win where they
 * disagree. Return: 0, -ESRCH when there is no such process, -EACCES, -ENOMEM.
 */
int sb_symbolizer_seed(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
/* The same for every process there is; those that vanish or refuse are passed over. */
int sb_symbolizer_seed_all(struct sb_symbolizer *sym, uint64_t time_ns);

struct sb_sym_req {
	uint64_t addr;
	bool is_caller; /* a return address: the call before it is looked up (addr - 1) */
};

/*
 * Called once for each request, in the order of requests. @frames are innermost first: inlined
 * functions, then the function itself; at least one. They are valid during the call only, their
 * strings for ever. A negative return value ends the lookup and is handed on.
 */
typedef int (*sb_sym_emit_fn)(void *arg, size_t i, const struct sb_sym_frame *frames,
			      size_t nr_frames);

/* What is looked up, and where the answers go. */
struct sb_sym_query {
	const struct sb_sym_req *reqs;
	size_t nr;
	sb_sym_emit_fn emit;
	void *arg;
};

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query);
/* A process as it was at @time_ns. One never heard of is seeded from /proc first. */
int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query);
/*
 * Return: the first time after @from_ns, up to @to_ns, at which one of the addresses of @query came
 * to mean something else, because another file was mapped there (dlclose, dlopen); UINT64_MAX when
 * none did. Costs next to nothing for a process that mapped nothing in that time.
 */
uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query);
/*
 * A file by itself; addr is what the file's own symbol table has (ELF virtual address).
 * Return: 0, or why the file cannot be used: -ENOENT, -EACCES, -ENOEXEC (no ELF), -EFBIG.
 */
int sb_symbolizer_file(struct sb_symbolizer *sym, const char *path,
		       const struct sb_sym_query *query);

/* Code without a file of which a rule is known all the same: what a JIT makes. */
struct sb_sym_rule {
	uint64_t begin, end; /* the same: there is none */
	struct sb_uw_rule rule;
};

/*
 * A walker that finds frames of an interpreter on the native stack. It is asked before the unwind rule of code in
 * [begin, end), and where other code has no rule.
 */
struct sb_walk;
struct sb_sym_hook {
	uint64_t begin, end;
	/*
	 * @walk stands at a frame; see native() in sb_interp_step.h. *ret_has_frames: frames were found that stand
	 * for this one, whose address is marked SB_IP_INTERP then. Return: enum sb_step.
	 */
	int (*step)(void *arg, struct sb_walk *walk,
		    bool *ret_has_frames); /* NULL: there is none */
	void *arg;
};

/*
 * Unwind a user stack of which a piece was captured, by .eh_frame or .debug_frame of the files that
 * were mapped at @time_ns, with the step that the BPF side takes (sb_unwind_step.h).
 */
struct sb_sym_unwind {
	uint64_t time_ns;
	uint32_t tgid;
	uint32_t modes; /* SB_UNWIND_*: tables, frame pointers, or both */
	uint64_t pc;
	uint64_t regs[SB_UNWIND_REGS];
	uint64_t
		stack_addr; /* of the first byte; best is SB_RED_ZONE_BYTES below the stack pointer */
	const void *stack; /* what lay from there up */
	size_t stack_bytes;
	struct sb_sym_rule known;
	struct sb_sym_hook hook;
};
/*
 * @ip: room for @max addresses, leaf first, with SB_IP_* marks; *ret_status: enum sb_stack_status.
 * Tables are kept with the other heavy data. Return: 0 or -ENOMEM.
 */
int sb_symbolizer_unwind(struct sb_symbolizer *sym, const struct sb_sym_unwind *from, uint64_t *ip,
			 size_t max, size_t *ret_nr, uint32_t *ret_status);

/*
 * First address that no code can have. x86-64: 47 bits; what 5-level paging adds is only used by
 * programs that ask for it. arm64: 39 to 48 bits, as the kernel was built; 52 are, too, for programs
 * that ask for it.
 */
uint64_t sb_sym_user_end(void);

/* Figures for the end line and --stats. */
struct sb_sym_stats {
	uint64_t nr_modules, nr_processes;
	uint64_t nr_light_bytes, nr_heavy_bytes, nr_heavy_bytes_peak, nr_evictions;
	uint64_t nr_refused; /* mappings, processes, files, perf maps: not taken in at a bound */
	uint64_t nr_bytes_peak,
		nr_bytes_max; /* of symbol data of all files, those that were freed at once, too */
	uint64_t
		nr_files_cut; /* whose names were given up, all or some, because they cost too much */
	uint64_t nr_files_closed; /* kept open for good reason, but descriptors ran out */
	uint64_t nr_lookups;
	uint64_t nr_reason[SB_SYM_REASON_MAX]; /* lookups by outcome */
};
void sb_symbolizer_stats(const struct sb_symbolizer *sym, struct sb_sym_stats *ret_stats);

/*
 * For `doctor`: where names and lines of one mapped file come from. Strings live as long as the
 * symbolizer. Calls @fn for each executable mapping of a living process, lowest first.
 */
struct sb_sym_source {
	uint64_t addr, len;
	const char *path;
	const char *
		symbols; /* ".symtab", ".dynsym", ".gnu_debugdata", "debug file", "perf map", "none" */
	const char *debug_path; /* the separate debug file in use, or NULL */
	const char *unwind;	/* ".eh_frame", ".debug_frame", "none" */
	bool has_dwarf;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes;
};
int sb_symbolizer_sources(struct sb_symbolizer *sym, uint32_t tgid,
			  int (*fn)(void *arg, const struct sb_sym_source *source), void *arg);

#endif /* SB_SYM_H */
