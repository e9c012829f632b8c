# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs below tests/shim/fault.c: what they ask for fails."""
import os
import re
import signal
import subprocess
import tempfile

from live import skip

DEADLINE = 60  # seconds; only how long a broken program is given


class Outcome:
    """One run: exit status, both streams, and what the library noted."""

    def __init__(self, status, out, err, notes, hung):
        self.status, self.out, self.err, self.notes, self.hung = status, out, err, notes, hung

    @property
    def faults(self):
        return [note[len('fault '):] for note in self.notes if note.startswith('fault ')]

    def named(self, kind):
        return [note.split(' ', 1)[1] for note in self.notes if note.startswith(kind + ' ')]

    @property
    def sentences(self):
        return self.err.splitlines()


def need_libraries(program):
    with open(program, 'rb') as file:
        if b'ld-linux' not in file.read(4096):
            skip(f'{program} is static: nothing can be loaded into it')


def environment(library, program, log=None, **settings):
    env = dict(os.environ, LD_PRELOAD=os.path.abspath(library), SB_FAULT_IN=os.path.basename(program))
    if log:
        env['SB_FAULT_LOG'] = log
    env.update({f'SB_FAULT_{name.upper()}': str(value) for name, value in settings.items() if value})
    return env


def run(library, command, inside=None, stdin=None, **settings):
    """Run `command` with faults; addresses are the same in each run. `inside`: called before exec."""
    with tempfile.NamedTemporaryFile('r', encoding='ascii', errors='replace') as log:
        env = environment(library, command[0], log.name, **settings)
        # In a group of its own, so that commands that it leaves behind can be ended.
        process = subprocess.Popen(['setarch', '-R', *command], env=env, stdin=stdin or subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace',
                                   start_new_session=True, preexec_fn=inside)
        hung = False
        try:
            out, err = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        return Outcome(process.returncode, out, err, log.read().splitlines(), hung)


def sentences(err):
    """Of what was said, what is not about the run as such, nor about interpreters in others' processes."""
    return [line for line in err.splitlines()
            if not re.search(r': warning: | has no frames of | in [0-9.]+ s; |^[a-z]+:   ', line)]


def complaints(outcome, program='stackbpf'):
    """What is wrong with how the run ended, whatever it was to do: one sentence and a status, or a result."""
    wrong = []
    if outcome.hung:
        return ['it hung']
    if outcome.status < 0 or outcome.status >= 128:
        wrong.append(f'it was ended by a signal, status {outcome.status}')
    said = sentences(outcome.err)
    alien = [line for line in outcome.sentences if not line.startswith(program + ': ')]
    if alien or 'libbpf' in outcome.err or 'verifier' in outcome.err:
        wrong.append(f'not our sentence: {outcome.err[:300]!r}')
    if outcome.status and len(said) != 1:
        wrong.append(f'status {outcome.status} with {len(said)} sentences: {outcome.err[:400]!r}')
    return wrong
