#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random expressions: our compiler and evaluator against the C compiler of this machine.

expr_oracle.py EXPR_EVAL [SEED]

C decides precedence, types, conversions and values. Where C leaves something undefined (division by zero,
the shift by more than 63 places) and our language does not, the C text has a macro that says what we promise.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

EXPR_EVAL = sys.argv[1]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
NR_CASES = 3000
NR_AT_LEAST = 2500  # the others exceed a bound of a program
TYPES = ('int8_t', 'uint8_t', 'int16_t', 'uint16_t', 'int32_t', 'uint32_t', 'int64_t', 'uint64_t')
WORDS = (0, 1, 2, 3, 7, 63, 64, 127, 128, 255, 256, 4096, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
         2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2, 2**64 - 7)
LEVELS = (('||',), ('&&',), ('|',), ('^',), ('&',), ('==', '!='), ('<', '<=', '>', '>='), ('<<', '>>'), ('+', '-'),
          ('*', '/', '%'))
PRECEDENCE = {sign: level for level, signs in enumerate(LEVELS, 1) for sign in signs}
UNARY, PRIMARY = len(LEVELS) + 1, len(LEVELS) + 2
CASTS = (('u8', 'uint8_t'), ('s8', 'int8_t'), ('uint16_t', 'uint16_t'), ('short', 'short'), ('int', 'int'),
         ('unsigned', 'unsigned'), ('unsigned int', 'unsigned'), ('long', 'long long'), ('u64', 'uint64_t'),
         ('unsigned long', 'uint64_t'), ('s64', 'int64_t'), ('signed char', 'signed char'))
HEAD = r'''
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
typedef long long L;
typedef unsigned long long U;
static unsigned int zero;
/* A comparison is an int in C, and here has 64 bits. */
#define WIDE(x) ((__typeof__((x) + 0LL))(x))
#define DIV(x, y) ({ __auto_type x_ = (x); __auto_type y_ = (y); __typeof__(x_ + y_) r_; \
        if (!y_) { zero = 1; r_ = 0; } \
        else if ((__typeof__(r_))-1 < 0 && y_ == -1) r_ = 0 - (U)x_; \
        else r_ = x_ / y_; r_; })
#define MOD(x, y) ({ __auto_type x_ = (x); __auto_type y_ = (y); __typeof__(x_ + y_) r_; \
        if (!y_) { zero = 1; r_ = 0; } \
        else if ((__typeof__(r_))-1 < 0 && y_ == -1) r_ = 0; \
        else r_ = x_ % y_; r_; })
#define SHL(x, y) ({ __auto_type x_ = (x); (__typeof__(x_))((U)x_ << ((y) & 63)); })
#define SHR(x, y) ((x) >> ((y) & 63))
#define OUT(x) do { zero = 0; __auto_type v_ = WIDE(x); \
        printf("%llu %c %u\n", (U)v_, (__typeof__(v_))-1 < 0 ? 's' : 'u', zero); } while (0)
'''
MACROS = {'/': 'DIV', '%': 'MOD', '<<': 'SHL', '>>': 'SHR'}

rng = random.Random(SEED)


def literal():
    """(text, C text, precedence)"""
    kind = rng.randrange(6)
    if kind == 0:
        number, name = rng.randrange(1, 1000), rng.choice('kMG')
        return f'{number}{name}', f'{number * 1024 ** ("kMG".index(name) + 1)}LL', PRIMARY
    if kind == 1:
        number, name = rng.randrange(1, 1000), rng.choice(('ns', 'us', 'ms', 's'))
        return f'{number}{name}', f'{number * 1000 ** ("ns", "us", "ms", "s").index(name)}LL', PRIMARY
    number = rng.choice(WORDS) if kind < 4 else rng.randrange(100)
    text = hex(number) if rng.random() < 0.3 else str(number)
    return text, f'{number}{"LL" if number < 2**63 else "ULL"}', PRIMARY


def leaf():
    if rng.random() < 0.35:
        return literal()
    name = rng.choice('abcdefgh')
    return rng.choice(('', 'r')) + name, name, PRIMARY


def inside(part, level):
    """The two texts, in parentheses where C needs them, and now and then where it does not."""
    text, code, own = part
    if own < level or rng.random() < 0.1:
        return f'({text})', f'({code})'
    return text, code


