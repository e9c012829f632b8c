# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Known stacks, for CPython 2.7 and 3: 70 %, 20 % and 10 % of the time in three functions, and a thread
that waits. It says as JSON, on one line, what its stacks are by its own account, root first; then it goes
on until it is killed. Its argument is the name that it takes."""
import json
import os
import sys
import threading
import time

# By the clock of the CPU: loops that look alike may differ by a third, for reasons of the processor.
clock = getattr(time, 'process_time', None) or time.clock
tenth = 0.001  # seconds, of a turn
nr_turns = 0
truth = {}


def name_of(code):
    return getattr(code, 'co_qualname', code.co_name)


def stack_of(frame):
    stack = []
    while frame:
        stack.insert(0, [name_of(frame.f_code), os.path.basename(frame.f_code.co_filename), frame.f_lineno])
        frame = frame.f_back
    return stack


def record(name):
    """The stack of the caller, as it is on its next line."""
    if name not in truth:
        stack = stack_of(sys._getframe(1))
        stack[-1][2] += 1
        truth[name] = stack


class Work(object):
    def __init__(self, depth):
        if depth:
            self.inner = Work(depth - 1)
        else:
            self.seventy()

    def seventy(self):
        end = clock() + 7 * tenth
        record('seventy')
        while clock() < end: pass


def down(depth):
    if depth:
        return down(depth - 1)
    return Work(1)


def twenty(item):
    end = clock() + 2 * tenth
    record('twenty')
    while clock() < end: pass
    return item


def callback():
    return sorted([1], key=lambda item: twenty(item))


def generator():
    yield 1
    end = clock() + tenth
    record('ten')
    while clock() < end: pass


def ten():
    return sum(generator())


def turn():
    # Turns of one length would keep step with the sampling, and show but a few of their moments.
    global tenth, nr_turns
    nr_turns += 1
    tenth = (700 + nr_turns * 7919 % 700) * 1e-6
    down(2)
    callback()
    ten()


class Waiter(object):
    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        self.thread = threading.Thread(target=self.wait, name=sys.argv[1])  # 3.14 tells the kernel
        self.thread.daemon = True
        self.thread.start()

    def wait(self):
        while True:
            sorted([4], key=self.read)

    def read(self, nr_bytes):
        return os.read(self.read_end, nr_bytes)


def is_reading(waiter):
    frame = sys._current_frames().get(waiter.thread.ident)
    return frame and frame.f_code.co_name == 'read'


def say(waiter):
    truth['waits'] = stack_of(sys._current_frames()[waiter.thread.ident])
    truth['version'] = sys.version.split()[0]
    sys.stdout.write(json.dumps(truth) + '\n')
    sys.stdout.flush()


def main():
    with open('/proc/self/comm', 'w') as comm:
        comm.write(sys.argv[1])
    waiter = Waiter()
    while not is_reading(waiter):
        pass
    while True:
        turn()
        if 'waits' not in truth:
            say(waiter)


main()
