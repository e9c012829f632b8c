// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/process/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/status.h"
#include "base/str.h"
#include "symbolizer/process/reader.h"

/* Room for a line with the longest path and its fields. */
#define CHUNK_BYTES	   (64 << 10)
/* /proc/PID/stat has 52 numbers and a name. */
#define STAT_BYTES_MAX	   (4u << 10)
#define COMM_BYTES_MAX	   (4u << 10)
/* MAX_PID_NS_LEVEL of the kernel, plus the initial namespace. */
#define PID_NAMESPACES_MAX 33
/* "/proc/4294967295/task/4294967295/map_files/" and two addresses. */
#define PROC_PATH_MAX	   128
/* Fields of /proc/PID/stat, as proc_pid_stat(5) counts them. */
#define STAT_FIELD_PPID	   4
#define STAT_FIELD_FLAGS   9
#define STAT_FIELD_START   22
#define STAT_FIELD_LAST	   28 /* startstack */
/* PF_KTHREAD, include/linux/sched.h */
#define KTHREAD_FLAG	   0x00200000u

static bool scan_char(const char **p, const char *end, char want)
{
	if (*p >= end || **p != want)
		return false;
	(*p)++;
	return true;
}

static bool scan_u32_hex(const char **p, const char *end, uint32_t *ret)
{
	uint64_t val;

	if (!sb_scan_hex(p, end, &val) || val > UINT32_MAX)
		return false;
	*ret = (uint32_t)val;
	return true;
}

/* "r-xp" */
static bool scan_permissions(const char **p, const char *end, struct sb_maps_line *line)
{
	const char *s = *p;

	if (end - s < 4 || (s[0] != 'r' && s[0] != '-') || (s[1] != 'w' && s[1] != '-') ||
	    (s[2] != 'x' && s[2] != '-') || (s[3] != 'p' && s[3] != 's'))
		return false;
	line->is_writable = s[1] == 'w';
	line->is_exec = s[2] == 'x';
	*p += 4;
	return true;
}

