#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""frame_kinds.py SOURCES PRINT_KINDS: C, the viewer and the page, which node runs, tell the same from the name or the number
of a frame, because their tables are the same."""
import json
import pathlib
import re
import shutil
import string
import subprocess
import sys
import tempfile
import unittest

ROOT, PRINT_KINDS = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1)
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'user/flamegraph'))
from viewer_text import rows_of, text_of  # noqa: E402

FORMS = re.findall(r'^SB_(?:MARK|FORM)\("([^"]+)"', (ROOT / 'user/tree/frames.def').read_text(encoding='utf-8'), re.M)
OTHERS = ('main', '-', '--', '---', '[', ']', '[]', '[unknown]', '[unknown x]', '[Unknown]', '[libc+0x1F]', '[libc+0x1g]', '[libc+0X1]',
          '[+0x1]', '[a+0xg+0x1]', '[php truncated: x]', '[my php truncated: x]', '[ truncated: x]', '[v8 truncated: x]', '/etc/passwd')
LABELS = [*OTHERS, *(form + end for form in FORMS for end in ('', 'x', 'x]', ' x]', ']', ': x]')), *(form[:-1] for form in FORMS)]
SUFFIXES = ['', *(f'_[{letter}]' for letter in string.ascii_letters), '_[k]_[z]', '_[k', '_k]']
NAMES = [label + suffix for label in LABELS for suffix in SUFFIXES]
SCRIPT = 'const clean = (text) => text;\n%s\nfor (const name of %s) { const it = names[nameId(name)]; console.log(it.kind, it.label.length); }'
PAGE_SCRIPT = '%s\nFRAMES.forEach((row, i) => console.log(row[3], OF_KEY[i], row[2]));'


class FrameKinds(unittest.TestCase):
    def test_page(self):
        program = subprocess.run([PRINT_KINDS, 'frames'], capture_output=True, check=True, text=True).stdout.splitlines()
        page = subprocess.run(['node', '-'], capture_output=True, check=True, text=True, input=PAGE_SCRIPT % (
            text_of(str(ROOT / 'user/serve/web/profile.js')))).stdout.splitlines()
        self.assertEqual(page, program)
        self.assertGreaterEqual(len(program), 11)

    def test_rows(self):
        with tempfile.TemporaryDirectory() as work:
            path = pathlib.Path(work) / 'x.def'
            path.write_text('#define ROW(...)\nROW(A, "b, c", D) /* e */\nOTHER(F)\nROW(G)\n', encoding='utf-8')
            self.assertEqual(rows_of(path, 'ROW'), '["A", "b, c", "D"],\n["G"],\n')
            for wrong in '', 'OTHER(A)\n', 'ROW(A)\nROW(B,\n    C)\n', 'ROW(A)\n ROW(B)\n', 'ROW(A)\nROW(B);\n', 'ROW(A)\nROW (B)\n':
                path.write_text(wrong, encoding='utf-8')
                with self.assertRaises(SystemExit):
                    rows_of(path, 'ROW')

    def test_all(self):
        program = subprocess.run([PRINT_KINDS], input='\n'.join(NAMES), capture_output=True, check=True, text=True).stdout.splitlines()
        viewer = subprocess.run(['node', '-'], capture_output=True, check=True, text=True, input=SCRIPT % (
            text_of(str(ROOT / 'user/flamegraph/web/viewer_names.js')), json.dumps(NAMES))).stdout.splitlines()
        self.assertEqual(len(program), len(NAMES))
        self.assertEqual(dict(zip(NAMES, viewer)), dict(zip(NAMES, program)))
        self.assertGreaterEqual(len({line.split()[0] for line in program}), 16)


if __name__ == '__main__':
    if not shutil.which('node'):
        print('skipped: no node')
        sys.exit(77)
    unittest.main()
