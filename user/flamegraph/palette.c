// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/palette.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/opts.h"
#include "kinds/view_kind.h"

#define KIND(k)		  (1u << SB_FG_##k)
#define ALL_KINDS	  ((1u << SB_FG_KIND_MAX) - 1)

/* Match only the beginning of a name: regexec() needs stack and time in proportion to the text. */
#define MATCHED_LEN_MAX	  512
/* WCAG 2.1, level AA */
#define TEXT_CONTRAST_MIN 4.5

/* Both ends of a range of fills, or all hues at one lightness. */
struct sb_fg_family {
	struct sb_fg_rgb from, to;
	bool is_spread;
	/*
	 * For light fills that would be bright on a dark background: eighths that are kept; 0: as
	 * others.
	 */
	unsigned int dark_eighths;
	bool is_faint;		/* near to the background, also to a dark one */
	unsigned int nr_shades; /* a multiple of SB_FG_NR_SHADES */
};

#define FAMILY(r0, g0, b0, r1, g1, b1)                                                     \
	{                                                                                  \
		.from = { r0, g0, b0 }, .to = { r1, g1, b1 }, .nr_shades = SB_FG_NR_SHADES \
	}

/* Names and ranges that are known from flamegraph.pl. */
static const struct sb_fg_family hot = FAMILY(205, 0, 0, 255, 230, 55);
static const struct sb_fg_family mem = FAMILY(0, 190, 0, 0, 240, 210);
static const struct sb_fg_family io = FAMILY(80, 80, 190, 140, 140, 245);
static const struct sb_fg_family red = FAMILY(200, 50, 50, 255, 130, 130);
static const struct sb_fg_family green = FAMILY(50, 200, 50, 110, 255, 110);
static const struct sb_fg_family blue = FAMILY(80, 80, 205, 140, 140, 255);
static const struct sb_fg_family yellow = FAMILY(175, 175, 50, 230, 230, 70);
static const struct sb_fg_family purple = FAMILY(190, 80, 190, 255, 140, 255);
static const struct sb_fg_family aqua = FAMILY(50, 165, 165, 110, 220, 220);
static const struct sb_fg_family orange = FAMILY(190, 90, 0, 255, 155, 0);

/*
 * Colours by kind. Each kind of profile has its hue. Kernel frames are darker than user frames and
 * inlined ones paler: differences in lightness, which colour-blind people see, too. Frames of
 * interpreters are green, as Java's have been since flamegraph.pl.
 */
static const struct sb_fg_family flame = FAMILY(255, 216, 118, 252, 176, 94);
static const struct sb_fg_family flame_kernel = FAMILY(240, 126, 84, 226, 102, 72);
static const struct sb_fg_family flame_inlined = FAMILY(255, 241, 203, 253, 230, 180);
static const struct sb_fg_family ice = FAMILY(172, 209, 242, 141, 187, 231);
static const struct sb_fg_family ice_kernel = FAMILY(88, 138, 204, 112, 157, 215);
static const struct sb_fg_family ice_inlined = FAMILY(230, 240, 251, 212, 228, 246);
static const struct sb_fg_family wake = FAMILY(140, 210, 204, 108, 192, 188);
static const struct sb_fg_family wake_kernel = FAMILY(48, 138, 146, 62, 154, 160);
static const struct sb_fg_family disk = FAMILY(220, 220, 250, 204, 204, 244);
static const struct sb_fg_family disk_kernel = FAMILY(118, 122, 214, 140, 144, 224);
static const struct sb_fg_family slate = FAMILY(204, 209, 218, 187, 194, 206);
static const struct sb_fg_family slate_kernel = FAMILY(132, 140, 158, 146, 153, 170);
static const struct sb_fg_family slate_inlined = FAMILY(214, 236, 246, 202, 228, 242);
static const struct sb_fg_family file = FAMILY(252, 211, 130, 243, 190, 104);
static const struct sb_fg_family running = FAMILY(250, 158, 98, 243, 138, 82);
static const struct sb_fg_family waiting = FAMILY(246, 214, 70, 251, 228, 116);
static const struct sb_fg_family blocked = FAMILY(128, 174, 226, 146, 188, 233);
static const struct sb_fg_family lock = FAMILY(226, 104, 132, 236, 126, 150);
static const struct sb_fg_family residual = FAMILY(104, 104, 104, 116, 116, 116);
static const struct sb_fg_family idle = { .from = { 229, 231, 235 },
					  .to = { 238, 240, 243 },
					  .is_faint = true,
					  .nr_shades = SB_FG_NR_SHADES };
