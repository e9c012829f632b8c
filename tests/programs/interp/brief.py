# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Works for a moment in a function that is never called again, and is gone 50 ms later."""
import os
import time


def only_once():
    end = time.thread_time() + 0.005
    while time.thread_time() < end:
        pass


only_once()
time.sleep(0.05)
os._exit(0)
