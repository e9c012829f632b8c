#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rows of cfi_rows against those of readelf, for programs and libraries of this machine, or arm64.

cfi_oracle.py CFI_ROWS [--arm64] [--few] [FILE...]     SOURCE.go: the program that is made of it

Of each row readelf has, the rule in force there has to be the same: CFA, rbp (x29), return address. And
there is no row but where readelf has one, where a function ends, or a byte before a trampoline.
"""
import bisect
import collections
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import elf_tools

CFI_ROWS = sys.argv[1]
IS_ARM64 = '--arm64' in sys.argv
FILES = [arg for arg in sys.argv[2:] if not arg.startswith('--')]
RETURN_ADDRESS = 'ra=30' if IS_ARM64 else 'ra=16'
EM = b'\xb7\x00' if IS_ARM64 else b'\x3e\x00'
NR_FILES = 10 if '--few' in sys.argv else 50
# What matters most, then the biggest, then every so many: the same on each run.
FIRST = ['libc.so.6', 'ld-linux-x86-64.so.2', 'libstdc++.so.6', 'libgcc_s.so.1', 'libcrypto.so.3',
         'libm.so.6', 'libgcrypt.so.20', 'libpython3.11.so.1.0', 'libz.so.1', 'libpthread.so.0']
PROGRAMS = ['python3', 'perl', 'bash', 'node', 'git', 'cmake', 'busybox', 'gdb', 'ssh', 'gpg']
NR_BIGGEST = 2
ENTRY_BYTES, ENTRY_FAR = 32, 16 << 20
PADDING = 16
# Where threads are made, the caller's rule up to where a new one begins, and what is special there.
NEW_THREAD = ' stop-if-x0=0' if IS_ARM64 else ' stop-if-rax=0'
CLONE_BYTES = 64
MAKES_THREADS = 'libc.so.6'
LEA_BYTES = 4
GO_SPECIAL_MAX = 24
# On arm64, a signal handler pushes 16 bytes before it lets a goroutine call one of three functions of the runtime.
PUSHED = ('sp+', 16, 3)

Fde = collections.namedtuple('Fde', 'lo hi rows offset is_odd')
REGISTER = re.compile(r'^r\d+ \((\w+)\)$')
CELL = re.compile(r'\S+(?: \(\w+\))?')
BREG = re.compile(r'^DW_OP_breg([67]) \(r[sb]p\): (-?\d+)$')


def is_elf(path):
    try:
        with open(path, 'rb') as file:
            head = file.read(20)
    except OSError:
        return False
    return head[:5] == b'\x7fELF\x02' and head[18:20] == EM and head[16] in (2, 3)


def choose_arm64():
    """Files of a system for arm64, of the compiler for it, or of packages that other tests have unpacked."""
    cache = os.environ.get('STACKBPF_BESIDE') or os.path.expanduser('~/.cache/stackbpf/beside')
    triplet = 'aarch64-linux-gnu'
    places = [f'/usr/lib/{triplet}', f'/usr/{triplet}/lib']
    places += [f'{cache}/*:arm64/roots/*/usr/{name}' for name in (f'lib/{triplet}', 'bin', 'sbin')]
    found = {}
    for path in sorted(path for place in places for path in glob.glob(f'{place}/*')):
        if os.path.isfile(path) and not os.path.islink(path) and is_elf(path):
            found.setdefault(os.path.basename(path), path)
    return sorted(found.values(), key=lambda path: (-os.path.getsize(path), path))


def choose():
    """Distinct files, in order of importance."""
    lib = '/usr/lib/x86_64-linux-gnu'
    named = [f'{lib}/{name}' for name in FIRST] + [f'/usr/bin/{name}' for name in PROGRAMS]
    rest = sorted(path for pattern in (f'{lib}/*.so*', '/usr/bin/*', '/usr/sbin/*')
                  for path in glob.glob(pattern))
    rest = sorted({os.path.realpath(path) for path in rest if os.path.isfile(path)})
    rest = [path for path in rest if is_elf(path)]
    biggest = sorted(rest, key=lambda path: (-os.path.getsize(path), path))[:NR_BIGGEST]
    chosen = []
    step = max(1, len(rest) // NR_FILES)
    for path in named + biggest + rest[::step] + rest:
        path = os.path.realpath(path)
        if path not in chosen and is_elf(path):
            chosen.append(path)
    return chosen


def readelf(path, *options):
    with subprocess.Popen(['readelf', '-W', *options, path], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        yield from process.stdout


def text_ranges(path):
    """Executable segments: (start, end)."""
    rows = (line.split() for line in readelf(path, '-l'))
    return [(int(r[2], 16), int(r[2], 16) + int(r[5], 16)) for r in rows
            if r and r[0] == 'LOAD' and 'E' in r[6:-1]]


def fp_word(cell):
    """What readelf has for rbp, as cfi_rows says it; None: not in these terms."""
    if cell in ('u', 's'):
        return 'rbp=same'
    if cell.startswith('c') and -0x8000 <= int(cell[1:]) < 0x8000:
        return f'rbp=*(cfa{cell[1:]})'
    return None


def bx_word(cell):
    """The same for rbx, which is only worth a word where it was saved."""
    if cell in ('u', 's'):
        return ''
    if cell.startswith('c-') and int(cell[2:]) % 8 == 0 and 16 <= int(cell[2:]) <= 504:
        return f' rbx=*(cfa{cell[1:]})'
    return ' rbx=lost'


def rule_of_arm64(cells, is_root):
    """The same for arm64. Of a register that nothing was said of yet, readelf says what it says of one that is
    undefined; that is a root's return address only."""
    cfa, fp, ra, sp = cells['CFA'], cells.get('x29', 'u'), cells.get('ra', 'u'), cells.get('sp', 'u')
    if ra == 'u' and is_root:
        return 'stop'
    found = re.match(r'(sp|x\d+)([+-]\d+)$', cfa)
    if not found or sp not in ('u', 'v+0'):
        return 'unsupported'
    # _dl_runtime_resolve() forgets what the PLT has pushed.
    if ra == 'c+8' and fp == 'u' and found[1] == 'sp':
        return f'sp{int(found[2]) + 16:+d} x29=same x30=*(cfa-8)'
    base, off, words = 'cfa', 0, []
    # What is far from the CFA is said from where it is not.
    if fp.startswith('c') and int(fp[1:]) < -(1 << 18) or \
            fp in ('u', 's') and ra.startswith('c') and int(ra[1:]) < -8 * 62:
        base, off = found[1], int(found[2])
    for name, cell in (('x29', fp), ('x30', ra)):
        if cell in ('u', 's'):
            words.append(f'{name}=same')
        elif cell.startswith('c') and int(cell[1:]) % 8 == 0:
            words.append(f'{name}=*({base}{off + int(cell[1:]):+d})')
        else:
            return 'unsupported'
    return f"{cfa} {' '.join(words)}"


