/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Notices CPUs that went offline. The kernel then closes all perf events of the CPU, and does not
 * open them again when it comes back (kernel/events/core.c, perf_event_exit_cpu_context()). A CPU
 * that is back before the list of CPUs is read again is noticed only through the kernel's uevents.
 * Order: sb_hotplug_open(); sb_hotplug_read(), and after it the list of CPUs; close(2). Thread:
 * any. No pointer is NULL or kept.
 */
#ifndef SB_CAPTURE_HOTPLUG_H
#define SB_CAPTURE_HOTPLUG_H

#include "base/num.h"

/* Open a socket for uevents, owned by the caller; it is readable when anything happened to a
 * device. Return: a descriptor; or a negative errno of socket(2) or bind(2). */
int sb_hotplug_open(void);

/*
 * Append to @gone the numbers of the CPUs that went offline since the last call, also of those that
 * are online again. A CPU can appear twice. @fd: from sb_hotplug_open(). @gone: begins zeroed or
 * has CPUs already; the caller ends it with sb_vec_release(). Does not block.
 * Return: 0, also when the socket has another error; -ENOBUFS when messages were lost, so that any
 * CPU may be concerned; -ENOMEM, when one was lost. What was appended before an error remains, and
 * the next call goes on with the messages that are left.
 */
int sb_hotplug_read(int fd, sb_vec_u32 *gone);

#endif
