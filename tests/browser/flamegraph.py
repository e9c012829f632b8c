#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""flamegraph.py FLAMEGRAPH DIR: the picture as a person uses it, in headless Chromium. The truth of
every figure is computed here from the folded text. Screenshots go to DIR."""
import base64
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from steps import share
from webdriver import CHROMIUM_ARGS, ELEMENT, browser

# In A and in B: the same, more, less, gone, new, and what may be chance.
COMPARED = {
    'app;main;parse;lex': (300, 310), 'app;main;parse;old_alloc': (200, 0), 'app;main;render;draw': (300, 450),
    'app;main;render;draw;blit': (100, 300), 'app;main;render;rare': (1, 2), 'app;main;io;read_[k]': (99, 20),
    'app;main;cache;lookup': (0, 120),
}
NR_NARROW = 400  # a millionth of the whole each: only to be seen when zoomed in
SVG = '{http://www.w3.org/2000/svg}'
CONTRAST_MIN = 4.5  # WCAG 2.1, level AA
HOSTILE = [
    '</script><script>hit=1</script>', ']]>', '<![CDATA[', '"><img src=x onerror=hit=1>',
    "' onmouseover='hit=1", '<svg onload=hit=1>', 'javascript:hit=1', '&lt;b&gt;&amp;&#0;',
    '${hit=1}', '--><script>hit=1</script>', '\u4f60\u597d', '</text></g></svg>', '__proto__',
    'constructor', '\\u003cscript\\u003e',
]
# Recursion, so that matches overlap; kernel, inlined, unnamed and cut frames.
ORDINARY = {
    'app;main;parse;read_file_[i];alloc': 250, 'app;main;parse;alloc;alloc_slow;alloc': 130,
    'app;main;parse': 70, 'app;main;eval;eval;eval;alloc': 90, 'app;main;eval;Alloc_big': 33,
    'app;main;eval;vfs_read_[k];copy_user_[k]': 117, 'app;[unknown];[libx.so+0x12]': 11,
    'db;start_thread;std::vector<int, std::allocator<int> >::push_back(int const&)': 160,
    'db;start_thread;query;eval;alloc': 40, 'db;[truncated: no frame pointer];query': 99,
}
# What the views write; kinds of frames as flamegraph(1) has them.
VIEWS = {
    'oncpu': ('kind=oncpu;unit=samples', {
        'perl;main;perl_run;{main}_[p];My::work_[p];Perl_pp_sort;main::__ANON___[p]': 390,
        'perl;main;perl_run;{main}_[p];My::work_[p];Perl_pp_match;S_regmatch_[i]': 300,
        'perl;main;perl_run;{main}_[p];My::work_[p];Perl_pp_sysread;read;vfs_read_[k]': 200,
        'python;main;[python truncated: too deep];Query.run_[p];[unreadable python frame]_[p]': 80,
        'node;main;runMicrotasks_[p];tick_[j];alloc': 10,
        'app;[unknown x];[Unknown];[a+0x1F];[a+0X1f];[a+0xg+0x1]': 15,
    }),
    'offcpu': ('kind=offcpu;unit=us;idle=250000', {
        'app;main;read;vfs_read_[k];schedule_[k]': 900, 'app;main;poll;schedule_[k];[idle: epoll]': 700,
        '[idle];app;[libx.so+0x12];worker;futex_wait_[k];schedule_[k]': 800, '[runqueue];app;main;work': 300,
        '[throttled];app;main;work': 200,
    }),
    'offwake': ('kind=offwake;unit=us', {
        'sh;main;wait4;do_wait;schedule;--;__wake_up;do_exit;main;make': 900,
        'sh;main;read;pipe_read_[k];schedule_[k];--;pipe_write_[w];write_[w];cat_[w]': 700,
        '[idle];sh;main;--;up;make': 100,
    }),
    'io': ('kind=io;unit=bytes', {
        'tar;main;dump;sys_read;/usr/share/doc/a b': 5_000_000, 'tar;main;dump;sys_write;[pipe]': 4_000_000,
        'tar;main;sys_user_function;f;sys_read;[socket: tcp]': 2_000_000, 'tar;main;sys_fsync': 500_000,
        'db;run_[i];sys_pread64_[k];[unknown]_[f]': 900_000, 'db;run;sys_read;name.txt': 400_000,
    }),
    'wall': ('kind=wall;unit=us;accounted=99.7', {
        'app;main;lex;[running]': 900, 'app;main;lex;[runqueue]': 200, 'app;main;[throttled]': 300,
        'app;main;read;vfs_read_[k];[blocked]': 800, 'app;[running: not sampled]': 150, '[residual]': 20,
    }),
}
HEADER = '#stackbpf;v=1;kind=oncpu;unit=samples;dur_us=5000000;n=1000;lost=7;trunc=99;nosym=11\n'
BROWSER = None
FLAMEGRAPH, DIR = None, None


def fold(stacks):
    return ''.join(f'{stack} {weight}\n' for stack, weight in stacks.items())


def narrow():
    return {'main;big': 1_000_000, **{f'main;n{i:03}': 1 for i in range(NR_NARROW)}}


def label(name):
    return re.sub(r'_\[[kijwfz]\]$', '', name)


def search(stacks, pattern, flags=0):
    """(number of boxes that match, share of all); a stack counts once however often it matches."""
    boxes, weight = set(), 0
    for stack, count in stacks.items():
        names = stack.split(';')
        hits = [i for i, name in enumerate(names) if re.search(pattern, label(name), flags)]
        boxes.update(tuple(names[:i + 1]) for i in hits)
        weight += count if hits else 0
    return len(boxes), weight / sum(stacks.values())


def totals(stacks, reverse=False):
    """The weight of every path."""
    sums = {}
    for stack, count in stacks.items():
        names = stack.split(';')[::-1 if reverse else 1]
        for depth in range(1, len(names) + 1):
            path = tuple(names[:depth])
            sums[path] = sums.get(path, 0) + count
    return sums


def draw(folded, *options):
    return subprocess.run([FLAMEGRAPH, '--quiet', *options], input=folded.encode(),
                          capture_output=True, check=True).stdout


class Viewer(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='fg-browser-')
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.page = BROWSER
        self.page.open('about:blank')
        self.page.prefer(prefers_color_scheme='light', prefers_reduced_motion='no-preference')
        self.page.console()

    def tearDown(self):
        self.assertEqual(self.page.console(), [])

    # ---- what a person does and sees ----

    def ready(self):
        self.page.wait("return document.documentElement.dataset.state === 'ready'")

    def show(self, folded, *options, state=''):
        path = self.scratch / 'graph.svg'
        path.write_bytes(draw(folded, *options))
        self.page.open(path.as_uri() + state)
        self.ready()

    def boxes(self, classes=''):
        """The accessible name of every box drawn."""
        return self.page.run("""
            return [...document.querySelectorAll('#frames > g' + arguments[0])]
                .map((box) => box.getAttribute('aria-label'));""", classes)

    def box(self, name, nth=0):
        """The box whose accessible name starts with @name."""
        found = self.page.run("""
            return [...document.querySelectorAll('#frames > g')].filter((box) =>
                box.getAttribute('aria-label').startsWith(arguments[0] + ', '))[arguments[1]];
            """, name, nth)
        self.assertIsNotNone(found, name)
        return found

    def width(self, box):
        return self.page.run('return arguments[0].getBoundingClientRect().width', box)

    def whole_width(self):
        return self.width(self.box('all'))

    def is_whole(self, name):
        return abs(self.width(self.box(name)) - self.whole_width()) < 1

    def text(self, selector):
        return self.page.run('return document.querySelector(arguments[0]).textContent', selector)

    def active(self):
        return self.page.run("return document.activeElement.getAttribute('aria-label')")

    def state(self):
        return self.page.run('return decodeURIComponent(location.hash)')

    def zoom(self, name):
        self.page.click(self.box(name))
        self.ready()

    def press(self, *keys):
        self.page.press(*keys)
        self.ready()

    def find(self, pattern):
        self.press('/')
        self.page.press(*pattern)
        self.page.wait("return location.hash.includes('q=' + encodeURIComponent(arguments[0]))",
                       pattern)
        self.ready()

    def found(self, stacks, pattern, flags=0):
        nr, part = search(stacks, pattern, flags)
        return f"{nr} frame{' matches' if nr == 1 else 's match'}, {share(part)} of all"

    def contrasts(self):
        """(ratio, text) of all words on what is behind them, as WCAG computes it."""
        return self.page.run("""
            const rgb = (css) => css.match(/[\\d.]+/g).slice(0, 3).map(Number);
            const light = (css) => rgb(css).map((c) => c / 255)
                .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
            const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) /
                (Math.min(light(a), light(b)) + 0.05);
            const style = (element) => getComputedStyle(element);
            const ground = style(document.getElementById('bg')).fill, found = [];
            const faded = (fill, part) => 'rgb(' + rgb(fill).map((c, i) =>
                c * part + rgb(ground)[i] * (1 - part)).join() + ')';
            for (const text of document.querySelectorAll('#frames text')) {
                const behind = style(text.previousElementSibling);
                if (behind.fill.startsWith('rgb'))
                    found.push([ratio(style(text).fill, faded(behind.fill, behind.opacity)),
                        text.textContent]);
            }
            for (const text of document.querySelectorAll('#head text'))
                found.push([ratio(style(text).fill, ground), text.textContent]);
            for (const text of document.querySelectorAll('#status span, #tools output'))
                found.push([ratio(style(text).color, ground), text.textContent]);
            for (const button of document.querySelectorAll('#tools button:enabled, #tools input'))
                found.push([ratio(style(button).color, style(button).backgroundColor),
                    button.textContent]);
            return found;""")

    def pixels(self, png, part):
        """How many colours there are in a part (x, y, width, height; shares) of a screenshot."""
        self.page.open('about:blank')
        return self.page.run("""
            const image = new Image(), [x, y, w, h] = arguments[1];
            image.src = 'data:image/png;base64,' + arguments[0];
            return image.decode().then(() => {
                const canvas = document.createElement('canvas');
                canvas.width = image.width;
                canvas.height = image.height;
                const context = canvas.getContext('2d');
                context.drawImage(image, 0, 0);
                const data = context.getImageData(x * image.width, y * image.height,
                    w * image.width, h * image.height).data;
                return new Set(new Uint32Array(data.buffer)).size;
            });""", base64.b64encode(png).decode(), part)

    # ---- opening ----

    def test_open(self):
        self.show(HEADER + fold(ORDINARY))
        self.assertEqual(self.text('#title'), 'On-CPU flame graph')
        self.assertEqual(self.text('#subtitle'), '1,000 samples in 5 s \u00b7 7 lost (0.70%) \u00b7 '
                         '99 stacks truncated (9.90%) \u00b7 11 frames unnamed')
        self.assertEqual(self.page.run(
            "return [...document.querySelectorAll('#legend text')].map((text) => text.textContent)"),
            ['user', 'kernel', 'inlined', 'no name', 'truncated'])
        total = sum(ORDINARY.values())
        expected = [f'all, {total:,} samples, 100% of all']
        expected += [f'{label(path[-1])}, {weight:,} samples, {share(weight / total)} of all'
                     for path, weight in totals(ORDINARY).items()]
        self.assertEqual(sorted(self.boxes()), sorted(expected))
        self.page.screenshot(DIR / 'light.png')

    def test_widths(self):
        self.show(fold(ORDINARY))
        total, whole = sum(ORDINARY.values()), self.whole_width()
        for name in ('app', 'db', 'main', 'parse'):
            weight = next(w for path, w in totals(ORDINARY).items() if path[-1] == name)
            self.assertAlmostEqual(self.width(self.box(name)), weight / total * whole, delta=1.5)

    def test_size_of_window(self):
        self.show(fold(ORDINARY))
        for width in (520, 700, 1280):
            self.page.call('POST', 'window/rect', {'width': width, 'height': 900})
            # Until it is so: the window, the boxes and the line above them follow one after the other.
            self.page.wait("""
                const inside = document.querySelector('#view div').clientWidth;
                const place = (selector) => document.querySelector(selector).getBoundingClientRect();
                return innerWidth <= arguments[0] &&
                    Math.abs(inside - 24 - place('#frames > g').width) < 2 &&
                    place('#title').right < place('#tools input').left &&
                    place('#tools input').width > 40 && place('#tools button:last-of-type').right < innerWidth;""", width)

    def test_tall(self):
        """Taller than the window: opens at the roots, with head and status in their places."""
        deep = ';'.join(f'f{i}' for i in range(300))
        folded = f'{deep} 60\nleft;a 40\n'
        for options, first in (((), 'bottom'), (('--inverted',), 'top')):
            self.show(folded, *options)
            view = self.page.run("""
                const place = (element) => element.getBoundingClientRect();
                const view = place(document.getElementById('view'));
                return { root: place(arguments[0]), view, title: place(document.getElementById('title')),
                    status: place(document.getElementById('status')), height: innerHeight,
                    scrolled: scrollY };""", self.box('all'))
            self.assertAlmostEqual(view['root'][first], view['view'][first], delta=4)
            self.assertGreater(view['title']['top'], 0)
            self.assertAlmostEqual(view['status']['bottom'], view['height'], delta=1)
            self.assertEqual(view['scrolled'], 0)
        self.show(folded)
        for key, name in (('Home', 'f299'), ('End', 'all')):
            self.page.press(key)
            self.page.wait("""
                const box = arguments[0].getBoundingClientRect();
                const view = document.getElementById('view').getBoundingClientRect();
                return box.top >= view.top && box.bottom <= view.bottom;""", self.box(name))

    def test_picture_of_tall(self):
        """A browser that only takes a picture of the file must not find the page empty."""
        svg = self.scratch / 'deep.svg'
        svg.write_bytes(draw(';'.join(f'f{i}' for i in range(300)) + ' 60\nleft;a 40\n'))
        png = self.scratch / 'deep.png'
        subprocess.run([self.page.chromium, *CHROMIUM_ARGS, f'--user-data-dir={self.scratch}/user',
                        '--window-size=1280,900', f'--screenshot={png}', svg.as_uri()],
                       capture_output=True, check=True, timeout=240)
        for part in ((0, 0, 0.3, 0.1), (0, 0.8, 1, 0.2)):
            self.assertGreater(self.pixels(png.read_bytes(), part), 5)

    def test_image(self):
        """In <img> no script runs: the picture stands by itself."""
        (self.scratch / 'graph.svg').write_bytes(draw(HEADER + fold(ORDINARY)))
        page = self.scratch / 'page.html'
        page.write_text('<!doctype html><link rel=icon href=data:,><body style="margin:0">'
                        '<img src=graph.svg>')
        self.page.open(page.as_uri())
        width, height = self.page.wait("""
            const image = document.querySelector('img');
            return image.complete && [image.naturalWidth, image.naturalHeight];""")
        self.assertEqual(width, 1200)
        self.assertGreater(height, 100)
        png = self.page.screenshot(DIR / 'image.png')
        head, window = 70 / height, height / self.page.run('return innerHeight')
        self.assertGreater(self.pixels(png, (0, 0, 0.9, head * window)), 10)
        self.assertGreater(self.pixels(png, (0, head * window, 0.9, (1 - head) * window)), 10)

    def test_inside_html(self):
        """As a part of a page it takes no keys and moves nothing."""
        svg = draw(fold(ORDINARY)).decode()
        page = self.scratch / 'page.html'
        page.write_text('<!doctype html><meta charset=utf-8><link rel=icon href=data:,><p>Before</p>'
                        + svg[svg.index('<svg'):])
        self.page.open(page.as_uri())
        self.page.press('/', 'i')
        self.assertFalse(self.page.run("return Boolean(document.getElementById('tools'))"))
        self.assertGreater(len(self.page.run("return [...document.querySelectorAll('#frames > g')]")), 9)

    # ---- waits and I/O ----

    def classes(self, svg):
        """(name, figures, class) of each box that stands in the file."""
        found = []
        for group in ElementTree.fromstring(svg).find(f"{SVG}g[@id='frames']"):
            name, figures = group.find(f'{SVG}title').text.rsplit(' (', 1)
            found.append((name, figures.split(',')[0].rstrip(')'), group.find(f'{SVG}rect').get('class')))
        return sorted(found)

    def test_views(self):
        """The viewer colours what it reads from the data as the file was drawn, whatever the palette."""
        for kind, (facts, stacks) in VIEWS.items():
            folded = f'#stackbpf;v=1;{facts};dur_us=5000000;n=1000;lost=0\n' + fold(stacks)
            for options in ((), ('--colors', 'chain'), ('--color-by', 'name'), ('--reverse',)):
                self.show(folded, *options)
                drawn = self.page.run("""
                    return [...document.querySelectorAll('#frames > g')].map((group) => {
                        const [, name, weight] =
                            /^(.*), ([^,]*(?:,\\d+)* [^,]*), [^,]* of all$/.exec(group.getAttribute('aria-label'));
                        return [name, weight, group.querySelector('rect').getAttribute('class')];
                    });""")
                self.assertEqual(sorted(map(tuple, drawn)), self.classes(draw(folded, *options)),
                                 (kind, options))
            self.show(folded)
            for scheme in ('light', 'dark'):
                self.page.prefer(prefers_color_scheme=scheme)
                worst = min(self.contrasts())
                self.assertGreaterEqual(worst[0], CONTRAST_MIN, (kind, scheme, worst))
                self.page.screenshot(DIR / f'{kind}-{scheme}.png')

    # ---- comparisons ----

    def compared(self, name):
        """What the viewer has to say of the frames called @name: the textbook's z."""
        sums = [sum(pair[i] for pair in COMPARED.values()) for i in (0, 1)]
        parts = [sum(pair[i] for stack, pair in COMPARED.items() if name in map(label, stack.split(';')))
                 for i in (0, 1)]
        a, b = (part / whole for part, whole in zip(parts, sums))
        pooled = sum(parts) / sum(sums)
        errors = (a * (1 - a) / sums[0] + b * (1 - b) / sums[1],
                  pooled * (1 - pooled) * (1 / sums[0] + 1 / sums[1]))
        return a, b, (b - a) / max(errors) ** 0.5 if a != b else 0

    def test_narrow_window(self):
        """On a telephone the title leaves room for the buttons, and nothing of what was lost is beyond the edge."""
        self.addCleanup(self.page.devtools, 'Emulation.clearDeviceMetricsOverride')
        for width in (400, 1280):
            self.page.devtools('Emulation.setDeviceMetricsOverride', width=width, height=700, deviceScaleFactor=1, mobile=False)
            self.show(HEADER + fold(ORDINARY), '--title', 'A title that is rather long, of a program on some host')
            title, subtitle, tools = self.page.run("""return ['#title', '#subtitle', '#tools'].map((name) => {
                const box = document.querySelector(name).getBoundingClientRect(); return [box.left, box.right]; })""")
            self.assertLessEqual(title[1], tools[0], width)
            self.assertLessEqual(subtitle[1], width)
            self.assertEqual(self.text('#subtitle'), '1,000 samples in 5 s \u00b7 7 lost (0.70%) \u00b7 '
                             '99 stacks truncated (9.90%) \u00b7 11 frames unnamed')

    def test_comparison(self):
        self.show(''.join(f'{stack} {a} {b}\n' for stack, (a, b) in COMPARED.items()))
        self.assertEqual(self.text('#title'), 'Flame graph: what changed from A to B')
        self.assertEqual(self.text('#subtitle'), 'A: 1,000 samples, \u00b14.4 points \u00b7 '
                         'B: 1,202 samples, \u00b14.0 points \u00b7 shares compared')
        for name in sorted({label(name) for stack in COMPARED for name in stack.split(';')} - {'app', 'main'}):
            a, b, z = self.compared(name)
            box = self.box(name)
            words = self.page.run("return arguments[0].getAttribute('aria-label')", box)
            self.assertTrue(words.startswith(f'{name}, A {share(a)}, B {share(b)}, '), words)
            self.assertAlmostEqual(float(re.search(r'z = (\S+?),?( noise)?$', words).group(1).replace('\u2212', '-')),
                                   z, delta=0.06)
            self.assertEqual('noise' in words, abs(z) < 3)
            classes = self.page.run("return arguments[0].querySelector('rect').getAttribute('class')", box).split()
            expected = 'same' if abs(z) < 3 else 'more' if b > a else 'less'
            self.assertTrue(classes[0].startswith(expected), (name, classes))
            self.assertEqual(classes[1:], ['gone'] if not b else ['new'] if not a else [])
        # As wide as in B; what is gone as in A.
        whole, total = self.whole_width(), 1202 + 200 * 1.202
        for name, weight in ('draw', 750), ('lookup', 120), ('old_alloc', 200 * 1.202):
            self.assertAlmostEqual(self.width(self.box(name)), weight / total * whole, delta=1.5)
        self.page.hover(self.box('draw'))
        for words in ('A 40.0%, B 62.4%', '+22.4 points', '400 samples \u2192 750 samples', 'self A 30.0%'):
            self.assertIn(words, self.text('#tip'))
        for scheme in ('light', 'dark'):
            self.page.prefer(prefers_color_scheme=scheme)
            worst = min(self.contrasts())
            self.assertGreaterEqual(worst[0], CONTRAST_MIN, (scheme, worst))
            self.page.screenshot(DIR / f'comparison-{scheme}.png')
        self.find('draw|lex')
        self.assertIn('2 frames match, A 70.0%, B 88.2%', self.text('#tools output'))
        self.zoom('parse')
        self.assertTrue(self.is_whole('parse'))
        self.press('Escape', 'Escape', 'r')
        self.assertEqual(len(self.boxes('[aria-level="2"]')), 7)
        self.box('old_alloc')

    def test_comparison_as_drawn(self):
        """The viewer finds of each frame what the file was drawn with."""
        stacks = {**COMPARED, **{f'r;a{i % 7};b{i % 5};c{i % 11}': (i * 37 % 90, i * i * 13 % 70) for i in range(60)}}
        plain = ''.join(f'{stack} {a} {b}\n' for stack, (a, b) in stacks.items())
        waits = '#stackbpf;v=1;kind=offcpu;unit=us;norm=share\n' + ''.join(
            f'#n;{a // 5 + 1};{b / 7 + 1:.3f}\n{stack} {a * 99} {b * 99}\n' for stack, (a, b) in stacks.items())
        rates = '#stackbpf;v=1;unit=samples;norm=rate;per_a=990;per_b=495.5;rate=cpu\n' + plain
        unknown = waits.replace('#n;', '# ')
        for folded, options in ((plain, ()), (plain, ('--norm', 'raw')), (plain, ('--diff-width', 'a')),
                                (plain, ('--diff-width', 'both', '--negate')), (plain, ('--reverse',)),
                                (waits, ()), (waits, ('--no-embed',)), (rates, ()), (unknown, ())):
            options += ('--minwidth', '0')
            self.show(folded, *options)
            drawn = self.page.run("""
                return [...document.querySelectorAll('#frames > g')].map((group) => [
                    group.getAttribute('aria-label').replace(/, \\u00d7[\\d.,]*\\d/, '').replace(/, self.*/, ''),
                    group.querySelector('rect').getAttribute('class'),
                    Math.round(group.querySelector('rect').width.baseVal.value)]);""")
            svg = ElementTree.fromstring(draw(folded, '--width', '1300', *options))
            ratio = self.page.run("return document.querySelector('#frames > g rect').width.baseVal.value")
            first = svg.find(f"{SVG}g[@id='frames']/{SVG}g/{SVG}rect").get('width')
            expected = []
            for group in svg.find(f"{SVG}g[@id='frames']"):
                words = group.find(f'{SVG}title').text.replace(' (A ', ', A ', 1).replace(': ', ', ', 1)[:-1]
                rect = group.find(f'{SVG}rect')
                expected.append([words, rect.get('class'), float(rect.get('width')) * ratio / float(first)])
            self.assertEqual(sorted(row[:2] for row in drawn), sorted(row[:2] for row in expected), options)
            for (_, _, width), (_, _, other) in zip(sorted(drawn), sorted(expected)):
                self.assertAlmostEqual(width, other, delta=1.5)

    def test_kinds_are_named(self):
        facts, stacks = VIEWS['io']
        self.show(f'#stackbpf;{facts}\n' + fold(stacks))
        for name, kind in (('/usr/share/doc/a b', 'file'), ('[socket: tcp]', 'file'), ('name.txt', 'file'),
                           ('[unknown]', 'file'), ('sys_fsync', 'kernel'), ('sys_user_function', '')):
            self.page.hover(self.box(name))
            self.assertEqual(self.page.run(
                "return [...document.querySelectorAll('#tip i')].map((i) => i.textContent).join()"), kind)
        self.page.hover(self.box('[pipe]'))
        self.assertIn('3.81 MiB', self.text('#tip'))
        facts, stacks = VIEWS['offcpu']
        self.show(f'#stackbpf;{facts}\n' + fold(stacks))
        self.page.hover(self.box('worker'))
        self.assertIn('idle', self.text('#tip'))
        self.assertIn('800 \u00b5s', self.text('#tip'))

    # ---- search ----

    def test_search(self):
        self.show(fold(ORDINARY))
        for pattern in ('alloc', 'eval', '^main$', 'parse|query', '[Aa]lloc_', 'vector<int'):
            self.find(pattern)
            self.assertEqual(self.text('#tools output'), self.found(ORDINARY, pattern),
                             pattern)
            names = [name.split(', ')[0] for name in self.boxes('.match')]
            self.assertEqual(len(names), search(ORDINARY, pattern)[0])
            self.press('Escape')
        self.find('alloc')
        self.page.screenshot(DIR / 'searched.png')
        self.press('Escape')
        self.assertEqual(self.text('#tools output'), '')
        self.assertEqual(self.boxes('.match'), [])

    def test_search_case(self):
        self.show(fold(ORDINARY))
        self.find('ALLOC')
        self.assertEqual(self.text('#tools output'), '0 frames match, 0% of all')
        self.press('Control+i')
        self.assertEqual(self.text('#tools output'), self.found(ORDINARY, 'ALLOC', re.I))
        self.assertIn('case=0', self.state())

    def test_search_what_is_cut(self):
        """Frames too narrow to be drawn count, and their box is marked."""
        self.show(fold(narrow()))
        self.find('n01[0-4]')
        self.assertEqual(self.text('#tools output'), self.found(narrow(), 'n01[0-4]'))

    def test_search_not_regex(self):
        self.show(fold(ORDINARY))
        self.find('(')
        self.assertEqual(self.text('#tools output'), 'not a regular expression')

    def test_search_zoomed(self):
        """Both shares: of all, and of what is shown."""
        self.show(fold(ORDINARY))
        self.zoom('parse')
        self.find('alloc')
        nr, part = search(ORDINARY, 'alloc')
        self.assertEqual(self.text('#tools output'), f'{nr} frames match, {share(part)} of all, '
                         f'{share(380 / 450)} of what is shown')

    def test_steps(self):
        self.show(fold(ORDINARY))
        self.find('alloc')
        nr = search(ORDINARY, 'alloc')[0]
        self.page.press('Enter')
        self.assertTrue(self.text('#tools output').startswith(f'1 of {nr} '))
        # Out of the field, without leaving the search.
        self.page.run("document.querySelector('#tools input').blur()")
        seen = []
        for at in (*range(2, nr + 1), 1):
            self.press('n')
            self.assertTrue(self.text('#tools output').startswith(f'{at} of {nr} '))
            self.assertRegex(self.active(), 'alloc')
            seen.append(self.page.run(
                'const box = document.activeElement.getBoundingClientRect(); return [box.x, box.y]'))
        self.assertEqual(len(set(map(tuple, seen))), nr)
        self.press('N')
        self.assertTrue(self.text('#tools output').startswith(f'{nr} of {nr} '))

    def test_step_into_cut(self):
        """The next match is shown even if it was too narrow to be drawn."""
        self.show(fold(narrow()))
        self.find('^n123$')
        self.press('Enter')
        self.assertTrue(self.is_whole('n123'))

    # ---- zoom ----

    def test_zoom_by_click(self):
        self.show(fold(ORDINARY))
        before = self.boxes()
        self.zoom('parse')
        self.assertTrue(self.is_whole('parse'))
        self.assertTrue(self.is_whole('main'))
        self.assertIn('450 samples45.0% of all', self.text('#status'))
        self.assertNotIn('db', [name.split(', ')[0] for name in self.boxes()])
        self.assertAlmostEqual(self.width(self.box('read_file')), self.whole_width() * 250 / 450,
                               delta=1.5)
        self.page.screenshot(DIR / 'zoomed.png')
        # A frame under it zooms out to that frame.
        self.zoom('app')
        self.assertLess(self.width(self.box('parse')), self.whole_width())
        self.press('Escape')
        self.assertEqual(self.boxes(), before)
        self.assertEqual(self.state(), '')

    def test_zoom_by_keyboard(self):
        self.show(fold(ORDINARY))
        self.press('ArrowUp')
        self.assertTrue(self.active().startswith('all, '))
        for key, name in (('ArrowUp', 'app'), ('ArrowRight', 'db'), ('ArrowLeft', 'app'),
                          ('ArrowUp', 'main'), ('ArrowUp', 'parse')):
            self.press(key)
            self.assertTrue(self.active().startswith(f'{name}, '), (key, self.active()))
        self.press('Enter')
        self.assertTrue(self.is_whole('parse'))
        self.assertTrue(self.active().startswith('parse, '))
        self.press('0')
        self.assertFalse(self.is_whole('parse'))
        self.assertEqual(self.state(), '')

    def test_zoom_by_touch(self):
        self.show(fold(ORDINARY))
        self.page.tap(self.box('eval'))
        self.page.wait("return location.hash.includes('z=')")
        self.ready()
        self.assertTrue(self.is_whole('eval'))

    def test_cut_appears(self):
        self.show(fold(narrow()))
        self.assertNotIn('n123', ' '.join(self.boxes()))
        self.press('ArrowUp', 'ArrowUp', 'ArrowUp')
        self.page.run("location.hash = '#z=2,1000000,400'")
        self.page.wait("return document.querySelectorAll('#frames > g').length > arguments[0]",
                       NR_NARROW)
        self.assertIn('n123, 1 sample, under 0.01% of all', self.boxes())

    def test_cut_by_click(self):
        """A hatched box opens to what it stands for."""
        stacks = {'main;big': 10_000, **{f'main;n{i}': 1 for i in range(100)}}
        self.show(fold(stacks), '--minwidth', '0.05%')
        self.zoom('\u2026 100 frames')
        self.assertIn(f'n42, 1 sample, {share(1 / 10_100)} of all', self.boxes())

    # ---- other views ----

    def test_callers(self):
        self.show(fold(ORDINARY))
        self.press('r')
        total = sum(ORDINARY.values())
        expected = [f'{label(path[-1])}, {weight:,} samples, {share(weight / total)} of all'
                    for path, weight in totals(ORDINARY, reverse=True).items() if len(path) == 1]
        level_2 = self.page.run("""
            return [...document.querySelectorAll('#frames > g[aria-level="2"]')]
                .map((box) => box.getAttribute('aria-label'));""")
        self.assertEqual(sorted(level_2), sorted(expected))

    def test_collapse(self):
        self.show(fold(ORDINARY))
        self.press('c')
        weight = 90 + 33 + 117
        self.assertEqual([name for name in self.boxes() if name.startswith('eval, ')],
                         [f'eval, {weight} samples, 24.0% of all', 'eval, 40 samples, 4.00% of all'])

    def test_hide(self):
        self.show(fold(ORDINARY))
        self.page.control_click(self.box('db'))
        self.page.wait("return location.hash.includes('h=')")
        self.ready()
        self.assertTrue(self.is_whole('app'))
        self.assertIn('hidden: 299 samples', self.text('#status'))
        self.press('h')
        self.assertFalse(self.is_whole('app'))

    def test_inverted(self):
        self.show(fold(ORDINARY))
        top = 'return arguments[0].getBoundingClientRect().top'
        self.assertGreater(self.page.run(top, self.box('all')), self.page.run(top, self.box('app')))
        self.press('i')
        self.assertLess(self.page.run(top, self.box('all')), self.page.run(top, self.box('app')))

    # ---- state ----

    def test_reload(self):
        self.show(fold(ORDINARY))
        self.zoom('parse')
        self.find('alloc|\u00b5 "&#')
        self.page.press('Escape')
        self.ready()
        self.find('alloc')
        self.page.run("document.querySelector('#tools input').blur()")
        self.press('i', 'd')
        before = (self.state(), self.boxes(), self.boxes('.match'), self.text('#tools output'))
        for part in ('z=', 'q=alloc', 'i=1', 't=dark'):
            self.assertIn(part, before[0])
        self.page.reload()
        self.ready()
        self.assertEqual((self.state(), self.boxes(), self.boxes('.match'), self.text('#tools output')),
                         before)
        self.assertEqual(self.page.run("return document.querySelector('#tools input').value"), 'alloc')

    def test_back(self):
        self.show(fold(ORDINARY))
        self.zoom('parse')
        self.page.call('POST', 'back', {})
        self.page.wait("return location.hash === ''")
        self.ready()
        self.assertFalse(self.is_whole('parse'))

    def test_hostile_state(self):
        for state in ('#z=-5,1e308,1e308', '#z=1,0,0', '#z=0,-1,1e-320', '#q=(', '#h=99999.-1&h=x',
                      '#t=<b>&z=a,b,c', '#%', '#q=%ff&case=0&i&r&c', '#z=1,5000,1'):
            self.page.open('about:blank')
            self.show(fold(ORDINARY), state=state)
            self.press('0')
            self.assertEqual(len(self.boxes()), len(totals(ORDINARY)) + 1, state)

    # ---- looks ----

    def test_dark(self):
        self.show(HEADER + fold(ORDINARY))
        ground = "return getComputedStyle(document.getElementById('bg')).fill"
        light = self.page.run(ground)
        self.page.prefer(prefers_color_scheme='dark')
        dark = self.page.run(ground)
        self.assertNotEqual(light, dark)
        self.page.screenshot(DIR / 'dark.png')
        for other, text in ((light, 't=light'), (dark, 't=dark')):
            self.press('d')
            self.assertEqual(self.page.run(ground), other)
            self.assertIn(text, self.state())
        self.page.prefer(prefers_color_scheme='light')
        self.assertEqual(self.page.run(ground), dark)
        self.page.reload()
        self.ready()
        self.assertEqual(self.page.run(ground), dark)

    def test_contrast(self):
        # A wrong word is refused with the list of all that there are.
        refused = subprocess.run([FLAMEGRAPH, '--colors', 'none'], capture_output=True, check=False, text=True)
        palettes = refused.stderr.partition('one of ')[2].strip().split(', ')
        self.assertIn('orange', palettes)
        names = [f'word{i}' for i in range(60)]
        folded = HEADER + fold(ORDINARY) + ''.join(f'{name}{kind};leaf 20\n' for name in names
                                                   for kind in ('', '_[k]', '_[i]', '_[j]', '_[w]', '_[f]', '_[p]', '_[z]'))
        for palette in ('', *palettes):
            self.show(folded, *(('--colors', palette) if palette else ()))
            for state in ('as it opens', 'searched', 'zoomed'):
                if state == 'searched':
                    self.find('no such name')
                elif state == 'zoomed':
                    self.press('Escape')
                    self.zoom('start_thread')
                for scheme in ('light', 'dark'):
                    self.page.prefer(prefers_color_scheme=scheme)
                    worst = min(self.contrasts())
                    self.assertGreaterEqual(worst[0], CONTRAST_MIN, (palette, state, scheme, worst))

    def test_hover(self):
        self.show(fold(ORDINARY))
        name = 'std::vector<int, std::allocator<int> >::push_back(int const&)'
        self.page.hover(self.box(name))
        for place in ('#tip', '#status'):
            for words in (name, '160 samples', '16.0% of all', '80.0% of start_thread', 'self 160'):
                self.assertIn(words, self.text(place))
        self.assertEqual(self.page.run(
            "return getComputedStyle(document.getElementById('tip')).visibility"), 'visible')
        self.page.screenshot(DIR / 'hover.png')

    def test_help(self):
        self.show(fold(ORDINARY))
        shown = "return getComputedStyle(document.getElementById('help')).visibility"
        self.assertEqual(self.page.run(shown), 'hidden')
        self.press('?')
        self.assertEqual(self.page.run(shown), 'visible')
        self.page.screenshot(DIR / 'help.png')
        self.press('Escape')
        self.assertEqual(self.page.run(shown), 'hidden')

    def test_accessible(self):
        self.show(fold(ORDINARY))
        tree = self.page.run("""
            const all = (selector) => [...document.querySelectorAll(selector)];
            return { title: document.querySelector('svg > title').textContent,
                labelled: document.documentElement.getAttribute('aria-labelledby'),
                tree: document.getElementById('frames').getAttribute('role'),
                items: all('#frames > g').every((box) => box.getAttribute('role') === 'treeitem' &&
                    box.getAttribute('aria-label') && box.getAttribute('aria-level') > 0),
                stops: all('#frames [tabindex="0"]').length,
                named: all('#tools button, #tools input').every((item) => item.ariaLabel),
                live: document.querySelector('#tools output').getAttribute('aria-live') };""")
        self.assertEqual(tree, {'title': 'Flame graph', 'labelled': 'name about', 'tree': 'tree',
                                'items': True, 'stops': 1, 'named': True, 'live': 'polite'})
        # What the browser tells a screen reader.
        self.page.devtools('Accessibility.enable')
        nodes = self.page.devtools('Accessibility.getFullAXTree')['nodes']
        items = [node['name']['value'] for node in nodes if node['role'].get('value') == 'treeitem']
        self.assertEqual(sorted(items), sorted(self.boxes()))

    # ---- hostile input ----

    def test_hostile(self):
        folded = ''.join(f'root;{name} {100 + i}\n' for i, name in enumerate(HOSTILE)
                         if ';' not in name) + f'root;{";".join(HOSTILE)} 50\n'
        title = HOSTILE[0] + HOSTILE[1]
        self.show(folded, '--title', title, '--subtitle', title, '--notes', title, '--nametype', title,
                  '--countname', title, '--fonttype', title)
        names = ' '.join(self.boxes())
        for name in HOSTILE:
            for part in name.split(';'):
                self.assertIn(part, names)
        self.assertEqual(self.text('#title'), title)
        for name in HOSTILE[:9]:
            if ';' not in name:
                self.page.hover(self.box(name))
                self.assertIn(name, self.text('#tip'))
        self.find('<')
        self.press('Escape', 'r', 'c', 'i')
        self.zoom(HOSTILE[1])
        self.assertTrue(self.page.run("return typeof hit === 'undefined'"))
        self.assertEqual(self.page.run("return document.querySelectorAll('img, script').length"), 1)

    def test_hostile_links(self):
        attrs = self.scratch / 'attrs'
        attrs.write_text('f\thref=javascript:hit=1\ng\thref=data:text/html,<script>hit=1</script>\n')
        done = subprocess.run([FLAMEGRAPH, '--nameattr', str(attrs)], input=b'f 60\ng 40\n',
                              capture_output=True, check=False)
        self.assertNotIn(b'href="javascript', done.stdout)
        self.assertNotIn(b'href="data', done.stdout)
        self.show('f 60\ng 40\n', '--nameattr', str(attrs))
        for name in 'fg':
            self.zoom(name)
            self.press('0')
        self.assertTrue(self.page.run("return typeof hit === 'undefined'"))

    def test_no_network(self):
        """The file loads nothing."""
        self.show(fold(ORDINARY))
        names = self.page.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        self.assertEqual(names, [])


def main():
    global BROWSER, FLAMEGRAPH, DIR
    FLAMEGRAPH, DIR = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
    with browser() as BROWSER:
        unittest.main()


if __name__ == '__main__':
    main()
