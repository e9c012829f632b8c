#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# run.sh FUZZER SEEDS: fuzz for SB_FUZZ_SECONDS (default 2), starting from the seeds in the tree,
# with the dictionary SEEDS.dict if there is one. An input that fails, takes 30 s or 2 GiB, is kept in
# meson-logs. For long, and to keep what is found: long.py. libFuzzer's
# own status for a failure is 77, which means "skipped" here.
#
# The seed is SB_FUZZ_SEED (default 1), and addresses, which libFuzzer's choices depend on, are not
# random either: what fails here is what was changed, not what a fuzzer happens to find that day.
# With 0, libFuzzer draws a seed, which it prints.
set -eu
fuzzer=$(realpath "$1")
seeds=$2
# Undefined behaviour is a failure, not a remark.
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=$work/found
# For those that need files.
export TMPDIR="$work/tmp"
mkdir "$found" "$TMPDIR"
set -- "-seed=${SB_FUZZ_SEED:-1}" "-max_total_time=${SB_FUZZ_SECONDS:-2}" -timeout=30 -rss_limit_mb=2048 \
	-max_len=16384 -error_exitcode=1 -print_final_stats=1 \
	"-artifact_prefix=$PWD/meson-logs/$(basename "$fuzzer")-"
[ ! -f "$seeds.dict" ] || set -- "$@" "-dict=$seeds.dict"
set -- "$fuzzer" "$@" "$found" "$seeds"
! setarch -R true 2>/dev/null || set -- setarch -R "$@"
"$@"
