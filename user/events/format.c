// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lines such as "field:char comm[16];	offset:8;	size:16;	signed:0;". */
#include "events/format.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

/* The fields common_*, instead of which BPF programs have a pointer of the kernel's. */
#define COMMON_BYTES 8u
#define RECORD_BYTES 65536u
/* The type of a field that says where in the record the value is begins so. */
#define DATA_LOC     "__data_loc "

static char *skip_blanks(char *at)
{
	return at + strspn(at, " \t");
}

static void trim_end(char *text, char *end)
{
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
}

/* Take "LABEL:VALUE;" from *@at. Return: the value, a string; NULL: there is no such thing. */
static char *take(char **at, const char *label)
{
	char *value = skip_blanks(*at), *end = strchr(value, ';');

	if (!end || strncmp(value, label, strlen(label)) != 0)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return value + strlen(label);
}

static bool take_number(char **at, const char *label, uint32_t *ret)
{
	const char *value = take(at, label);
	uint64_t number;

	if (!value || sb_parse_u64(value, RECORD_BYTES, &number))
		return false;
	*ret = (uint32_t)number;
	return true;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Take a declaration apart: "char comm[16]". @declaration becomes the type. Return: the name; NULL:
 * there is none. */
static char *take_name(char *declaration, bool *ret_is_array)
{
	char *end = declaration + strlen(declaration), *name;

	trim_end(declaration, end);
	end = declaration + strlen(declaration);
	*ret_is_array = end > declaration && end[-1] == ']';
	if (*ret_is_array) {
		end = strrchr(declaration, '[');
		if (!end)
			return NULL;
		trim_end(declaration, end);
		end = declaration + strlen(declaration);
	}
	for (name = end; name > declaration && is_word(name[-1]);)
		name--;
	if (name == declaration || name == end || isdigit((unsigned char)*name))
		return NULL;
	/* The name is moved by a byte if nothing is between it and its type: "char *name". */
	memmove(name + 1, name, strlen(name) + 1);
	trim_end(declaration, name);
	return name + 1;
}

static bool is_text(const char *type)
{
	return sb_streq(type, "char") || sb_streq(type, "const char");
}

static bool is_number(const struct sb_expr_field *field, const char *type)
{
	return (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8) &&
	       strncmp(type, "struct ", 7) != 0 && strncmp(type, "union ", 6) != 0 &&
	       strncmp(type, "__rel_loc ", 10) != 0;
}

static void set_kind(struct sb_expr_field *field, const char *type, bool is_array, bool has_strings)
{
	field->kind = SB_EXPR_OTHER;
	if (!strncmp(type, DATA_LOC, strlen(DATA_LOC))) {
		if (!has_strings || field->size != 4 ||
		    !sb_streq(type + strlen(DATA_LOC), "char[]"))
			return;
		field->kind = SB_EXPR_STRING;
		field->source = SB_EXPR_FROM_DATA_LOC;
	} else if (is_array) {
		if (is_text(type) && field->size)
			field->kind = SB_EXPR_STRING;
	} else if (strchr(type, '*')) {
		if (field->size == 8)
			field->kind = SB_EXPR_POINTER;
	} else if (is_number(field, type)) {
		field->kind = SB_EXPR_INT;
	}
}

/* Return: whether the line describes a field that BPF programs can read. */
static bool parse_line(char *line, bool has_strings, struct sb_expr_field *ret)
{
	struct sb_expr_field field = { .source = SB_EXPR_FROM_CONTEXT, .is_arg = true };
	char *declaration = take(&line, "field:");
	uint32_t is_signed;
	bool is_array;

	if (!declaration || !take_number(&line, "offset:", &field.at) ||
	    !take_number(&line, "size:", &field.size) ||
	    !take_number(&line, "signed:", &is_signed) || field.at < COMMON_BYTES)
		return false;
	field.is_signed = is_signed;
	field.name = take_name(declaration, &is_array);
	if (!field.name)
		return false;
	set_kind(&field, declaration, is_array, has_strings);
	*ret = field;
	return true;
}

int sb_format_describe(char *text, struct sb_str *str)
{
	char *line, *rest, *declaration;
	uint32_t at;
	int err = 0;

	for (line = strtok_r(text, "\n", &rest); line && !err; line = strtok_r(NULL, "\n", &rest)) {
		declaration = take(&line, "field:");
		if (!declaration || !take_number(&line, "offset:", &at) || at < COMMON_BYTES)
			continue;
		if (!strncmp(declaration, DATA_LOC, strlen(DATA_LOC)))
			declaration += strlen(DATA_LOC);
		err = sb_str_addf(str, "%s%s", str->len ? ", " : "", declaration);
	}
	return err;
}

int sb_format_parse(char *text, bool has_strings, sb_vec_expr_field *fields)
{
	struct sb_expr_field field;
	char *line, *rest;
	int err = 0;

	for (line = strtok_r(text, "\n", &rest); line && !err; line = strtok_r(NULL, "\n", &rest))
		if (parse_line(line, has_strings, &field))
			err = sb_vec_push(fields, field);
	return err;
}
