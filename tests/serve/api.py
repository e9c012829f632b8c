#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""api.py STACKBPF STORE_TEXT: what the server answers is what was put into the store, added up here by hand."""
import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from serving import Store, check, done, fill, serving

T0 = int(time.time()) // 3600 * 3600 - 2 * 86400
BLOCKS = 400


def clean(name):
    return name


def stacks_of(data, side=''):
    """{stack: self} of /api/flame or one side of /api/diff; and that totals are sums of what is above."""
    nodes, path, sums = data['nodes'], [], {}
    selfs, totals = nodes['self' + side], nodes['total' + side]
    below = {}
    for i, (name, depth) in enumerate(zip(nodes['name'], nodes['depth'])):
        del path[depth:]
        path.append((i, data['names'][name]))
        if selfs[i]:
            sums[tuple(name for _, name in path[1:])] = selfs[i]
        for above, _ in path:
            below[above] = below.get(above, 0) + selfs[i]
    assert all(totals[i] == below[i] for i in range(len(totals))), 'totals are not sums'
    return sums


def flame(server, store):
    rng = random.Random(7)
    rules = [([], lambda tags: True),
             (['service=car'], lambda tags: tags['service'] == 'car'),
             (['service=car,bike', 'region!=eu-north'],
              lambda tags: tags['service'] in ('car', 'bike') and tags.get('region') != 'eu-north'),
             (['region=~^us-'], lambda tags: tags.get('region', '').startswith('us-')),
             (['PID=2'], lambda tags: str(tags.get('PID')) == '2')]
    good = True
    for i in range(40):
        from_s = T0 + 10 * rng.randrange(BLOCKS)
        to_s = from_s + 10 * rng.randrange(1, BLOCKS)
        tags, holds = rules[i % len(rules)]
        if i % 5 == 4:
            to_s = min(to_s, from_s + 500)
        kind = 'offcpu' if i % 7 == 6 else 'oncpu'
        if kind == 'offcpu':
            tags, holds = [], lambda tags: True
        data = server.json('/api/flame', from_=from_s, to=to_s, tag=tags, kind=kind)
        want = store.sums(from_s, to_s, kind, holds)
        have = stacks_of(data)
        if have != want or data['total'] != sum(want.values()):
            print(from_s, to_s, tags, kind, sum(have.values()), data['total'], sum(want.values()))
            good = False
    check(good, 'flame: 40 ranges, kinds and rules are what was put in')
    data = server.json('/api/flame', from_=T0, to=T0 + 10 * BLOCKS, by='service')
    check(stacks_of(data) == store.sums(T0, T0 + 10 * BLOCKS, by='service'), 'flame: by a tag')
    lines = [line for line in store.lines if line[1] == 'oncpu']
    check(data['lost'] == len(lines) and data['trunc'] == sum(line[4] for line in lines if line[5][-1].startswith('[trunc'))
          and data['nr_samples'] == data['total'] and abs(data['errors'][0] ** 2 * data['total'] - 1.97) < 1e-3
          and data['hz'] == 100 and data['unit'] == 'samples',
          'flame: what was lost and cut, and the unit')
    some = server.json('/api/flame', from_=T0, to=T0 + 10 * BLOCKS, tag='service=car')
    mine = [line for line in lines if line[3].get('service') == 'car']
    check(some['trunc'] == sum(line[4] for line in mine if line[5][-1].startswith('[trunc')), 'flame: what was cut, by tags')
    asked = server.get('/api/flame', from_=T0, to=T0 + 10 * BLOCKS, by='nosuch')
    check(asked[0] == 400 and b"the tag 'nosuch'; the tags are" in asked[2], f'by: no such tag: {asked[2]}')
    few = server.json('/api/flame', from_=T0, to=T0 + 10 * BLOCKS, nodes=12, table=1000)
    want = {}
    for line in lines:
        for name in set(line[5]):
            row = want.setdefault(name, [0, 0])
            row[0] += line[4] * (name == line[5][-1])
            row[1] += line[4]
    check({row['name']: [row['self'], row['total']] for row in few['table']} == want and few['nr_rows_cut'] == 0,
          'flame: the table is of all stacks, however few are shown')
    check(len(few['nodes']['name']) <= 12 and few['nr_nodes_cut'] > 0 and few['weight_cut'] > 0
          and sum(stacks_of(few).values()) == data['total'], 'flame: few nodes, and no weight is lost')
    nothing = server.json('/api/flame', from_=T0 - 86400, to=T0 - 80000)
    check(nothing['total'] == 0 and nothing['nodes']['total'] == [0], 'flame: nothing recorded')


