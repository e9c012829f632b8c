// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The truth are libbpf's answers about all types of this kernel. */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/str.h"
#include "views/views.h"

/* Members that hold members, arrays, bit fields, and what has no name. */
static const char *const structs[] = { "task_struct", "mm_struct", "pt_regs", "file",
				       "net_device" };

static struct btf *wanted_types(void)
{
	struct btf *btf = btf__new_empty();
	size_t i;

	assert_non_null(btf);
	for (i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		assert_true(btf__add_struct(btf, structs[i], 8) > 0);
	assert_true(btf__add_struct(btf, "inode___flavor", 8) > 0);
	assert_true(btf__add_struct(btf, "sb_no_such_type", 8) > 0);
	assert_true(btf__add_struct(btf, "sb_percpu", 8) > 0);
	return btf;
}

/* Through names for types and what does not change where their parts lie. */
static uint32_t plain(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (btf_is_mod(type) || btf_is_typedef(type)) {
		id = type->type;
		type = btf__type_by_id(btf, id);
	}
	return id;
}

/* Return: how many members were compared. */
static size_t compare(const struct btf *all, uint32_t all_id, const struct btf *some,
		      uint32_t some_id)
{
	const struct btf_type *a = btf__type_by_id(all, all_id = plain(all, all_id));
	const struct btf_type *b = btf__type_by_id(some, some_id = plain(some, some_id));
	size_t i, nr = 0;

	assert_int_equal(btf_kind(a), btf_kind(b));
	assert_string_equal(btf__name_by_offset(all, a->name_off),
			    btf__name_by_offset(some, b->name_off));
	if (btf_is_ptr(a) || btf_is_fwd(a) || !all_id)
		return 0;
	assert_int_equal(btf__resolve_size(all, all_id), btf__resolve_size(some, some_id));
	if (btf_is_array(a)) {
		assert_int_equal(btf_array(a)->nelems, btf_array(b)->nelems);
		return compare(all, btf_array(a)->type, some, btf_array(b)->type);
	}
	if (!btf_is_composite(a))
		return 0;
	assert_int_equal(btf_vlen(a), btf_vlen(b));
	for (i = 0; i < btf_vlen(a); i++) {
		const struct btf_member *of_all = btf_members(a) + i, *of_some = btf_members(b) + i;

		assert_string_equal(btf__name_by_offset(all, of_all->name_off),
				    btf__name_by_offset(some, of_some->name_off));
		assert_int_equal(of_all->offset, of_some->offset);
		nr += 1 + compare(all, of_all->type, some, of_some->type);
	}
	return nr;
}

static void compare_named(const struct btf *all, const struct btf *some, const char *name,
			  size_t at_least)
{
	int of_all = btf__find_by_name_kind(all, name, BTF_KIND_STRUCT);
	int of_some = btf__find_by_name_kind(some, name, BTF_KIND_STRUCT);

	assert_true(of_all > 0 && of_some > 0);
	assert_true(compare(all, (uint32_t)of_all, some, (uint32_t)of_some) >= at_least);
}

/* Each variable of the section is a member of the struct, in its place. */
static void compare_percpu(const struct btf *all, const struct btf *some)
{
	int section_id = btf__find_by_name_kind(all, ".data..percpu", BTF_KIND_DATASEC);
	int id = btf__find_by_name_kind(some, "sb_percpu", BTF_KIND_STRUCT);
	const struct btf_type *section, *type, *var;
	uint32_t i;

	assert_int_equal(id > 0, section_id > 0);
	if (section_id <= 0)
		return;
	section = btf__type_by_id(all, (uint32_t)section_id);
	type = btf__type_by_id(some, (uint32_t)id);
	assert_int_equal(btf_vlen(type), btf_vlen(section));
	for (i = 0; i < btf_vlen(type); i++) {
		var = btf__type_by_id(all, btf_var_secinfos(section)[i].type);
		assert_string_equal(btf__name_by_offset(some, btf_members(type)[i].name_off),
				    btf__name_by_offset(all, var->name_off));
		assert_int_equal(btf_members(type)[i].offset,
				 btf_var_secinfos(section)[i].offset * 8);
		assert_int_equal(btf__resolve_size(some, btf_members(type)[i].type), 4);
	}
}

static void test_kernel(void **state)
{
	struct btf *all = btf__load_vmlinux_btf(), *wanted = wanted_types(), *some;
	int fd = memfd_create("types", MFD_CLOEXEC);
	char path[64];
	struct sb_kernel_targets targets = {
		.nr = 3,
		.at = { { .name = "btf_trace_sched_switch" },
			{ .name = "bpf_iter_task" },
			{ .name = "btf_trace_sb_none" } },
	};
	size_t i;

	assert_non_null(all);
	assert_int_equal(sb_kernel_types_write(fd, wanted, &targets), 0);
	assert_int_equal(targets.at[0].id,
			 libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP));
	assert_int_equal(targets.at[1].id, libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER));
	assert_int_equal(targets.at[2].id, 0);
	assert_true(targets.are_found);
	assert_true(lseek(fd, 0, SEEK_END) < 1 << 20);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	some = btf__parse(path, NULL);
	assert_non_null(some);
	for (i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		compare_named(all, some, structs[i], 10);
	compare_named(all, some, "inode", 10);
	compare_percpu(all, some);
	assert_true(btf__find_by_name_kind(some, "sb_no_such_type", BTF_KIND_STRUCT) < 0);
	assert_true(btf__find_by_name_kind(some, "module", BTF_KIND_STRUCT) < 0);
	btf__free(some);
	btf__free(all);
	btf__free(wanted);
	close(fd);
}

