// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files as objects. A file's name is a hash over where it is in the kernel's memory and what its
 * directory entry says; it is the same for all who opened it by the same path, and another one when
 * it was renamed or removed. Its path is walked once, when the name is new.
 */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_io.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* <linux/magic.h> */
#define ANON_INODE_FS_MAGIC 0x09041934
/* <linux/stat.h> */
#define S_IFSOCK	    0140000
#define S_IFREG		    0100000
#define S_IFDIR		    0040000
#define S_IFCHR		    0020000
#define S_IFIFO		    0010000
/* <linux/major.h> */
#define TTY_MAJOR	    4
#define TTYAUX_MAJOR	    5
#define PTY_MAJOR_FIRST	    128
#define PTY_MAJOR_LAST	    143

#define NAME_BYTES_MAX	    256u /* NAME_MAX, and NUL */
#define DISK_NAME_LEN	    32u
/* Of one filesystem, in all namespaces: each container has one or more. */
#define MOUNTS_MAX	    64
/* Components, and mounts crossed on the way. */
#define STEPS_MAX	    (SB_PATH_COMPONENTS_MAX + 16)

const volatile __u32 cfg_io_kinds = 0; /* bits 1 << enum sb_file_kind; 0: all */
const volatile __u32 cfg_io_dev = 0;   /* 0: all */
const volatile __u64 cfg_io_ino = 0;   /* 0: all */
const volatile __u8 cfg_io_has_fs = 0;
const volatile char cfg_io_fs[SB_FS_NAME_LEN] = {};
const volatile __u64 cfg_io_min_ns = 0;
const volatile __u64 cfg_io_max_ns = 0; /* 0: no bound */

/* A file's description in the making. */
struct io_description {
	struct sb_event_object event;
	struct sb_object_file file;
	char path[SB_PATH_BYTES_MAX + NAME_BYTES_MAX];
	__u64 dentry, mount; /* where the walk stands */
	__u32 nr_bytes;	     /* of path; here, because the verifier forgets what it is */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* SB_SCRATCH_MAX, set before load where there are files */
	__type(key, __u32);
	__type(value, struct io_description);
} io_descriptions SEC(".maps");

__hidden bool sb_io_is_filtered(void)
{
	return cfg_io_kinds || cfg_io_has_fs || cfg_io_dev || cfg_io_ino;
}

__hidden bool sb_io_lasts(__u64 ns)
{
	if (ns < cfg_io_min_ns) {
		sb_stat_add(SB_STAT_UNDER_MIN, 1);
		return false;
	}
	if (cfg_io_max_ns && ns > cfg_io_max_ns) {
		sb_stat_add(SB_STAT_OVER_MAX, 1);
		return false;
	}
	return true;
}

static bool is_tty(__u32 dev)
{
	__u32 major = dev >> 20;

	return major == TTY_MAJOR || major == TTYAUX_MAJOR ||
	       (major >= PTY_MAJOR_FIRST && major <= PTY_MAJOR_LAST);
}

static __u32 kind_of(const struct inode *inode)
{
	/* First: newer kernels say that these are regular files. */
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		return SB_FILE_ANON;
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFREG:
		return SB_FILE_REG;
	case S_IFDIR:
		return SB_FILE_DIR;
	case S_IFIFO:
		return SB_FILE_PIPE;
	case S_IFSOCK:
		return SB_FILE_SOCK;
	case S_IFBLK:
		return SB_FILE_BLK;
	case S_IFCHR:
		return is_tty(BPF_CORE_READ(inode, i_rdev)) ? SB_FILE_TTY : SB_FILE_CHR;
	default:
		return SB_FILE_OTHER;
	}
}

static bool is_on_fs(const struct inode *inode)
{
	char name[SB_FS_NAME_LEN] = {};
	int i;

	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(inode, i_sb, s_type, name));
#pragma unroll
	for (i = 0; i < SB_FS_NAME_LEN; i++)
		if (name[i] != cfg_io_fs[i])
			return false;
	return true;
}

static bool is_wanted(const struct inode *inode)
{
	if (cfg_io_ino && BPF_CORE_READ(inode, i_ino) != cfg_io_ino)
		return false;
	/* On the device, or the device itself. */
	if (cfg_io_dev && BPF_CORE_READ(inode, i_sb, s_dev) != cfg_io_dev &&
	    BPF_CORE_READ(inode, i_rdev) != cfg_io_dev)
		return false;
	if (cfg_io_kinds && !(cfg_io_kinds & (1u << kind_of(inode))))
		return false;
	return !cfg_io_has_fs || is_on_fs(inode);
}

/* Neighbours in struct dentry, in every kernel so far. */
struct entry {
	struct hlist_bl_node *next, **pprev;
	struct dentry *parent;
	struct qstr name;
};

