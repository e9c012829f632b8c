// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/preset.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define SB_PRESET(text, ...) { .name = (text), __VA_ARGS__ },
static const struct sb_preset presets[] = {
#include "events/presets.def"
};
#undef SB_PRESET

const struct sb_preset *sb_preset_at(unsigned int i)
{
	return i < SB_ARRAY_SIZE(presets) ? &presets[i] : NULL;
}

const struct sb_preset *sb_preset_find(const char *name)
{
	const struct sb_preset *preset;
	unsigned int i;

	for (i = 0; (preset = sb_preset_at(i)); i++)
		if (sb_streq(preset->name, name))
			break;
	return preset;
}
