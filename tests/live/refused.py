#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel refuses: each program, each map, links, iterators, perf events, descriptors, room on the disk.

refused.py STACKBPF WAITS FAULT [--all]

Without that, some of the programs and maps are refused, with one errno each.
"""
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile

import fault
from live import Result, check, done, need_root, running, wait_for
from truth import at_work, check_near, dur_us

need_root()
STACKBPF, WAITS, FAULT = (os.path.abspath(path) for path in sys.argv[1:4])
ALL = '--all' in sys.argv[4:]
fault.need_libraries(STACKBPF)
EPERM, ENOMEM, EACCES, EINVAL, EMFILE, E2BIG, ENOSPC = 1, 12, 13, 22, 24, 7, 28
SAMPLED = 12
VIEWS = (('oncpu',), ('offcpu',), ('offcpu', '--every', '1ms'), ('wakeup',), ('offwake',), ('wall',), ('io',),
         ('io', '--layer', 'cache'), ('io', '--layer', 'block'), ('io', '--layer', 'fault'))
# Programs that a run goes on without, and what it says then.
OPTIONAL = {'proc_mapped': 'noticed later', 'kernel_name': 'are read from /proc/kallsyms',
            'io_uring_': 'io_uring is not recorded', 'io_kernel_': 'is not recorded'}
PRIVILEGE = 4
TIME = ('-t', '0.2')
FILES_LIMIT = 256  # of which a part is for files that are new
# Maps 200 files at SIGUSR1.
MAPS = '''
import mmap, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
kept = []
for i in range(200):
    with open(f'{sys.argv[1]}/mapped{i}', 'w+b') as file:
        file.write(os.urandom(4096))
        file.flush()
        kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE))
print('done', flush=True)
signal.pause()
'''


def run(view, **faults):
    return fault.run(FAULT, [STACKBPF, *view, '-a', *TIME], **faults)


def names(view):
    """The programs and maps that it loads, as the kernel gets their names; those without one are trials."""
    outcome = run(view)
    check(outcome.status in (0, 3), f'{view}: unharmed, status {outcome.status} {outcome.err[:300]}')
    own = [name for name in dict.fromkeys(outcome.named('load')) if '_' in name and not name.startswith('libbpf')]
    maps = [name for name in dict.fromkeys(outcome.named('map')) if name != '-' and not name.startswith('libbpf')]
    return own, maps


def lacks(program):
    return next((said for name, said in OPTIONAL.items() if program.startswith(name)), None)


def refuse_program(view, name, errno):
    outcome = run(view, bpf=f'load:{name}:{errno}')
    wrong = fault.complaints(outcome)
    said = lacks(name)
    if errno == ENOMEM:  # that is no refusal
        wrong += [] if outcome.status == 1 and 'memory' in outcome.err else [f'{outcome.status}: {outcome.err}']
    elif said:
        wrong += [] if said in outcome.err and outcome.status in (0, 3) else [f'status {outcome.status}: {outcome.err}']
    else:
        wrong += [] if outcome.status == PRIVILEGE and f"'{name}" in outcome.err else [f'{outcome.status}: {outcome.err}']
    return wrong if outcome.faults else [f'it was never asked for: {outcome.notes}']


def refuse_map(view, name, errno):
    outcome = run(view, bpf=f'map:{name}:{errno}')
    wrong = fault.complaints(outcome)
    if not outcome.faults:
        return [f'it was never asked for: {outcome.notes}']
    # Parts of the pool of unwind tables are made as they are needed: without, stacks are said to be cut.
    return wrong + ([] if outcome.status or name == 'uw_part' else ['it went on without'])


def ticks(pid):
    """Whether its timer is armed, as when everything is attached and its loop begins."""
    for name in os.listdir(f'/proc/{pid}/fdinfo'):
        with contextlib.suppress(FileNotFoundError), open(f'/proc/{pid}/fdinfo/{name}', encoding='ascii') as file:
            if 'it_interval: (1, 0)' in file.read():
                return True
    return False


def part_optional():
    """Each program that a run goes on without, in turn: the view `io` has one of each kind."""
    view = ('io',)
    wanted = [name for name in names(view)[0] if lacks(name)]
    for prefix in OPTIONAL:
        # Those at functions are there only where the kernel has them.
        check(any(name.startswith(prefix) for name in wanted) or prefix == 'io_kernel_', f'{prefix} is there')
    for name in wanted:
        wrong = refuse_program(view, name, random.choice((EACCES, EINVAL, E2BIG)))
        check(not wrong, f'{" ".join(view)} goes on without {name}: {wrong}')
    for errno in (EPERM, ENOMEM):  # by a seccomp filter; by net.core.optmem_max
        outcome = run(VIEWS[0], bpf=f'filter:*:{errno}')
        check(not fault.complaints(outcome) and outcome.faults and outcome.status in (0, 3) and
              OPTIONAL['kernel_name'] in outcome.err, f'without a filter, {os.strerror(errno)}: {outcome.status} {outcome.err!r}')


def part_names():
    seen, jobs = set(), []
    for view in VIEWS if ALL else random.sample(VIEWS, 3):
        programs, maps = names(view)
        for kind, name in [(refuse_program, program) for program in programs] + [(refuse_map, name) for name in maps]:
            if ALL or (name not in seen and not lacks(name)):
                jobs += [(view, kind, name, errno) for errno in ERRNOS[kind]]
                seen.add(name)
    for view, refuse, name, errno in jobs if ALL else random.sample(jobs, SAMPLED):
        wrong = refuse(view, name, errno)
        check(not wrong, f'{" ".join(view)} without {name}: {os.strerror(errno)} {wrong}')


ERRNOS = {refuse_program: (EACCES, EINVAL, E2BIG, ENOMEM), refuse_map: (ENOMEM, E2BIG, EPERM)}


def part_rest():
    """What has no name: each is one sentence; whatever was to be done has failed."""
    for view, rule in ((VIEWS[0], 'link:*'), (VIEWS[1], 'tp:*'), (VIEWS[1], 'link:*'), (VIEWS[1], 'iter:*'), (VIEWS[6], 'tp:*'),
                       (VIEWS[0], 'update:*'), (VIEWS[0], 'batch:*'), (VIEWS[0], 'btf:*'), (VIEWS[0], 'lookup:*')):
        for errno in (EPERM, ENOMEM) if ALL else (ENOMEM,):
            outcome = run(view, bpf=f'{rule}:{errno}')
            check(not fault.complaints(outcome) and outcome.faults, f'{view} without {rule}, {os.strerror(errno)}: '
                  f'{outcome.status} {len(outcome.faults)} faults {outcome.err[:400]!r}')


def part_iterator():
    """What one pass over the threads could not make is made by the next one."""
    with at_work(WAITS, 'sleeps', 2) as sleeps:
        for which in ('1', '2'):
            outcome = fault.run(FAULT, [STACKBPF, 'offcpu', '--max-overhead=off', '-p', str(sleeps.pid), '-t', '1'], iter=which)
            result = Result(outcome.status, outcome.out, outcome.err)
            wrong = fault.complaints(outcome) + ([] if outcome.faults and not outcome.status else [outcome.err[:300]])
            check(not wrong, f'iterator {which} finds nothing: {wrong}')
            if not wrong:
                check_near(result.total, 2 * dur_us(result), f'iterator {which} finds nothing: both threads wait', 0.05)


def part_perf():
    """Side-band records and timers, on each CPU."""
    nr_cpus = os.cpu_count()
    for nth in (1, nr_cpus, nr_cpus + 1, 2 * nr_cpus):
        for errno in (EACCES, EMFILE):
            outcome = run(VIEWS[0], perf=f'{nth}:{errno}')
            check(not fault.complaints(outcome) and outcome.faults and outcome.status,
                  f'perf event {nth}, {os.strerror(errno)}: {outcome.status} {outcome.err[:300]!r}')


def part_counters():
    """What was lost is not known: that is said, not that nothing was."""
    outcome = run(VIEWS[0], bpf=f'lookup:*:{EPERM}')
    check(not fault.complaints(outcome) and 'cannot tell how much was lost' in outcome.err, f'counters: {outcome.err!r}')
    check('lost' not in Result(0, outcome.out, '').facts, 'counters: the header does not say it either')


def limited(nr):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (nr, nr))


def part_descriptors():
    """Few descriptors: it works, or one sentence says which limit is too low."""
    with tempfile.TemporaryDirectory() as work:
        # In between, maps and programs of `io` are loaded, of which each must say it.
        for view, limits in ((VIEWS[0], (6, 20, 48, 64, 128)), (VIEWS[6], (6, 20, *range(48, 88, 3), 128))):
            for nr in limits:
                path = f'{work}/out.folded'
                ran = subprocess.run([STACKBPF, *view, '-a', *TIME, '-o', path], stderr=subprocess.PIPE, text=True,
                                     errors='replace', timeout=fault.DEADLINE, preexec_fn=limited(nr), check=False)
                # Status 3: there was nothing to sample.
                works = ran.returncode == 3 or (ran.returncode == 0 and os.path.exists(path))
                says = ran.returncode == 1 and 'raise the limit: ulimit -n' in ran.stderr and \
                    len(ran.stderr.splitlines()) == 1
                check(works or says, f'{view} with {nr} descriptors: {ran.returncode} {ran.stderr[:300]!r}')
                for name in os.listdir(work):
                    check(works and name == 'out.folded', f'{name} is left')
                    os.unlink(f'{work}/{name}')


def part_descriptors_of_files():
    """More new files than descriptors, until the next drain: those without are counted, and nothing else lacks one."""
    with tempfile.TemporaryDirectory() as work, running(sys.executable, '-c', MAPS, work, stdout=subprocess.PIPE) as maps:
        maps.stdout.readline()
        ran = subprocess.Popen([STACKBPF, 'oncpu', '-a', '-t', '60', '-o', f'{work}/out.folded', '--stats'],
                               stderr=subprocess.PIPE, text=True, errors='replace', preexec_fn=limited(FILES_LIMIT))
        wait_for(lambda: ticks(ran.pid), 'the start')
        maps.send_signal(signal.SIGUSR1)
        maps.stdout.readline()
        held = len(os.listdir(f'/proc/{ran.pid}/fd'))
        ran.send_signal(signal.SIGINT)
        _, err = ran.communicate(timeout=fault.DEADLINE)
        check(ran.returncode == 0, f'files: {ran.returncode}, {held} descriptors were held {err[-300:] if ran.returncode else ""}')
        row = [int(line.split()[-1]) for line in err.splitlines() if 'files not opened: ulimit -n' in line]
        check(row and row[0] > 0, f'files: {row} without a descriptor are counted')
        check(held < FILES_LIMIT, f'files: {held} of {FILES_LIMIT} descriptors are held, so nothing else lacks one')


def fill(work):
    with open(f'{work}/filler', 'wb', buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(1024))


def part_room():
    """No room on the disk for the result: what was there is there, and nothing else."""
    with tempfile.TemporaryDirectory() as work:
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', work], check=False).returncode:
            print('no room: tmpfs cannot be mounted here, not tried')
            return
        try:
            for name, before in (('out.folded', 'old\n'), ('out.svg', 'old\n'), ('new.folded', None)):
                if before:
                    with open(f'{work}/{name}', 'w', encoding='ascii') as old:
                        old.write(before)
                fill(work)
                ran = subprocess.run([STACKBPF, 'oncpu', '-a', *TIME, '-o', f'{work}/{name}'], stderr=subprocess.PIPE,
                                     text=True, timeout=fault.DEADLINE, errors='replace', check=False)
                said = fault.sentences(ran.stderr)
                check(ran.returncode == 1 and len(said) == 1 and os.strerror(ENOSPC) in said[0],
                      f'{name}: {ran.returncode} {said}')
                left = sorted(os.listdir(work))
                check(left == sorted(['filler', name] if before else ['filler']), f'{name}: left: {left}')
                if before:
                    with open(f'{work}/{name}', encoding='ascii') as old:
                        check(old.read() == before, f'{name}: what was there is there')
                    os.unlink(f'{work}/{name}')
                os.unlink(f'{work}/filler')
        finally:
            subprocess.run(['umount', work], check=True)


PARTS = {name[len('part_'):]: part for name, part in list(globals().items()) if name.startswith('part_')}
# Something to sample, on a machine that has nothing else to do.
with running('sh', '-c', 'while :; do :; done'):
    for chosen in [arg for arg in sys.argv[4:] if arg != '--all'] or PARTS:
        PARTS[chosen]()
done()
