// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The place of an export, texts of HTTP, and a profile taken apart into series. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/version.h"
#include "export/otlp.h"
#include "export/run.h"
#include "model/fold.h"
#include "read_meta.h"

static const struct sb_export_state full = {
	.to = "otlp:http://host:4318",
	.what = "kind=oncpu",
	.seen = "1763683200:4096 1763769600:77",
	.error = "cannot send to 'x': Connection refused",
	.next_s = 1763762400,
	.part_end_s = 1763762460,
	.nr_part_pieces = 3,
	.nr_periods = 4,
	.nr_pieces = 5,
	.nr_bytes = UINT64_MAX,
	.nr_failed = 7,
	.nr_refused = 8,
	.nr_unsure = 9,
	.expired_s = 10,
	.nr_late = 15,
	.coarse_s = 11,
	.behind_s = 12,
	.sent_s = 13,
	.updated_s = 14,
};

static int open_dir(char dir[64])
{
	snprintf(dir, 64, "/tmp/sb-export-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void test_state(void **state)
{
	struct sb_export_state have;
	char dir[64];
	int fd = open_dir(dir);

	assert_int_equal(sb_export_state_read(fd, "a.state", &have), -ENOENT);
	assert_int_equal(sb_export_state_write(fd, "a.state", &full), 0);
	memset(&have, 0xff, sizeof(have));
	assert_int_equal(sb_export_state_read(fd, "a.state", &have), 0);
	assert_string_equal(have.to, full.to);
	assert_string_equal(have.what, full.what);
	assert_string_equal(have.error, full.error);
	assert_string_equal(have.seen, full.seen);
	assert_memory_equal(&have.next_s, &full.next_s,
			    sizeof(full) - offsetof(struct sb_export_state, next_s));
	/* Nothing else is left. */
	assert_int_equal(unlinkat(fd, "a.state", 0), 0);
	assert_int_equal(rmdir(dir), 0);
	close(fd);
}

static int parse(const char *text, struct sb_export_state *have)
{
	return sb_export_state_parse(text, strlen(text), have);
}

static void test_hostile_state(void **state)
{
	struct sb_export_state have = { .next_s = 77 };

	assert_int_equal(parse("", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 1", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 2\nnext 1\n", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 1\nnext 1", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 1\nnext -1\n", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 1\nnext 9223372036854775808\n", &have), -EBADMSG);
	assert_int_equal(sb_export_state_parse("stackbpf-export 1\n\0\n", 20, &have), -EBADMSG);
	assert_int_equal(have.next_s, 77);
	assert_int_equal(parse("stackbpf-export 1\nnext 5\nof_the_future 1 2 3\n", &have), 0);
	assert_int_equal(have.next_s, 5);
	/* No later time than that of a store's last file: sums of it must not overflow. */
	assert_int_equal(parse("stackbpf-export 1\nnext 253402300799\n", &have), 0);
	assert_int_equal(parse("stackbpf-export 1\nnext 253402300800\n", &have), -EBADMSG);
	assert_int_equal(parse("stackbpf-export 1\nsent_at 9223372036854775807\n", &have),
			 -EBADMSG);
}

static int count_one(void *arg, const struct sb_export_state *state)
{
	(*(int *)arg)++;
	assert_string_equal(state->to, full.to);
	return 0;
}

static void test_all_states(void **state)
{
	char dir[64], path[128], name[16];
	int fd = open_dir(dir), to_fd, nr = 0, i;

	assert_int_equal(sb_export_state_each(dir, count_one, &nr), 0);
	snprintf(path, sizeof(path), "%s/" SB_EXPORT_DIR, dir);
	assert_int_equal(mkdir(path, 0700), 0);
	to_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < SB_EXPORT_STATE_MAX + 3; i++) {
		snprintf(name, sizeof(name), "%03d.state", i);
		assert_int_equal(sb_export_state_write(to_fd, name, &full), 0);
	}
	assert_int_equal(symlinkat("/dev/zero", to_fd, "000a.state"), 0);
	assert_int_equal(sb_export_state_each(dir, count_one, &nr), 4);
	assert_int_equal(nr, SB_EXPORT_STATE_MAX);
	unlinkat(to_fd, "000a.state", 0);
	for (i = 0; i < SB_EXPORT_STATE_MAX + 3; i++) {
		snprintf(name, sizeof(name), "%03d.state", i);
		assert_int_equal(unlinkat(to_fd, name, 0), 0);
	}
	close(to_fd);
	close(fd);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_long_text(void **state)
{
	char text[SB_EXPORT_TEXT_MAX + 64], to[SB_EXPORT_TEXT_MAX];

	/* The last one that would be cut is of three bytes. */
	memset(text, 'a', sizeof(text));
	memcpy(text + SB_EXPORT_TEXT_MAX - 3, "\xe2\x82\xac\n", 5);
	sb_export_text(to, text);
	assert_int_equal(strlen(to), SB_EXPORT_TEXT_MAX - 3);
	sb_export_text(to, "a\nb\tc");
	assert_string_equal(to, "a?b?c");
}

static void test_retry_after(void **state)
{
	uint32_t s = 7;

	assert_true(sb_http_retry_after(" 12 ", 0, &s));
	assert_int_equal(s, 12);
	assert_true(sb_http_retry_after("99999999999999999999", 0, &s) == false);
	assert_true(sb_http_retry_after("1000000", 0, &s));
	assert_int_equal(s, SB_HTTP_RETRY_MAX_S);
	/* RFC 9110's own. */
	assert_true(sb_http_retry_after("Fri, 31 Dec 1999 23:59:59 GMT", 946684799 - 30, &s));
	assert_int_equal(s, 30);
	assert_true(sb_http_retry_after("Fri, 31 Dec 1999 23:59:59 GMT", 946684799 + 30, &s));
	assert_int_equal(s, 0);
	assert_false(sb_http_retry_after("", 0, &s));
	assert_false(sb_http_retry_after("soon", 0, &s));
	assert_false(sb_http_retry_after("-1", 0, &s));
}

static void check_shown(const char *url, const char *want)
{
	struct sb_str out = {};

	assert_int_equal(sb_http_add_shown(&out, url), 0);
	assert_string_equal(out.s, want);
	sb_str_release(&out);
}

static void test_urls(void **state)
{
	struct sb_str url = {};

	assert_int_equal(sb_http_escape(&url, "a{b=c d}\xff~"), 0);
	assert_string_equal(url.s, "a%7Bb%3Dc%20d%7D%FF~");
	sb_str_release(&url);
	check_shown("http://host:1/db?cluster=x", "http://host:1/db");
	check_shown("http://me:pa@ss@host/db", "http://host/db");
	check_shown("http://host/a@b", "http://host/a@b");
	assert_true(sb_export_is_url("http://h"));
	assert_true(sb_export_is_url("https://h/x"));
	assert_false(sb_export_is_url("http://"));
	assert_false(sb_export_is_url("http:///x"));
	assert_false(sb_export_is_url("file:///etc/passwd"));
	assert_false(sb_export_is_url("http://h/\r\nX: y"));
	assert_true(sb_http_header_is_good("X-Scope-OrgID: 1"));
	assert_false(sb_http_header_is_good("X-Scope-OrgID"));
	assert_false(sb_http_header_is_good("X Y: 1"));
	assert_false(sb_http_header_is_good("X: 1\r\nY: 2"));
	assert_false(sb_http_header_is_good(": 1"));
}

/* ---- series ---- */

static uint32_t frame(struct sb_profile *profile, const char *name, enum sb_frame_kind kind)
{
	struct sb_frame of = { .name = name, .kind = kind };
	uint32_t id;

	assert_int_equal(sb_profile_frame(profile, &of, &id), 0);
	return id;
}

static void add(struct sb_profile *profile, const char *host, const char *service, const char *leaf,
		uint64_t weight)
{
	uint32_t ids[] = { frame(profile, host, SB_FRAME_ROOT),
			   frame(profile, service, SB_FRAME_ROOT),
			   frame(profile, "main", SB_FRAME_USER),
			   frame(profile, leaf, SB_FRAME_USER) };

	assert_int_equal(sb_profile_add(profile, ids, 4, weight), 0);
}

static const char *const keys[] = { "host", "service" };

static uint64_t weight_of(const struct sb_export_period *period,
			  const struct sb_export_series *series)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < series->nr_stacks; i++) {
		const struct sb_row row = sb_export_row(period, series->stacks[i]);

		assert_int_equal(row.nr, 2);
		assert_string_equal(sb_profile_frame_at(period->profile, row.frames[0])->name,
				    "main");
		sum += row.weight;
	}
	return sum;
}

static void test_series(void **state)
{
	struct sb_export_period *period;
	struct sb_profile *profile, *one;
	const char *value;

	assert_int_equal(sb_profile_new(&profile), 0);
	add(profile, "b", "web", "f", 1);
	add(profile, "a", "web", "f", 10);
	add(profile, "a", "(none)", "f", 100);
	add(profile, "a", "web", "g", 1000);
	read_meta(profile, "kind", "oncpu");
	read_meta(profile, "by", "host,service");
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_export_period_new(profile, keys, 2, 60, 120, &period), 0);
	assert_int_equal(period->nr_series, 3);
	assert_int_equal(period->series[0].nr_tags, 1);
	assert_string_equal(period->series[0].tags[0].value, "a");
	assert_int_equal(weight_of(period, &period->series[0]), 100);
	assert_int_equal(period->series[1].nr_tags, 2);
	assert_string_equal(period->series[1].tags[1].key, "service");
	assert_string_equal(period->series[1].tags[1].value, "web");
	assert_int_equal(weight_of(period, &period->series[1]), 1010);
	assert_int_equal(weight_of(period, &period->series[2]), 1);

	assert_int_equal(sb_export_series_profile(period, &period->series[1], &one), 0);
	assert_int_equal(sb_profile_nr_stacks(one), 2);
	assert_int_equal(sb_profile_weight(one), 1010);
	assert_string_equal(sb_profile_meta_at(one, 1, &value), "tag:service");
	assert_string_equal(value, "web");
	assert_null(sb_profile_metadata(one)->by);
	assert_string_equal(sb_profile_metadata(one)->kind, "oncpu");
	sb_profile_free(one);
	sb_export_period_free(period);
	sb_profile_free(profile);
}

/* Beyond the bound nothing is lost, it is one series. */
static void test_many_series(void **state)
{
	struct sb_export_period *period;
	struct sb_profile *profile;
	char host[16];
	uint64_t sum = 0;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < SB_EXPORT_SERIES_MAX + 50; i++) {
		snprintf(host, sizeof(host), "h%zu", i);
		add(profile, host, "web", "f", 1);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_export_period_new(profile, keys, 2, 60, 120, &period), 0);
	assert_int_equal(period->nr_series, SB_EXPORT_SERIES_MAX + 1);
	assert_string_equal(period->series[0].tags[0].value, "(other)");
	assert_int_equal(weight_of(period, &period->series[0]), 50);
	for (i = 0; i < period->nr_series; i++)
		sum += weight_of(period, &period->series[i]);
	assert_int_equal(sum, SB_EXPORT_SERIES_MAX + 50);
	sb_export_period_free(period);
	sb_profile_free(profile);
}

