#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fuzz for long, keep what was found, and say what the corpora cover.

    long.py [--minutes N] [--jobs N] [FUZZER...]     fuzz each (or these), then merge what was found
    long.py --coverage [--update]                    only say what the corpora in the tree cover

Inputs that add coverage go into tests/fuzz/corpus/FUZZER, minimized; those that fail stay in
build-fuzz/failed. The table shows, for each parser, how much of its lines the corpora of its fuzzers
run through; --update writes it into docs/testing.md.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = TOP / 'tests/fuzz'
CORPUS = HERE / 'corpus'
# What is beyond is left out, the largest inputs first, and that is said.
CORPUS_BYTES_MAX = 200 << 10
BEGIN = '<!-- written by tests/fuzz/long.py --coverage --update -->'
END = '<!-- end -->'

# Parser, its fuzzers, its files.
PARSERS = [
    ('ELF: headers, sections, notes, symbols, PLT', 'elf attach',
     'symbolizer/elf/elf_file.c symbolizer/symbols/symtab.c symbolizer/symbols/symtab_flatten.c symbolizer/symbols/symtab_read.c symbolizer/symbols/plt.c'),
    ('ELF: debug links, build IDs, alternate files', 'elf',
     'symbolizer/elf/debugfile.c'),
    ('mini debug info', 'elf', 'symbolizer/elf/inflate.c'),
    ('names (mangled)', 'demangle', 'symbolizer/symbols/demangle.c'),
    ('call frame information', 'cfi',
     'symbolizer/unwind/cfi.c symbolizer/unwind/cfi_exec.c symbolizer/unwind/cfi_go.c symbolizer/elf/gopcln.c symbolizer/unwind/cfi_machine.c symbolizer/unwind/cfi_read.c symbolizer/unwind/cfi_section.c'),
    ('unwind tables of another process', 'cfi_saved',
     'symbolizer/unwind/cfi_save.c'),
    ('DWARF: units, abbreviations, inlined functions', 'dwarf',
     'symbolizer/dwarf/dwarf.c symbolizer/dwarf/dwarf_abbrev.c symbolizer/dwarf/dwarf_die.c symbolizer/dwarf/dwarf_walk.c '
     'symbolizer/dwarf/dwarf_names.c symbolizer/dwarf/dwarf_map.c symbolizer/dwarf/dwarf_split.c'),
    ('DWARF: lines', 'dwarf', 'symbolizer/dwarf/dwarf_lines.c'),
    ('DWARF: sections, compressed ones', 'dwarf', 'symbolizer/dwarf/dwarf_image.c'),
    ('stacks walked in user space', 'walk',
     'symbolizer/unwind/walk.c symbolizer/unwind/walk_table.c symbolizer/symbols/raw_stacks.c'),
    ('kallsyms, modules', 'kallsyms', 'symbolizer/symbols/kallsyms.c'),
    ('lines of `/proc/PID/maps`, mappings that a reader names; `status`, `stat`', 'maps_line proc_pid reader_code', 'symbolizer/process/procfs.c user/base/status.c'),
    ('names of cgroups', 'cgroup', 'user/base/cgroup.c'),
    ("dpkg's lists of files", 'debian', 'user/cli/debian.c'),
    ('perf maps', 'perfmap', 'symbolizer/symbols/perfmap.c'),
    ('side-band records', 'sideband', 'user/capture/sideband.c'),
    ('folded text', 'folded', 'user/flamegraph/read_folded.c user/flamegraph/metadata.c'),
    ('comparisons', 'diff', 'user/flamegraph/read_folded.c user/flamegraph/diff.c'),
    ('`.bt`', 'bt', 'user/flamegraph/read_bt.c'),
    ('perf script', 'perfscript', 'user/flamegraph/read_perf.c'),
    ('options of flamegraph, palettes, attributes', 'fg_opts',
     'user/flamegraph/opts.c user/flamegraph/attrs.c'),
    ('pictures with stacks in them', 'extract', 'user/flamegraph/embed.c'),
    ('labels of threads', 'labels', 'user/interp/core/label_keys.c bpf/step/sb_step_label.h'),
    ('blocks on their way to the store', 'block', 'user/store/block.c'),
    ('files of the store', 'store', 'user/store/record.c user/store/dict.c user/store/dict_code.c user/store/segment.c '
     'user/store/bytes.c user/store/query.c user/store/check.c'),
    ('times, lengths and rules of questions', 'ask', 'user/store/ask.c user/store/tags.c'),
    ('heads of requests, who may ask', 'http',
     'user/serve/http.c user/serve/params.c user/serve/access.c'),
    ('answers of the server', 'serve',
     'user/serve/routes.c user/serve/api.c user/serve/api_flame.c user/serve/api_metrics.c '
     'user/serve/api_profile.c user/serve/api_render.c user/store/query.c user/store/search.c '
     'user/store/timeline.c user/store/tag_values.c user/store/extents.c'),
    ('what others say to an export', 'export',
     'user/export/state.c user/export/http.c user/export/link.c user/export/otlp.c user/store/late_blocks.c'),
    ('outputs of names that are anything', 'formats',
     'user/output/bt.c user/output/callgrind.c user/output/firefox.c user/output/folded.c '
     'user/output/html.c user/output/json.c user/output/jsontext.c user/output/otlp.c user/output/pprof.c '
     'user/output/protobuf.c user/output/speedscope.c user/output/svg.c'),
    ('numbers, lists, durations', 'num', 'user/base/num.c'),
    ('images of interpreters: functions, relocations', 'attach',
     'user/interp/core/image.c user/interp/core/split_functions.c'),
    ('machine code', 'attach', 'symbolizer/elf/disasm_x86.c user/interp/core/stub.c'),
]
RUNTIMES = {
    'hotspot': 'hotspot hotspot_method hotspot_nmethod hotspot_structs',
    'lua': 'lua lua_names',
    'luajit': 'luajit luajit_names luajit_trace',
    'perl': 'perl perl_loop perl_names',
    'php': 'php php_layout',
    'python': 'python python_layout python_lines python_names python_proof python_state',
    'ruby': 'ruby ruby_find ruby_names',
    'v8': 'v8 v8_code v8_file v8_heap v8_layout',
}
NAMES = {'hotspot': 'Java', 'lua': 'Lua', 'luajit': 'LuaJIT', 'perl': 'Perl', 'php': 'PHP',
         'python': 'Python', 'ruby': 'Ruby', 'v8': 'V8'}