def unary(depth):
    if rng.random() < 0.35:
        ours, c_name = rng.choice(CASTS)
        text, code = inside(expression(depth - 1), UNARY)
        return f'({ours}){text}', f'WIDE(({c_name}){code})', UNARY
    sign = rng.choice('-!~')
    text, code = inside(expression(depth - 1), UNARY)
    return f'{sign} {text}', f'WIDE(!{code})' if sign == '!' else f'{sign} {code}', UNARY


def expression(depth):
    if depth <= 0 or rng.random() < 0.1:
        return leaf()
    kind = rng.random()
    if kind < 0.2:
        return unary(depth)
    if kind < 0.26:
        parts = [inside(expression(depth - 1), level) for level in (1, 0, 0)]
        return '{} ? {} : {}'.format(*(p[0] for p in parts)), '{} ? {} : {}'.format(*(p[1] for p in parts)), 0
    sign = rng.choice(rng.choice(LEVELS))
    level = PRECEDENCE[sign]
    left, right = expression(depth - 1), expression(depth - 1)
    if sign in MACROS and rng.random() < 0.3:  # defined in C, too: its own precedence
        right = (str(rng.randrange(2, 60)),) * 2 + (PRIMARY,)
        is_macro = False
    else:
        is_macro = sign in MACROS
    left_text, left_code = inside(left, level)
    right_text, right_code = inside(right, level + 1)
    if sign in ('<<', '>>') and left[2] < PRIMARY:
        left_code = f'WIDE({left_code})'  # it may be a comparison, which is an int in C
    text = f'{left_text} {sign} {right_text}' if rng.random() < 0.8 else f'{left_text}{sign}{right_text}'
    if is_macro:
        return text, f'{MACROS[sign]}({left_code}, {right_code})', level
    return text, f'{left_code} {sign} {right_code}', level


def word():
    return rng.choice(WORDS) if rng.random() < 0.7 else rng.getrandbits(64)


def c_source(cases):
    lines = [HEAD]
    for nr, (words, _, code) in enumerate(cases):
        fields = ' '.join(f'{"L" if kind[0] == "i" or kind != "uint64_t" else "U"} {name} = ({kind}){value:#x}ULL;'
                          for name, kind, value in zip('abcdefgh', TYPES, words))
        lines.append(f'static void case{nr}(void) {{ {fields} OUT({code}); }}')
    calls = ' '.join(f'case{nr}();' for nr in range(len(cases)))
    return '\n'.join([*lines, f'int main(void) {{ {calls} return 0; }}'])


def truth(cases):
    """The lines that OUT prints of each case."""
    compiler = shutil.which('gcc') or shutil.which('cc')
    if not compiler:
        print('skipped: there is no C compiler')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'truth.c'), os.path.join(folder, 'truth')
        with open(source, 'w', encoding='utf-8') as file:
            file.write(c_source(cases))
        subprocess.run([compiler, '-std=gnu11', '-O0', '-w', '-fwrapv', '-o', program, source], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    cases = []
    for _ in range(NR_CASES):
        text, code, _ = expression(rng.choice((1, 2, 2, 3, 3, 4)))
        cases.append(([word() for _ in TYPES], text, code))
    lines = ''.join(' '.join(f'{value:x}' for value in words) + f' {text}\n' for words, text, _ in cases)
    ours = subprocess.run([EXPR_EVAL], input=lines, check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = truth(cases)
    nr_equal = nr_beyond = nr_bad = nr_zero = 0
    for (words, text, code), own, other in zip(cases, ours, theirs, strict=True):
        if own.startswith('- ') and ('more than 32 instructions' in own or 'intermediate results' in own):
            nr_beyond += 1
        elif own == other:
            nr_equal += 1
            nr_zero += own.endswith(' 1')
        else:
            nr_bad += 1
            if nr_bad <= 5:
                print(f'{text}\n  C: {code}\n  words: {" ".join(map(hex, words))}\n  ours {own}, C {other}')
    print(f'{nr_equal} equal (of which {nr_zero} divide by zero), {nr_bad} not, {nr_beyond} beyond our bounds; seed {SEED}')
    return nr_bad > 0 or nr_equal < NR_AT_LEAST or nr_zero < 20


if __name__ == '__main__':
    sys.exit(main())
