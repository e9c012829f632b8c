// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of Ruby's frames, as Ruby 3.4 itself prints them in a backtrace: Foo#bar, Foo.bar for a
 * singleton method, "block in Foo#bar", <main>. Ruby: calculate_iseq_label() and
 * rb_gen_method_name() of vm_backtrace.c.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/ruby/ruby_priv.h"

#include "bpf/step/sb_step_ruby.h"

#define NAME_BYTES_MAX	  1024u
/* Instance variables of a class that are looked at for its name, which is among the first. */
#define IVARS_MAX	  64u
#define IVARS_SHAPED_MAX  4u
/* Entries of the oldest line tables. */
#define INSN_INFOS_MAX	  65536u

/* eval() in eval(). enum rb_iseq_type. */
#define EVALS_MAX	  8
#define ISEQ_TYPE_EVAL	  6

/* enum ruby_value_type */
#define T_CLASS		  2
#define T_MODULE	  3
#define T_STRING	  5
#define T_ARRAY		  7
#define T_ICLASS	  0x1c
#define TYPE(flags)	  ((flags)&0x1f)
/* RSTRING_NOEMBED, RARRAY_EMBED_FLAG: FL_USER1 both. RUBY_FL_FREEZE. */
#define IS_USER1(flags)	  ((flags) >> 13 & 1)
#define IS_FROZEN(flags)  ((flags) >> 11 & 1)

/* rb_classext_t of 3.2 and later follows struct RClass; before, it is pointed to. */
#define CLASSEXT	  32
#define CLASSEXT_PTR	  24
#define CLASSEXT_ATTACHED 96
#define CLASSEXT_PATH	  120

/* symbol.h: IDs of operators are their serial numbers; in others, these are above the scope
 * bits. */
#define OPERATOR_ID_MAX	  255
#define ID_SCOPE_SHIFT	  4
#define ID_ENTRY_UNIT	  512

static void cut(struct sb_str *str, size_t len)
{
	if (len < str->len) {
		str->len = len;
		str->s[len] = 0;
	}
}

static bool is_object(uint64_t val)
{
	return val > 4096 && !(val & 7) && val < 1ull << SB_USER_ADDR_BITS;
}

static uint64_t word(const struct sb_memory *memory, uint64_t addr)
{
	uint64_t val;

	sb_memory_u64(memory, addr, &val);
	return val;
}

static int add_string(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t string,
		      struct sb_str *str)
{
	uint64_t obj[4]; /* flags, class; len, ptr; or the bytes */
	int err;

	if (!is_object(string))
		return -EBADMSG;
	err = sb_memory_read(memory, obj, sizeof(obj), string);
	if (err)
		return err;
	if (TYPE(obj[0]) != T_STRING)
		return -EBADMSG;
	if (IS_USER1(obj[0]))
		return sb_memory_text(memory, obj[3], obj[2], NAME_BYTES_MAX, str);
	return sb_memory_text(memory, string + ruby->layout->string_at,
			      ruby->layout->string_at == 16 ? obj[0] >> 14 & 31 : obj[2],
			      NAME_BYTES_MAX, str);
}

static int array_at(const struct sb_memory *memory, uint64_t array, uint64_t i, uint64_t *ret)
{
	uint64_t obj[5]; /* flags, class; len, capacity, ptr; or the values */
	int err;

	if (!is_object(array))
		return -EBADMSG;
	err = sb_memory_read(memory, obj, sizeof(obj), array);
	if (err)
		return err;
	if (TYPE(obj[0]) != T_ARRAY)
		return -EBADMSG;
	if (IS_USER1(obj[0]))
		return i < (obj[0] >> 15 & 0x7f) ? sb_memory_u64(memory, array + 16 + 8 * i, ret)
						 : -EBADMSG;
	return i < obj[2] ? sb_memory_u64(memory, obj[4] + 8 * i, ret) : -EBADMSG;
}

int sb_ruby_id(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t id,
	       struct sb_str *str)
{
	uint64_t serial = id > OPERATOR_ID_MAX ? id >> ID_SCOPE_SHIFT : id, ids, part, name;
	int err = sb_memory_u64(memory, ruby->ids_addr, &ids);

