// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files parsed by another process: the answer is what we would have made of the file; what crashes,
 * hangs or lies over a file costs that file alone; a table that was forged is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../under_valgrind.h"
#include "base/cleanup.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/unwind/cfi_priv.h"
#include "symbolizer/unwind/parser.h"
#include "symbolizer/unwind/parser_priv.h"

/* Of tests that need it to run out. */
#define SHORT_NS 1000000000ull

SB_DEFINE_CLEANUP(struct sb_elf, sb_elf_free)
SB_DEFINE_CLEANUP(struct sb_cfi, sb_cfi_free)
SB_DEFINE_CLEANUP(struct sb_parser, sb_parser_free)

/* What a worker does about the file, of all it is handed, that is so many bytes long. */
enum how { NOTHING, CRASH, HANG, LIE_RULE, LIE_ROWS, LIE_LEN, LIE_ERR, SAY_NO_MORE, FLOOD };
static enum how how;
static off_t bad_bytes;
static bool is_bad_file; /* of the worker: it has seen it */

ssize_t __real_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t offset);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

static bool is_worker(void)
{
	char name[16] = "";

	return !prctl(PR_GET_NAME, name) && !strcmp(name, "stackbpf-parse");
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
	struct stat st;

	if (how != NOTHING && is_worker() && !fstat(fd, &st)) {
		is_bad_file = st.st_size == bad_bytes;
		if (is_bad_file && how == CRASH)
			raise(SIGKILL);
		if (is_bad_file && how == HANG)
			pause();
	}
	return __real_pread(fd, buf, len, offset);
}

ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t offset)
{
	return __wrap_pread(fd, buf, len, offset);
}

/* The one area that a worker has: those of other seats would be there, too. */
static uint8_t *find_area(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, at = 0;
	unsigned int nr = 0;
	char line[256];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/zero") && sscanf(line, "%lx-", &start) == 1) {
			at = start;
			nr++;
		}
	if (maps)
		fclose(maps);
	return nr == 1 ? (uint8_t *)at : NULL;
}

/* The head as cfi_save.c writes it: where the rules begin. */
#define HEAD_BYTES 56

static void lie(struct sb_parser_answer *answer)
{
	uint8_t *area = find_area();

	if (!area)
		return;
	switch (how) {
	case LIE_RULE:
		area[HEAD_BYTES + 2 * sizeof(struct sb_uw_rule)] = SB_UW_CFA_GO_GROW + 1;
		break;
	case LIE_ROWS:
		/* The last row of all: another rule than there is. */
		memset(area + answer->len - sizeof(uint32_t), 0xff, sizeof(uint32_t));
		break;
	case LIE_LEN:
		answer->len = UINT32_MAX;
		break;
	case LIE_ERR:
		answer->err = 1;
		break;
	case SAY_NO_MORE:
		_exit(0);
	default:
		break;
	}
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (is_bad_file && is_worker() && how == FLOOD)
		while (__real_sendmsg(fd, message, flags & ~MSG_DONTWAIT) > 0)
			;
	if (is_bad_file && is_worker())
		lie(message->msg_iov->iov_base);
	return __real_sendmsg(fd, message, flags);
}

/* Files. */

static int copy_to_memory(int from, off_t extra)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);
	static char buf[1 << 16];
	off_t offset = 0;
	ssize_t nr;

	assert_true(fd >= 0);
	while ((nr = __real_pread(from, buf, sizeof(buf), offset)) > 0) {
		assert_int_equal(write(fd, buf, (size_t)nr), nr);
		offset += nr;
	}
	assert_int_equal(ftruncate(fd, offset + extra), 0);
	return fd;
}

static struct sb_elf *elf_of(int fd)
{
	struct sb_elf *elf = NULL;

	assert_true(fd >= 0);
	assert_int_equal(sb_elf_new_fd(fd, &elf), 0);
	close(fd);
	return elf;
}

