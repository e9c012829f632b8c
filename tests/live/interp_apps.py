#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Applications, not only programs with a known tree: services under load, and commands with children.

interp_apps.py STACKBPF PROGRAMS [APP...]

Of the samples inside of an interpreter, 99 % have its frames; 99.5 % of the stacks are complete; and the
functions of the application are there, in the order in which they call one another."""
import contextlib
import http.client
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import beside
from interp import are_most
from live import check, done, need_root, stackbpf, wait_for

STACKBPF = sys.argv[1]
APPS = pathlib.Path(sys.argv[2]) / 'interp/apps'
SECONDS = 3
FOUND_MIN, COMPLETE_MIN = 99.0, 99.5
# The first samples of each process come before it has been looked at, which counts with commands that
# start processes during the run; those of frames on the native stack until there are unwind tables.
STARTING_MIN = 96.0
# The first stacks of a process are taken raw, 64 KiB of them; a thread of Ruby has a megabyte of the
# VM's stack within its native one.
RUBY_COMPLETE_MIN = 98.5
# A command of half a second, from its beginning: its first stacks are from before its unwind tables.
STARTING_COMPLETE_MIN = 98.0


class NotHere(Exception):
    """The reason."""


def command_of(name):
    found = shutil.which(name, path='/usr/bin:/usr/sbin:/usr/local/bin')
    if not found:
        raise NotHere(f'no {name}')
    return found


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def get(port):
    with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=240)) as connection:
        connection.request('GET', '/')
        return connection.getresponse().read()


def answers(port):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return get(port)
    return None


@contextlib.contextmanager
def load(port):
    """One request after the other, by two clients."""
    wait_for(lambda: answers(port), 'an answer')
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            answers(port)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def printing_port(command, **kwargs):
    """A service that prints the number of its port, alone or at the end of its first line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **kwargs)
    try:
        yield process.pid, int(re.search(r'port (\d+)|^(\d+)$', process.stdout.readline())[0].split()[-1])
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def at_port(port, process):
    try:
        yield process.pid, port
    finally:
        process.kill()
        process.wait()


def python_service(work):
    for i in range(300):
        (work / f'file{i}').touch()
    return printing_port([command_of('python3'), '-u', '-m', 'http.server', '0', '--bind', '127.0.0.1'], cwd=work)


def ruby_service(_):
    probe = [command_of('ruby'), '-e', 'require "webrick"']
    if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode:
        raise NotHere('no WEBrick')
    return printing_port([command_of('ruby'), APPS / 'service.rb'])


