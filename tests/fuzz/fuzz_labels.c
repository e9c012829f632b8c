// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Labels in the memory of an adversary: the table of keys, and a thread's labels as the kernel
 * reads them. The input is where the variable is said to be, and the memory, again and again at all
 * addresses; a quarter of them faults.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "interp/core/labels.h"
#include "interp/core/step.h"
#include "must.h"

#include "bpf/step/sb_step_label.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t len;
	unsigned int nr_reads;
};

/* Of an input that are the configuration of a walk, as far as it is not of Go alone. */
#define CONF_BYTES offsetof(struct sb_label_conf, go_labels)

static int read_input(void *arg, void *dst, size_t len, uint64_t addr)
{
	struct input *input = arg;
	size_t i;

	input->nr_reads++;
	if ((addr >> 12 & 3) == 3)
		return -EFAULT;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = input->at[(addr + i) % input->len];
	return 0;
}

static uint64_t name_of(struct sb_label_walk *w, const struct sb_memory *memory)
{
	int i;

	if (sb_label_begin(w, (void *)memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_LABEL_ATTRS_MAX; i++)
			if (sb_label_step(w, (void *)memory) != SB_STEP_GO_ON)
				break;
	must(w->nr_bytes <= SB_LABEL_DATA_MAX);
	sb_label_end(w, 1);
	must(!w->nr_bytes == !w->hash);
	return w->hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const wanted[] = { "vehicle", "region" };
	const struct sb_label_names names = { .at = wanted, .nr = 2 };
	static struct sb_label_walk w;
	struct sb_label_keys keys = {};
	struct input input;
	const struct sb_memory memory = { .read = read_input, .arg = &input };
	uint64_t name, at = 0, len;

	if (size < CONF_BYTES + 8)
		return 0;
	memset(&w, 0x5a, sizeof(w));
	memcpy(&w.conf, data, CONF_BYTES);
	memcpy(&w.thread_pointer, data + CONF_BYTES, 8);
	w.conf.kind = 1 + w.conf.kind % (SB_LABEL_KIND_MAX - 1);
	w.conf.go_labels = (uint32_t)w.conf.nr_keys;
	w.conf.go_curg = (uint32_t)w.conf.dtv_at;
	w.conf.go_is_map = w.conf.is_musl >> 1 & 1;
	w.conf.is_musl %= 2;
	input = (struct input){ .at = data + 8, .len = size - 8 };
	name = name_of(&w, &memory);
	/* Each step reads six times at most. */
	must(input.nr_reads <= 12 + 6 * SB_LABEL_ATTRS_MAX);
	/* What is shipped are whole labels, behind the IDs of a trace if there are such. */
	if (w.has_ids)
		at = SB_LABEL_IDS_BYTES;
	while (at < w.nr_bytes) {
		len = w.data[at + 1];
		at += 2 + len;
	}
	must(at == w.nr_bytes);
	memset(w.data, 0xa5, sizeof(w.data));
	must(name == name_of(&w, &memory));

	(void)sb_label_keys_parse(data, size, &names, &keys);
	must(keys.nr <= SB_LABEL_KEYS);
	(void)sb_label_keys_read(&memory, w.thread_pointer, &names, &keys);
	must(keys.nr <= SB_LABEL_KEYS);
	return 0;
}
