// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The layouts of the versions of Ruby. */
#include "base/cleanup.h"
#include "interp/ruby/ruby_priv.h"

/* As the packages of Debian and Ubuntu have them; of 2.6 as its sources say. */
static const struct sb_ruby_layout layouts[] = {
	{ 2, 5, 48, 24, 32, 0, 112, 200, 0, 136, 12, 4, 16, 12, SB_RUBY_CLASS_IVARS },
	{ 2, 6, 56, 24, 32, 0, 120, 136, 144, 168, 8, 0, 16, 12, SB_RUBY_CLASS_IVARS },
	{ 2, 7, 56, 24, 32, 0, 120, 136, 144, 168, 8, 0, 16, 12, SB_RUBY_CLASS_IVARS },
	{ 3, 0, 56, 32, 40, 0, 120, 136, 144, 168, 8, 0, 16, 12, SB_RUBY_CLASS_IVARS },
	{ 3, 1, 64, 32, 40, 0, 120, 136, 144, 168, 12, 0, 16, 12, SB_RUBY_CLASS_IVARS },
	{ 3, 2, 64, 32, 48, 40, 112, 128, 136, 160, 12, 0, 24, 12, SB_RUBY_CLASS_SHAPES },
	{ 3, 3, 56, 32, 48, 40, 112, 128, 136, 160, 12, 0, 24, 12, SB_RUBY_CLASS_FIELDS },
	{ 3, 4, 56, 32, 48, 40, 112, 128, 136, 160, 12, 0, 24, 13, SB_RUBY_CLASS_FIELDS },
};

const struct sb_ruby_layout *sb_ruby_layout(unsigned int major, unsigned int minor)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(layouts); i++)
		if (layouts[i].major == major && layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}
