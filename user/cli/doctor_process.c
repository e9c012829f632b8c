// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "cli/doctor.h"

int sb_doctor_process(struct sb_doctor *doctor, uint32_t tgid)
{
	return -ENOSYS;
}
