// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Perf side-band records of any shape: decoding stays inside the record. */
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_event_header *record;
	struct sb_sideband event;

	if (size < sizeof(*record) || size > UINT16_MAX)
		return 0;
	record = malloc(size);
	if (!record)
		return 0;
	memcpy(record, data, size);
	/* The ring hands out records by this size. */
	record->size = (uint16_t)size;
	if (sb_sideband_decode(record, &event) == 1 && event.kind == SB_SIDEBAND_MMAP &&
	    (event.map.build_id_bytes > SB_BUILD_ID_MAX || strlen(event.map.path) > size))
		abort();
	free(record);
	return 0;
}
