// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/refused.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "views/skel.h"
#include "workers/privileges.h"

/* More than libbpf opens at a time to find out what the kernel can do. */
#define FDS_LEFT 8

/* What libbpf complained of first: it is what failed, the rest follows from it. */
static struct {
	libbpf_print_fn_t next;
	char kind[8];  /* "prog", "map"; "": nothing */
	bool lacks_fd; /* at that time; libbpf may go on, and fail of something else */
	char name[64];
} heard;

SB_DEFINE_CLEANUP(struct btf, btf__free)

/*
 * Asked when something has failed: it takes longer than a start may. The helper is the last one of
 * those without which nothing works; other things of its age are missing with it.
 */
static bool is_too_old(void)
{
	static const char helper[] = "BPF_FUNC_task_pt_regs";
	sb_cleanup(btf__freep) struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *helpers;
	uint32_t i;
	int id;

	id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -1;
	if (id < 0)
		return false;
	helpers = btf__type_by_id(btf, (uint32_t)id);
	for (i = 0; i < btf_vlen(helpers); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(helpers)[i].name_off), helper))
			return false;
	return true;
}

static int say_too_old(struct sb_reason *reason)
{
	struct utsname name;

	uname(&name);
	sb_reason_set(reason, 0,
		      "Linux %s lacks kernel features that stackbpf needs; boot "
		      "Linux 5.15 or newer",
		      name.release);
	return -EOPNOTSUPP;
}

/* Return: whether the kernel would let us, as far as that depends on who we are. */
static bool may_load(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
	const uint32_t admin = 1u << CAP_SYS_ADMIN;
	const uint32_t bpf = 1u << (CAP_BPF - 32), perfmon = 1u << (CAP_PERFMON - 32);

	if (syscall(SYS_capget, &header, data))
		return false;
	return (data[0].effective & admin) || !(~data[1].effective & (bpf | perfmon));
}

/* What may_load() sees are capabilities in our user namespace; these count for nothing there. */
static bool is_in_user_namespace(void)
{
	char ns[64];
	ssize_t len = readlink("/proc/self/ns/user", ns, sizeof(ns) - 1);

	ns[len > 0 ? len : 0] = '\0';
	/* 4026531837 is PROC_USER_INIT_INO, include/linux/proc_ns.h. */
	return *ns && strcmp(ns, "user:[4026531837]");
}

int sb_explain(struct sb_reason *reason, int err, const char *what)
{
	char text[128];

	if (is_too_old())
		return say_too_old(reason);
	if (sb_privileges_is_paranoid(err)) {
		sb_reason_set(reason, 0,
			      "cannot %s: this kernel requires CAP_SYS_ADMIN while "
			      "kernel.perf_event_paranoid is above 2; run stackbpf as root, or "
			      "'sysctl kernel.perf_event_paranoid=2'",
			      what);
		return err;
	}
	if ((err == -EPERM || err == -EACCES) && is_in_user_namespace()) {
		sb_reason_set(reason, 0,
			      "cannot %s: %s, because stackbpf runs in a user namespace, such as "
			      "that of a rootless container; run it as root of the host",
			      what, strerror(-err));
		return err;
	}
	if ((err == -EPERM || err == -EACCES) && may_load()) {
		sb_reason_set(reason, 0,
			      "cannot %s: %s, although all needed capabilities are present; "
			      "perhaps a seccomp filter or a security module forbids it",
			      what, strerror(-err));
		return err;
	}
	if (err == -EPERM || err == -EACCES) {
		sb_reason_set(reason, 0,
			      "cannot %s: missing privileges; run stackbpf as root, or grant it "
			      "the capabilities with the setcap command that 'stackbpf doctor' "
			      "prints",
			      what);
		return err;
	}
	if (err <= -__LIBBPF_ERRNO__START) {
		libbpf_strerror(err, text, sizeof(text));
		sb_reason_set(reason, 0, "cannot %s: %s; -v shows the details", what, text);
		return -EIO;
	}
	if (err == -EAGAIN) {
		sb_reason_set(reason, 0,
			      "cannot %s: cannot create a thread, because memory is short or a "
			      "limit is reached; check ulimit -u and pids.max of the cgroup",
			      what);
		return err;
	}
	if (err == -ENOMEM || err == -EMFILE)
		return sb_reason_set(reason, err, "cannot %s", what);
	return sb_reason_set(reason, err,
			     "cannot %s; 'stackbpf doctor' shows what this kernel lacks, and -v "
			     "the details",
			     what);
}