/* ---- OTLP ---- */

/*
 * One sample of two frames, by the numbers of opentelemetry-proto 1.10, as `protoc --decode` shows
 * them; around the version, which is of five bytes.
 */
static const char golden_head[] =
	"0a80010a2d0a120a09686f73742e6e616d6512030a016118080a170a0c736572766963652e6e616d"
	"6512050a037765621809124f0a110a08737461636b6270661205";
static const char golden_tail[] =
	"123a0a04080110022a04080310043080ade20419005847f80d0000002080b09dc2df013a10512601"
	"e032eea7a9c429628e4ce5f2ef120508012201071294010a00120012071a02080122010112071a02"
	"08022201011a001a0208051a02080722002a002a0773616d706c65732a05636f756e742a03637075"
	"2a0b6e616e6f7365636f6e64732a01662a1270726f66696c652e6672616d652e747970652a046d61"
	"696e2a09686f73742e6e616d652a0c736572766963652e6e616d653200320c080612080a066e6174"
	"6976653a003a040a020102";

static void test_otlp_bytes(void **state)
{
	struct sb_row row;
	struct sb_export_period *period;
	struct sb_profile *profile;
	static const uint8_t id[SB_OTLP_ID_BYTES] = { 0x51, 0x26, 0x01, 0xe0, 0x32, 0xee,
						      0xa7, 0xa9, 0xc4, 0x29, 0x62, 0x8e,
						      0x4c, 0xe5, 0xf2, 0xef };
	struct sb_otlp *otlp;
	struct sb_str body = {}, hex = {}, want = {};
	size_t i;

	if (strlen(sb_version) != 5)
		skip();
	assert_int_equal(sb_profile_new(&profile), 0);
	add(profile, "a", "web", "f", 7);
	read_meta(profile, "kind", "oncpu");
	read_meta(profile, "unit", "samples");
	read_meta(profile, "hz", "100");
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_export_period_new(profile, keys, 2, 60, 120, &period), 0);
	row = sb_export_row(period, period->series[0].stacks[0]);
	assert_int_equal(sb_otlp_new(SB_OTLP_BOTH, &otlp), 0);
	assert_int_equal(sb_otlp_begin(otlp, profile, 60000000000, 60000000000, id), 0);
	assert_int_equal(sb_otlp_add_stack(otlp, row.frames, row.nr, row.weight), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(sb_otlp_tag(otlp, period->series[0].tags[i].key,
					     period->series[0].tags[i].value),
				 0);
	assert_int_equal(sb_otlp_end(otlp), 0);
	assert_int_equal(sb_otlp_take(otlp, &body), 0);
	for (i = 0; i < body.len; i++)
		assert_int_equal(sb_str_addf(&hex, "%02x", (unsigned char)body.s[i]), 0);
	assert_int_equal(sb_str_add(&want, golden_head), 0);
	for (i = 0; i < strlen(sb_version); i++)
		assert_int_equal(sb_str_addf(&want, "%02x", (unsigned char)sb_version[i]), 0);
	assert_int_equal(sb_str_add(&want, golden_tail), 0);
	assert_string_equal(hex.s, want.s);
	sb_str_release(&want);
	sb_str_release(&hex);
	sb_str_release(&body);
	sb_otlp_free(otlp);
	sb_export_period_free(period);
	sb_profile_free(profile);
}