static const struct sb_fg_family jit = FAMILY(112, 200, 160, 146, 217, 182);
static const struct sb_fg_family script = FAMILY(120, 190, 88, 156, 214, 118);
static const struct sb_fg_family waker = FAMILY(86, 184, 184, 122, 204, 200);
static const struct sb_fg_family unknown = { .from = { 204, 204, 204 },
					     .to = { 220, 220, 220 },
					     .dark_eighths = 3,
					     .nr_shades = SB_FG_NR_SHADES };
static const struct sb_fg_family mark = FAMILY(238, 232, 222, 244, 238, 230);
static const struct sb_fg_family delimiter = FAMILY(92, 92, 92, 92, 92, 92);
static const struct sb_fg_family spread = { .is_spread = true, .nr_shades = 24 };

struct rule {
	uint32_t kinds;
	const char *regex;
	const struct sb_fg_family *family;
};

#define BY_KIND(plain, kernel, inlined, interp)                                               \
	{                                                                                     \
		{ KIND(KERNEL), NULL, kernel }, { KIND(INLINED), NULL, inlined },             \
			{ KIND(INTERP), NULL, interp }, { KIND(JIT), NULL, &jit },            \
			{ KIND(WAKER), NULL, &waker }, { KIND(UNKNOWN), NULL, &unknown },     \
			{ KIND(FILE), NULL, &file }, { KIND(RUNNING), NULL, &running },       \
			{ KIND(WAITING), NULL, &waiting }, { KIND(BLOCKED), NULL, &blocked }, \
			{ KIND(RESIDUAL), NULL, &residual }, { KIND(LOCK), NULL, &lock },     \
		{                                                                             \
			ALL_KINDS, NULL, plain                                                \
		}                                                                             \
	}

static const struct theme {
	const char *name; /* of a palette for --colors; NULL: chosen by the view */
	bool is_by_kind;
	struct rule rules[13];
} themes[SB_COLORS_MAX] = {
	[SB_COLORS_FLAME] = { NULL, true, BY_KIND(&flame, &flame_kernel, &flame_inlined, &script) },
	[SB_COLORS_ICE] = { NULL, true, BY_KIND(&ice, &ice_kernel, &ice_inlined, &script) },
	[SB_COLORS_WAKE] = { NULL, true, BY_KIND(&wake, &wake_kernel, &ice_inlined, &script) },
	[SB_COLORS_SLATE] = { NULL, true, BY_KIND(&slate, &slate_kernel, &slate_inlined, &script) },
	[SB_COLORS_DISK] = { NULL, true, BY_KIND(&disk, &disk_kernel, &ice_inlined, &script) },
}, palettes[] = {
	{ "hot", false, { { ALL_KINDS, NULL, &hot } } },
	{ "mem", false, { { ALL_KINDS, NULL, &mem } } },
	{ "io", false, { { ALL_KINDS, NULL, &io } } },
	{ "wakeup", false, { { ALL_KINDS, NULL, &aqua } } },
	{ "chain", false, { { KIND(WAKER), NULL, &aqua }, { ALL_KINDS, NULL, &blue } } },
	{ "java", false,
	  { { KIND(JIT) | KIND(INTERP), NULL, &green },
	    { KIND(INLINED), NULL, &aqua },
	    { ALL_KINDS, "^L?(java|javax|jdk|net|org|com|io|sun)/|:::", &green },
	    { ALL_KINDS, "::", &yellow },
	    { KIND(KERNEL), NULL, &orange },
	    { ALL_KINDS, NULL, &red } } },
	{ "perl", false,
	  { { KIND(INTERP), NULL, &green },
	    { ALL_KINDS, "::", &yellow },
	    { ALL_KINDS, "Perl|\\.pl", &green },
	    { KIND(KERNEL), NULL, &orange },
	    { ALL_KINDS, NULL, &red } } },
	{ "js", false,
	  { { KIND(JIT) | KIND(INTERP), "/", &green },
	    { KIND(JIT) | KIND(INTERP), NULL, &aqua },
	    { ALL_KINDS, "::", &yellow },
	    { ALL_KINDS, "/.*\\.js|^ $", &green },
	    { ALL_KINDS, ":", &aqua },
	    { KIND(KERNEL), NULL, &orange },
	    { ALL_KINDS, NULL, &red } } },
	{ "rust", false,
	  { { KIND(KERNEL), NULL, &orange },
	    { ALL_KINDS, "^<?(core|alloc|std|proc_macro|test)::", &yellow },
	    { ALL_KINDS, "::", &aqua },
	    { ALL_KINDS, NULL, &red } } },
	{ "python", false,
	  { { KIND(KERNEL), NULL, &orange },
	    { ALL_KINDS, "(site|dist)-packages/", &aqua },
	    { ALL_KINDS, "(^|/)lib(64)?/python[0-9.]+/|<frozen ", &yellow },
	    { ALL_KINDS, "\\.py|<module>", &green },
	    { KIND(INTERP), NULL, &green },
	    { ALL_KINDS, NULL, &red } } },
	{ "red", false, { { ALL_KINDS, NULL, &red } } },
	{ "green", false, { { ALL_KINDS, NULL, &green } } },
	{ "blue", false, { { ALL_KINDS, NULL, &blue } } },
	{ "aqua", false, { { ALL_KINDS, NULL, &aqua } } },
	{ "yellow", false, { { ALL_KINDS, NULL, &yellow } } },
	{ "purple", false, { { ALL_KINDS, NULL, &purple } } },
	{ "orange", false, { { ALL_KINDS, NULL, &orange } } },
}, by_hue = { "hue", false, { { ALL_KINDS, NULL, &spread } } };

