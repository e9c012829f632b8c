/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The viewer's files as text that every picture carries; made by viewer_text.py. */
#ifndef SB_FLAMEGRAPH_VIEWER_H
#define SB_FLAMEGRAPH_VIEWER_H

extern const char sb_fg_viewer_js[];
extern const char sb_fg_viewer_css[];
extern const char sb_fg_viewer_dark_css[]; /* what differs on a dark ground */

#endif