def roots_of(path, section):
    """{offset of FDE: address from which on it says that the return address is undefined}"""
    roots, fde, loc = {}, None, 0
    for line in section_lines(path, section, 'frames'):
        words = line.split()
        if ' FDE ' in line:
            fde, loc = words[0], int(words[-1].split('=')[1].split('..')[0], 16)
        elif 'advance_loc' in line:
            loc = int(words[-1], 16)
        elif 'DW_CFA_undefined: r30 ' in line:
            roots[fde] = loc
    return roots


def rule_of(cells, is_root=False):
    """{column: cell} -> rule; 'exp' where only the instructions tell."""
    if IS_ARM64:
        return rule_of_arm64(cells, is_root)
    cfa, fp, ra, sp = cells['CFA'], cells.get('rbp', 'u'), cells.get('ra', 'u'), cells.get('rsp', 'u')
    if ra == 'u':
        return 'stop'
    if 'exp' in (cfa, fp):
        return 'exp'
    saved = fp_word(fp)
    if saved is None or sp not in ('u', 'v+0'):
        return 'unsupported'
    where = REGISTER.match(ra)
    if where and cfa.startswith('rsp') and saved == 'rbp=same':
        return f'{cfa} ra={where[1]} {saved}{bx_word(cells.get("rbx", "u"))}'
    return f'{cfa} {saved}{bx_word(cells.get("rbx", "u"))}' if ra == 'c-8' else 'unsupported'


