# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests of interpreters share. Programs whose time is in known parts say on lines "spent PART US ..."
what each has taken so far, by the clock of the CPU: loops that look alike may differ by a third, for reasons of
the processor. Their rounds differ in length, because rounds of one length may keep step with the sampling, which
then sees but a few of their moments."""
import collections
import time

from live import check, sampling, stackbpf, wait_for

POINTS = 0.03  # of a share, as far as chance allows that
SNAPSHOT_REST = 0.5  # s
SAMPLES_OF_ALL, SAMPLES_OF_EACH = 100, 30  # for each program on average, and at least


def are_few(nr, total, share):
    """@nr of @total samples can be, by chance, what is this share of all at most. On a busy machine there are few
    samples, and one of them is more than a share of a hundredth of them: three times the standard deviation."""
    return nr <= share * total + 3 * max(share * total, 0) ** 0.5


def are_most(nr, total, share):
    """The same for a share of all at least, near 1."""
    return are_few(total - nr, total, 1 - share)


def spent(program):
    """It is killed. Return: {part: us}, as it said last."""
    program.kill()
    found = {}
    for line in program.stdout:
        line = line if isinstance(line, str) else line.decode()
        words = line.split()
        if words[:1] == ['spent'] and line.endswith('\n'):
            found = {part: float(us) for part, us in zip(words[1::2], words[2::2])}
    return found


def check_shares(what, weights, truth, is_sampled=True):
    """@weights: {part: samples, or time when not is_sampled}; @truth: {part: any unit}."""
    total, whole = sum(weights.values()), sum(truth.values())
    check(total and whole and weights.keys() == truth.keys(), f'{what}: its time is in {", ".join(truth)}')
    for part in truth if total and whole else ():
        have, want = weights.get(part, 0) / total, truth[part] / whole
        chance = 4 * (want * (1 - want) / total) ** 0.5 if is_sampled else 0
        check(abs(have - want) <= max(POINTS, chance),
              f'{what}: {part} has {100 * have:.1f} % of {total}, in truth {100 * want:.1f} %')


def enough(run, is_enough, runs_max=10):
    """What run() samples, as often as it takes: other programs may leave the one that is sampled little of the CPUs.
    The result knows how many `runs` it has."""
    result = run()
    result.runs = 1
    while result.runs < runs_max and not is_enough(result):
        more = run()
        result.stacks += more.stacks
        result.err += more.err
        result.runs += 1
    return result


def sample(binary, view, processes, *options, seconds):
    """All of them at once; on the CPU only what came after each process had frames of its interpreter, and for as long
    as it takes on a busy machine to have enough samples. Before, nobody has looked at the process, and how long that
    takes depends on what else wants the CPUs: samples without these frames may be any share of a short run."""
    pids = [option for process in processes for option in ('-p', str(process.pid))]
    options = (*pids, '--lines', '--annotate', *options)
    if view != 'oncpu':
        result = stackbpf(binary, view, '-t', str(seconds), *options)
    else:
        with sampling(binary, view, '--by', 'pid', *options) as run:
            pids = {str(process.pid) for process in processes}
            early = snapshot_when(run, lambda stacks: looked_at(stacks) >= pids,
                                  'each process has frames of its interpreter')
            time.sleep(seconds)
            snapshot_when(run, lambda stacks: are_enough(stacks - early, pids), 'enough samples')
        result = run.result
        result.stacks = without_pids(result.stacks - early)
    check(result.status == 0, f'{view}: exit status {result.status} {result.err[-300:] if result.status else ""}')
    return result


def snapshot_when(run, is_enough, what):
    """The stacks so far, once is_enough(stacks); with pauses, because each snapshot takes CPU time from the programs."""
    def look():
        time.sleep(SNAPSHOT_REST)
        stacks = run.snapshot().stacks
        return stacks if is_enough(stacks) else None

    return wait_for(look, what)


def are_enough(stacks, pids):
    """Of all processes, and of each: chance gives one of many the CPU more rarely than others."""
    found = collections.Counter()
    for stack, weight in stacks.items():
        found[stack[0].rpartition('-')[2]] += weight
    return found.total() >= SAMPLES_OF_ALL * len(pids) and all(found[pid] >= SAMPLES_OF_EACH for pid in pids)


def looked_at(stacks):
    """Processes of stacks with frames of an interpreter."""
    return {stack[0].rpartition('-')[2] for stack in stacks if any(frame.endswith('_[p]') for frame in stack)}


def without_pids(stacks):
    """The roots of `--by pid` as those of `--by comm`."""
    found = collections.Counter()
    for stack, weight in stacks.items():
        found[(stack[0].rpartition('-')[0], *stack[1:])] += weight
    return found
