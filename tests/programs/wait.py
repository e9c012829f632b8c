# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an interpreter waits for, and reads and writes, until it is killed."""
import os
import queue
import select
import socket
import subprocess
import tempfile
import threading
import time


def deeper(n, function, *args):
    return deeper(n - 1, function, *args) if n else function(*args)


def files():
    with tempfile.TemporaryFile() as file:
        file.write(b'x' * 20000)
        file.seek(0)
        file.read()
    with open('/etc/passwd', encoding='utf-8') as lines:
        for _ in lines:
            pass


def pipes():
    there, back = socket.socketpair()
    there.send(b'x' * 100)
    select.select([back], [], [], 1)
    back.recv(1000)
    there.close()
    back.close()
    in_fd, out_fd = os.pipe()
    os.write(out_fd, b'y')
    os.read(in_fd, 10)
    os.close(in_fd)
    os.close(out_fd)


def child():
    subprocess.run(['/bin/echo', 'x'], stdout=subprocess.PIPE, check=True)


def worker(jobs):
    while True:
        function, done = jobs.get()
        function()
        done.set()


def by_thread(jobs):
    done = threading.Event()
    jobs.put((lambda: time.sleep(0.002), done))
    done.wait()


def main():
    jobs = queue.Queue()
    threading.Thread(target=worker, args=(jobs,), daemon=True).start()
    while True:
        for n in range(0, 40, 5):
            deeper(n, files)
            deeper(n, time.sleep, 0.001)
            deeper(n, pipes)
            deeper(n, by_thread, jobs)
        child()


main()