bool sb_maps_line_parse(const char *line, size_t len, struct sb_maps_line *ret)
{
	const char *p = line, *end = line + len;
	struct sb_maps_line out = {};

	if (!sb_scan_hex(&p, end, &out.start) || !scan_char(&p, end, '-') ||
	    !sb_scan_hex(&p, end, &out.end) || !scan_char(&p, end, ' ') ||
	    !scan_permissions(&p, end, &out) || !scan_char(&p, end, ' ') ||
	    !sb_scan_hex(&p, end, &out.pgoff) || !scan_char(&p, end, ' ') ||
	    !scan_u32_hex(&p, end, &out.maj) || !scan_char(&p, end, ':') ||
	    !scan_u32_hex(&p, end, &out.min) || !scan_char(&p, end, ' ') ||
	    !sb_scan_u64(&p, end, &out.ino) || out.start >= out.end)
		return false;
	if (p < end && *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	out.path = p;
	out.path_len = (size_t)(end - p);
	if (memchr(p, '\0', out.path_len))
		return false;
	*ret = out;
	return true;
}

enum sb_map_kind sb_map_kind(const char *path, size_t len)
{
	static const struct {
		const char *prefix;
		enum sb_map_kind kind;
	} kinds[] = {
		{ "//", SB_MAP_ANON }, /* "//anon", and " (deleted)" in old kernels */
		{ "[heap]", SB_MAP_ANON },    { "[stack", SB_MAP_ANON },
		{ "[anon", SB_MAP_ANON },     { "/anon_hugepage", SB_MAP_ANON },
		{ "[vdso]", SB_MAP_VDSO },    { "[", SB_MAP_SPECIAL },
		{ "/memfd:", SB_MAP_MEMORY }, { "/dev/zero", SB_MAP_MEMORY },
		{ "/SYSV", SB_MAP_MEMORY },   { "/dev/shm/", SB_MAP_MEMORY },
		{ "/", SB_MAP_FILE },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(kinds); i++)
		if (sb_text_begins(path, len, kinds[i].prefix))
			return kinds[i].kind;
	/*
	 * No name: anonymous memory. Other names: "anon_inode:...", "pipe:[1]", which cannot be
	 * read.
	 */
	return len ? SB_MAP_SPECIAL : SB_MAP_ANON;
}

/* Callers test for ESRCH; /proc reports a missing process by other errors, too. */
static int no_such_process(int err)
{
	return err == -ENOENT ? -ESRCH : err;
}

DIR *sb_procfs_threads(uint32_t tgid)
{
	char path[PROC_PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	return opendir(path);
}

uint32_t sb_procfs_next_task(DIR *threads, uint32_t but)
{
	const struct dirent *entry;
	uint64_t tid;

	while ((entry = readdir(threads)))
		if (!sb_parse_u64(entry->d_name, UINT32_MAX, &tid) && tid != but)
			return (uint32_t)tid;
	return 0;
}

/*
 * Open /proc/TGID/@name. A process whose main thread has ended still lives in its other threads,
 * but its own entries are dead: then take the entries of a thread. Return: a descriptor or -errno.
 */
static int open_entry(uint32_t tgid, const char *name, int flags)
{
	char path[PROC_PATH_MAX];
	uint32_t tid;
	int fd, err;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	dir = sb_procfs_threads(tgid);
	if (!dir)
		return no_such_process(err);
	while (fd < 0 && (tid = sb_procfs_next_task(dir, tgid))) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", tgid, tid, name);
		fd = open(path, flags | O_CLOEXEC);
	}
	closedir(dir);
	return fd >= 0 ? fd : no_such_process(err);
}

/*
 * Pass all complete lines to @fn. Return: 0; -EBADMSG: some are not of a maps file; or what @fn
 * returned.
 */
static int give_lines(const struct sb_str *text,
		      int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	const char *p = text->s, *end = text->s + text->len, *eol;
	struct sb_maps_line line;
	uint64_t nr_bad = 0;
	int err;

	for (; p < end && (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
		if (!sb_maps_line_parse(p, (size_t)(eol - p), &line)) {
			nr_bad++;
			continue;
		}
		err = fn(arg, &line);
		if (err < 0)
			return err;
	}
	return nr_bad ? -EBADMSG : 0;
}

static int read_lines(uint32_t tgid, struct sb_str *text)
{
	ssize_t n;

	while (text->len < SB_MAPS_BYTES_MAX) {
		if (sb_str_reserve(text, CHUNK_BYTES))
			return -ENOMEM;
		n = sb_reader_entry(tgid, SB_READER_MAPS, text->len, text->s + text->len,
				    CHUNK_BYTES);
		if (n < 0)
			return (int)n;
		text->len += (size_t)n;
		if (n < CHUNK_BYTES)
			return 0;
	}
	return -EFBIG;
}

/*
 * The whole text is read before the first line is handed over: @fn may read entries of other
 * processes, which closes the one that the reader has open, and what is read behind a line of a
 * file that was opened anew can begin within a line.
 */
int sb_procfs_maps(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	int err = read_lines(tgid, &text), err_lines = 0;

	if (text.len && (!err || err == -EFBIG))
		err_lines = give_lines(&text, fn, arg);
	return err_lines ? err_lines : err;
}

/*
 * Pass records to @fn. They are checked, because an attacker may control the reader. Return: 0,
 * -EPROTO, or what @fn returned.
 */
static int give_records(const struct sb_str *records,
			int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	const char *at = records->s;
	size_t len = records->len;
	struct sb_reader_map map;
	int err = 0;

	for (; len && err >= 0; at += map.record_bytes, len -= map.record_bytes) {
		if (len < sizeof(map))
			return -EPROTO;
		memcpy(&map, at, sizeof(map));
		if (map.record_bytes > len || map.record_bytes < sizeof(map) ||
		    map.path_len > map.record_bytes - sizeof(map) || map.start >= map.end ||
		    memchr(at + sizeof(map), '\0', map.path_len))
			return -EPROTO;
		err = fn(arg, &(struct sb_maps_line){
				      .start = map.start,
				      .end = map.end,
				      .pgoff = map.pgoff,
				      .ino = map.ino,
				      .maj = map.maj,
				      .min = map.min,
				      .is_exec = map.is_exec,
				      .is_writable = map.is_writable,
				      .path = at + sizeof(map),
				      .path_len = map.path_len,
			      });
	}
	return err < 0 ? err : 0;
}

int sb_procfs_code(uint32_t tgid, int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	sb_cleanup(sb_str_release) struct sb_str records = {};
	uint64_t at = 0, last_at = 0, nr_bytes = 0;
	bool is_first = true;
	ssize_t n;
	int err = 0;

	for (; !err && at != UINT64_MAX; is_first = false) {
		last_at = at;
		n = sb_reader_code(tgid, is_first, &at, &records);
		if (n == -ENOTSUP && is_first)
			return sb_procfs_maps(tgid, fn, arg);
		err = n < 0 ? (int)n : give_records(&records, fn, arg);
		nr_bytes += n < 0 ? 0 : (uint64_t)n;
		/* A piece that is empty or does not advance would make this an endless loop. */
		if (!err && at != UINT64_MAX && (!n || at <= last_at))
			err = -EPROTO;
		if (!err && nr_bytes > SB_MAPS_BYTES_MAX)
			err = -EFBIG;
	}
	return err;
}

int sb_procfs_code_since(uint32_t tgid, uint64_t since_ns,
			 int (*fn)(void *arg, const struct sb_maps_line *line), void *arg)
{
	sb_cleanup(sb_str_release) struct sb_str records = {};
	ssize_t n = sb_reader_code_since(tgid, since_ns, &records);

	if (n == -ENODATA)
		return sb_procfs_code(tgid, fn, arg);
	return n < 0 ? (int)n : give_records(&records, fn, arg);
}

bool sb_moved_text_feed(struct sb_moved_text *moved, const struct sb_maps_line *line)
{
	const struct sb_maps_line *before = &moved->before, *anon = &moved->anon;

	moved->before = moved->anon;
	moved->anon = moved->line;
	moved->line = *line;
	moved->is_anon_code[0] = moved->is_anon_code[1];
	moved->is_anon_code[1] =
		line->is_exec && sb_map_kind(line->path, line->path_len) == SB_MAP_ANON;
	return moved->is_anon_code[0] && before->end == anon->start && anon->end == line->start &&
	       before->is_exec && before->ino && before->ino == line->ino &&
	       before->maj == line->maj && before->min == line->min &&
	       line->start - line->pgoff == before->start - before->pgoff;
}

int sb_procfs_ids_parse(const char *status, struct sb_procfs_ids *ret_ids)
{
	uint64_t inner[PID_NAMESPACES_MAX], uid[2];
	size_t nr = sb_status_numbers(status, "NStgid", inner, PID_NAMESPACES_MAX);

	if (!nr || nr > PID_NAMESPACES_MAX || sb_status_numbers(status, "Uid", uid, 2) < 2 ||
	    inner[nr - 1] > UINT32_MAX || uid[0] > UINT32_MAX || uid[1] > UINT32_MAX)
		return -EBADMSG;
	*ret_ids = (struct sb_procfs_ids){ .inner_tgid = (uint32_t)inner[nr - 1],
					   .uid = (uid_t)uid[0],
					   .euid = (uid_t)uid[1] };
	return 0;
}

int sb_procfs_ids(uint32_t tgid, struct sb_procfs_ids *ret_ids)
{
	sb_cleanup(sb_freep) char *status = NULL;
	sb_cleanup(sb_closep) int fd = open_entry(tgid, "status", O_RDONLY);
	int err;

	if (fd < 0)
		return fd;
	err = sb_read_fd(fd, SB_STATUS_BYTES_MAX, &status, NULL);
	return err ? err : sb_procfs_ids_parse(status, ret_ids);
}

int sb_procfs_stat_parse(const char *text, size_t len, struct sb_procfs_stat *ret_stat)
{
	/* Fields 4 to 28; the sign of negative ones is ignored. */
	uint64_t field[STAT_FIELD_LAST + 1] = {};
	const char *p, *end;
	size_t i;
	char state;

	/* "PID (COMM) S PPID ...": COMM may hold anything, even parentheses. */
	p = memrchr(text, ')', len);
	end = text + len;
	if (!p || end - p < 5)
		return -EBADMSG;
	state = p[2];
	p += 3;
	for (i = STAT_FIELD_PPID; i <= STAT_FIELD_LAST; i++) {
		while (p < end && (*p == ' ' || *p == '-'))
			p++;
		if (!sb_scan_u64(&p, end, &field[i]))
			return -EBADMSG;
	}
	*ret_stat = (struct sb_procfs_stat){ .state = state,
					     .ppid = (uint32_t)field[STAT_FIELD_PPID],
					     .is_kernel = field[STAT_FIELD_FLAGS] & KTHREAD_FLAG,
					     .start_ticks = field[STAT_FIELD_START],
					     .stack_addr = field[STAT_FIELD_LAST] };
	return 0;
}

static int read_stat(int stat_fd, struct sb_procfs_stat *ret_stat)
{
	sb_cleanup(sb_freep) char *text = NULL;
	sb_cleanup(sb_closep) int fd = stat_fd;
	size_t len;
	int err;

	if (fd < 0)
		return fd;
	err = sb_read_fd(fd, STAT_BYTES_MAX, &text, &len);
	return err ? err : sb_procfs_stat_parse(text, len, ret_stat);
}

/* The main thread has ended. Its entry remains until the others have ended, too, but tells neither
 * of them nor of memory. */
static void add_other_thread(uint32_t tgid, struct sb_procfs_stat *stat)
{
	sb_cleanup(sb_closedirp) DIR *dir = sb_procfs_threads(tgid);
	struct sb_procfs_stat other;
	char path[PROC_PATH_MAX];
	uint32_t tid;

	while (dir && (tid = sb_procfs_next_task(dir, tgid))) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tgid, tid);
		/* It has ended, too. */
		if (read_stat(open(path, O_RDONLY | O_CLOEXEC), &other) ||
		    strchr("XZ", other.state))
			continue;
		stat->state = other.state;
		stat->stack_addr = other.stack_addr;
		return;
	}
}

