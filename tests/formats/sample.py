# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Profiles for tests of formats, and what is true of them: computed here, from the same stacks."""
import collections
import os
import random
import subprocess
import sys

# enum sb_frame_kind
ROOT, USER, INLINED, JIT, KERNEL, KERNEL_INLINED, DELIMITER, MARK, FILE, INTERP, WAKER = range(11)

# enum sb_attr_kind
COMM, PROCESS, THREAD, CPU, CGROUP, CONTAINER, LABEL, TAG = range(1, 9)

Frame = collections.namedtuple('Frame', 'kind name module file line attr', defaults=('', '', 0, None))
Attr = collections.namedtuple('Attr', 'kind key text pid tid cpu', defaults=('', '', 0, 0, 0))


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


class Profile:
    """Stacks root first and their weights."""

    def __init__(self, facts, stacks, samples=lambda weight: 0):
        self.facts, self.stacks, self.samples = facts, stacks, samples

    @property
    def total(self):
        return sum(weight for _, weight in self.stacks)

    def folded(self):
        """Weight by names, as a tuple from the root to the leaf."""
        sums = collections.Counter()
        for stack, weight in self.stacks:
            sums[tuple(frame.name for frame in stack)] += weight
        return sums

    def functions(self, key=lambda frame: frame.name):
        """{function: (self, total)}; recursion counts once."""
        own, total = collections.Counter(), collections.Counter()
        for stack, weight in self.stacks:
            for function in {key(frame) for frame in stack}:
                total[function] += weight
            if stack:
                own[key(stack[-1])] += weight
        return {function: (own[function], total[function]) for function in total}

    def text(self):
        def encoded(text):
            return text.encode('utf-8', 'surrogateescape').hex()
        for key, value in self.facts.items():
            yield f'meta {key} {encoded(value)}\n'
        for stack, weight in self.stacks:
            frames = (f'@{f.attr.kind}:{encoded(f.attr.key)}:{encoded(f.attr.text)}:'
                      f'{f.attr.pid}:{f.attr.tid}:{f.attr.cpu}' if f.attr else
                      f'{f.kind}:{encoded(f.name)}:{encoded(f.module)}:{encoded(f.file)}:{f.line}' for f in stack)
            yield ' '.join(['stack', f'{weight}/{self.samples(weight)}', *frames]) + '\n'

    def write(self, program, directory, *formats, limit=0, title=None):
        """Return: {format: path}."""
        paths = {name: os.path.join(directory, f'profile.{name}') for name in formats}
        env = {**os.environ, **({'TITLE': title} if title else {})}
        subprocess.run([program, str(limit), *(f'{name}={path}' for name, path in paths.items())],
                       input=''.join(self.text()).encode(), check=True, env=env)
        return paths


def code(name, line=0, kind=USER, module='app'):
    return Frame(kind, name, module, f'/src/{module}/{name[:1]}.c', line)


def ordinary(kind='oncpu', unit='samples', **facts):
    """Recursion, direct and in a circle; inlined functions; one name in two modules; kernel; marks."""
    main, parse, evaluate = code('main', 3), code('parse', 10), code('eval', 20)
    inl, deep = code('step', 31, INLINED), code('store', 32, INLINED)
    read = Frame(KERNEL, 'read', '[kernel]', '', 0)
    app = Frame(ROOT, 'app-12/13', attr=Attr(THREAD, text='app', pid=12, tid=13))
    db = Frame(ROOT, 'my db-7/8', attr=Attr(THREAD, text='my db', pid=7, tid=8))
    module = Frame(INTERP, '<module>', 'python', '/srv/a.py', 1)
    stacks = [
        ([app, main, parse, evaluate], 250),
        ([app, main, parse, parse._replace(line=11), parse._replace(line=12)], 130),
        ([app, main, parse, evaluate, parse, evaluate._replace(line=21)], 90),
        ([app, main, evaluate, parse, code('read', 5, module='libio.so')], 70),
        ([app, main, evaluate, read, Frame(KERNEL_INLINED, 'copy', '[kernel]')], 117),
        ([app, main, inl, deep], 41), ([app, main, inl, deep, evaluate], 17),
        ([app, Frame(MARK, '[truncated: no frame pointer]'), parse], 33),
        ([db, module, Frame(INTERP, 'work', 'python', '/srv/a.py', 7)], 160),
        ([db, module, module, Frame(USER, '[libx.so+0x12]', 'libx.so')], 11),
        ([db, Frame(JIT, 'Foo::bar(int, std::map<int, char> const&)'), Frame(FILE, '/etc/pass wd')], 5),
        ([db], 2),
    ]
    facts = {'kind': kind, 'unit': unit, 'by': 'thread', 'dur_us': '5000000', 'start_us': '1700000000000000',
             'n': '926', 'lost': '7', **facts}
    return Profile(facts, stacks)


TRACE, SPAN = '4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'


def traced():
    """Labels of OpenTelemetry's thread context, of another kind, and one that is no ID."""
    def label(key, text):
        return Frame(ROOT, f'{key}={text}', attr=Attr(LABEL, key=key, text=text))
    main = code('main')
    trace = label('trace_id', TRACE)
    return Profile({'kind': 'offcpu', 'unit': 'ns'}, [
        ([trace, label('span_id', SPAN), main], 5), ([trace, label('request', 'r1'), main], 7), ([main], 11),
        ([label('trace_id', 'none'), main], 13),
    ])


HOSTILE = [
    '</script><script>hit=1</script>', ']]>', '<![CDATA[', '"><img src=x onerror=hit=1>', "' onmouseover='hit=1",
    'a\nfn=(1) b\n1 99999', 'calls=1 1', '(1)', '(2) x', ' leading', 'trailing ', 'tab\there', '\\', '"', '\\"', '\u4f60\u597d',
    '\u2028\u2029', 'a\u202eb\u2066c\x9bd', '\U0001f525', 'bad \udcff\udc80 bytes', '\udced\udca0\udc80', '\x01\x1f\x7f', '__proto__',
    'constructor', '<!--', '-->', '${hit=1}', '&lt;&#0;', 'x' * 5000, 'toString', '0', '{"a":[', '%s%n', ';;', '-',
]


def hostile():
    """Names that mean something to whoever reads them carelessly."""
    rnd = random.Random(3)
    stacks = [([Frame(ROOT, 'root')] + [Frame(rnd.choice((USER, INLINED, KERNEL, MARK, FILE)), name, name, name, i)],
               100 + i) for i, name in enumerate(HOSTILE)]
    stacks.append(([Frame(USER, name) for name in HOSTILE], 50))
    facts = {'kind': HOSTILE[5], 'unit': HOSTILE[5], 'title': HOSTILE[3], 'by': HOSTILE[0], 'hz': '-1'}
    return Profile(facts, stacks)


def clean(name):
    """What becomes of a name: bytes that are no text are replaced, and what controls a terminal, by the byte."""
    data, out = name.encode('utf-8', 'surrogateescape'), []
    for char in data.decode('utf-8', 'surrogateescape'):
        value = ord(char)
        bad = value < 0x20 or 0x7f <= value < 0xa0 or 0xd800 <= value < 0xe000 or value & 0xfffe == 0xfffe
        bad |= 0x2028 <= value <= 0x202e or 0x2066 <= value <= 0x2069
        nr_bytes = len(char.encode('utf-8', 'surrogateescape'))
        out.append(' ' if char == '\t' else '\ufffd' * nr_bytes if bad else char)
    return ''.join(out)
