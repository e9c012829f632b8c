// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prints where a Go program keeps the labels of its goroutines: the offset of the thread-local
 * variable from the thread pointer, whether the `g` is in a register, too, where a `g` has its
 * labels, and where an `m` has its goroutine. For go_labels.py. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "interp/core/labels.h"

int main(int argc, char **argv)
{
	struct sb_label_place place;
	struct sb_image image = {};
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	bool is_there;

	if (fd < 0 || sb_image_file_new(fd, "", &image.file))
		return 2;
	is_there = sb_label_place_find(&image, &place) && place.kind == SB_LABEL_GO;
	if (is_there)
		printf("%" PRId64 " %d %" PRIu32 " %" PRIu32 "\n", (int64_t)place.offset,
		       place.go_in_register, place.go_labels, place.go_curg);
	sb_image_file_free(image.file);
	return !is_there;
}