@functools.lru_cache(maxsize=None)
def rule_of_row(columns, row, is_root):
    """The rule of what stands in a row behind its address: few texts, in millions of rows."""
    return rule_of(dict(zip(columns, CELL.findall(row))), is_root)


def section_lines(path, section, how):
    """What readelf prints of one section."""
    inside = False
    for line in readelf(path, f'--debug-dump={how}'):
        if line.startswith('Contents of the '):
            inside = f' {section} ' in line
        elif inside:
            yield line


def parse_interp(path, section):
    """FDEs with their rows {address: rule}, and the offsets of those that need instructions."""
    fdes, need, signal_cies, odd_cies, cie_rules = [], set(), set(), set(), {}
    fde, cie, columns, is_signal = None, None, (), False
    roots = roots_of(path, section) if IS_ARM64 else {}
    for line in section_lines(path, section, 'frames-interp'):
        words = line.split()
        if not words:
            continue
        if ' CIE "' in line:
            fde, cie = None, words[0]
            if 'S' in line.split('"')[1]:
                signal_cies.add(cie)
            if words[-1] != RETURN_ADDRESS:
                odd_cies.add(cie)
        elif ' FDE ' in line:
            of, span = words[4].split('=')[1], words[-1].split('=')[1].split('..')
            is_signal = of in signal_cies
            lo, hi = int(span[0], 16), int(span[1], 16)
            # Without instructions it prints no row: the one of the CIE holds.
            fde = Fde(lo, hi, {lo: 'signal' if is_signal else cie_rules[of]}, words[0], of in odd_cies)
            fdes.append(fde)
        elif words[0] == 'LOC':
            columns = tuple(words[1:])
        elif len(words[0]) == 16 and not line.startswith(' '):
            addr = int(words[0], 16)
            rule = rule_of_row(columns, line[len(words[0]):], bool(fde) and addr >= roots.get(fde.offset, 1 << 64))
            if not fde:
                cie_rules[cie] = rule
                continue
            rule = 'signal' if is_signal else rule
            if rule == 'exp':
                need.add(fde.offset)
            fde.rows[addr] = rule
    return fdes, need


def cfa_of(text):
    """A DWARF expression, as readelf prints it, as cfi_rows says it."""
    ops = text.split('; ')
    plt = re.match(r'^DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; '
                   r'DW_OP_lit(10|11); DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus$', text)
    if plt:
        return f'rsp+8+((rip&15)>={plt[1]})*8'
    base, behind, index = BREG.match(ops[0]), 0, ''
    if ops[1:5] == ['DW_OP_breg9 (r9): 0', 'DW_OP_lit8', 'DW_OP_mul', 'DW_OP_plus']:
        index, ops = '+r9*8', ops[:1] + ops[5:]
    if not base or ops[1:2] != ['DW_OP_deref'] or len(ops) > 3:
        return None
    if len(ops) == 3:
        if not ops[2].startswith('DW_OP_plus_uconst: '):
            return None
        behind = int(ops[2].split(': ')[1])
    return f'*({"rsp" if base[1] == "7" else "rbp"}{int(base[2]):+d}{index})+{behind}'