static struct sb_elf *self(void)
{
	return elf_of(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
}

/* The same on another file system. @extra: bytes at its end. */
static struct sb_elf *copy_of_self(off_t extra)
{
	sb_cleanup(sb_closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	return elf_of(copy_to_memory(fd, extra));
}

static void check_same(const struct sb_cfi *is, const struct sb_cfi *want)
{
	assert_int_equal(sb_cfi_saved_bytes(is), sb_cfi_saved_bytes(want));
	assert_int_equal(is->text_lo, want->text_lo);
	assert_int_equal(is->info.nr_rows, want->info.nr_rows);
	assert_int_equal(is->info.text_lo, want->info.text_lo);
	assert_int_equal(is->info.text_hi, want->info.text_hi);
	assert_int_equal(is->info.nr_fdes, want->info.nr_fdes);
	assert_memory_equal(is->rules.at, want->rules.at, want->rules.nr * sizeof(*want->rules.at));
	assert_memory_equal(is->granules.at, want->granules.at,
			    want->granules.nr * sizeof(*want->granules.at));
	assert_memory_equal(is->rows.at, want->rows.at, want->rows.nr * sizeof(*want->rows.at));
}

static struct sb_parser *start(void)
{
	const struct sb_parser_opts opts = { .patience_ns = how == HANG ? SHORT_NS : 0 };
	struct sb_parser *parser = NULL;

	assert_int_equal(sb_parser_new(&opts, &parser), 0);
	assert_int_equal(sb_parser_settle(parser), 0);
	return parser;
}

static int ask(struct sb_parser *parser, const struct sb_elf *elf)
{
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;
	sb_cleanup(sb_cfi_freep) struct sb_cfi *want = NULL;
	int err = sb_parser_cfi(sb_parser_seat(parser, SB_PARSER_TABLES), elf, NULL, &cfi);

	if (!err) {
		assert_int_equal(sb_cfi_new_native(elf, NULL, &want), 0);
		check_same(cfi, want);
	}
	return err;
}

static struct sb_parser_stats stats_of(const struct sb_parser *parser)
{
	struct sb_parser_stats stats;

	sb_parser_stats(parser, &stats);
	return stats;
}

static void test_same(void **state)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = self();
	sb_cleanup(sb_freep) struct sb_cfi_function *functions = NULL;
	sb_cleanup(sb_freep) struct sb_cfi_function *want = NULL;
	size_t nr, nr_want;

	assert_int_equal(ask(parser, elf), 0);
	assert_int_equal(ask(NULL, elf), 0);
	assert_int_equal(
		sb_parser_functions(sb_parser_seat(parser, SB_PARSER_INTERP), elf, &functions, &nr),
		0);
	assert_int_equal(sb_cfi_functions(elf, &want, &nr_want), 0);
	assert_int_equal(nr, nr_want);
	assert_memory_equal(functions, want, nr * sizeof(*want));
	assert_int_equal(stats_of(parser).nr_answers, 2);
	assert_true(stats_of(parser).cpu_ns > 0);
}

static int ask_as(struct sb_parser *parser, enum sb_parser_who who, const struct sb_elf *elf)
{
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;
	sb_cleanup(sb_cfi_freep) struct sb_cfi *want = NULL;

	assert_int_equal(sb_cfi_new_native(elf, NULL, &want), 0);
	assert_int_equal(sb_parser_cfi(sb_parser_seat(parser, who), elf, NULL, &cfi), 0);
	check_same(cfi, want);
	return (int)stats_of(parser).nr_answers;
}

/* What one seat was given is the answer for another one, once, while the file is the same. */
static void test_kept(void **state)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = copy_of_self(0);

	assert_int_equal(ask_as(parser, SB_PARSER_TABLES, elf), 1);
	assert_int_equal(ask_as(parser, SB_PARSER_TABLES, elf), 2);
	assert_int_equal(parser->kept.nr, 1);
	assert_int_equal(ask_as(parser, SB_PARSER_NAMES, elf), 2);
	assert_int_equal(parser->kept.nr, 0);
	assert_int_equal(parser->kept.nr_bytes, 0);
	assert_int_equal(ask_as(parser, SB_PARSER_NAMES, elf), 3);
	assert_int_equal(futimens(elf->fd, NULL), 0);
	assert_int_equal(ask_as(parser, SB_PARSER_TABLES, elf), 4);
}

