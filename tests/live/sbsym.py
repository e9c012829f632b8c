#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sbsym on living processes: programs say where their functions are, sbsym has to agree.

usage: sbsym.py SBSYM PROGRAMS_DIR, with PROGRAMS_DIR/where_* and libwhere_lib.so
"""
import contextlib
import os
import pwd
import random
import shutil
import subprocess
import sys
import tempfile

from live import check, done, skip, wait_for

SBSYM, PROGRAMS = sys.argv[1], sys.argv[2]


def program(variant):
    return os.path.join(PROGRAMS, 'where_' + variant)


def sbsym(*args, **kwargs):
    return subprocess.run([SBSYM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=240, **kwargs)


def names(target, addrs, *options):
    """The name (or "[...]") of each address, without inlined frames, lines, offsets."""
    out = sbsym('--no-inline', '--no-lines', *options, target, *addrs).stdout
    return [line.rsplit(' ', 1)[0] for line in out.splitlines()]


class Where:
    """What a `where` program has said."""

    def __init__(self, process, tgid=None):
        self.process, self.tgid = process, tgid or process.pid
        self.functions = {}
        for line in process.stdout:
            if line == 'ready\n':
                break
            name, addr = line.rsplit(' ', 1)
            self.functions[name] = addr.strip()
        assert self.functions, 'the program said nothing'

    def expect(self, what, but=()):
        """Each function is named at its start and two bytes behind."""
        for offset in (0, 2):
            addrs = [f'{int(a, 16) + offset:x}' for a in self.functions.values()]
            want = [f'{n}+{offset:#x}' for n in self.functions]
            got = names(self.tgid, addrs)
            wrong = [(w, g) for w, g in zip(want, got) if w != g and w.split('+')[0] not in but]
            check(len(got) == len(want) and not wrong, f'{what}, {offset} behind {wrong or ""}')


@contextlib.contextmanager
def where(*command, **kwargs):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               **kwargs)
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()


def test_layouts():
    for variant in ('pie', 'no_pie', 'noseparate', 'static'):
        with where(program(variant)) as process:
            Where(process).expect(variant)


def test_dlopen():
    with where(program('pie'), 'dlopen', os.path.join(PROGRAMS, 'libwhere_lib.so')) as process:
        said = Where(process)
        check('lib_two' in said.functions, 'the library was loaded')
        said.expect('dlopen')


def test_deleted_and_replaced(tmp):
    for how in ('deleted', 'replaced'):
        path = os.path.join(tmp, how)
        shutil.copy(program('pie'), path)
        with where(path) as process:
            said = Where(process)
            if how == 'deleted':
                os.unlink(path)
            else:
                shutil.copy('/bin/true', path + '.new')
                os.rename(path + '.new', path)
            said.expect(how)
            module = sbsym(process.pid, said.functions['main']).stdout.rsplit(' ', 1)[1].strip()
            check(module == f'[{how}]', f'the module of a {how} file is {module}')


def test_memfd():
    fd = os.memfd_create('in_memory', 0)
    with open(program('static'), 'rb') as source:
        os.write(fd, source.read())
    with where(f'/proc/self/fd/{fd}', pass_fds=[fd]) as process:
        Where(process).expect('memfd')
    os.close(fd)


def test_mount_namespace(tmp):
    """The path of the program leads to another file for everybody else."""
    path = os.path.join(tmp, 'mount')
    os.mkdir(path)
    shutil.copy('/bin/true', os.path.join(path, 'where'))
    script = f'mount -t tmpfs none {path} && cp {program("pie")} {path}/where && exec {path}/where'
    with where('unshare', '-m', 'sh', '-c', script) as process:
        Where(process).expect('mount namespace')


def test_chroot(tmp):
    root = os.path.join(tmp, 'root')
    os.mkdir(root)
    shutil.copy(program('static'), os.path.join(root, 'where'))
    with where('chroot', root, '/where') as process:
        Where(process).expect('chroot')


def test_threads():
    with where(program('pie'), 'threads') as process:
        said = Where(process)
        wait_for(lambda: 'Z' in open(f'/proc/{process.pid}/stat').read().rsplit(')', 1)[1],
                 'the main thread has ended')
        said.expect('main thread has ended')


def test_moved_text():
    with where(program('pie'), 'move') as process:
        said = Where(process)
        maps = open(f'/proc/{process.pid}/maps').read()
        line = [m for m in maps.splitlines() if m.startswith(said.functions['moved'])]
        check(len(line) == 1 and line[0].split()[4] == '0', 'the text lies in anonymous memory')
        said.expect('moved text')


def vdso_functions(pid):
    """Names and addresses of the vDSO's functions, by nm on its image."""
    for line in open(f'/proc/{pid}/maps'):
        if line.rstrip().endswith('[vdso]'):
            start, end = (int(x, 16) for x in line.split()[0].split('-'))
            with open(f'/proc/{pid}/mem', 'rb') as mem, tempfile.NamedTemporaryFile() as image:
                mem.seek(start)
                image.write(mem.read(end - start))
                image.flush()
                out = subprocess.run(['nm', '-D', image.name], stdout=subprocess.PIPE, text=True,
                                     check=True).stdout
            for symbol in out.splitlines():
                addr, kind, name = symbol.split()
                if kind in 'TtWw':
                    yield start + int(addr, 16), name.split('@')[0]
            return
    print('no vDSO here')