	if (!err)
		err = array_at(memory, ids, serial / ID_ENTRY_UNIT, &part);
	/* Pairs of name and symbol. */
	if (!err)
		err = array_at(memory, part, serial % ID_ENTRY_UNIT * 2, &name);
	return err ? err : add_string(memory, ruby, name, str);
}

/* Classes. */

static bool id_is(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t id,
		  const char *name)
{
	sb_cleanup(sb_str_release) struct sb_str str = {};

	return !sb_ruby_id(memory, ruby, id, &str) && str.len && !strcmp(str.s, name);
}

/* An instance variable of a class before 3.2: a hash, st.h. Return: its value, or 0. */
static uint64_t class_ivar(const struct sb_memory *memory, const struct sb_ruby *ruby,
			   uint64_t class, const char *name)
{
	uint64_t table = word(memory, word(memory, class + CLASSEXT_PTR) + 8);
	uint64_t bound = word(memory, table + 40), entries = word(memory, table + 48), i;

	if (!is_object(table) || !ruby->ids_addr)
		return 0;
	for (i = 0; i < bound && i < IVARS_MAX; i++) {
		uint64_t entry[3]; /* hash, key, value */

		if (sb_memory_read(memory, entry, sizeof(entry), entries + 24 * i))
			return 0;
		if (entry[0] != ~0ull && id_is(memory, ruby, entry[1], name))
			return entry[2];
	}
	return 0;
}

/*
 * 3.2 keeps names of instance variables in shapes, which are far to find. The two that the runtime
 * itself sets come first: a frozen String, or the object that a singleton class is of.
 */
static uint64_t class_ivar_shaped(const struct sb_memory *memory, uint64_t class, bool is_path)
{
	uint64_t ivars = word(memory, class + CLASSEXT), i;

	for (i = 0; is_object(ivars) && i < IVARS_SHAPED_MAX; i++) {
		uint64_t val = word(memory, ivars + 8 * i), flags;

		flags = is_object(val) ? word(memory, val) : 0;
		if (is_path ? TYPE(flags) == T_STRING && IS_FROZEN(flags)
			    : TYPE(flags) == T_CLASS || TYPE(flags) == T_MODULE)
			return val;
	}
	return 0;
}

static uint64_t class_path(const struct sb_memory *memory, const struct sb_ruby *ruby,
			   uint64_t class)
{
	if (ruby->layout->class_name == SB_RUBY_CLASS_FIELDS)
		return word(memory, class + CLASSEXT + CLASSEXT_PATH);
	if (ruby->layout->class_name == SB_RUBY_CLASS_SHAPES)
		return class_ivar_shaped(memory, class, true);
	return class_ivar(memory, ruby, class, "__classpath__");
}

static uint64_t class_attached(const struct sb_memory *memory, const struct sb_ruby *ruby,
			       uint64_t class)
{
	if (ruby->layout->class_name == SB_RUBY_CLASS_FIELDS)
		return word(memory, class + CLASSEXT + CLASSEXT_ATTACHED);
	if (ruby->layout->class_name == SB_RUBY_CLASS_SHAPES)
		return class_ivar_shaped(memory, class, false);
	return class_ivar(memory, ruby, class, "__attached__");
}

/* Classes that are built in have no path in 2.5 and 2.6 until it is asked for, but an ID, in a
 * Symbol; they are not in other classes. */
static int add_class_id(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t class,
			struct sb_str *str)
{
	uint64_t symbol;

	if (ruby->layout->class_name != SB_RUBY_CLASS_IVARS)
		return -ENOENT;
	symbol = class_ivar(memory, ruby, class, "__classid__");
	return (symbol & 0xff) == 0xc ? sb_ruby_id(memory, ruby, symbol >> 8, str) : -ENOENT;
}

/* Append "Foo#" or "Foo.", or nothing: of a class without a name, of one object's methods. */
static void add_class(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t class,
		      struct sb_str *str)
{
	uint64_t flags = is_object(class) ? word(memory, class) : 0, path;
	size_t len = str->len;
	bool is_singleton;

