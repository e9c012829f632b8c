/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of the page around the picture, as text; made by viewer_text.py. */
#ifndef SB_OUTPUT_PAGE_H
#define SB_OUTPUT_PAGE_H

extern const char sb_page_js[];
extern const char sb_page_css[];

#endif
