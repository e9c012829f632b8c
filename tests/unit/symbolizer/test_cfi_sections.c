// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The CFI compiler on files assembled here: each way in which a file can hold call frame
 * information, and each thing that it can have wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "cfi_expect.h"

/* One function for each way to write an address. */
static void put_encoded(uint8_t encoding, uint64_t lo)
{
	const uint8_t data[] = { 1, encoding };
	const uint64_t len = 0x10;

	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x0c, 7, 8, 0x90, 1);
	close_entry(&eh);
	open_entry(&eh);
	put_uint(&eh, eh.len - eh.cie, 4);
	if (encoding == 0x50)
		while (eh.len % 8)
			put_uint(&eh, 0xee, 1);
	if ((encoding & 0x70) == 0x10)
		lo -= EH_ADDR + eh.len;
	switch (encoding & 0x0f) {
	case 1:
		put_uleb(&eh, lo);
		put_uleb(&eh, len);
		break;
	case 9: /* a difference, negative and of four digits */
		PUT(&eh, (uint8_t)(lo & 0x7f) | 0x80, (uint8_t)(lo >> 7 & 0x7f) | 0x80,
		    (uint8_t)(lo >> 14 & 0x7f) | 0x80, (uint8_t)(lo >> 21 & 0x7f), (uint8_t)len);
		break;
	case 3:
	case 11:
		put_uint(&eh, lo, 4);
		put_uint(&eh, len, 4);
		break;
	default:
		put_uint(&eh, lo, 8);
		put_uint(&eh, len, 8);
	}
	PUT(&eh, 0);
	PUT(&eh, 0x0e, 16);
	close_entry(&eh);
}

static void test_encodings(void **state)
{
	static const uint8_t good[] = { 0x00, 0x01, 0x03, 0x04, 0x08, 0x0b, 0x0c,
					0x10, 0x11, 0x19, 0x1b, 0x1c, 0x50 };
	/* Unknown; relative to what no linker uses; indirect; forward only. */
	static const uint8_t bad[] = { 0x13, 0x05, 0x20, 0x30, 0x40, 0x9b, 0xff };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(good); i++)
		put_encoded(good[i], AT(i * 0x10));
	for (i = 0; i < SB_ARRAY_SIZE(bad); i++)
		put_encoded(bad[i], AT(0x200 + i * 0x10));
	expect_rows("0 rsp+16 rbp=same\n"
		    "d0 frame-pointer\n");
	assert_int_equal(info.nr_fdes, SB_ARRAY_SIZE(good));
	assert_int_equal(info.nr_bad, SB_ARRAY_SIZE(bad));
}

/* An FDE of 0x10 bytes for the CIE put last, with @letters of its own data. */
static void put_augmented(const char *letters, const uint8_t *data, size_t len, uint64_t lo)
{
	open_cie(&eh, letters, data, len);
	PUT(&eh, 0x0c, 7, 8, 0x90, 1);
	close_entry(&eh);
	open_entry(&eh);
	put_uint(&eh, eh.len - eh.cie, 4);
	put_uint(&eh, lo, 8);
	put_uint(&eh, 0x10, 8);
	if (*letters == 'z')
		PUT(&eh, 3, 0x0b, 0x0b, 0x0b); /* would be instructions that fail */
	PUT(&eh, 0x0e, 16);
	close_entry(&eh);
}