	if (TYPE(flags) == T_ICLASS) {
		class = word(memory, class + 8);
		flags = is_object(class) ? word(memory, class) : 0;
	}
	is_singleton = TYPE(flags) == T_CLASS && (flags >> ruby->layout->singleton_bit & 1);
	if (is_singleton) {
		class = class_attached(memory, ruby, class);
		flags = is_object(class) ? word(memory, class) : 0;
	}
	if (TYPE(flags) != T_CLASS && TYPE(flags) != T_MODULE)
		return;
	path = class_path(memory, ruby, class);
	if (add_string(memory, ruby, path, str) || str->len == len) {
		cut(str, len);
		if (add_class_id(memory, ruby, class, str) || str->len == len)
			return;
	}
	/* "#<Class:0x...>::Foo": the path of a class in one without a name. */
	if (str->s[len] == '#')
		cut(str, len);
	else
		sb_str_add(str, is_singleton ? "." : "#");
}

/* Lines. */

/* succ_index_lookup() of iseq.c: how many entries begin at or before @position. */
static uint64_t entries_before(const struct sb_memory *memory, uint64_t table, uint64_t position)
{
	uint64_t block[10], at, small; /* rank, ranks of eight words, eight words of bits */

	if (position < 54)
		return word(memory, table + 8 * (position / 9)) >> (7 * (position % 9)) & 0x7f;
	position -= 54;
	if (sb_memory_read(memory, block, sizeof(block), table + 48 + 80 * (position / 512)))
		return 0;
	at = position % 512;
	small = at < 64 ? 0 : block[1] >> ((at / 64 - 1) * 9) & 0x1ff;
	return (block[0] & 0xffffffff) + small +
	       (uint64_t)__builtin_popcountll(block[2 + at / 64] << (63 - at % 64));
}

