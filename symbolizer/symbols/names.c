// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CHUNK_BYTES 256u /* nearly all names are shorter */

int sb_names_init(struct sb_names *names, const struct sb_elf *elf, uint64_t offset, uint64_t len)
{
	Elf64_Shdr shdr = { .sh_type = SHT_STRTAB, .sh_offset = offset, .sh_size = len };

	return sb_names_init_section(names, elf, &shdr);
}

int sb_names_init_section(struct sb_names *names, const struct sb_elf *elf, const Elf64_Shdr *shdr)
{
	int err;

	*names = (struct sb_names){ .offset = shdr->sh_offset };
	if (shdr->sh_type != SHT_STRTAB)
		return -EBADMSG;
	err = sb_elf_load(elf, shdr, SB_NAMES_BYTES_MAX, &names->mem, &names->len);
	if (!err && elf->fd >= 0)
		names->elf = elf;
	return err;
}

void sb_names_release(struct sb_names *names)
{
	free(names->mem);
	*names = (struct sb_names){};
}

void sb_names_unload(struct sb_names *names)
{
	if (names->elf)
		free(sb_take(names->mem));
}

int sb_names_get(const struct sb_names *names, uint32_t offset, struct sb_str *name)
{
	char buf[CHUNK_BYTES];
	size_t start = name->len, want, got;
	int err;

	if (offset >= names->len)
		return -EBADMSG;
	if (names->mem) {
		got = strlen(names->mem + offset);
		return got > SB_NAME_BYTES_MAX ? -EFBIG
					       : sb_str_addn(name, names->mem + offset, got);
	}
	for (; offset < names->len; offset += want) {
		want = names->len - offset < sizeof(buf) ? names->len - offset : sizeof(buf);
		err = sb_elf_read(names->elf, names->offset + offset, buf, want);
		if (err)
			return err;
		got = strnlen(buf, want);
		if (name->len - start + got > SB_NAME_BYTES_MAX)
			return -EFBIG;
		err = sb_str_addn(name, buf, got);
		if (err || got < want)
			return err;
	}
	return 0; /* as in memory: the table's end ends the name, too */
}