/* An image in memory has no descriptor; a file without CFI is one, and not the worker's fault. */
static void test_image(void **state)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *file = self();
	sb_cleanup(sb_elf_freep) struct sb_elf *image = NULL;
	sb_cleanup(sb_elf_freep) struct sb_elf *bare = NULL;
	sb_cleanup(sb_freep) void *bytes = malloc(file->size);
	Elf64_Ehdr *ehdr = bytes;

	assert_non_null(bytes);
	assert_int_equal(sb_elf_read(file, 0, bytes, file->size), 0);
	assert_int_equal(sb_elf_new_image(bytes, file->size, &image), 0);
	assert_int_equal(ask(parser, image), 0);
	ehdr->e_phnum = ehdr->e_shnum = 0;
	ehdr->e_shoff = 0;
	assert_int_equal(sb_elf_new_image(bytes, file->size, &bare), 0);
	assert_int_equal(ask(parser, bare), -ENODATA);
	assert_int_equal(stats_of(parser).nr_crashed, 0);
	assert_int_equal(stats_of(parser).nr_forged, 0);
}

/* Memory of a big question, or a big answer, is given back. */
static void test_area(void **state)
{
	enum { KEPT = 256 << 10, MORE = 2 << 20 };
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *file = self();
	sb_cleanup(sb_elf_freep) struct sb_elf *image = NULL;
	sb_cleanup(sb_freep) void *bytes = calloc(1, file->size + MORE);
	unsigned char is_there[MORE / 4096];
	size_t who, i;

	assert_non_null(bytes);
	assert_int_equal(sb_elf_read(file, 0, bytes, file->size), 0);
	assert_int_equal(sb_elf_new_image(bytes, file->size + MORE, &image), 0);
	assert_int_equal(ask(parser, image), 0);
	for (who = 0; who < SB_PARSER_WHO_MAX; who++) {
		const struct sb_parser_area *area = &parser->seats[who].area;

		assert_true(area->len > KEPT + MORE);
		assert_int_equal(mincore((char *)area->at + KEPT, MORE, is_there), 0);
		for (i = 0; i < MORE / (size_t)sysconf(_SC_PAGESIZE); i++)
			assert_false(is_there[i] & 1);
	}
}

/* What was in one user's file does not see another's. */
static void test_domains(void **state)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *here = self();
	sb_cleanup(sb_elf_freep) struct sb_elf *there = copy_of_self(0);
	uint64_t nr;

	assert_int_equal(ask(parser, here), 0);
	nr = stats_of(parser).nr_workers;
	assert_int_equal(nr, 1);
	assert_int_equal(ask(parser, here), 0);
	assert_int_equal(stats_of(parser).nr_workers, nr);
	assert_int_equal(ask(parser, there), 0);
	assert_int_equal(stats_of(parser).nr_workers, nr + 1);
	assert_int_equal(ask(parser, there), 0);
	assert_int_equal(stats_of(parser).nr_workers, nr + 1);
	assert_int_equal(ask(parser, here), 0);
	assert_int_equal(stats_of(parser).nr_workers, nr + 2);
}

static void check_bad(enum how what, int want)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *good = copy_of_self(0);
	sb_cleanup(sb_elf_freep) struct sb_elf *bad = copy_of_self(1);
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = NULL;
	struct sb_parser_stats stats;

	how = what;
	bad_bytes = (off_t)bad->size;
	parser = start();
	how = NOTHING;
	assert_int_equal(ask(parser, good), 0);
	assert_int_equal(ask(parser, bad), want);
	assert_int_equal(ask(parser, good), 0);
	assert_int_equal(ask(parser, bad), want);
	assert_int_equal(ask(parser, good), 0);
	stats = stats_of(parser);
	assert_int_equal(stats.nr_answers, 3);
	/* One that failed is not asked again. */
	assert_int_equal(stats.nr_workers, 3);
	assert_int_equal(stats.nr_crashed, want == -ECHILD ? 2 : 0);
	assert_int_equal(stats.nr_timeouts, want == -ETIMEDOUT ? 2 : 0);
	assert_int_equal(stats.nr_forged, want == -EPROTO ? 2 : 0);
}

static void test_bad(void **state)
{
	not_under_valgrind();
	check_bad(CRASH, -ECHILD);
	check_bad(SAY_NO_MORE, -ECHILD);
	check_bad(HANG, -ETIMEDOUT);
	check_bad(LIE_RULE, -EPROTO);
	check_bad(LIE_ROWS, -EPROTO);
	check_bad(LIE_LEN, -EPROTO);
	check_bad(LIE_ERR, -EPROTO);
}

/* One that answers before it is asked, and does not look at what it is asked: nobody waits for
 * it. */
