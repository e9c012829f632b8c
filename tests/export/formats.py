#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""formats.py PART STACKBPF MAKE_STORE: what is sent is what was recorded: kinds, tags, stacks, weights, times. Who says
so is not us: protoc, `go tool pprof`, a parser of Pyroscope's names."""
import collections
import contextlib
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time

import peers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'formats'))
from otlp import Dictionary, decode, is_there, one  # noqa: E402

NS_PER_SAMPLE = round(1e9 / 99)


# ---- OTLP ----

def attributes_of(dictionary, resource, how):
    attributes = {}
    for attribute in resource['attributes']:
        names = []
        if how != 'ref':
            names.append(one(attribute, 'key', b'').decode())
        if how != 'inline':
            names.append(dictionary.string(one(attribute, 'key_strindex')))
        assert len(set(names)) == 1 and names[0], names
        peers.check(('key' in attribute) == (how != 'ref') and ('key_strindex' in attribute) == (how != 'inline'),
                    f'keys are said as --otlp-attrs={how}') if len(attributes) == 0 else None
        attributes[names[0]] = one(one(attribute, 'value'), 'string_value').decode()
    return attributes


TYPES = {'oncpu': (('samples', 'count'), ('cpu', 'nanoseconds'), NS_PER_SAMPLE),
         'offcpu': (('off_cpu', 'nanoseconds'), None, 0)}


def otlp(stackbpf, store):
    if not is_there():
        peers.skip('no protoc')
    for how in 'both', 'inline', 'ref':
        with peers.peer() as peer:
            args = () if how == 'both' else ('--otlp-attrs', how)
            peers.export(stackbpf, store, '--to', f'otlp:{peer.url}', '--from', f'@{peers.BEGIN}', *args)
            check_otlp(store, peer.taken, how)


def check_otlp(store, requests, how):
    sums, ids = collections.Counter(), set()
    kinds = {kind: types for types, kind in ((types, kind) for kind, types in TYPES.items())}
    for request in requests:
        peers.same((request.path, request.headers.get('Content-Type')),
                   ('/v1development/profiles', 'application/x-protobuf'), 'the path is that of profiles')
        message = decode(request.body)
        dictionary = Dictionary(one(message, 'dictionary'))
        for resource in message['resource_profiles']:
            attributes = attributes_of(dictionary, one(resource, 'resource'), how)
            profile = one(one(resource, 'scope_profiles'), 'profiles')
            types = (dictionary.type(one(profile, 'sample_type')),
                     dictionary.type(profile['period_type'][0]) if 'period_type' in profile else None,
                     one(profile, 'period'))
            kind = next((kind for kind, want in kinds.items() if want == types), types)
            begin = one(profile, 'time_unix_nano') // 10**9
            peers.check(one(profile, 'duration_nano') == 60 * 10**9, 'it is a minute')
            ids.add(one(profile, 'profile_id'))
            for sample in profile['samples']:
                names = tuple(frame.name for frame in dictionary.stack(one(sample, 'stack_index')))
                value = one(sample, 'values')
                sums[begin, kind, attributes.get('service.name', ''), attributes['region'], names] += value
    weight = {'oncpu': 1, 'offcpu': 1000}
    want = {key: value * weight[key[1]] for key, value in
            store.sums(lambda put: ((put.begin - peers.BEGIN) // 60 * 60 + peers.BEGIN, put.kind, put.service,
                                    put.region, tuple(peers.clean(frame) for frame in put.frames))).items()}
    peers.same(dict(sums), want, f'OTLP ({how}): all weights, by period, kind, tags and stack')
    peers.same(len(ids), 5 * 2 * 6, 'profiles have different ids')


# ---- Pyroscope ----

def parse_name(name):
    """car.cpu{region=eu}, as Pyroscope's state machine does: no quotes."""
    app, _, tags = name.partition('{')
    assert tags.endswith('}') and tags.count('}') == 1, name
    return app, dict(tag.split('=') for tag in tags[:-1].split(',') if tag)


