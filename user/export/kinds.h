/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of table.c. Only for table.c and the destinations. */
#ifndef SB_EXPORT_KINDS_H
#define SB_EXPORT_KINDS_H

#include "export/export.h"

extern const struct sb_export_kind sb_export_clickhouse, sb_export_otlp, sb_export_pyroscope;
extern const struct sb_export_kind sb_export_pprof_dir;

#endif
