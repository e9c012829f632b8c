/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPUs that go offline take the perf events of theirs with them, for good: the events of a CPU that
 * comes back have to be made anew (kernel/events/core.c, perf_event_exit_cpu_context()). One that is
 * back before anybody looked at the list of CPUs can only be told by the kernel's uevents.
 */
#ifndef SB_CAPTURE_HOTPLUG_H
#define SB_CAPTURE_HOTPLUG_H

#include "base/num.h"

/* Return: a descriptor that is readable when something happened to a device, or a negative errno. */
int sb_hotplug_open(void);

/*
 * Append the CPUs that went offline since the last call, whether or not they came back, to @gone.
 * Return: 0; -ENOBUFS: there was more than could be kept, so it may be any; -ENOMEM.
 */
int sb_hotplug_read(int fd, sb_vec_u32 *gone);

#endif