/* In one piece if they are neighbours: this is done for each call. */
static void read_entry(struct entry *ret, const struct dentry *dentry)
{
	const __u32 at = bpf_core_field_offset(struct dentry, d_hash);

	if (bpf_core_field_offset(struct dentry, d_parent) == at + offsetof(struct entry, parent) &&
	    bpf_core_field_offset(struct dentry, d_name) == at + offsetof(struct entry, name)) {
		bpf_probe_read_kernel(ret, sizeof(*ret), (const void *)dentry + at);
		return;
	}
	ret->pprev = BPF_CORE_READ(dentry, d_hash.pprev);
	ret->parent = BPF_CORE_READ(dentry, d_parent);
	ret->name.hash_len = BPF_CORE_READ(dentry, d_name.hash_len);
}

/* Append the name of the entry. Return: whether there was room. */
static bool add_name(struct io_description *d, const struct dentry *dentry)
{
	__u32 at = d->nr_bytes;
	long len;

	sb_opaque(at);
	if (at >= SB_PATH_BYTES_MAX)
		return false;
	len = bpf_probe_read_kernel_str(d->path + at, NAME_BYTES_MAX,
					BPF_CORE_READ(dentry, d_name.name));
	if (len <= 0)
		return false;
	d->nr_bytes = at + len;
	return true;
}

/* An entry that has no directory: the name of an anonymous inode or of a memfd. Those of pipes and
 * sockets say no more than their kind. */
static void add_lone_name(struct io_description *d, const struct dentry *dentry)
{
	if (d->file.kind == SB_FILE_PIPE || d->file.kind == SB_FILE_SOCK)
		return;
	if (add_name(d, dentry) && d->file.kind == SB_FILE_REG)
		d->file.flags |= SB_FILE_DELETED;
}

/*
 * One step to the root: over a mount, or to the directory. Return: 1; 0: there is none.
 * Global: the verifier looks at it once, not once for each step there can be.
 */
__noinline int sb_io_step(__u32 slot)
{
	struct io_description *d = bpf_map_lookup_elem(&io_descriptions, &slot);
	const struct dentry *dentry, *parent;
	const struct mount *mount, *outer;

	if (!d)
		return 0;
	dentry = (void *)d->dentry;
	mount = (void *)d->mount;
	if (mount && dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		outer = BPF_CORE_READ(mount, mnt_parent);
		if (outer == mount)
			return 0;
		d->mount = (__u64)outer;
		d->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		return 1;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry || !add_name(d, dentry))
		return 0;
	d->dentry = (__u64)parent;
	return 1;
}

/* Why the walk ended where it stands. */
static void judge_end(struct io_description *d)
{
	const struct dentry *dentry = (void *)d->dentry;
	const struct mount *mount = (void *)d->mount;

	if (mount && dentry == BPF_CORE_READ(mount, mnt.mnt_root) &&
	    mount == BPF_CORE_READ(mount, mnt_parent)) {
		if (!BPF_CORE_READ(mount, mnt_ns))
			d->file.flags |= SB_FILE_NO_MOUNT;
	} else if (dentry != BPF_CORE_READ(dentry, d_parent)) {
		d->file.flags |= SB_FILE_PATH_CUT;
	} else if (!d->nr_bytes && mount) {
		add_lone_name(d, dentry);
	} else {
		d->file.flags |= SB_FILE_NO_MOUNT;
	}
}

static void walk_up(struct io_description *d, __u32 slot)
{
	__u32 i;

	for (i = 0; i < STEPS_MAX; i++)
		if (!sb_io_step(slot))
			break;
	judge_end(d);
}

static void describe_socket(struct sb_object_file *ret, const struct file *file)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);

	ret->sock_type = BPF_CORE_READ(socket, type);
	ret->sock_family = BPF_CORE_READ(socket, sk, __sk_common.skc_family);
	ret->sock_protocol = BPF_CORE_READ(socket, sk, sk_protocol);
}

static void describe_inode(struct sb_object_file *ret, const struct inode *inode)
{
	__builtin_memset(ret, 0, sizeof(*ret));
	ret->ino = BPF_CORE_READ(inode, i_ino);
	ret->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	ret->kind = kind_of(inode);
	bpf_probe_read_kernel_str(ret->fs, sizeof(ret->fs),
				  BPF_CORE_READ(inode, i_sb, s_type, name));
}

/* As d_unlinked() of <linux/dcache.h>. */
static bool is_removed(const struct dentry *dentry)
{
	return !BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry;
}

_Static_assert(sizeof(struct sb_object_file) + SB_PATH_BYTES_MAX <= SB_OBJECT_BYTES_MAX,
	       "a file is never too long to be shipped");

