#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput and memory of `flamegraph`, beside flamegraph.pl if FLAMEGRAPH_PL names one.

usage: flamegraph.py FLAMEGRAPH [--lines N] [--bytes N] [--sorted] [--rounds N]

Input: folded stacks of a made-up C++ program, the same on each run, by default 100,000 distinct
lines of 1.5 kB. Figures are the best of the rounds; compare them within one run only.
"""
import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time


def make_names(rng, count):
    """Names as long as those of a C++ program: 10 to 80 bytes."""
    parts = ["std", "vector", "map", "detail", "alloc", "Session", "Buffer", "read", "write",
             "handle", "process", "Impl", "parse", "node", "visit", "run", "loop", "dispatch",
             "cache", "lookup", "encode", "flush", "commit", "Tree", "insert"]
    names = []
    for i in range(count):
        name = "::".join(rng.choice(parts) for _ in range(rng.randint(1, 6)))
        names.append("%s_%d" % (name, i))
    return names


def write_folded(path, lines, size):
    """Stacks branch off one another: a few anywhere, most near the leaf. 3.6 new nodes a line."""
    rng = random.Random(1)
    names = make_names(rng, 20000)
    stacks, seen = [["main"]], set()
    mean = size / lines - 4
    while len(seen) < lines:
        stack = rng.choice(stacks)
        first = 1 if len(stacks) < 2000 else max(1, len(stack) - 6)
        stack = stack[:rng.randint(first, len(stack))]
        length = sum(len(name) + 1 for name in stack)
        goal = rng.uniform(0.95, 1.05) * mean
        while length < goal:
            stack.append(rng.choice(names))
            length += len(stack[-1]) + 1
        line = ";".join(stack)
        if line in seen:
            continue
        seen.add(line)
        if len(stacks) < 20000:
            stacks.append(stack)
    with open(path, "w", encoding="ascii") as out:
        for line in sorted(seen, key=lambda _: rng.random()):
            out.write("%s %d\n" % (line, rng.randint(1, 1000)))


def sort_file(path):
    with open(path, encoding="ascii") as lines:
        ordered = sorted(lines)
    with open(path, "w", encoding="ascii") as out:
        out.writelines(ordered)


def make_input(path, args):
    write_folded(path, args.lines, args.bytes)
    if args.sorted:
        sort_file(path)


def run(argv, path):
    """Return seconds, seconds of CPU, peak memory in KiB, size of the output."""
    with open(path, "rb") as source, tempfile.TemporaryFile() as sink:
        start = time.monotonic()
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, source.fileno(), 0), (os.POSIX_SPAWN_DUP2, sink.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - start
        if status:
            sys.exit("%s failed: status %d" % (argv[0], status))
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, sink.seek(0, 2)


def report(name, argv, path, rounds):
    """Best of the rounds. Return seconds of CPU: on a busy machine they lie less than the clock."""
    size = os.path.getsize(path)
    with open(path, "rb") as lines:
        nr_lines = sum(1 for _ in lines)
    runs = [run(argv, path) for _ in range(rounds)]
    seconds, cpu, peak, written = (min(values) for values in zip(*runs))
    print("%-22s %7.3f s (slowest %.3f), CPU %.3f s = %6.1f MB/s, %7.0f lines/s, "
          "peak %5.1f MiB, output %.2f MB" %
          (name, seconds, max(runs)[0], cpu, size / 1e6 / cpu, nr_lines / cpu, peak / 1024,
           written / 1e6), flush=True)
    return cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flamegraph")
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--bytes", type=int, default=150000000)
    parser.add_argument("--sorted", action="store_true", help="the input's lines in order")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", metavar="FILE", help="keep the input here, use it if it is there")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or os.path.join(folder, "in.folded")
        if not os.path.exists(path):
            # In another process: what is started later inherits the peak memory of its parent.
            child = multiprocessing.Process(target=make_input, args=(path, args))
            child.start()
            child.join()
            if child.exitcode:
                sys.exit("cannot make the input")
        print("%d bytes, %d CPUs, %s" % (os.path.getsize(path), os.cpu_count(), os.uname().release))
        ours = report("flamegraph", [args.flamegraph], path, args.rounds)
        report("flamegraph --no-embed", [args.flamegraph, "--no-embed"], path, args.rounds)
        script = os.environ.get("FLAMEGRAPH_PL")
        if not script:
            print("no comparison: set FLAMEGRAPH_PL to a flamegraph.pl")
            return
        theirs = report("flamegraph.pl", ["perl", script], path, 2)
        print("flamegraph takes 1/%.1f of flamegraph.pl's CPU time" % (theirs / ours))


main()
