/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptions of the arguments of events, as fields that expressions can name (expr.h): of a
 * tracepoint's record as tracefs has it in the file "format", and of a USDT probe as its note has
 * it. Both texts come from outside, so they may be any string. Functions append to @fields, which
 * the caller zeroes before the first one, and ends with sb_vec_release(). After -ENOMEM some fields
 * are missing. Names of fields are constants unless a contract says otherwise. Pointers are not
 * NULL. Thread: any, one at a time for each @fields.
 */
#ifndef SB_EVENTS_FORMAT_H
#define SB_EVENTS_FORMAT_H

#include "base/str.h"
#include "base/vec.h"
#include "bpf/abi/sb_abi_trace.h"
#include "events/expr.h"
#include "events/probe.h"

typedef SB_VEC(struct sb_expr_field) sb_vec_expr_field;

/**
 * sb_format_parse() - append the fields of a tracepoint's record
 * @text: the file "format", which ends in NUL; it is cut up, and the names of the fields point into
 *	it, so it has to live as long as they do
 * @has_strings: BPF programs get the record as it is described. False for system calls: the
 *	description has strings at the end, which BPF programs do not get, so these fields cannot
 *	be used
 *
 * The fields common_* are left out, because BPF programs cannot read them. A line that is no
 * description is skipped. A field of a type that expressions do not have is SB_EXPR_OTHER.
 *
 * Return: 0; -ENOMEM.
 */
int sb_format_parse(char *text, bool has_strings, sb_vec_expr_field *fields);

/**
 * sb_format_describe() - append the fields of a tracepoint's record for people to read
 * @text: the file "format", which ends in NUL; it is cut up
 *
 * They are appended to @str, separated by commas, as they are declared: "const char * filename, int
 * flags". A comma comes first if @str was not empty.
 *
 * Return: 0; -ENOMEM, and a part of them may have been appended.
 */
int sb_format_describe(char *text, struct sb_str *str);

/**
 * sb_usdt_parse() - append the arguments of a USDT probe, as arg0, arg1, ...
 * @text: their descriptors, "8@%rdi -4@-20(%rbp)"; "": there are none; not needed afterwards
 * @args: an array of SB_TRACE_ARGS_MAX elements; those of the arguments are overwritten with where
 *	the BPF side finds them
 *
 * One that cannot be read (a floating-point number, a symbol) is SB_EXPR_OTHER. Arguments beyond
 * SB_TRACE_ARGS_MAX are left out.
 *
 * Return: 0; -ENOMEM.
 */
int sb_usdt_parse(const char *text, struct sb_trace_arg *args, sb_vec_expr_field *fields);

/* Append the arguments of a function at its beginning, arg0 to arg5, or with @is_return its retval,
 * which are registers in a BPF program's context. @args: in which registers the arguments are;
 * nothing is appended for SB_ARGS_ON_STACK. Return: 0; -ENOMEM. */
int sb_function_fields(bool is_return, enum sb_probe_args args, sb_vec_expr_field *fields);

/* Append arg0 to arg5, retval and elapsed of a call, which are in struct sb_call_context. A Go
 * function has its arguments in other registers than C, so it gets no arg0 to arg5. Return: 0;
 * -ENOMEM. */
int sb_call_fields(bool is_of_go, sb_vec_expr_field *fields);

#endif