static const struct theme *find_palette(const char *name)
{
	for (size_t i = 0; i < SB_ARRAY_SIZE(palettes); i++) {
		if (sb_streq(palettes[i].name, name))
			return &palettes[i];
	}
	return NULL;
}

static const struct theme *choose_theme(const struct sb_fg_opts *opts, const char *kind_of_run)
{
	const struct sb_view_kind *view = sb_view_kind_find(kind_of_run);

	if (opts->color_by != SB_FG_BY_KIND)
		return &by_hue;
	if (opts->colors)
		return find_palette(opts->colors);
	return &themes[view ? view->colors : SB_COLORS_FLAME];
}

static int add_rule(struct sb_fg_palette *palette, const struct rule *rule)
{
	struct sb_fg_palette_rule *to = &palette->rules[palette->nr_rules];

	to->kinds = rule->kinds;
	to->regex = rule->regex;
	to->family = rule->family;
	/* The patterns are our own, so the only possible error is missing memory. */
	if (rule->regex && regcomp(&to->compiled, rule->regex, REG_EXTENDED | REG_NOSUB))
		return -ENOMEM;
	palette->nr_rules++;
	return 0;
}

int sb_fg_palette_init(struct sb_fg_palette *palette, const struct sb_fg_opts *opts,
		       const char *kind_of_run)
{
	static const struct rule common[] = {
		{ KIND(DELIMITER), NULL, &delimiter },
		{ KIND(MARK), NULL, &mark },
		{ KIND(IDLE), NULL, &idle },
	};
	const struct theme *theme = choose_theme(opts, kind_of_run);
	int err = 0;

	*palette = (struct sb_fg_palette){};
	if (!theme)
		return -EINVAL;
	palette->shade_by = opts->color_by == SB_FG_BY_MODULE ? SB_FG_SHADE_BY_MODULE
			    : opts->random		      ? SB_FG_SHADE_BY_PLACE
			    : opts->hash		      ? SB_FG_SHADE_BY_PREFIX
							      : SB_FG_SHADE_BY_NAME;
	for (size_t i = 0; !err && i < SB_ARRAY_SIZE(common); i++)
		err = add_rule(palette, &common[i]);
	for (const struct rule *rule = theme->rules; !err && rule->family; rule++) {
		err = add_rule(palette, rule);
		if (rule->kinds == ALL_KINDS && !rule->regex)
			break;
	}
	palette->is_by_kind = theme->is_by_kind;
	if (err)
		sb_fg_palette_release(palette);
	return err;
}

