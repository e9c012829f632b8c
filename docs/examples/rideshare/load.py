#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Customers: load.py PORT...

One for each server, who orders a bike, a scooter and a car in turn, and rests a while. Ends with a signal, or with
the last server.
"""
import http.client
import sys
import threading
import time

REST_SECONDS = 0.7


def order_all(port):
    connection = http.client.HTTPConnection('127.0.0.1', port)
    while True:
        for vehicle in ('bike', 'scooter', 'car'):
            connection.request('GET', f'/{vehicle}')
            connection.getresponse().read()
        time.sleep(REST_SECONDS)


def customer(port):
    try:
        order_all(port)
    except (OSError, http.client.HTTPException):
        pass  # the server has gone


def main():
    customers = [threading.Thread(target=customer, args=(port,), daemon=True) for port in sys.argv[1:]]
    for thread in customers:
        thread.start()
    for thread in customers:
        thread.join()


main()