/* 2.5: the last entry whose position is not above. */
static uint64_t entries_before_25(const struct sb_memory *memory, uint64_t entries, uint32_t nr,
				  uint64_t position)
{
	uint64_t from = 0, to = nr;

	while (from < to) {
		uint64_t mid = from + (to - from) / 2;
		uint32_t at;

		if (sb_memory_u32(memory, entries + 12 * mid, &at))
			return 0;
		if (at <= position)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Return: the line, or 0. */
static uint32_t line_of(const struct sb_memory *memory, const struct sb_ruby_layout *layout,
			uint64_t body, uint64_t position)
{
	uint64_t entries = word(memory, body + layout->info), nth = 1;
	uint32_t nr = 0, line = 0;

	if (position == SB_RUBY_NOWHERE)
		return 0;
	/* The counter stands behind the instruction. */
	if (position)
		position--;
	sb_memory_u32(memory, body + layout->info_size, &nr);
	if (nr > 1 && !layout->info_index)
		nth = nr > INSN_INFOS_MAX ? 0 : entries_before_25(memory, entries, nr, position);
	else if (nr > 1)
		nth = entries_before(memory, word(memory, body + layout->info_index), position);
	if (!nth || nth > nr)
		return 0;
	sb_memory_u32(memory, entries + (nth - 1) * layout->entry_bytes + layout->entry_line,
		      &line);
	return line;
}

/* Frames. */

/* "<main>", "<class:Foo>", "<top (required)>", but not the operators: those are of no method. */
static bool is_method(const char *name)
{
	return !(name[0] == '<' && name[1] >= 'a' && name[1] <= 'z') &&
	       strcmp(name, "singleton class");
}

/* Code of eval() is called as what it is in; the compiler Prism labels it "<compiled>". */
static uint64_t named_body(const struct sb_memory *memory, const struct sb_ruby_layout *layout,
			   uint64_t body)
{
	uint64_t parent;
	uint32_t type;
	int i;

	for (i = 0; i < EVALS_MAX; i++) {
		if (sb_memory_u32(memory, body, &type) || type != ISEQ_TYPE_EVAL ||
		    sb_memory_u64(memory, body + layout->parent, &parent) || !is_object(parent) ||
		    SB_RUBY_IMEMO(word(memory, parent)) != SB_RUBY_IMEMO_ISEQ)
			break;
		body = word(memory, parent + 16);
	}
	return body;
}

/* The label is "bar", "block in bar", "rescue in bar": the class goes before the last word, which
 * is the base label. */
static int add_label(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t body,
		     uint64_t method, struct sb_str *name)
{
	sb_cleanup(sb_str_release) struct sb_str label = {}, base = {};
	uint64_t strings[2]; /* base label, label */
	int err;

	body = named_body(memory, ruby->layout, body);
	err = sb_memory_read(memory, strings, sizeof(strings), body + 72);
	if (!err)
		err = add_string(memory, ruby, strings[1], &label);
	if (!err)
		err = add_string(memory, ruby, strings[0], &base);
	if (err)
		return err;
	if (!label.len || !base.len)
		return -EBADMSG;
	if (!method || !is_method(base.s) || base.len > label.len ||
	    strcmp(label.s + label.len - base.len, base.s))
		return sb_str_add(name, label.s);
	err = sb_str_addn(name, label.s, label.len - base.len);
	if (err)
		return err;
	add_class(memory, ruby, word(memory, method + 32), name);
	return sb_str_add(name, base.s);
}

static int add_file(const struct sb_memory *memory, const struct sb_ruby *ruby, uint64_t body,
		    struct sb_str *file)
{
	uint64_t path = word(memory, body + 64), first;

	if (is_object(path) && TYPE(word(memory, path)) == T_ARRAY) {
		int err = array_at(memory, path, 0, &first); /* as given, and absolute */

		if (err)
			return err;
		path = first;
	}
	return add_string(memory, ruby, path, file);
}

static int describe_iseq(const struct sb_memory *memory, const struct sb_ruby *ruby,
			 const struct sb_interp_frame *frame, struct sb_runtime_text *text)
{
	uint64_t obj[3]; /* flags, wrapper, body */
	int err = sb_memory_read(memory, obj, sizeof(obj), sb_ruby_iseq_of(frame));

	if (err)
		return err;
	if (SB_RUBY_IMEMO(obj[0]) != SB_RUBY_IMEMO_ISEQ ||
	    (sb_ruby_check(obj[2]) & SB_WHERE_CHECK_MASK) != sb_where_check(frame->where))
		return -EBADMSG;
	err = add_label(memory, ruby, obj[2], sb_ruby_method_of(frame), &text->name);
	if (!err)
		err = add_file(memory, ruby, obj[2], &text->file);
	if (!err)
		text->line = line_of(memory, ruby->layout, obj[2],
				     sb_where_position(frame->where) >> SB_RUBY_METHOD_HIGH);
	return err;
}

static int describe_cfunc(const struct sb_memory *memory, const struct sb_ruby *ruby,
			  const struct sb_interp_frame *frame, struct sb_runtime_text *text)
{
	uint64_t obj[5]; /* of the method entry: flags, class, definition, ID, owner */
	size_t len;
	int err = sb_memory_read(memory, obj, sizeof(obj), sb_ruby_method_of(frame));

	if (err)
		return err;
	if (SB_RUBY_IMEMO(obj[0]) != SB_RUBY_IMEMO_MENT ||
	    (sb_ruby_check(obj[2]) & SB_WHERE_CHECK_MASK) != sb_where_check(frame->where))
		return -EBADMSG;
	text->native = word(memory, obj[2] + 8);
	add_class(memory, ruby, obj[4], &text->name);
	len = text->name.len;
	if (ruby->ids_addr && !sb_ruby_id(memory, ruby, word(memory, obj[2] + 32), &text->name) &&
	    text->name.len > len)
		return 0;
	cut(&text->name, len);
	return sb_str_add(&text->name, "(C function)");
}

int sb_ruby_describe(const struct sb_memory *memory, const struct sb_ruby *ruby,
		     const struct sb_interp_frame *frame, struct sb_runtime_text *text)
{
	if (sb_ruby_iseq_of(frame))
		return describe_iseq(memory, ruby, frame, text);
	return describe_cfunc(memory, ruby, frame, text);
}
