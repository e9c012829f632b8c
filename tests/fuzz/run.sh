#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# run.sh FUZZER SEEDS: fuzz for SB_FUZZ_SECONDS (default 10), starting from the seeds in the tree.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/new"
cd "$work"
exec_args="-max_total_time=${SB_FUZZ_SECONDS:-10} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1"
# shellcheck disable=SC2086
"$1" $exec_args "$work/new" "$2"