for runtime, files in RUNTIMES.items():
    PARSERS.append((f'{NAMES[runtime]}: where it lies, names', f'interp_{runtime} attach',
                    ' '.join(f'user/interp/{runtime}/{name}.c' for name in files.split())))
for runtime in RUNTIMES:
    PARSERS.append((f'{NAMES[runtime]}: the walk in the kernel', f'interp_{runtime} core',
                    f'bpf/step/sb_step_{runtime}.h'))
PARSERS += [
    ('the native walk in the kernel', 'core',
     'bpf/core/unwind.bpf.c bpf/core/unwind_tables.bpf.c bpf/core/last_walk.bpf.c bpf/core/memo.bpf.c '
     'bpf/core/rawstack.bpf.c bpf/step/sb_unwind_step.h'),
    ('interpreters in the kernel', 'core',
     'bpf/core/interp.bpf.c bpf/interp/table.bpf.c bpf/step/sb_interp_step.h'),
]


def run(command, **how):
    return subprocess.run([str(word) for word in command], check=True, **how)


def fuzzers():
    """Those that have a source. A missing one is one that this tree does not have yet."""
    return sorted(path.stem[len('fuzz_'):] for path in HERE.glob('fuzz_*.c'))


def build(directory, args, names):
    """A build directory of clang's with the fuzzers in it, and nothing else."""
    path = TOP / directory
    if not (path / 'build.ninja').exists():
        run(['meson', 'setup', path, TOP, '-Dtests=enabled', '-Dfuzzers=true', '-Db_lundef=false', *args],
            env={**os.environ, 'CC': 'clang'}, stdout=subprocess.DEVNULL)
    run(['ninja', '-C', path, *[f'tests/fuzz/fuzz_{name}' for name in names]],
        stdout=subprocess.DEVNULL)
    return path / 'tests/fuzz'


def size_of(files):
    return sum(file.stat().st_size for file in files)


def dictionary(name):
    path = CORPUS / f'{name}.dict'
    return [f'-dict={path}'] if path.exists() else []


def fuzz(name, where, found, minutes):
    """Return: what to say of it."""
    failed = TOP / 'build-fuzz/failed'
    failed.mkdir(exist_ok=True)
    (found / name).mkdir()
    command = [where / f'fuzz_{name}', f'-max_total_time={int(minutes * 60)}', '-timeout=30',
               '-rss_limit_mb=2048', '-max_len=16384', '-print_final_stats=1', *dictionary(name),
               f'-artifact_prefix={failed}/{name}-', found / name, CORPUS / name]
    # Undefined behaviour is a failure, not a remark.
    options = 'halt_on_error=1:abort_on_error=1:print_stacktrace=1'
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          errors='replace', check=False, env={**os.environ, 'UBSAN_OPTIONS': options})
    nr = next((line.split()[-1] for line in done.stderr.splitlines()
               if 'number_of_executed_units' in line), '?')
    says = [line for line in done.stderr.splitlines()
            if 'does not hold' in line or 'runtime error' in line or line.startswith('SUMMARY')]
    return name, done.returncode, nr, says


