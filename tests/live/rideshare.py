#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/examples/rideshare, with one command: what is in the store is what the servers have counted themselves.

rideshare.py STACKBPF SOURCE

The truth is CPU time by each server's own clock, by vehicle and function. Where there is a browser, the page is gone
through as in the article. Names of the last mile, Ruby's and Python's,
differ in what stands before the function's.
"""
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../browser'))
from live import check, done, need_root, running, skip, wait_for  # noqa: E402
from steps import Steps  # noqa: E402
from webdriver import Browser, Missing  # noqa: E402

need_root()
BINARY, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
if not shutil.which('gcc'):
    skip('there is no gcc')
SECONDS = '13'
WORK = ('find_nearest_vehicle', 'check_driver_availability', 'mutex_lock')


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


class Page:
    def __init__(self, port, begin):
        self.port, self.begin, self.end = port, int(begin) - 20, int(time.time()) + 20
        self.range = f'from={self.begin}&to={self.end}&kind=oncpu'

    def get(self, path, *rules):
        query = '&'.join(f'{name}={urllib.parse.quote(rule)}' for name, rule in rules)
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/api/{path}{query}') as answer:
            return json.load(answer)

    def flame(self, *rules):
        return self.get(f'flame?{self.range}&', *(('tag', rule) for rule in rules))


def is_function(name, function):
    return name.replace('#', ' ').replace('.', ' ').split(' ')[-1].split('(')[0] == function


def below(flame, function):
    """Samples in a function and in what it calls."""
    nodes, total, until = flame['nodes'], 0, None
    for i, depth in enumerate(nodes['depth']):
        if until is not None and depth > until:
            continue
        until = None
        if is_function(flame['names'][nodes['name'][i]], function):
            total += nodes['total'][i]
            until = depth
    return total


def check_share(have, total, want, what):
    room = max(0.03, 4.4 * math.sqrt(want * (1 - want) / max(total, 1)))
    check(total > 0 and abs(have / total - want) <= room,
          f'{what}: {have / total if total else 0:.3f} of {total}, counted {want:.3f}, +- {room:.3f}')


def check_server(page, language, region, counts):
    service = f'service=rideshare-{language}'
    flames = {vehicle: page.flame(service, f'region={region}', f'vehicle={vehicle}')
              for vehicle in ('bike', 'scooter', 'car')}
    samples = sum(flame['total'] for flame in flames.values())
    seconds = sum(counts.values())
    for vehicle, flame in flames.items():
        counted = sum(s for key, s in counts.items() if key.startswith(vehicle + ' '))
        check_share(flame['total'], samples, counted / seconds, f'{language}, {region}: {vehicle}')
    cars = sum(s for key, s in counts.items() if key.startswith('car '))
    own = counts.get('car mutex_lock', 0)
    # The lock is taken below check_driver_availability(), which is below find_nearest_vehicle().
    check_share(below(flames['car'], 'mutex_lock'), flames['car']['total'], own / cars, f'{language}, {region}: the lock')
    return samples, seconds


def check_diff(page, language):
    service = f'service=rideshare-{language}'
    diff = page.get(f'diff?{page.range}&vs_from={page.begin}&vs_to={page.end}&',
                    ('tag', service), ('tag', 'region=us-east'), ('vs_tag', service), ('vs_tag', 'region=eu-north'))
    nodes, changes = diff['nodes'], {}
    for i, name in enumerate(nodes['name']):
        for function in WORK:
            if is_function(diff['names'][name], function):
                a, b = nodes['total'][i] / diff['totals'][0], nodes['total_b'][i] / diff['totals'][1]
                changes[function] = changes.get(function, 0) + b - a
    check(max(changes, key=changes.get) == 'mutex_lock' and changes['mutex_lock'] > 0.3,
          f'{language}: the diff names the lock: {changes}')
    table = max(diff['table'], key=lambda row: row['self'][1] / diff['totals'][1] - row['self'][0] / diff['totals'][0])
    check(is_function(table['name'], 'mutex_lock'), f'{language}: and so does its table: {table}')


def percent(text):
    return float(text.replace('under ', '').rstrip('%'))


def look(page, directory):
    """The article's steps, in a browser: from the services to the function that is slow in one region."""
    try:
        browser = Browser()
    except Missing as missing:
        print(f'not looked at: {missing}')
        return
    try:
        walk(page, Steps(browser, f'http://127.0.0.1:{page.port}/', directory))
    finally:
        browser.close()


def walk(page, steps):
    steps.open(page.range)
    services = {value for value in steps.split_by('service') if value.startswith('rideshare-')}
    check(services <= {'rideshare-python', 'rideshare-ruby'} and 'rideshare-python' in services, f'page: services: {services}')
    values = steps.split_by('vehicle')
    check(values[0] == 'car' and {'bike', 'scooter'} <= {*values}, f'page: vehicles: {values}')
    values = steps.split_by('region')
    check(values[0] == 'eu-north', f'page: the slow region is on top: {values}')
    steps.only('vehicle', 'car')
    steps.only('service', 'rideshare-python')
    steps.compare('region', 'us-east', 'eu-north')
    found = steps.search('mutex_lock')
    a, b = (percent(part.split()[-1]) for part in found.split(', ')[1:])
    rules = [('tag', f'{key}={value}') for key, value in
             (('vehicle', 'car'), ('service', 'rideshare-python'), ('region', 'eu-north'))]
    flame = page.flame(*(rule for _, rule in rules))
    share = 100 * below(flame, 'mutex_lock') / flame['total']
    check(a == 0 and abs(b - share) < 0.1, f'page: the lock in us-east and eu-north: {found}; of all {share:.1f} %')
    name, a, b, change, z = steps.diff()
    check(is_function(name, 'mutex_lock') and change.startswith('+') and float(z) > 3,
          f'page: the diff names the lock: {name} {a} {b} {change} {z}')
    messages = steps.messages()
    check(not messages, f'page: the browser has nothing to say: {messages}')


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        begin = time.time()
        ran = subprocess.run([f'{SOURCE}/docs/examples/rideshare/run', '--stackbpf', BINARY, '--store', f'{work}/store',
                              '--listen', f'127.0.0.1:{free_port()}', '--seconds', SECONDS, '--freq', '499', '--count'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
        check(ran.returncode == 0, f'./run: {ran.returncode} {ran.stderr}')
        counts = json.loads(ran.stdout.splitlines()[-1])
        check('#v=diff' in ran.stdout, 'it says what to open')
        port = free_port()
        with running(BINARY, 'serve', '--no-token', '--store', f'{work}/store', '--listen', f'127.0.0.1:{port}'):
            wait_for(lambda: not socket.socket().connect_ex(('127.0.0.1', port)), 'the page')
            page = Page(port, begin)
            tags = {tag['key']: {v['value'] for v in tag['values']} for tag in page.get(f'tags?{page.range}')['tags']}
            check(tags['region'] == {'us-east', 'eu-north', 'ap-south'} and tags['vehicle'] == {'bike', 'scooter', 'car'},
                  f'tags from inside the code: {tags["region"]}, {tags["vehicle"]}')
            figures = {server: check_server(page, *server.split(), values) for server, values in counts.items()}
            samples, seconds = (sum(figure[i] for figure in figures.values()) for i in (0, 1))
            for server, figure in figures.items():
                check_share(figure[0], samples, figure[1] / seconds, f'{server} of all')
            for language in {server.split()[0] for server in counts}:
                check_diff(page, language)
            look(page, work)


main()
done()
