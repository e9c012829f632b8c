#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""faults.py PART STACKBPF MAKE_STORE: servers that fail, hang, move, or are not there; exports that are killed; a store
whose blocks have expired. Nothing is lost, nothing is there twice."""
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import peers
from peers import BEGIN, check, export, peer, same, state_of

RSS_MAX_KB = 96 << 10


def key_of(request):
    query = peers.query_of(request)
    return query['name'], int(query['from'])


def taken_of(requests):
    """By name and time; a series that came twice is told."""
    sums, times = {}, collections.Counter()
    for request in requests:
        sums[key_of(request)] = sum(int(line.rpartition(b' ')[2]) for line in request.body.splitlines())
        times[key_of(request)] += 1
    return sums, [key for key, nr in times.items() if nr > 1]


def want_of(store, which=lambda put: True, every=60, begin=BEGIN):
    return store.sums(lambda put: (f'{put.service or "stackbpf"}.{ {"oncpu": "cpu"}.get(put.kind, put.kind)}'
                                   f'{{region={put.region.replace(" ", "_")}}}',
                                   (put.begin - begin) // every * every + begin), which)


def once(store, server, what, nr_twice=0):
    sums, twice = taken_of(server.taken)
    same(sums, want_of(store), f'{what}: all is there')
    check(len(twice) <= nr_twice, f'{what}: nothing is there twice', twice)


def failing(stackbpf, store):
    """One after the other."""
    faults = [None, 500, (503, b'', [('Retry-After', '1')]), None, 'close', None, 'slow', None, 429, 'big', None]
    with peer(faults) as server:
        done = export(stackbpf, store, '--to', f'pyroscope:{server.url}')
    once(store, server, 'failures')
    state = state_of(store)
    same((state['failed'], state['unsure'], state['refused'], state['error'], state['next']), (5, 1, 0, '', BEGIN + 300),
         'failures: they are counted')
    check("says 500: no, thank you; trying again" in done.stderr, 'failures: said with what the server says', done.stderr)
    check('second line' not in done.stderr, 'failures: only its first line', done.stderr)
    times = [request.at for request in server.came]
    check(times[3] - times[2] >= 1, 'Retry-After is waited for', times[3] - times[2])

    # Once more: there is nothing to send.
    with peer() as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', '--state', os.path.join(store.path, 'export'))
        check(server.nr_requests > 0, 'another server is another destination')


def hanging(stackbpf, store):
    with peer(['hang', None, None, 'hang']) as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', '--timeout', '1s')
        # A busy machine may make others late.
        unsure = state_of(store)['unsure']
        check(unsure >= 2, 'hanging: what may have been taken is counted', unsure)
        once(store, server, 'hanging', unsure - 2)
        # One that hangs is no reason not to end.
        server.faults.append('hang')
        store.add(BEGIN + 300, nr=6)
        with running(stackbpf, store, server) as process:
            server.wait_for(lambda: server.faults == [], 'hanging: it waits for the answer')
            process.send_signal(signal.SIGTERM)
            same(process.wait(240), 0, 'hanging: SIGTERM ends it')


@contextlib.contextmanager
def running(stackbpf, store, server, *args):
    process = subprocess.Popen([stackbpf, 'export', '--store', store.path, '--follow', '--to', f'pyroscope:{server.url}',
                                *args], stderr=subprocess.PIPE, text=True, env=peers.environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def moved(stackbpf, store):
    """Tokens go nowhere else."""
    token = os.path.join(store.path, '..', 'token')
    pathlib.Path(token).write_text('s3cret\nmore\n')
    with peer() as other:
        for where in other.url + '/ingest', 'file:///etc/passwd', '/ingest2':
            with peer([(307, b'', [('Location', where)])]) as server:
                done = export(stackbpf, store, '--to', f'pyroscope:{server.url}', '--token-file', token, status=1)
                same(server.nr_requests, 1, f'moved to {where}: not followed')
                same(server.came[0].headers.get('Authorization'), 'Bearer s3cret', 'the token is sent')
                check(f"moved to '{where}'" in done.stderr, 'moved: it is said where to', done.stderr)
                check('s3cret' not in done.stderr, 'the token is not shown')
        same(other.nr_requests, 0, 'moved: nothing comes there')
    shutil.rmtree(os.path.join(store.path, 'export'))
    with peer([401]) as server:
        url = server.url.replace('http://', 'http://me:passw0rd@')
        done = export(stackbpf, store, '--to', f'pyroscope:{url}', status=1)
        check('requires a token' in done.stderr and 'passw0rd' not in done.stderr, '401 is said to be about a token',
              done.stderr)
        text = next(pathlib.Path(store.path, 'export').glob('*.state')).read_text()
        check('passw0rd' not in text and server.url in text, 'a password is not in the state', text)
        export(stackbpf, store, '--to', f'pyroscope:{url}')
        once(store, server, '401, then well')


def refusing(stackbpf, store):
    """One that refuses the first request refuses all; of one that has taken some, the others."""
    with peer([400]) as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', status=1)
        same((server.nr_requests, state_of(store)['refused']), (1, 0), 'refused at first: nothing is left out')
        server.faults += [None, None, 400, 413]
        done = export(stackbpf, store, '--to', f'pyroscope:{server.url}')
        state = state_of(store)
        same((state['refused'], state['pieces']), (2, 58), 'refused later: counted')
        check('the server refused 2 requests' in done.stderr, 'refused later: said', done.stderr)
        sums, twice = taken_of(server.taken)
        want = want_of(store)
        check(len(sums) == len(want) - 2 and sums.items() <= want.items() and not twice, 'refused later: others are there')


def absent(stackbpf, store):
    # Nobody else gets this port meanwhile.
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(('127.0.0.1', 0))
        port = held.getsockname()[1]
        done = export(stackbpf, store, '--to', f'pyroscope:http://127.0.0.1:{port}', status=1)
        state = state_of(store)
        check('onnect' in done.stderr, 'absent: it is said', done.stderr)
        same((state['failed'], state['pieces'], state['next']), (5, 0, BEGIN), 'absent: five attempts')
        check('onnect' in state['error'], 'absent: the state has the reason', state)
        with peer(port=port) as server:
            export(stackbpf, store, '--to', f'pyroscope:{server.url}')
            once(store, server, 'absent, then there')
    same(state_of(store)['error'], '', 'absent, then there: no error any more')
    # Of an address that was never tried nobody may believe that it has all.
    fresh = peers.Store(store.make_store, store.path + '2').add(int(time.time()) // 10 * 10, nr=1)
    # Only where a later export can have more is that advised; -q leaves this error as it is.
    for args, is_past in (((), False), (('--from', '-1h'), False), (('--kind', 'wakeup', '-q'), False),
                          (('--from=-2h', '--to=-1h'), True), (('--follow', '--to=-1h'), True)):
        done = export(stackbpf, fresh, '--to', f'pyroscope:http://127.0.0.1:{port}', *args, status=3)
        check('nothing was sent to' in done.stderr and 'no complete period' in done.stderr and done.stderr.count('\n') == 1 and
              ('later' in done.stderr) != is_past, f'absent: nothing is due, {args}', done.stderr)


def killed(stackbpf, store):
    """At any time; the place that was kept is at most one request behind."""
    nr_kills = 6
    with peer() as server:
        for kill in range(nr_kills):
            with running(stackbpf, store, server) as process:
                server.wait_for(lambda kill=kill: len(server.taken) > 9 * kill, f'killed: {9 * kill} are there')
                process.kill()
        export(stackbpf, store, '--to', f'pyroscope:{server.url}')
        once(store, server, 'killed', nr_kills)
        # It goes on with what is recorded; another one may not do the same.
        with running(stackbpf, store, server) as process:
            nr = len(server.taken)
            # What is so old is complete to it as soon as it is there: it comes at once.
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            store.add(BEGIN + 300, nr=12)
            process.send_signal(signal.SIGCONT)
            server.wait_for(lambda: len(server.taken) >= nr + 24, 'follow: what is new is sent')
            done = export(stackbpf, store, '--to', f'pyroscope:{server.url}', status=1)
            check('another process is sending' in done.stderr, 'follow: a second one is refused', done.stderr)
            process.send_signal(signal.SIGINT)
            same(process.wait(240), 0, 'follow: Ctrl-C ends it')
        once(store, server, 'follow', nr_kills)


def expired(stackbpf, store):
    """What has expired as 10-s blocks is sent as sums of 10 minutes, as far as these are not sent already."""
    store.add(BEGIN + 300, nr=330)
    store.add(BEGIN + 7200, nr=1)
    with peer() as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', '--to', f'@{BEGIN + 120}')
        for path in pathlib.Path(store.path, '10s').iterdir():
            path.unlink()
        done = export(stackbpf, store, '--to', f'pyroscope:{server.url}')
    sums, twice = taken_of(server.taken)
    # BEGIN is 4 minutes after a full 10: the rest of that sum cannot be told from what was sent.
    want = want_of(store, lambda put: put.begin < BEGIN + 120)
    want.update(want_of(store, lambda put: BEGIN + 360 <= put.begin, 600, BEGIN + 360))
    same(sums, want, 'expired: sums of 10 minutes')
    check(not twice, 'expired: nothing is there twice', twice)
    same(state_of(store)['expired_seconds'], 240, 'expired: what is gone is counted')
    check('240 s of data expired' in done.stderr, 'expired: it is said', done.stderr)
    check(state_of(store)['coarse_seconds'] >= 3000, 'expired: what is coarse is counted')


def expired_all(stackbpf, store):
    """Nothing was sent before it expired: that is said, and not that there was nothing to send."""
    with peer([400]) as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', status=1)
        for path in pathlib.Path(store.path).glob('1*/*'):
            path.unlink()
        store.add(int(time.time()) // 10 * 10, nr=1)
        done = export(stackbpf, store, '--to', f'pyroscope:{server.url}', status=3)
        quiet = export(stackbpf, store, '--to', f'pyroscope:{server.url}', '-q', status=3)
    check(all(words in done.stderr for words in ('nothing was sent to', ' s of data expired')) and
          not any(words in done.stderr for words in ('complete period', 'later')), 'expired_all: it is said', done.stderr)
    check('data expired' in quiet.stderr and quiet.stderr.count('\n') == 1, 'expired_all: -q leaves the error', quiet.stderr)


def future(stackbpf, store):
    """Blocks of a clock that was wrong once: they wait for their time, and nothing else waits for them."""
    store.add(249994166400, nr=1)  # 9892-01-01
    far = [put for put in store.puts if put.begin > 1 << 36]
    store.puts = [put for put in store.puts if put not in far]
    with peer() as server:
        export(stackbpf, store, '--to', f'pyroscope:{server.url}', '--every', '10s')
        sums, twice = taken_of(server.taken)
        same((sums, twice), (want_of(store, every=10), []), 'future: all up to now is there')
        check(state_of(store)['behind_seconds'] < 1 << 31, 'future: it is not behind by millennia', state_of(store))
        check(state_of(store)['next'] <= time.time(), 'future: it goes on from now', state_of(store))


def late(stackbpf, store):
    """What is recorded after its time was sent is not sent, and that is said: once, and counted."""
    with peer() as server:
        url = f'pyroscope:{server.url}'
        export(stackbpf, store, '--to', url)
        once(store, server, 'late: what came in time')
        same(state_of(store)['late_blocks'], 0, 'late: none yet')
        nr, puts = server.nr_requests, list(store.puts)
        store.add(BEGIN + 60, nr=3).add(BEGIN - 86400 * 3, nr=1)
        done = export(stackbpf, store, '--to', url)
        same((state_of(store)['late_blocks'], server.nr_requests), (8, nr), 'late: counted, not sent')
        check('8 blocks came into the store after their time had been sent' in done.stderr, 'late: said', done.stderr)
        store.puts = puts
        store.add(BEGIN + 300, nr=6)
        export(stackbpf, store, '--to', url)
        same(state_of(store)['late_blocks'], 8, 'late: not counted again')
        once(store, server, 'late: what comes in time after that')


def late_again(stackbpf, store):
    """To a place where what comes twice is one, a time is sent again."""
    directory = os.path.join(store.path, '..', 'out')
    to = ('--to', f'pprof-dir:{directory}', '--by', 'service')
    export(stackbpf, store, *to)
    names = sorted(os.listdir(directory))
    store.add(BEGIN + 60, nr=3)
    export(stackbpf, store, *to, '--from', f'@{BEGIN + 60}', '--to', f'@{BEGIN + 120}')
    same(sorted(os.listdir(directory)), names, 'late: the same files')
    export(stackbpf, store, '--to', f'pprof-dir:{directory}2', '--by', 'service', '--from', f'@{BEGIN}')
    same({name: pathlib.Path(directory, name).read_bytes() for name in names},
         {name: pathlib.Path(directory + '2', name).read_bytes() for name in names}, 'late: with all that is there now')


def tls(stackbpf, store):
    if not shutil.which('openssl'):
        peers.skip('no openssl')
    directory = os.path.dirname(store.path)
    cert, key = os.path.join(directory, 'cert'), os.path.join(directory, 'key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1',
                    '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with peer() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = server.url.replace('http:', 'https:')
        done = export(stackbpf, store, '--to', f'pyroscope:{url}', status=1)
        check('certificate' in done.stderr, 'TLS: a certificate that nobody has signed is refused', done.stderr)
        same(server.nr_requests, 0, 'TLS: nothing is sent')
        export(stackbpf, store, '--to', f'pyroscope:{url}', '--ca-file', cert)
        once(store, server, 'TLS')


def memory(stackbpf, store):
    """It does not grow with what is sent, nor with what is answered."""
    store.add(BEGIN + 300, nr=240)
    with peer(['big', None] * 2, b'x' * (4 << 20)) as server:
        process = subprocess.Popen([stackbpf, 'export', '--store', store.path, '--to', f'otlp:{server.url}', '--by',
                                    'service,region,pid'], env=peers.environment())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        same(process.returncode, 0, 'memory: all is sent')
        check(usage.ru_maxrss < RSS_MAX_KB, f'memory: below {RSS_MAX_KB} KB', usage.ru_maxrss)
        print(f'{usage.ru_maxrss} KB')


def wrong(stackbpf, store):
    for args, words in (((), '--to is missing'), (('--to', 'ftp://host'), 'not a kind of place'),
                        (('--to', 'nowhere'), '--to nowhere is not a place, such as '),
                        (('--to', 'otlp:host:4318'), 'must continue with http://HOST'),
                        (('--to', 'clickhouse:http://host:8123'), 'does not name a database'),
                        (('--to', 'clickhouse:http://host:8123/a?b=c'), 'cluster=NAME'),
                        (('--to', 'pprof-dir:'), 'does not name a directory'),
                        (('--to', 'pprof-dir:x', '--every', '7s'), 'multiple of 10 s'),
                        (('--to', 'pprof-dir:x', '--to', 'soon'), 'is neither a place nor a time'),
                        (('--to', 'pprof-dir:x', '-H', 'no header'), "the form is 'Name: value'"),
                        (('--to', 'file:x.svg', '--follow'), 'pprof-dir:')):
        done = export(stackbpf, store, *args, status=2)
        check(words in done.stderr and done.stderr.count('\n') == 1, f'{" ".join(args) or "nothing"}: one sentence',
              done.stderr)


def main():
    part, stackbpf, make_store = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        for name in part.split(','):
            began = time.monotonic()
            store = peers.Store(make_store, os.path.join(directory, name + '-store')).add()
            os.mkdir(os.path.join(directory, name))
            store.path = shutil.move(store.path, os.path.join(directory, name, 'store'))
            globals()[name](stackbpf, store)
            print(f'{name}: {time.monotonic() - began:.1f} s')
    peers.end()


main()
