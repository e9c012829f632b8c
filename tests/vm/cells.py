# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cells of the matrix: what can be seen of which program, and what is looked at under which kernel."""
import platform
import re

UNWINDERS = ('dwarf', 'fp')
TOGETHER = ('native', 'python', 'perl', 'ruby', 'php', 'lua', 'luajit')
# What they are takes so long to find out, in a machine that is emulated, that each is looked at alone, and
# not in the normal run.
ALONE = ('node', 'java')
INTERPS = TOGETHER + ALONE
# Options of each view. Those without a limit are not governed: their shares are compared.
OFF = ('--max-overhead', 'off')
GOVERNED = ('--max-overhead', '1')
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
    'oncpu governed': ('oncpu', '-F', '999', *GOVERNED),
    'offcpu governed': ('offcpu', *GOVERNED),
    'wakeup governed': ('wakeup', *GOVERNED),
    'wall governed': ('wall', '-F', '999', *GOVERNED),
    'io governed': ('io', *GOVERNED),
}
ONLY_NATIVE = ('io fsync', 'io fault')  # the others do no such thing
NOT_ON_ARM64 = 'on arm64 there is Python only: the others show their C functions (interpreters.md)'
NO_C_FRAMES = 'its frames are found by walking through C functions, which have no frame pointers in this distribution'


def applies(view, interp):
    """Whether the program does what the view shows."""
    return view not in ONLY_NATIVE or interp == 'native'


def kernel():
    return tuple(map(int, re.match(r'(\d+)\.(\d+)', platform.release()).groups()))


def is_governed(view):
    return VIEWS[view][-2:] == GOVERNED


def cannot(view, unwinder, interp):
    """Why there is nothing to be seen."""
    if platform.machine() == 'aarch64' and interp not in ('native', 'python'):
        return NOT_ON_ARM64
    if view == 'io fault' and platform.machine() == 'aarch64':
        return 'the kernel has no tracepoint of page faults on arm64'
    if view == 'io fault' and kernel() < (5, 17):
        return 'bpf_find_vma() came with Linux 5.17'
    if view == 'offcpu governed' and kernel() < (6, 16):
        return 'before Linux 6.16, which has a tracepoint behind the switch, nothing can be lowered'
    if unwinder == 'fp' and (interp == 'lua' or interp == 'luajit' and view not in ('oncpu', 'wall')):
        return NO_C_FRAMES
    return ''


def both(*views):
    return [(view, unwinder) for view in views for unwinder in UNWINDERS if unwinder == 'dwarf' or not is_governed(view)]


def dwarf(*views):
    return [(view, 'dwarf') for view in views]


# (programs that run at once, views of them) of each mode. "some" is for kernels between those with "all".
MODES = {
    'normal': [(TOGETHER, dwarf('oncpu', 'offcpu', 'io'))],
    'some': [(('native', 'python', 'perl'), dwarf('oncpu', 'offcpu', 'wakeup', 'offwake', 'wall', 'io', 'io block'))],
    'all': [(TOGETHER, both(*VIEWS)),
            *(((name,), both('oncpu') + dwarf('offcpu', 'wakeup', 'offwake', 'wall', 'io')) for name in ALONE)],
    'arm64': [(('native', 'python', 'perl'), both('oncpu', 'offcpu', 'wall') + dwarf(*list(VIEWS)[2:]))],
}
