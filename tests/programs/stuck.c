// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that makes those wait who look at it: "stuck HOW FILE". FILE is one whose pages never come
 * (stuck_fs.c), or any other for "lease" and "uffd". It says "ready" and then works in spin(), but for "stack".
 *
 *	runtime	FILE lies over the variable by which Python is found
 *	uffd	the same by userfaultfd(2), without a file
 *	stack	a thread sleeps on a stack of which FILE is the middle
 *	args	FILE lies over the arguments of the program and its environment
 *	map	FILE is mapped as code, and nothing more
 *	lease	has a lease on FILE, which nobody breaks
 *	jit	works in code without a file, and its perf map is a link to FILE
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES  4096u
#define STACK_BYTES (256u << 10)

/* What Python 3.11 exports, on pages of its own. */
const uint32_t Py_Version = 0x030b07f0;
uint8_t _PyRuntime[64u << 10] __attribute__((aligned(65536)));
uint8_t PyCode_Type[512] __attribute__((aligned(65536)));
static uint8_t behind __attribute__((aligned(65536), used));

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(void)
{
	for (;;)
		sink++;
}

void _PyEval_EvalFrameDefault(void);
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
	spin();
}

static void *map_over(void *at, size_t len, const char *path, int prot)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *ret;

	if (fd < 0)
		return MAP_FAILED;
	ret = mmap(at, len, prot, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	close(fd);
	return ret;
}

static int stick_runtime(const char *path)
{
	return map_over(_PyRuntime, sizeof(_PyRuntime), path, PROT_READ) == MAP_FAILED;
}

static int stick_uffd(const char *path)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uint64_t)(uintptr_t)_PyRuntime, sizeof(_PyRuntime) },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	(void)path;
	/* Fresh memory: what was written is not missing. */
	if (fd < 0 || mmap(_PyRuntime, sizeof(_PyRuntime), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return 1;
	return ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg);
}

struct bed {
	const char *path;
	volatile enum { MAKING, MADE, FAILED } state;
};

/* FILE lies between this frame and those of its callers: whoever copies the stack up to its end
 * comes to FILE. */
static void *sleep_on_it(void *arg)
{
	struct timespec forever = { .tv_sec = 1000000 };
	struct bed *bed = arg;
	uint8_t room[STACK_BYTES];
	uint8_t *at =
		(uint8_t *)(((uintptr_t)room + 2 * PAGE_BYTES) & ~(uintptr_t)(PAGE_BYTES - 1));

	bed->state =
		map_over(at, STACK_BYTES / 2, bed->path, PROT_READ) == MAP_FAILED ? FAILED : MADE;
	/* Nothing but the kernel touches the stack until this ends. */
	syscall(SYS_nanosleep, &forever, NULL);
	return NULL;
}

static int stick_stack(const char *path)
{
	static struct bed bed;
	pthread_t thread;

	bed.path = path;
	if (pthread_create(&thread, NULL, sleep_on_it, &bed))
		return 1;
	while (bed.state == MAKING)
		;
	return bed.state == FAILED;
}

extern char **environ;

/*
 * The arrays of pointers to the arguments, and main()'s frames, end where the strings begin, mostly
 * on the same page. So the program starts itself again with a name so long that the strings begin
 * with a page: then that page and those above it hold nothing else, up to the last one.
 */
static int stick_args(char **argv, const char *path)
{
	static char name[8 * PAGE_BYTES];
	size_t offset_bytes = (uintptr_t)argv[0] % PAGE_BYTES;
	size_t len = strlen(argv[0]);
	char **last = environ;

	if (offset_bytes || len < 2 * PAGE_BYTES) {
		len += offset_bytes + (len < 2 * PAGE_BYTES ? 2 * PAGE_BYTES : 0);
		if (len >= sizeof(name))
			return 1;
		memset(name, 'x', len);
		execv("/proc/self/exe", (char *[]){ name, argv[1], argv[2], NULL });
		return 1;
	}
	while (*last && last[1])
		last++;
	return map_over(argv[0],
			((uintptr_t)(*last ? *last : argv[0] + len) - (uintptr_t)argv[0]) &
				~(uintptr_t)(PAGE_BYTES - 1),
			path, PROT_READ) == MAP_FAILED;
}

static int stick_map(const char *path)
{
	return map_over(NULL, STACK_BYTES, path, PROT_READ | PROT_EXEC) == MAP_FAILED;
}

static int stick_lease(const char *path)
{
	struct sigaction action = { .sa_handler = SIG_IGN };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 || sigaction(SIGIO, &action, NULL) || fcntl(fd, F_SETLEASE, F_WRLCK);
}

/* An endless loop, in the words of the machine. */
static const uint8_t loop[] = {
#ifdef __aarch64__
	0x00,
	0x00,
	0x00,
	0x14,
#else
	0xeb,
	0xfe,
#endif
};
static void (*spin_here)(void) = _PyEval_EvalFrameDefault;

static int stick_jit(const char *path)
{
	void *code =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char link[64];

	if (code == MAP_FAILED)
		return 1;
	memcpy(code, loop, sizeof(loop));
	if (mprotect(code, PAGE_BYTES, PROT_READ | PROT_EXEC))
		return 1;
	__builtin___clear_cache(code, (char *)code + PAGE_BYTES);
	spin_here = (void (*)(void))code;
	snprintf(link, sizeof(link), "/tmp/perf-%d.map", getpid());
	return symlink(path, link);
}

int main(int argc, char **argv)
{
	char how[16], path[256];
	int err = 2;

	if (argc != 3)
		return 2;
	snprintf(how, sizeof(how), "%s", argv[1]);
	snprintf(path, sizeof(path), "%s", argv[2]);
	if (!strcmp(how, "runtime"))
		err = stick_runtime(path);
	else if (!strcmp(how, "uffd"))
		err = stick_uffd(path);
	else if (!strcmp(how, "stack"))
		err = stick_stack(path);
	else if (!strcmp(how, "args"))
		err = stick_args(argv, path);
	else if (!strcmp(how, "map"))
		err = stick_map(path);
	else if (!strcmp(how, "lease"))
		err = stick_lease(path);
	else if (!strcmp(how, "jit"))
		err = stick_jit(path);
	if (err)
		return err;
	puts("ready");
	fflush(stdout);
	if (!strcmp(how, "stack"))
		for (;;)
			pause();
	spin_here();
	return 0;
}
