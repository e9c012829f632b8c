#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""diff_cli.py STACKBPF FLAMEGRAPH STORE_TEXT: `stackbpf diff` of files and of a store, as a user runs it. The truth is computed here from
the text, and by difffolded.pl where it is installed."""
import collections
import fcntl
import json
import os
import pty
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

STACKBPF, FLAMEGRAPH, STORE_TEXT = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
BEFORE = {'app;main;parse': 700, 'app;main;eval': 200, 'app;main;gc_[k]': 100}
AFTER = {'app;main;parse': 500, 'app;main;eval': 400, 'app;main;gc_[k]': 100}


def fold(stacks, header=''):
    return header + ''.join(f'{stack} {weight}\n' for stack, weight in stacks.items())


def draw(shares, number, seed):
    chosen = random.Random(seed).choices(list(shares), list(shares.values()), k=number)
    return dict(collections.Counter(chosen))


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)
        return self.path(name)

    def run_diff(self, *args, text='', expect=0):
        result = subprocess.run([STACKBPF, 'diff', *args], input=text, capture_output=True, text=True,
                                check=False, timeout=240)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def diff(self, a, b, *args):
        """What the JSON says of two dictionaries or texts."""
        a, b = (self.write(name, text if isinstance(text, str) else fold(text))
                for name, text in (('a', a), ('b', b)))
        return json.loads(self.run_diff(a, b, '--format', 'json', *args).stdout)

    def functions(self, *args):
        return {row['name']: row for row in self.diff(*args)['functions']}


class Numbers(Case):
    def test_known_change(self):
        """70/20/10 against 50/40/10, drawn."""
        rows = self.functions(draw(BEFORE, 1000, 1), draw(AFTER, 1500, 2))
        self.assertLess(rows['parse']['z'][0], -3)
        self.assertGreater(rows['eval']['z'][0], 3)
        self.assertLess(abs(rows['gc']['z'][0]), 3)

    def test_no_change(self):
        rows = self.functions(draw(BEFORE, 1000, 3), draw(BEFORE, 1000, 4))
        for row in rows.values():
            self.assertLess(abs(row['z'][0]), 3, row)

    def test_of_itself(self):
        a = self.write('a', fold(BEFORE))
        for row in self.functions(BEFORE, BEFORE).values():
            self.assertEqual(row['z'], [0, 0])
        table = self.run_diff(a, a).stdout
        self.assertNotRegex(table.split('\n\n')[1], r'[+-]\d|~')
        picture = self.run_diff(a, a, '--format', 'svg').stdout
        classes = set(re.findall(r'<g><title>[^<]*</title><rect class="([^"]*)"', picture))
        self.assertEqual(classes, {'root', 'same'})

    def test_swapped(self):
        a, b = draw(BEFORE, 900, 5), draw(AFTER, 400, 6)
        for norm in 'share', 'raw':
            there, back = self.functions(a, b, '--norm', norm), self.functions(b, a, '--norm', norm)
            self.assertEqual(there.keys(), back.keys())
            for name, row in there.items():
                self.assertEqual(row['self'], back[name]['self'][::-1])
                self.assertEqual(row['z'], [-z if z else z for z in back[name]['z']])

    def test_lengths_and_rates(self):
        """A minute at 99 Hz and an hour at 49 Hz of the same work."""
        header = '#stackbpf;v=1;kind=oncpu;unit=samples;dur_us={};hz={}\n'
        a = header.format(60_000_000, 99) + fold({stack: nr * 99 * 60 for stack, nr in BEFORE.items()})
        b = header.format(3600_000_000, 49) + fold({stack: nr * 49 * 3600 for stack, nr in BEFORE.items()})
        for norm in 'share', 'rate':
            for row in self.functions(a, b, '--norm', norm).values():
                self.assertEqual(row['z'], [0, 0])
        for row in self.functions(a, b, '--norm', 'raw').values():
            if row['self'][0]:
                self.assertGreater(row['z'][0], 3)
        # Twice the work in the same time is the same shares.
        b = header.format(60_000_000, 99) + fold({stack: nr * 2 * 99 * 60 for stack, nr in BEFORE.items()})
        self.assertEqual(self.functions(a, b)['parse']['z'], [0, 0])
        self.assertGreater(self.functions(a, b, '--norm', 'rate')['parse']['z'][0], 3)

    def test_totals(self):
        rng = random.Random(7)
        sides = [{';'.join(f'f{rng.randrange(9)}' for _ in range(rng.randrange(1, 12))): rng.randrange(1, 50)
                  for _ in range(300)} for _ in range(2)]
        found = self.diff(*sides)
        for side, stacks in enumerate(sides):
            weight, total = collections.Counter(), collections.Counter()
            for stack, nr in stacks.items():
                weight[stack.split(';')[-1]] += nr
                for name in set(stack.split(';')):
                    total[name] += nr
            self.assertEqual(found['ab'[side]]['total'], sum(stacks.values()))
            self.assertEqual(sum(node['self'][side] for node in found['nodes']), sum(stacks.values()))
            for row in found['functions']:
                self.assertEqual(row['self'][side], weight[row['name']])
                self.assertEqual(row['total'][side], total[row['name']])

    def test_waits(self):
        """Three long waits are three samples."""
        header = '#stackbpf;v=1;kind=offcpu;unit=us;n={}\n'
        few = self.functions(header.format(3) + 'a;wait 3000000\na;run 1\n',
                             header.format(3) + 'a;wait 1000000\na;run 2000000\n')
        many = self.functions(header.format(90000) + 'a;wait 3000000\na;run 1\n',
                              header.format(90000) + 'a;wait 1000000\na;run 2000000\n')
        self.assertLess(abs(few['wait']['z'][0]), 3)
        self.assertLess(many['wait']['z'][0], -3)
        unknown = '#stackbpf;v=1;kind=offcpu;unit=us\na;wait 3000000\na;run 1\n'
        self.assertIsNone(self.functions(unknown, unknown.replace('run 1', 'run 9999999'))['wait']['z'][0])


def read_terminal(fd):
    """What it has, b'' at its end, which Linux reports as an error."""
    try:
        return os.read(fd, 65536)
    except OSError:
        return b''


class Formats(Case):
    def setUp(self):
        super().setUp()
        self.a = self.write('a', fold({**BEFORE, 'app;old;gone': 77}))
        self.b = self.write('b', fold({**AFTER, 'app;new_[k]': 50}))

    def test_table(self):
        table = self.run_diff(self.a, self.b).stdout
        self.assertIn('n = 1,077, \u00b14.3 points', table)
        row = next(line for line in table.splitlines() if line.endswith(' eval'))
        self.assertRegex(row, r'^ +18\.57% +38\.10% +\+19\.53 \u00b1\d\.\d\d ')
        self.assertRegex(self.run_diff(self.a, self.b, '--limit', '1').stdout, r'\.\.\. and \d functions more')
        self.assertEqual(len(self.run_diff(self.a, self.b, '--limit', '0').stdout.splitlines()), 6 + 8)

    def test_on_a_terminal(self):
        """At 80 columns a name stands above its numbers; where there is room, before them. Nothing is wider."""
        long = 'std::map<std::string, std::vector<std::pair<int, long>>, std::less<std::string>>::operator[](std::string&&)'
        a, b = (self.write(name, fold({f'main;{long}': nr, 'main;read': 100})) for name, nr in (('one', 50), ('two', 90)))
        for columns, is_tall in ((80, True), (100, True), (120, False)):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
            subprocess.run([STACKBPF, 'diff', a, b], stdout=theirs, check=True)
            os.close(theirs)
            # One read returns only what the terminal has passed on by then.
            lines = b''.join(iter(lambda: read_terminal(ours), b'')).decode().splitlines()
            os.close(ours)
            self.assertLessEqual(max(map(len, lines)), columns, lines)
            self.assertEqual((lines.count('read'), sum(line.endswith('  read') for line in lines)), (is_tall, not is_tall), lines)
            self.assertTrue(any('std::map<std::string' in line for line in lines), lines)

    def test_folded_is_drawn(self):
        text = self.run_diff(self.a, self.b, '--format', 'folded').stdout
        self.assertIn('app;old;gone 77 0\n', text)
        self.assertIn('app;new_[k] 0 50\n', text)
        drawn = subprocess.run([FLAMEGRAPH], input=text, capture_output=True, text=True, check=True).stdout
        self.assertIn('class="less4 gone"', drawn)
        again = subprocess.run([FLAMEGRAPH, '--extract'], input=drawn, capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual(sorted(line for line in again.splitlines() if line[0] != '#'),
                         sorted(line for line in text.splitlines() if line[0] != '#'))

    def test_difffolded(self):
        peer = shutil.which('difffolded.pl') or shutil.which('difffolded')
        if not peer:
            self.skipTest('difffolded.pl is not installed')
        theirs = subprocess.run([peer, self.a, self.b], capture_output=True, text=True, check=True).stdout
        ours = self.run_diff(self.a, self.b, '--format', 'folded').stdout
        self.assertEqual(sorted(theirs.splitlines()), sorted(ours.splitlines()[1:]))

    def test_picture(self):
        for name in 'out.svg', 'out.html':
            self.run_diff(self.a, self.b, '-o', self.path(name))
            with open(self.path(name), encoding='utf-8') as file:
                picture = file.read()
            for part in ('class="more4 new"', 'class="less4 gone"', 'class="same"', 'shares compared',
                         f'A: {self.a} \u2192 B: {self.b}', 'noise, or no change'):
                self.assertIn(part, picture)
            self.assertRegex(picture, r'gone \(A 7\.15%, B 0%: \u22127\.15 points, z = \u2212\d')
        negated = self.run_diff(self.a, self.b, '--format', 'svg', '--negate').stdout
        self.assertIn('class="more4 gone"', negated)

    def test_light_stack(self):
        """A stack that is much less than a sample does not hide how many samples all others are."""
        a, b = (self.write(name, f'#stackbpf;v=1;kind=offcpu;unit=us;n=1000\nmain;f {weight}\nmain;g 1\n')
                for name, weight in (('a', 100000000), ('b', 50000000)))
        self.assertNotIn('not known', self.run_diff(a, b, '--format', 'svg').stdout)

    def test_prune(self):
        rng = random.Random(9)
        stacks = {f'r;a{rng.randrange(40)};b{rng.randrange(40)}': rng.randrange(1, 9) for _ in range(900)}
        a, b = self.write('many', fold(stacks)), self.write('few', fold({'r;a1;b2': 7}))
        result = self.run_diff(a, b, '--format', 'svg', '--nodes', '50')
        self.assertRegex(result.stderr, r'\d+ small frames were merged')
        text = subprocess.run([FLAMEGRAPH, '--extract'], input=result.stdout, capture_output=True, text=True,
                              check=True).stdout
        weights = [line.split()[-2:] for line in text.splitlines() if line[0] != '#']
        self.assertLessEqual(len(weights), 50)
        self.assertEqual(sum(int(a) for a, _ in weights), sum(stacks.values()))
        self.assertEqual(sum(int(b) for _, b in weights), 7)

    def test_hostile_names(self):
        a = self.write('c', 'a;\x1b[31mred\x07;<script> 5\n')
        table = self.run_diff(a, self.b).stdout
        self.assertNotIn('\x1b', table)
        picture = self.run_diff(a, self.b, '--format', 'html').stdout
        self.assertIn('&lt;script&gt;', picture)

    def test_standard_input(self):
        with open(self.a, encoding='utf-8') as file:
            text = file.read()
        self.assertIn('A: standard input: 1,077', self.run_diff('-', self.b, text=text).stdout)
        self.assertIn('can be only one', self.run_diff('-', '-', expect=2).stderr)


class Store(Case):
    """Two regions, an hour each before and after a change of one of them."""
    FIRST, SECOND = 1795255200, 1795258800
    STACKS = {('eu', FIRST): BEFORE, ('us', FIRST): BEFORE, ('eu', SECOND): AFTER, ('us', SECOND): BEFORE}

    def setUp(self):
        super().setUp()
        lines = [f'{begin + 10 * (i % 3)} oncpu samples region={region},service=car {weight + i} {stack}'
                 for (region, begin), stacks in self.STACKS.items()
                 for i, (stack, weight) in enumerate(stacks.items())]
        self.store = self.path('store')
        subprocess.run([STORE_TEXT, self.store], input='\n'.join(sorted(lines)) + '\n', text=True, check=True)

    def ask(self, *args):
        return json.loads(self.run_diff('--store', self.store, '--format', 'json', *args).stdout)

    def expected(self, sides):
        """{function: [self in A, in B]}"""
        found = {}
        for side, keys in enumerate(sides):
            for key in keys:
                for i, (stack, weight) in enumerate(self.STACKS[key].items()):
                    name = stack.split(';')[-1].replace('_[k]', '')
                    found.setdefault(name, [0, 0])[side] += weight + i
        return found

    def check(self, answer, sides):
        selves = {row['name'].replace('_[k]', ''): row['self'] for row in answer['functions'] if any(row['self'])}
        self.assertEqual(selves, self.expected(sides))

    def test_two_times(self):
        times = ['--from', f'@{self.FIRST}', '--to', f'@{self.FIRST + 60}',
                 '--vs-from', f'@{self.SECOND}', '--vs-to', f'@{self.SECOND + 60}']
        self.check(self.ask(*times), [[('eu', self.FIRST), ('us', self.FIRST)],
                                      [('eu', self.SECOND), ('us', self.SECOND)]])
        answer = self.ask(*times, '--tag', 'region=eu')
        self.check(answer, [[('eu', self.FIRST)], [('eu', self.SECOND)]])
        self.assertEqual(answer['a']['what'],
                         '2026-11-21T10:00:00Z to 2026-11-21T10:00:30Z, region=eu')
        z = {row['name']: row['z'][0] for row in answer['functions']}
        self.assertLess(z['parse'], -3)
        # The same, out of files that query wrote.
        paths = []
        for begin in self.FIRST, self.SECOND:
            paths.append(self.path(f'{begin}.folded'))
            subprocess.run([STACKBPF, 'query', '--store', self.store, '--from', f'@{begin}', '--to', f'@{begin + 60}',
                            '--tag', 'region=eu', '-o', paths[-1]], check=True, capture_output=True)
        files = json.loads(self.run_diff(*paths, '--format', 'json').stdout)
        self.assertEqual({row['name'].replace('_[k]', ''): (row['self'], row['z']) for row in files['functions']},
                         {row['name'].replace('_[k]', ''): (row['self'], row['z']) for row in answer['functions']})

    def test_two_sets_of_tags(self):
        answer = self.ask('--from', f'@{self.SECOND}', '--to', f'@{self.SECOND + 60}', '--tag', 'region=us',
                          '--vs-tag', 'region=eu')
        self.check(answer, [[('us', self.SECOND)], [('eu', self.SECOND)]])
        self.assertGreater({row['name']: row['z'][0] for row in answer['functions']}['eval'], 3)

    def test_nothing_then(self):
        result = self.run_diff('--store', self.store, '--from', f'@{self.FIRST}', '--to', f'@{self.FIRST + 60}',
                               '--vs-tag', 'region=nowhere', expect=3)
        self.assertIn('no oncpu data with these tags was recorded', result.stderr)

    def test_wrong_ranges(self):
        """The message names the options of the side that is wrong, and says what to do."""
        first = ['--store', self.store, '--from', f'@{self.FIRST}', '--to', f'@{self.FIRST + 60}']
        for args, status, sentence in (
                (['--vs-from', '10s'], 2, '--vs-from 10s --vs-to now: the start is not a valid time: try -1h'),
                (['--vs-from', '-10s', '--vs-to', '-1h'], 2,
                 '--vs-from -10s --vs-to -1h: the range ends before it begins; choose an earlier start or a later end'),
                (['--vs-from', '+10s'], 2, '--vs-from +10s --vs-to now: the range begins in the future; choose an earlier'),
                (['--vs-from', '2026-01-01', '--vs-to', '2026-01-02'], 3,
                 '; choose --vs-from and --vs-to in that range')):
            result = self.run_diff(*first, *args, expect=status)
            self.assertIn(sentence, result.stderr)
            self.assertEqual(result.stderr.count('\n'), 1, result.stderr)

    def test_long_names(self):
        """They are told of where the answer has them."""
        subprocess.run([STORE_TEXT, self.path('long')], text=True, check=True, input=''.join(
            f'{self.FIRST} oncpu samples service={service} 5 app;{name}\n' for service, name in (('car', 'f' * 600), ('web', 'g'))))
        for rule, words in ('service=car', '1 name in the result was longer than 512 bytes'), ('service=web', ''):
            result = subprocess.run([STACKBPF, 'query', '--store', self.path('long'), '--from', f'@{self.FIRST}', '--to',
                                     f'@{self.FIRST + 10}', '--tag', rule], capture_output=True, text=True, check=True)
            self.assertIn(words, result.stderr)
            self.assertEqual(bool(words), bool(result.stderr), result.stderr)

    def test_held_memory(self):
        """Byte-seconds are no count: what memory always varies by is noise. A table shows the mean of the bytes."""
        rng, nr = random.Random(1), 24
        held = [(self.FIRST + 10 * i, name, round(40 * rng.uniform(0.5, 1.5) * 2**30)) for i in range(2 * nr) for name in ('cache', 'index')]
        subprocess.run([STORE_TEXT, self.path('memory')], text=True, check=True, input=''.join(
            f'{begin} memory byte-seconds service=car {weight} app;{name}\n' for begin, name, weight in held))
        self.store, middle, end = self.path('memory'), self.FIRST + 10 * nr, self.FIRST + 20 * nr
        answer = self.ask('--kind', 'memory', '--from', f'@{self.FIRST}', '--to', f'@{middle}', '--vs-from', f'@{middle}', '--vs-to', f'@{end}')
        self.assertEqual({row['name'] for row in answer['functions'] if abs(row['z'][0]) > 3}, set(), answer)
        query = subprocess.run([STACKBPF, 'query', '--store', self.store, '--kind', 'memory', '--from', f'@{self.FIRST}', '--to', f'@{end}'],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn(f'memory: {sum(weight for _, _, weight in held)} byte-seconds, below as the mean of the bytes held', query[0])
        for name in 'cache', 'index':
            mean = sum(weight for _, each, weight in held if each == name) / (20 * nr)
            self.assertTrue(any(f' {mean / 2**30:.2f} GiB ' in line and f' {name} ' in line for line in query), query)


class Mistakes(Case):
    def test_sentences(self):
        a = self.write('a', fold(BEFORE))
        two = self.write('two', 'a;b 1 2\n')
        us = self.write('us', '#stackbpf;v=1;unit=us\na 1\n')
        empty = self.write('empty', '')
        for args, status, sentence in (
                (['nothing', a], 1, "cannot read 'nothing'"),
                ([a], 2, 'name two files'),
                ([a, a, a], 2, 'name two files'),
                ([], 2, 'a second profile is missing'),
                ([a, a, '--vs-from', '-1h'], 2, 'but not both'),
                ([a, two], 1, 'two counts on each line'),
                ([a, us], 1, 'different units'),
                ([a, empty], 3, 'contains no stacks'),
                ([a, a, '--norm', 'rate'], 1, 'needs the duration'),
                ([a, a, '--format', 'pdf'], 2, 'is not a format'),
                ([a, a, '-o', '/nowhere/x.svg'], 1, "cannot write '/nowhere/x.svg'"),
                (['--vs-from', '-1h', '--store', '/nowhere'], 1, 'there is no store')):
            result = self.run_diff(*args, expect=status)
            self.assertIn(sentence, result.stderr)
            self.assertEqual(result.stderr.count('\n'), 1, result.stderr)


if __name__ == '__main__':
    unittest.main()
