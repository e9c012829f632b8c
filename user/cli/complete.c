// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds possible values of options on this machine. */
#include "cli/complete.h"

#include <dirent.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "kinds/view_kind.h"
#include "output/output.h"
#include "resolve/resolve.h"

#define PROC_FILE_MAX (64u << 10)

static int add_line(struct sb_str *to, const struct sb_completion *what, const char *value,
		    const char *help)
{
	size_t begin = to->len;
	int err = sb_str_addn(to, what->word, (size_t)(what->typed - what->word));

	if (!err)
		err = sb_str_add(to, value);
	/* Names of processes are whatever these like: a line must remain one. */
	if (!err)
		sb_replace_controls(to->s + begin, to->len - begin);
	if (help && !err)
		err = sb_str_addf(to, "\t%s", help);
	return err ? err : sb_str_addc(to, '\n');
}

void sb_complete_add(struct sb_completion *to, const char *value, const char *help)
{
	if (!to->err && !strncmp(value, to->typed, strlen(to->typed)))
		to->err = add_line(&to->answers, to, value, help);
}

void sb_complete_add_all(struct sb_completion *to, const char *values)
{
	char value[64];
	size_t len;

	for (; *values; values += len, values += strspn(values, " ")) {
		len = strcspn(values, " ");
		snprintf(value, sizeof(value), "%.*s", (int)len, values);
		sb_complete_add(to, value, NULL);
	}
}

void sb_complete_list(struct sb_completion *to)
{
	const char *comma = strrchr(to->typed, ',');

	if (comma)
		to->typed = comma + 1;
}

/* "!root": but not this one. */
static void skip_rule(struct sb_completion *to)
{
	if (*to->typed == '!')
		to->typed++;
}

static void each_process(struct sb_completion *to,
			 void (*fn)(struct sb_completion *to, const char *pid, const char *comm))
{
	sb_cleanup(sb_closedirp) DIR *proc = opendir("/proc");
	const struct dirent *entry;
	char path[32];
	uint64_t pid;

	while (proc && (entry = readdir(proc))) {
		sb_cleanup(sb_freep) char *comm = NULL;
		size_t len;

		if (sb_parse_u64(entry->d_name, UINT32_MAX, &pid))
			continue;
		snprintf(path, sizeof(path), "/proc/%u/comm", (uint32_t)pid);
		if (sb_read_file(path, PROC_FILE_MAX, &comm, &len) || !len)
			continue;
		comm[--len] = '\0'; /* the newline */
		sb_replace_controls(comm, len);
		fn(to, entry->d_name, comm);
	}
}

static void add_pid(struct sb_completion *to, const char *pid, const char *comm)
{
	sb_complete_add(to, pid, comm);
}

static void add_comm(struct sb_completion *to, const char *pid, const char *comm)
{
	sb_complete_add(to, comm, NULL);
}

void sb_complete_pids(struct sb_completion *to)
{
	sb_complete_list(to);
	skip_rule(to);
	each_process(to, add_pid);
}

void sb_complete_comm(struct sb_completion *to)
{
	skip_rule(to);
	each_process(to, add_comm);
}

void sb_complete_users(struct sb_completion *to)
{
	const struct passwd *passwd;

	sb_complete_list(to);
	skip_rule(to);
	setpwent();
	while ((passwd = getpwent()))
		sb_complete_add(to, passwd->pw_name, NULL);
	endpwent();
}

void sb_complete_kind(struct sb_completion *to)
{
	for (size_t i = 0; i < SB_VIEW_KIND_MAX; i++)
		if (!sb_view_kinds[i].takes_events)
			sb_complete_add(to, sb_view_kinds[i].name, sb_view_kinds[i].summary);
}

void sb_complete_stored_kind(struct sb_completion *to)
{
	for (size_t i = 0; i < SB_VIEW_KIND_MAX; i++)
		if (!sb_view_kinds[i].takes_events && sb_view_kind_is_recorded(&sb_view_kinds[i]))
			sb_complete_add(to, sb_view_kinds[i].name, sb_view_kinds[i].summary);
}

void sb_complete_roots(struct sb_completion *to)
{
	size_t i;

	sb_complete_list(to);
	for (i = SB_ATTR_COMM; i <= SB_ATTR_CONTAINER; i++)
		sb_complete_add(to, sb_root_names[i], NULL);
}

void sb_complete_format(struct sb_completion *to)
{
	const struct sb_output *output;
	size_t i;

	for (i = 0; (output = sb_output_at(i)); i++)
		sb_complete_add(to, output->name, output->summary);
}

/* "nodev\tproc", "\text4" */
void sb_complete_filesystem(struct sb_completion *to)
{
	sb_cleanup(sb_freep) char *text = NULL;
	char *line, *next;

	if (sb_read_file("/proc/filesystems", PROC_FILE_MAX, &text, NULL))
		return;
	for (line = text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		line += strcspn(line, "\t");
		if (*line)
			sb_complete_add(to, line + 1, NULL);
	}
}

void sb_complete_device(struct sb_completion *to)
{
	sb_cleanup(sb_closedirp) DIR *devices = opendir("/sys/class/block");
	const struct dirent *entry;

	while (devices && (entry = readdir(devices)))
		if (entry->d_name[0] != '.')
			sb_complete_add(to, entry->d_name, NULL);
}

void sb_complete_command(struct sb_completion *to)
{
	struct sb_command command;
	size_t i;

	for (i = 0; sb_command_at(i, &command); i++) {
		sb_complete_add(to, command.name, command.summary);
		if (command.alias)
			sb_complete_add(to, command.alias, command.summary);
	}
}

void sb_complete_shell(struct sb_completion *to)
{
	sb_complete_add_all(to, "bash zsh fish");
}

void sb_complete_file(struct sb_completion *to)
{
	to->by_shell = "files";
}

void sb_complete_directory(struct sb_completion *to)
{
	to->by_shell = "directories";
}

void sb_complete_program(struct sb_completion *to)
{
	to->by_shell = "programs";
}

void sb_complete_host(struct sb_completion *to)
{
	to->by_shell = "hosts";
}
