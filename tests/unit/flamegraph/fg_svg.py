#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The picture as others read it: Python's XML parser, gzip and base64, on ordinary and on hostile
input. fg_svg.py FLAMEGRAPH"""
import base64
import gzip
import random
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

FLAMEGRAPH = sys.argv.pop(1)
SVG = '{http://www.w3.org/2000/svg}'
OWN = '{urn:stackbpf}'

HOSTILE = [
    b'<script>alert(1)</script>', b'"><svg onload=alert(1)>', b"' onmouseover='x", b'&amp;&#0;&bogus;',
    b']]>', b'<![CDATA[', b'--><!--', b'\x00\x01\x1b[31m\x7f', b'\xff\xfe\xc0\xaf', b'\xed\xa0\x80',
    b'\xf4\x90\x80\x80', b'\xef\xbf\xbe', b'\xe2\x80\xaeevil', b'javascript:alert(1)',
    '\u4f60\u597d \U0001f525 \u05e9'.encode(), b'operator new 12', b'</title></g></svg>', b'{{x}}',
    b'${x}', b'%s%n', b'\\u003cb\\u003e', b'a' * 20000, b'</metadata><script>x</script>', b'', b' ',
    b'_[k]', b'[', b'<folded>AAAA</folded>',
]


def draw(folded, *options, status=0):
    done = subprocess.run([FLAMEGRAPH, '--quiet', *options], input=folded, capture_output=True,
                          check=False)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done.stdout


def frames(svg):
    """(name, weight text, share text) of each box of the static drawing."""
    group = ElementTree.fromstring(svg).find(f"{SVG}g[@id='frames']")
    titles = [box.find(f'{SVG}title').text for box in group]
    return [found.groups() for found in
            (re.fullmatch(r'(.*) \((.*), (.*)\)', title, re.S) for title in titles) if found]


def random_stacks(seed, names):
    pick = random.Random(seed)
    lines = []
    for _ in range(300):
        stack = b';'.join(pick.choice(names) for _ in range(pick.randint(1, 12)))
        lines.append(stack + b' %d' % pick.randint(1, 500))
    return b'\n'.join(lines) + b'\n'


def merged(folded):
    sums = {}
    for line in folded.splitlines():
        if line.startswith(b'#'):
            continue
        stack, weight = line.rsplit(b' ', 1)
        sums[stack] = sums.get(stack, 0) + int(weight)
    return sums


class Picture(unittest.TestCase):
    def check_safe(self, svg):
        """Well-formed, and nothing in it that runs or loads except the one script."""
        root = ElementTree.fromstring(svg)
        for element in root.iter():
            self.assertIn(element.tag.split('}')[0] + '}', (SVG, OWN))
            for name, value in element.attrib.items():
                self.assertFalse(name.lower().startswith('on'), name)
                self.assertNotIn('href', name)
                self.assertNotRegex(value, '(?i)^(javascript|data):')
        self.assertEqual(len(list(root.iter(f'{SVG}script'))), 1)
        self.assertNotIn(b'<!DOCTYPE', svg)
        outside = set(re.findall(rb'https?://[^"\' <)]+', svg))
        self.assertLessEqual(outside, {b'http://www.w3.org/2000/svg', b'http://www.w3.org/1999/xhtml'})
        self.assertNotRegex(svg, rb'(?i)@import|url\((?!#)')
        return root

    def test_hostile_names(self):
        for seed in range(20):
            self.check_safe(draw(random_stacks(seed, HOSTILE)))

    def test_hostile_bytes(self):
        pick = random.Random(7)
        for _ in range(20):
            noise = bytes(pick.randrange(256) for _ in range(400)).replace(b'\n', b';')
            self.check_safe(draw(noise + b';end 3\n'))

    def test_hostile_metadata(self):
        head = b'#stackbpf;kind=<b>;unit="\'>;dur_us=99999999999999999999;n=-1;lost=<x>;nosym=]]>\n'
        self.check_safe(draw(head + b'a;b 1\n'))

    def test_hostile_titles(self):
        text = '</title><script>x</script>]]>'
        svg = draw(b'a 1\n', '--title', text, '--subtitle', text, '--notes', text, '--countname', text,
                   '--nametype', text, '--fonttype', text)
        root = self.check_safe(svg)
        self.assertEqual(root.find(f'{SVG}title').text, text)

    def test_data_by_python(self):
        """Anyone can take the data out without us."""
        folded = b'#stackbpf;v=1;kind=oncpu;lost=0\n' + random_stacks(3, [b'main', b'f_[k]', b'g h', b'x'])
        for options in ((), ('--inverted',), ('--sort', 'weight')):
            root = ElementTree.fromstring(draw(folded, *options))
            packed = root.find(f'{SVG}metadata/{OWN}folded').text
            text = gzip.decompress(base64.b64decode(packed))
            self.assertTrue(text.startswith(folded.split(b'\n')[0] + b'\n'))
            self.assertEqual(merged(text), merged(folded))
            # No time, no name: the same bytes tomorrow.
            self.assertEqual(base64.b64decode(packed)[3:8], b'\0\0\0\0\0')

    def test_extract(self):
        folded = random_stacks(4, HOSTILE[-10:] + [b'main', b'f'])
        svg = draw(folded)
        text = subprocess.run([FLAMEGRAPH, '--extract'], input=svg, capture_output=True, check=True)
        packed = ElementTree.fromstring(svg).find(f'{SVG}metadata/{OWN}folded').text
        self.assertEqual(text.stdout, gzip.decompress(base64.b64decode(packed)))
        self.assertEqual(draw(text.stdout), svg)

    def test_figures(self):
        """Weights and shares in the boxes against sums made here."""
        folded = random_stacks(5, [b'main', b'f', b'g', b'h'])
        sums = merged(folded)
        total = sum(sums.values())
        shown = {}
        for name, weight, share in frames(draw(folded, '--minwidth', '0')):
            shown.setdefault(name, []).append((weight, share))
        self.assertEqual(shown.pop('all'), [(f'{total:,} samples', '100%')])
        expected = {}
        for stack, weight in sums.items():
            parts = stack.split(b';')
            for depth in range(1, len(parts) + 1):
                path = tuple(parts[:depth])
                expected[path] = expected.get(path, 0) + weight
        by_name = {}
        for path, weight in expected.items():
            by_name.setdefault(path[-1].decode(), []).append(
                f'{weight:,} sample' + 's' * (weight != 1))
        self.assertEqual({name: sorted(boxes) for name, boxes in by_name.items()},
                         {name: sorted(weight for weight, _ in boxes) for name, boxes in shown.items()})

    def test_nothing_is_lost(self):
        """What is not drawn is in boxes that say how much they stand for."""
        folded = b''.join(b'main;f%d;g 1\n' % i for i in range(5000)) + b'main;big 5000\n'
        boxes = frames(draw(folded))
        self.assertIn(('\u2026 10000 frames'.replace('10000', '10,000'), '5,000 samples', '50.0%'), boxes)
        self.assertIn(('big', '5,000 samples', '50.0%'), boxes)

    def test_too_much_to_keep(self):
        """Beyond the bound the file keeps what it draws, with marks, and says so."""
        root_name = b'r' * 4000
        folded = b''.join(root_name + b';%s%05d;leaf 1\n' % (b'x' * 4000, i) for i in range(6000))
        svg = draw(folded)
        root = self.check_safe(svg)
        self.assertIn('not kept in this file', root.find(f"{SVG}g[@id='head']/{SVG}text[@id='subtitle']").text)
        text = gzip.decompress(base64.b64decode(root.find(f'{SVG}metadata/{OWN}folded').text))
        self.assertEqual(merged(text), {root_name + b';[truncated: 12000 frames not kept]': 6000})
        self.assertLess(len(svg), 200_000)

    def test_empty(self):
        self.check_empty(draw(b'', status=2))
        self.check_empty(draw(b'# nothing\n', status=2))

    def check_empty(self, svg):
        texts = [text.text for text in ElementTree.fromstring(svg).iter(f'{SVG}text')]
        self.assertIn('no samples', texts)

    def test_deterministic(self):
        folded = random_stacks(6, HOSTILE)
        for options in ((), ('--random',), ('--hash',), ('--color-by', 'module')):
            self.assertEqual(draw(folded, *options), draw(folded, *options))
        lines = folded.splitlines(True)
        random.Random(1).shuffle(lines)
        self.assertEqual(draw(b''.join(lines)), draw(folded))


if __name__ == '__main__':
    unittest.main()