static void ship_description(struct io_description *d, __u64 id)
{
	__u32 nr_bytes = d->nr_bytes;

	/* The last name may go beyond the bound. It is cut, but what is in front of it is not. */
	if (nr_bytes > SB_PATH_BYTES_MAX) {
		nr_bytes = SB_PATH_BYTES_MAX;
		d->path[SB_PATH_BYTES_MAX - 1] = '\0';
		d->file.flags |= SB_FILE_PATH_CUT;
	}
	d->file.path_bytes = nr_bytes;
	d->event.id = id;
	d->event.kind = SB_OBJECT_FILE;
	d->event.nr_bytes = sizeof(d->file) + nr_bytes;
	sb_object_ship(&d->event);
}

static void ship_entry(struct io_description *d, __u32 slot, __u64 id)
{
	if (d->dentry) {
		if (is_removed((void *)d->dentry))
			d->file.flags |= SB_FILE_DELETED;
		walk_up(d, slot);
	}
	ship_description(d, id);
}

__noinline int sb_io_ship_file(__u64 file_addr, __u64 id, __u32 slot)
{
	struct io_description *d = bpf_map_lookup_elem(&io_descriptions, &slot);
	const struct file *file = (void *)file_addr;

	if (!d)
		return 0;
	describe_inode(&d->file, BPF_CORE_READ(file, f_inode));
	if (d->file.kind == SB_FILE_SOCK)
		describe_socket(&d->file, file);
	d->nr_bytes = 0;
	d->dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
	d->mount =
		(__u64)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	ship_entry(d, slot, id);
	return 0;
}

static bool is_mount_of(const struct mount *mount, const struct dentry *root,
			const struct mnt_namespace *ns)
{
	return BPF_CORE_READ(mount, mnt_ns) == ns && BPF_CORE_READ(mount, mnt.mnt_root) == root;
}

static __noinline __u64 newer_mount_of(__u64 sb, __u64 root, __u64 ns)
{
	const struct mount *mount = BPF_CORE_READ((const struct super_block *)sb, s_mounts);
	int i;

	for (i = 0; i < MOUNTS_MAX && mount; i++) {
		if (is_mount_of(mount, (void *)root, (void *)ns))
			return (__u64)mount;
		mount = BPF_CORE_READ(mount, mnt_next_for_sb);
	}
	return 0;
}

/* Up to 6.17. A function of its own: the compiler must not move offsets that newer kernels do not
 * have to where those come by. */
static __noinline __u64 older_mount_of(__u64 sb, __u64 root, __u64 ns)
{
	const struct super_block___6_17 *older = (const void *)sb;
	__u64 head = (__u64)&older->s_mounts, node = (__u64)BPF_CORE_READ(older, s_mounts.next);
	int i;

	for (i = 0; i < MOUNTS_MAX && node && node != head; i++) {
		const struct mount___6_17 *mount =
			(const void *)node -
			bpf_core_field_offset(struct mount___6_17, mnt_instance);

		if (is_mount_of((const void *)mount, (void *)root, (void *)ns))
			return (__u64)mount;
		node = (__u64)BPF_CORE_READ((const struct list_head *)node, next);
	}
	return 0;
}

/* The mount that the task has its root directory, or its working directory on, if that is of the
 * filesystem. */
static __u64 near_mount_of(struct task_struct *task, const struct super_block *sb,
			   const struct dentry *root)
{
	const struct fs_struct *fs = BPF_CORE_READ(task, fs);
	const struct vfsmount *mnt[2] = { BPF_CORE_READ(fs, root.mnt), BPF_CORE_READ(fs, pwd.mnt) };
	int i;

	for (i = 0; i < 2; i++)
		if (BPF_CORE_READ(mnt[i], mnt_sb) == sb && BPF_CORE_READ(mnt[i], mnt_root) == root)
			return (__u64)mnt[i] - bpf_core_field_offset(struct mount, mnt);
	return 0;
}

/* A place where all of the filesystem is mounted, as the current task sees it; 0: none. */
static __u64 mount_of(const struct super_block *sb)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 ns = (__u64)BPF_CORE_READ(task, nsproxy, mnt_ns), mount;
	__u64 root = (__u64)BPF_CORE_READ(sb, s_root);

	mount = near_mount_of(task, sb, (void *)root);
	if (mount || !ns)
		return mount;
	if (bpf_core_field_exists(struct mount, mnt_next_for_sb))
		return newer_mount_of((__u64)sb, root, ns);
	if (bpf_core_field_exists(struct mount___6_17, mnt_instance))
		return older_mount_of((__u64)sb, root, ns);
	return 0;
}

