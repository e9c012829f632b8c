// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Brings memory in every way that there is, each in a function of its own that is named like it,
 * and says how many pages of it are resident then: "NAME PAGES". It begins when it is told to by a
 * line, and says "done" at the end.
 *
 * keeper FILE ROUNDS		FILE has 256 pages, and is in the page cache
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART	     __attribute__((noinline))
#define FILE_PAGES   256
#define SPARSE_PAGES 700
#define SHARED_PAGES 90
#define DEEP_BYTES   (256 * 1024)
#define EACH	     16 /* pages of which the kernel brings all when one is touched */

static size_t page_bytes;
static size_t nr_sixty, nr_thirty, nr_ten, nr_churn, nr_mapped;

static APART char *fresh(size_t nr, int flags)
{
	char *at = mmap(NULL, nr * page_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	/* One fault for each page: what came and went is counted by faults. */
	(void)madvise(at, nr * page_bytes, MADV_NOHUGEPAGE);
	return at;
}

static APART void touch(char *at, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		((volatile char *)at)[i * page_bytes] = 1;
}

static APART void keep_sixty(void)
{
	touch(fresh(60, 0), 60);
	nr_sixty += 60;
}

static APART void keep_thirty(void)
{
	touch(fresh(30, 0), 30);
	nr_thirty += 30;
}

static APART void keep_ten(void)
{
	touch(fresh(10, 0), 10);
	nr_ten += 10;
}

static APART void churn(void)
{
	char *at = fresh(1000, 0);

	touch(at, 1000);
	munmap(at, 1000 * page_bytes);
	nr_churn += 1000;
}

/* The kernel writes to memory that was not touched before. */
static APART void read_file(int fd)
{
	if (read(fd, fresh(FILE_PAGES, 0), FILE_PAGES * page_bytes) !=
	    (ssize_t)(FILE_PAGES * page_bytes))
		exit(1);
}

/* Return: how many of the pages are there, by /proc/self/pagemap. */
static size_t nr_present(const char *at, size_t nr)
{
	unsigned long long words[FILE_PAGES];
	int fd = open("/proc/self/pagemap", O_RDONLY);
	size_t i, found = 0;

	if (pread(fd, words, nr * sizeof(words[0]),
		  (off_t)((unsigned long)at / page_bytes * sizeof(words[0]))) < 0)
		exit(1);
	for (i = 0; i < nr; i++)
		found += words[i] >> 63;
	close(fd);
	return found;
}

static APART size_t map_file(int fd)
{
	char *at = mmap(NULL, FILE_PAGES * page_bytes, PROT_READ, MAP_SHARED, fd, 0);
	int sum = 0, i;

	if (at == MAP_FAILED)
		exit(1);
	for (i = 0; i < FILE_PAGES; i += EACH)
		sum += ((volatile char *)at)[i * page_bytes];
	return sum == INT_MAX ? 0 : nr_present(at, FILE_PAGES);
}

/* No fault, so no code that is known to have brought it. Far from all others. */
static APART void populate(void)
{
	char *at = fresh(4096, 0);

	if (mmap(at + 2048 * page_bytes, 512 * page_bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(1);
}

/* There is no room to grow, so its pages get another address, without a fault. */
static APART void move_away(void)
{
	char *at = fresh(400, 0);

	touch(at + page_bytes * 100, 200);
	at = mremap(at + page_bytes * 100, 200 * page_bytes, 300 * page_bytes, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		exit(1);
}

/* Of a size for which the kernel looks for more room than is asked for, to align it to a huge page;
 * the last page is asked for in part only. */
static APART void move_aligned(void)
{
	char *at = fresh(1024, 0);

	touch(at, 512);
	at = mremap(at, 512 * page_bytes, 1024 * page_bytes - 100, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		exit(1);
}

/* Memory without a page of its own: all processes share the page of zeros, and it is not
 * resident. */
static APART int read_zeros(void)
{
	char *at = fresh(100, 0);
	int sum = 0, i;

	for (i = 0; i < 100; i++)
		sum += ((volatile char *)at)[i * page_bytes];
	return sum;
}

/* Pages far from one another in 32 TB, of which nobody can look at each. The kernel says in pieces
 * of 512 where pages are. */
static APART void sparse(void)
{
	const size_t nr_bytes = 32ull << 40, step = nr_bytes / 1024;
	char *at =
		mmap(NULL, nr_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	if (at == MAP_FAILED)
		exit(1);
	for (i = 0; i < SPARSE_PAGES; i++) {
		if (mprotect(at + i * step, page_bytes, PROT_READ | PROT_WRITE))
			exit(1);
		touch(at + i * step, 1);
	}
}

/* The heap keeps what is freed, so the second one has memory that the first one brought. */
static APART void first_toucher(void)
{
	char *at = malloc(300 * page_bytes);

	touch(at, 300);
	free(at);
}

static APART char *later_holder(void)
{
	char *at = malloc(300 * page_bytes);

	touch(at, 300);
	return at;
}

/* Memory that a child would share. */
static APART void share(void)
{
	char *at = mmap(NULL, SHARED_PAGES * page_bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	touch(at, SHARED_PAGES);
}

static APART void deepen(void)
{
	volatile char room[DEEP_BYTES];
	size_t i;

	/* From above, as a stack grows. */
	for (i = sizeof(room); i >= page_bytes; i -= page_bytes)
		room[i - 1] = 1;
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1, rounds = argc > 2 ? atoi(argv[2]) : 0, i;
	char line[16];

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	if (fd < 0 || mallopt(M_MMAP_THRESHOLD, 64 << 20) != 1 ||
	    mallopt(M_TRIM_THRESHOLD, 64 << 20) != 1)
		return 1;
	/* Code of pread() comes along with 15 other pages of the C library if none of them is there
	 * yet, which depends on where the library is: now, and not in map_file(). */
	(void)nr_present(line, 1);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (i = 0; i < rounds; i++) {
		keep_sixty();
		churn();
		keep_thirty();
		keep_ten();
	}
	read_file(fd);
	nr_mapped = map_file(fd);
	read_zeros();
	populate();
	sparse();
	move_away();
	move_aligned();
	share();
	deepen();
	first_toucher();
	if (!later_holder())
		return 1;
	printf("keep_sixty %zu\nkeep_thirty %zu\nkeep_ten %zu\nchurn %zu\n", nr_sixty, nr_thirty,
	       nr_ten, nr_churn);
	printf("read_file %d\nmap_file %zu\npopulate 512\nread_zeros 0\nsparse %d\nmove_away 200\nmove_aligned 512\nshare %d\ndone\n",
	       FILE_PAGES, nr_mapped, SPARSE_PAGES, SHARED_PAGES);
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin);
}
