// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a command will map is what it has mapped when it runs: this very program, and others, as
 * /proc/PID/maps tells it of them.
 */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../under_valgrind.h"
#include "capture/cmdfiles.h"
#include "symbolizer/process/reader_priv.h"

int unit_needed(void);

/* Seen by readers, too. */
static bool *is_stuck;

int __real_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);
int __wrap_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);

/* As a FUSE server that does not answer. */
int __wrap_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd)
{
	while (*is_stuck)
		raise(SIGSTOP);
	return __real_sb_reader_serve(area, state, root_fd);
}

static char work[] = "/tmp/stackbpf-cmdfiles-XXXXXX";

static bool has_file(const struct sb_cmdfiles *files, const char *path)
{
	struct stat st;
	size_t i;

	assert_int_equal(stat(path, &st), 0);
	for (i = 0; i < files->nr; i++)
		if (files->at[i].dev == st.st_dev && files->at[i].ino == st.st_ino)
			return true;
	return false;
}

/* The files with code in a maps file. Return: how many. */
static int expect_maps(const struct sb_cmdfiles *files, const char *maps_path)
{
	FILE *maps = fopen(maps_path, "re");
	char line[PATH_MAX + 128], rights[8], path[PATH_MAX];
	int nr = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*s %7s %*s %*s %*s %4095[^\n]", rights, path) != 2 ||
		    rights[2] != 'x' || path[0] != '/')
			continue;
		nr++;
		if (!has_file(files, path))
			fail_msg("not found: %s", path);
	}
	fclose(maps);
	return nr;
}

static void make_file(const char *name, const char *text, mode_t mode, char *ret_path)
{
	FILE *file;

	snprintf(ret_path, PATH_MAX, "%s/%s", work, name);
	file = fopen(ret_path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(ret_path, mode), 0);
}

/* Have `cat` write its own mappings into a file. */
static void run_cat(const char *maps)
{
	int fd, status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		fd = open(maps, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO)
			execlp("cat", "cat", "/proc/self/maps", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int make_work(void **state)
{
	is_stuck = mmap(NULL, sizeof(*is_stuck), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	return is_stuck != MAP_FAILED && mkdtemp(work) ? 0 : -1;
}

static int remove_work(void **state)
{
	return rmdir(work);
}

/* This program has a library that only its DT_RUNPATH leads to, and others of the system's. */
static void test_own(void **state)
{
	struct sb_cmdfiles *files;
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	not_under_valgrind();
	assert_true(len > 0);
	path[len] = '\0';
	assert_int_equal(unit_needed(), 1);
	files = sb_cmdfiles_find(path);
	assert_non_null(files);
	assert_true(has_file(files, path));
	/* The program, its library, libcmocka, libc and the loader. */
	assert_true(expect_maps(files, "/proc/self/maps") >= 5);
	assert_in_range(files->nr, 5, SB_CMDFILES_MAX);
	sb_cmdfiles_free(files);
}

/* By $PATH, as a script, and a script of that script. */
static void test_script(void **state)
{
	char maps[PATH_MAX], script[PATH_MAX], second[PATH_MAX], text[PATH_MAX + 32];
	struct sb_cmdfiles *files = sb_cmdfiles_find("cat");

	make_file("maps", "", 0600, maps);
	run_cat(maps);
	assert_non_null(files);
	assert_true(expect_maps(files, maps) >= 3);
	sb_cmdfiles_free(files);

	make_file("script", "#! \t/bin/cat -n\n", 0700, script);
	files = sb_cmdfiles_find(script);
	assert_true(has_file(files, script));
	assert_true(expect_maps(files, maps) >= 3);
	sb_cmdfiles_free(files);

	snprintf(text, sizeof(text), "#!%s", script);
	make_file("second", text, 0700, second);
	assert_int_equal(setenv("PATH", work, 1), 0);
	files = sb_cmdfiles_find("second");
	assert_true(has_file(files, second));
	assert_true(expect_maps(files, maps) >= 3);
	sb_cmdfiles_free(files);
	unlink(maps);
	unlink(script);
	unlink(second);
}

/* What $LD_LIBRARY_PATH has goes before the system's. */
static void test_library_path(void **state)
{
	char library[PATH_MAX], path[2 * PATH_MAX];
	struct sb_cmdfiles *files;

	make_file("libc.so.6", "", 0600, library);
	snprintf(path, sizeof(path), "/nowhere:%s", work);
	assert_int_equal(setenv("LD_LIBRARY_PATH", path, 1), 0);
	files = sb_cmdfiles_find("/bin/cat");
	assert_true(has_file(files, library));
	sb_cmdfiles_free(files);
	assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
	unlink(library);
}

/* What is no program, and what must not be opened. */
static void test_nothing(void **state)
{
	char path[PATH_MAX], text[PATH_MAX + 16];
	const char *const names[] = { "", "/", "/dev/null", "no-such-program", "/no/such/program" };
	struct sb_cmdfiles *files;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		files = sb_cmdfiles_find(names[i]);
		assert_non_null(files);
		assert_int_equal(files->nr, 0);
		sb_cmdfiles_free(files);
	}
	/* A FIFO would block us. */
	snprintf(path, sizeof(path), "%s/fifo", work);
	assert_int_equal(mkfifo(path, 0700), 0);
	files = sb_cmdfiles_find(path);
	assert_int_equal(files->nr, 0);
	sb_cmdfiles_free(files);
	unlink(path);

	/* A script of itself. */
	snprintf(text, sizeof(text), "#!%s/circle", work);
	make_file("circle", text, 0700, path);
	files = sb_cmdfiles_find(path);
	assert_int_equal(files->nr, 1);
	sb_cmdfiles_free(files);
	unlink(path);
	sb_cmdfiles_free(NULL);
}

/* Opening a file that somebody has a lease on waits for 45 s. */
static void test_lease(void **state)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	struct sb_cmdfiles *files;
	char path[PATH_MAX];
	int fd;

	assert_int_equal(sigaction(SIGIO, &ignore, &before), 0);
	make_file("leased", "#!/bin/cat\n", 0700, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	files = sb_cmdfiles_find(path);
	assert_int_equal(files->nr, 0);
	sb_cmdfiles_free(files);
	close(fd);
	assert_int_equal(sigaction(SIGIO, &before, NULL), 0);
	unlink(path);
}

/* What does not answer is opened by a reader, and left out. */
static void test_stuck(void **state)
{
	const struct sb_reader_opts opts = { .patience_ns = 50000000 };
	struct sb_cmdfiles *files;

	not_under_valgrind();
	assert_int_equal(sb_reader_begin(&opts), 0);
	files = sb_cmdfiles_find("/bin/cat");
	assert_in_range(files->nr, 3, SB_CMDFILES_MAX);
	sb_cmdfiles_free(files);
	*is_stuck = true;
	files = sb_cmdfiles_find("/bin/cat");
	assert_int_equal(files->nr, 0);
	sb_cmdfiles_free(files);
	*is_stuck = false;
	sb_reader_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_library_path),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_script), /* leaves $PATH changed */
	};

	return cmocka_run_group_tests(tests, make_work, remove_work);
}
