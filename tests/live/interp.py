# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests of interpreters share. Programs whose time is in known parts say on lines "spent PART US ..."
what each has taken so far, by the clock of the CPU: loops that look alike may differ by a third, for reasons of
the processor. Their rounds differ in length, because rounds of one length may keep step with the sampling, which
then sees but a few of their moments."""
import collections

from live import check, stackbpf

POINTS = 0.03  # of a share, as far as chance allows that
SAMPLES_OF_EACH, RUNS_MAX = 100, 4  # of each program, on average


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
    """All of them at once; on the CPU, on a machine that has others to serve, again and again, until there are
    enough samples of what runs."""
    pids = [option for process in processes for option in ('-p', str(process.pid))]
    stacks = collections.Counter()
    for _ in range(RUNS_MAX):
        result = stackbpf(binary, view, *pids, '-t', str(seconds), '--lines', '--annotate', *options)
        check(result.status == 0, f'{view}: exit status {result.status} {result.err[-300:] if result.status else ""}')
        stacks += result.stacks
        if view != 'oncpu' or stacks.total() >= SAMPLES_OF_EACH * len(processes):
            break
    result.stacks = stacks
    return result