int sb_explain_setting(struct sb_reason *reason, int err, const char *what)
{
	if (err == -ENOMEM)
		return sb_reason_set(reason, err, "cannot prepare %s", what);
	return sb_reason_set(reason, err,
			     "cannot prepare %s before the BPF programs are loaded; this is an "
			     "error of stackbpf: report it with what -v prints",
			     what);
}

/*
 * Return: whether fewer than FDS_LEFT file descriptors can still be opened. libbpf loads small
 * programs and types to find out what the kernel supports. If it gets no descriptor for one, it
 * concludes that the kernel lacks the feature.
 */
static bool lacks_fds(void)
{
	int fds[FDS_LEFT], nr;
	bool lacks = false;

	for (nr = 0; nr < FDS_LEFT && !lacks; nr++) {
		fds[nr] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
		lacks = fds[nr] < 0 && errno == EMFILE;
	}
	while (nr--)
		if (fds[nr] >= 0)
			close(fds[nr]);
	return lacks;
}

/* "libbpf: prog 'oncpu_tick': BPF program load failed: ...", "libbpf: map 'counts': failed to
 * create: ..." */
static int hear(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[256];
	int had = errno;
	va_list again;

	if (level == LIBBPF_WARN && !heard.lacks_fd)
		heard.lacks_fd = lacks_fds();
	if (level == LIBBPF_WARN && !heard.kind[0] && strstr(fmt, "failed")) {
		va_copy(again, ap);
		vsnprintf(line, sizeof(line), fmt, again);
		va_end(again);
		if (sscanf(line, "libbpf: %7[a-z] '%63[^']'", heard.kind, heard.name) != 2)
			heard.kind[0] = '\0';
	}
	errno = had;
	return heard.next ? heard.next(level, fmt, ap) : 0;
}

const char *sb_load_refused(int err)
{
	bool is_about_us = (err == -EPERM || err == -EACCES) && !may_load();

	if (strcmp(heard.kind, "prog") || is_about_us || heard.lacks_fd || is_too_old() ||
	    err == -ENOMEM || err <= -__LIBBPF_ERRNO__START)
		return NULL;
	return heard.name;
}

int sb_load_explain(struct sb_reason *reason, int err)
{
	const char *program = sb_load_refused(err);

	if (program) {
		sb_reason_set(reason, 0,
			      "the kernel rejects the BPF program '%s' (%s); -v shows the reason, "
			      "and 'stackbpf doctor' shows what this kernel lacks",
			      program, strerror(-err));
		return -EOPNOTSUPP;
	}
	if (heard.lacks_fd)
		return sb_reason_set(reason, -EMFILE, "cannot load the BPF programs");
	if (err == -ENOENT && !sb_can_access("/proc/self/stat", F_OK)) {
		sb_reason_set(
			reason, 0,
			"cannot load the BPF programs, because '/proc' is not mounted; 'mount -t "
			"proc proc /proc' mounts it");
		return err;
	}
	if (err == -ESRCH) {
		/* That is what libbpf makes of any failure there. */
		sb_reason_set(reason, 0,
			      "cannot read the kernel's type information (BTF) in "
			      "'/sys/kernel/btf/vmlinux'; free memory, or see with -v what libbpf "
			      "says of it");
		return -EIO;
	}
	if (strcmp(heard.kind, "map") || err <= -__LIBBPF_ERRNO__START)
		return sb_explain(reason, err, "load the BPF programs");
	if ((err == -EPERM || err == -EACCES) && !may_load())
		return sb_explain(reason, err, "load the BPF programs");
	if (is_too_old())
		return say_too_old(reason);
	return sb_reason_set(reason, err,
			     "the kernel rejects the BPF map '%s'; 'stackbpf doctor' shows what "
			     "this kernel lacks",
			     heard.name);
}

int sb_load(struct sampler_bpf *skel)
{
	int err;

	memset(&heard, 0, sizeof(heard));
	heard.next = libbpf_set_print(hear);
	err = sampler_bpf__load(skel);
	libbpf_set_print(heard.next);
	return err;
}