class Machine:
    """Where CFA and rbp are, of those FDEs that frames-interp does not tell about."""

    def __init__(self):
        self.reg, self.off, self.expr, self.fp, self.bx, self.saved = None, None, None, 'rbp=same', '', []

    def step(self, line):
        line = line.strip()
        name, _, rest = line.partition(':')
        if line.startswith('DW_CFA_def_cfa_expression'):
            self.expr = cfa_of(line[line.index('(') + 1:-1]) or 'none'
        elif name in ('DW_CFA_def_cfa', 'DW_CFA_def_cfa_sf'):
            match = re.match(r' r\d+ \((\w+)\) ofs (-?\d+)', rest)
            self.reg, self.off, self.expr = match[1], int(match[2]), None
        elif name == 'DW_CFA_def_cfa_register':
            self.reg, self.expr = re.match(r' r\d+ \((\w+)\)', rest)[1], None
        elif name.startswith('DW_CFA_def_cfa_offset'):
            self.off = int(rest)
        elif name == 'DW_CFA_remember_state':
            self.saved.append((self.reg, self.off, self.expr, self.fp, self.bx))
        elif name == 'DW_CFA_restore_state':
            self.reg, self.off, self.expr, self.fp, self.bx = self.saved.pop()
        elif ' r6 (rbp)' in line:
            self.set_fp(line)
        elif ' r3 (rbx)' in line:
            at_cfa = re.search(r' at cfa([+-]\d+)$', line)
            is_back = name.startswith(('DW_CFA_restore', 'DW_CFA_same_value'))
            self.bx = bx_word('u' if is_back else f'c{at_cfa[1]}' if at_cfa else 'exp')

    def set_fp(self, line):
        at_cfa = re.search(r' at cfa([+-]\d+)$', line)
        expr = re.search(r' \((DW_OP_[^)]*\)[^)]*)\)$', line)
        base = expr and BREG.match(expr[1])
        if line.startswith('DW_CFA_restore') or line.startswith('DW_CFA_same_value'):
            self.fp = 'rbp=same'
        elif at_cfa:
            self.fp = f'rbp=*(cfa{at_cfa[1]})'
        elif line.startswith('DW_CFA_expression') and base and base[1] == '6':
            self.fp = f'rbp=*(rbp{int(base[2]):+d})'
        elif line.startswith('DW_CFA_undefined'):
            self.fp = 'rbp=lost'
        else:
            self.fp = None

    def rule(self):
        cfa = self.expr or f'{self.reg}{self.off:+d}'
        return 'unsupported' if cfa == 'none' or not self.fp else f'{cfa} {self.fp}{self.bx}'


def parse_instructions(path, section, need):
    """{offset of FDE: {address: rule}}, by running the text of the instructions."""
    found, cies, machine, rows, loc = {}, {}, None, None, 0
    for line in section_lines(path, section, 'frames'):
        words = line.split()
        if ' CIE' in line and not line.startswith(' '):
            cies[words[0]] = machine = Machine()
            rows = None
        elif ' FDE ' in line:
            rows = machine = None
            if words[0] in need:
                first, machine = cies[words[4].split('=')[1]], Machine()
                machine.reg, machine.off, machine.fp, machine.bx = first.reg, first.off, first.fp, first.bx
                loc = int(words[-1].split('=')[1].split('..')[0], 16)
                rows = found[words[0]] = {loc: machine.rule()}
        elif machine and line.startswith('  DW_CFA_'):
            if rows is not None and ('advance_loc' in words[0] or 'set_loc' in words[0]):
                loc = int(words[-1], 16)
            else:
                machine.step(line)
            if rows is not None:
                rows[loc] = machine.rule()
    return found


def in_force(starts, rules, addr):
    at = bisect.bisect_right(starts, addr) - 1
    return rules[at] if at >= 0 else 'frame-pointer'


def mended(rows, end):
    """Rows of one FDE; those of the epilogue of a realigned stack say that rbp is back."""
    before, rows = '', sorted(rows.items())
    for (addr, rule), (after, _) in zip(rows, rows[1:] + [(end, None)]):
        cfa, _, saved = rule.partition(' ')
        saved, _, bx = saved.partition(' ')
        if saved == 'rbp=*(rbp+0)' and cfa == 'rsp+8':
            rule = f'{cfa} rbp=same {bx}'.rstrip()
        yield addr, rule
        # "lea -8(%r10), %rsp", which ends where the next row begins.
        if saved == 'rbp=*(rbp+0)' and before.startswith('*(rbp') and \
                not cfa.startswith(('*', 'rsp', 'rbp')) and addr < after - LEA_BYTES and after < end:
            yield after - LEA_BYTES, f'{cfa} rbp=same {bx}'.rstrip()
        before = cfa


def entry_of(path):
    for line in readelf(path, '-h'):
        if 'Entry point address' in line:
            return int(line.split()[-1], 16)
    return 0