void sb_fg_palette_release(struct sb_fg_palette *palette)
{
	for (size_t i = 0; i < palette->nr_rules; i++) {
		if (palette->rules[i].regex)
			regfree(&palette->rules[i].compiled);
	}
	palette->nr_rules = 0;
}

static uint32_t hash_bytes(const char *s, size_t len)
{
	uint32_t hash = 2166136261u; /* FNV-1a with a final mix: the high bits choose the shade */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)s[i]) * 16777619u;
	hash ^= hash >> 15;
	hash *= 0x2c1b3c6du;
	return hash ^ hash >> 12;
}

/* Names with the same beginning, ext4_read and ext4_write, get neighbouring shades. */
static uint32_t hash_prefix(const char *s)
{
	uint32_t hash = 0;

	s += strspn(s, "_");
	for (int shift = 27; shift >= 17 && *s; shift -= 5)
		hash |= ((uint8_t)*s++ & 31u) << shift;
	return hash;
}

/*
 * Find the part of a name that tells where it comes from: "[libc.so.6+0x1]", "libc.so.6`read",
 * "read [libc]", "std::vec", "java/util/Map". The viewer has the same rules. Return: its length.
 */
static size_t module_of(const char *s, const char **ret_module)
{
	size_t len = strlen(s), at;

	*ret_module = s;
	if (s[0] == '[') {
		*ret_module = s + 1;
		return strcspn(s + 1, "+]");
	}
	at = strcspn(s, "`");
	if (s[at])
		return at;
	if (len && (s[len - 1] == ']' || s[len - 1] == ')')) {
		const char *open = strrchr(s, s[len - 1] == ']' ? '[' : '(');

		if (open && open > s && open[-1] == ' ') {
			*ret_module = open + 1;
			return (size_t)(s + len - 1 - (open + 1));
		}
	}
	*ret_module = s += strspn(s, "<&");
	if (strstr(s, "::"))
		return (size_t)(strstr(s, "::") - s);
	return strrchr(s, '/') ? (size_t)(strrchr(s, '/') - s) : 0;
}

static uint32_t hash_frame(const struct sb_fg_palette *palette, const char *name, uint32_t level)
{
	const char *module = name;
	size_t len;

	switch (palette->shade_by) {
	case SB_FG_SHADE_BY_PREFIX:
		return hash_prefix(name);
	case SB_FG_SHADE_BY_PLACE:
		return (hash_bytes(name, strlen(name)) ^ level) * 0x9e3779b1u;
	case SB_FG_SHADE_BY_MODULE:
		len = module_of(name, &module);
		return hash_bytes(module, len);
	default:
		return hash_bytes(name, strlen(name));
	}
}

static bool rule_fits(const struct sb_fg_palette_rule *rule, const char *name, enum sb_fg_kind kind)
{
	char head[MATCHED_LEN_MAX];
	size_t len;

	if (!(rule->kinds & 1u << kind))
		return false;
	if (!rule->regex)
		return true;
	len = strnlen(name, sizeof(head) - 1);
	memcpy(head, name, len);
	head[len] = '\0';
	return regexec(&rule->compiled, head, 0, NULL, 0) == 0;
}

/* Families get letters in the order of the rules, one for each SB_FG_NR_SHADES of their shades. */
static unsigned int first_letter(const struct sb_fg_palette *palette, size_t rule)
{
	unsigned int letter = 0;

	for (size_t i = 0; i < rule; i++) {
		if (palette->rules[i].family == palette->rules[rule].family)
			return first_letter(palette, i);
		letter += palette->rules[i].family->nr_shades / SB_FG_NR_SHADES;
	}
	return letter;
}

static void write_class(const struct sb_fg_palette *palette, size_t rule, unsigned int shade,
			char ret[SB_FG_CLASS_LEN_MAX])
{
	ret[0] = (char)('a' + first_letter(palette, rule) + shade / SB_FG_NR_SHADES);
	ret[1] = (char)('0' + shade % SB_FG_NR_SHADES);
	ret[2] = '\0';
}

void sb_fg_palette_class(const struct sb_fg_palette *palette, const char *name,
			 enum sb_fg_kind kind, uint32_t level, char ret[SB_FG_CLASS_LEN_MAX])
{
	size_t rule = 0;
	uint32_t hash = hash_frame(palette, name, level);