def merge(name, where, found):
    """The smallest set of inputs that covers what the tree and the finds cover."""
    with tempfile.TemporaryDirectory() as kept:
        run([where / f'fuzz_{name}', '-set_cover_merge=1', '-use_counters=0', '-timeout=30',
             '-rss_limit_mb=2048', kept, CORPUS / name, found / name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        new = sorted(pathlib.Path(kept).iterdir(), key=lambda file: file.stat().st_size)
        seeds = [file for file in (CORPUS / name).iterdir() if len(file.name) != 40]
        has = {file.read_bytes() for file in seeds}
        new = [file for file in new if file.read_bytes() not in has]
        room, left_out = CORPUS_BYTES_MAX - size_of(seeds), []
        while new and size_of(new) > room:
            left_out.append(new.pop())
        for file in (CORPUS / name).iterdir():
            if len(file.name) == 40:  # libFuzzer's name for what it found; seeds have words
                file.unlink()
        for file in new:
            shutil.copy(file, CORPUS / name / file.name)
        left_out = [file.name for file in left_out]
    return len(seeds) + len(new), len(left_out)


def fuzz_all(names, minutes, jobs):
    """Return: whether nothing failed."""
    where = build('build-fuzz', ['-Db_sanitize=address,undefined'], names)
    ok = True
    with tempfile.TemporaryDirectory() as directory:
        found = pathlib.Path(directory)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for name, status, nr, says in pool.map(lambda name: fuzz(name, where, found, minutes),
                                                   names):
                print(f'{name}: {nr} inputs tried' + (f', FAILED ({status})' if status else ''),
                      *says, sep='\n    ', flush=True)
                ok = ok and not status
        for name in names:
            nr, left_out = merge(name, where, found)
            print(f'{name}: {nr} inputs kept' +
                  (f', {left_out} left out: beyond {CORPUS_BYTES_MAX >> 10} KiB' if left_out else ''),
                  flush=True)
    return ok


def tool(name):
    """LLVM's tool of the same version as the compiler."""
    path = subprocess.run(['clang', f'-print-prog-name={name}'], capture_output=True, text=True,
                          check=True).stdout.strip()
    if not shutil.which(path):
        sys.exit(f'long.py: no {name} of the version of clang: install llvm')
    return path


def profile(name, where, directory):
    raw = directory / f'{name}.profraw'
    inputs = sorted((CORPUS / name).iterdir())
    run([where / f'fuzz_{name}', '-runs=0', *inputs], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, 'LLVM_PROFILE_FILE': str(raw)})
    return raw


def covered(names, where, directory):
    """What the corpora of these fuzzers cover: {file: summary}."""
    data = directory / ('+'.join(names) + '.profdata')
    if not data.exists():
        run([tool('llvm-profdata'), 'merge', '-o', data,
             *[directory / f'{name}.profraw' for name in names]])
    objects = [where / f'fuzz_{name}' for name in names]
    export = run([tool('llvm-cov'), 'export', '-summary-only', f'-instr-profile={data}', objects[0],
                  *[word for path in objects[1:] for word in ('-object', path)]],
                 capture_output=True, text=True).stdout
    return {os.path.relpath(os.path.normpath(file['filename']), TOP): file['summary']
            for file in json.loads(export)['data'][0]['files']}


def percent(summaries, of):
    count = sum(summary[of]['count'] for summary in summaries)
    return 100 * sum(summary[of]['covered'] for summary in summaries) / count if count else 0


def coverage():
    """The table, as Markdown."""
    names = fuzzers()
    where = build('build-cov', ['-Dc_args=-fprofile-instr-generate -fcoverage-mapping',
                                '-Dc_link_args=-fprofile-instr-generate'], names)
    lines = ['| parser | files | fuzzers | inputs | lines | regions |', '|---|---|---|---|---|---|']
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        for name in names:
            profile(name, where, directory)
        for parser, by, files in PARSERS:
            by = [name for name in by.split() if name in names]
            if not by:
                continue
            summaries = covered(by, where, directory)
            of = [summaries[file] for file in files.split() if file in summaries]
            inputs = [file for name in by for file in (CORPUS / name).iterdir()]
            shown = ' '.join(pathlib.Path(file).name for file in files.split())
            lines.append(f'| {parser} | {shown} | {", ".join(by)} '
                         f'| {len(inputs)}, {(size_of(inputs) + 1023) >> 10} KiB '
                         f'| {percent(of, "lines"):.0f} % | {percent(of, "regions"):.0f} % |')
    return '\n'.join(lines)


def update(table):
    path = TOP / 'docs/testing.md'
    text = path.read_text(encoding='utf-8')
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(f'{text[:begin]}\n{table}\n{text[end:]}', encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--minutes', type=float, default=10, help='for each fuzzer (10)')
    parser.add_argument('--jobs', type=int, default=2, help='at a time (2)')
    parser.add_argument('--coverage', action='store_true', help='do not fuzz')
    parser.add_argument('--update', action='store_true', help='write the table into docs/testing.md')
    parser.add_argument('fuzzer', nargs='*', help='all, if none is named')
    args = parser.parse_args()
    unknown = sorted(set(args.fuzzer) - set(fuzzers()))
    if unknown:
        sys.exit(f'long.py: no fuzzer {unknown[0]}; there are: {" ".join(fuzzers())}')
    ok = args.coverage or fuzz_all(args.fuzzer or fuzzers(), args.minutes, args.jobs)
    table = coverage()
    print(table)
    if args.update:
        update(table)
    sys.exit(0 if ok else 1)


if __name__ == '__main__':
    main()