int sb_procfs_stat(uint32_t tgid, struct sb_procfs_stat *ret_stat)
{
	int err = read_stat(open_entry(tgid, "stat", O_RDONLY), ret_stat);

	if (!err && ret_stat->state == 'Z')
		add_other_thread(tgid, ret_stat);
	return err;
}

int sb_procfs_stat_of(uint32_t tgid, uint64_t start_ticks, struct sb_procfs_stat *ret_stat)
{
	struct sb_procfs_stat stat;
	int err = sb_procfs_stat(tgid, &stat);

	if (err)
		return err;
	if (stat.state == 'Z' || stat.state == 'X' ||
	    (start_ticks && stat.start_ticks != start_ticks))
		return -ESRCH;
	*ret_stat = stat;
	return 0;
}

bool sb_procfs_exists(uint32_t tgid)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", tgid);
	return !stat(path, &st) || (errno != ENOENT && errno != ESRCH);
}

int sb_procfs_comm(uint32_t tgid, char **ret_comm)
{
	sb_cleanup(sb_closep) int fd = open_entry(tgid, "comm", O_RDONLY);
	int err = fd < 0 ? fd : sb_read_fd(fd, COMM_BYTES_MAX, ret_comm, NULL);

	if (!err)
		(*ret_comm)[strcspn(*ret_comm, "\n")] = '\0';
	return err;
}

