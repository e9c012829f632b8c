#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A ride-share server: server.py REGION LIBRARY

/bike, /scooter and /car order one. How long an order looks for a vehicle is how long it takes: 20, 30 and 40 ms of
CPU time; for a car it asks drivers, too, 20 ms; and in eu-north it holds a lock meanwhile, for 200 ms.
/count says what the server itself has counted: seconds of CPU time by vehicle and function.
"""
import http.server
import json
import os
import sys
import threading
import time
from itertools import repeat

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'labels'))
from stackbpf_labels import Labels  # noqa: E402

REGION, LIBRARY = sys.argv[1:3]
SEARCH_SECONDS = {'bike': 0.02, 'scooter': 0.03, 'car': 0.04}

labels = Labels(LIBRARY)
drivers = threading.Lock()
counting = threading.Lock()
counts = {}


def count(vehicle, function, seconds):
    with counting:
        key = f'{vehicle} {function}'
        counts[key] = counts.get(key, 0) + seconds


def mutex_lock(seconds):
    with drivers:
        begin = now = time.thread_time()
        while now < begin + seconds:
            for _ in repeat(None, 10000):
                pass
            now = time.thread_time()
    count('car', 'mutex_lock', now - begin)


def check_driver_availability(seconds):
    begin = now = time.thread_time()
    while now < begin + seconds / 2:
        for _ in repeat(None, 10000):
            pass
        now = time.thread_time()
    count('car', 'check_driver_availability', now - begin)
    if REGION == 'eu-north':
        mutex_lock(seconds * 5)


def find_nearest_vehicle(vehicle, seconds):
    begin = now = time.thread_time()
    while now < begin + seconds:
        for _ in repeat(None, 10000):
            pass
        now = time.thread_time()
    count(vehicle, 'find_nearest_vehicle', now - begin)
    if vehicle == 'car':
        check_driver_availability(seconds)


def order_bike():
    find_nearest_vehicle('bike', SEARCH_SECONDS['bike'])


def order_scooter():
    find_nearest_vehicle('scooter', SEARCH_SECONDS['scooter'])


def order_car():
    find_nearest_vehicle('car', SEARCH_SECONDS['car'])


ORDERS = {'bike': order_bike, 'scooter': order_scooter, 'car': order_car}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        vehicle = self.path[1:]
        if vehicle in ORDERS:
            # What follows is done for this vehicle, in this region: samples of the thread say so.
            with labels(vehicle=vehicle, region=REGION):
                ORDERS[vehicle]()
            self.answer(200, f'one {vehicle}, {REGION}\n')
        elif vehicle == 'count':
            with counting:
                self.answer(200, json.dumps(counts))
        else:
            self.answer(404, 'there are /bike, /scooter and /car\n')

    def answer(self, status, text):
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # the client has gone
            super().handle_error(request, client_address)


def main():
    server = Server(('127.0.0.1', 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
