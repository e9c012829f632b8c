/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of the page, as text; made by viewer_text.py. */
#ifndef SB_SERVE_PAGE_H
#define SB_SERVE_PAGE_H

extern const char sb_serve_page_html[];
extern const char sb_serve_page_css[];
extern const char sb_serve_page_js[];

#endif