static void test_flood(void **state)
{
	enum { NR_QUESTIONS = 2000 };
	sb_cleanup(sb_elf_freep) struct sb_elf *bad = copy_of_self(1);
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = NULL;
	struct sb_cfi *cfi;
	unsigned int i;
	int err;

	how = FLOOD;
	bad_bytes = (off_t)bad->size;
	parser = start();
	how = NOTHING;
	for (i = 0; i < NR_QUESTIONS; i++) {
		cfi = NULL;
		err = sb_parser_cfi(sb_parser_seat(parser, SB_PARSER_TABLES), bad, NULL, &cfi);
		assert_int_equal(err, 0);
		sb_cfi_free(cfi);
	}
	assert_true(stats_of(parser).nr_workers > 1);
}

/* Without a supervisor there is an error for each, and no end of ours. */
static void test_killed(void **state)
{
	sb_cleanup(sb_parser_freep) struct sb_parser *parser = start();
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = self();

	assert_int_equal(kill(parser->supervisor.pid, SIGKILL), 0);
	assert_int_equal(ask(parser, elf), -ECHILD);
	assert_int_equal(ask(parser, elf), -ECHILD);
	assert_int_equal(stats_of(parser).nr_crashed, 2);
}

static int refuse(void)
{
	return -EACCES;
}

static void test_not_confined(void **state)
{
	const struct sb_parser_opts opts = { .confine_supervisor = refuse };
	const struct sb_parser_opts worker_opts = { .confine_worker = refuse };
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = NULL;
	struct sb_parser *parser = NULL;

	not_under_valgrind();
	elf = self();
	assert_int_equal(sb_parser_new(&opts, &parser), 0);
	assert_int_equal(sb_parser_settle(parser), -EACCES);
	assert_int_equal(ask(parser, elf), -ECHILD);
	sb_parser_free(parser);
	/* A worker that could not lay down what it has parses nothing. */
	assert_int_equal(sb_parser_new(&worker_opts, &parser), 0);
	assert_int_equal(sb_parser_settle(parser), 0);
	assert_int_equal(ask(parser, elf), -ECHILD);
	sb_parser_free(parser);
}

/* Bytes that are no table. */

static uint8_t *saved;
static size_t saved_len;

struct saved_head {
	uint64_t text_lo, first_lo, last_hi;
	uint32_t machine, nr_fdes, nr_rows, nr_unsup, nr_bad;
	uint32_t nr_rules, nr_granules, nr_words;
};
_Static_assert(sizeof(struct saved_head) == HEAD_BYTES, "as cfi_save.c has it");

struct forgery {
	struct saved_head *head;
	struct sb_uw_rule *rules;
	struct sb_cfi_granule *granules;
	uint32_t *rows;
	size_t len;
	uint32_t with_rows, last_with_rows; /* granules of two rows or more */
};

static void begin_forgery(struct forgery *f)
{
	uint8_t *bytes = malloc(saved_len + 64);
	uint32_t i;

	assert_non_null(bytes);
	memset(bytes, 0, saved_len + 64);
	memcpy(bytes, saved, saved_len);
	f->head = (void *)bytes;
	f->rules = (void *)(f->head + 1);
	f->granules = (void *)(f->rules + f->head->nr_rules);
	f->rows = (void *)(f->granules + f->head->nr_granules);
	f->len = saved_len;
	f->with_rows = UINT32_MAX;
	for (i = 0; i < f->head->nr_granules; i++) {
		if (f->granules[i].nr_rows >= 2) {
			f->last_with_rows = i;
			f->with_rows = f->with_rows == UINT32_MAX ? i : f->with_rows;
		}
	}
	assert_true(f->with_rows < UINT32_MAX);
}

static int restore(struct forgery *f)
{
	struct sb_cfi *cfi = NULL;
	int err = sb_cfi_restore(
		f->head, f->len,
		f->head->machine == EM_SPARC ? EM_X86_64 : (uint16_t)f->head->machine, &cfi);

	if (err)
		free(f->head);
	sb_cfi_free(cfi);
	return err;
}

static struct sb_cfi_granule *granule_of(struct forgery *f)
{
	return &f->granules[f->with_rows];
}

static uint32_t *row_of(struct forgery *f)
{
	return &f->rows[granule_of(f)->first_row];
}

