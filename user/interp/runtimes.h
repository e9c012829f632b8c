/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c, each in the file of its name. */
#ifndef SB_INTERP_RUNTIMES_H
#define SB_INTERP_RUNTIMES_H

struct sb_runtime_ops;

extern const struct sb_runtime_ops sb_runtime_hotspot;
extern const struct sb_runtime_ops sb_runtime_lua;
extern const struct sb_runtime_ops sb_runtime_luajit;
extern const struct sb_runtime_ops sb_runtime_perl;
extern const struct sb_runtime_ops sb_runtime_php;
extern const struct sb_runtime_ops sb_runtime_python;
extern const struct sb_runtime_ops sb_runtime_ruby;
extern const struct sb_runtime_ops sb_runtime_v8;

#endif
