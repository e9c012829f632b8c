#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""page.py PAGE_DIR DIR: the page of `stackbpf serve` as a person uses it, in headless Chromium, before
a server that answers from made-up profiles. The truth is computed from these. Screenshots go to DIR."""
import pathlib
import re
import sys
import time
import unittest
import urllib.request

from page_mock import (CHANGE_PALETTE, CSP, FILE, FORMATS, FRAME_PALETTE, INLINED, INTERP, JIT, KERNEL, MARK, ROOT, USER,
                       WAKER, Frame, Mock, Model, Series, color_of, functions, large, rideshare)
from steps import share
from viewer_text import shipped
from webdriver import PRESS, browser

NOW = 1795300000
HOUR = 3600
PAGE_BYTES_MAX = 80000
ROW, LEFT, RIGHT = 18, 52, 6  # of the page's pictures, in pixels
HOSTILE = ['<script>hit=1</script>', '"><img src=x onerror=hit=1>', '</script><script>hit=1</script>', '__proto__',
           'constructor', '\u202eevil\u202c', '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd', '\U0001f525\U0001f468\u200d\U0001f469',
           'x' * 10000, 'a\nb\tc\0d', '${hit=1}', '=all', '[a-z', ' ', '(other)']
DOWN, UP = PRESS
BROWSER = None
PAGE_DIR = DIR = None


def rgb(color):
    """As a browser writes it."""
    return 'rgb({}, {}, {})'.format(*bytes.fromhex(color[1:]))


def user_files(pattern):
    """Files below user/, in which PAGE_DIR is user/serve/web."""
    return sorted(pathlib.Path(PAGE_DIR).parents[1].glob('**/' + pattern))


def model_of(stacks, kind='oncpu', **how):
    """One series, all of it in the last hour: a block has each stack's weight in 360 parts."""
    return Model(NOW, [Series({'kind': kind, 'service': 'app'}, stacks, NOW - HOUR, NOW)], **how)


def places(weights, width_of=None):
    """{path of names: (from, to)} as parts of the width; siblings by name."""
    width_of = width_of or (lambda weight: weight)
    totals = {}
    for stack, weight in weights.items():
        for depth in range(len(stack) + 1):
            totals[stack[:depth]] = totals.get(stack[:depth], 0) + width_of(weight)
    found, used = {(): (0, totals[()])}, {}
    for path in sorted(totals, key=lambda path: (len(path), path)):
        if not path:
            continue
        begin = found[path[:-1]][0] + used.get(path[:-1], 0)
        used[path[:-1]] = used.get(path[:-1], 0) + totals[path]
        found[path] = begin, begin + totals[path]
    return {tuple(frame.name for frame in path): (begin / totals[()], end / totals[()])
            for path, (begin, end) in found.items()}