def test_vdso():
    with where(program('pie')) as process:
        Where(process)
        known = {}
        for addr, name in vdso_functions(process.pid):
            known.setdefault(addr, set()).add(name)
        got = names(process.pid, [f'{a:x}' for a in known])
        wrong = [(k, g) for k, g in zip(known.values(), got) if g.split('+')[0] not in k]
        check(len(got) == len(known) and not wrong, f'{len(known)} places of the vDSO {wrong or ""}')
        got = names(process.pid, ['ffffffffff600000', 'ffffffffff600403', 'ffffffffff600800'])
        check(got == ['gettimeofday+0x0', 'time+0x3', 'getcpu+0x0'], f'vsyscall {got}')


def test_perf_map():
    """In a PID namespace of its own, once with the /tmp of all, once with its own."""
    for how, script in (('shared', ''), ('own', 'mount -t tmpfs none /tmp && ')):
        copy = f'/usr/local/lib/where-{os.getpid()}'
        shutil.copy(program('pie'), copy)
        try:
            with where('unshare', '-mpf', '--kill-child', 'sh', '-c',
                       f'{script}exec {copy} jit') as process:
                child = wait_for(lambda: open(
                    f'/proc/{process.pid}/task/{process.pid}/children').read().split(), 'the child')
                said = Where(process, int(child[0]))
                check('jit_two' in said.functions, 'code was generated')
                said.expect(f'perf map, {how} /tmp')
                jit = sbsym(child[0], said.functions['jit_two']).stdout
                check(jit == 'jit_two+0x0 [jit]\n', f'a JIT frame: {jit!r}')
        finally:
            os.unlink(copy)
    if os.path.exists('/tmp/perf-1.map'):
        os.unlink('/tmp/perf-1.map')


def test_perf_map_of_another():
    """Any user can write such a file; only the process's own user, and root, are believed."""
    with where(program('pie'), 'jit') as process:
        said = Where(process)
        path = f'/tmp/perf-{process.pid}.map'
        nobody = pwd.getpwnam('nobody')
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
        got = sbsym(process.pid, said.functions['jit_two']).stdout
        check(got == '[anon] (anon)\n', f'perf map of another user: {got!r}')
        os.unlink(path)


def test_reasons():
    with where(program('pie')) as process:
        said = Where(process)
        got = sbsym(process.pid, '1').stdout
        check(got == '[unknown] (unmapped)\n', f'unmapped: {got!r}')
        pid = process.pid
    check(sbsym(pid, '1').returncode == 5, 'a process that is gone: 5')
    check(sbsym('/nonexistent', '1').returncode == 5, 'a file that is not there: 5')
    check(sbsym('/etc/passwd', '1').returncode == 1, 'not an ELF file: 1')
    check(sbsym('/dev/null', '1').returncode == 1, 'a device: 1')
    check(sbsym(SBSYM, 'xyz').returncode == 2, 'not an address: 2')
    check(sbsym(SBSYM, '--style=x', '1').returncode == 2, 'options stand first: 2')
    check(sbsym('--style=x', SBSYM, '1').returncode == 2, 'an unknown style: 2')
    check(sbsym().returncode == 2, 'no target: 2')
    got = sbsym(SBSYM, input='0x0\nxyz\n')
    check(got.returncode == 1 and 'line 2' in got.stderr, 'a bad line is told by its number')
    check(got.stdout.endswith('(no-match)\n'), 'what came before it is answered')
    for args, text in ((('0',), ''), ((), '0\n')):
        with open('/dev/full', 'w') as full:
            got = subprocess.run([SBSYM, SBSYM, *args], input=text, stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=240)
        check(got.returncode == 1 and 'cannot write the result to standard output: No space left' in got.stderr,
              f'the addresses are not to blame for a full disk: {got.stderr!r}')