/* ExportProfilesServiceResponse: 3 are left out, "no". */
static void test_otlp_reply(void **state)
{
	static const char reply[] = "\x0a\x06\x08\x03\x12\x02no";
	struct sb_str body = {}, message = {};
	uint64_t nr;
	size_t len;

	for (len = 0; len < sizeof(reply); len++) {
		sb_str_clear(&body);
		sb_str_clear(&message);
		assert_int_equal(sb_str_addn(&body, reply, len), 0);
		assert_int_equal(sb_otlp_rejected(&body, &nr, &message), 0);
		assert_int_equal(nr, len == sizeof(reply) - 1 ? 3 : 0);
	}
	assert_string_equal(message.s, "no");
	sb_str_release(&body);
	sb_str_release(&message);
}

/* Doubled, up to a minute, and what was asked for. */
static void test_waits(void **state)
{
	assert_int_equal(sb_export_wait_ms(0, 0), SB_EXPORT_WAIT_MIN_MS);
	assert_int_equal(sb_export_wait_ms(1, 0), SB_EXPORT_WAIT_MIN_MS);
	assert_int_equal(sb_export_wait_ms(2, 0), 2 * SB_EXPORT_WAIT_MIN_MS);
	assert_int_equal(sb_export_wait_ms(5, 0), 16 * SB_EXPORT_WAIT_MIN_MS);
	assert_int_equal(sb_export_wait_ms(UINT32_MAX, 0), 60000);
	assert_int_equal(sb_export_wait_ms(1, 120), 120000);
	assert_int_equal(sb_export_wait_ms(30, 1), 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),	    cmocka_unit_test(test_hostile_state),
		cmocka_unit_test(test_all_states),  cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_retry_after), cmocka_unit_test(test_urls),
		cmocka_unit_test(test_series),	    cmocka_unit_test(test_many_series),
		cmocka_unit_test(test_otlp_bytes),  cmocka_unit_test(test_otlp_reply),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
