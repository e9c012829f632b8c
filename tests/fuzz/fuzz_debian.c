// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dpkg's lists of the files of packages. An input is paths, one a line, up to an empty line; behind
 * it are the lists of packages p0, p1..., with a form feed between them. Who is said to own a path
 * has it in its list, and nobody owns one that is in none.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/debian.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATHS_MAX 8u
#define LISTS_MAX 3u

static char dir[64];
static int list_fd[LISTS_MAX];

static void list_name(size_t i, char *ret, size_t len)
{
	snprintf(ret, len, "%s/p%zu:amd64.list", dir, i);
}

static void remove_all(void)
{
	char name[96];
	size_t i;

	for (i = 0; i < LISTS_MAX; i++) {
		list_name(i, name, sizeof(name));
		unlink(name);
	}
	rmdir(dir);
}

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");
	char name[96];
	size_t i;

	if (*dir)
		return;
	must((size_t)snprintf(dir, sizeof(dir), "%s/fuzz-debian-XXXXXX", tmp ? tmp : "/tmp") <
	     sizeof(dir));
	must(mkdtemp(dir));
	atexit(remove_all);
	for (i = 0; i < LISTS_MAX; i++) {
		list_name(i, name, sizeof(name));
		list_fd[i] = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		must(list_fd[i] >= 0);
	}
}

/* Not made empty before: file systems then take it for the end of an editor's work, and write it to
 * disk. */
static void write_list(size_t i, const char *text, size_t len)
{
	must(pwrite(list_fd[i], text, len, 0) == (ssize_t)len);
	must(!ftruncate(list_fd[i], (off_t)len));
}

/* With merged /usr, a name with it and one without are the same. */
static bool is_same_file(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t a_skip = a_len > 5 && !memcmp(a, "/usr/", 5) ? 4 : 0;
	size_t b_skip = b_len > 5 && !memcmp(b, "/usr/", 5) ? 4 : 0;

	return a_len - a_skip == b_len - b_skip && !memcmp(a + a_skip, b + b_skip, a_len - a_skip);
}

static bool has(const char *text, size_t len, const char *path)
{
	const char *end = text + len, *eol;

	for (; text < end; text = eol + 1) {
		eol = memchr(text, '\n', (size_t)(end - text));
		eol = eol ? eol : end;
		if (is_same_file(path, strlen(path), text, (size_t)(eol - text)))
			return true;
	}
	return false;
}

struct input {
	char *paths[PATHS_MAX];
	size_t nr_paths, nr_lists;
	const char *list[LISTS_MAX];
	size_t len[LISTS_MAX];
};

static void take(struct input *input, const char *p, const char *end)
{
	const char *eol;

	while (p < end && *p != '\n') {
		eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		if (input->nr_paths < PATHS_MAX)
			input->paths[input->nr_paths++] = strndup(p, (size_t)(eol - p));
		p = eol < end ? eol + 1 : end;
	}
	p += p < end;
	while (input->nr_lists < LISTS_MAX) {
		eol = p < end ? memchr(p, '\f', (size_t)(end - p)) : NULL;
		eol = eol ? eol : end;
		input->list[input->nr_lists] = p;
		input->len[input->nr_lists++] = (size_t)(eol - p);
		p = eol < end ? eol + 1 : end;
	}
}

static void check_owner(const struct input *input, const char *path, const char *owner)
{
	size_t i;

	if (owner) {
		must(owner[0] == 'p' && owner[1] >= '0' && owner[1] < '0' + (int)LISTS_MAX &&
		     !owner[2]);
		i = (size_t)(owner[1] - '0');
		must(has(input->list[i], input->len[i], path));
		return;
	}
	for (i = 0; i < input->nr_lists; i++)
		must(!has(input->list[i], input->len[i], path));
}

static void check_debug_package(const char *package)
{
	char *name = sb_debian_debug_package(package);
	size_t len = strlen(package);

	must(name);
	must((!strncmp(name, package, len) && !strcmp(name + len, "-dbgsym")) ||
	     (strlen(name) > 4 && !strcmp(name + strlen(name) - 4, "-dbg")));
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *owners[PATHS_MAX];
	struct input input = {};
	size_t i;

	setup();
	take(&input, (const char *)data, (const char *)data + size);
	for (i = 0; i < input.nr_lists; i++)
		write_list(i, input.list[i], input.len[i]);
	must(!sb_debian_owners(dir, (const char *const *)input.paths, input.nr_paths, owners));
	for (i = 0; i < input.nr_paths; i++) {
		check_owner(&input, input.paths[i], owners[i]);
		check_debug_package(input.paths[i]);
		free(owners[i]);
		free(input.paths[i]);
	}
	return 0;
}
