#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""hostile.py STACKBPF STORE_TEXT UNIT: who asks what no browser asks, slowly, a thousand at once; who may not ask."""
import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from serving import TOKEN, Store, check, done, fill, rss_bytes, serving, wait_for

T0 = int(time.time()) // 10 * 10 - 3000
OTHER = 65533  # a user who has nothing to do with the store
GOOD = b'GET /api/info HTTP/1.1\r\nHost: localhost\r\n\r\n'


def connect(server, timeout=240):
    return socket.create_connection((server.host, server.port), timeout=timeout)


def read_all(sock):
    data = b''
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            data += piece
    return data


def receive(sock):
    piece = sock.recv(65536)
    assert piece, 'the connection was closed'
    return piece


def status_of(reply):
    found = re.match(rb'HTTP/1\.1 (\d{3}) ', reply)
    return int(found[1]) if found else None


def raw(server, data):
    """Status and body of the only reply, which ends the connection."""
    with connect(server) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        reply = read_all(sock)
    return status_of(reply), reply.split(b'\r\n\r\n', 1)[-1]


def requests(server):
    host = b'Host: localhost\r\n'
    line = b'GET /healthz HTTP/1.1\r\n' + host
    for data, want, what in (
            (b'GET /healthz HTTP/1.0\r\n' + host + b'\r\n', 200, 'HTTP/1.0'),
            (b'POST /api/info HTTP/1.1\r\n' + host + b'Content-Length: 3\r\n\r\nabc', 405, 'POST'),
            (b'DELETE / HTTP/1.1\r\n' + host + b'\r\n', 405, 'DELETE'),
            (b'OPTIONS * HTTP/1.1\r\n' + host + b'\r\n', 405, 'OPTIONS'),
            (b'get / HTTP/1.1\r\n' + host + b'\r\n', 405, 'another case'),
            (b'GET / HTTP/2.0\r\n' + host + b'\r\n', 505, 'HTTP/2.0'),
            (b'GET / FTP/1.1\r\n' + host + b'\r\n', 400, 'another protocol'),
            (b'GET / \r\n' + host + b'\r\n', 400, 'no version'),
            (b'\r\n\r\n', 400, 'nothing'),
            (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400, 'TLS'),
            (b'GET http://localhost/ HTTP/1.1\r\n' + host + b'\r\n', 400, 'a proxy'),
            (b'GET healthz HTTP/1.1\r\n' + host + b'\r\n', 400, 'no slash'),
            (b'GET /a b HTTP/1.1\r\n' + host + b'\r\n', 400, 'a space in the address'),
            (b'GET /\xff HTTP/1.1\r\n' + host + b'\r\n', 400, 'a byte beyond ASCII'),
            (b'GET /\x00 HTTP/1.1\r\n' + host + b'\r\n', 400, 'NUL'),
            (b'GET /../../etc/passwd HTTP/1.1\r\n' + host + b'\r\n', 404, 'dots'),
            (b'GET /%2e%2e/etc/passwd HTTP/1.1\r\n' + host + b'\r\n', 404, 'dots, encoded'),
            (b'GET //healthz HTTP/1.1\r\n' + host + b'\r\n', 404, 'two slashes'),
            (b'GET /healthz/ HTTP/1.1\r\n' + host + b'\r\n', 404, 'one too many'),
            (b'GET /healthz HTTP/1.1\r\n\r\n', 400, 'no Host'),
            (line + b'Host: localhost\r\n\r\n', 400, 'two Hosts'),
            (line + b' folded: x\r\n\r\n', 400, 'a folded line'),
            (line + b'X : y\r\n\r\n', 400, 'a space before the colon'),
            (line + b'X\r\n\r\n', 400, 'no colon'),
            (line + b'X: a\rb\r\n\r\n', 400, 'CR alone'),
            (line + b'X: a\nY: b\r\n\r\n', 400, 'LF alone'),
            (line + b'X: \x01\r\n\r\n', 400, 'a control character'),
            (line + b'Content-Length: 1\r\n\r\nx', 413, 'a body'),
            (line + b'Content-Length: 0\r\n\r\n', 200, 'a body of nothing'),
            (line + b'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 413, 'chunks'),
            (line + b'Content-Length: 0\r\nContent-Length: 5\r\n\r\n', 400, 'two lengths'),
            (b'GET /?' + b'a' * 9000 + b' HTTP/1.1\r\n' + host + b'\r\n', 414, 'a long address'),
            (line + b'X: ' + b'a' * 20000 + b'\r\n\r\n', 431, 'a long line'),
            (line + b''.join(b'X%d: y\r\n' % i for i in range(200)) + b'\r\n', 431, 'many lines'),
            (b'A' * 100000, 431, 'no end'),
            (b'GET', None, 'half a request'),
            (b'', None, 'no request')):
        status, body = raw(server, data.replace(b'Host: localhost\r\n\r\n', b'Host: localhost\r\nConnection: close\r\n\r\n')
                           if want in (200, 404) else data)
        check(status == want, f'{what}: {status}')
        if want and want >= 400:
            check(json.loads(body)['error'] and body.count(b'\n') == 1, f'{what}: a sentence')


def names(server):
    for host, want in (('localhost', 200), ('LocalHost:1', 200), ('127.0.0.1:8080', 200), ('[::1]:4040', 200),
                       ('10.1.2.3', 200), (socket.gethostname(), 200), ('given.example:99', 200),
                       ('evil.example', 421), ('evil.example:4040', 421), ('localhost.evil.example', 421),
                       ('127.0.0.1.evil.example', 421), ('', 421), (':4040', 421), ('1', 421), ('0x7f000001', 421),
                       ('[::1', 421), ('localhost@evil.example', 421), ('127.0.0.1:4040:1', 421)):
        for path in '/', '/api/info', '/healthz':
            status, _, _ = server.get(path, headers={'Host': host})
            if status != want:
                check(False, f'Host {host!r}, {path}: {status}')
    check(True, 'Host: numbers, localhost and names that were given')
    for site, mode, want in (('cross-site', 'cors', 403), ('cross-site', 'no-cors', 403), ('cross-site', 'navigate', 200),
                             ('same-origin', 'cors', 200), ('none', 'navigate', 200)):
        status, _, _ = server.get('/api/info', headers={'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': mode})
        check(status == want, f'of another site: {site}, {mode}: {status}')


def connections(server):
    with connect(server) as sock:
        sock.sendall(GOOD * 50)
        data = b''
        while data.count(b'"block_s"') < 50:
            data += receive(sock)
        check(data.count(b'HTTP/1.1 200') == 50, '50 requests at once, in one connection')
    with connect(server) as sock:
        for byte in GOOD:
            sock.sendall(bytes([byte]))
        check(status_of(sock.recv(65536)) == 200, 'byte by byte')
    with connect(server) as sock:
        sock.sendall(b'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n' + GOOD)
        data = b''
        while b'"block_s"' not in data:
            data += receive(sock)
        check(data.startswith(b'HTTP/1.1 404') and b'HTTP/1.1 200' in data, 'an error is not the end of a connection')
    # Gone before the answer: nobody else notices. A server that accepts 64 at a time and queues 64 finds the queue full
    # of them when it comes to the one who waits; the numbers beside 127 are for other sizes.
    for nr in 127, 191, 200:
        server.process.send_signal(signal.SIGSTOP)
        for _ in range(nr):
            with connect(server) as sock:
                sock.sendall(b'GET /api/flame?from=now-3000s HTTP/1.1\r\nHost: localhost\r\n\r\n')
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        with connect(server) as sock:
            sock.sendall(GOOD)
            server.process.send_signal(signal.SIGCONT)
            check(status_of(receive(sock)) == 200, f'{nr} that went without waiting')


def thousand(server):
    """More than there may be, each a byte a second: who comes is answered all the same."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    socks, before = [], rss_bytes(server.process.pid)
    for i in range(1500):
        sock = connect(server)
        with contextlib.suppress(OSError):
            sock.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + (b'a' * 15000 if i % 2 else b''))
        socks.append(sock)
        if i % 100 == 99:
            for other in socks[::7]:
                with contextlib.suppress(OSError):
                    other.sendall(b'a')
            status, _, body = server.get('/api/flame', from_=T0, to=T0 + 600)
            if status != 200:
                check(False, f'while {i} others are slow: {status}')
    grown = rss_bytes(server.process.pid) - before
    check(grown < (120 if is_sanitized(server) else 40) << 20, f'1,500 slow connections: {grown >> 10} KiB')
    figures = server.metrics()
    check(figures['stackbpf_serve_evicted_connections_total'] >= 400 and figures['stackbpf_serve_connections'] <= 1024,
          'the slowest were closed, and are counted')
    for sock in socks:
        sock.close()
    wait_for(lambda: server.metrics()['stackbpf_serve_connections'] < 10, 'all are forgotten')
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def not_read(server):
    """Who asks and does not take the answers: others are answered, and the server does not keep them all."""
    socks = []
    for _ in range(100):
        sock = connect(server)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            sock.sendall(b'GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n' * 300)
        socks.append(sock)
    check(server.get('/api/info')[0] == 200, '100 that do not take their answers')
    for sock in socks:
        sock.close()


def question(server, results):
    status, _, body = server.get('/api/flame', from_=T0, to=T0 + 600)
    results.append((status, body))


def ask_beside(server, nr):
    results = []
    threads = [threading.Thread(target=question, args=(server, results)) for _ in range(nr)]
    for thread in threads:
        thread.start()
    return threads, results


def two_workers(server):
    def ask():
        for thread in ask_beside(server, 4)[0]:
            thread.join()
        return len(server.children()) == 2

    wait_for(ask, 'two workers')


def workers(server):
    """They end, hang, or are killed: the server goes on."""
    two_workers(server)
    before = server.metrics()
    for pid in server.children():
        os.kill(pid, signal.SIGKILL)
    check(server.get('/api/info')[0] == 200 and server.get('/api/info')[0] == 200, 'workers that ended idle')
    check(server.metrics()['stackbpf_serve_worker_ends_total'] > before['stackbpf_serve_worker_ends_total'],
          'are counted')
    # All of them hang: what needs no worker is answered; at last they are replaced.
    slow = connect(server, timeout=240)
    slow.sendall(b'GET /healthz HT')
    two_workers(server)
    for pid in server.children():
        os.kill(pid, signal.SIGSTOP)
    threads, results = ask_beside(server, 2)
    time_of = time.monotonic()
    check(server.get('/')[0] == 200 and server.get('/healthz')[0] == 200, 'the page while all workers hang')
    busy = ask_beside(server, 100)
    for thread in threads + busy[0]:
        thread.join()
    print(f'after {time.monotonic() - time_of:.1f} s')
    replies = [(status, json.loads(body).get('error', '')) for status, body in results + busy[1]]
    late = [error for status, error in replies if status == 503 and '10 seconds' in error]
    refused = [error for status, error in replies if status == 503 and 'waiting' in error]
    check(len(late) == 2, f'questions that take too long: {late}')
    check(len(refused) >= 36 and sum(status == 200 for status, _ in replies) == 100 - len(refused),
          f'64 wait and are answered, the others are told: {len(refused)}')
    after = server.metrics()
    counted = [after[name] - before[name] for name in ('stackbpf_serve_expired_questions_total',
                                                       'stackbpf_serve_refused_questions_total')]
    check(counted == [2, len(refused)], f'and counted: {counted}')
    reply = read_all(slow)
    slow.close()
    check(status_of(reply) == 408, f'half a request is told when its time is over: {reply[:20]}')
    check(server.get('/api/info')[0] == 200, 'all goes on')


def confined(server, owner):
    for pid in [server.process.pid, *server.children()]:
        with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
            status = file.read()
        check(re.search(r'^CapEff:\t0+$', status, re.M) and re.search(r'^CapPrm:\t0+$', status, re.M)
              and re.search(r'^NoNewPrivs:\t1$', status, re.M), f'{pid}: no capabilities, and no way to any')
        if has_filter(server):
            check(re.search(r'^Seccomp:\t2$', status, re.M), f'{pid}: a filter of system calls')
        uid = int(re.search(r'^Uid:\t(\d+)', status, re.M)[1])
        own = 0x70000000 + server.process.pid  # as workers/privileges.h has it
        check(uid == (own if os.geteuid() == 0 else owner), f'{pid}: user {uid}, neither root nor who owns the store')
    if is_sanitized(server):
        return
    for pid in server.children():
        with open(f'/proc/{pid}/limits', encoding='ascii') as file:
            limits = file.read()
        check(re.search(r'Max data size +1073741824 +1073741824', limits) and
              re.search(r'Max file size +268435456 +268435456', limits), f'{pid}: limits')


def has_filter(server):
    said = subprocess.run([server.process.args[0], '--version'], stdout=subprocess.PIPE, text=True, check=False).stdout
    return 'libseccomp' in said


def is_sanitized(server):
    with open(f'/proc/{server.process.pid}/maps', encoding='utf-8', errors='replace') as file:
        return 'libasan' in file.read() or 'libubsan' in file.read()


def refused(binary, *args):
    run = subprocess.run([binary, 'serve', *args], capture_output=True, text=True, timeout=240, check=False)
    return run.returncode, run.stderr


def tokens(binary, store, work):
    token_file = work + '/token'
    for listen in '0.0.0.0:0', '[::]:0', '192.0.2.1:0', '10.0.0.1:4040':
        status, said = refused(binary, '--store', store.path, '--listen', listen)
        check(status == 2 and '--token-file' in said and said.count('\n') == 1, f'{listen} without a token: {said!r}')
    for listen in '4040', 'localhost', 'example.org:80', '127.0.0.1:99999', '127.0.0.1:-1', '[::1:80', '':
        status, _ = refused(binary, '--store', store.path, f'--listen={listen}')
        check(status == 2, f'{listen!r} is no address')
    for text, mode, word in ('short', 0o600, 'no valid token'), ('with spaces' * 3, 0o600, 'no valid token'), (TOKEN, 0o644, 'chmod'):
        with open(token_file, 'w', encoding='ascii') as file:
            file.write(text + '\n')
        os.chmod(token_file, mode)
        status, said = refused(binary, '--store', store.path, '--token-file', token_file)
        check(status == 2 and word in said and text not in said.replace(token_file, ''), f'a bad token file: {said!r}')
    os.chmod(token_file, 0o600)
    with serving(binary, '--store', store.path, '--listen', '0.0.0.0:0', '--token-file', token_file) as server:
        for headers in ({}, {'Authorization': 'Bearer'}, {'Authorization': 'Bearer ' + TOKEN[:-1]},
                        {'Authorization': f'Bearer {TOKEN}x'}, {'Authorization': 'Basic ' + TOKEN},
                        {'Cookie': f'stackbpf-{server.port}=x'}, {'Cookie': f'stackbpf-1={TOKEN}'}):
            for path in '/', '/page.js', '/api/info', '/metrics', f'/api/info?token={TOKEN}', '/?token=wrong':
                status, reply, _ = server.get(path, headers=headers)
                if status != 401 or 'Set-Cookie' in reply:
                    check(False, f'{path} with {headers}: {status}')
        check(server.get('/healthz')[0] == 200, 'healthz needs no token')
        check(server.get('/api/info', headers={'Authorization': f'bearer {TOKEN}'})[0] == 200, 'with the token')
        status, reply, body = server.get(f'/?token={TOKEN}')
        cookie = reply.get('Set-Cookie', '')
        check(status == 303 and reply['Location'] == '/' and not body and 'HttpOnly' in cookie and
              'SameSite=Strict' in cookie,
              'the token becomes a cookie')
        check(server.get('/api/info', headers={'Cookie': 'a=b; ' + cookie.split(';')[0]})[0] == 200, 'with the cookie')
        status, reply, _ = server.get(f'//evil.example/?token={TOKEN}')
        check('Location' not in reply, 'no way to elsewhere')
        counted = server.get('/metrics', headers={'Authorization': f'Bearer {TOKEN}'})[2].decode()
        check(float(re.search(r'^stackbpf_serve_unauthorized_requests_total (\d+)', counted, re.M)[1]) >= 42, 'counted')


def as_user(uid, function):
    """What a function returns, as JSON, in a process of a user without other groups; as ourselves without root."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(Exception):
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            os.write(write_fd, json.dumps(function()).encode())
        os._exit(0)
    os.close(write_fd)
    with open(read_fd, 'rb') as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else None


def statuses_of_another(server):
    """What another user of this machine is told, by path."""
    paths = '/', '/page.js', '/api/info', '/api/flame', '/render', '/metrics', '/nothing', '/?token=' + 64 * '0'
    return as_user(OTHER, lambda: {path: server.get(path)[0] for path in paths})


def by_default(binary, store):
    """Without an option nobody gets anything who has not read what was printed."""
    printed = set()
    for _ in range(2):
        with serving(binary, '--store', store.path, asks=True) as server:
            told = statuses_of_another(server)
            check(set(told.values()) == {401}, f'another user, by default: {told}')
            check(server.token and len(server.token) == 64, 'a token of 32 bytes is printed')
            printed.add(server.token)
            check(server.get('/metrics', headers={'Authorization': f'Bearer {server.token}'})[0] == 200, 'with it')
            cookie = server.get('/', token=server.token)[1]['Set-Cookie'].split(';')[0]
            check(server.get('/', headers={'Cookie': cookie})[0] == 200, 'the page, by its cookie')
    check(len(printed) == 2, 'each run has another token')
    with serving(binary, '--store', store.path) as server:
        told = statuses_of_another(server)
        check(told['/'] == told['/api/info'] == told['/metrics'] == 200, f'--no-token: {told}')
    for args in (['--no-token', '--token-file', 'x'], ['--no-token', '--url'], ['-q'],
                 ['--no-token', '--listen', '0.0.0.0:0'], ['--no-token', '--listen', '192.0.2.1:1']):
        status, said = refused(binary, '--store', store.path, *args)
        check(status == 2 and said.count('\n') == 1, f'{args}: {said!r}')


def kept(binary, store, work):
    """A token file that is not there is made, and is the same the next time."""
    os.mkdir(f'{work}/kept')
    path, tokens_ = f'{work}/kept/token', set()
    for _ in range(2):
        with serving(binary, '--store', store.path, '--token-file', path) as server:
            said = subprocess.run([binary, 'serve', '--url', '--token-file', path, '--listen', f'127.0.0.1:{server.port}'],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
            found = re.fullmatch(rf'http://127\.0\.0\.1:{server.port}/\?token=([0-9a-f]{{64}})\n', said)
            check(found, f'--url: {said!r}')
            hint = shlex.split(server.said.split('stackbpf serve ')[1])
            shown = subprocess.run([binary, 'serve', *hint], stdout=subprocess.PIPE, text=True, check=True).stdout
            check(shown == said, f'the command that is said prints the address: {server.said!r}')
            tokens_.add(found[1])
            check(set(statuses_of_another(server).values()) == {401}, 'a token file: others get nothing')
            check(server.get('/api/info', headers={'Authorization': f'Bearer {found[1]}'})[0] == 200, 'but who knows it')
    check(len(tokens_) == 1 and os.stat(path).st_mode & 0o777 == 0o640, 'it is kept, mode 0640')
    status, said = refused(binary, '--url', '--token-file', path + '2')
    check(status == 1 and 'cannot read' in said and not os.path.exists(path + '2'), '--url makes none')
    if os.geteuid() == 0:
        os.chmod(path, 0o600)
        os.chown(path, 65534, 65534)
        status, said = refused(binary, '--store', store.path, '--token-file', path)
        check(status == 2 and 'another user owns' in said and said.count('\n') == 1, f'a file of another user: {said!r}')
    os.mkfifo(f'{work}/kept/fifo')
    status, said = refused(binary, '--store', store.path, '--token-file', f'{work}/kept/fifo')
    check(status == 1 and 'cannot read' in said, f'a FIFO does not make it wait: {said!r}')


def over_path(path):
    """The status that is answered through a Unix socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(240)
        sock.connect(path)
        sock.sendall(b'GET /api/info HTTP/1.0\r\nHost: localhost\r\n\r\n')
        return status_of(read_all(sock))


def unix_socket(binary, store, work):
    """Its mode says who may ask; one that a killed server left behind is replaced, one in use is not."""
    path = f'{work}/socket'
    command = [binary, 'serve', '--store', store.path, '--listen', f'unix:{path}']

    def start():
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = server.stderr.readline()
        check(said.rstrip().endswith(f'at unix:{path}'), f'a socket: {said!r}')
        return server
    server = start()
    st = os.stat(path)
    check(st.st_mode & 0o7777 == 0o660 and st.st_gid == os.stat(store.path).st_gid, f'its mode: {st.st_mode:o} {st.st_gid}')
    check(over_path(path) == 200, 'who may open it needs no token')
    check(as_user(st.st_gid, lambda: over_path(path)) == 200, "the store's group")
    if os.geteuid() == 0:
        check(as_user(OTHER, lambda: over_path(path)) is None, 'nobody else')
    status, said = refused(binary, *command[2:])
    check(status == 1 and 'in use' in said, f'a socket in use: {said!r}')
    server.kill()
    server.wait()
    server.stderr.close()
    server = start()
    check(over_path(path) == 200, 'the next one takes its place')
    server.send_signal(signal.SIGTERM)
    check(server.wait(240) == 0, 'it ends')
    server.stderr.close()
    os.unlink(path)
    with open(path, 'w', encoding='ascii') as file:
        file.write('a file')
    status, said = refused(binary, *command[2:])
    check(status == 1 and os.path.getsize(path) == 6, f'a file of that name is left alone: {said!r}')
    status, said = refused(binary, '--store', store.path, '--listen', 'unix:' + 'x' * 108)
    check(status == 2, f'a path that is too long: {said!r}')


def damaged(binary, store, work):
    """Files of noise, and a directory in the place of one."""
    path = work + '/damaged'
    subprocess.run(['cp', '-r', store.path, path], check=True)
    for level in '10s', '10min', '1h', '1d':
        names_ = sorted(os.listdir(f'{path}/{level}'))
        for i, name in enumerate(names_):
            with open(f'{path}/{level}/{name}', 'r+b') as file:
                file.seek(i * 100)
                file.write(os.urandom(3000))
    os.mkdir(f'{path}/10s/20010101.sb')
    with serving(binary, '--store', path) as server:
        for route in 'info', 'flame', 'tags', 'timeline', 'diff':
            status, _, body = server.get(f'/api/{route}')
            check(status in (200, 500) and json.loads(body), f'a damaged store: {route}: {status} {body[:80]}')
        check(server.get('/')[0] == 200, 'a damaged store: the page')


def too_long(binary, store):
    """Where no file of an answer may be longer than 2,000 bytes."""
    long, limits = 0, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    with serving(binary, '--store', store.path) as server:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        for path, params in ([('/api/profile', {'format': name}) for name in ('json', 'html', 'folded', 'pprof', 'svg')] +
                             [('/api/flame', {}), ('/api/diff', {'vs_from': T0}), ('/metrics', {})]):
            for headers in {}, {'Accept-Encoding': 'gzip'}:
                status, _, body = server.get(path, headers=headers, **params)
                long += status == 503
                check(status == 200 and len(body) <= 2000 or status == 503 and b'longer than' in body,
                      f'an answer that is too long: {path} {params} {headers}: {status} {body[:120]}')
    check(long > 8, f'{long} answers were too long')


def as_service(unit, work):
    """What systemd says to the unit."""
    if not shutil.which('systemd-analyze'):
        return
    copy = work + '/stackbpf-serve.service'
    with open(unit, encoding='utf-8') as source, open(copy, 'w', encoding='utf-8') as file:
        file.write(source.read().replace('@bindir@/stackbpf', '/bin/true'))
    for words in (['security', '--offline=yes', '--threshold=20'], ['verify', '--man=no']):
        out = subprocess.run(['systemd-analyze', *words, copy], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
        lines = [line for line in out.stdout.splitlines() if 'stackbpf' in line]
        check(out.returncode == 0 and (words[0] == 'security' or not lines), f'the unit: {words[0]}: {lines}')


def main():
    binary, store_text, unit = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as work:
        store = Store(store_text, work + '/store')
        fill(store, T0, 250)
        owner = os.geteuid()
        if owner == 0:
            owner = 65534
            os.chmod(work, 0o711)
            for directory, _, files in os.walk(store.path):
                for path in [directory, *(os.path.join(directory, name) for name in files)]:
                    os.chown(path, owner, owner)
        for args, word in ((['--store', work + '/none'], 'record'), (['--store', work], 'store'), (['x'], "'x'")):
            status, said = refused(binary, *args)
            check(status in (1, 2) and word in said and said.count('\n') == 1, f'{args}: {said!r}')
        with serving(binary, '--store', store.path, '--host', 'given.example') as server:
            status, said = refused(binary, '--store', store.path, '--listen', f'127.0.0.1:{server.port}')
            check(status == 1 and 'in use' in said, f'an address that is taken: {said!r}')
            requests(server)
            names(server)
            connections(server)
            not_read(server)
            thousand(server)
            confined(server, owner)
            workers(server)
        as_service(unit, work)
        tokens(binary, store, work)
        by_default(binary, store)
        kept(binary, store, work)
        unix_socket(binary, store, work)
        damaged(binary, store, work)
        too_long(binary, store)


main()
done()
