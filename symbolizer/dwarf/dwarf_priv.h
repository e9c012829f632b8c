/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inside of the DWARF reader. Its parts, bottom up:
 *
 *	dwarf_image	sections of a file in memory		elf/cursor.h	checked reading
 *	dwarf_abbrev	the layout of DIEs			dwarf_map	address to number
 *	dwarf_die	units, one DIE's attributes, strings, addresses, ranges, references
 *	dwarf_walk	functions and inlined functions of a unit
 *	dwarf_lines	line rows of a unit			dwarf_names	names of functions
 *	dwarf_split	.dwo files
 *	dwarf		the index of units, lookups
 *
 * Sources: DWARF Debugging Information Format, versions 2 to 5; for the GNU forms
 * https://gcc.gnu.org/wiki/DebugFission and https://www.dwarfstd.org/issues/120604.1.html (dwz).
 *
 * Addresses are kept as 32-bit distances from the first executable byte. Addresses outside of the
 * executable sections are of code that the linker dropped: it resolved their relocations to 0, 1
 * or -1.
 *
 * Order: sb_dwarf_file_load() reads a file with its units; those of the main file go into the
 * index, which dwarf.c sorts. The first lookup in a unit calls sb_unit_load_split(),
 * sb_unit_build() (of the .dwo file's unit, if there is one) and sb_lines_build();
 * sb_dwarf_func_load() follows for each node that is returned, and sb_dwarf_file_release() ends it.
 * Below that, who reads DIEs of a unit calls sb_abbrevs_load().
 *
 * Thread: one at a time for each struct sb_dwarf with its files and units. No argument is NULL.
 * What the functions make belongs to the file or the sb_dwarf and goes with it; strings live as
 * long as the sb_dwarf. Where nothing else is said, -EBADMSG: the data are damaged; -EFBIG: a bound
 * or the budget; and out-parameters are undefined after an error.
 */
#ifndef SB_DWARF_PRIV_H
#define SB_DWARF_PRIV_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"
#include "symbolizer/dwarf/dwarf_image.h"
#include "symbolizer/dwarf/dwarf_map.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/cursor.h"

/* Bounds of what a file can make the reader do. Compilers stay far below all of them. */
#define DIE_DEPTH_MAX	 512	      /* nested DIEs; chains of 64 inlined functions were seen */
#define NAME_HOPS_MAX	 16	      /* references followed from a DIE to its declaration */
#define NAME_BYTES_MAX	 (16u << 10)  /* of a name qualified with its namespaces and classes */
#define STRING_BYTES_MAX (256u << 10) /* of one string in the file */
#define PATH_BYTES_MAX	 4096	      /* PATH_MAX */
#define UNITS_MAX	 (1u << 18)   /* per file; a vmlinux has 2,400, a browser 50,000 */
#define SPLIT_FILES_MAX	 (1u << 16)   /* .dwo files of one program */
#define ABBREVS_MAX	 (1u << 20)   /* per table; compilers number them per unit: hundreds */
#define ABBREV_OPS_MAX	 4096	      /* attributes of one abbreviation */
#define TABLE_OPS_MAX	 (4u << 20)   /* attributes in one table */
/* Per unit. All units of a vmlinux together have about a tenth of each. */
#define UNIT_RANGES_MAX	 (8u << 20)
#define UNIT_NODES_MAX	 (4u << 20)  /* functions and inlined functions */
#define UNIT_ROWS_MAX	 (16u << 20) /* of lines, after merging */
#define UNIT_SOURCES_MAX (1u << 20)  /* source files, or directories */
#define UNIT_SCOPES_MAX	 (4u << 20)  /* namespaces and types */
/* Units may overlap: bound of the ranges that are examined to find the one that has an address. */
#define INDEX_STEPS_MAX	 4096
/* Of all tables and strings together; when this is reached, no further table is made. */
#define TABLE_BYTES_MAX	 (1ull << 30)

/*
 * A table that many units share is read once per unit, so a file could make us read the same bytes
 * without end. Therefore a file may cost this many times its own size.
 */
#define EFFORT_FACTOR	 4u

#define NONE		 SB_DWARF_NONE

/* The attributes that are used. */
enum sb_die_attr {
	ATTR_SIBLING,
	ATTR_NAME,
	ATTR_LINKAGE_NAME,
	ATTR_LOW_PC,
	ATTR_HIGH_PC,
	ATTR_RANGES,
	ATTR_ORIGIN, /* DW_AT_abstract_origin or DW_AT_specification */
	ATTR_CALL_LINE,
	ATTR_CALL_FILE,
	ATTR_DECL_LINE,
	ATTR_STMT_LIST,
	ATTR_COMP_DIR,
	ATTR_LANGUAGE,
	ATTR_ADDR_BASE,
	ATTR_STR_OFFSETS_BASE,
	ATTR_RNGLISTS_BASE,
	ATTR_GNU_RANGES_BASE,
	ATTR_DWO_NAME,
	ATTR_GNU_DWO_ID,
	ATTR_MAX,
};

/* What a DIE is for the reader, derived from its tag. */
enum sb_die_role {
	ROLE_OTHER,
	ROLE_UNIT,
	ROLE_FUNCTION,
	ROLE_INLINED,
	ROLE_BLOCK,
	ROLE_NAMESPACE,
	ROLE_TYPE, /* which can have members: class, struct, ... */
};

/* One step of reading a DIE: an attribute that is used, or bytes to skip. */
struct sb_abbrev_op {
	uint16_t what; /* enum sb_die_attr, OP_SKIP or OP_SKIP_FORM */
	uint16_t arg;  /* its form; OP_SKIP: number of bytes */
};
#define OP_SKIP	     0x100
#define OP_SKIP_FORM 0x101
#define OP_VALUE     0x102 /* two of them follow DW_FORM_implicit_const, with 16 bits of it each */

struct sb_abbrev {
	uint64_t code;
	uint16_t tag, nr_ops;
	uint8_t role; /* enum sb_die_role */
	bool has_children;
	int32_t size; /* of all attributes together; -1: it varies */
	uint32_t ops; /* index of the first op in the table */
};

/* An abbreviation table, shared by the units of one file that have its offset and format. */
struct sb_abbrev_table {
	uint64_t offset; /* in .debug_abbrev */
	uint16_t version;
	uint8_t addr_size, offset_size;
	bool is_dense; /* codes are 1, 2, 3, ...; otherwise @abbrevs are sorted by code */
	SB_VEC(struct sb_abbrev) abbrevs;
	SB_VEC(struct sb_abbrev_op) ops;
};

/* The attributes of one DIE, undecoded: form and value. @mask says which ones are present. */
struct sb_die {
	uint32_t mask;
	uint16_t tag;
	uint8_t role; /* enum sb_die_role */
	bool has_children;
	struct sb_die_value {
		uint64_t raw;
		uint16_t form;
	} attrs[ATTR_MAX];
};

/* A function, or a function inlined into another node. */
struct sb_dwarf_node {
	uint32_t parent; /* the node that it is inlined into; NONE: it is a function itself */
	uint32_t die;	 /* offset of the DIE in the unit */
	uint32_t func;	 /* index in sb_dwarf.funcs; NONE: not looked up yet */
	uint32_t call_line, call_file;
};

/* A namespace or type, which qualifies the names in it. */
struct sb_dwarf_scope {
	uint32_t start, end; /* offsets in the unit */
	uint32_t parent;     /* index of the scope around it; NONE: the unit */
	const char *name;
};

struct sb_dwarf_lines {
	uint32_t *starts; /* sorted; row i is valid up to starts[i + 1] */
	struct sb_dwarf_row {
		uint32_t file, line;
	} * rows;
	size_t nr;
	SB_VEC(struct sb_dwarf_source {
		const char *name;
		uint32_t dir;
		const char *path; /* joined with its directory at the first request */
	})
	files;
	SB_VEC(const char *) dirs;
};

struct sb_unit {
	struct sb_dwarf_file *file;
	struct sb_unit *split; /* the unit of the .dwo file that has its DIEs, or NULL */
	uint64_t offset, end;  /* in .debug_info */
	uint32_t header_bytes; /* to the root DIE */
	uint16_t version, language;
	uint8_t addr_size, offset_size, type;
	bool is_code; /* a compilation unit, not a partial or type unit */
	bool has_ranges, has_stmt_list;
	bool is_built, is_lines_built, is_scopes_built, is_split_tried;
	bool is_damaged; /* it is counted in sb_dwarf.losses */
	struct sb_abbrev_table *abbrevs;
	uint64_t abbrev_offset, dwo_id;
	uint64_t low_pc, stmt_list;
	uint64_t addr_base, str_offsets_base, rnglists_base, ranges_base;
	const char *comp_dir, *dwo_name;

	SB_VEC(struct sb_dwarf_node) nodes;
	struct sb_dwarf_map segs; /* address to index of the innermost node */
	struct sb_dwarf_lines lines;
	SB_VEC(struct sb_dwarf_scope) scopes;
};

/* A file with units: the main one, its dwz file, or a .dwo file. */
struct sb_dwarf_file {
	struct sb_dwarf *dwarf;
	struct sb_dwarf_file
		*main;		   /* has the addresses (.debug_addr) of a .dwo file, else itself */
	struct sb_dwarf_file *alt; /* the dwz file, or NULL */
	struct sb_dwarf_image image;
	SB_VEC(struct sb_unit) units; /* ordered by offset */
	SB_VEC(struct sb_abbrev_table *) tables;
	struct sb_index table_index;
	struct sb_index abbrev_users; /* while units are loaded: the first user of each table */
	bool is_dwo;
};

struct sb_dwarf_func {
	const struct sb_dwarf_file *file;
	uint64_t offset; /* of the DIE that has the name */
	const char *name, *linkage_name;
	uint32_t decl_line;
};

struct sb_dwarf {
	struct sb_budget *budget; /* borrowed, or NULL */
	bool lines;		  /* lookups find lines */
	struct sb_dwarf_file file, alt;
	SB_VEC(struct sb_dwarf_file *) splits;
	sb_dwarf_ranges index; /* ranges of units; value: index of the unit */
	uint32_t *index_hi;    /* for each entry the highest end so far, which bounds the search */
	bool is_index_whole;   /* it has also the units that do not give their ranges */
	sb_dwarf_ranges scratch;
	SB_VEC(struct sb_dwarf_func) funcs;
	struct sb_index func_index;
	struct sb_arena arena;
	uint64_t ranges_left, line_bytes_left, abbrev_bytes_left; /* see EFFORT_FACTOR */
	size_t nr_image_bytes;
	size_t nr_bytes; /* of tables */
	struct sb_dwarf_losses losses;
};

/* A DIE, by its offset in .debug_info of a file. */
struct sb_die_ref {
	struct sb_dwarf_file *file;
	uint64_t offset;
};

/* dwarf_abbrev.c */

/*
 * Set unit->abbrevs, if it is NULL, to the table that the unit names, owned by the file.
 * Return: 0, -EBADMSG, -EFBIG, -ENOMEM. It can be called again after an error: unit->abbrevs is
 * then still NULL, or, after -ENOMEM, a whole table.
 */
int sb_abbrevs_load(struct sb_unit *unit);
/* Free all tables of a file; abbrevs of its units are not to be used any more. */
void sb_abbrevs_release(struct sb_dwarf_file *file);
/*
 * Read the root DIE. @is_shared: other units have the same table, so load all of it; otherwise it
 * is read only as far as needed, and not kept. Return: 0, -EBADMSG, -EFBIG, -ENOMEM.
 */
int sb_unit_read_root(struct sb_unit *unit, bool is_shared, struct sb_die *ret_die);
/* Return: the abbreviation with this code, as long as @table; NULL: there is none. */
const struct sb_abbrev *sb_abbrev_find(const struct sb_abbrev_table *table, uint64_t code);
/* Return: the size in bytes of a value of @form in @unit; -1: it varies, or the form is not known.
 */
int sb_form_size(uint16_t form, const struct sb_unit *unit);

/* dwarf_die.c */
/*
 * Find the units of a file, whose image is loaded, and read their root DIEs. Units of an unknown
 * version are left out, nothing is read behind a broken header, and both are counted, like broken
 * root DIEs. Return: 0; -EFBIG (the budget); -ENOMEM: the units before remain.
 */
int sb_dwarf_file_load_units(struct sb_dwarf_file *file);
/*
 * Return: a cursor at @offset of the file's .debug_info, which ends with the unit; a bad one if
 * that is outside of the unit, or in the unit's header; at the unit's end it is empty.
 */
struct sb_cursor sb_unit_cursor(const struct sb_unit *unit, uint64_t offset);
/* Return: a cursor from @offset to the end of a section; a bad one if @offset is beyond the end, or
 * the file has no such section. */
struct sb_cursor sb_dwarf_file_cursor(const struct sb_dwarf_file *file, enum sb_dwarf_section which,
				      uint64_t offset);
/*
 * Read one value of @form. It is returned raw: a number, an offset, or the address of a
 * DW_FORM_string; 0 for blocks. *form becomes the actual one of DW_FORM_indirect. Check cur->is_bad
 * afterwards.
 */
uint64_t sb_form_read(struct sb_cursor *cur, const struct sb_unit *unit, uint16_t *form);
/*
 * Read the attributes of a DIE whose code was read from @cur, and which @abbrev, an entry of
 * unit->abbrevs, describes. Check cur->is_bad afterwards: if it is set, *ret_die is not to be used.
 */
void sb_die_read(struct sb_cursor *cur, const struct sb_unit *unit, const struct sb_abbrev *abbrev,
		 struct sb_die *ret_die);
/* Return: whether the DIE has the attribute. */
static inline bool sb_die_has(const struct sb_die *die, enum sb_die_attr attr)
{
	return die->mask & 1u << attr;
}
/* Return: whether the DIE says where its code is. */
static inline bool sb_die_has_ranges(const struct sb_die *die)
{
	return sb_die_has(die, ATTR_RANGES) || sb_die_has(die, ATTR_HIGH_PC);
}
/*
 * Read the DIE at @ref, an offset in the .debug_info of a file, as sb_die_origin() gives it. Find
 * its unit, whose abbreviations are loaded for it; sb_die_string() and the like need the unit to
 * read the DIE's attributes. *@ret_unit is set on success only. Return: 0, -EBADMSG, -EFBIG,
 * -ENOMEM.
 */
int sb_die_at(struct sb_die_ref ref, struct sb_unit **ret_unit, struct sb_die *ret_die);
/*
 * Return: the attribute, or the value @val, as a string that lives as long as the image; NULL: it
 * is absent, invalid or no string.
 */
const char *sb_die_string(const struct sb_unit *unit, const struct sb_die *die,
			  enum sb_die_attr attr);
const char *sb_form_string(const struct sb_unit *unit, struct sb_die_value val);
/* Return: the attribute as a number; 0: it is absent or has more than 32 bits. */
uint32_t sb_die_u32(const struct sb_die *die, enum sb_die_attr attr);
/*
 * Return: whether ATTR_ORIGIN refers to a DIE of this file or of its dwz file; then *@ret_ref is
 * it. Otherwise *@ret_ref is untouched. Whether the DIE can be read is not checked.
 */
bool sb_die_origin(const struct sb_unit *unit, const struct sb_die *die,
		   struct sb_die_ref *ret_ref);
/*
 * Append the ranges of a DIE that are executable to @ranges, with the value and the depth of @to.
 * Return: 1 or 0: whether there are any; -EBADMSG, -EFBIG, -ENOMEM: what was appended before the
 * error remains.
 */
int sb_die_ranges(struct sb_unit *unit, const struct sb_die *die, sb_dwarf_ranges *ranges,
		  struct sb_dwarf_range to);

/* The context of the DIEs at one level of nesting. */
struct sb_die_level {
	uint32_t id;	     /* the node or scope around them, or NONE */
	uint32_t nr_inlined; /* how many inlined functions deep that node is */
	bool is_skipped;     /* nothing in here is of use */
};

struct sb_die_walk {
	struct sb_unit *unit;
	/* Called for a DIE at @offset of the unit. @level: the context that it is in; to be changed
	 * to the context of its children. Return: 0, or a negative errno, which ends the walk. */
	int (*enter)(struct sb_die_walk *walk, const struct sb_die *die, uint32_t offset,
		     struct sb_die_level *level);
	/* Called after the last DIE of a level. NULL: nothing to do. */
	void (*leave)(struct sb_die_walk *walk, const struct sb_die_level *level, uint32_t offset);
	struct sb_cursor cur;
	uint32_t depth;
	struct sb_die_level levels[DIE_DEPTH_MAX];
};

/*
 * Walk over the DIEs of walk->unit in the order of the file; the caller has set unit, enter and
 * leave, the rest is zero, and nothing is to be released. The abbreviations are loaded here. The
 * walk never goes back, so it ends. Not passed to enter() are DIEs with ROLE_OTHER, nor any that
 * lie inside of one or of a DIE for which enter() has set level->is_skipped.
 * Return: 0, -EBADMSG, -EFBIG, -ENOMEM, or what enter() returned; after an error leave() is not
 * called for the levels that are open, and what the calls before have made stays. Nor is it called
 * for levels that are open at the end of a unit whose last null DIEs are missing.
 */
int sb_die_walk_run(struct sb_die_walk *walk);
/* Return: whether DW_AT_language is C (up to C11) or assembler; whether it is C++ (up to C++14).
 * That decides where functions are looked for, and whether their names are qualified. */
bool sb_unit_is_c(const struct sb_unit *unit);
bool sb_unit_is_cplusplus(const struct sb_unit *unit);

/*
 * dwarf_walk.c: build the tables of a unit's functions, its nodes and segs, which belong to it.
 * Broken parts are left out. It sets unit->is_built, also on error: call it only while that is not
 * set.
 * Return: 0; -EFBIG (the budget), -ENOMEM: segs is empty.
 */
int sb_unit_build(struct sb_unit *unit);
/* dwarf_lines.c: build the table of a unit's lines, which belongs to it. Broken parts are left out.
 * It sets unit->is_lines_built, also on error: call it only while that is not set. Return: 0;
 * -EFBIG (the budget), -ENOMEM: there are no lines. */
int sb_lines_build(struct sb_unit *unit);
/* Free the arrays, but not the strings, which belong to the sb_dwarf; @lines is not zeroed, and not
 * to be used any more. Only sb_dwarf_file_release() calls it, for each unit, also if
 * sb_lines_build() failed, which leaves this to it. Accepts a struct of zeroes. */
void sb_lines_release(struct sb_dwarf_lines *lines);
/*
 * Return: the path of the source file number @file of the unit's line table, which must be built;
 * it lives as long as the sb_dwarf. Without its directory if a bound was hit or memory ran out.
 * NULL: unknown.
 */
const char *sb_lines_path(struct sb_unit *unit, uint32_t file);

/*
 * dwarf_names.c: set node->func to the function that names @node, a node of @unit; it is read if no
 * other node has it. Damaged data are no error: they are counted, and the function has what was
 * found of it, perhaps no name. Return: 0; -EFBIG (the budget has no room for the function),
 * -ENOMEM: it remains NONE.
 */
int sb_dwarf_func_load(struct sb_unit *unit, struct sb_dwarf_node *node);

/*
 * dwarf_split.c: set unit->split if the unit has a .dwo file that can be used; tried once, and not
 * again after -ENOMEM. A missing one is no error. Return: 0 or -ENOMEM.
 */
int sb_unit_load_split(struct sb_unit *unit);

/*
 * dwarf.c: read the sections and units of @fd, which is not used afterwards. The caller has zeroed
 * @file, has set its dwarf, main and is_dwo, and releases it, after an error, too.
 * Return: 0; -ENODATA (no DWARF); -EBADMSG; -EFBIG; -ENOMEM; others of fstat(2) and pread(2).
 */
int sb_dwarf_file_load(struct sb_dwarf_file *file, int fd);
/* Free all that a file holds, in any state; it is not to be used again. */
void sb_dwarf_file_release(struct sb_dwarf_file *file);

/*
 * Ask, before a table is read, for the work of @len bytes or entries, @work units (WORK_OF_*) for
 * each. Return: 0; -EFBIG: beyond the budget, or the tables together exceed TABLE_BYTES_MAX.
 */
static inline int sb_dwarf_check_full(const struct sb_dwarf *dwarf, uint64_t len, uint32_t work)
{
	if (dwarf->nr_bytes + dwarf->arena.nr_bytes > TABLE_BYTES_MAX)
		return -EFBIG;
	return sb_budget_work(dwarf->budget, len * work);
}

/* Units of work (budget.h) for each byte, or for each abbreviation and range that is sorted. */
#define WORK_OF_DIES	10u
#define WORK_OF_LINES	10u
#define WORK_OF_STRINGS 2u
#define WORK_OF_ABBREVS 5u
#define WORK_OF_SORTED	200u
#define WORK_OF_RANGE	200u
#define WORK_OF_UNIT	1000u

/* Count the unit as damaged, unless that was done before, or the budget counts @err. */
static inline void sb_unit_note_damage(struct sb_unit *unit, int err)
{
	const struct sb_budget *budget = unit->file->dwarf->budget;

	if (unit->is_damaged || (err == -EFBIG && budget && budget->is_refused))
		return;
	unit->is_damaged = true;
	unit->file->dwarf->losses.nr_units++;
}

/* Forgive an error that costs the unit something, but not the lookup, and count it. Return: 0;
 * -ENOMEM as it is. */
static inline int sb_unit_forgive(struct sb_unit *unit, int err)
{
	if (!err || err == -ENOMEM)
		return err;
	sb_unit_note_damage(unit, err);
	return 0;
}

#endif
