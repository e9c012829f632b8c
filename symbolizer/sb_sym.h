/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From addresses to names: the only public header of the symbolizer, a library that does not need
 * BPF. It symbolizes three kinds of addresses:
 *
 *	kernel, modules, BPF programs	from kallsyms
 *	a process at a point in time	from mappings that the caller feeds (side-band events) or
 *					that are read from /proc
 *	a file				any ELF file, without a process
 *
 * Order: sb_symbolizer_new(). For processes, feed events as they come, and call
 * sb_symbolizer_seed_all() once they are being recorded; without any of this, a lookup reads /proc.
 * A lookup knows only the events that were fed before it. Call sb_symbolizer_forget() every few
 * seconds, and sb_symbolizer_free() at the end. The kernel and files need no events.
 *
 * A lookup does not fail because a name is missing: such an address gets one frame, which says why
 * it has no name. An error means that the caller passed something wrong, that memory ran out
 * (-ENOMEM), or that a callback returned it. After any error the symbolizer remains usable; a
 * lookup may have answered some requests, and may be repeated. All input (ELF, DWARF, /proc, perf
 * maps) is hostile.
 *
 * No pointer may be NULL unless its contract allows it. Out-parameters are overwritten, and
 * untouched on error. All times are CLOCK_MONOTONIC, in nanoseconds.
 *
 * Thread: a symbolizer is used by one thread at a time; several symbolizers are independent.
 */
#ifndef SB_SYM_H
#define SB_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_unwind.h"

struct sb_ration;
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
	SB_SYM_GONE,	   /* the process ended before any of its mappings was seen */
	SB_SYM_NO_FILE,	   /* the mapped file cannot be opened any more */
	SB_SYM_BAD_FILE,   /* the file is not an ELF file, or it is broken */
	SB_SYM_NO_SYMBOLS, /* the file is stripped, and no debug file was found */
	SB_SYM_NO_MATCH,   /* there are symbols, but none covers the address */
	SB_SYM_ANON,	   /* anonymous memory without a perf map */
	SB_SYM_RESTRICTED, /* kernel addresses are hidden (kptr_restrict, privileges) */
	SB_SYM_LIMIT,	   /* the answer was cut off by one of the symbolizer's own bounds */
	SB_SYM_REASON_MAX,
};

/* Short names for output, e.g. "no-symbols"; indexed by the enum. */
extern const char *const sb_sym_reason_names[SB_SYM_REASON_MAX];

/*
 * One frame. All strings live as long as the symbolizer. A frame without a name (@reason is not
 * SB_SYM_OK) has NULL in @name, and NULL or "" in @raw_name.
 */
struct sb_sym_frame {
	const char *name;     /* demangled as opts.demangle says */
	const char *raw_name; /* as in the symbol table */
	const char *module;   /* base name of the file, "[kernel]", "[nf_tables]", "[vdso]", "" */
	const char *file;     /* source file; NULL: not known */
	uint32_t line;	      /* 0: not known */
	uint32_t decl_line;   /* line where the function is declared; 0: not known */
	/* Address minus the start of the symbol; without a name, minus the start of the function
	 * if has_start. 0 for inlined frames. */
	uint64_t func_offset;
	/* ELF address in the module's file. Without a file: offset in the mapping, or, if
	 * is_absolute, the address itself. */
	uint64_t module_addr;
	uint8_t kind, reason; /* enum sb_sym_kind, enum sb_sym_reason */
	bool is_inlined;
	bool is_absolute; /* module_addr is an address of the process or of the kernel */
	bool has_start;	  /* there is no name, but unwind tables say where the function begins */
};

struct sb_parser_seat;

enum sb_sym_demangle { SB_SYM_DEMANGLE_SHORT, SB_SYM_DEMANGLE_FULL, SB_SYM_DEMANGLE_OFF };