def pyroscope(stackbpf, store):
    with peers.peer() as peer:
        peers.export(stackbpf, store, '--to', f'pyroscope:{peer.url}', '-H', 'X-Scope-OrgID: me')
    sums = collections.Counter()
    rates = set()
    for request in peer.taken:
        query = peers.query_of(request)
        app, tags = parse_name(query['name'])
        service, _, kind = app.rpartition('.')
        rates.add((kind, query['sampleRate'], query['units'], query['aggregationType'], query['spyName'],
                   int(query['until']) - int(query['from'])))
        peers.check(request.path.startswith('/ingest?') and request.headers.get('X-Scope-OrgID') == 'me',
                    'it goes to /ingest, with the header that was asked for')
        for line in request.body.splitlines():
            stack, _, weight = line.rpartition(b' ')
            sums[int(query['from']), kind, service, tags['region'], stack] += int(weight)
    want = store.sums(lambda put: ((put.begin - peers.BEGIN) // 60 * 60 + peers.BEGIN,
                                   {'oncpu': 'cpu'}.get(put.kind, put.kind), put.service or 'stackbpf',
                                   put.region.replace(' ', '_'), b';'.join(peers.folded(f) for f in put.frames)))
    peers.same(dict(sums), want, 'Pyroscope: all weights, by period, name and stack')
    peers.same(rates, {('cpu', '99', 'samples', 'sum', 'stackbpf', 60),
                       ('offcpu', '1000000', 'samples', 'sum', 'stackbpf', 60)}, 'Pyroscope: rates make time of it')
    first = peer.taken[0].path
    peers.same(first.split('&units')[0],
               f'/ingest?name=stackbpf.offcpu%7Bregion%3Deu%7D&from={peers.BEGIN}&until={peers.BEGIN + 60}'
               '&spyName=stackbpf&aggregationType=sum', 'Pyroscope: the first request is this one')


# ---- pprof-dir ----