/* One more, with one rule for all of it. */
static void append_granule(struct forgery *f, uint32_t rule)
{
	struct sb_cfi_granule *to = &f->granules[f->head->nr_granules++];

	memmove(to + 1, to, f->head->nr_words * sizeof(f->rows[0]));
	*to = (struct sb_cfi_granule){ rule, 0 };
	f->len += sizeof(*to);
}

#define FORGE(want, ...)                             \
	do {                                         \
		struct forgery f;                    \
		begin_forgery(&f);                   \
		__VA_ARGS__;                         \
		assert_int_equal(restore(&f), want); \
	} while (0)

static void test_forged(void **state)
{
	sb_cleanup(sb_elf_freep) struct sb_elf *elf = self();
	sb_cleanup(sb_cfi_freep) struct sb_cfi *cfi = NULL;

	assert_int_equal(sb_cfi_new_native(elf, NULL, &cfi), 0);
	saved_len = sb_cfi_saved_bytes(cfi);
	saved = malloc(saved_len);
	assert_non_null(saved);
	sb_cfi_save(cfi, saved);
	FORGE(0, (void)0);
	FORGE(-EPROTO, f.len--);
	FORGE(-EPROTO, f.len++);
	FORGE(-EPROTO, f.len = HEAD_BYTES);
	FORGE(-EPROTO, f.len = HEAD_BYTES - 1);
	FORGE(-EPROTO, f.len = 0);
	FORGE(-EPROTO, f.head->machine = EM_SPARC);
	FORGE(-EPROTO, f.head->text_lo++);
	FORGE(-EPROTO, f.head->text_lo = -(uint64_t)SB_UW_GRANULE_BYTES);
	FORGE(-EPROTO, f.head->nr_rows = UINT32_MAX);
	/* As many bytes in all, shared out otherwise. */
	FORGE(-EPROTO, f.head->nr_granules += f.head->nr_rules - 1; f.head->nr_rules = 1);
	FORGE(-EPROTO, f.head->nr_rules--; f.head->nr_words += 2);
	FORGE(-EPROTO, f.head->nr_granules--; f.head->nr_words += 2);
	FORGE(-EPROTO, f.head->nr_granules = 0x80000000; f.head->nr_words += 2);
	/* Rules. */
	FORGE(-EPROTO, f.rules[SB_UW_RULE_FP_CHAIN].cfa = SB_UW_CFA_SP);
	FORGE(-EPROTO, f.rules[SB_UW_RULE_STOP].cfa = SB_UW_CFA_SP);
	FORGE(-EPROTO, f.rules[2].cfa = SB_UW_CFA_GO_GROW + 1);
	FORGE(-EPROTO, f.rules[2].cfa = SB_UW_CFA_REG + SB_UNWIND_REGS);
	FORGE(0, f.rules[2].cfa = SB_UW_CFA_REG + SB_UNWIND_REGS - 1);
	/* Granules. */
	FORGE(-EPROTO, granule_of(&f)->first_row++);
	FORGE(-EPROTO, granule_of(&f)->nr_rows++);
	FORGE(-EPROTO, granule_of(&f)->nr_rows = UINT32_MAX);
	FORGE(-EPROTO, *granule_of(&f) = (struct sb_cfi_granule){ 0, 0 });
	FORGE(-EPROTO, append_granule(&f, f.head->nr_rules));
	FORGE(0, append_granule(&f, f.head->nr_rules - 1));
	FORGE(-EPROTO, f.granules[f.last_with_rows].nr_rows--);
	/* Rows. */
	FORGE(-EPROTO, row_of(&f)[0] |= 1);
	FORGE(-EPROTO, row_of(&f)[1] &= 0xffff0000);
	FORGE(-EPROTO, row_of(&f)[granule_of(&f)->nr_rows - 1] |= SB_UW_GRANULE_BYTES);
	FORGE(-EPROTO, row_of(&f)[1] = SB_UW_ROW(f.head->nr_rules, row_of(&f)[1] & 0xffff));
	FORGE(0, row_of(&f)[1] = SB_UW_ROW(f.head->nr_rules - 1, row_of(&f)[1] & 0xffff));
	free(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	     cmocka_unit_test(test_kept),
		cmocka_unit_test(test_image),	     cmocka_unit_test(test_area),
		cmocka_unit_test(test_domains),	     cmocka_unit_test(test_bad),
		cmocka_unit_test(test_flood),	     cmocka_unit_test(test_killed),
		cmocka_unit_test(test_not_confined), cmocka_unit_test(test_forged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
