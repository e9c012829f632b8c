// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/cmdfiles.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

/* What execvp(3) takes without $PATH. */
#define PATH_DEFAULT   "/bin:/usr/bin"
/* The first line of a script: BINPRM_BUF_SIZE of the kernel. */
#define LINE_MAX_BYTES 256u
/* A dynamic section of more entries is nonsense: most have 30. */
#define DYNAMIC_MAX    4096u

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)

struct finding {
	struct sb_cmdfiles *files;
	char loader_dir[PATH_MAX]; /* "": there is no loader */
};

/* Where the strings of a dynamic section are. */
struct strings {
	const struct sb_elf *elf;
	uint64_t offset, nr_bytes;
};

/*
 * By a reader: the command may lie on a file system that does not answer, and what a hostile
 * program names as its loader or its libraries may be leased or be no file at all.
 * Return: its row of the list, or NULL when there is no such file, or no room.
 */
static const struct sb_cmdfile *add_file(struct sb_cmdfiles *files, const char *path)
{
	struct sb_cmdfile *file;
	struct stat st;
	sb_cleanup(sb_closep) int fd = sb_procfs_open(-1, path);
	size_t i;

	if (fd < 0 || sb_reader_fstat(fd, &st))
		return NULL;
	for (i = 0; i < files->nr; i++)
		if (files->at[i].dev == st.st_dev && files->at[i].ino == st.st_ino)
			return &files->at[i];
	if (files->nr == SB_CMDFILES_MAX)
		return NULL;
	file = &files->at[files->nr++];
	file->fd = sb_take_fd(fd);
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	snprintf(file->path, sizeof(file->path), "%s", path);
	return file;
}

/*
 * Try @name in each directory of a list with colons; an empty one is the working directory. $ORIGIN
 * is the directory of @of.
 */
static bool add_from(struct sb_cmdfiles *files, const char *dirs, const char *name, const char *of)
{
	const char *slash = of ? strrchr(of, '/') : NULL;
	int origin_len = slash ? (int)(slash - of) : 0;
	char path[PATH_MAX];
	int len;

	for (;; dirs += len + 1) {
		const char *dir = dirs, *origin = "";
		int dir_len = len = (int)strcspn(dirs, ":"), n, skip = 0;

		if (!strncmp(dir, "$ORIGIN", 7))
			skip = 7;
		else if (!strncmp(dir, "${ORIGIN}", 9))
			skip = 9;
		if (skip && slash) {
			origin = of;
			dir += skip;
			dir_len -= skip;
		}
		n = snprintf(path, sizeof(path), "%.*s%.*s%s%s", *origin ? origin_len : 0, origin,
			     dir_len, dir, len ? "/" : "", name);
		if (n > 0 && (size_t)n < sizeof(path) && add_file(files, path))
			return true;
		if (!dirs[len])
			return false;
	}
}

static bool add_program(struct sb_cmdfiles *files, const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return add_file(files, name);
	return add_from(files, path ? path : PATH_DEFAULT, name, NULL);
}

/* Return: whether it is a script. */
static bool add_interpreter(struct sb_cmdfiles *files, int fd)
{
	char line[LINE_MAX_BYTES + 1], *name;
	ssize_t len = pread(fd, line, LINE_MAX_BYTES, 0);

	if (len < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[len] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	add_file(files, name);
	return true;
}

/* Where @file really lies, without links in its path. The kernel knows it of what is open, and asks
 * nobody. */
static void find_dir(const struct sb_cmdfile *file, char dir[PATH_MAX])
{
	char link[64], *slash;
	ssize_t len = -1;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	if (!sb_reader_is_copy(file->fd))
		len = readlink(link, dir, PATH_MAX - 1);
	if (len >= 0)
		dir[len] = '\0';
	else
		snprintf(dir, PATH_MAX, "%s", file->path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
}

static void add_loader(struct finding *finding, const struct sb_elf *elf)
{
	const struct sb_cmdfile *loader;
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_INTERP || !phdr->p_filesz || phdr->p_filesz > sizeof(path) ||
		    sb_elf_read(elf, phdr->p_offset, path, phdr->p_filesz))
			continue;
		path[phdr->p_filesz - 1] = '\0';
		loader = add_file(finding->files, path);
		if (loader)
			find_dir(loader, finding->loader_dir);
		return;
	}
}

