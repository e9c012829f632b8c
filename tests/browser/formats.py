#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""formats.py WRITE_FORMATS NPM_DIR DIR: the page and speedscope in headless Chromium. The truth is computed from the
stacks. Screenshots go to DIR."""
import base64
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'formats'))
import readers  # noqa: E402
import sample  # noqa: E402
from webdriver import browser  # noqa: E402

NR_NODES = 8192
WRITE_FORMATS = NPM_DIR = DIR = BROWSER = None


def large():
    """A tree of as many nodes as a picture is meant for."""
    names = [f'{verb}_{noun}' for verb in ('parse', 'eval', 'read', 'sort', 'hash') for noun in ('row', 'key', 'tree')]
    stacks, nodes, i = [], set(), 0
    while len(nodes) < NR_NODES:
        digits, path, rest = i * 7919, [], i
        while len(path) < 6 + digits % 11:
            path.append(names[rest % len(names)])
            rest = rest * 31 // 7 + 1
        stack = [sample.Frame(sample.ROOT, f'server-{i % 3}'), *(sample.code(name) for name in path)]
        if i % 4 == 0:
            stack.append(sample.Frame(sample.KERNEL, f'vfs_{i % 9}', '[kernel]'))
        stacks.append((stack, 1 + digits % 97 * (i % 13 == 0)))
        nodes.update(tuple(frame.name for frame in stack[:depth]) for depth in range(1, len(stack) + 1))
        i += 1
    return sample.Profile({'kind': 'oncpu', 'unit': 'samples', 'dur_us': '60000000', 'lost': '3'}, stacks)


class Formats(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='formats-browser-')
        self.addCleanup(scratch.cleanup)
        self.scratch, self.page = scratch.name, BROWSER
        self.page.open('about:blank')
        self.page.prefer(prefers_color_scheme='light', prefers_reduced_motion='reduce')
        self.page.console()

    def show(self, profile, title=None):
        path = profile.write(WRITE_FORMATS, self.scratch, 'html', title=title)['html']
        self.page.open(pathlib.Path(path).as_uri())
        self.ready()

    def ready(self):
        self.page.wait("const svg = document.querySelector('svg.page'); return svg && svg.dataset.state === 'ready'")

    def table(self):
        """{(function, module, file): (self, total)}"""
        rows = self.page.run("""return [...document.querySelectorAll('#table tbody tr')].map((row) =>
            [...row.cells].map((cell) => [cell.firstChild.data, cell.lastChild.textContent]));""")
        number = lambda cell: int(cell[0].replace(',', ''))  # noqa: E731
        return {(row[-1][0], row[-1][1] if row[-1][1] != row[-1][0] else ''): (number(row[0]), number(row[2]))
                for row in rows}

    def test_page(self):
        profile = sample.ordinary(hz='99')
        self.show(profile, 'A <title> & more')
        self.assertEqual(self.page.run('return document.title'), 'A <title> & more')
        self.assertIn('926 samples in 5 s', self.page.run("return document.querySelector('#subtitle').textContent"))
        self.page.click(self.page.run("return document.querySelector('#open-table')"))

        def key(frame):
            place = ' '.join(part for part in (frame.module, frame.file) if part)
            return frame.name, ' ' + place if frame.file or frame.module else ''
        want = profile.functions(key)
        # A module that is not known leaves its place.
        self.assertEqual({(name, place.strip()): row for (name, place), row in self.table().items()},
                         {(name, place.strip()): row for (name, place), row in want.items()})
        facts = self.page.run("return [...document.querySelectorAll('#table dd')].map((dd) => dd.textContent)")
        # The program has an order of its own for those that it knows.
        self.assertCountEqual(facts, profile.facts.values())
        order = lambda: self.page.run(  # noqa: E731
            "return [...document.querySelectorAll('#table tbody td:last-child')].map((td) => td.firstChild.data)")
        self.assertEqual(order()[0], 'eval')
        self.page.run("document.querySelectorAll('#table th button')[1].click()")
        self.assertEqual(order()[0], 'app-12/13')
        self.page.run("document.querySelectorAll('#table th button')[2].click()")
        self.assertEqual(order(), sorted(order()))
        # A function of the table is looked for in the picture.
        self.page.run("""[...document.querySelectorAll('#table tbody td:last-child')]
            .find((td) => td.firstChild.data === 'Foo::bar(int, std::map<int, char> const&)').click()""")
        self.page.wait("return document.querySelector('#tools output').textContent.startsWith('1 frame matches')")
        self.assertEqual(self.page.run("return document.querySelectorAll('#frames .match').length"), 1)
        self.assertEqual(self.page.console(), [])

    def test_picture_is_alive(self):
        """Zoom, search and dark mode are those of the SVG."""
        self.show(sample.ordinary())
        self.page.press('/', *'parse')
        self.page.wait("return document.querySelector('#frames.searching')")
        share = 573 / 926 * 100
        self.assertIn(f'{share:.1f}%', self.page.run("return document.querySelector('#tools output').textContent"))
        self.page.press('Escape', 'd')
        self.assertEqual(self.page.run("return getComputedStyle(document.body).backgroundColor"), 'rgb(23, 25, 29)')
        nr = self.page.run("return document.querySelectorAll('#frames > g').length")
        self.page.click(self.page.run("""return [...document.querySelectorAll('#frames > g')]
            .find((group) => group.box.level === 1).querySelector('rect')"""))
        self.page.wait("return location.hash.includes('z=1,')")
        self.ready()
        self.assertLess(self.page.run("return document.querySelectorAll('#frames > g').length"), nr)
        self.assertEqual(self.page.console(), [])

    def test_hostile(self):
        profile = sample.hostile()
        self.show(profile, '</title>' + sample.HOSTILE[0])
        self.page.click(self.page.run("return document.querySelector('#open-table')"))
        names = self.page.run(
            "return [...document.querySelectorAll('#table tbody td:last-child')].map((td) => td.firstChild.data)")
        self.assertEqual(set(names), {sample.clean(frame.name) for stack, _ in profile.stacks for frame in stack})
        self.assertTrue(self.page.run("return typeof hit === 'undefined'"))
        self.assertEqual(self.page.run("return document.querySelectorAll('img, iframe').length"), 0)
        self.assertEqual(self.page.run("return document.scripts.length"), 2)
        self.assertEqual(self.page.run("return performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(self.page.console(), [])

    def test_large(self):
        """To be looked at."""
        self.show(large())
        self.page.screenshot(f'{DIR}/page-light.png')
        self.page.prefer(prefers_color_scheme='dark')
        self.page.click(self.page.run("return document.querySelector('#open-table')"))
        self.page.screenshot(f'{DIR}/page-dark.png')
        self.assertEqual(self.page.console(), [])

    def speedscope(self, path, name):
        """The rows of its table of functions: [(name, self, total)]."""
        root = readers.of_npm(NPM_DIR) / 'speedscope/dist/release/index.html'
        data = base64.b64encode(pathlib.Path(path).read_bytes()).decode()
        script = pathlib.Path(self.scratch) / 'load.js'
        script.write_text(f'speedscope.loadFileFromBase64({name!r}, {data!r})', encoding='ascii')
        self.page.open('about:blank')
        self.page.open(f'{root.as_uri()}#localProfilePath={script}')
        self.page.wait("return document.body.textContent.includes('Sandwich')")
        self.page.press('3')
        rows = self.page.wait("""
            const rows = [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')]
                .map((cell) => cell.textContent)).filter((cells) => cells.length);
            return rows.length && rows;""")
        number = lambda text: int(text.split(' ')[0].replace(',', ''))  # noqa: E731
        return sorted((function, number(own), number(total)) for total, own, function in rows)

    def test_speedscope(self):
        """Its own importer, of the file for it and of pprof's; all functions have room in the window."""
        profile = sample.ordinary()
        paths = profile.write(WRITE_FORMATS, self.scratch, 'speedscope', 'pprof')
        inlined = (sample.INLINED, sample.KERNEL_INLINED)
        # Of a location of pprof's, it takes the outermost function only.
        outer = sample.Profile({}, [([frame for frame in stack if frame.kind not in inlined], weight)
                                    for stack, weight in profile.stacks])
        for path, name, truth in ((paths['speedscope'], 'a.speedscope.json', profile), (paths['pprof'], 'a.pb.gz', outer)):
            have = self.speedscope(path, name)
            self.page.screenshot(f'{DIR}/{name}.png')
            rows = truth.functions(lambda frame: (frame.name, frame.module, frame.file))
            self.assertEqual(have, sorted((function[0], *row) for function, row in rows.items()), name)


def main():
    global BROWSER, WRITE_FORMATS, NPM_DIR, DIR
    WRITE_FORMATS, NPM_DIR, DIR = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
    with browser() as BROWSER:
        unittest.main()


if __name__ == '__main__':
    main()