static void test_augmentations(void **state)
{
	static const uint8_t plr[] = { 7, 0x9b, 1, 2, 3, 4, 0x1b, 0 };
	static const uint8_t p_none[] = { 1, 0xff };
	static const uint8_t b[] = { 3, 0, 0xaa, 0xbb }; /* more than the letters need */
	static const uint8_t too_short[] = { 1, 0x1b };
	static const uint8_t beyond[] = { 0x7f, 0 };
	static const uint8_t old[8] = { 1, 2, 3 }, none[1] = {};

	put_augmented("zPLR", plr, sizeof(plr), AT(0));
	put_augmented("zP", p_none, sizeof(p_none), AT(0x10));
	put_augmented("zRBG", b, sizeof(b), AT(0x20));
	put_augmented("z", none, 1, AT(0x30));
	put_augmented("", NULL, 0, AT(0x40));
	put_augmented("eh", old, sizeof(old), AT(0x50));
	put_augmented("zX", none, 1, AT(0x200));
	put_augmented("R", too_short + 1, 1, AT(0x210));
	put_augmented("zLR", too_short, sizeof(too_short), AT(0x220));
	put_augmented("zR", beyond, sizeof(beyond), AT(0x230));
	expect_rows("0 rsp+16 rbp=same\n"
		    "60 frame-pointer\n");
	assert_int_equal(info.nr_fdes, 6);
	assert_int_equal(info.nr_bad, 4);
}

static void test_entries(void **state)
{
	uint64_t len;

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	put_uint(&eh, 0, 4); /* a terminator of one of the linker's inputs */
	put_plain_cie(&eh);
	/* a length of 64 bits; the id remains at 32 */
	put_uint(&eh, 0xffffffff, 4);
	put_uint(&eh, 17, 8);
	put_uint(&eh, eh.len - eh.cie, 4);
	put_uint(&eh, AT(0x10) - (EH_ADDR + eh.len), 4);
	put_uint(&eh, 0x10, 4);
	PUT(&eh, 0, 0x0e, 24, 0, 0);
	/* of a CIE that is not there: in the middle of one, and before the section */
	open_fde(&eh, AT(0x20), 0x10);
	len = eh.cie + 4;
	len = eh.id - len;
	memcpy(eh.at + eh.id, &len, 4);
	close_entry(&eh);
	open_fde(&eh, AT(0x20), 0x10);
	len = eh.id + 8;
	memcpy(eh.at + eh.id, &len, 4);
	close_entry(&eh);
	FDE(&eh, AT(0x20), 0x10, 0x0e, 32);
	put_uint(&eh, 0x1000, 4); /* reaches beyond the section: the end */
	put_uint(&eh, 0, 4);
	expect_rows("0 rsp+16 rbp=same\n"
		    "10 rsp+24 rbp=same\n"
		    "20 rsp+32 rbp=same\n"
		    "30 frame-pointer\n");
	assert_int_equal(info.nr_bad, 3);
}

/* CIEs that no FDE should trust. */
static void test_broken_cies(void **state)
{
	static const uint8_t data[] = { 1, 0x1b };
	size_t i;

	for (i = 0; i < 5; i++) {
		open_cie(&eh, "zR", data, sizeof(data));
		if (i == 0)
			eh.at[eh.cie + 8] = 2; /* version */
		if (i == 1)
			eh.at[eh.len - 3] = 17; /* another column has the return address */
		if (i == 2)
			PUT(&eh, 0x41); /* moves on, before there is a place */
		if (i == 3)
			PUT(&eh, 0x3b);
		PUT(&eh, 0x0c, 7, 8, 0x90, 1);
		close_entry(&eh);
		FDE(&eh, AT(0x10 * i), 0x10, 0x0e, 16);
	}
	/* without any rule for the CFA, or for the return address */
	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x90, 1);
	close_entry(&eh);
	FDE(&eh, AT(0x50), 0x10, 0x44, 0x0c, 7, 8);
	open_cie(&eh, "zR", data, sizeof(data));
	PUT(&eh, 0x0c, 7, 8);
	close_entry(&eh);
	FDE(&eh, AT(0x60), 0x10, 0x44, 0x90, 1);
	expect_rows("40 rsp+16 rbp=same\n"
		    "50 unsupported\n"
		    "54 rsp+8 rbp=same\n"
		    "60 unsupported\n"
		    "64 rsp+8 rbp=same\n"
		    "70 frame-pointer\n");
	assert_int_equal(info.nr_bad, 4);
}