struct sb_symbolizer_opts {
	bool inlines, lines;	       /* both need DWARF, and have no effect on files without it */
	bool debuginfod;	       /* ask debuginfod servers; false: never use the network */
	enum sb_sym_demangle demangle; /* SHORT: without parameters */
	/* Bound of what is cached of DWARF data, unwind tables and symbol tables; 0: 256 MiB. */
	size_t heavy_bytes_max;
	/* Bound of the memory of all files together, also while they are being loaded; 0, or more
	 * than this: three eighths of the machine's memory or of our cgroup's, at most 1 GiB. */
	size_t bytes_max;
	uint32_t memo_max; /* frames in the cache of addresses; 0: 131,072, which take 10 MiB */
	/* Borrowed until sb_symbolizer_free(): the parser process that compiles unwind tables
	 * (parser.h). NULL: the caller's process compiles them. */
	struct sb_parser_seat *parser;
	const char *const *debug_dirs; /* copied, NULL-terminated; NULL: /usr/lib/debug */
	const char *kallsyms_path;     /* copied; NULL: /proc/kallsyms */
};

/* Return: whether debuginfod's client library can be loaded, and then it stays loaded; without it
 * opts.debuginfod is ignored. Thread: any. */
bool sb_sym_has_debuginfod(void);

/*
 * Make a symbolizer; nothing is read yet. @opts is copied, with the strings that say so; all zeroes
 * are the defaults. The caller owns *ret_sym and ends it with sb_symbolizer_free(). Return: 0 or
 * -ENOMEM.
 */
int sb_symbolizer_new(const struct sb_symbolizer_opts *opts, struct sb_symbolizer **ret_sym);
/* Free @sym with all strings that it returned. Accepts NULL. */
void sb_symbolizer_free(struct sb_symbolizer *sym);

/*
 * What happens to processes: an executable mapping is made, a process forks, executes a program or
 * exits. Feed the events in the order of time; an event that is older than one already applied to
 * the same process is sorted in. They come from the records MMAP2, FORK, COMM and EXIT of
 * perf_event_open(2).
 *
 * An event that exceeds a bound is counted (sb_sym_stats) and returns 0. After -ENOMEM the event is
 * lost, at least in part, and the next one can be fed. Events of unknown processes are allowed.
 */
struct sb_sym_mmap {
	uint64_t time_ns;
	uint64_t addr, len, pgoff; /* bytes; pgoff: offset of @addr in the file */
	uint64_t ino, ino_generation;
	uint32_t tgid;
	uint32_t maj, min;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: not known */
	const char *path; /* as the kernel names it: "/usr/lib/x.so", "[vdso]", "//anon", ... */
	/* The file, opened while the process lived, or -1. sb_symbolizer_mmap() takes ownership,
	 * also when it fails. */
	int fd;
};

/*
 * Add an executable mapping. @ev, with its path, is not kept.
 * Return: 0; -ENOMEM; -EINVAL for a mapping without a length, that wraps around, or with too long a
 * build ID.
 */
int sb_symbolizer_mmap(struct sb_symbolizer *sym, const struct sb_sym_mmap *ev);
/* Note that @tgid begins at @time_ns with the mappings that @parent_tgid has then; ignored if the
 * two are the same. Return: 0 or -ENOMEM. */
int sb_symbolizer_fork(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid,
		       uint32_t parent_tgid);
