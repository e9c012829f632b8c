# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program of 512 functions, many_aaa() to many_hhh(), which three threads, first() to third(), call one after the other
until it is killed; and of two that the kernel cannot hook, because their first instruction has a lock prefix."""
import itertools
import subprocess

NAMES = ['many_' + ''.join(letters) for letters in itertools.product('abcdefgh', repeat=3)]
SOURCE = """
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>
static volatile long sink;
#define MANY(name) __attribute__((noipa)) void name(void) { sink++; }
#define THREAD(name) __attribute__((noipa)) void *name(void *arg) { for (;;) { call_all(); usleep(100000); } return arg; }
FUNCTIONS
__asm__(".globl many_locked, many_zz_locked\\n"
        ".type many_locked, @function\\n .type many_zz_locked, @function\\n"
        "many_locked: lock incl -8(%rsp)\\n ret\\n .size many_locked, . - many_locked\\n"
        "many_zz_locked: lock incl -8(%rsp)\\n ret\\n .size many_zz_locked, . - many_zz_locked\\n");
static void call_all(void) { CALLS }
THREAD(first)
THREAD(second)
THREAD(third)
int main(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, first, NULL) || pthread_create(&thread, NULL, second, NULL) || third(NULL);
}
"""


def compiled(path):
    """Return: the path."""
    text = SOURCE.replace('FUNCTIONS', '\n'.join(f'MANY({name})' for name in NAMES))
    text = text.replace('CALLS', ' '.join(f'{name}();' for name in NAMES))
    subprocess.run(['gcc', '-O2', '-g', '-pthread', '-x', 'c', '-o', path, '-'], input=text, text=True, check=True)
    return path
