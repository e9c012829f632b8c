#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""top: shares that are right, keys and sizes, and a terminal that is afterwards as it was."""
import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import termios

from live import check, done, need_root, running, skip, wait_for
from screen import Screen

STACKBPF, SPLIT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SHARES = {'seventy': 0.7, 'twenty': 0.2, 'ten': 0.1}


@contextlib.contextmanager
def on_screen(pid, *args, **kwargs):
    screen = Screen([STACKBPF, 'top', '--every', '200ms', '--max-overhead=off', '-F', '499', '-p', str(pid),
                     *args], **kwargs)
    try:
        yield screen
    finally:
        screen.close()


def test_shares(pid):
    """Lines, because this is no terminal; by the columns of all since the start."""
    ended = subprocess.run([STACKBPF, 'top', '--max-overhead=off', '-F', '997', '--every', '1', '--count', '4', '-p',
                            str(pid)], capture_output=True, text=True, timeout=240)
    tables = ended.stdout.strip().split('\n\n')
    check(ended.returncode == 0 and len(tables) == 4, f'four tables, {len(tables)}: {ended.stderr}')
    nr = int(re.search(r'in all \S+ s: (\d+) samples', tables[-1])[1])
    for name, share in SHARES.items():
        row = next(line for line in tables[-1].splitlines() if f'  {name}  split' in line)
        is_ = float(row.split()[3]) / 100
        bound = max(0.03, 4.4 * math.sqrt(share * (1 - share) / nr))
        check(abs(is_ - share) < bound, f'{name}: {is_:.3f}, {share} of {nr} samples')
    spin = next(line for line in tables[-1].splitlines() if '  spin  split' in line)
    check(float(spin.split()[2]) > 80, f'their callee has it itself: {spin}')


def test_spans(pid):
    """Only the calls of one function."""
    ended = subprocess.run([STACKBPF, 'top', '--max-overhead=off', '-F', '997', '--every', '1', '--count', '2', '--in', f'{SPLIT}:seventy', '-p',
                            str(pid)], capture_output=True, text=True, timeout=240)
    check(ended.returncode == 0 and '  seventy  split' in ended.stdout and '  twenty  split' not in ended.stdout,
          f'nothing but calls of seventy(): {ended.stdout}{ended.stderr}')
    ended = subprocess.run([STACKBPF, 'top', '--slower-than', '5ms'], capture_output=True, text=True, timeout=240)
    check(ended.returncode == 2 and '--in' in ended.stderr, f'of which calls: {ended.stderr}')


def nr_samples(text):
    return int(re.search(r'last \S+ s: (\d+) samples', text)[1])


def test_keys(pid):
    with on_screen(pid) as screen:
        text = screen.await_text(' seventy ')
        check(screen.is_other and not screen.has_cursor, 'it is on the other screen')
        check(re.search(r'^\s*\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d  spin +split$', text, re.M), f'a row:\n{text}')
        screen.press('s')
        screen.await_(lambda s: '*TOTAL%' in s.text and s.text.splitlines()[10].split()[-2] == 'seventy', 'sorted by total')
        screen.press('/TWEN\r')
        screen.await_(lambda s: ' twenty ' in s.text and ' seventy ' not in s.text, 'only what was searched for')
        screen.press('/\x1b')
        screen.await_text(' seventy ')
        screen.press('f')
        text = screen.await_(lambda s: '|seventy' in s.text and nr_samples(s.text) > 100, 'the tree')
        lines = text.splitlines()
        row = next(line for line in lines if '|seventy' in line)
        width = len(re.search(r'\|seventy *', row)[0])
        # A busy machine leaves few samples in ten seconds.
        bound = max(0.13, 0.02 + 5 * math.sqrt(0.7 * 0.3 / nr_samples(text)))
        check(abs(width / 80 - 0.7) < bound, f'its width, of 80: {width}, +- {80 * bound:.0f}')
        check(max(map(len, lines)) <= 80 and len(lines) <= 24, 'nothing beyond the edge')
        for callee in ('split', '_start', '__libc_start_main', '__libc_start_call_main', 'main', 'work', 'seventy'):
            screen.press('\x1b[B')
            screen.await_(lambda s, name=callee: f'%  {name}' in s.text.splitlines()[22], f'{callee} chosen')
        screen.press('\r')
        screen.await_(lambda s: s.text.splitlines()[4] == '|seventy' and s.text.splitlines()[5][:5] == '|spin', 'zoomed')
        screen.resize(132, 40)
        screen.await_(lambda s: any('? help' in line for line in s.text.splitlines()[39:]), 'the larger screen')
        screen.press('\x1b')
        screen.await_(lambda s: any(line.startswith('|all') for line in s.text.splitlines()), 'the root')
        screen.press('?')
        screen.await_text('reset: discard')
        screen.press('x')
        screen.press('p')
        screen.await_text('paused')
        screen.press('pr')
        screen.await_(lambda s: re.search(r'in all [0-2]\.', s.text), 'begun anew')
        screen.press('q')
        check(screen.end() == 0 and screen.is_as_before(), 'the terminal is as it was, after q')
        check(' samples, 1 process in ' in screen.raw, 'and the closing report is there')


