# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait in functions of known names, and one that works; on SIGUSR1 it says what it knows of them."""
import faulthandler
import signal
import sys
import threading
import time

HELD = threading.Lock()


def sleep_below():
    time.sleep(10000)


def sleep_here():
    sleep_below()


def wait_for_lock():
    with HELD:
        pass


def work():
    while True:
        for _ in range(1000):
            pass


def main():
    HELD.acquire()
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    threads = [threading.Thread(target=target, name=target.__name__, daemon=True)
               for target in (sleep_here, sleep_here, sleep_here, wait_for_lock, work)]
    for thread in threads:
        thread.start()
    while any(not thread.is_alive() for thread in threads):
        time.sleep(0.01)
    print('ready', *(f'{thread.name}={thread.native_id}={thread.ident}' for thread in threads), flush=True)
    signal.pause()


main()