def test_one_by_one():
    """Who writes one address and waits gets the answer: as other tools' children are used."""
    symbols = subprocess.run(['nm', program('no_pie')], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    addr = {s.split()[2]: s.split()[0] for s in symbols.splitlines() if len(s.split()) == 3}
    with subprocess.Popen([SBSYM, program('no_pie')], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        for name in ('main', 'local_function', 'main'):
            process.stdin.write(addr[name] + '\n')
            process.stdin.flush()
            got = process.stdout.readline()
            check(got.startswith(name + '+0x0 '), f'asked one by one: {got.strip()}')
        process.stdin.close()


def test_missing_dwo(tmp):
    source = f'{tmp}/split.c'
    with open(source, 'w') as file:
        file.write('int main(void)\n{\n\treturn 0;\n}\n')
    for args in (['-g', '-gsplit-dwarf', '-c', source, '-o', f'{tmp}/split.o'], [f'{tmp}/split.o', '-o', f'{tmp}/split']):
        subprocess.run(['gcc', '-O0', *args], check=True, cwd=tmp)
    symbols = subprocess.run(['nm', f'{tmp}/split'], stdout=subprocess.PIPE, text=True, check=True).stdout
    addr = next(line.split()[0] for line in symbols.splitlines() if line.endswith(' main'))
    whole = sbsym(f'{tmp}/split', addr)
    os.remove(f'{tmp}/split.dwo')
    less = sbsym(f'{tmp}/split', addr)
    check(not whole.stderr and less.stderr.startswith('sbsym: warning: 1 .dwo files are missing') and
          'main' in less.stdout, f'a .dwo file that is missing is counted {whole.stderr!r} {less.stderr!r}')


def kernel_symbols():
    """Names by address, and where each ends: the next address of anything."""
    by_addr = {}
    for line in open('/proc/kallsyms'):
        addr, kind, name, *module = line.split()
        # BPF programs come and go; they only bound what is before them.
        by_addr.setdefault(int(addr, 16), []).append(('-' if module == ['[bpf]'] else kind, name))
    addrs = sorted(by_addr)
    drop = ('__pfx_', '__cfi_')
    for addr, following in zip(addrs, addrs[1:]):
        names_ = {n for k, n in by_addr[addr] if k in 'tTwW' and not n.startswith(drop)}
        if names_ and following - addr < 1 << 18 and not names_ & {'_etext', '_einittext'}:
            yield addr, following, names_


def test_kernel():
    known = list(kernel_symbols())
    if not known:
        check(sbsym('kernel', '1').stdout == '[kernel+0x1] (restricted)\n', 'hidden addresses')
        return
    sample = random.Random(1).sample(known, min(3000, len(known)))
    addrs = [start + (end - start) // 2 for start, end, _ in sample]
    got = names('kernel', [f'{a:x}' for a in addrs], '--no-demangle')
    wrong = []
    for (start, _, names_), addr, name in zip(sample, addrs, got):
        raw, offset = name.rsplit('+', 1)
        if raw not in names_ and not any(n.startswith(raw + '.') for n in names_) or \
                int(offset, 16) != addr - start:
            wrong.append((hex(addr), names_, name))
    check(len(got) == len(sample) and not wrong, f'{len(sample)} kernel addresses {wrong[:3]}')
    with tempfile.NamedTemporaryFile('w') as hidden:
        hidden.write('0000000000000000 T _stext\n0000000000000000 t f\n')
        hidden.flush()
        got = sbsym(f'--kallsyms={hidden.name}', 'kernel', 'ffffffff81000000').stdout
    check(got == '[kernel+0xffffffff81000000] (restricted)\n', f'hidden addresses: {got!r}')


def main():
    if os.geteuid() != 0:
        skip('namespaces and other users need root')
    with tempfile.TemporaryDirectory(dir='/var/tmp') as tmp:
        test_layouts()
        test_dlopen()
        test_deleted_and_replaced(tmp)
        test_memfd()
        test_mount_namespace(tmp)
        test_chroot(tmp)
        test_threads()
        test_moved_text()
        test_vdso()
        test_missing_dwo(tmp)
        test_perf_map()
        test_perf_map_of_another()
        test_reasons()
        test_one_by_one()
        test_kernel()
    done()


if __name__ == '__main__':
    main()