def gap(start, end, entry):
    """Rows of code without CFI; where the kernel enters a program is a root."""
    rows = [(start, 'frame-pointer')] if start and end - start >= PADDING else []
    if start <= entry < end and entry and (entry - start if start else end - entry) <= ENTRY_FAR:
        rows.append((entry, 'stop'))
        if end - entry > ENTRY_BYTES:
            rows.append((entry + ENTRY_BYTES, 'frame-pointer'))
    return rows


def behind_clone(path, start, root):
    """Where new threads that begin at `root` come from: behind the last system call before a branch to there."""
    objdump = 'aarch64-linux-gnu-objdump' if IS_ARM64 else 'objdump'
    if not shutil.which(objdump):
        return None
    text = subprocess.run([objdump, '-d', f'--start-address={start:#x}', f'--stop-address={root:#x}', path],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    insns = re.findall(r'^ *([0-9a-f]+):\t[0-9a-f ]+\t(\S+) *([^</\n]*)', text, re.M)
    behind, found = None, None
    for (_, name, args), (after, _, _) in zip(insns, insns[1:] + [(f'{root:x}', '', '')]):
        if name in ('syscall', 'svc'):
            behind = int(after, 16)
        elif name in ('je', 'b.eq', 'cbz') and behind and int(args.split()[-1], 16) == root:
            found = behind
    return found


def expected_rows(path, section):
    """[(address, rule)], addresses where rows may be, and how many FDEs are left out: they overlap another, or
    have the return address elsewhere, as glibc's rawmemchr() for arm64."""
    fdes, need = parse_interp(path, section)
    exact = parse_instructions(path, section, need) if need else {}
    ranges, entry = text_ranges(path), entry_of(path)
    rows, allowed, start, end, nr_bad = [], set(), 0, 0, 0
    if not any(lo <= entry < hi for lo, hi in ranges):
        entry = 0
    for fde in sorted(fdes, key=lambda fde: fde.lo):
        if fde.lo == fde.hi or fde.lo == 0:
            continue
        if fde.is_odd or fde.lo < end or not any(lo <= fde.lo and fde.hi <= hi for lo, hi in ranges):
            nr_bad += 1
            continue
        rows += gap(end, fde.lo, entry)
        if fde.rows[fde.lo] == 'stop' and start and fde.lo - end < CLONE_BYTES:
            addr = behind_clone(path, start, fde.lo)
            if addr and fde.lo - addr < CLONE_BYTES and rows[-1][1].startswith(('rsp', 'sp')):
                rows.append((addr, rows[-1][1] + NEW_THREAD))
        told = exact.get(fde.offset, {})
        of_fde = {addr: told[addr] if rule == 'exp' else rule for addr, rule in fde.rows.items()}
        rows += ((addr, rule) for addr, rule in mended(of_fde, fde.hi) if addr < fde.hi)
        allowed.update((fde.lo - 1, end))
        start, end = fde.lo, fde.hi
    rows += gap(end, 1 << 64, entry)
    allowed.update(addr for addr, _ in rows)
    return rows, allowed, nr_bad


def ask(path):
    """Lines of cfi_rows; None: it says that there is no CFI."""
    done = subprocess.run([CFI_ROWS, path], text=True, capture_output=True, check=False)
    if done.returncode == 1 and 'no unwind tables' in done.stderr:
        return None
    if done.returncode:
        sys.exit(f'{path}: exit status {done.returncode}\n{done.stderr}')
    return done.stdout.splitlines()


def compare_go(path, ours):
    """Go's .debug_frame, which stripped programs have not, says where the CFA is. The functions of the runtime that are
    where something begins, or go on on another stack, are not said there."""
    fdes, _ = parse_interp(path, '.debug_frame')
    starts = [int(addr, 16) for addr, _ in ours]
    rules = [rule for _, rule in ours]
    nr, wrong, special, pushed = 0, [], set(), set()
    for fde in fdes:
        for addr, rule in fde.rows.items():
            if not fde.lo <= addr < fde.hi:
                continue
            have = in_force(starts, rules, addr)
            if have in ('stop', 'signal', 'frame-pointer', 'unsupported') or have.endswith((NEW_THREAD, ' other-stack')):
                special.add(fde.lo)
                continue
            # On arm64 the runtime calls its signal handler the top of a stack; the interrupted code is above it.
            if IS_ARM64 and rule == 'stop':
                special.add(fde.lo)
                continue
            nr += 1
            have_cfa, want_cfa = have.split()[0], rule.split()[0]
            if IS_ARM64 and PUSHED[0] == want_cfa[:3] == have_cfa[:3] and int(have_cfa[3:]) == int(want_cfa[3:]) + PUSHED[1]:
                pushed.add(fde.lo)
            elif have_cfa != want_cfa:
                wrong.append(f'{path} {addr:x}: {have}, readelf: {rule}')
    if IS_ARM64 and len(pushed) != PUSHED[2]:
        wrong.append(f'{path}: of {len(pushed)} functions the frame is said to lie above what a signal handler has pushed')
    if len(special) > GO_SPECIAL_MAX:
        wrong.append(f'{path}: {len(special)} functions are special')
    return nr, wrong


def compare(path):
    """How many rows were compared, and what differs."""
    out = ask(path)
    if out is None:
        nr = len(parse_interp(path, '.eh_frame')[0])
        return 0, [f'{path}: nothing, readelf: {nr} functions'] if nr else []
    if any('.gopclntab' in line for line in readelf(path, '-SW')):
        return compare_go(path, [line.split(' ', 1) for line in out if not line.startswith('#')])
    section = '.debug_frame' if 'source=.debug_frame' in out[-1] else '.eh_frame'
    rows, allowed, nr_bad = expected_rows(path, section)
    ours = [line.split(' ', 1) for line in out if not line.startswith('#')]
    starts = [int(addr, 16) for addr, _ in ours]
    rules = [rule for _, rule in ours]
    wrong = []
    # Of rows at one address, the last one counts.
    for addr, rule in dict(rows).items():
        if in_force(starts, rules, addr) != rule:
            wrong.append(f'{path} {addr:x}: {in_force(starts, rules, addr)}, readelf: {rule}')
    wrong += [f'{path} {addr:x}: a row that readelf does not have' for addr in starts
              if addr not in allowed]
    if os.path.basename(path) == MAKES_THREADS and not any(NEW_THREAD in rule for rule in rules):
        wrong.append(f'{path}: no threads are made there')
    told_bad = int(re.search(r' bad=(\d+) ', out[-1])[1])
    if told_bad != nr_bad:
        wrong.append(f'{path}: {told_bad} bad, readelf has {nr_bad} to be left out')
    return len(rows), wrong


def built(path, work):
    if not path.endswith('.go'):
        return path
    elf_tools.need('go')
    subprocess.run(['go', 'build', '-ldflags=-compressdwarf=false', '-o', f'{work}/program', path], check=True,
                   env={'PATH': os.environ['PATH'], 'HOME': work, 'GOCACHE': f'{work}/cache',
                        'GOARCH': 'arm64' if IS_ARM64 else 'amd64'})
    return f'{work}/program'


def main():
    elf_tools.need('readelf')
    if os.uname().machine != 'x86_64' and not IS_ARM64:
        elf_tools.skip('files of x86-64 only')
    with tempfile.TemporaryDirectory() as work:
        compare_all([built(path, work) for path in FILES] or (choose_arm64() if IS_ARM64 else choose()))


def compare_all(files):
    if not files:
        elf_tools.skip('no file of arm64 here (package libc6-arm64-cross)')
    total, nr_wrong, nr_files = 0, 0, 0
    for path in files:
        nr, wrong = compare(path)
        total += nr
        nr_files += nr > 0
        nr_wrong += len(wrong)
        print(f'{nr:9} rows, {len(wrong)} mismatches: {path}', flush=True)
        print('\n'.join(wrong[:5]), end='\n' if wrong else '')
        if nr_files == NR_FILES and not FILES:
            break
    print(f'{nr_files} files, {total} rows compared, {nr_wrong} mismatches')
    if nr_wrong or not total:
        sys.exit(1)


main()