/* Types of each kind, some of which lie in one another. */
static struct btf *make_types(void)
{
	struct btf *btf = btf__new_empty();
	int word, array, other, func, name, ptr, var;

	word = btf__add_int(btf, "word", 8, 0);
	array = btf__add_array(btf, word, word, 4);
	btf__add_float(btf, "real", 8);
	other = btf__add_union(btf, "other", 32);
	btf__add_field(btf, "words", array, 0, 0);
	name = btf__add_const(btf, btf__add_typedef(btf, "name", other));
	ptr = btf__add_ptr(btf, btf__add_fwd(btf, "gone", BTF_FWD_STRUCT));
	btf__add_struct(btf, "outer", 48);
	btf__add_field(btf, "it", name, 0, 0);
	btf__add_field(btf, "next", ptr, 256, 0);
	btf__add_enum(btf, "few", 4);
	btf__add_enum_value(btf, "ONE", 1);
	btf__add_enum64(btf, "many", 8, false);
	btf__add_enum64_value(btf, "TWO", 1ull << 40);
	func = btf__add_func_proto(btf, word);
	btf__add_func_param(btf, "x", word);
	btf__add_func(btf, "call", BTF_FUNC_GLOBAL, func);
	var = btf__add_var(btf, "there", BTF_VAR_STATIC, word);
	btf__add_datasec(btf, ".data", 8);
	btf__add_datasec(btf, ".data..percpu", 24);
	btf__add_datasec_var_info(btf, var, 16, 8);
	btf__add_decl_tag(btf, "tag", other, -1);
	btf__add_type_tag(btf, "tag", word);
	return btf;
}

/* All that is wanted is there, and what is damaged is refused, or makes no difference. */
static void test_damaged(void **state)
{
	struct btf *types = make_types(), *wanted = make_types(), *some;
	struct sb_kernel_targets targets = { .nr = 1, .at = { { .name = "bpf_iter_none" } } };
	struct sb_str out = {};
	const char *whole;
	uint32_t len, i, bit;
	char *damaged;
	int err;

	assert_true(btf__add_struct(wanted, "sb_percpu", 0) > 0);
	whole = btf__raw_data(types, &len);
	assert_int_equal(sb_kernel_types(whole, len, wanted, &targets, &out), 0);
	some = btf__new(out.s, (uint32_t)out.len);
	assert_non_null(some);
	compare_named(types, some, "outer", 3);
	compare_percpu(types, some);
	assert_true(btf__find_by_name_kind(some, "many", BTF_KIND_ENUM64) > 0);
	assert_true(btf__find_by_name_kind(some, "few", BTF_KIND_ENUM) > 0);
	assert_true(btf__find_by_name_kind(some, "call", BTF_KIND_FUNC) < 0);
	btf__free(some);
	for (i = 0; i < len; i++) {
		damaged = malloc(i ? i : 1); /* exactly, for sanitizers */
		memcpy(damaged, whole, i);
		assert_int_equal(sb_kernel_types(damaged, i, wanted, &targets, &out), -EBADMSG);
		free(damaged);
	}
	for (bit = 0; bit < len * 8; bit++) {
		damaged = malloc(len);
		memcpy(damaged, whole, len);
		damaged[bit / 8] ^= (char)(1 << bit % 8);
		sb_str_clear(&out);
		err = sb_kernel_types(damaged, len, wanted, &targets, &out);
		assert_true(!err || err == -EBADMSG);
		free(damaged);
	}
	sb_str_release(&out);
	btf__free(wanted);
	btf__free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_damaged),
	};

	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		printf("this kernel has no /sys/kernel/btf/vmlinux\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
