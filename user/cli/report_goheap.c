// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What there is to report on programs of Go, which can keep a profile of their heap. */
#include "base/str.h"
#include "cli/record.h"
#include "views/view.h"

/* Why the profile is not the source; the ends of a sentence. */
static const char *const reasons[SB_GO_HEAP_STATE_MAX] = {
	[SB_GO_HEAP_STRIPPED] =
		"the program has no symbols that say where it is, as after 'go build "
		"-ldflags=-s'",
	[SB_GO_HEAP_NOT_LINKED] = "Go keeps none, because nothing in the program refers to "
				  "runtime.MemProfile; import net/http/pprof to have one",
	[SB_GO_HEAP_OFF] = "the program has set runtime.MemProfileRate to 0",
	[SB_GO_HEAP_UNREADABLE] = "the memory of the process could not be read",
	[SB_GO_HEAP_UNKNOWN] = "it is not laid out as that of Go 1.9 and newer",
	[SB_GO_HEAP_TOO_LARGE] = "it is too large: the bounds are "
				 "65,536 stacks and 1,048,576 frames of them",
	[SB_GO_HEAP_FEW_CYCLES] = "too few garbage collections ended in the run; take a longer one",
	[SB_GO_HEAP_ENDED] = "the process ended before the run did",
};

static void add_source(const struct sb_goheap_process *process, bool is_of_growth,
		       struct sb_str *list)
{
	(void)sb_str_addf(
		list,
		"source: Go's own heap profile, which samples one allocation in %llu bytes, on "
		"average; it counts ",
		(unsigned long long)process->rate);
	if (is_of_growth)
		(void)sb_str_addf(
			list,
			"what was allocated in the first %.1f s and has outlived later "
			"garbage collections, by how much more each stack has in use since",
			(double)process->early_ns / 1e9);
	else
		(void)sb_str_add(list,
				 "how much more each stack had in use after the last garbage "
				 "collection than when the run began, with what was allocated "
				 "during that collection, which only the next one can free");
	(void)sb_str_addf(
		list,
		" (%llu collections ended in the run); stacks of goroutines, memory of C, and "
		"what was allocated before the run are not seen",
		(unsigned long long)process->nr_cycles);
}

void sb_report_own_profiles(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list)
{
	const struct sb_goheap_stats *stats = &figures->session.goheap;
	const bool is_of_growth = run->config->views.at[0]->kind->is_of_growth;
	uint32_t i;

	for (i = 0; i < stats->nr; i++) {
		const struct sb_goheap_process *process = &stats->at[i];

		(void)sb_str_addf(list, "%sprocess %u (%.*s): ", i ? "\n" : "", process->tgid,
				  SB_COMM_LEN, process->comm);
		if (process->state == SB_GO_HEAP_READ)
			add_source(process, is_of_growth, list);
		else
			(void)sb_str_addf(list, "Go's own heap profile is not the source: %s",
					  reasons[process->state]);
	}
	if (stats->nr_left_out)
		(void)sb_str_addf(
			list,
			"%sGo's own heap profile was not looked for in %u processes, because "
			"there are more than %u targets",
			list->len ? "\n" : "", stats->nr_left_out, SB_GOHEAP_PROCESSES_MAX);
}
