/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page around a picture. */
#ifndef SB_OUTPUT_PAGE_H
#define SB_OUTPUT_PAGE_H

#include <stdio.h>

/* Files of the page, as text; made by viewer_text.py. */
extern const char sb_page_js[];
extern const char sb_page_css[];

/* Write all up to <body>. Return: 0 or -ENOMEM; errors of @out are left in it. */
int sb_page_begin(const char *title, FILE *out);

#endif
