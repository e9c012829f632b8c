#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""colors.py STACKBPF STORE_TEXT FLAMEGRAPH: the colours in /api/flame and /api/diff are those of the pictures that
flamegraph(1) draws of the same stacks, on a light and on a dark ground."""
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from serving import Store, check, done, serving

T0 = int(time.time()) // 3600 * 3600 - 86400
SVG = '{http://www.w3.org/2000/svg}'
UNITS = {'oncpu': 'samples', 'offcpu': 'us', 'wakeup': 'us', 'wall': 'us', 'io': 'bytes', 'nosuch': 'samples'}
SUFFIXES = ('', '_[i]', '_[j]', '_[k]', '_[f]', '_[p]', '_[w]')
NAMES = [f'{word}_{end[2:3]}{end}' for end in SUFFIXES for word in ('read', 'parse', 'std::sort', 'write', '/lib/a')] + [
    '[unknown]', '[libx.so+0x12]', '--', '[truncated: too deep]', '[idle: epoll]', '[lock: mutex]', '[runqueue]',
    '[blocked]', '[residual]', '[running]', '\u4f60\u597d']
# A waker's stack behind a delimiter, and code of an idle thread.
DEEP = [('waits', '--', 'wakes', 'main'), ('[idle]', 'app', 'epoll_wait')]
# In A and in B: every step, what may be chance, and what is in one only.
CHANGED = {'near': (5000, 5050), 'less1': (5000, 4200), 'less2': (5000, 3000), 'less3': (5000, 1500), 'less4': (5000, 1000),
           'gone': (5000, 0), 'new': (0, 1000), 'more1': (5000, 6000), 'more2': (3000, 5000), 'more3': (2000, 5000),
           'more4': (1000, 9250)}


def drawn(svg):
    """{path: (light, dark)} of each box, both of them [fill, text]."""
    root = ElementTree.fromstring(svg)
    light, dark = ''.join(root.find(f'{SVG}style').itertext()).split('@media', 1)
    fills = [dict(re.findall(r'\.((?:[a-z]\d)|same|more\d|less\d)\{fill:(#\w+)\}', css)) for css in (light, dark)]
    texts = [dict(re.findall(r'\.(\w\d)\+text\{fill:(#\w+)\}', css)) for css in (light, dark)]
    whole = {'#fff': '#ffffff', '#000': '#000000'}
    found, rows = {}, {}
    for group in root.find(f"{SVG}g[@id='frames']"):
        rect = group.find(f'{SVG}rect')
        name = group.find(f'{SVG}title').text.rsplit(' (', 1)[0]
        x, y, width = (float(rect.get(key)) for key in ('x', 'y', 'width'))
        rows.setdefault(y, []).append((x, width, name, rect.get('class').split()[0]))
    ys = sorted(rows, reverse=True)
    for level, y in enumerate(ys[1:], 1):
        for x, width, name, cls in rows[y]:
            path = [next(n for a, w, n, _ in rows[below] if a - 0.2 <= x + width / 2 <= a + w + 0.2) for below in ys[1:level]]
            found[(*path, name)] = tuple([fills[i][cls], whole[texts[i].get(cls, ('#000', '#fff')[i])]] for i in range(2))
    return found


def told(data):
    """The same of an answer."""
    nodes, palette, path, found = data['nodes'], data['palette'], [], {}
    for i, (name, depth) in enumerate(zip(nodes['name'], nodes['depth'])):
        del path[depth:]
        path.append(data['names'][name])
        color = nodes['color'][i]
        found[tuple(path[1:])] = palette['light'][color], palette['dark'][color]
    del found[()]
    return found


def flame(server, store):
    lines = [(T0, kind, unit, {'host': 'h'}, 1000, stack) for kind, unit in UNITS.items()
             for stack in [(name,) for name in NAMES] + DEEP]
    store.add(lines)
    for kind in UNITS:
        data = server.json('/api/flame', from_=T0, to=T0 + 10, kind=kind, table=1000)
        have, want = told(data), drawn(server.get('/api/profile', format='svg', from_=T0, to=T0 + 10, kind=kind)[2])
        wrong = {path: (have.get(path), color) for path, color in want.items() if have.get(path) != color}
        check(have.keys() == want.keys() and not wrong, f'{kind}: {len(want)} boxes have the colours of the picture {wrong}')
        palette = data['palette']
        rows = {row['name']: (palette['light'][row['color']], palette['dark'][row['color']]) for row in data['table']}
        # A function is one row, inlined or not.
        check(all(rows[path[0]] == color for path, color in have.items() if len(path) == 1 and not path[0].endswith('_i')),
              f'{kind}: and so have the rows of the table')


def diff(server, store, flamegraph):
    for side in range(2):
        store.add([(T0 + 100 + 10 * side, 'oncpu', 'samples', {'host': 'h'}, pair[side], (name,))
                   for name, pair in CHANGED.items() if pair[side]])
    data = server.json('/api/diff', from_=T0 + 100, to=T0 + 110, vs_from=T0 + 110, vs_to=T0 + 120)
    folded = ''.join(f'{name} {a} {b}\n' for name, (a, b) in CHANGED.items())
    svg = subprocess.run([flamegraph, '--quiet'], input=folded.encode(), capture_output=True, check=True).stdout
    have, want = told(data), {path: tuple([fill, text] for (fill, _), text in zip(colors, ('#000000', '#ffffff')))
                              for path, colors in drawn(svg).items()}
    check(len({light[0] for light, _ in want.values()}) == 9, 'diff: the picture has all steps')
    check({name: have[name,] for name in CHANGED if (name,) in want} == {path[0]: color for path, color in want.items()},
          'diff: the colours of the picture')
    check([color[0] for color in data['palette']['light']][:1] == [have['near',][0][0]], 'diff: the first colour is that of no change')


def main():
    binary, store_text, flamegraph = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as work:
        store = Store(store_text, work + '/store')
        store.add([(T0 - 100, 'oncpu', 'samples', {'host': 'h'}, 1, ('main',))])
        with serving(binary, '--store', store.path) as server:
            flame(server, store)
            diff(server, store, flamegraph)


main()
done()
