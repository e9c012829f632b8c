# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What labels.py runs, and how each is compiled: the variable that labels are in is found in other ways."""

# Ways to get at a thread-local variable of a library: by a pair of words, by a descriptor.
DIALECTS = {'x86_64': ('gnu', 'gnu2'), 'aarch64': ('trad', 'desc')}
PROGRAMS = {
    'static': ('-static', '-DLABELS_STATIC', '-DLABELS_LINKED'),
    'stripped': ('-s', '-Wl,--export-dynamic-symbol=otel_thread_ctx_v1', '-DLABELS_LINKED'),
    'plain': (),
    'custom': ('-DLABELS_CUSTOM',),
    'forged': ('-DLABELS_FORGED',),
    **{name: ('-DLABELS_LINKED',) for name in ('shares', 'torn', 'keys', 'many')},
}


def commands(compiler, source, work, machine):
    """{name: the command that compiles it into the folder `work`}"""
    pair, descriptor = (f'-mtls-dialect={dialect}' for dialect in DIALECTS[machine])
    libraries = {'dynamic.so': (pair, '-Wl,-Bsymbolic'), 'descriptor.so': (descriptor,),
                 'initial.so': ('-ftls-model=initial-exec',), 'labels.so': ()}
    base = (*compiler, '-O1', '-pthread', f'-I{source}/include')
    made = {name: (*base, *flags, '-o', f'{work}/{name}', f'{source}/tests/programs/labels.c', '-ldl')
            for name, flags in PROGRAMS.items()}
    return made | {name: (*base, '-fPIC', '-shared', *flags, '-o', f'{work}/{name}',
                          f'{source}/tests/programs/labels_lib.c') for name, flags in libraries.items()}