/* Note that @tgid has a new, empty address space from @time_ns on. Return: 0 or -ENOMEM. */
int sb_symbolizer_exec(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
/* Note that @tgid has ended at @time_ns. If it has generated code, its perf map is read before it
 * disappears. Return: 0 or -ENOMEM. */
int sb_symbolizer_exit(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
/*
 * Note that events up to @time_ns, of any process, were lost: the next lookup of a process reads
 * its mappings from /proc again, when the ration below allows it. Return: 0.
 */
int sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns);
struct sb_sym_skip {
	uint32_t tgid;
	uint64_t first_ns, last_ns;
};
/*
 * The caller skipped mapping events of one process between first_ns and last_ns because there were
 * too many. The process is read again from /proc, as after a loss. Addresses of that time get a
 * name if the same file lies there before and after; otherwise, and until the process has been read
 * again, their reason is SB_SYM_LIMIT. Return: 0, also if a bound refuses the process; -ENOMEM:
 * nothing is noted.
 */
int sb_symbolizer_skipped(struct sb_symbolizer *sym, const struct sb_sym_skip *skip);
/*
 * Get the ration of CPU time for reading processes again: the longer a process takes to read, the
 * later it is read the next time. Lookups use it; the caller may ask what was spent, and make the
 * pauses longer (base/ration.h). Borrowed; lives as long as @sym.
 */
struct sb_ration *sb_symbolizer_ration(struct sb_symbolizer *sym);
/*
 * Free what lookups at @time_ns and later cannot need: address spaces that ended before, mappings
 * that were replaced before, and their files. Lookups of earlier times get wrong answers after it.
 * Strings that were returned stay valid until sb_symbolizer_free(). Call it every few seconds.
 */
void sb_symbolizer_forget(struct sb_symbolizer *sym, uint64_t time_ns);

/*
 * Read the mappings of a living process from /proc, as of @time_ns. Where events say otherwise, the
 * events win. What a bound or a broken line keeps from being read is counted (sb_sym_stats). The
 * caller is blocked until the mappings are read, or until the reader gives up (process/reader.h).
 * After -ENOMEM some mappings may have been added, after other errors none.
 * Return: 0; -ESRCH (no such process); -EACCES; -ETIMEDOUT (reading it blocked, now or a short time
 * ago); -EIO, -EPROTO (the process that reads for us crashed, or answered nonsense); -ENOMEM.
 */
int sb_symbolizer_seed(struct sb_symbolizer *sym, uint64_t time_ns, uint32_t tgid);
/*
 * Read the mappings of every process in /proc, as of @time_ns. Call it when events are recorded
 * already, so that what is mapped meanwhile comes as an event. Processes that vanish, refuse access
 * or cannot be read otherwise (-ETIMEDOUT, -EIO, -EPROTO) are skipped.
 * Return: 0; -ENOMEM: the rest is not read, and what was read stays; or the negative errno of
 * opendir(3) for /proc.
 */
int sb_symbolizer_seed_all(struct sb_symbolizer *sym, uint64_t time_ns);
/*
 * Read the mappings of those of @tgids that are not known completely as of @time_ns: not read
 * before, and not seen from their beginning, or events were lost since. Those that vanish or refuse
 * access are skipped. @tgids: used during the call only. Return: 0; -ENOMEM: the rest is not read,
 * and what was read stays.
 */
int sb_symbolizer_seed_unknown(struct sb_symbolizer *sym, uint64_t time_ns, const uint32_t *tgids,
			       size_t nr);

struct sb_sym_req {
	uint64_t addr;
	bool is_caller; /* a return address: the call before it is looked up (addr - 1) */
};

/*
 * Receives the answer to request @i. It is called once for each request, in the order of requests.
 * @frames: innermost first: inlined functions, then the function itself; at least one. The array is
 * valid during the call, its strings as long as the symbolizer, which the callback must not use.
 * Return: a negative value ends the lookup, which returns it.
 */
typedef int (*sb_sym_emit_fn)(void *arg, size_t i, const struct sb_sym_frame *frames,
			      size_t nr_frames);

/* What to look up, and who receives the answers; used during the call only. */
struct sb_sym_query {
	const struct sb_sym_req *reqs; /* may be NULL if nr is 0 */
	size_t nr;
	sb_sym_emit_fn emit;
	void *arg; /* may be NULL */
};

/*
 * Have kernel addresses looked up by the kernel, one by one, so that /proc/kallsyms, a file of more
 * than 100,000 lines, need not be read. @ask writes what the kernel prints for "%pS",
 * "name+0x1d/0x40 [module]", as a string of at most @size bytes to @text. It returns 0; or a
 * negative errno, and then the file is read after all. Only sb_symbolizer_kernel() calls it. @arg
 * is passed to it; both are used until the next call of this function. If @ask is NULL, the file is
 * read from now on.
 */
void sb_symbolizer_ask_kernel(struct sb_symbolizer *sym,
			      int (*ask)(void *arg, uint64_t addr, char *text, size_t size),
			      void *arg);
/*
 * Look kernel addresses up. If kallsyms cannot be read, frames have that as their reason
 * (SB_SYM_RESTRICTED, SB_SYM_NO_SYMBOLS). Return: 0, -ENOMEM, or what @query->emit returned, if
 * negative.
 */
int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query);
/*
 * Look addresses of @tgid up, in its address space as it was at @time_ns. A process that is not
 * known is read from /proc first. Files and debug data are loaded on the way, which may take
 * seconds. Return: 0, -ENOMEM, or what @query->emit returned, if negative.
 */