static void test_without_sections(void **state)
{
	uint8_t hdr[8] = { 1, 0x1b, 0xff, 0xff };
	struct sb_cfi *cfi = NULL;
	uint32_t delta = (uint32_t)(EH_ADDR - (EH_ADDR + 0x100000 + 4));

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	put_uint(&eh, 0, 4);
	FDE(&eh, AT(0x10), 0x10, 0x0e, 24); /* behind the end */
	memcpy(hdr + 4, &delta, sizeof(delta));
	image_init(&img);
	image_load(&img, EH_ADDR - 32, eh.len + 32, image_put(&img, eh.at, eh.len), 0);
	img.phdrs[1].p_offset -= 32; /* the section is in the middle of a segment */
	image_load(&img, EH_ADDR + 0x100000, sizeof(hdr), image_put(&img, hdr, sizeof(hdr)), 0);
	img.phdrs[2].p_type = PT_GNU_EH_FRAME;
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_string_equal(info.source, "PT_GNU_EH_FRAME");
	expect_rows_of(cfi, "0 rsp+16 rbp=same\n"
			    "10 frame-pointer\n");
	sb_cfi_free(cfi);
	img.at[img.phdrs[2].p_offset] = 2; /* version */
	cfi = NULL;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	img.at[img.phdrs[2].p_offset] = 1;
	img.at[img.phdrs[2].p_offset + 7] = 0x7f; /* leads out of all segments */
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_null(cfi);
}

/* Version 4 and 32 bits, then version 3 and 64 bits. */
static void put_debug_frame(struct bytes *b)
{
	size_t cie, len_at;

	open_entry(b);
	cie = b->entry;
	put_uint(b, UINT32_MAX, 4);
	PUT(b, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
	close_entry(b);
	open_entry(b);
	put_uint(b, cie, 4);
	put_uint(b, AT(0), 8);
	put_uint(b, 0x10, 8);
	PUT(b, 0x0e, 16);
	close_entry(b);
	cie = b->len;
	put_uint(b, UINT32_MAX, 4);
	put_uint(b, 20, 8);
	put_uint(b, UINT64_MAX, 8);
	PUT(b, 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0);
	put_uint(b, UINT32_MAX, 4);
	len_at = b->len;
	put_uint(b, 26, 8);
	put_uint(b, cie, 8);
	put_uint(b, AT(0x10), 8);
	put_uint(b, 0x10, 8);
	PUT(b, 0x0e, 24);
	assert_int_equal(b->len - len_at, 8 + 26);
}

static const char debug_frame_rows[] = "0 rsp+16 rbp=same\n"
				       "10 rsp+24 rbp=same\n"
				       "20 frame-pointer\n";

static void test_debug_frame(void **state)
{
	struct sb_cfi *cfi = NULL;

	put_debug_frame(&eh);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, "\0\0\0", 4); /* only the terminator */
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_string_equal(info.source, ".debug_frame");
	expect_rows_of(cfi, debug_frame_rows);
	sb_cfi_free(cfi);
	/* Go's frame pointers say more than its .debug_frame. */
	cfi = NULL;
	image_init(&img);
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	image_section(&img, ".gopclntab", 0, "x", 1);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
}

static size_t pack(uint32_t type, uint64_t size, uint8_t *out, size_t out_len)
{
	Elf64_Chdr chdr = { .ch_type = type, .ch_size = size, .ch_addralign = 8 };
	uLongf len = out_len - sizeof(chdr);

	memcpy(out, &chdr, sizeof(chdr));
	if (type == ELFCOMPRESS_ZLIB)
		assert_int_equal(compress(out + sizeof(chdr), &len, eh.at, eh.len), Z_OK);
	else
		len = ZSTD_compress(out + sizeof(chdr), len, eh.at, eh.len, 3);
	return sizeof(chdr) + len;
}

