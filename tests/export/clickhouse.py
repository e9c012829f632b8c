#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""clickhouse.py STACKBPF MAKE_STORE: a real ClickHouse of two shards on loopback has what was recorded: sums, and the
whole folded text, as `stackbpf export --to file:` writes it; also when all is sent again, or a server was down."""
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import peers

CONFIG = '''<yandex>
<logger><level>warning</level><log>{path}/log</log><errorlog>{path}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
<listen_host>127.0.0.1</listen_host>
<path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path><users_config>users.xml</users_config>
<mark_cache_size>16777216</mark_cache_size><default_profile>default</default_profile>
<default_database>default</default_database><max_concurrent_queries>20</max_concurrent_queries>
<remote_servers><two>{shards}</two></remote_servers>
</yandex>'''
SHARD = '<shard><replica><host>127.0.0.1</host><port>{tcp}</port></replica></shard>'
USERS = '''<yandex><profiles><default></default></profiles><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas></yandex>'''
OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_ports(nr):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(('127.0.0.1', 0))) for _ in range(nr)]
        return [sock.getsockname()[1] for sock in sockets]


class Server:
    def __init__(self, program, path, ports, shards):
        self.program, self.path, self.http = program, path, ports[0]
        path.mkdir()
        (path / 'users.xml').write_text(USERS)
        (path / 'config.xml').write_text(CONFIG.format(path=path, http=ports[0], tcp=ports[1], inter=ports[2],
                                                       shards=''.join(SHARD.format(tcp=tcp) for tcp in shards)))
        self.process = None

    def start(self):
        with open(self.path / 'out', 'ab') as out:
            self.process = subprocess.Popen([self.program, f'--config-file={self.path}/config.xml'], cwd=self.path,
                                            stdout=out, stderr=out)

    def wait(self):
        """Until it answers. It may not be able to run here at all."""
        end = time.monotonic() + 240
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                return self.ask('SELECT 1') == '1\n'
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        peers.skip(f'clickhouse-server does not run here: {(self.path / "out").read_text()[-300:]}')
        return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def ask(self, sql):
        try:
            return OPEN.open(f'http://127.0.0.1:{self.http}/?database=default', sql.encode(), 30).read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def address(self, tail=''):
        return f'clickhouse:http://127.0.0.1:{self.http}/default{tail}'


# As docs/continuous.md has it.
FOLDED = '''SELECT arrayStringConcat(frames, ';') AS line, sum(value) AS weight
FROM (SELECT stack AS hash, value FROM stackbpf_samples FINAL WHERE {where})
GLOBAL ANY INNER JOIN (SELECT hash, any(frames) AS frames FROM stackbpf_stacks GROUP BY hash) USING (hash)
GROUP BY line FORMAT TabSeparatedRaw'''


def file_of(stackbpf, store, work, kind, *args):
    """What stackbpf itself says of it."""
    path = os.path.join(work, 'file.folded')
    times = ('--from', f'@{peers.BEGIN}', '--to', f'@{peers.BEGIN + 86400}')
    peers.export(stackbpf, store, '--to', f'file:{path}', '--kind', kind, *times, *args)
    sums = collections.Counter()
    for line in pathlib.Path(path).read_bytes().decode('utf-8', 'surrogateescape').split('\n'):
        if line and not line.startswith('#'):
            stack, _, weight = line.rpartition(' ')
            sums[stack] += int(weight)
    return dict(sums)


def folded_of(server, where):
    body = OPEN.open(f'http://127.0.0.1:{server.http}/?database=default', FOLDED.format(where=where).encode(), 30).read()
    sums = collections.Counter()
    for line in body.decode('utf-8', 'surrogateescape').split('\n'):
        if line:
            stack, _, weight = line.rpartition('\t')
            sums[stack] += int(weight)
    return dict(sums)


def compare(stackbpf, store, work, server, what):
    have = {tuple(line.split('\t')[:5]): int(line.split('\t')[5]) for line in server.ask(
        "SELECT toUnixTimestamp(start), toUnixTimestamp(end), kind, service, "
        "tag_values[indexOf(tag_keys, 'region')], sum(value) FROM stackbpf_samples FINAL "
        "GROUP BY start, end, kind, service, tag_values, tag_keys").splitlines()}
    want = store.sums(lambda put: (str((put.begin - peers.BEGIN) // 60 * 60 + peers.BEGIN),
                                   str((put.begin - peers.BEGIN) // 60 * 60 + peers.BEGIN + 60), put.kind, put.service,
                                   put.region))
    peers.same(have, want, f'{what}: sums by period, kind and tags')
    for kind in 'oncpu', 'offcpu':
        peers.same(folded_of(server, f"kind = '{kind}' AND service = 'car'"),
                   file_of(stackbpf, store, work, kind, '--tag', 'service=car'), f'{what}: folded text, {kind}')


def test(stackbpf, make_store, work, servers):
    store = peers.Store(make_store, os.path.join(work, 'store')).add(nr=120)
    first, second = servers
    # Without ZooKeeper each server makes its own tables.
    done = peers.export(stackbpf, store, '--to', second.address('?cluster=two'), '--from', f'@{peers.BEGIN}',
                        '--to', f'@{peers.BEGIN + 60}', status=1)
    peers.check('ZooKeeper' in done.stderr and "stackbpf_stacks_local doesn't exist" in done.stderr, 'a cluster without ZooKeeper is said to be one', done.stderr)
    second.ask('TRUNCATE TABLE stackbpf_samples_local')
    second.ask('TRUNCATE TABLE stackbpf_stacks_local')
    began = time.monotonic()
    peers.export(stackbpf, store, '--to', first.address('?cluster=two'))
    print(f'20 minutes in {time.monotonic() - began:.2f} s')
    compare(stackbpf, store, work, first, 'two shards')
    counts = [int(server.ask('SELECT count() FROM stackbpf_samples_local')) for server in servers]
    peers.check(min(counts) > sum(counts) / 10, 'both shards have rows', counts)

    peers.export(stackbpf, store, '--to', first.address('?cluster=two'), '--from', f'@{peers.BEGIN}')
    compare(stackbpf, store, work, first, 'all of it sent twice')

    # A server that is not there: the rest is sent when it is back.
    store.add(peers.BEGIN + 1200, nr=30)
    second.stop()
    done = peers.export(stackbpf, store, '--to', first.address('?cluster=two'), status=1)
    second.start()
    second.wait()
    peers.export(stackbpf, store, '--to', first.address('?cluster=two'))
    compare(stackbpf, store, work, first, 'a shard was down')
    state = peers.state_of(store)
    peers.check(state['failed'] >= 5 and state['next'] == peers.BEGIN + 1500 and not state['error'],
                'the state says what failed, and that it is well now', state)

    # One server alone, whose tables have other names than those of a cluster.
    shutil.rmtree(os.path.join(store.path, 'export'))
    second.ask('DROP TABLE stackbpf_samples')
    second.ask('DROP TABLE stackbpf_stacks')
    peers.export(stackbpf, store, '--to', second.address())
    compare(stackbpf, store, work, second, 'one server')


def main():
    stackbpf, make_store = sys.argv[1:]
    program = shutil.which('clickhouse-server', path=os.environ['PATH'] + ':/usr/sbin')
    if not program:
        peers.skip('no clickhouse-server')
    ports = free_ports(6)
    with tempfile.TemporaryDirectory() as work:
        servers = [Server(program, pathlib.Path(work, f'server{i}'), ports[3 * i:3 * i + 3], (ports[1], ports[4]))
                   for i in range(2)]
        try:
            for server in servers:
                server.start()
            for server in servers:
                server.wait()
            test(stackbpf, make_store, work, servers)
        finally:
            for server in servers:
                server.stop()
    peers.end()


main()