class Page(unittest.TestCase):
    def setUp(self):
        self.page = BROWSER
        self.mock = Mock(PAGE_DIR, rideshare(NOW))
        self.addCleanup(self.mock.stop)
        self.page.open('about:blank')
        self.page.prefer(prefers_color_scheme='light', prefers_reduced_motion='reduce')
        self.page.devtools('Emulation.setTimezoneOverride', timezoneId='UTC')
        self.page.console()
        self.refused = 0  # messages of the browser about errors that a test has made

    def tearDown(self):
        # It has to say something about pixels that tests look at.
        messages = [entry['message'] for entry in self.page.console() if 'willReadFrequently' not in entry['message']]
        self.assertEqual([text for text in messages if 'Failed to load resource' not in text or not self.refused], [])

    # ---- what a person does and sees ----

    def show(self, fragment='', model=None):
        if model:
            self.mock.model = model
        self.page.open('about:blank')
        self.page.open(self.mock.url + '#' + fragment)
        self.ready()

    def ready(self):
        self.page.wait("return document.documentElement.dataset.state === 'ready'")

    def text(self, selector):
        return self.page.run("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def texts(self, selector):
        return self.page.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def click(self, selector, text=None):
        # An answer that comes in may make it anew; then nothing was clicked.
        for attempt in range(3):
            self.ready()
            element = self.page.wait("""return [...document.querySelectorAll(arguments[0])]
                .find((one) => arguments[1] === null || one.textContent.trim() === arguments[1])""", selector, text)
            try:
                self.page.click(element)
                break
            except RuntimeError as error:
                if 'stale' not in str(error) or attempt == 2:
                    raise
        self.ready()

    def box(self, selector, nth=0):
        return self.page.run("""const box = document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect();
            return [box.left, box.top, box.width, box.height]""", selector, nth)

    def mouse(self, *steps):
        """Positions in the window, and presses."""
        actions = [step if isinstance(step, dict) else {'type': 'pointerMove', 'origin': 'viewport', 'duration': 0,
                                                        'x': round(step[0]), 'y': round(step[1])} for step in steps]
        self.page.call('POST', 'actions', {'actions': [{
            'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions': actions}]})

    def asked(self, path):
        """The last question, {key: value, 'tag': [rules]}"""
        query = self.mock.asked(path)[-1]
        return {**{key: value for key, value in query if not key.endswith('tag')},
                **{key: [value for name, value in query if name == key] for key in ('tag', 'vs_tag')}}

    def frame_at(self, path, where, nth=0):
        """The middle of a frame in the window, all frames being as @where has them."""
        left, top, width, _ = self.box('.canvas', nth)
        begin, end = where[path]
        return left + width * (begin + end) / 2, top + len(path) * ROW + ROW / 2

    def color(self, point, nth=0):
        """What the picture has near to a frame's lower edge, below its name."""
        left, top, _, _ = self.box('.canvas', nth)
        return self.page.run("""const canvas = document.querySelectorAll('.canvas canvas')[arguments[2]];
            return [...canvas.getContext('2d').getImageData(arguments[0], arguments[1], 1, 1).data]""",
                             round(point[0] - left), round(point[1] - top) + 5, nth)[:3]

    def check_colors(self, names, where, truth, message):
        """Of frames that lie on the root."""
        width = self.box('.canvas')[2]
        pixels = self.page.run("""const context = document.querySelector('.canvas canvas').getContext('2d');
            return arguments[0].map((x) => [...context.getImageData(x, arguments[1], 1, 1).data])""",
                               [round(width * sum(where[name,]) / 2) for name in names], ROW + ROW // 2 + 5)
        for name, pixel in zip(names, pixels):
            self.assertEqual(f'rgb({", ".join(map(str, pixel[:3]))})', truth[name], (message, name))

    def weights(self, begin=NOW - HOUR, end=NOW, rules=(), kind='oncpu'):
        return self.mock.model.stacks(begin, end, kind, rules)

    def step_x(self, at, nth=0):
        """Where the timeline of the last hour has a time."""
        left, top, width, height = self.box('.timeline', nth)
        begin, end = NOW - HOUR - (NOW - HOUR) % 20, NOW
        end += -(end - begin) % 20
        return left + LEFT + (at - begin) / (end - begin) * (width - LEFT - RIGHT), top + height / 2

    def total(self, weights):
        return f'{sum(weights.values()):,} samples'

    # ---- tests ----

    def test_first_look(self):
        self.show()
        self.assertEqual(self.asked('flame')['from'], 'now-1h')
        self.assertIn(self.total(self.weights()), self.text('.pane-head strong'))
        self.assertEqual(self.texts('#kinds button'), ['oncpu', 'offcpu', 'io'])
        rows = self.page.run("""return [...document.querySelectorAll('.row')].map((row) =>
            [row.querySelector('bdi').textContent, ...[...row.querySelectorAll('b')].map((cell) => cell.textContent)])""")
        truth = functions(self.weights())
        for name, own, total in rows:
            self.assertEqual([own, total], [f'{weight:,}' for weight in truth[name]], name)
        self.assertEqual(rows[0][0], max(truth, key=lambda name: truth[name][0]))
        self.click('.table-head button', 'Total')
        self.assertEqual(self.text('.row bdi'), 'BaseServer.handle_request')
        # What was lost and cut is where the user looks.
        self.assertEqual(self.texts('.pane[aria-label="Flame graph"] .warn'), ['12 lost (under 0.01%)', '34 truncated'])
        self.click('#kinds button', 'offcpu')
        self.assertEqual(self.asked('flame')['kind'], 'offcpu')
        self.assertEqual(self.asked('timeline')['kind'], 'offcpu')
        self.assertIn('of', self.text('.pane:last-child .pane-head'))

    def test_drag(self):
        self.show()
        begin, end = NOW - 1500, NOW - 900
        inside = lambda at: self.step_x(at - at % 20 + 10)  # noqa: E731
        self.mouse(inside(begin), DOWN, inside(end), UP)
        self.ready()
        want = begin - begin % 20, end - end % 20 + 20
        asked = self.asked('flame')
        self.assertEqual((int(asked['from']), int(asked['to'])), want)
        self.assertEqual(self.asked('timeline')['from'], 'now-1h')
        self.assertIn(self.total(self.weights(*want)), self.text('.pane-head strong'))
        # Its edge is a grip, from right to left selects as well, and "Clear" ends it.
        edge = self.step_x(want[1])
        self.mouse(edge, DOWN, inside(NOW - 290), UP)
        self.ready()
        self.assertEqual((int(self.asked('flame')['from']), int(self.asked('flame')['to'])),
                         (want[0], (NOW - 290) // 20 * 20 + 20))
        self.mouse(inside(end), DOWN, inside(begin), UP)
        self.ready()
        self.assertEqual((int(self.asked('flame')['from']), int(self.asked('flame')['to'])), want)
        self.click('.side-foot button', 'Zoom in')
        self.assertEqual(int(self.asked('timeline')['from']), want[0])
        self.page.run('history.back()')
        self.page.wait("return location.hash.includes('win_from')")
        self.click('.side-foot button', 'Clear')
        self.assertEqual(self.asked('flame')['from'], 'now-1h')
        # The same with the keyboard.
        self.page.run("document.querySelector('.timeline').focus()")
        self.page.press('ArrowLeft', 'ArrowLeft', 'Shift+ArrowLeft', 'Shift+ArrowLeft', 'Enter')
        self.ready()
        last = NOW - NOW % 20 - (20 if NOW % 20 == 0 else 0)
        self.assertEqual((int(self.asked('flame')['from']), int(self.asked('flame')['to'])), (last - 60, last))

    def test_time(self):
        self.show()
        self.click('#presets button', '7 days')
        self.assertEqual((self.asked('flame')['from'], self.asked('flame')['to']), ('now-7d', 'now'))
        self.click('#presets button', '5 min')
        self.assertEqual(self.asked('timeline')['from'], 'now-5m')
        self.page.run("document.querySelector('#from').focus(); document.querySelector('#from').select()")
        self.page.press(*'-2h', 'Enter')
        self.ready()
        self.assertEqual(self.asked('flame')['from'], 'now-2h')
        self.page.run("""document.querySelector('#from').value = '2026-11-21 12:00';
                         document.querySelector('#to').value = '2026-11-21 13:30:10';
                         document.querySelector('#range').requestSubmit()""")
        self.ready()
        self.assertEqual((self.asked('flame')['from'], self.asked('flame')['to']), ('1795262400', '1795267810'))
        self.page.run("""document.querySelector('#from').value = 'yesterday';
                         document.querySelector('#range').requestSubmit()""")
        self.refused = 1
        self.page.wait("return document.querySelector('.message').textContent.includes('is no time')")

    def test_zone(self):
        """Times are of this place wherever they stand, and their zone is named."""
        self.page.devtools('Emulation.setTimezoneOverride', timezoneId='Asia/Kathmandu')
        # Of the same moments in UTC, by date(1).
        self.show('from=2026-11-21T17:45&to=2026-11-21T17%3A45%3A00Z')
        self.assertEqual(self.text('#zone'), 'UTC+5:45')
        self.assertEqual((self.asked('flame')['from'], self.asked('flame')['to']), ('1795262400', '1795283100'))
        self.page.run("""document.querySelector('#from').value = '2026-11-21 17:45';
                         document.querySelector('#to').value = '2026-11-21';
                         document.querySelector('#range').requestSubmit()""")
        self.ready()
        self.assertEqual((self.asked('timeline')['from'], self.asked('timeline')['to']), ('1795262400', '1795198500'))
        self.show()
        self.mouse((self.step_x(NOW - 1800)))
        when = time.strftime('%H:%M', time.gmtime(NOW - 1800 + 20700))
        self.assertRegex(self.text('#tip'), rf'{when}.* \u2013 .* UTC\+5:45')

    def test_gone(self):
        """The server goes, comes back, and has another token: what was shown stays, and is new again by itself."""
        self.show()
        shown = self.text('.pane-head strong'), self.texts('.row')[:5]
        self.refused = 1
        port = self.mock.server.server_port
        self.mock.stop()
        self.page.run("document.querySelector('#presets button').click()")
        self.page.wait("return document.querySelector('#notice').textContent.includes('does not answer')")
        self.ready()
        self.assertEqual((self.text('.pane-head strong'), self.texts('.row')[:5]), shown)
        self.assertTrue(self.page.run("return !document.querySelector('#notice').hidden && document.querySelector('.message').hidden"))
        # Another kind would not be what the page says that it shows.
        self.click('#kinds button', 'offcpu')
        self.assertEqual(self.texts('.row'), [])
        self.mock = Mock(PAGE_DIR, rideshare(NOW), port)
        self.addCleanup(self.mock.stop)
        self.page.wait("return document.querySelector('#notice').hidden && document.querySelectorAll('.row').length")
        self.click('#kinds button', 'oncpu')
        for path in ('flame', 'timeline', 'tags', 'info'):
            self.mock.errors[path] = (401, {'error': 'a token is needed'})
        self.click('#presets button', '5 min')
        self.page.wait("return document.querySelector('#notice').textContent.includes('a token is needed')")
        self.ready()
        self.assertTrue(self.texts('.row'))
        self.mock.errors = {}
        self.page.wait("return document.querySelector('#notice').hidden")

    def test_live(self):
        self.show()
        self.mock.info = lambda real=self.mock.info: {**real(), 'block_s': 0.2}
        self.show('live=1')
        nr_flames = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/flame')).length"
        self.page.run("document.querySelector('.canvas').focus()")
        self.page.press(*['ArrowDown'] * 6)
        self.assertTrue(self.text('#said').startswith('order_car'))
        nr = self.page.run(f'return {nr_flames}')
        self.page.wait(f'return {nr_flames} > {nr} + 2')
        # Who moves about in the graph stays where they are.
        self.page.press('ArrowRight')
        self.assertTrue(self.text('#said').startswith('order_scooter'))
        # A press that has begun is not lost when an answer comes in.
        self.show('live=1&by=region')
        left, top, width, height = self.box('.legend button')
        self.mouse((left + width / 2, top + height / 2), DOWN)
        # More than a second, so that the times under the timeline are others.
        self.page.wait(f'return {nr_flames} > 8')
        self.mouse(UP)
        self.page.wait("return location.hash.includes('tag=region%3Dap-south')")
        # Nobody else makes it ask again: not what is typed, not a zoom.
        self.click('#live')
        nr = len(self.mock.requests)
        self.page.press('/', *'order', 'Enter')
        self.ready()
        self.assertEqual(len(self.mock.requests), nr)
        self.assertEqual(self.page.run("return document.querySelector('#live').getAttribute('aria-pressed')"), 'false')

    def test_tags(self):
        self.show()
        self.click('.add-tag')
        self.click('.keys button', 'vehicle 3')
        values = self.texts('.value .name')
        self.assertEqual(values, ['car', 'scooter', 'bike'])
        self.page.click(self.page.run("return [...document.querySelectorAll('.value')][2].querySelectorAll('button')[1]"))
        self.ready()
        for path in ('flame', 'timeline'):
            self.assertEqual(self.asked(path)['tag'], ['vehicle!=bike'])
        self.assertIn(self.total(self.weights(rules=['vehicle!=bike'])), self.text('.pane-head strong'))
        self.click('.add-tag')
        self.page.run("""const form = document.querySelector('.picker form');
            form.querySelectorAll('input')[0].value = 'region'; form.querySelector('select').value = '=~';
            form.querySelectorAll('input')[1].value = '^(us|eu)-'; form.requestSubmit()""")
        self.ready()
        rules = ['vehicle!=bike', 'region=~^(us|eu)-']
        self.assertEqual(self.asked('flame')['tag'], rules)
        self.assertIn(self.total(self.weights(rules=rules)), self.text('.pane-head strong'))
        # Clicked, a rule is its opposite; a second value of a key joins the first.
        self.click('.chip button', 'vehicle!=bike')
        self.assertEqual(self.asked('flame')['tag'], ['vehicle=bike', rules[1]])
        self.click('.chip button', 'region=~^(us|eu)-')
        self.click('.chip button', 'region!~^(us|eu)-')
        self.assertEqual(self.asked('flame')['tag'], ['vehicle=bike', rules[1]])
        self.click('.add-tag')
        self.click('.keys button', 'vehicle 3')
        self.page.click(self.page.run("return document.querySelector('.value button')"))
        self.ready()
        self.assertEqual(self.asked('flame')['tag'], ['vehicle=bike,car', rules[1]])
        self.page.click(self.page.run("return document.querySelectorAll('.chip button')[3]"))
        self.ready()
        self.assertEqual(self.asked('flame')['tag'], ['vehicle=bike,car'])

    def test_timeline(self):
        self.show('by=region')
        self.assertEqual(self.asked('timeline')['by'], 'region')
        self.assertEqual(self.texts('.legend button'), ['ap-south', 'us-east', 'eu-north'])

        def pixel(at, above):
            left, top, _, height = self.box('.timeline')
            x = self.step_x(at)[0] - left
            return self.page.run("""const context = document.querySelector('.timeline canvas').getContext('2d');
                return [...context.getImageData(arguments[0], arguments[1], 1, 1).data]""", x, height - 20 - above)[:3]

        swatches = self.page.run("""return [...document.querySelectorAll('.legend i')]
            .map((one) => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number))""")
        self.assertEqual(pixel(NOW - 600, 3), swatches[0])
        # A gap is no zero.
        gap = NOW - 2600
        self.assertNotIn(pixel(gap, 3), swatches)
        self.mouse(self.step_x(gap))
        self.assertIn('nothing was recorded', self.text('#tip'))
        self.mouse(self.step_x(NOW - 1200 - (NOW - 1200) % 20 + 10))
        self.assertIn('12 samples lost', self.text('#tip'))
        # The keyboard stays where it was.
        self.page.run("document.querySelector('.by').focus()")
        self.page.run("const by = document.activeElement; by.value = 'vehicle'; by.dispatchEvent(new Event('change'))")
        self.ready()
        self.assertEqual(self.page.run('return document.activeElement.className'), 'by')
        self.page.run('history.back()')
        self.page.wait("return document.querySelector('.legend').textContent.includes('us-east')")
        self.click('.side-head button', 'lines')
        self.assertNotEqual(pixel(NOW - 600, 3), swatches[0])
        self.click('.side-head button', 'split graph')
        self.assertEqual(self.asked('flame')['by'], 'region')
        self.click('.legend button', 'us-east')
        self.assertEqual(self.asked('flame')['tag'], ['region=us-east'])

    def test_graph(self):
        self.show('v=graph')
        where = places(self.weights())
        path = ('python3', 'Thread.run', 'BaseServer.handle_request', 'wsgi_app', 'dispatch', 'order_car', 'find_nearest_vehicle',
                'haversine')
        truth = sum(weight for stack, weight in self.weights().items() if tuple(frame.name for frame in stack[:8]) == path)
        self.mouse(self.frame_at(path, where))
        tip = self.text('#tip')
        for part in ('haversine', 'ride.py, interpreter', f'total{truth:,} samples{share(truth / sum(self.weights().values()))}'):
            self.assertIn(part, tip)
        self.mouse(self.frame_at(path[:6], where), DOWN, UP)
        self.ready()
        self.assertEqual(self.texts('.crumbs button'), ['all', *path[:6]])
        left, top, width, _ = self.box('.canvas')
        # It has all of the width now, and the same colour.
        for part in (0.01, 0.99):
            self.mouse((left + width * part, top + 6 * ROW + 9))
            self.assertTrue(self.text('#tip').startswith('order_car'), self.text('#tip'))
        self.click('.crumbs button', 'dispatch')
        self.assertEqual(self.texts('.crumbs button')[-1], 'dispatch')
        self.page.run('history.back()')
        self.page.wait("return document.querySelector('.crumbs').lastChild.textContent === 'order_car'")
        self.click('#reset')
        self.assertEqual(self.texts('.crumbs button'), ['all'])
        # Roots at the bottom.
        self.click('#turn')
        _, top, _, height = self.box('.canvas')
        self.mouse((left + 20, top + height - 9))
        self.assertTrue(self.text('#tip').startswith('all'))
        self.assertEqual(self.color((left + 20, top + height - 12)), [227, 224, 218])
        self.assertIn('o=flame', self.page.run('return location.hash'))

    def test_keys(self):
        self.show()
        hash_of = lambda: self.page.run('return location.hash')  # noqa: E731
        self.page.press('/', *'mutex')
        self.ready()
        self.assertIn('q=mutex', hash_of())
        self.page.press('Escape')
        self.assertNotIn('q=', hash_of())
        self.page.press('t')
        self.ready()
        self.assertIn('v=graph', hash_of())
        self.assertEqual(self.page.run("return document.querySelectorAll('.rows').length"), 0)
        self.page.run("document.querySelector('.canvas').focus()")
        self.page.press('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown')
        self.assertTrue(self.text('#said').startswith('order_car'))
        self.page.press('ArrowRight')
        self.assertTrue(self.text('#said').startswith('order_scooter'))
        self.page.press('ArrowLeft')
        self.assertTrue(self.text('#said').startswith('order_car'))
        self.page.press('ArrowUp')
        self.assertTrue(self.text('#said').startswith('dispatch'))
        self.page.press('Enter')
        self.ready()
        self.assertEqual(self.texts('.crumbs button')[-1], 'dispatch')
        self.page.press('Escape')
        self.assertEqual(self.texts('.crumbs button'), ['all'])
        self.page.press('?')
        self.assertTrue(self.page.run("return document.querySelector('#help').open"))
        self.page.press('Escape', 't')
        self.ready()
        self.page.run("document.querySelector('.rows').focus()")
        self.page.press('ArrowDown', 'ArrowDown', 'Enter')
        self.ready()
        self.assertIn('q=%3Dfind_nearest_vehicle', hash_of())
        self.page.press('c')
        self.ready()
        self.assertIn('v=compare', hash_of())

    def test_search(self):
        self.show()
        weights, all_ = self.weights(), sum(self.weights().values())
        self.page.press('/', *'load_dr')
        truth = sum(weight for stack, weight in weights.items() if any('load_dr' in frame.name for frame in stack))
        self.assertEqual(self.text('#found'), f'3 frames, {share(truth / all_)}')
        self.assertEqual(self.texts('.row bdi'), ['load_drivers'])
        where = places(weights)
        base = ('python3', 'Thread.run', 'BaseServer.handle_request', 'wsgi_app', 'dispatch', 'order_car', 'find_nearest_vehicle')
        vivid, faint = ((*base, 'load_drivers'), (*base, 'haversine'))
        colors = [self.color(self.frame_at(path, where)) for path in (vivid, faint)]
        self.page.press('Escape')
        before = [self.color(self.frame_at(path, where)) for path in (vivid, faint)]
        self.assertEqual(colors[0], before[0])
        self.assertNotEqual(colors[1], before[1])
        self.page.press('/', *r'/^(mutex|math)_/')
        truth = sum(weight for stack, weight in weights.items() if re.match('(mutex|math)_', stack[-1].name))
        self.assertEqual(self.text('#found'), f'4 frames, {share(truth / all_)}')
        # Matches over each other count once.
        self.page.press('Escape', '/', *'ha')
        self.assertIn(' 100%', self.text('#found'))
        self.page.press('Escape', '/', *'/(/')
        self.assertEqual(self.text('#found'), 'not a regular expression')
        self.page.press('Escape', '/', *'no such', 'Enter')
        self.assertEqual(self.text('#found'), '0 frames, 0%')
        self.page.press('Escape')
        # A row of the table is that function, not all that have its name in theirs.
        self.click('.table-head button', 'Function')
        self.assertEqual(self.texts('.row bdi')[:2], ['BaseServer.handle_request', 'PyDict_GetItem'])
        self.click('.table-head button', 'Function')
        self.assertEqual(self.texts('.row bdi')[:2], ['wsgi_app', 'write'])
        self.click('.row bdi', 'write')
        truth = sum(weight for stack, weight in weights.items() if any(frame.name == 'write' for frame in stack))
        self.assertEqual(self.text('#found'), f'1 frame, {share(truth / all_)}')
        self.assertEqual(self.page.run("return document.querySelectorAll('.row.on').length"), 1)

    def test_compare(self):
        self.show('v=compare&from=now-20m&to=now-10m&vs_from=now-50m&vs_to=now-30m')
        for query in self.mock.asked('timeline'):
            self.assertEqual((dict(query)['from'], dict(query)['to']), ('now-50m', 'now-10m'))
        # Lost in the range of A, and not in that of B.
        self.assertEqual(self.texts('.side-foot .warn'), ['12 lost'])
        self.show('tag=vehicle%3Dcar')
        self.click('#views button', 'Compare')
        asked = self.mock.asked('flame')[-2:]
        self.assertEqual(sorted(dict(query)['from'] for query in asked), ['now-1800s', 'now-1h'])
        self.assertEqual([dict(query)['tag'] for query in asked], ['vehicle=car'] * 2)
        # Other tags, the same time.
        self.page.run("document.querySelectorAll('.side')[1].querySelector('.add-tag').click()")
        self.click('.keys button', 'region 3')
        self.page.click(self.page.run("return document.querySelector('.value button')"))
        self.ready()
        self.click('.side-foot button', 'Range of A')
        self.assertIn('vs_tag=region%3Dap-south', self.page.run('return location.hash'))
        heads = self.texts('.pane-head strong')
        rules = ['vehicle=car'], ['vehicle=car', 'region=ap-south']
        sides = [self.weights(NOW - HOUR, NOW - HOUR // 2, side) for side in rules]
        for head, side in zip(heads, sides):
            self.assertIn(self.total(side), head)
        path = ('python3', 'Thread.run', 'BaseServer.handle_request', 'wsgi_app', 'dispatch', 'order_car', 'find_nearest_vehicle',
                'haversine')
        points = [self.frame_at(path, places(side), nth) for nth, side in enumerate(sides)]
        self.mouse((5, 5))
        self.assertEqual(*[self.color(point, nth) for nth, point in enumerate(points)])
        self.mouse(points[0], DOWN, UP)
        self.ready()
        self.assertEqual(self.texts('.crumbs button').count('haversine'), 2)
        # A range of each side by dragging in its timeline.
        self.mouse(self.step_x(NOW - 900, 1), DOWN, self.step_x(NOW - 600, 1), UP)
        self.ready()
        query = self.asked('flame')
        self.assertEqual(query['tag'], rules[1])
        self.assertAlmostEqual(int(query['from']), NOW - 900, delta=30)
        self.click('#swap')
        self.assertEqual([dict(asked)['from'] for asked in self.mock.asked('flame')[-2:]].count(query['from']), 1)

    def show_diff(self, a, b, kind='oncpu'):
        sides = [Series({'kind': kind, 'side': name}, stacks, NOW - 20, NOW, lambda at: 0.5) for name, stacks in (('a', a), ('b', b))]
        self.show('v=diff&from=now-20s&vs_from=now-20s&vs_to=now&tag=side%3Da&vs_tag=side%3Db', Model(NOW, sides))

    def test_diff(self):
        code = lambda *names: [Frame(name) for name in names]  # noqa: E731
        a = [(code('main', 'same'), 4000), (code('main', 'less'), 4000), (code('main', 'gone', 'deep'), 1000), (code('main', 'near'), 1000)]
        b = [(code('main', 'same'), 8000), (code('main', 'less'), 4000), (code('main', 'new'), 5940), (code('main', 'near'), 2060)]
        self.show_diff(a, b)
        query = self.asked('diff')
        self.assertEqual((query['tag'], query['vs_tag'], query['norm']), (['side=a'], ['side=b'], 'share'))
        weights = {}
        for stacks, all_ in ((a, 10000), (b, 20000)):
            for stack, weight in stacks:
                weights[tuple(stack)] = weights.get(tuple(stack), 0) + weight / all_
        where = places(weights)
        color = {name: self.color(self.frame_at(('main', name), where)) for name in ('same', 'less', 'gone', 'near', 'new')}
        self.assertGreater(color['new'][0], color['new'][2] + 60)
        for name in ('less', 'gone'):
            self.assertGreater(color[name][2], color[name][0] + 30, name)
        self.assertGreater(color['gone'][2] - color['gone'][0], color['less'][2] - color['less'][0])
        # 10 % and 10.3 % may be one; so may what did not change.
        self.assertEqual(color['near'], color['same'])
        self.assertLess(max(color['near']) - min(color['near']), 12)
        # What is in A only has its place, with all that it called.
        self.mouse(self.frame_at(('main', 'gone', 'deep'), where))
        self.assertIn('deep', self.text('#tip'))
        self.assertIn('only in A', self.text('#tip'))
        self.assertIn('total10.0%0%\u221210.00 points', self.text('#tip'))
        self.assertIn('n = 10,000', self.text('.pane:last-child .pane-head'))
        self.assertIn('n = 20,000', self.text('.pane:last-child .pane-head'))
        self.assertIn('\u00b1 1.7 points', self.text('.pane:last-child .pane-head'))
        rows = self.page.run("""return [...document.querySelectorAll('.row')].map((row) =>
            [row.querySelector('bdi').textContent, ...[...row.querySelectorAll('.num')].slice(0, 3).map((cell) => cell.textContent)])""")
        self.assertEqual(rows[:3], [['new', '0%', '29.7%', '+29.70'], ['less', '40.0%', '20.0%', '\u221220.00'],
                                    ['deep', '10.0%', '0%', '\u221210.00']])
        self.assertIn('noise', self.page.run("return [...document.querySelectorAll('.row')].find((row) => "
                                             "row.textContent.startsWith('near')).lastChild.className"))
        self.click('.small button', 'total')
        self.assertEqual(self.texts('.row bdi')[:4], ['new', 'less', 'deep', 'gone'])
        self.page.run("const norm = document.querySelector('#norm'); norm.value = 'raw'; norm.dispatchEvent(new Event('change'))")
        self.ready()
        self.assertEqual(self.asked('diff')['norm'], 'raw')
        # A range with itself: nothing is more, nothing is less.
        self.show_diff(a, a)
        where = places({tuple(stack): weight for stack, weight in a})
        colors = {tuple(self.color(self.frame_at(('main', name), where))) for name in ('same', 'less', 'gone', 'near')}
        self.assertEqual(len(colors), 1)

    def test_link(self):
        """All of the state is in the address."""
        self.show()
        self.click('#kinds button', 'oncpu')
        self.click('#views button', 'Diff')
        self.page.run("""const by = document.querySelector('.by'); by.value = 'region'; by.dispatchEvent(new Event('change'))""")
        self.ready()
        self.mouse(self.step_x(NOW - 3000), DOWN, self.step_x(NOW - 2800), UP)
        self.ready()
        self.page.press('/', *'find')
        self.click('#turn')
        fragment = self.page.run('return location.hash')
        questions = [self.mock.asked(path)[-1] for path in ('diff', 'timeline')]
        shown = lambda: self.page.run(  # noqa: E731
            # A second may have passed.
            "return [...document.querySelectorAll('.side-foot, #found, .pane-head, .row, .crumbs')]"
            r".map((one) => one.textContent.replace(/:\d\d\b/g, ''))")
        before = shown()
        self.show(fragment[1:])
        self.assertEqual(self.page.run('return location.hash'), fragment)
        self.assertEqual([self.mock.asked(path)[-1] for path in ('diff', 'timeline')], questions)
        self.assertEqual(shown(), before)
        # Back and forward.
        self.click('#views button', 'Table')
        self.page.run('history.back()')
        self.page.wait("return location.hash.includes('v=diff')")
        self.ready()
        self.assertEqual(shown(), before)
        self.page.run('history.forward()')
        self.page.wait("return location.hash.includes('v=table')")
        # A copied link has times that do not move.
        self.page.devtools('Browser.grantPermissions', origin=self.mock.url,
                           permissions=['clipboardReadWrite', 'clipboardSanitizedWrite'])
        self.show('by=region')
        self.click('#copy')
        self.page.wait("return document.querySelector('#copy').textContent === 'Copied'")
        link = self.page.call('POST', 'execute/async', {'script': 'navigator.clipboard.readText().then(arguments[0])', 'args': []})
        begin, end = (int(re.search(f'[#&]{name}=(\\d+)', link)[1]) for name in ('from', 'to'))
        self.assertEqual(end - begin, HOUR)
        self.assertAlmostEqual(end, NOW, delta=60)
        # What is no view, and a zoom into what is not there, show what there is.
        self.show('v=nothing&zoom=9-zzz')
        self.assertEqual(self.texts('.crumbs button'), ['all'])
        self.assertIn('is not among these', self.text('.crumbs'))

    def test_theme(self):
        ground = lambda: self.page.run('return getComputedStyle(document.body).backgroundColor')  # noqa: E731
        self.show()
        self.assertEqual(ground(), 'rgb(246, 245, 242)')
        self.page.prefer(prefers_color_scheme='dark')
        self.page.wait("return getComputedStyle(document.body).backgroundColor === 'rgb(20, 22, 26)'")
        self.page.press('d')
        self.assertEqual(ground(), 'rgb(246, 245, 242)')
        self.page.reload()
        self.ready()
        self.assertEqual(ground(), 'rgb(246, 245, 242)')
        self.page.run('localStorage.clear()')

    def test_colours(self):
        """The server says them; tests/serve/colors.py holds it to those of the picture."""
        kinds = (USER, INLINED, JIT, KERNEL, FILE, INTERP, WAKER, ROOT, MARK)
        frames = [Frame(f'{word}_{kind}', '', kind) for kind in kinds for word in ('read', 'parse', 'std::sort')]
        changed = {'near': (5000, 5050), 'less': (5000, 3000), 'much less': (5000, 1000), 'more': (3000, 5000), 'much more': (1000, 4950)}
        for scheme in ('light', 'dark'):
            self.page.prefer(prefers_color_scheme=scheme)
            model = model_of([([frame], 1) for frame in frames])
            self.show('v=graph', model)
            self.mouse((5, 5))
            truth = {frame.name: rgb(FRAME_PALETTE[scheme][color_of(frame)][0]) for frame in frames}
            self.assertGreater(len({*truth.values()}), 12)
            self.check_colors(list(truth), places(model.stacks(NOW - HOUR, NOW, 'oncpu', ())), truth, scheme)
            self.show('v=table', model)
            rows = self.page.run("""return [...document.querySelectorAll('.row')].map((row) =>
                [row.querySelector('bdi').textContent, getComputedStyle(row.querySelector('.swatch')).backgroundColor])""")
            self.assertEqual(rows, [[name, truth[name]] for name, _ in rows])
            self.assertGreater(len(rows), 12)
            self.show_diff(*[[([Frame(name)], pair[side]) for name, pair in changed.items()] for side in (0, 1)])
            self.mouse((5, 5))
            truth = dict(zip(changed, (rgb(CHANGE_PALETTE[scheme][i][0]) for i in (0, 6, 8, 2, 4))))
            self.check_colors(list(changed), places({(Frame(name),): sum(pair) for name, pair in changed.items()}), truth, scheme)
            swatches = self.page.run("return [...document.querySelectorAll('.scale i')].map((one) => getComputedStyle(one).backgroundColor)")
            self.assertEqual(swatches, [rgb(CHANGE_PALETTE[scheme][i][0]) for i in (8, 7, 6, 5, 1, 2, 3, 4, 0)])

    def test_widths(self):
        """At no width is anything beyond the edge, nor does a long number hide its share."""
        stacks = [((Frame('java', '', ROOT), Frame(name, 'x.jar')), 5 ** i) for i, name in enumerate(
            ('short', 'org.apache.catalina.core.ApplicationFilterChain.internalDoFilter(ServletRequest, ServletResponse)') * 7)]
        self.addCleanup(self.page.devtools, 'Emulation.clearDeviceMetricsOverride')
        for width in (400, 700, 1280):
            self.page.devtools('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)
            for fragment in ('kind=offcpu', 'kind=offcpu&v=table', 'kind=offcpu&v=diff', 'kind=offcpu&v=compare'):
                self.show(fragment, model_of(stacks, 'offcpu'))
                beyond = self.page.run("""return [...document.querySelectorAll('button, input, select, canvas, .row, #zone')].filter((one) =>
                    one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))""")
                self.assertEqual((beyond, self.page.run('return document.documentElement.scrollWidth')), ([], width), fragment)
                shares = self.page.run("""return [...document.querySelectorAll('.row .num small')].map((one) => [one.textContent,
                    one.scrollWidth <= one.clientWidth + 1, one.getBoundingClientRect().right <= one.parentNode.getBoundingClientRect().right])""")
                self.assertTrue(all(is_whole and is_inside for _, is_whole, is_inside in shares), (width, fragment, shares))

    def test_hostile(self):
        stacks = [([Frame(name, name), Frame(name, name, KERNEL)], 3) for name in HOSTILE]
        tags = {'kind': 'oncpu', '<b>key</b>': HOSTILE[1], '__proto__': HOSTILE[0], 'comma': 'a,b'}
        model = Model(NOW, [Series(tags, stacks, NOW - HOUR, NOW)])
        self.show('by=%3Cb%3Ekey%3C%2Fb%3E', model)
        cleaned = [re.sub('[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]', '\ufffd', name) for name in HOSTILE]
        self.page.run("document.querySelector('.rows').scrollTop = 0")
        shown = self.texts('.row bdi')
        self.assertEqual({name[:300] for name in cleaned[:8]} - set(shown), set())
        where = places(model.stacks(NOW - HOUR, NOW, 'oncpu', ()))
        for name, label in zip(HOSTILE, cleaned):
            self.mouse(self.frame_at((name,), where))
            tip = self.text('#tip strong')
            self.assertTrue(label.startswith(tip.rstrip('\u2026')), (label[:40], tip[:40]))
        self.mouse(self.frame_at((HOSTILE[0],), where), DOWN, UP)
        self.ready()
        self.click('.add-tag')
        self.click('.keys button', 'comma 1')
        self.page.click(self.page.run("return document.querySelector('.value button')"))
        self.ready()
        # A comma would be two values.
        self.assertEqual(self.asked('flame')['tag'], ['comma=~^a,b$'])
        self.page.run("location.hash = '#v=single&q=' + encodeURIComponent('=' + arguments[0]) + '&tag=__proto__%3D<img>&by=constructor'", HOSTILE[1])
        self.ready()
        self.mock.errors['flame'] = (500, {'error': HOSTILE[1]})
        self.refused = 1
        self.click('#kinds button', 'oncpu')
        self.click('#presets button', '5 min')
        self.assertIn(HOSTILE[1], self.text('.message'))
        self.assertTrue(self.page.run("return typeof hit === 'undefined'"))
        self.assertEqual(self.page.run("return document.querySelectorAll('img, iframe, b:not(.num b), script:not([src])').length"), 0)

    def test_empty(self):
        self.show('from=now-9h&to=now-8h')
        self.assertIn('Nothing was recorded in this range', self.text('.message'))
        self.click('.message button')
        self.assertIn('samples', self.text('.pane-head strong'))
        self.show('v=diff&from=now-9h&to=now-8h&vs_from=now-8h&vs_to=now-7h')
        self.assertIn('Nothing was recorded', self.text('.message'))
        # Of one side only: all is grey, and it says why.
        self.show('v=diff&from=now-9h&to=now-8h&vs_from=now-1h&vs_to=now')
        self.assertIn('nothing recorded in A', self.texts('.pane .warn'))
        self.show('kind=nosuch')
        self.assertIn('no profiles of the kind \u201cnosuch\u201d', self.text('.message'))
        self.assertEqual(self.texts('.message button'), [])
        self.show('', Model(NOW, []))
        self.assertIn('This store is still empty', self.text('.message'))

    def test_errors(self):
        sentence = "cannot read '/var/lib/stackbpf/head': Input/output error; run 'stackbpf store check'"
        self.refused = 1
        for path in ('flame', 'timeline', 'tags'):
            self.mock.errors[path] = (500, {'error': sentence})
        self.show()
        self.assertIn(sentence, self.text('.message'))
        self.assertEqual(self.texts('.row'), [])
        self.click('.add-tag')
        self.page.wait("return document.querySelector('.values').textContent.includes('Input/output error')")
        self.page.press('Escape')
        self.mock.errors = {}
        self.click('.message button')
        self.assertIn('samples', self.text('.pane-head strong'))
        self.mock.errors['flame'] = (500, b'<html>proxy</html>')
        self.click('#presets button', '5 min')
        self.assertIn('status 500', self.text('.message'))
        self.assertEqual(self.texts('.row'), [])
        for broken in ({'names': [], 'modules': [], 'total': 1, 'nodes': {'name': [0]}},
                       {'names': ['x'], 'modules': [''], 'total': 1, 'nodes': {
                           'name': [0, 0], 'module': [0, 0], 'kind': [0, 0], 'depth': [0, 7], 'self': [0, 1], 'total': [1, 1]}}):
            self.mock.errors['flame'] = (200, broken)
            self.click('#presets button', '7 days')
            self.assertIn('invalid call tree', self.text('.message'))
            self.click('#presets button', '1 h')
        self.mock.errors['info'] = (500, {'error': 'no store'})
        self.show()
        self.assertIn('no store', self.text('#notice'))
        self.mock.errors = {}
        self.show()
        self.mock.stop()
        self.page.run("document.querySelector('#presets button').click()")
        self.page.wait("return document.querySelector('#notice').textContent.includes('does not answer')")

    def test_download(self):
        self.show('tag=vehicle%3Dcar&from=now-1h')
        self.click('#open-download')
        links = self.page.run("return [...document.querySelectorAll('.menu a')].map((one) => one.href)")
        self.assertEqual(tuple(re.search('format=([a-z]+)', link)[1] for link in links), FORMATS)
        self.assertEqual(self.texts('.menu a small'), [f'{name}, in words' for name in FORMATS])
        with urllib.request.urlopen(links[2]) as answer:
            lines = answer.read().decode().splitlines()
        self.assertEqual(sum(int(line.rsplit(' ', 1)[1]) for line in lines), sum(self.weights(rules=['vehicle=car']).values()))

    def test_large(self):
        """The time from the answer's arrival to the picture is printed, and not judged here."""
        for nr in (8192, 30000):
            model = large(nr, NOW)
            model.nr_cut = 77
            self.show('v=single', model)
            self.page.wait("return performance.getEntriesByName('flame').length")
            took = self.page.run("return performance.getEntriesByName('flame')[0].duration")
            weights = self.weights()
            where = places(weights)
            print(f'{len(where)} nodes: {took:.0f} ms from the answer to the picture')
            self.assertAlmostEqual(len(where), nr, delta=1)
            self.assertIn('77 frames in (other)', self.texts('.warn'))
            self.page.press('/', *'lock_7')
            truth = sum(weight for stack, weight in weights.items() if any('lock_7' in frame.name for frame in stack))
            self.assertIn(share(truth / sum(weights.values())), self.text('#found'))
            path = max((path for path in where if len(path) == 5), key=lambda path: where[path][1] - where[path][0])
            self.mouse(self.frame_at(path, where))
            self.assertTrue(self.text('#tip').startswith(path[-1]))

    def test_size(self):
        """What is sent is small, and needs nothing from elsewhere."""
        self.show()
        urls = self.page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        self.assertEqual([url for url in urls if not url.startswith(self.mock.url)], [])
        self.assertIn("script-src 'self'", CSP)
        nr_bytes = sum(len(shipped(pathlib.Path(PAGE_DIR) / f'page.{name}').encode()) for name in ('html', 'css', 'js'))
        self.assertLess(nr_bytes, PAGE_BYTES_MAX)
        sources = [path for path in user_files('web/*') if path.suffix in ('.html', '.css', '.js')]
        self.assertGreater(len(sources), 20)
        for path in sources:
            text = path.read_text(encoding='utf-8')
            self.assertNotRegex(text, r'innerHTML|insertAdjacentHTML|document\.write|eval\(|style="|https?://(?!www\.w3\.org/)')

    def test_stylesheets(self):
        """What is sent of them says what was written."""
        self.show()
        read = """const sheet = new CSSStyleSheet();
            sheet.replaceSync(arguments[0]);
            return [...sheet.cssRules].map((rule) => rule.cssText.replace(/, +/g, ','));"""
        for path in user_files('*.css'):
            rules = self.page.run(read, path.read_text(encoding='utf-8'))
            self.assertTrue(rules)
            self.assertEqual(self.page.run(read, shipped(path)), rules, path)

    def test_pictures(self):
        """To be looked at."""
        for name, fragment, scheme in (
                ('single', 'by=region&tag=vehicle%3Dcar', 'light'), ('single', '', 'dark'),
                ('compare', 'v=compare&by=vehicle&from=now-30m&to=now&vs_from=now-30m&vs_to=now&win_from=now-1h&win_to=now'
                            '&tag=region%3Dus-east&vs_tag=region%3Dap-south', 'light'),
                ('diff', 'v=diff&from=now-30m&to=now&vs_from=now-30m&vs_to=now&win_from=now-1h&win_to=now'
                         '&tag=region%3Dus-east&vs_tag=region%3Dap-south', 'light'),
                ('diff', 'v=diff&tag=region%3Dap-south&vs_tag=region%3Dap-south', 'dark')):
            self.page.prefer(prefers_color_scheme=scheme)
            self.show(fragment)
            self.mouse((5, 5))
            self.page.screenshot(f'{DIR}/page-{name}-{scheme}.png')


def main():
    global BROWSER, PAGE_DIR, DIR
    PAGE_DIR, DIR = (sys.argv.pop(1) for _ in range(2))
    with browser() as BROWSER:
        unittest.main()


if __name__ == '__main__':
    main()
