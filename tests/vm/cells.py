# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cells of the matrix: what can be seen of which program, and what is looked at under which kernel."""
import os
import platform
import re

UNWINDERS = ('auto', 'dwarf', 'fp')
TOGETHER = ('native', 'python', 'perl', 'ruby', 'php', 'lua', 'luajit')
# What they are takes so long to find out, in a machine that is emulated, that each is looked at alone, and
# not in the normal run.
ALONE = ('node', 'java')
INTERPS = TOGETHER + ALONE
# Options of each view. What is governed has to be so, and still to have samples enough for shares: in an emulated
# machine a sample costs a hundred times what it costs elsewhere.
OFF = ('--max-overhead', 'off')
GOVERNED = ('--max-overhead', '1')
GOVERNED_TIMER = ('--max-overhead', '3')
GOVERNED_WALL = ('--max-overhead', '6')  # half of it is for waits
VIEWS = {
    'oncpu': ('oncpu', '-F', '299', *OFF),
    'offcpu': ('offcpu', *OFF),
    'wakeup': ('wakeup', *OFF),
    'offwake': ('offwake', *OFF),
    'wall': ('wall', '-F', '299', *OFF),
    'io': ('io', *OFF),
    'io cache': ('io', '--layer', 'cache', *OFF),
    'io block': ('io', '--layer', 'block', *OFF),
    'io fsync': ('io', '--layer', 'fsync', *OFF),
    'io fault': ('io', '--layer', 'fault', *OFF),
    'oncpu governed': ('oncpu', '-F', '999', *GOVERNED_TIMER),
    'offcpu governed': ('offcpu', *GOVERNED),
    'wakeup governed': ('wakeup', *GOVERNED),
    'wall governed': ('wall', '-F', '999', *GOVERNED_WALL),
    'io governed': ('io', *GOVERNED),
}
ONLY_NATIVE = ('io fsync', 'io fault')  # the others do no such thing
OF_DISK = ('io cache', 'io block', 'io fsync')
# What has a known program of its own: rows of which the cells are tests of `live`, {view: {program: test}}.
TESTED = {
    'trace': {'native': 'live trace user'},
    'latency': {'native': 'live latency calls'},
    'memory': dict.fromkeys(('native', 'python'), 'live memory held'),
    'alloc': {'native': 'live alloc exact'},
    'heap': {'native': 'live alloc held'},
    'heap slab, kmalloc': {'python': 'live alloc kernel'},
    'leak': {'native': 'live alloc leak'},
    'record': {'python': 'live record kinds_at_once'},
}
NO_TABLES = 'its frames are linked by frame pointers: generated code has no unwind tables'
NO_C_FRAMES = 'its frames are found by walking through C functions, which have no frame pointers in this distribution'


# For each list of cells. Where nobody else uses the CPUs, a third is enough.
SECONDS_MAX = {'old': 300, 'few': 1200, 'normal': 1500, 'some': 2400, 'arm64': 2400, 'all': 5400}


def applies(view, interp):
    """Whether the program does what the view shows."""
    return view not in ONLY_NATIVE or interp == 'native'


def kernel():
    return tuple(map(int, re.match(r'(\d+)\.(\d+)', platform.release()).groups()))


def is_governed(view):
    return VIEWS[view][-2:] != OFF


def cannot(view, unwinder, interp):
    """Why there is nothing to be seen."""
    if unwinder == 'dwarf' and interp == 'node':
        return NO_TABLES
    if view in OF_DISK and not os.path.exists('/dev/vda'):
        return 'no disk: the package with the modules of this kernel is in no suite any more'
    if view == 'io fault' and kernel() < (5, 17):
        return 'bpf_find_vma() came with Linux 5.17'
    if view == 'offcpu governed' and kernel() < (6, 16):
        return 'before Linux 6.16, which has a tracepoint behind the switch, nothing can be lowered'
    if unwinder == 'fp' and (interp == 'lua' or interp == 'luajit' and view not in ('oncpu', 'wall')):
        return NO_C_FRAMES
    return ''


# The kernels between have a few; what is governed has too few samples to share them out among more.
FEW = ('native', 'python', 'perl')
GOVERNED_VIEWS = tuple(view for view in VIEWS if is_governed(view))
OTHER_VIEWS = tuple(view for view in VIEWS if not is_governed(view))


def each(unwinders, *views):
    return [(view, unwinder) for view in views for unwinder in unwinders]


# (programs that run at once, views of them) of each mode. "some" is for kernels between those with "all".
MODES = {
    'few': [(FEW, each(('dwarf',), 'oncpu', 'offcpu', 'io'))],
    'normal': [(TOGETHER, each(('dwarf',), 'oncpu', 'offcpu', 'io'))],
    'some': [(FEW, each(('dwarf',), 'oncpu', 'offcpu', 'wakeup', 'offwake', 'wall', 'io', 'io block'))],
    'all': [(TOGETHER, each(('auto',), 'oncpu') + each(('dwarf', 'fp'), *OTHER_VIEWS)),
            (FEW, each(('auto',), *GOVERNED_VIEWS)),
            *(((name,), each(UNWINDERS, 'oncpu') + each(('auto',), 'offcpu', 'wakeup', 'offwake', 'wall', 'io'))
              for name in ALONE)],
    'arm64': [(FEW, each(('dwarf', 'fp'), 'oncpu', 'offcpu', 'wall') +
               each(('dwarf',), *[view for view in OTHER_VIEWS if view not in ('oncpu', 'offcpu', 'wall')]) +
               each(('auto',), *GOVERNED_VIEWS)),
              (('lua', 'luajit', 'php', 'ruby'), each(('dwarf',), 'oncpu')),
              *(((name,), each(('auto',), 'oncpu', 'offcpu', 'io')) for name in ALONE)],
}
