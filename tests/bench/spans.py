#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What it costs a thread to be in a span (--in) that turns out fast, beside the view without spans.

spans.py STACKBPF SPANS_C [ROUNDS]

The program waits a thousand times in each call, for 20 us; CPU time of a call, the median of 40. All take their turns in
each round. Of the rounds, the median ratio to the view without spans counts.
"""
import os
import statistics
import subprocess
import sys
import tempfile

BINARY, SOURCE = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 7
VIEWS = {'offcpu': (), 'wall': ('-F', '999'), 'oncpu': ('-F', '999')}


def micros(program, *command):
    # If nothing counts, the exit status says so.
    out = subprocess.run([*command, program, '40', '0', 'cost'], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(out.stdout)


def main():
    if os.geteuid() != 0:
        sys.exit('needs root')
    with tempfile.TemporaryDirectory() as work:
        program = f'{work}/spans'
        include = os.path.join(os.path.dirname(SOURCE), '..', '..', 'include')
        subprocess.run(['gcc', '-O2', '-g', '-pthread', f'-I{include}', '-o', program, SOURCE], check=True)
        print(f'{"us of CPU time for 1,000 waits":32} {"median":>8} {"to the view":>12} {"range":>13}')
        for view, rate in VIEWS.items():
            base = (BINARY, view, *rate, '--max-overhead=off', '-o', f'{work}/out.folded')
            span = ('--in', f'{program}:handle_waits', '--slower-than')
            rows = {'nothing': (), view: (*base, '--'), f'{view} --in, fast': (*base, *span, '1h', '--'),
                    f'{view} --in, slow': (*base, *span, '1', '--')}
            figures = {name: [] for name in rows}
            for _ in range(ROUNDS):
                for name, command in rows.items():
                    figures[name].append(micros(program, *command))
            for name, values in figures.items():
                ratios = [a / b for a, b in zip(values, figures[view])]
                print(f'{name:32} {statistics.median(values):8.0f} {statistics.median(ratios):11.2f}x '
                      f'{min(ratios):6.2f}..{max(ratios):4.2f}x', flush=True)


main()
