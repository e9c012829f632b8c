// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A file system whose server stops answering: "stuck_fs DIR [NAME=FILE]...". It is mounted on DIR and speaks
 * the protocol of linux/fuse.h. DIR/NAME is a copy of FILE, readable until the server is sent SIGUSR1; from then
 * on nothing is answered. These names never work, from the beginning:
 *
 *	read	is found and can be opened and mapped (1 MiB); its pages never come
 *	open	is found; opening it never ends
 *	lookup	looking it up never ends
 *
 * The server says "ready" when it is mounted, and takes the mount with it when it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_BYTES (1u << 20)
#define READ_BYTES    (128u << 10)
#define STUCK_BYTES   (1u << 20)
#define FILES_MAX     8
#define ALWAYS_VALID  1000000u

enum { ROOT = 1, STUCK_READ, STUCK_OPEN, FIRST_FILE };

static volatile sig_atomic_t is_stuck;

static struct {
	const char *name;
	int fd;
	struct stat st;
} files[FILES_MAX];
static int nr_files;

static void stop_answering(int number)
{
	is_stuck = number;
}

static void reply(int fd, uint64_t unique, int err, const void *data, size_t len)
{
	static char buf[sizeof(struct fuse_out_header) + READ_BYTES];
	struct fuse_out_header *out = (struct fuse_out_header *)buf;

	*out = (struct fuse_out_header){
		.len = (uint32_t)(sizeof(*out) + len),
		.error = -err,
		.unique = unique,
	};
	if (len)
		memcpy(out + 1, data, len);
	/* Whoever asked may have been killed: ENOENT. */
	(void)!write(fd, buf, out->len);
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	if (node == ROOT) {
		attr.mode = S_IFDIR | 0755;
		return attr;
	}
	attr.mode = S_IFREG | 0755;
	attr.size = node < FIRST_FILE ? STUCK_BYTES : (uint64_t)files[node - FIRST_FILE].st.st_size;
	attr.blocks = (attr.size + 511) / 512;
	return attr;
}

/* Return: the node, or 0. */
static uint64_t find(const char *name)
{
	int i;

	if (!strcmp(name, "read"))
		return STUCK_READ;
	if (!strcmp(name, "open"))
		return STUCK_OPEN;
	for (i = 0; i < nr_files; i++)
		if (!strcmp(name, files[i].name))
			return (uint64_t)(FIRST_FILE + i);
	return 0;
}

static void on_lookup(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out entry = { .entry_valid = ALWAYS_VALID, .attr_valid = ALWAYS_VALID };

	if (!strcmp(name, "lookup"))
		return;
	entry.nodeid = find(name);
	if (!entry.nodeid) {
		reply(fd, in->unique, ENOENT, NULL, 0);
		return;
	}
	entry.attr = attr_of(entry.nodeid);
	reply(fd, in->unique, 0, &entry, sizeof(entry));
}

static void on_read(int fd, const struct fuse_in_header *in, const struct fuse_read_in *read_in)
{
	static char buf[READ_BYTES];
	ssize_t nr;

	if (in->nodeid < FIRST_FILE)
		return;
	nr = pread(files[in->nodeid - FIRST_FILE].fd, buf,
		   read_in->size < sizeof(buf) ? read_in->size : sizeof(buf),
		   (off_t)read_in->offset);
	reply(fd, in->unique, nr < 0 ? EIO : 0, buf, nr < 0 ? 0 : (size_t)nr);
}

static void answer(int fd, const struct fuse_in_header *in)
{
	const struct fuse_init_in *init_in = (const void *)(in + 1);
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = init_in->max_readahead,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = READ_BYTES,
	};
	struct fuse_attr_out attr = { .attr_valid = ALWAYS_VALID };
	struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(fd, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		on_lookup(fd, in, (const char *)(in + 1));
		return;
	case FUSE_GETATTR:
		attr.attr = attr_of(in->nodeid);
		reply(fd, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
		if (in->nodeid != STUCK_OPEN)
			reply(fd, in->unique, 0, &opened, sizeof(opened));
		return;
	case FUSE_READ:
		on_read(fd, in, (const void *)(in + 1));
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* have no answer */
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		reply(fd, in->unique, 0, NULL, 0);
		return;
	default:
		reply(fd, in->unique, ENOSYS, NULL, 0);
	}
}

static int mount_on(const char *dir)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	if (fd < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fd);
	return mount("stuck_fs", dir, "fuse", MS_NOSUID | MS_NODEV, options) ? -1 : fd;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop_answering, .sa_flags = SA_RESTART };
	static char request[REQUEST_BYTES];
	int fd, i;

	for (i = 2; i < argc && nr_files < FILES_MAX; i++, nr_files++) {
		char *path = strchr(argv[i], '=');

		if (!path)
			return 2;
		*path++ = '\0';
		files[nr_files].name = argv[i];
		files[nr_files].fd = open(path, O_RDONLY | O_CLOEXEC);
		if (files[nr_files].fd < 0 || fstat(files[nr_files].fd, &files[nr_files].st))
			return 1;
	}
	if (argc < 2 || sigaction(SIGUSR1, &action, NULL))
		return 2;
	fd = mount_on(argv[1]);
	if (fd < 0) {
		perror("mount");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		ssize_t nr = read(fd, request, sizeof(request));

		if (nr < 0 && errno != EINTR && errno != ENOENT)
			return errno != ENODEV;
		if (nr >= (ssize_t)sizeof(struct fuse_in_header) && !is_stuck)
			answer(fd, (const struct fuse_in_header *)request);
	}
}