int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query);
/*
 * Find out until when answers, which a caller keeps to ask less often, stay valid in the address
 * space that @tgid has at @from_ns. Return: the first time after @from_ns, up to @to_ns, at which
 * another file was mapped at one of the addresses of @query (dlclose, dlopen); UINT64_MAX when that
 * did not happen, or nothing is known of the process. Only events that were fed before count. An
 * exec in that time is not looked for: the caller makes sure that @to_ns is not after one.
 * @query->emit is not called. Very cheap for a process that mapped nothing in that time.
 */
uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query);
/*
 * Look addresses of a file up, without a process. They are ELF virtual addresses, as in the file's
 * own symbol table. @path: a relative one begins at our working directory; not kept
 * Return: 0; -ENOMEM; what @query->emit returned, if negative; or why the file cannot be used:
 * -ENOENT, -EACCES, -EINVAL (not a regular file), -ENOEXEC (not an ELF file), -EFBIG (a bound),
 * others of opening it.
 */
int sb_symbolizer_file(struct sb_symbolizer *sym, const char *path,
		       const struct sb_sym_query *query);

/* Code without a file, as a JIT makes it, for which the caller knows the unwind rule. */
struct sb_sym_rule {
	uint64_t begin, end; /* addresses, end exclusive; begin == end: there is no such code */
	struct sb_uw_rule rule;
};

/*
 * An interpreter's walker, which finds the interpreter's frames while the native stack is unwound.
 * It is called instead of the unwind rule for code in [begin, end), and for other code that has no
 * rule, by the thread that unwinds. It must not use the symbolizer.
 */
struct sb_walk;
struct sb_sym_hook {
	uint64_t begin, end;
	/*
	 * Look at the frame where @walk stands, which is valid during the call. *ret_has_frames is
	 * false before; set it when interpreter frames were found that stand for this native frame,
	 * whose address is then marked with SB_IP_INTERP. Return: SB_STEP_FP_CHAIN: go on by the
	 * rule or the frame pointer; SB_STEP_GO_ON: @walk was moved to the caller; SB_STEP_END: its
	 * status was set (sb_unwind_step.h). NULL: no such walker.
	 */
	int (*step)(void *arg, struct sb_walk *walk, bool *ret_has_frames);
	void *arg;
};

/*
 * A user stack to unwind, of which a piece was captured. It is unwound by .eh_frame or .debug_frame
 * of the files that were mapped at @time_ns, with the same step as in BPF (sb_unwind_step.h).
 */