__noinline int sb_io_ship_inode(__u64 inode, __u64 dentry, __u64 id, __u32 slot)
{
	struct io_description *d = bpf_map_lookup_elem(&io_descriptions, &slot);

	if (!d)
		return 0;
	describe_inode(&d->file, (void *)inode);
	d->nr_bytes = 0;
	d->dentry = dentry;
	d->mount = mount_of(BPF_CORE_READ((const struct inode *)inode, i_sb));
	if (!d->mount)
		d->file.flags = SB_FILE_NO_MOUNT;
	ship_entry(d, slot, id);
	return 0;
}

/* What tells an entry from others, its former and later selves included. */
static __u64 hash_of(const struct inode *inode, const struct dentry *dentry, __u64 mnt)
{
	struct entry entry = {};
	__u64 hash = sb_hash_word(mnt, (__u64)inode);

	hash = sb_hash_word(hash, BPF_CORE_READ(inode, i_ino));
	if (!dentry)
		return hash | 2;
	read_entry(&entry, dentry);
	hash = sb_hash_word(hash, (__u64)dentry);
	hash = sb_hash_word(hash, entry.name.hash_len);
	hash = sb_hash_word(hash, (__u64)entry.parent ^ !entry.pprev);
	return hash | 2; /* neither 0 nor SB_IO_UNWANTED */
}

__noinline __u64 sb_io_file(__u64 file_addr, __u32 slot)
{
	const struct file *file = (void *)file_addr;
	const struct inode *inode;
	struct path path = {};
	__u64 id;
	__u32 known;

	if (!file)
		return sb_io_is_filtered() ? SB_IO_UNWANTED : 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (sb_io_is_filtered() && !is_wanted(inode))
		return SB_IO_UNWANTED;
	bpf_core_read(&path, sizeof(path), &file->f_path);
	id = hash_of(inode, path.dentry, (__u64)path.mnt);
	known = sb_object_known(id);
	if (known == SB_OBJECT_UNWANTED)
		return SB_IO_UNWANTED;
	if (known == SB_OBJECT_UNSEEN)
		sb_io_ship_file(file_addr, id, slot);
	return id;
}

__noinline __u64 sb_io_inode(__u64 inode_addr, __u64 dentry, __u32 slot)
{
	const struct inode *inode = (void *)inode_addr;
	__u64 id;
	__u32 known;

	if (!inode)
		return sb_io_is_filtered() ? SB_IO_UNWANTED : 0;
	if (sb_io_is_filtered() && !is_wanted(inode))
		return SB_IO_UNWANTED;
	id = hash_of(inode, (void *)dentry, 0);
	known = sb_object_known(id);
	if (known == SB_OBJECT_UNWANTED)
		return SB_IO_UNWANTED;
	if (known == SB_OBJECT_UNSEEN)
		sb_io_ship_inode(inode_addr, dentry, id, slot);
	return id;
}

static bool is_wanted_device(__u32 dev)
{
	if (cfg_io_has_fs || cfg_io_ino || (cfg_io_dev && dev != cfg_io_dev))
		return false;
	return !cfg_io_kinds || (cfg_io_kinds & (1u << SB_FILE_BLK));
}

static void ship_device(const struct block_device *bdev, __u32 dev, __u64 id, __u32 slot)
{
	struct io_description *d = bpf_map_lookup_elem(&io_descriptions, &slot);
	__u32 at;
	long len;

	if (!d)
		return;
	__builtin_memset(&d->file, 0, sizeof(d->file));
	d->file.kind = SB_FILE_BLK;
	d->file.dev = dev;
	len = bpf_probe_read_kernel_str(d->path, DISK_NAME_LEN,
					BPF_CORE_READ(bdev, bd_disk, disk_name));
	if (len <= 0 || len > DISK_NAME_LEN)
		return;
	at = len;
	sb_opaque(at);
	at &= 2 * DISK_NAME_LEN - 1;
	__builtin_memcpy(d->path + at, "dev", sizeof("dev"));
	d->nr_bytes = at + sizeof("dev");
	ship_description(d, id);
}

__noinline __u64 sb_io_device(__u64 bdev_addr, __u32 slot)
{
	const struct block_device *bdev = (void *)bdev_addr;
	__u32 dev, known;
	__u64 id;

	if (!bdev)
		return sb_io_is_filtered() ? SB_IO_UNWANTED : 0;
	dev = BPF_CORE_READ(bdev, bd_dev);
	if (!is_wanted_device(dev))
		return SB_IO_UNWANTED;
	id = sb_hash_word(1, dev) | 2;
	known = sb_object_known(id);
	if (known == SB_OBJECT_UNWANTED)
		return SB_IO_UNWANTED;
	if (known == SB_OBJECT_UNSEEN)
		ship_device(bdev, dev, id, slot);
	return id;
}
