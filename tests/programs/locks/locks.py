# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait for locks and measure how long; a pool that waits for work.

locks.py SECONDS: writes to stderr, as JSON, nanoseconds by the function that waited.
"""
import json
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

lock, rlock, semaphore, items = threading.Lock(), threading.RLock(), threading.Semaphore(1), queue.Queue()
spent = {}
over = threading.Event()


def add(name, since):
    spent[name] = spent.get(name, 0) + time.monotonic_ns() - since


def lock_work():
    since = time.monotonic_ns()
    lock.acquire()
    add('lock_work', since)
    hold()
    lock.release()


def rlock_work():
    since = time.monotonic_ns()
    rlock.acquire()
    add('rlock_work', since)
    hold()
    rlock.release()


def semaphore_work():
    since = time.monotonic_ns()
    semaphore.acquire()
    add('semaphore_work', since)
    hold()
    semaphore.release()


def hold():
    time.sleep(.008)


def take_work():
    """It waits for what nobody sends: no lock, and by its callers no worker."""
    since = time.monotonic_ns()
    try:
        items.get(timeout=.05)
    except queue.Empty:
        add('take_work', since)


def burn():
    """Time in which this is off the CPU and could run is the GIL's."""
    end = time.monotonic() + .01
    while time.monotonic() < end:
        pass


def run(work):
    while not over.is_set():
        work()
        time.sleep(.002)


works = 3 * [lock_work] + 3 * [rlock_work] + 3 * [semaphore_work] + [take_work] + (len(sys.argv) > 2) * 3 * [burn]
with ThreadPoolExecutor(2) as pool:
    list(pool.map(time.sleep, 2 * [.01]))
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    begin = time.monotonic_ns()
    time.sleep(float(sys.argv[1]))
    spent['_worker'] = 2 * (time.monotonic_ns() - begin)
    over.set()
    for thread in threads:
        thread.join()
print(json.dumps(spent), file=sys.stderr)