struct sb_sym_unwind {
	uint64_t time_ns;
	uint32_t tgid;
	uint32_t modes; /* SB_UNWIND_*: tables, frame pointers, or both */
	uint64_t pc;
	uint64_t regs[SB_UNWIND_REGS];
	uint64_t trampoline; /* the return address of calls whose return is probed; 0: none is */
	/* Address of the first byte of @stack; best SB_RED_ZONE_BYTES below the stack pointer. */
	uint64_t stack_addr;
	const void *stack; /* the captured memory, from stack_addr upwards; not kept */
	size_t stack_bytes;
	struct sb_sym_rule known; /* zeroed: none */
	struct sb_sym_hook hook;  /* zeroed: none */
};
/*
 * Unwind the stack.
 * @ip: room for @max addresses, at least one; written leaf first, with SB_IP_* marks, without which
 *	they are requests for sb_symbolizer_user()
 * @ret_status: enum sb_stack_status: whether the stack is complete, or why not
 *
 * Unwind tables stay in the cache, within opts.heavy_bytes_max. A process that is not known is read
 * from /proc first.
 * Return: 0; -ENOMEM: @ip is undefined.
 */
int sb_symbolizer_unwind(struct sb_symbolizer *sym, const struct sb_sym_unwind *from, uint64_t *ip,
			 size_t max, size_t *ret_nr, uint32_t *ret_status);

/*
 * Return: the first address above those that user code can have. Thread: any. x86-64: 47 bits; only
 * programs that ask for it get more by 5-level paging. arm64: 39 to 48 bits, as the kernel was
 * built; 52 only for programs that ask for it. The trampoline of return probes may be higher
 * (sb_user_end_with() in bpf/step/sb_unwind_step.h).
 */
uint64_t sb_sym_user_end(void);

/* Counters for the closing line and --stats, since the symbolizer was made. */
struct sb_sym_stats {
	uint64_t nr_modules, nr_processes;
	uint64_t nr_light_bytes, nr_heavy_bytes, nr_heavy_bytes_peak, nr_evictions;
	uint64_t nr_refused; /* mappings, processes and files not accepted because of a bound */
	/* Memory of the symbol data of all files, including what was freed during loading. */
	uint64_t nr_bytes_peak, nr_bytes_max;
	/* Files that lost some or all of their names because they cost too much to load. */
	uint64_t nr_files_cut;
	/* Units of debug information that are damaged in whole or in part, and .dwo files that are
	 * missing or cannot be used, of those that lookups needed: lines and inlined functions are
	 * missing. At log level debug the files are named. */
	uint64_t nr_units_damaged, nr_splits_missing;
	/* Files held open for processes that may end, and closed because descriptors ran out. */
	uint64_t nr_files_closed;
	uint64_t nr_lookups;
	uint64_t nr_reason[SB_SYM_REASON_MAX]; /* lookups by outcome */
};
/* Copy the counters of @sym so far to @ret_stats. */
void sb_symbolizer_stats(const struct sb_symbolizer *sym, struct sb_sym_stats *ret_stats);

/* Where the names, lines and unwind tables of one mapped file come from, for `doctor`. */
struct sb_sym_source {
	uint64_t addr, len;
	const char *path;
	const char *
		symbols; /* ".symtab" or another section, ".gopclntab", "debug file", "perf map", "none" */
	const char *debug_path; /* the separate debug file in use; NULL: none */
	const char *unwind;	/* ".eh_frame", ".debug_frame", "none" */
	bool has_dwarf;
	uint8_t build_id[SB_BUILD_ID_MAX];
	uint32_t build_id_bytes;
};
/*
 * Read the mappings of a living process, which lookups know then, as after sb_symbolizer_seed().
 * Call @fn for each executable one, lowest address first. A negative return value of @fn ends it
 * and is returned; @fn must not use @sym. @source is valid during the call, its strings as long as
 * the symbolizer.
 * Return: 0; -EBADMSG (some lines could not be parsed, and @fn was called for the others); -EFBIG
 * (a bound, and @fn may have been called for those before); -ESRCH (no such process); -EACCES;
 * -ETIMEDOUT (reading it blocked); -EIO, -EPROTO (the process that reads for us crashed, or
 * answered nonsense); -ENOMEM.
 */
int sb_symbolizer_sources(struct sb_symbolizer *sym, uint32_t tgid,
			  int (*fn)(void *arg, const struct sb_sym_source *source), void *arg);

#endif /* SB_SYM_H */