def timeline(server, store):
    data = server.json('/api/timeline', from_=T0, to=T0 + 600, points=60, by='service')
    check(data['step_s'] == 10 and data['from'] == T0 and data['to'] == T0 + 600, 'timeline: steps')
    good = len(data['series']) == 3
    for series in data['series']:
        for i, weight in enumerate(series['weights']):
            at = T0 + 10 * i
            want = sum(store.sums(at, at + 10, holds=lambda tags, of=series['value']: tags['service'] == of).values())
            good = good and weight == (None if 30 <= i < 42 else want)
    check(good, 'timeline: each step of each service; null where nothing was recorded')
    check(data['lost'] == [None if 30 <= i < 42 else 6 for i in range(60)], 'timeline: what was lost')
    few = server.json('/api/timeline', from_=T0, to=T0 + 10 * BLOCKS, points=5)
    check(len(few['series'][0]['weights']) <= 6 and
          sum(w or 0 for w in few['series'][0]['weights']) == sum(store.sums(few['from'], few['to']).values()),
          'timeline: few points have all of it')


def tags_and_info(server, store):
    info = server.json('/api/info')
    # Sums of a day begin with it.
    check(T0 - 86400 < info['from'] <= T0 and info['to'] == T0 + 10 * BLOCKS and info['host'] == ['h1']
          and abs(info['now'] - time.time()) < 60 and info['store'] == store.path and info['block_s'] == 10
          and [(k['kind'], k['unit'], k['hz']) for k in info['kinds']] ==
          [('offcpu', 'us', 0), ('oncpu', 'samples', 100)], 'info')
    data = server.json('/api/tags', from_=T0, to=T0 + 300)
    have = {tag['key']: {v['value']: v['weight'] for v in tag['values']} for tag in data['tags']}
    want = {}
    for begin, kind, _, tags, weight, _ in store.lines:
        if begin < T0 + 300 and kind == 'oncpu':
            for key, value in tags.items():
                values = want.setdefault(key, {})
                values[str(value)] = values.get(str(value), 0) + weight
    check(have == want, 'tags: values and weights')
    check(all(tag['wide'] == (tag['key'] == 'PID') for tag in data['tags']), 'tags: which are not kept for long')


def diff(server, store):
    args = {'from_': T0, 'to': T0 + 300, 'vs_from': T0 + 500, 'vs_to': T0 + 1500}
    data = server.json('/api/diff', **args)
    a, b = store.sums(T0, T0 + 300), store.sums(T0 + 500, T0 + 1500)
    check(stacks_of(data) == a and stacks_of(data, '_b') == b and data['totals'] == [sum(a.values()), sum(b.values())],
          'diff: both sides')
    check(len(data['nodes']['z']) == len(data['nodes']['name']) and data['norm'] == 'share'
          and len(data['errors']) == 2 and all(0 < error < 1 for error in data['errors']), 'diff: z of each node')
    swapped = server.json('/api/diff', from_=T0 + 500, to=T0 + 1500, vs_from=T0, vs_to=T0 + 300)
    check(all(abs((x or 0) + (y or 0)) < 1e-3 for x, y in zip(data['nodes']['z'], swapped['nodes']['z'])),
          'diff: swapped is negated')
    same = server.json('/api/diff', from_=T0, to=T0 + 300, vs_from=T0, vs_to=T0 + 300)
    check(all(not z for z in same['nodes']['z']), 'diff: with itself is nothing')
    tagged = server.json('/api/diff', from_=T0, to=T0 + 300, vs_from=T0, vs_to=T0 + 300, tag='region=us-east',
                         vs_tag='region=eu-north', norm='rate')
    check(stacks_of(tagged) == store.sums(T0, T0 + 300, holds=lambda t: t.get('region') == 'us-east') and
          stacks_of(tagged, '_b') == store.sums(T0, T0 + 300, holds=lambda t: t.get('region') == 'eu-north'),
          'diff: two sets of tags')
    leafs = {}
    for side, sums in enumerate((a, b)):
        for stack, weight in sums.items():
            leafs.setdefault(stack[-1], [0, 0])[side] += weight
    check({row['name']: row['self'] for row in data['table'] if any(row['self'])} == leafs, 'diff: its table')