def test_ends(pid):
    for what, end, status in (('Ctrl-C', lambda s: s.press('\x03'), 0),
                              ('SIGTERM', lambda s: os.kill(s.pid, signal.SIGTERM), 0),
                              ('SIGHUP', lambda s: os.kill(s.pid, signal.SIGHUP), 0),
                              ('an abort', lambda s: os.kill(s.pid, signal.SIGABRT), -signal.SIGABRT),
                              ('Ctrl-\\', lambda s: s.press('\x1c'), -signal.SIGQUIT)):
        with on_screen(pid) as screen:
            screen.await_text(' spin ')
            check(termios.tcgetattr(screen.slave) != screen.before, f'{what}: keys come at once before')
            end(screen)
            check(screen.end() == status and screen.is_as_before(), f'the terminal is as it was, after {what}')


def state_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def test_stop(pid):
    with on_screen(pid) as screen:
        screen.await_text(' spin ')
        screen.press('\x1a')
        screen.await_(lambda s: state_of(s.pid) == 'T', 'stopped')
        screen.await_(lambda s: not s.is_other, 'left')
        check(screen.is_as_before(), 'the terminal is as it was, while it is stopped')
        os.kill(screen.pid, signal.SIGCONT)
        screen.await_(lambda s: s.is_other and ' spin ' in s.text, 'it is there again')
        screen.press('q')
        check(screen.end() == 0 and screen.is_as_before(), 'and after it')


def test_colours(pid):
    for env, has in (({}, True), ({'NO_COLOR': '1'}, False)):
        with on_screen(pid, **env) as screen:
            screen.await_text(' spin ')
            screen.press('f')
            screen.await_text('|seventy')
            check(bool(re.search(r'\x1b\[[0-9;]*;(4\d|10\d)m', screen.raw)) == has, f'colours, with {env}: {has}')
            screen.press('q')
            screen.end()


def test_gone(pid):
    """The end of the target, the end of the terminal, of who reads; a terminal that cannot do anything."""
    with running(SPLIT) as target, on_screen(target.pid) as screen:
        screen.await_text(' spin ')
        target.kill()
        check(screen.end() == 0 and screen.is_as_before(), 'the terminal is as it was, when the target has ended')
    with on_screen(pid) as screen:
        screen.await_text(' spin ')
        os.close(screen.slave)
        os.close(screen.master)
        wait_for(screen.has_ended, 'it ends with the terminal')
    ended = subprocess.run(f'{STACKBPF} top --every 200ms -p {pid} | head -1', shell=True, capture_output=True,
                           text=True, timeout=240)
    check(ended.stdout.startswith('oncpu, process'), f'a reader that has enough: {ended}')
    with on_screen(pid, '--count', '2', TERM='dumb') as screen:
        check(screen.end() == 0 and '\x1b' not in screen.raw and 'FUNCTION  MODULE' in screen.raw,
              'a terminal without sequences gets lines')


def test_wrong(pid):
    for args, sentence in ((('--every', '1ms'), 'must be at least 100ms'), (('--window', '1', '--every', '2'), 'shorter'),
                           (('--window', '1h'), 'must be at most 100 times'), (('-o', 'x.svg'), "no option '-o'")):
        ended = subprocess.run([STACKBPF, 'top', *args], capture_output=True, text=True, timeout=240)
        check(ended.returncode == 2 and sentence in ended.stderr, f'{args}: {ended.stderr}')
    screen = Screen([STACKBPF, 'top', '--', 'true'])
    check(screen.end() == 2 and 'write over the screen' in screen.raw, 'a command and the screen are one too many')
    screen.close()
    ended = subprocess.run([STACKBPF, 'live', '-b', '--every', '500ms', '--kind', 'offcpu', '--', 'sleep', '1.2'],
                           capture_output=True, text=True, timeout=240)
    check(ended.returncode == 0 and ' clock_nanosleep ' in ended.stdout, f'lines and a command: {ended}')


def main():
    need_root()
    if not os.path.exists('/dev/ptmx'):
        skip('there are no terminals here')
    with running(SPLIT) as process:
        for test in (test_shares, test_spans, test_keys, test_ends, test_stop, test_colours, test_gone, test_wrong):
            test(process.pid)
    done()


main()
