# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of `stackbpf export` share: a store whose contents are known, and a server that takes what is sent,
or does not."""
import collections
import contextlib
import gzip
import http.server
import os
import subprocess
import sys
import threading
import time
import urllib.parse

failures = []
# Half past an hour, so that no period of the tests is a sum of a coarser level; long ago, so that all is settled.
BEGIN = 1760000040


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


def check(is_good, what, detail=''):
    print(('ok: ' if is_good else 'FAILED: ') + what + (f': {detail}' if detail and not is_good else ''), flush=True)
    if not is_good:
        failures.append(what)


def same(have, want, what):
    is_same = have == want
    detail = ''
    if not is_same and isinstance(have, dict) and isinstance(want, dict):
        keys = [key for key in have.keys() | want.keys() if have.get(key) != want.get(key)]
        detail = '; '.join(f'{key!r}: have {have.get(key)!r}, want {want.get(key)!r}' for key in keys[:3])
        detail = f'{len(keys)} differ: {detail}'
    elif not is_same:
        detail = f'have {have!r:.300}, want {want!r:.300}'
    check(is_same, what, detail)


def end():
    sys.exit(1 if failures else 0)


def clean(name):
    """As all formats show names that are no UTF-8, and control characters."""
    text = name.decode('utf-8', 'replace')
    return ''.join(' ' if c == '\t' else '\ufffd' if ord(c) < 32 else c for c in text)


def folded(name):
    """As folded text shows a name: by stackbpf's own rules, which tests/unit holds."""
    return name.replace(b';', b':').replace(b'\n', b'?').replace(b'\t', b'?').replace(b'\r', b'?')


# A line of what was put in; frames are bytes.
Put = collections.namedtuple('Put', 'begin kind service region weight frames')


class Store:
    def __init__(self, make_store, path):
        self.make_store, self.path, self.puts = make_store, str(path), []

    def add(self, begin=BEGIN, nr=30, every=10):
        out = subprocess.run([self.make_store, self.path, str(begin), str(nr), str(every)], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            at, kind, service, region, weight, frames = line.split('\t')
            self.puts.append(Put(int(at), kind, service, region, int(weight),
                                 tuple(bytes.fromhex(frame) for frame in frames.split(' '))))
        return self

    def sums(self, key, which=lambda put: True):
        sums = collections.Counter()
        for put in self.puts:
            if which(put):
                sums[key(put)] += put.weight
        return dict(sums)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def reply(self, status, body=b'', headers=()):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers['Content-Length']))
        if self.headers.get('Content-Encoding') == 'gzip':
            body = gzip.decompress(body)
        server = self.server
        with server.lock:
            server.nr_requests += 1
            server.nr_bytes_max = max(server.nr_bytes_max, len(body))
            # What it does with its n-th request: (verdict, what it takes nevertheless).
            fault = server.faults.pop(0) if server.faults else None
            if fault is None or fault in ('close-after', 'slow'):
                server.taken.append(Request(self.path, dict(self.headers), body, time.monotonic()))
            server.came.append(Request(self.path, dict(self.headers), body, time.monotonic()))
            server.changed.notify_all()
        if fault is None:
            self.reply(200, server.answer)
        elif fault == 'slow':
            self.send_response(200)
            self.send_header('Content-Length', '2')
            self.end_headers()
            for byte in b'ok':
                time.sleep(0.2)
                self.wfile.write(bytes([byte]))
        elif fault in ('close', 'close-after'):
            self.close_connection = True
            self.connection.close()
        elif fault == 'hang':
            server.released.wait()
            self.close_connection = True
        elif fault == 'big':
            self.send_response(500)
            self.send_header('Content-Length', str(128 << 20))
            self.end_headers()
            for _ in range(128):
                self.wfile.write(bytes(1 << 20))
        elif isinstance(fault, tuple):
            self.reply(*fault)
        else:
            self.reply(fault, b'no, thank you\nsecond line')


Request = collections.namedtuple('Request', 'path headers body at')


def query_of(request):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.path).query))


class Peer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, faults=(), answer=b'', port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.released = threading.Event()
        self.faults, self.answer = list(faults), answer
        self.taken, self.came, self.nr_requests, self.nr_bytes_max = [], [], 0, 0
        self.url = f'http://127.0.0.1:{self.server_address[1]}'
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def wait_for(self, condition, what):
        with self.changed:
            check(self.changed.wait_for(condition, 240), what)

    def end(self):
        self.released.set()
        self.shutdown()
        self.server_close()


@contextlib.contextmanager
def peer(*args, **kwargs):
    server = Peer(*args, **kwargs)
    try:
        yield server
    finally:
        server.end()


def environment():
    """Nothing goes to a proxy."""
    env = {key: value for key, value in os.environ.items() if not key.lower().endswith('_proxy')}
    return {**env, 'no_proxy': '*'}


def export(stackbpf, store, *args, status=0):
    done = subprocess.run([stackbpf, 'export', '--store', store.path, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=240, check=False, env=environment())
    if status is not None and done.returncode != status:
        check(False, f'export {" ".join(args)} ends with {status}', f'{done.returncode}: {done.stderr}')
    return done


def state_of(store):
    """The counters of the only state."""
    directory = os.path.join(store.path, 'export')
    names = [name for name in os.listdir(directory) if name.endswith('.state')]
    assert len(names) == 1, names
    with open(os.path.join(directory, names[0]), encoding='utf-8') as file:
        lines = file.read().splitlines()
    assert lines[0] == 'stackbpf-export 1', lines
    return {key: int(value) if value.isdigit() else value
            for key, _, value in (line.partition(' ') for line in lines[1:])}
