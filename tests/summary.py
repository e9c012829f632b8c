#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""summary.py DIR SUITE...: one account of several runs of `meson test`.
summary.py --failed LOG: the names of the tests that failed, a line each.

DIR holds SUITE.json (meson's log, a line for each test), SUITE.again.json (of those that failed and were run
once more) and SUITE.out (what was printed). A suite without a log did not build or did not start, and counts
as one failure.
"""
import json
import pathlib
import re
import sys

OUTPUT_LINES_MAX = 200  # of a failed test; the end of a long output tells most
PASSED = {'OK', 'EXPECTEDFAIL'}


def output(test):
    return (test.get('stdout') or '') + (test.get('stderr') or '')


def reason(test):
    """The convention: a test that cannot run prints why as its last line, and exits with 77."""
    lines = [line.strip() for line in output(test).splitlines() if line.strip()]
    return re.sub(r'^skip(ped)?:\s*', '', lines[-1], flags=re.I) if lines else 'gives no reason'


def skipped_inside(test):
    """Cases that a cmocka test left out although the program as a whole passed."""
    return re.findall(r'^\[  SKIPPED \] (\w+)$', output(test), re.M)


def tail(text):
    lines = text.splitlines()
    cut = len(lines) - OUTPUT_LINES_MAX
    if cut > 0:
        lines = [f'... {cut} lines before'] + lines[cut:]
    return '\n'.join('    ' + line for line in lines)


def read(log):
    return [json.loads(line) for line in log.read_text().splitlines() if line.strip()]


def has_failed(test):
    return test['result'] not in PASSED | {'SKIP'}


def print_failed(log):
    if log.exists():
        for test in read(log):
            if has_failed(test):
                print(test['name'].rpartition(' / ')[2])


def first_complaint(test):
    lines = [line.strip() for line in output(test).splitlines() if 'FAILED' in line or 'Error' in line]
    return lines[0] if lines else test['result']


def load(directory, suite):
    log, again = directory / f'{suite}.json', directory / f'{suite}.again.json'
    if log.exists():
        second = {test['name']: test for test in read(again)} if again.exists() else {}
        tests = read(log)
        for test in tests:
            if has_failed(test) and test['name'] in second:
                test |= {'first': first_complaint(test), 'first_output': output(test)} | second[test['name']]
        return tests
    out = directory / f'{suite}.out'
    text = out.read_text(errors='replace') if out.exists() else ''
    if 'No suitable tests defined' in text or 'No tests defined' in text:
        return []
    return [{'name': 'build', 'result': 'ERROR', 'stdout': text, 'duration': 0}]


def main():
    if sys.argv[1] == '--failed':
        print_failed(pathlib.Path(sys.argv[2]))
        return 0
    directory, suites = pathlib.Path(sys.argv[1]), sys.argv[2:]
    total = {'passed': 0, 'failed': 0, 'skipped': 0}
    skipped, failed, second = [], [], []
    print()
    for suite in suites:
        count = dict.fromkeys(total, 0)
        tests = load(directory, suite)
        for test in tests:
            name = f"{suite}/{test['name'].rpartition(' / ')[2]}"
            if test['result'] in PASSED:
                count['passed'] += 1
                second += [(name, test['first'])] if 'first' in test else []
                skipped += [(name, f'without {case}') for case in skipped_inside(test)]
            elif test['result'] == 'SKIP':
                count['skipped'] += 1
                skipped.append((name, reason(test)))
            else:
                count['failed'] += 1
                failed.append((name, test))
        seconds = sum(test.get('duration', 0) for test in tests)
        print(f"{suite:10}{count['passed']:4} passed {count['failed']:3} failed "
              f"{count['skipped']:3} skipped {seconds:7.1f} s")
        for key in total:
            total[key] += count[key]
    for name, why in skipped:
        print(f'skipped: {name}: {why}')
    for name, complaint in second:
        print(f'only at the second try: {name}: {complaint}')
    for name, test in failed:
        if 'first' in test:
            print(f"\nfailed twice: {name}, at the first try:\n{tail(test['first_output'])}")
        print(f"\nfailed: {name} ({test['result']}){', at the second try' if 'first' in test else ''}\n"
              f"{tail(output(test))}")
    if failed:
        print('\nfailed: ' + ', '.join(name + (' (twice)' if 'first' in test else '') for name, test in failed))
    print(f"\n{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