def files(server, store):
    status, headers, body = server.get('/api/profile', format='folded', from_=T0, to=T0 + 4000, tag='service=car')
    have = {tuple(line.rsplit(' ', 1)[0].split(';')): int(line.rsplit(' ', 1)[1])
            for line in body.decode().splitlines() if not line.startswith('#')}
    want = store.sums(T0, T0 + 4000, holds=lambda t: t['service'] == 'car')
    check(status == 200 and have == want, 'profile: folded text')
    query = subprocess.run([server.process.args[0], 'query', '--store', store.path, '--from', str(T0), '--to', str(T0 + 4000),
                            '--tag', 'service=car', '--format', 'folded'], stdout=subprocess.PIPE, check=True)
    check(query.stdout == body, 'profile: what `query` prints')
    check(re.fullmatch(r'attachment; filename="oncpu-\d{8}T\d{6}Z\.folded"', headers['Content-Disposition']),
          'profile: a file with a name')
    for name in 'pprof', 'svg', 'html', 'speedscope', 'json', 'callgrind', 'firefox', 'bt', 'otlp':
        status, headers, body = server.get('/api/profile', format=name, from_=T0, to=T0 + 4000,
                                           headers={'Accept-Encoding': 'gzip'})
        if headers.get('Content-Encoding') == 'gzip':
            body = gzip.decompress(body)
        packed = headers['Content-Disposition'].endswith('.gz"')
        check(status == 200 and len(body) > 500 and packed == (body[:2] == b'\x1f\x8b'), f'profile: {name}')


def render(server, store):
    """As a client of Pyroscope reads it."""
    data = server.json('/render', query='oncpu{service="car",region!="eu-north"}', from_=T0, until=T0 + 300,
                       format='json')
    want = store.sums(T0, T0 + 300, holds=lambda t: t['service'] == 'car' and t.get('region') != 'eu-north')
    names, levels = data['flamebearer']['names'], data['flamebearer']['levels']
    nodes = []  # by level: (begin, end, name, self)
    for level in levels:
        x, row = 0, []
        for i in range(0, len(level), 4):
            x += level[i]
            row.append((x, x + level[i + 1], names[level[i + 3]], level[i + 2]))
            x += level[i + 1]
        nodes.append(row)
    have = {}
    for depth, row in enumerate(nodes):
        for begin, end, name, own in row:
            if own:
                path = [next(n for b, e, n, _ in nodes[d] if b <= begin and end <= e) for d in range(1, depth)] + [name]
                have[tuple(path)] = have.get(tuple(path), 0) + own
    check(have == want and data['flamebearer']['numTicks'] == sum(want.values())
          and data['flamebearer']['maxSelf'] == max(want.values()), 'render: the flamebearer')
    check(data['metadata'] == {'format': 'single', 'spyName': 'stackbpf', 'sampleRate': 100, 'units': 'samples'}
          and data['version'] == 1, 'render: metadata')
    line = data['timeline']
    check(line['startTime'] == T0 and line['durationDelta'] == 10 and sum(w - 1 for w in line['samples'] if w) ==
          sum(want.values()), 'render: the timeline')
    two = server.json('/render-diff', leftQuery='oncpu{service="car"}', rightQuery='oncpu{service="bike"}',
                      leftFrom=T0, leftUntil=T0 + 300, rightFrom=T0, rightUntil=T0 + 300)
    check(two['metadata']['format'] == 'double' and
          two['leftTicks'] == sum(store.sums(T0, T0 + 300, holds=lambda t: t['service'] == 'car').values()) and
          two['rightTicks'] == sum(store.sums(T0, T0 + 300, holds=lambda t: t['service'] == 'bike').values()) and
          all(len(level) % 7 == 0 for level in two['flamebearer']['levels']), 'render-diff')


def errors(server):
    for path, word in (('/api/flame?from=yesterday', 'not a valid time'), ('/api/flame?x=1', "'x'"),
                       ('/api/flame?tag=%3Da', 'not a valid tag rule'), ('/api/flame?tag=a%3D~(', 'not a valid tag rule'),
                       ('/api/flame?nodes=1', 'nodes'), ('/api/flame?nodes=99999999999999999999', 'nodes'),
                       ('/api/flame?from=%zz', 'query string'), ('/api/flame?a=%00', 'query string'),
                       ('/api/flame?' + '&'.join(f'tag=a%3D{i}' for i in range(80)), 'parameters'),
                       ('/api/diff?norm=x', 'share'), ('/api/profile?format=exe', 'pprof'),
                       ('/api/profile?format=distr', 'duration'), ('/render?query=%7Bbad', 'query'),
                       ('/api/flame?from=2&to=1', '')):
        status, headers, body = server.get(path)
        error = json.loads(body).get('error', '')
        check(status == 400 and headers['Content-Type'] == 'application/json' and word in error
              and '\n' not in error and error, f'400: {path[:50]}: {error}')