	while (rule + 1 < palette->nr_rules && !rule_fits(&palette->rules[rule], name, kind))
		rule++;
	write_class(palette, rule, (hash >> 16) * palette->rules[rule].family->nr_shades >> 16,
		    ret);
}

static uint8_t mix(unsigned int from, unsigned int to, unsigned int shade, unsigned int nr)
{
	return (uint8_t)((from * (nr - 1 - shade) + to * shade) / (nr - 1));
}

/* Hue in degrees; saturation and lightness from 0 to 1. */
static struct sb_fg_rgb from_hsl(double hue, double saturation, double lightness)
{
	double parts[3], chroma = (1 - fabs(2 * lightness - 1)) * saturation;

	for (int i = 0; i < 3; i++) {
		/* Red is around 0 degrees, green around 120, blue around 240. */
		double away = fabs(fmod(hue - 120 * i + 540, 360) - 180);
		double part = fmin(fmax((120 - away) / 60, 0), 1);

		parts[i] = 255 * (lightness - chroma / 2 + chroma * part) + 0.5;
	}
	return (struct sb_fg_rgb){ (uint8_t)parts[0], (uint8_t)parts[1], (uint8_t)parts[2] };
}

/* For a dark background: the same hue, less lightness, a little less saturation. */
static struct sb_fg_rgb darken(struct sb_fg_rgb rgb)
{
	double r = rgb.r / 255.0, g = rgb.g / 255.0, b = rgb.b / 255.0;
	double max = fmax(r, fmax(g, b)), min = fmin(r, fmin(g, b)), span = max - min;
	double lightness = (max + min) / 2, hue = 0, saturation = 0;

	if (span > 0) {
		saturation = span / (1 - fabs(2 * lightness - 1));
		hue = max == r	 ? 60 * (g - b) / span
		      : max == g ? 60 * (b - r) / span + 120
				 : 60 * (r - g) / span + 240;
	}
	return from_hsl(hue, fmin(saturation, 1) * 0.60, 0.13 + 0.54 * lightness);
}

/* A faint fill must be dark on a dark background. */
static struct sb_fg_rgb dim(struct sb_fg_rgb rgb)
{
	return (struct sb_fg_rgb){ (uint8_t)(rgb.r / 5), (uint8_t)(rgb.g / 5),
				   (uint8_t)(rgb.b * 2 / 9) };
}

static struct sb_fg_rgb fill_of(const struct sb_fg_family *family, unsigned int shade, bool is_dark)
{
	struct sb_fg_rgb rgb;
	unsigned int nr = family->nr_shades;

	if (family->is_spread) {
		rgb = from_hsl(360.0 * shade / nr, 0.62, shade % 2 ? 0.78 : 0.70);
	} else {
		rgb.r = mix(family->from.r, family->to.r, shade, nr);
		rgb.g = mix(family->from.g, family->to.g, shade, nr);
		rgb.b = mix(family->from.b, family->to.b, shade, nr);
	}
	if (!is_dark)
		return rgb;
	if (family->dark_eighths)
		return (struct sb_fg_rgb){ (uint8_t)(rgb.r * family->dark_eighths / 8),
					   (uint8_t)(rgb.g * family->dark_eighths / 8),
					   (uint8_t)(rgb.b * family->dark_eighths / 8) };
	return family->is_faint ? dim(rgb) : darken(rgb);
}

static double luminance(struct sb_fg_rgb rgb)
{
	const double parts[] = { rgb.r / 255.0, rgb.g / 255.0, rgb.b / 255.0 };
	const double weights[] = { 0.2126, 0.7152, 0.0722 };
	double sum = 0;

	for (int i = 0; i < 3; i++)
		sum += weights[i] * (parts[i] <= 0.04045 ? parts[i] / 12.92
							 : pow((parts[i] + 0.055) / 1.055, 2.4));
	return sum;
}