def php_service(_):
    port = free_port()
    return at_port(port, subprocess.Popen([command_of('php'), '-S', f'127.0.0.1:{port}', APPS / 'service.php'],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def node_service(_):
    return printing_port([command_of('node'), APPS / 'service.js'])


def java_service(work):
    subprocess.run([command_of('javac'), '-d', work, APPS / 'Service.java'], check=True)
    return printing_port([command_of('java'), '-XX:+UseSerialGC', '-cp', work, 'Service'])


def nginx_service(work):
    root = beside.unpack('bookworm', ['nginx-light', 'libnginx-mod-http-lua'])
    port = free_port()
    (work / 'nginx.conf').write_text((APPS / 'nginx.conf').read_text().replace('PORT', str(port)))
    return at_port(port, beside.start(root, ['/usr/sbin/nginx', '-c', '/nginx.conf'], stderr=subprocess.DEVNULL,
                                      files={'/nginx.conf': work / 'nginx.conf',
                                             '/service.lua': APPS / 'service.lua'}))


def of_service(start, work):
    with start(work) as (pid, port), load(port):
        return stackbpf(STACKBPF, 'oncpu', '-p', str(pid), '-t', str(SECONDS), '-F', '499', '--stats', '--annotate')


def prove(work):
    for i in range(4):
        shutil.copy(APPS / 'suite.t', work / f'{i}.t')
    return stackbpf(STACKBPF, 'oncpu', '-F', '499', '--stats', '--annotate', '-c',
                    f"{command_of('prove')} {work}/*.t >/dev/null")


def npm(work):
    (work / 'package.json').write_text('{"name": "it", "version": "1.0.0", "files": ["*"]}')
    for i in range(1500):
        (work / f'file{i}.js').write_text(f'module.exports = {i};\n' * 50)
    return stackbpf(STACKBPF, 'oncpu', '-F', '499', '--stats', '--annotate', '-c',
                    f"cd {work} && HOME={work} {command_of('npm')} pack --offline --dry-run >/dev/null 2>&1")


def service(start):
    return lambda work: of_service(start, work)


# What runs; the runtime; functions that call one another, outermost first, native ones between them left
# out; the least shares.
ROWS = {
    'http.server': (service(python_service), 'python',
                    ['ThreadingMixIn.process_request_thread', 'BaseHTTPRequestHandler.handle_one_request',
                     'SimpleHTTPRequestHandler.do_GET', 'SimpleHTTPRequestHandler.list_directory'], FOUND_MIN,
                    COMPLETE_MIN),
    'prove': (prove, 'perl', ['{main}', 'main::count_words'], STARTING_MIN, COMPLETE_MIN),
    'WEBrick': (service(ruby_service), 'ruby',
                ['WEBrick::HTTPServer#run', 'WEBrick::HTTPServer#service', 'Object#render', 'Array#map'],
                FOUND_MIN, RUBY_COMPLETE_MIN),
    'nginx': (service(nginx_service), 'luajit', ['{main}', 'render', 'sort', 'service.lua:8'], FOUND_MIN,
              COMPLETE_MIN),
    'php -S': (service(php_service), 'php', ['{main}', 'render', '{closure}'], FOUND_MIN, COMPLETE_MIN),
    'http of Node.js': (service(node_service), 'v8', ['emit', 'render'], STARTING_MIN, COMPLETE_MIN),
    'npm': (npm, 'v8', ['exec'], STARTING_MIN, STARTING_COMPLETE_MIN),
    'HttpServer of Java': (service(java_service), 'java', ['Service.answer', 'Service.render'], STARTING_MIN,
                           COMPLETE_MIN),
}


def is_called_in_order(stack, names):
    """@names are among the frames of interpreters, in this order."""
    frames = iter(frame[:-len('_[p]')] for frame in stack if frame.endswith('_[p]'))
    return all(any(name == frame.rpartition('::')[2] or name == frame for frame in frames) for name in names)


def look(name, result):
    _, runtime, chain, found_min, complete_min = ROWS[name]
    row = re.search(rf'^stackbpf:\s+{runtime}\s+(.*): (\d+) samples, ([0-9.]+) % with its frames.*', result.err, re.M)
    complete = re.search(r'^stackbpf:\s+complete stacks\s+([0-9.]+) %', result.err, re.M)
    check(result.status == 0, f'{name}: status {result.status}, {result.err if result.status else ""}')
    if not row:
        check(False, f'{name}: no {runtime} in {result.err}')
        return
    print(f'{name}: {runtime} {row[1]}, {row[2]} samples')
    check(int(row[2]) > 50, f'{name}: {row[2]} samples')
    nr = int(row[2])
    check(are_most(float(row[3]) / 100 * nr, nr, found_min / 100), f'{name}: {row[3]} % of the samples have frames of {runtime}')
    cut = re.findall(r'^stackbpf:\s+((?:too deep|no frame|bad|unreadable|no unwind|no reg|longer|unwind table not)'
                     r'.*?)\s+([1-9]\d*)$', result.err, re.M)
    check(are_most(float(complete[1]) / 100 * result.total, result.total, complete_min / 100), f'{name}: {complete[1]} % of the stacks are complete {cut or ""}')
    stacks = {stack: weight for stack, weight in result.stacks.items() if is_called_in_order(stack, chain)}
    check(stacks, f'{name}: {" > ".join(chain)} in {sum(stacks.values())} samples')
    if not stacks:
        for stack, weight in result.stacks.most_common(3):
            print(f'  {weight} {";".join(stack)}')


def main():
    need_root()
    reasons = {}
    for name, row in ROWS.items():
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                look(name, row[0](pathlib.Path(work)))
            except (NotHere, beside.Missing) as missing:
                reasons[name] = missing
    for name, reason in reasons.items():
        print(f'without {name}: {reason}')
    if len(reasons) == len(ROWS):
        print('skipped: no application is here')
        sys.exit(77)
    done()


main()
