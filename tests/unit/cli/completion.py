#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""completion.py STACKBPF PRINT_OPTIONS DOCS: what bash, zsh and fish complete, asked at their own prompts.

A shell that is not installed is not asked, and said so.
"""
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import threading

STACKBPF, PRINT_OPTIONS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
COMPLETIONS = pathlib.Path(sys.argv[3]) / 'completions'

BASHRC = r'''
source <(stackbpf completion bash)
bind 'set completion-query-items 0' 2>/dev/null
report() { printf '%s\n' "$READLINE_LINE" >"$ANSWERS"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\C-x1": report' 2>/dev/null
PS1=
echo ready >"$ANSWERS"
'''
ZSHRC = r'''
fpath=("$COMPLETIONS" $fpath)
autoload -U compinit
compinit -u -D
insert-all() { _main_complete; compstate[insert]=all; compstate[list]= }
zle -C insert-all complete-word insert-all
bindkey '^Xa' insert-all
report() { print -r -- "$BUFFER" >"$ANSWERS"; BUFFER= }
zle -N report
bindkey '^X1' report
PS1=
echo ready >"$ANSWERS"
'''
FISH = '''
source "$COMPLETIONS/stackbpf.fish"
while read -l line
    complete -C "$line"
    echo end
end
'''


class Prompt:
    """A shell on a terminal: what a line becomes when all that fits is inserted."""

    def __init__(self, work, command, key):
        self.key, fifo = key, work / f'{command[0]}.answers'
        os.mkfifo(fifo)
        self.answers = os.open(fifo, os.O_RDWR)
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(work / 'here')
            os.environ.update(ANSWERS=str(fifo))
            os.execvp(command[0], command)
        threading.Thread(target=self.drain, daemon=True).start()
        assert self.answer() == 'ready'

    def drain(self):
        try:
            while os.read(self.terminal, 4096):
                pass
        except OSError:
            pass

    def answer(self):
        text = b''
        while not text.endswith(b'\n'):
            assert select.select([self.answers], [], [], 240)[0], f'no answer, but {text}'
            text += os.read(self.answers, 65536)
        return text.decode().rstrip('\n')

    def ask(self, before, word):
        os.write(self.terminal, f'{before} {word}{self.key}\x181'.encode())
        line = self.answer()
        assert line.startswith(before + ' '), line
        # What stands before the value is there once, or each time.
        prefix = word[:max(word.rfind('='), word.rfind(':')) + 1]
        return {got if got.startswith(prefix) else prefix + got
                for got in line[len(before):].replace('\\', '').split()}

    def close(self):
        os.write(self.terminal, b'exit\n')
        os.waitpid(self.pid, 0)


class Fish:
    """Fish says what it would offer."""

    def __init__(self, work):
        self.fish = subprocess.Popen(['fish', '--no-config', '-c', FISH], stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, cwd=work / 'here')

    def ask(self, before, word):
        print(before, word, file=self.fish.stdin, flush=True)
        got = set()
        while (line := self.fish.stdout.readline()) != 'end\n':
            assert line, 'fish has ended'
            got.add(line.rstrip('\n').split('\t')[0])
        # Nothing fits: at a prompt the word remains as it is.
        return got or {word}

    def close(self):
        self.fish.communicate()


def shells(work):
    env = {'TERM': 'dumb', 'HOME': str(work), 'ZDOTDIR': str(work), 'INPUTRC': '/dev/null', 'HISTFILE': '/dev/null',
           'COMPLETIONS': str(COMPLETIONS.resolve()), 'PATH': f'{STACKBPF.parent}:{os.environ["PATH"]}'}
    os.environ.update(env)
    (work / 'bashrc').write_text(BASHRC)
    (work / '.zshrc').write_text(ZSHRC)
    for name, start in (
            ('bash', lambda: Prompt(work, ('bash', '--noprofile', '--rcfile', str(work / 'bashrc'), '-i'), '\x1b*')),
            ('zsh', lambda: Prompt(work, ('zsh', '-i'), '\x18a')),
            ('fish', lambda: Fish(work))):
        if not shutil.which(name):
            print(f'{name}: not installed')
            continue
        script = subprocess.run([STACKBPF, 'completion', name], capture_output=True, text=True, check=True).stdout
        subprocess.run([name, '-n', '/dev/stdin'], input=script, text=True, check=True)
        shell = start()
        yield name, shell
        shell.close()


def options():
    """{command: its options}"""
    commands = {}
    for line in subprocess.run([PRINT_OPTIONS], capture_output=True, text=True, check=True).stdout.splitlines():
        command, option, _ = line.split()
        commands.setdefault(command, set()).add(option)
    assert len(commands) > 10 and len(commands['oncpu']) > 20, commands
    return commands


def outputs():
    said = subprocess.run([STACKBPF, '--version'], capture_output=True, text=True, check=True).stdout
    return set(next(line for line in said.splitlines() if line.startswith('outputs:')).split()[1:])


def cases(pid):
    """Words before, the word at the cursor, what it can become: all of it, or (...,) among others."""
    kinds = {'oncpu', 'offcpu', 'wakeup', 'offwake', 'wall', 'io', 'memory', 'alloc', 'heap', 'leak'}
    yield '', 'off', {'offcpu', 'offwake'}
    yield '', 'li', {'live'}
    yield 'oncpu -u --title x -F 99', '--deli', {'--delimited'}
    yield 'live', '--win', {'--window'}
    yield 'nosuch', '--fo', {'--fo'}
    # Words of the table, of one command or of another, as the next word or in the same.
    yield 'snap', '--format=', {'--format=stacks', '--format=folded', '--format=json'}
    yield 'oncpu --format', 'sp', {'speedscope'}
    yield 'oncpu --format', '', outputs()
    yield 'query --format', '', outputs() - {'distr'} | {'top'}
    yield 'diff --format', '', {'table', 'svg', 'html', 'folded', 'json'}
    yield 'run --kind', '', kinds
    yield 'io --kind', 'd', {'dir'}
    yield 'io --kind', 'dir,fi', {'dir,file'}
    yield 'io', '--file=b', {'--file=base'}
    yield 'io --file', '', options()['io'] | {'--file='}  # no next word is its value
    yield 'record --kinds', 'oncpu,off', {'oncpu,offcpu', 'oncpu,offwake'}
    # What is held is known at the end of a run, and is in no store.
    for before in 'record --kinds', 'query --kind', 'export --kind':
        for name in 'hea', 'lea':
            yield before, name, {name}
    yield 'oncpu --by', 'pid,c', {'pid,comm', 'pid,cpu', 'pid,cgroup', 'pid,container'}
    yield 'query --from', '-', {'-1h', '-1d', '-7d', '-30d'}
    yield 'timeline --step', '1', {'10s', '1m', '10m', '1h', '1d'}
    yield 'export --to', 'click', {'clickhouse:http:'}
    yield 'serve', '--listen=127', {'--listen=127.0.0.1:4040'}
    yield 'serve --listen', '127.0.0.1:', {'127.0.0.1:4040'}
    yield 'help', 'doc', {'doctor'}
    yield 'completion', '', {'bash', 'zsh', 'fish'}
    # What is on this machine.
    for option in '-p', '-ukp', '-a --pid', '-L':
        yield f'oncpu {option}', pid[:-1], (pid,)
    yield 'oncpu', f'-p{pid[:-1]}', (f'-p{pid}',)
    yield 'oncpu', f'--pid=1,{pid[:-1]}', (f'--pid=1,{pid}',)
    yield 'snap -p', pid[:-1], (pid,)
    yield 'doctor -p', pid[:-1], (pid,)
    yield 'oncpu --comm', 'sbcompl', {'sbcompletion'}
    yield 'oncpu --uid', 'ro', ('root',)
    yield 'io --fs', 'pr', ('proc',)
    # Files and directories, commands.
    here = {'a-file', 'a-folder'}
    for before in 'oncpu -o', 'oncpu -a --output', 'io --path', 'serve --token-file', 'diff x':
        yield before, 'a-f', here
    yield 'query', '--output=a-f', {f'--output={name}' for name in here}
    for before in 'query --store', 'record --store', 'export --state', 'store merge', 'oncpu -G':
        yield before, 'a-f', {'a-folder'}
    yield 'serve', '--store=a-f', {'--store=a-folder'}
    yield 'store', '', {'stat', 'check', 'prune', 'merge'}
    yield 'oncpu -c', 'sbcompl', {'sbcompletion'}
    yield 'oncpu -t 5 --', 'sbcompl', {'sbcompletion'}
    yield 'oncpu -t 5 -- cat', 'a-fi', {'a-file'}


def hostile_name(work):
    """What a process is called is written by whoever likes: it does not become a line, nor reach the terminal."""
    program = work / 'bin' / 'sbevil\n\x1b[2J\tx'
    shutil.copy(shutil.which('sleep'), program)
    with subprocess.Popen([program, '600']) as process:
        try:
            said = subprocess.run([STACKBPF, 'completion', '--', 'oncpu', '--comm', 'sbev'], capture_output=True,
                                  text=True, check=True).stdout
        finally:
            process.kill()
    if said != 'none 0\nsbevil??[2J?x\n':
        print(f'a name with control characters: {said!r}')
        return False
    return True


def check(name, shell, before, word, want):
    # Some shells put a slash behind a directory.
    got = {answer.rstrip('/') for answer in shell.ask(f'stackbpf {before}'.rstrip(), word)}
    right = got.issuperset(want) if isinstance(want, tuple) else got == want
    if not right:
        print(f'{name}: "stackbpf {before} {word}": {sorted(got)}, not {sorted(want)}')
    return right


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / 'here/a-folder').mkdir(parents=True)
        (work / 'here/a-file').write_text('')
        (work / 'bin').mkdir()
        shutil.copy(shutil.which('sleep'), work / 'bin/sbcompletion')
        os.environ['PATH'] = f'{work}/bin:{os.environ["PATH"]}'
        failures = int(not hostile_name(work))
        with subprocess.Popen(['sbcompletion', '600']) as process:
            try:
                for name, shell in shells(work):
                    for command, listed in options().items():
                        with_value = {'--file='} if command == 'io' else set()
                        failures += not check(name, shell, command, '-', listed | with_value)
                    for row in cases(str(process.pid)):
                        failures += not check(name, shell, *row)
            finally:
                process.kill()
    sys.exit(1 if failures else 0)


main()