static void test_compressed(void **state)
{
	const struct {
		uint32_t type;
		uint64_t size;
		int err;
	} cases[] = { { 1, eh.len, 0 },		 { 2, eh.len, 0 },	    { 1, 1, -EBADMSG },
		      { 2, 1, -EBADMSG },	 { 1, 4096, -EBADMSG },	    { 2, 4096, -EBADMSG },
		      { 1, 1ull << 40, -EFBIG }, { 2, 1ull << 40, -EFBIG }, { 3, 4096, -EBADMSG } };
	uint8_t packed[4096];
	struct sb_cfi *cfi;
	size_t i, len, size;

	put_debug_frame(&eh);
	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		size = cases[i].err ? cases[i].size : eh.len;
		len = pack(cases[i].type, size, packed, sizeof(packed));
		image_init(&img);
		image_section(&img, ".debug_frame", 0, packed, len)->sh_flags = SHF_COMPRESSED;
		cfi = NULL;
		assert_int_equal(new_cfi(&cfi), cases[i].err);
		if (cfi)
			expect_rows_of(cfi, debug_frame_rows);
		sb_cfi_free(cfi);
	}
}

static void test_separate_debug_file(void **state)
{
	struct sb_elf *elf = NULL, *debug = NULL;
	struct sb_cfi *cfi = NULL;

	image_init(&img);
	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	put_debug_frame(&eh);
	memset(&img, 0, sizeof(img));
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_type = SHT_NOBITS;
	image_section(&img, ".debug_frame", 0, eh.at, eh.len);
	image_finish(&img);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &debug), 0);
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENODATA);
	assert_int_equal(sb_cfi_new(elf, debug, &cfi), 0);
	expect_rows_of(cfi, debug_frame_rows);
	sb_cfi_free(cfi);
	sb_elf_free(elf);
	sb_elf_free(debug);
}

static void test_section_types(void **state)
{
	struct sb_cfi *cfi = NULL;

	put_plain_cie(&eh);
	FDE(&eh, AT(0), 0x10, 0x0e, 16);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_type = SHT_X86_64_UNWIND;
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_free(cfi);
	cfi = NULL;
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_flags = 0;
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_offset = IMAGE_BYTES;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len)->sh_offset = UINT64_MAX - 8;
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_null(cfi);
}

static void test_errors(void **state)
{
	struct sb_cfi *cfi = NULL;
	struct sb_elf *elf = NULL;

	image_init(&img);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	put_uint(&eh, 0, 4);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -ENODATA);
	PUT(&eh, 1, 2, 3);
	image_init(&img);
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -EBADMSG);
	assert_int_equal(sb_elf_new_image(img.at, img.len, &elf), 0);
	elf->machine = EM_RISCV;
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENOTSUP);
	elf->machine = EM_X86_64;
	elf->is_64 = false; /* x32 */
	assert_int_equal(sb_cfi_new(elf, NULL, &cfi), -ENOTSUP);
	sb_elf_free(elf);
	assert_null(cfi);
}

/* Text with a hole of 4 GiB in it. */
static void test_huge_span(void **state)
{
	struct sb_cfi *cfi = NULL;
	uint64_t far = 1ull << 32;

	image_init(&img);
	img.phdrs[0].p_memsz = far + 0x1000;
	put_encoded(0, AT(0));
	put_encoded(0, AT(far - 0x1000));
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), -EFBIG);
	setup(NULL);
	image_init(&img);
	img.phdrs[0].p_memsz = far + 0x1000;
	put_encoded(0, AT(0));
	put_encoded(0, AT(far - 0x3000));
	image_section(&img, ".eh_frame", EH_ADDR, eh.at, eh.len);
	assert_int_equal(new_cfi(&cfi), 0);
	sb_cfi_info(cfi, &info);
	assert_int_equal(info.nr_granules, (1u << 20) - 1);
	expect_rows_of(cfi, "0 rsp+16 rbp=same\n"
			    "10 frame-pointer\n"
			    "ffffd000 rsp+16 rbp=same\n"
			    "ffffd010 frame-pointer\n");
	sb_cfi_free(cfi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(encodings),   TEST(augmentations),	      TEST(entries),
		TEST(broken_cies), TEST(without_sections),    TEST(debug_frame),
		TEST(compressed),  TEST(separate_debug_file), TEST(section_types),
		TEST(errors),	   TEST(huge_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
