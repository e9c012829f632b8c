#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The HTTP API of `stackbpf serve` from made-up profiles, for tests of its page: what was asked is kept, and
what is answered is known. By hand: page_mock.py DIR_OF_THE_PAGE [PORT]"""
import collections
import http.server
import json
import math
import pathlib
import re
import sys
import threading
import time
import urllib.parse
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'user/flamegraph'))
from viewer_text import shipped  # noqa: E402

BLOCK_S = 10
# enum sb_frame_kind
ROOT, USER, INLINED, JIT, KERNEL, KERNEL_INLINED, DELIMITER, MARK, FILE, INTERP, WAKER = range(11)
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
FORMATS = ('pprof', 'svg', 'folded', 'newest')
OTHER = '(other)'

Frame = collections.namedtuple('Frame', 'name module kind', defaults=('', USER))


class Series:
    """Stacks that were seen at a pace, in each block from @begin on until @end."""

    def __init__(self, tags, stacks, begin, end, pace=None):
        self.tags, self.stacks, self.begin, self.end = tags, stacks, begin, end
        self.pace = pace or (lambda at: 1)

    def times(self, start, end):
        first = max(start, self.begin)
        first += -first % BLOCK_S
        return sum(self.pace(at) for at in range(first, min(end, self.end), BLOCK_S))


class Model:
    """Series of one kind each; gaps are blocks in which nothing was recorded."""

    def __init__(self, now, series, gaps=(), lost=None, nr_cut=0, trunc=0):
        self.now, self.series, self.gaps = now, series, gaps
        self.lost, self.nr_cut, self.trunc = lost or {}, nr_cut, trunc
        self.units = {'oncpu': 'samples', 'offcpu': 'us', 'io': 'bytes', 'wall': 'us', 'nosuch': 'samples'}

    def kinds(self):
        of = {kind: [one for one in self.series if one.tags['kind'] == kind] for kind in (one.tags['kind'] for one in self.series)}
        return [{'kind': kind, 'unit': self.units[kind], 'hz': 99 if kind == 'oncpu' else 0,
                 'from': min(one.begin for one in series), 'to': max(one.end for one in series)} for kind, series in of.items()]

    def is_gap(self, at):
        return any(begin <= at < end for begin, end in self.gaps)

    def chosen(self, kind, rules):
        return [one for one in self.series if one.tags['kind'] == kind and all(holds(rule, one.tags) for rule in rules)]

    def stacks(self, start, end, kind, rules, by=None):
        weights = collections.Counter()
        for one in self.chosen(kind, rules):
            times = one.times(start, end)
            head = [Frame(one.tags.get(by, ''), '', ROOT)] if by else []
            for stack, weight in one.stacks:
                if weight * times:
                    weights[tuple([*head, *stack])] += weight * times
        return weights


def holds(rule, tags):
    key, operator, text = re.match(r'([^=!~]+)(!=|=~|!~|=)(.*)', rule, re.S).groups()
    value = tags.get(key, '')
    is_it = re.search(text, value) is not None if '~' in operator else value in text.split(',')
    return is_it != operator.startswith('!')


class Node:
    def __init__(self):
        self.self, self.total, self.children = [0, 0], [0, 0], {}


def tree_of(*profiles):
    root = Node()
    for side, weights in enumerate(profiles):
        for stack, weight in weights.items():
            at = root
            at.total[side] += weight
            for frame in stack:
                at = at.children.setdefault(frame, Node())
                at.total[side] += weight
            at.self[side] += weight
    return root


def error_of(nr):
    """What n = @nr samples know shares to, at 99 %."""
    return math.sqrt(1.97 / nr) if nr else None


def z_of(a, b, all_a, all_b):
    if not all_a or not all_b:
        return None
    both = (a + b) / (all_a + all_b)
    error = math.sqrt(both * (1 - both) * (1 / all_a + 1 / all_b))
    return (b / all_b - a / all_a) / error if error else 0


def palette(colors):
    """[fill, text] of each colour on a light and on a dark ground."""
    fills = [[f'#{round(red * part):02x}{round(green * part):02x}{round(blue * part):02x}' for red, green, blue in colors]
             for part in (1, 0.5)]
    return {ground: [[fill, text] for fill in of] for ground, of, text in zip(('light', 'dark'), fills, ('#000000', '#ffffff'))}


# By kind of frame, four shades of each; in a comparison no change, more, less.
KIND_RGB = ((250, 200, 110), (253, 196, 106), (254, 236, 190), (130, 208, 170), (234, 116, 78), (234, 116, 78), (92, 92, 92),
            (240, 234, 225), (248, 200, 116), (138, 202, 104), (104, 194, 192))
FRAME_PALETTE = palette([[part - 6 * shade for part in rgb] for rgb in KIND_RGB for shade in range(4)])
CHANGE_PALETTE = palette([(222, 222, 222), *[(250, 236 - 40 * i, 226 - 40 * i) for i in range(1, 5)],
                          *[(226 - 40 * i, 236 - 20 * i, 250) for i in range(1, 5)]])


def color_of(frame):
    return 4 * frame.kind + zlib.crc32(frame.name.encode()) % 4


def color_of_change(a, b, z):
    if a == b or z is not None and abs(z) < 3:
        return 0
    step = 1 + sum(max(a, b) >= ratio * min(a, b) for ratio in (1.25, 2, 4))
    return step if b > a else 4 + step


def nodes_of(root, is_diff):
    names, modules = {}, {'': 0}
    rows = {key: [] for key in ('name', 'module', 'kind', 'depth', 'self', 'total', 'color')}
    if is_diff:
        rows.update(self_b=[], total_b=[], z=[])
    work = [(Frame('all', '', ROOT), root, 0)]
    while work:
        frame, node, depth = work.pop()
        rows['name'].append(names.setdefault(frame.name, len(names)))
        rows['module'].append(modules.setdefault(frame.module, len(modules)))
        rows['kind'].append(frame.kind)
        rows['depth'].append(depth)
        rows['self'].append(node.self[0])
        rows['total'].append(node.total[0])
        if is_diff:
            rows['self_b'].append(node.self[1])
            rows['total_b'].append(node.total[1])
            rows['z'].append(z_of(*node.total, *root.total))
            rows['color'].append(color_of_change(*(part / (all_ or 1) for part, all_ in zip(node.total, root.total)), rows['z'][-1]))
        else:
            rows['color'].append(color_of(frame))
        work += [(name, child, depth + 1) for name, child in sorted(node.children.items(), reverse=True)]
    return {'names': list(names), 'modules': list(modules), 'nodes': rows,
            'palette': CHANGE_PALETTE if is_diff else FRAME_PALETTE}


def functions(profile):
    rows = collections.defaultdict(lambda: [0, 0])
    for stack, weight in profile.items():
        rows[stack[-1].name][0] += weight
        for name in {frame.name for frame in stack}:
            rows[name][1] += weight
    return rows


class Mock:
    """A server on a port of its own until stop()."""

    def __init__(self, page, model, port=0):
        self.page, self.model = pathlib.Path(page), model
        self.requests, self.errors, self.answers = [], {}, {}
        mock, self.is_stopped = self, False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                # A connection that is kept alive outlives the server.
                self.close_connection |= mock.is_stopped
                if not mock.is_stopped:
                    mock.handle(self)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}/'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.is_stopped = True
        self.server.shutdown()
        self.server.server_close()

    def asked(self, path):
        """Questions to /api/@path, as lists of pairs."""
        return [query for name, query in self.requests if name == path]

    def handle(self, request):
        url = urllib.parse.urlsplit(request.path)
        if url.path.startswith('/api/'):
            path = url.path[len('/api/'):]
            query = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
            self.requests.append((path, query))
            self.reply(request, *self.answer(path, query))
            return
        name = url.path.lstrip('/') or 'page.html'
        types = {'page.html': 'text/html; charset=utf-8', 'page.css': 'text/css', 'page.js': 'text/javascript'}
        if name in types:
            self.reply(request, 200, shipped(self.page / name).encode(), types[name])
        else:
            self.reply(request, 404, b'{"error":"there is no such page"}')

    def reply(self, request, status, body, mime='application/json'):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request.send_response(status)
        for key, value in (('Content-Type', mime), ('Content-Length', str(len(body))), ('Cache-Control', 'no-store'),
                           ('Content-Security-Policy', CSP), ('X-Content-Type-Options', 'nosniff')):
            request.send_header(key, value)
        request.end_headers()
        try:
            request.wfile.write(body)
        except BrokenPipeError:
            pass

    def answer(self, path, query):
        if path in self.errors:
            return self.errors[path]
        if path in self.answers:
            return 200, self.answers[path]
        if path == 'info':
            return 200, self.info()
        one = {key: value for key, value in query if not key.endswith('tag')}
        rules = [value for key, value in query if key == 'tag']
        try:
            span = self.time(one['from']), self.time(one['to'])
        except ValueError as error:
            return 400, {'error': str(error)}
        if path == 'diff':
            return 200, self.diff(one, span, rules, [value for key, value in query if key == 'vs_tag'])
        answers = {'tags': self.tags, 'timeline': self.timeline, 'flame': self.flame, 'profile': self.profile}
        return 200, answers[path](one, span, rules)

    def time(self, text):
        found = re.fullmatch(r'now(?:-(\d+)([smhdw]))?', text)
        if found:
            unit = {'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}.get(found[2], 0)
            return self.model.now - int(found[1] or 0) * unit
        if not re.fullmatch(r'@?\d+', text):
            raise ValueError(f"'{text}' is no time: write now-1h, 2026-11-21T14:00 or @1790000000")
        return int(text.lstrip('@'))

    def info(self):
        series = self.model.series
        return {'version': '0', 'store': '/var/lib/stackbpf', 'host': ['shop-1'], 'now': self.model.now,
                'from': min((one.begin for one in series), default=0),
                'to': max((one.end for one in series), default=0), 'block_s': BLOCK_S, 'default_kind': 'oncpu',
                'formats': [{'format': name, 'summary': f'{name}, in words'} for name in FORMATS],
                'kinds': self.model.kinds()}

    def tags(self, one, span, rules):
        values = collections.defaultdict(collections.Counter)
        for series in self.model.chosen(one['kind'], rules):
            weight = sum(weight for _, weight in series.stacks) * series.times(*span)
            for key, value in series.tags.items():
                values[key][value] += weight
        return {'tags': [{'key': key, 'values': [{'value': value, 'weight': weight}
                                                 for value, weight in of.most_common(100)],
                          'nr_more': max(0, len(of) - 100)} for key, of in sorted(values.items())]}

    def timeline(self, one, span, rules):
        step = max(1, math.ceil((span[1] - span[0]) / int(one.get('points', 300)) / BLOCK_S)) * BLOCK_S
        begin = span[0] - span[0] % step
        steps = range(begin, span[1], step)
        by, chosen, of = one.get('by'), self.model.chosen(one['kind'], rules), {}
        for series in chosen:
            weights = of.setdefault(series.tags.get(by, '') if by else '', [0] * len(steps))
            weight = sum(weight for _, weight in series.stacks)
            for i, at in enumerate(steps):
                weights[i] += weight * series.times(at, at + step)
        recorded = [any(series.begin <= at < series.end for series in self.model.series) and not self.model.is_gap(at)
                    for at in steps]
        known = lambda weights: [val if is_known else None for val, is_known in zip(weights, recorded)]  # noqa: E731
        return {'kind': one['kind'], 'unit': self.model.units[one['kind']], 'from': begin, 'to': span[1], 'step_s': step,
                'series': [{'value': value, 'weights': known(weights)}
                           for value, weights in sorted(of.items(), key=lambda item: -sum(item[1]))],
                'lost': known([self.model.lost.get(at, 0) for at in steps])}

    def flame(self, one, span, rules):
        stacks = self.model.stacks(*span, one['kind'], rules, one.get('by'))
        root = tree_of(stacks)
        frames = {frame.name: frame for stack in stacks for frame in stack}
        table = [{'name': name, 'module': frames[name].module, 'self': row[0], 'total': row[1], 'color': color_of(frames[name])}
                 for name, row in functions(stacks).items()] if 'table' in one else None
        nr = root.total[0]
        return {'kind': one['kind'], 'unit': self.model.units[one['kind']], 'hz': 99 if one['kind'] == 'oncpu' else 0,
                'from': span[0], 'to': span[1], 'total': nr, 'nr_samples': nr, 'errors': [error_of(nr)],
                'lost': sum(nr for at, nr in self.model.lost.items() if span[0] <= at < span[1]),
                'trunc': self.model.trunc, 'nr_nodes_cut': self.model.nr_cut, 'table': table,
                'nr_rows_cut': 0, **nodes_of(root, False)}

    def diff(self, one, span, rules, vs_rules):
        sides = (self.model.stacks(*span, one['kind'], rules),
                 self.model.stacks(self.time(one['vs_from']), self.time(one['vs_to']), one['kind'], vs_rules))
        root = tree_of(*sides)
        a, b = (functions(side) for side in sides)
        table = [{'name': name, 'self': [a[name][0], b[name][0]], 'total': [a[name][1], b[name][1]],
                  'z': z_of(a[name][0], b[name][0], *root.total), 'z_total': z_of(a[name][1], b[name][1], *root.total)} for name in sorted({*a, *b})]
        share = lambda row: abs(row['self'][1] / (root.total[1] or 1) - row['self'][0] / (root.total[0] or 1))  # noqa: E731
        return {'kind': one['kind'], 'unit': self.model.units[one['kind']], 'hz': 99, 'from': span[0], 'to': span[1],
                'total': sum(root.total), 'totals': root.total, 'nr_samples': root.total, 'errors': [error_of(nr) for nr in root.total], 'norm': one['norm'],
                'lost': 0, 'trunc': 0, 'nr_nodes_cut': self.model.nr_cut,
                'table': sorted(table, key=share, reverse=True)[:500], **nodes_of(root, True)}

    def profile(self, one, span, rules):
        lines = (';'.join(frame.name for frame in stack) + f' {weight}\n' for stack, weight in
                 self.model.stacks(*span, one['kind'], rules).items())
        return ''.join(lines).encode()


# ---- what there is to see ----

def code(*names, module='ride.py', kind=INTERP):
    return [Frame(name, module, kind) for name in names]


def kernel(*names):
    return [Frame(name, '[kernel]', KERNEL) for name in names]


def rideshare(now=None):
    """Three services in three regions; cars of one region wait for a lock, more of them since half an hour ago."""
    now = int(now or time.time()) // BLOCK_S * BLOCK_S
    begin, series = now - 3 * 3600, []
    base = [Frame('python3', '', ROOT), *code('Thread.run', 'BaseServer.handle_request', 'wsgi_app', 'dispatch')]
    for region in ('us-east', 'eu-north', 'ap-south'):
        for vehicle, work in (('bike', 2), ('scooter', 4), ('car', 9)):
            order = [*base, *code(f'order_{vehicle}', 'find_nearest_vehicle')]
            stacks = [
                (order, 5 * work),
                ([*order, *code('haversine')], 7 * work),
                ([*order, *code('haversine'), Frame('math_sqrt', 'libm.so.6')], 3 * work),
                ([*order, *code('load_drivers'), Frame('PyDict_GetItem', 'libpython3.11.so.1.0', INLINED)], 2 * work),
                ([*order, *code('load_drivers'), Frame('_io_read', 'libpython3.11.so.1.0'), *kernel(
                    'entry_SYSCALL_64', 'do_syscall_64', 'ksys_read', 'vfs_read', 'copy_page_to_iter')], work),
                ([*base, *code('log_request'), Frame('write', 'libc.so.6'), *kernel(
                    'entry_SYSCALL_64', 'do_syscall_64', 'ksys_write', 'vfs_write')], 2),
            ]
            tags = {'kind': 'oncpu', 'service': 'ride', 'region': region, 'vehicle': vehicle, 'host': 'shop-1'}
            series.append(Series(tags, stacks, begin, now, lambda at, w=work: 2 + (at // 60 * w * 7919 % 5)))
            if region == 'ap-south' and vehicle == 'car':
                slow = [([*order, *code('check_driver_availability', 'mutex_lock')], 150)]
                series.append(Series(tags, slow, now - 1800, now, lambda at: 3))
            waits = [([*base, *code('accept'), *kernel('do_accept', 'schedule')], 900000),
                     ([*order, *code('query_db'), *kernel('tcp_recvmsg', 'schedule')], 40000 * work)]
            series.append(Series(dict(tags, kind='offcpu'), waits, begin, now))
    reads = [([*base, *code('load_drivers'), Frame('/srv/drivers.db', '', FILE)], 1 << 20)]
    series.append(Series({'kind': 'io', 'service': 'ride', 'host': 'shop-1'}, reads, begin, now))
    return Model(now, series, gaps=[(now - 2700, now - 2520)], lost={now - 1200: 12}, trunc=34)


def large(nr_nodes, now=None):
    """A tree of @nr_nodes nodes with the root, in the last hour."""
    now = int(now or time.time()) // BLOCK_S * BLOCK_S
    nouns, stacks, nr, i = ('row', 'key', 'tree', 'page', 'lock', 'node'), [], 1, 0
    paths = set()
    while nr < nr_nodes:
        digits, path = i * 2654435761 % 2 ** 32, [Frame(f'server-{i % 3}', '', ROOT)]
        for depth in range(3 + digits % 23):
            step = (digits >> depth) % 7 if depth > 2 else depth
            path.append(Frame(f'{("parse", "eval", "read", "sort")[step % 4]}_{nouns[(step + depth) % 6]}_{(digits >> depth) % 41}',
                              'libquery.so.2', KERNEL if depth > 14 else USER))
        for depth in range(1, len(path) + 1):
            nr += tuple(path[:depth]) not in paths and nr < nr_nodes
            paths.add(tuple(path[:depth]))
            if nr == nr_nodes:
                path = path[:depth]
                break
        stacks.append((path, 1 + digits % 97 * (i % 5 == 0)))
        i += 1
    tags = {'kind': 'oncpu', 'service': 'query'}
    return Model(now, [Series(tags, stacks, now - 3600, now)])


if __name__ == '__main__':
    mock = Mock(sys.argv[1], rideshare(), int(sys.argv[2]) if len(sys.argv) > 2 else 4041)
    print(mock.url)
    threading.Event().wait()
