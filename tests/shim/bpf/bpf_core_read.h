/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands in for libbpf's: plain member access, of one to four members. */
#ifndef SHIM_BPF_CORE_READ_H
#define SHIM_BPF_CORE_READ_H

#define SHIM_CORE_READ1(src, a)			   ((src)->a)
#define SHIM_CORE_READ2(src, a, b)		   ((src)->a->b)
#define SHIM_CORE_READ3(src, a, b, c)		   ((src)->a->b->c)
#define SHIM_CORE_READ4(src, a, b, c, d)	   ((src)->a->b->c->d)
#define SHIM_CORE_READ(src, a, b, c, d, name, ...) name
#define BPF_CORE_READ(src, ...)                                                             \
	SHIM_CORE_READ(src, __VA_ARGS__, SHIM_CORE_READ4, SHIM_CORE_READ3, SHIM_CORE_READ2, \
		       SHIM_CORE_READ1, 0)                                                  \
	(src, __VA_ARGS__)
#define BPF_CORE_READ_STR_INTO(dst, src, a) __builtin_memcpy(dst, (src)->a, sizeof(*(dst)))

/* Every field is there, unless the test says otherwise. */
extern int shim_has_fields;
#define bpf_core_field_exists(...)	    shim_has_fields
#define bpf_core_type_exists(type)	    shim_has_fields
#define bpf_core_field_offset(type, field)  __builtin_offsetof(type, field)
#define bpf_core_read(dst, size, src)	    bpf_probe_read_kernel(dst, size, src)
#define BPF_CORE_READ_BITFIELD_PROBED(s, f) ((s)->f)

#endif
