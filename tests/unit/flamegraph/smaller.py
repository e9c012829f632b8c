#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""smaller.py SOURCES: user/flamegraph/smaller.py makes the same program of each page, which node judges (smaller.js),
and of what is awkward in the language; what it does not know it refuses. Stylesheets: tests/browser/page.py."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'user/flamegraph'))
import smaller  # noqa: E402
from viewer_text import text_of  # noqa: E402

PAGES = ('user/serve/web/page.js', 'user/flamegraph/web/viewer.js', 'user/output/page.js')
AWKWARD = r'''
(function () {
'use strict'; // two; statements
const first = 1, /* second */ second = '// no comment', third = /[/*"'}]\/(?:a|b)/g;
let counter = first
counter++
let other = counter
;[first, second,].forEach((name) => { counter += String(name).length; })
const minus = counter - -other, plus = counter + +other + ++counter - --other, half = counter / other / 2;
const arrow = ({ second: inner, first, ...others }, [one, , two = first], ...rest) => ({ first, inner, others, one, two, rest });
if (first > 0) ; else { counter = 0; }
for (let i = 0, end = third.length; i < end; i++) if (i) break; else continue;
for (const [key, value] of Object.entries({ document: 1, [second]: 2, 'x-y': 3, 4: 5, })) { console.log(key, value); }
while (counter-- > 0) ;
function declared(page, of_it = first ? second : { third }, more = (a, b) => a + b) {
	try {
		return page.getElementById(of_it).first?.second ?? more;
	} catch (error) {
		return typeof error === 'object' ? /x/.test(error) : [[first]] [0] [0] > 1;
	} finally {
		console.log(1..toString(), 1 .toFixed(), 1.5.toFixed(), 0x1f, 2e-3);
	}
}
async function later() {
	for (const name in window) await declared(name);
	return
	first
}
switch (first) {
case second:
	counter = 1;
	break;
default:
	delete other[first];
}
const holes = [,, 1,,];
console.log(half, minus, plus, arrow, later, location < /r/, counter < !other, document, holes);
})();
'''
REFUSED = {
    'a template': 'const a = `b`;', 'a class': 'class A {}', 'a method': 'const a = { b() {} };', 'a getter': 'const a = { get b() {} };',
    'of as a name': 'const of = 1;', 'a slash after a block': 'if (a) {} /b/.test(c);', 'do': 'do a(); while (b);',
    'a block of a case': 'switch (a) { case 1: { b(); } }', 'a label': 'a: { b(); }',
    'eval': 'eval(a);', 'letters of other scripts': 'const \u00e4 = 1;', 'an open bracket': '(a;', 'an open string': "a('b);",
}


class Smaller(unittest.TestCase):
    def judge(self, text, make=smaller.javascript):
        made = make(text)
        with tempfile.TemporaryDirectory() as directory:
            before, after = pathlib.Path(directory, 'before.js'), pathlib.Path(directory, 'after.js')
            before.write_text(text, encoding='utf-8')
            after.write_text(made, encoding='utf-8')
            node = subprocess.run(['node', '--expose-internals', pathlib.Path(__file__).with_suffix('.js'), before, after],
                                  capture_output=True, text=True, check=False)
        if node.returncode == 77:
            self.skipTest(node.stdout.strip())
        self.assertEqual(node.returncode, 0, node.stderr + made[:2000])
        return made

    def test_pages(self):
        for name in PAGES:
            with self.subTest(name):
                text = text_of(ROOT / name)
                made = self.judge(text)
                print(f'{name}: {len(text)} bytes, {len(made)} made of them')
                self.assertLess(len(made), 0.75 * len(text))

    def test_awkward(self):
        made = self.judge(AWKWARD)
        self.assertNotIn('comment */', made)
        self.assertIn('// no comment', made)

    def test_judge(self):
        """It would see it, also what smaller.py cannot: a name of ours that is the browser's elsewhere."""
        for wrong in (('document', 'window'), ('>', '<'), ('first', 'second'), ('console', 'first')):
            with self.subTest(wrong), self.assertRaises(AssertionError):
                self.judge(AWKWARD, lambda text: text.replace(*wrong))
        with self.assertRaises(AssertionError):
            self.judge(AWKWARD.replace('page', 'document'))

    def test_refused(self):
        for what, text in REFUSED.items():
            with self.subTest(what), self.assertRaises(smaller.Refused):
                smaller.javascript(text)


if __name__ == '__main__':
    if not shutil.which('node'):
        print('skipped: no node')
        sys.exit(77)
    unittest.main()
