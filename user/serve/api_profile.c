// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /api/profile: a profile to download, in any format of output/output.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "output/output.h"
#include "serve/api.h"

static int find_format(struct sb_asked *asked, const struct sb_output **ret_output)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};
	const char *name = sb_params_get(&asked->params, "format");
	const struct sb_output *output = sb_output_find(name ? name : "pprof");
	size_t i;
	int err = 0;

	if (output && !output->needs_durations) {
		*ret_output = output;
		return 0;
	}
	if (output)
		return sb_asked_fail(asked, 400,
				     "format=%s needs the duration of each event, which a "
				     "store does not keep",
				     name);
	for (i = 0; (output = sb_output_at(i)) && !err; i++)
		if (!output->needs_durations)
			err = sb_str_addf(&list, "%s%s", list.len ? ", " : "", output->name);
	return err ? err
		   : sb_asked_fail(asked, 400, "there is no format '%s'; the formats are %s", name,
				   list.s);
}

/* "oncpu-20261121T100000Z.pb.gz". The kind is hostile text, as everything in a store. */
static void name_file(struct sb_asked *asked, const struct sb_ask *ask,
		      const struct sb_output *output)
{
	char *name = asked->answer->file_name, when[32] = "";
	const char *kind = sb_ask_kind(ask);
	time_t from = (time_t)ask->from_s;
	struct tm tm;

	if (strspn(kind, "abcdefghijklmnopqrstuvwxyz") != strlen(kind))
		kind = "profile";
	if (gmtime_r(&from, &tm))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, sizeof(asked->answer->file_name), "%.16s-%s%s", kind, when,
		 output->extension);
}

static int write_profile(struct sb_asked *asked, struct sb_ask *ask, const struct sb_output *output)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	struct sb_output_opts opts = { .fold = { .header = true } };
	int err = sb_ask_profile(asked->opts->store, ask, &profile, NULL);

	if (err)
		return err;
	name_file(asked, ask, output);
	err = output->write(profile, &opts, asked->out);
	/* A picture that says that there is nothing to see is a valid answer. */
	return err == -ENODATA ? 0 : err;
}

int sb_api_profile(struct sb_asked *asked)
{
	const struct sb_output *output = NULL;
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	int err = sb_api_ask(asked, "", &ask);

	if (!err)
		err = find_format(asked, &output);
	err = err ?: sb_asked_all(asked);
	return err ?: write_profile(asked, &ask, output);
}