double sb_fg_contrast(struct sb_fg_rgb a, struct sb_fg_rgb b)
{
	double x = luminance(a), y = luminance(b);

	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static const struct sb_fg_rgb black = { 0, 0, 0 }, white = { 255, 255, 255 };

static double worst_contrast(const struct sb_fg_family *family, struct sb_fg_rgb text, bool is_dark)
{
	double worst = INFINITY;

	for (unsigned int i = 0; i < family->nr_shades; i++)
		worst = fmin(worst, sb_fg_contrast(fill_of(family, i, is_dark), text));
	return worst;
}

/* One colour of text for a whole family, if that is readable: two would seem to mean something. */
static bool has_white_text(const struct sb_fg_family *family, struct sb_fg_rgb fill, bool is_dark)
{
	if (worst_contrast(family, white, is_dark) >= TEXT_CONTRAST_MIN)
		return true;
	if (worst_contrast(family, black, is_dark) >= TEXT_CONTRAST_MIN)
		return false;
	return sb_fg_contrast(fill, white) > sb_fg_contrast(fill, black);
}

static bool find_class(const struct sb_fg_palette *palette, const char *class,
		       const struct sb_fg_family **ret_family, unsigned int *ret_shade)
{
	for (size_t i = 0; i < palette->nr_rules; i++) {
		const struct sb_fg_family *family = palette->rules[i].family;
		unsigned int letter = (unsigned int)(class[0] - 'a') - first_letter(palette, i);
		unsigned int digit = (unsigned int)(class[1] - '0');

		if (letter < family->nr_shades / SB_FG_NR_SHADES && digit < SB_FG_NR_SHADES) {
			*ret_family = family;
			*ret_shade = letter * SB_FG_NR_SHADES + digit;
			return true;
		}
	}
	return false;
}

bool sb_fg_palette_colors(const struct sb_fg_palette *palette, const char *class, bool is_dark,
			  struct sb_fg_rgb *ret_fill, struct sb_fg_rgb *ret_text)
{
	const struct sb_fg_family *family;
	unsigned int shade;

	if (!find_class(palette, class, &family, &shade))
		return false;
	*ret_fill = fill_of(family, shade, is_dark);
	*ret_text = has_white_text(family, *ret_fill, is_dark) ? white : black;
	return true;
}

static int add_class_css(const struct sb_fg_palette *palette, const char *class, bool is_dark,
			 struct sb_str *out)
{
	const struct sb_fg_family *family = NULL;
	unsigned int shade = 0;
	struct sb_fg_rgb fill;
	int err;

	if (!find_class(palette, class, &family, &shade))
		return 0;
	fill = fill_of(family, shade, is_dark);
	err = sb_str_addf(out, ".%s{fill:#%02x%02x%02x}", class, fill.r, fill.g, fill.b);
	/* Attributes that are not set come from the style sheet. */
	if (!err && has_white_text(family, fill, is_dark) != is_dark)
		err = sb_str_addf(out, ".%s+text{fill:%s}", class, is_dark ? "#000" : "#fff");
	return err;
}

int sb_fg_palette_add_css(const struct sb_fg_palette *palette, bool is_dark, struct sb_str *out)
{
	int err = 0;

	for (char letter = 'a'; !err && letter <= 'z'; letter++) {
		size_t before = out->len;

		for (char digit = '0'; !err && digit < '0' + SB_FG_NR_SHADES; digit++)
			err = add_class_css(palette, (char[]){ letter, digit, '\0' }, is_dark, out);
		if (!err && out->len > before)
			err = sb_str_addc(out, '\n');
	}
	return err;
}

int sb_fg_palette_add_json(const struct sb_fg_palette *palette, struct sb_str *out)
{
	int err = sb_str_addc(out, '[');

	for (size_t i = 0; !err && i < palette->nr_rules; i++) {
		const struct sb_fg_palette_rule *rule = &palette->rules[i];

		err = sb_str_addf(out, "%s[%u,\"", i ? "," : "", rule->kinds);
		for (const char *c = rule->regex ? rule->regex : ""; !err && *c; c++)
			err = sb_str_addf(out, *c == '\\' || *c == '"' ? "\\%c" : "%c", *c);
		err = err
			      ?: sb_str_addf(out, "\",%u,%u]", first_letter(palette, i),
					     rule->family->nr_shades);
	}
	return err ?: sb_str_addc(out, ']');
}

bool sb_fg_palette_legend(const struct sb_fg_palette *palette, enum sb_fg_kind kind,
			  char ret[SB_FG_CLASS_LEN_MAX])
{
	size_t rule = 0;

	if (!palette->is_by_kind)
		return false;
	while (rule + 1 < palette->nr_rules && !(palette->rules[rule].kinds & 1u << kind))
		rule++;
	write_class(palette, rule, SB_FG_NR_SHADES / 2, ret);
	return true;
}
