#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two threads that work for cars, bikes and scooters, and say so: labels.py LIBRARY

    sudo stackbpf oncpu -p PID --label vehicle -t 5 -o by-vehicle.svg
"""
import sys
import threading
import time

from stackbpf_labels import Labels

labels = Labels(sys.argv[1])


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def take_turns():
    while True:
        with labels(vehicle='car'):
            work(0.035)
        with labels(vehicle='bike'):
            work(0.010)
        with labels(vehicle='scooter'):
            work(0.005)


for _ in range(2):
    threading.Thread(target=take_turns, daemon=True).start()
threading.Event().wait()