/* Return: whether there is one that fits. */
static bool read_string(const struct strings *strings, uint64_t at, char *buf, size_t size)
{
	size_t len = size;

	if (at >= strings->nr_bytes)
		return false;
	if (len > strings->nr_bytes - at)
		len = (size_t)(strings->nr_bytes - at);
	return !sb_elf_read(strings->elf, strings->offset + at, buf, len) && memchr(buf, '\0', len);
}

static void add_library(const struct finding *finding, const char *name, const char *runpath,
			const char *of)
{
	const char *library_path = getenv("LD_LIBRARY_PATH");

	if (strchr(name, '/')) {
		add_file(finding->files, name);
		return;
	}
	if (*runpath && add_from(finding->files, runpath, name, of))
		return;
	if (library_path && *library_path && add_from(finding->files, library_path, name, of))
		return;
	if (*finding->loader_dir)
		add_from(finding->files, finding->loader_dir, name, NULL);
}

/* Call @fn for the string of each entry of this tag, or of that. */
static void each_string(const struct strings *strings, int64_t tag, int64_t or_tag,
			void (*fn)(void *arg, const char *string), void *arg)
{
	const struct sb_elf *elf = strings->elf;
	struct sb_elf_reader reader;
	char buf[PATH_MAX];
	Elf64_Dyn dyn;
	size_t i, nr = 0;

	for (i = 0; i < elf->nr_phdrs && elf->phdrs[i].p_type != PT_DYNAMIC; i++)
		;
	if (i == elf->nr_phdrs)
		return;
	sb_elf_reader_init(&reader, elf, elf->phdrs[i].p_offset, elf->phdrs[i].p_filesz,
			   sb_elf_dyn_bytes(elf));
	while (nr++ < DYNAMIC_MAX && sb_elf_next_dyn(&reader, &dyn) > 0 && dyn.d_tag != DT_NULL)
		if ((dyn.d_tag == tag || dyn.d_tag == or_tag) &&
		    read_string(strings, dyn.d_un.d_val, buf, sizeof(buf)))
			fn(arg, buf);
}

static void keep_string(void *arg, const char *string)
{
	snprintf(arg, PATH_MAX, "%s", string);
}

struct needing {
	const struct finding *finding;
	const char *of; /* path of the file */
	char runpath[PATH_MAX];
};

static void need_library(void *arg, const char *name)
{
	const struct needing *needing = arg;

	add_library(needing->finding, name, needing->runpath, needing->of);
}

static void add_libraries(const struct finding *finding, const struct sb_elf *elf, const char *of)
{
	struct needing needing = { .finding = finding, .of = of };
	struct strings strings = { .elf = elf };
	struct sb_elf_dynamic dynamic;

	if (sb_elf_read_dynamic(elf, &dynamic) || !dynamic.strtab ||
	    !sb_elf_addr_to_offset(elf, dynamic.strtab, &strings.offset))
		return;
	strings.nr_bytes = dynamic.strtab_bytes;
	each_string(&strings, DT_RUNPATH, DT_RPATH, keep_string, needing.runpath);
	each_string(&strings, DT_NEEDED, DT_NEEDED, need_library, &needing);
}

/* What the @i-th file leads to. */
static void follow(struct finding *finding, size_t i)
{
	const struct sb_cmdfile *file = &finding->files->at[i];
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;

	if (add_interpreter(finding->files, file->fd) || sb_elf_new_fd(file->fd, &elf))
		return;
	if (!*finding->loader_dir)
		add_loader(finding, elf);
	add_libraries(finding, elf, file->path);
}

struct sb_cmdfiles *sb_cmdfiles_find(const char *name)
{
	struct sb_cmdfiles *files = calloc(1, sizeof(*files));
	struct finding finding = { .files = files };
	size_t i;

	if (!files)
		return NULL;
	add_program(files, name);
	for (i = 0; i < files->nr; i++)
		follow(&finding, i);
	return files;
}

void sb_cmdfiles_free(struct sb_cmdfiles *files)
{
	size_t i;

	if (!files)
		return;
	for (i = 0; i < files->nr; i++)
		sb_closep(&files->at[i].fd);
	free(files);
}