def pprof(stackbpf, store):
    if not shutil.which('go'):
        peers.skip('no go')
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, 'out')
        peers.export(stackbpf, store, '--to', f'pprof-dir:{out}', '--by', 'service')
        names = sorted(os.listdir(out))
        times = [name.split('-')[0] for name in names]
        peers.check(times == sorted(times) and times[0] == '20251009T085400Z', 'names sort by time', times[:2])
        peers.same(len(names), 5 * 2 * 3, 'a file for each period, kind and series')
        before = {name: pathlib.Path(out, name).read_bytes() for name in names}
        peers.export(stackbpf, store, '--to', f'pprof-dir:{out}', '--by', 'service', '--from', f'@{peers.BEGIN}')
        peers.same({name: pathlib.Path(out, name).read_bytes() for name in sorted(os.listdir(out))}, before,
                   'once more makes the same files')
        env = {**os.environ, 'PPROF_TMPDIR': work, 'HOME': work, 'GOTOOLCHAIN': 'local'}
        for service in 'car', 'bike':
            files = [os.path.join(out, name) for name in names if f'-oncpu-{service}-' in name]
            done = subprocess.run(['go', 'tool', 'pprof', '-sample_index=samples', '-top', *files], env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            found = re.search(r'of (\d+) total', done.stdout)
            want = store.sums(lambda put: put.service, lambda put: put.kind == 'oncpu')[service]
            peers.same(int(found[1]) if found else done.stderr, want, f'go tool pprof: all samples of {service}')
        peers.export(stackbpf, store, '--to', f'pprof-dir:{out}2', '--kind', 'oncpu')
        files = [os.path.join(out + '2', name) for name in os.listdir(out + '2')]
        done = subprocess.run(['go', 'tool', 'pprof', '-sample_index=samples', '-tags', *files], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        for key in 'region', 'service':
            sums = store.sums(lambda put, key=key: getattr(put, key), lambda put: put.kind == 'oncpu')
            sums.pop('', None)
            block = done.stdout.split(f' {key}: Total ')[-1].split('\n\n')[0]
            have = {name.strip(): int(nr) for nr, name in re.findall(r'^ +(\d+)\.0 \([^)]*\): (.*)$', block, re.M)}
            peers.same(have, sums, f'go tool pprof: the label {key} of all samples')


def shown(stackbpf, store, *args, **environ):
    """What an export of everything shows on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([stackbpf, 'export', '--store', store.path, '--from', f'@{peers.BEGIN}', *args],
                          stderr=theirs, env={**os.environ, 'TERM': 'xterm', **environ}) as proc:
        os.close(theirs)
        text = b''
        with contextlib.suppress(OSError):  # EIO: the terminal's last writer has closed it
            while data := os.read(ours, 4096):
                text += data
    os.close(ours)
    peers.check(proc.returncode == 0, 'the export to a terminal ends well', text)
    return text.decode()


def progress(stackbpf, store):
    with tempfile.TemporaryDirectory() as out:
        args = ('--to', f'pprof-dir:{out}', '--by', 'service')
        text = shown(stackbpf, store, *args)
        nr_files = len(os.listdir(out))
        end = re.search(r'([^\r\n]*)\r\n$', text)[1]
        peers.check(re.search(r'\r\x1b\[Kstackbpf: export: 0 %, up to 2025-10-09T08:54:00Z; 1 file\r\x1b\[K', text),
                    'it begins with the first file', text)
        peers.check(f': 5 periods, {nr_files} files, ' in end and end.startswith('\x1b[Kstackbpf: export: '),
                    'at the end it says how many files there are', text)
        peers.same(shown(stackbpf, store, *args, '-q'), '', 'nothing with -q')
        text = shown(stackbpf, store, *args, TERM='dumb')
        peers.check('\x1b' not in text and f' {nr_files} files' in text, 'no sequences on a terminal that has none', text)
        said = peers.export(stackbpf, store, *args).stderr
        peers.check('\x1b' not in said and f' {nr_files} files' in said, 'no progress without a terminal', said)


# ---- file ----

def file(stackbpf, store):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, 'a.folded')
        times = ('--from', f'@{peers.BEGIN}', '--to', f'@{peers.BEGIN + 300}')
        peers.export(stackbpf, store, '--to', f'file:{path}', *times, '--tag', 'service=car', '--kind', 'offcpu')
        have = collections.Counter()
        for line in pathlib.Path(path).read_bytes().splitlines():
            if not line.startswith(b'#'):
                stack, _, weight = line.rpartition(b' ')
                have[stack] += int(weight)
        want = store.sums(lambda put: b';'.join(peers.folded(f) for f in put.frames),
                          lambda put: put.service == 'car' and put.kind == 'offcpu')
        peers.same(dict(have), want, 'a file of one service has all of its weights')
        done = peers.export(stackbpf, store, '--to', f'file:{work}/a.xyz', *times, status=2)
        peers.check('format' in done.stderr, 'an extension that nobody knows is said to be none', done.stderr)
        done = peers.export(stackbpf, store, '--to', f'file:{work}/b.folded', '--from', '2199-01-01T00:00:00Z', status=2)
        peers.check('in the future' in done.stderr, 'a range that has not begun', done.stderr)
        peers.export(stackbpf, store, '--to', f'file:{work}/b.json', '--tag', 'service=nobody', *times, status=3)
        peers.same(os.listdir(work), ['a.folded'], 'what is empty is no file')
        until_now(stackbpf, store, work)


def until_now(stackbpf, store, work):
    """An end of now has the second that has begun, however it is written, in files as in answers to queries."""
    store.add(begin=int(time.time()) // 10 * 10, nr=3)
    for end in (), ('--to', 'now'), ('--to=-0s',), ('--to=now-0s',):
        done = peers.export(stackbpf, store, '--to', f'file:{work}/now.folded', '--from', 'now', *end)
        asked = subprocess.run([stackbpf, 'query', '--store', store.path, '--from', 'now', *end], capture_output=True, check=False)
        peers.same((done.returncode, asked.returncode), (0, 0), f'--from now {" ".join(end)}')


def main():
    part, stackbpf, make_store = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        store = peers.Store(make_store, os.path.join(directory, 'store')).add()
        globals()[part](stackbpf, store)
    peers.end()


main()
