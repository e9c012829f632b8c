# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A bit of everything that an interpreter does, until it is killed."""
import functools
import hashlib
import json
import re
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


while True:
    fib(12)
    words = json.loads(json.dumps({str(i): [i, i / 3, None] for i in range(50)}))
    re.sub(r'(\w+)-(\d+)', lambda m: m[2] + m[1], 'abc-123 ' * 50)
    sorted(words.items(), key=functools.cmp_to_key(lambda a, b: a[1][0] - b[1][0]))
    hashlib.sha256(b'x' * 10000).hexdigest()
    time.strftime('%c', time.localtime())
    3 ** 2000 % 7919