int sb_procfs_other_root(uint32_t tgid)
{
	return sb_reader_root(tgid, true);
}

int sb_procfs_open(int root_fd, const char *path)
{
	return sb_reader_open(&(struct sb_reader_file){
		.place = root_fd < 0 ? SB_READER_HERE : SB_READER_BELOW,
		.root_fd = root_fd,
		.path = path,
	});
}

int sb_procfs_open_mapped(uint32_t tgid, uint64_t start, uint64_t end)
{
	return sb_reader_open(&(struct sb_reader_file){
		.place = SB_READER_MAPPED,
		.tgid = tgid,
		.start = start,
		.end = end,
	});
}

static int open_named(uint32_t tgid, const struct sb_maps_line *line)
{
	int root_fd = sb_reader_root(tgid, false), fd, err;
	char path[PATH_MAX];
	struct stat st;

	if (root_fd < 0)
		return root_fd;
	if (line->path_len >= sizeof(path)) {
		close(root_fd);
		return -ENAMETOOLONG;
	}
	memcpy(path, line->path, line->path_len);
	path[line->path_len] = '\0';
	fd = sb_procfs_open(root_fd, path);
	close(root_fd);
	if (fd < 0)
		return fd;
	err = sb_reader_fstat(fd, &st);
	if (!err && st.st_ino != line->ino)
		err = -ENOENT;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int sb_procfs_open_line(uint32_t tgid, const struct sb_maps_line *line)
{
	int fd = sb_reader_held_open(makedev(line->maj, line->min), line->ino);

	if (fd >= 0)
		return fd;
	fd = sb_procfs_open_mapped(tgid, line->start, line->end);
	return fd == -EPERM || fd == -EACCES ? open_named(tgid, line) : fd;
}

/* While a file is mapped, no other file can get its inode number. */
static bool is_file_of(const struct sb_maps_line *line, const struct stat *st)
{
	return st->st_ino == line->ino && major(st->st_dev) == line->maj &&
	       minor(st->st_dev) == line->min;
}

int sb_procfs_stat_line(uint32_t tgid, const struct sb_maps_line *line, struct stat *ret_st)
{
	const dev_t dev = makedev(line->maj, line->min);
	struct sb_reader_file here = {
		.place = SB_READER_HERE,
		.hold_dev = dev,
		.hold_ino = line->ino,
	};
	struct sb_reader_file mapped = here;
	char path[PATH_MAX];

	if (sb_reader_held_stat(dev, line->ino, ret_st))
		return 0;
	if (line->path_len && line->path[0] == '/' && line->path_len < sizeof(path)) {
		memcpy(path, line->path, line->path_len);
		path[line->path_len] = '\0';
		here.path = path;
		if (!sb_reader_stat(&here, ret_st) && is_file_of(line, ret_st))
			return 0;
	}
	mapped.place = SB_READER_MAPPED;
	mapped.tgid = tgid;
	mapped.start = line->start;
	mapped.end = line->end;
	return sb_reader_stat(&mapped, ret_st);
}

int sb_procfs_read_memory(uint32_t tgid, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = sb_reader_memory(tgid, addr, buf, len);

	if (n >= 0)
		return (size_t)n == len ? 0 : -EFAULT;
	return n == -EPERM ? -EACCES : (int)n;
}
