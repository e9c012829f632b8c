# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of `stackbpf serve` share: a store whose contents are known, a server, a client."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'live'))
from live import check, done, skip, wait_for  # noqa: E402,F401

TOKEN = 'a-token.of_some~length'


class Store:
    """A store, and the lines that it was made of."""

    def __init__(self, store_text, path):
        self.program, self.path, self.lines = store_text, path, []

    def add(self, lines):
        """[(begin, kind, unit, {tag: value}, weight, stack)]"""
        lines = sorted(lines, key=lambda line: line[:2])
        self.lines += lines
        text = ''.join(f'{begin} {kind} {unit} {",".join(f"{k}={v}" for k, v in tags.items())} {weight} '
                       f'{";".join(stack)}\n' for begin, kind, unit, tags, weight, stack in lines)
        subprocess.run([self.program, self.path], input=text, text=True, check=True)

    def sums(self, from_s, to_s, kind='oncpu', holds=lambda tags: True, by=None):
        """{stack: weight}, by brute force."""
        sums = {}
        for begin, of, _, tags, weight, stack in self.lines:
            if from_s <= begin < to_s and of == kind and holds(tags):
                stack = ((tags.get(by, '(none)'),) if by else ()) + stack
                sums[stack] = sums.get(stack, 0) + weight
        return sums


def fill(store, begin_s, nr_blocks, seed=1):
    rng, lines = random.Random(seed), []
    for block in range(nr_blocks):
        # A gap in which nothing is recorded.
        if 30 <= block < 42:
            continue
        begin = begin_s + 10 * block
        for service in 'bike', 'car', 'scooter':
            for region in 'eu-north', 'us-east':
                leaf = rng.choice(['[truncated: cut]', f'leaf{rng.randrange(12)}', 'a"b\\c<d>\u20ac&'])
                lines.append((begin, 'oncpu', 'samples',
                              {'host': 'h1', 'service': service, 'region': region, 'PID': rng.randrange(4)},
                              rng.randrange(1, 50), ('main', f'serve_{service}', f'step{rng.randrange(4)}', leaf)))
        lines.append((begin, 'offcpu', 'us', {'host': 'h1', 'service': 'car'}, rng.randrange(1, 10**6),
                      ('main', 'wait', f'lock{rng.randrange(3)}')))
    store.add(lines)


class Server:
    """One that shows all to everybody, unless it is to ask for a token: then @token is that which it printed."""

    def __init__(self, binary, *args, asks=False):
        if not asks and '--token-file' not in args:
            args = ('--no-token', *args)
        self.process = subprocess.Popen([binary, 'serve', '--listen', '127.0.0.1:0', *args],
                                        stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        found = re.search(r'at http://(\S+):(\d+)/(?:\?token=(\S+))?(; the access token is in .*)?$', said)
        if not found:
            self.process.kill()
        assert found, said
        self.said = said
        self.host, self.port, self.token = found[1].strip('[]'), int(found[2]), found[3]

    def get(self, path, headers=None, method='GET', **params):
        """(status, headers, bytes)"""
        if params:
            pairs = [(k.rstrip('_').replace('__', '-'), v) for k, vs in params.items()
                     for v in (vs if isinstance(vs, (list, tuple)) else [vs])]
            path += '?' + urllib.parse.urlencode(pairs)
        client = http.client.HTTPConnection(self.host, self.port, timeout=240)
        try:
            client.request(method, path, headers=headers or {})
            reply = client.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            client.close()

    def json(self, path, **params):
        status, headers, body = self.get(path, **params)
        assert status == 200 and headers['Content-Type'] == 'application/json', (path, params, status, body[:300])
        return json.loads(body)

    def metrics(self):
        status, _, body = self.get('/metrics')
        assert status == 200, body
        return {line.rsplit(' ', 1)[0]: float(line.rsplit(' ', 1)[1])
                for line in body.decode().splitlines() if not line.startswith('#')}

    def children(self):
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as file:
            return [int(pid) for pid in file.read().split()]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=240)
        finally:
            self.process.kill()
            self.process.stderr.close()


@contextlib.contextmanager
def serving(binary, *args, **kwargs):
    server = Server(binary, *args, **kwargs)
    try:
        yield server
    finally:
        status = server.end()
        check(status == 0, f'it ends with SIGTERM: {status}')


def rss_bytes(pid):
    with open(f'/proc/{pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
