#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each lint test must pass a clean tree and fail on a planted breach, naming file and line."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SPDX_C = '// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n'
SPDX_SH = '#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n'
HOME = '/' + 'home'
LONG = 'int f(void)\n{\n' + '\tg();\n' * 80 + '}\n'

CLEAN = {
    'bpf/abi/sb_abi.h': SPDX_C,
    'bpf/views/a.bpf.c': SPDX_C + '#include "bpf/abi/sb_abi.h"\n',
    'user/base/str.h': SPDX_C,
    'user/base/log.c': SPDX_C + '#include "base/str.h"\n',
    'user/views/view.h': SPDX_C,
    'user/views/a.h': SPDX_C,
    'user/views/a.c': SPDX_C + '#include "views/a.h"\n\n#include "views/view.h"\n',
    'user/capture/batch.h': SPDX_C + '#include "bpf/abi/sb_abi.h"\n',
    'user/capture/session.h': SPDX_C,
    'user/resolve/resolve.c': SPDX_C + '#include "capture/batch.h"\n',
    'user/kinds/views.def': 'SB_VIEW(oncpu,\n\t.unit = "io")\nSB_VIEW(io)\n',
    'scripts/run': SPDX_SH + 'echo "$1"\n',
    'docs/a.md': '[b](b.md), [c](https://example.org/a/b)\n',
    'docs/b.md': 'reads /proc/7/maps and/or /usr/lib/debug\n',
}

# Which test, file, its text (with the licence line before C), the line that must be named.
BREACHES = (
    ('layers', 'user/base/x.c', '#include "views/view.h"\n', 2),
    ('layers', 'user/views/b.c', '#include "views/view.h"\n#include "views/a.h"\n', 3),
    ('layers', 'user/resolve/x.c', '#include "capture/batch.h"\n#include "capture/session.h"\n', 3),
    ('layers', 'user/base/x.c', '#include <bpf/libbpf.h>\n', 2),
    ('layers', 'user/output/x.c', '#include "sampler.skel.h"\n', 2),
    ('layers', 'user/new/x.c', '#include "base/str.h"\n', 2),
    ('layers', 'user/cli/x.c', '/* */ \n#include "base/none.h"\n', 3),
    ('size', 'user/base/x.c', LONG.replace('\tg();\n', '\tg();\n\tg();\n', 1), 2),
    ('size', 'user/base/x.c', 'static int f(int a, int b, int c,\n\t     int d, int e, int g, int h)\n{\n}\n', 2),
    ('size', 'user/base/x.c', '/* a\n *\t' + 'b' * 93 + '\n */\n', 3),
    ('calls', 'user/base/x.c', 'void f(void)\n{\n\tatoi(s);\n}\n', 4),
    ('calls', 'user/base/x.c', 'int x;\nint y = open(path, O_RDONLY | f(1));\n', 3),
    ('calls', 'user/capture/x.c', 'int x = bpf_map__fd(map) < 0;\n', 2),
    ('calls', 'symbolizer/x.c', 'FILE *f = fopen(path, "r");\n', 2),
    ('calls', 'user/model/x.c', 'int x = fprintf(stderr, "x");\n', 2),
    ('calls', 'tests/unit/x.c', 'int x = usleep(5);\n', 2),
    ('spdx', 'user/base/meson.build', 'x = 1\n', 1),
    ('spdx', 'scripts/new', '#!/bin/sh\necho\n', 1),
    ('paths', 'docs/x.md', f'a\nsee {HOME}/me\n', 2),
    ('format', 'user/base/x.c', 'int  x;\n', 2),
    ('scripts', 'scripts/new', SPDX_SH + 'echo $1\n', 3),
    ('views', 'user/base/x.c', 'int x = sb_streq(kind, "io");\n', 2),
    ('views', 'user/base/x.c', '/* "io" */\nconst char *x = "oncpu run io top";\n', 3),
    ('views', 'user/base/x.c', 'const char *x = "kind=oncpu";\n', 2),
    ('views', 'user/serve/x.js', "if (kind === 'io')\n", 1),
    ('scripts', 'tests/x.py', 'def f(:\n', 1),
    ('links', 'docs/x.md', '\n[x](none.md)\n', 2),
    ('links', 'docs/x.md', '\nCall `sb_none()`.\n', 2),
    ('links', 'docs/x.md', '\nIt is in `user/base/none.c`.\n', 2),
    ('spelling', 'docs/x.md', 'It is right.\nIt is ' + 'teh' + ' wrong.\n', 2),
)
# What looks like a breach and is none.
FINE = (
    ('layers', 'user/base/x.c', '/* #include "views/view.h" */\n'),
    ('size', 'user/base/x.c', LONG),
    ('size', 'user/base/x.c', '/* a\n *\t' + 'b' * 84 + '\n */\n'),
    ('size', 'tests/unit/x.c', '/* a\tb\t' + 'c' * 93 + ' */\n'),
    ('size', 'bpf/core/x.bpf.c', 'int BPF_PROG(f, int a, int b, int c, int d, int e, int g)\n{\n}\n'),
    ('size', 'user/base/x.c', 'int f(int (*a)(int, int), int b, int c, int d, int e)\n{\n}\n'),
    ('calls', 'user/base/x.c', '/* atoi(s) */\nconst char *s = "system(";\n'),
    ('calls', 'user/base/x.c', 'int fd = open(path,\n\t      O_RDONLY | O_CLOEXEC);\n'),
    ('calls', 'user/base/x.c', 'FILE *f = fopen(path, "re");\nint x = p->open(1);\n'),
    ('views', 'user/base/x.c', 'const char *x = "io sees no requests of io", *y = "!top run", *z = "ion";\n'),
    ('paths', 'docs/x.md', 'read/write of https://a.b/home/x, ${top}/user/base, a/b/c\n'),
)


def lint(name, plant):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for path, text in (CLEAN | plant).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        shutil.copy(HERE.parents[1] / '.clang-format', root)
        return subprocess.run([sys.executable, HERE / f'{name}.py', root], capture_output=True,
                              text=True, check=False)


def with_licence(path, text):
    return SPDX_C + text if path.endswith('.c') else text


def main():
    nr_wrong = 0

    def expect(ok, what, result):
        nonlocal nr_wrong
        if not ok:
            nr_wrong += 1
            print(f'{what}: exit {result.returncode}\n{result.stdout}{result.stderr}')

    without = set()
    for name in sorted({row[0] for row in BREACHES}):
        result = lint(name, {})
        if result.returncode == 77:
            without.add(name)
        else:
            expect(result.returncode == 0, f'{name} fails on a clean tree', result)
    for name, path, text, line in BREACHES:
        if name not in without:
            result = lint(name, {path: with_licence(path, text)})
            expect(result.returncode == 1 and f'{path}:{line}:' in result.stdout,
                   f'{name} misses {path}:{line}: {text!r}', result)
    for name, path, text in FINE:
        result = lint(name, {path: with_licence(path, text)})
        expect(result.returncode == 0, f'{name} objects to {text!r}', result)
    return 1 if nr_wrong else 0


if __name__ == '__main__':
    sys.exit(main())