def page(server):
    for path, kind in (('/', 'text/html'), ('/page.js', 'text/javascript'), ('/page.css', 'text/css')):
        status, headers, body = server.get(path)
        check(status == 200 and headers['Content-Type'].startswith(kind) and body, f'{path} is there')
        status, packed, bytes_ = server.get(path, headers={'Accept-Encoding': 'br, gzip;q=0.5'})
        check(packed['Content-Encoding'] == 'gzip' and gzip.decompress(bytes_) == body, f'{path} by gzip')
        status, known, bytes_ = server.get(path, headers={'If-None-Match': headers['ETag']})
        check(status == 304 and not bytes_, f'{path} is not sent again')
    policy = headers['Content-Security-Policy']
    check("default-src 'none'" in policy and "script-src 'self'" in policy and 'unsafe' not in policy
          and headers['X-Content-Type-Options'] == 'nosniff', 'policies')
    status, headers, body = server.get('/api/flame', headers={'Accept-Encoding': 'gzip'}, from_=T0, to=T0 + 4000)
    check(headers['Content-Encoding'] == 'gzip' and json.loads(gzip.decompress(body))['total'] > 0, 'JSON by gzip')
    status, headers, body = server.get('/api/info', method='HEAD')
    check(status == 200 and int(headers['Content-Length']) > 50 and not body, 'HEAD')
    status, _, body = server.get('/healthz')
    check((status, body) == (200, b'ok\n'), 'healthz')


def metrics(server, store):
    """Counters only grow, by what is put in while somebody looks."""
    before = server.metrics()
    check(before['stackbpf_samples_total{kind="oncpu"}'] == 0, 'metrics: from when it began to look')
    check(before['stackbpf_store_newest_block_timestamp_seconds{kind="oncpu"}'] == T0 + 10 * BLOCKS and
          before['stackbpf_store_bytes{level="10s"}'] > 1000, 'metrics: the store')
    end = T0 + 10 * BLOCKS
    store.add([(end + 10 * i, 'oncpu', 'samples', {'host': 'h1', 'service': 'car'}, 7, ('main', '[truncated: cut]')) for i in range(6)])
    after = server.metrics()
    # All but the last block, which may be added to; and the last one of before.
    old = sum(store.sums(end - 10, end).values())
    check(after['stackbpf_samples_total{kind="oncpu"}'] == old + 35 and
          after['stackbpf_lost_samples_total{kind="oncpu"}'] == 6 + 5 and
          after['stackbpf_sampled_seconds_total{kind="oncpu"}'] == 60, 'metrics: what came, once')
    if promtool := shutil.which('promtool'):
        said = subprocess.run([promtool, 'check', 'metrics'], input=server.get('/metrics')[2], capture_output=True,
                              check=False)
        check(said.returncode == 0 and not said.stdout + said.stderr, f'metrics: promtool: {said.stdout} {said.stderr}')
    again = server.metrics()
    check(again['stackbpf_samples_total{kind="oncpu"}'] == old + 35, 'metrics: and not twice')
    check(again['stackbpf_serve_replies_total{class="4xx"}'] > 10 and again['stackbpf_serve_replies_total{class="5xx"}'] == 0
          and again['stackbpf_serve_worker_ends_total'] == 0 and again['stackbpf_serve_sent_bytes_total'] > 10000,
          'metrics: the server')


def other(server, store):
    """A function may have the name of the nodes that stand for pruned ones."""
    begin = T0 + 20 * BLOCKS
    store.add([(begin, 'oncpu', 'samples', {'host': 'h1'}, 7, ('main', '(other)'))])
    data = server.json('/api/flame', from_=begin, to=begin + 10)
    check(data['total'] == 7 and data['nr_nodes_cut'] == data['weight_cut'] == 0, 'flame: a function (other) is not cut')


def main():
    binary, store_text = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as work:
        store = Store(store_text, work + '/store')
        fill(store, T0, BLOCKS)
        with serving(binary, '--store', store.path) as server:
            tags_and_info(server, store)
            flame(server, store)
            timeline(server, store)
            diff(server, store)
            files(server, store)
            render(server, store)
            errors(server)
            page(server)
            metrics(server, store)
            other(server, store)


main()
done()
