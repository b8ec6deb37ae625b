"""A rank that is killed: the others end within 5 s and say who died and what they waited for; nothing is left.

A stopped one harms nobody."""
import re
import signal
import time

from killing import LARGE, LARGER, SMALL, WITHIN, in_mid_sweep, kill_one, nothing_is_left, shared_memory_of
from system import UCX, Skipped, await_that, check, free_port, rows, sampled, signal_process, start_rank, subjects, transports

MANY = ["-b", "8", "-e", "700K", "-i", "8", "-n", "2", "-w", "1"]  # 90 000 sizes: always somewhere between two calls


def over(name):
    known = transports()
    if name not in known:
        raise Skipped("built without UCX")
    return known[name]


def kills(name):
    """Every rank, in large and in small calls. In large ones data is under way between those who survive, too: several times."""
    env = over(name)
    for ranks in sampled((3, 2, 4)):
        kill_one(ranks, SMALL, env, 0)
        kill_one(ranks, SMALL, env, ranks - 1)
        kill_one(ranks, LARGE, env, 0)
        for killed in range(ranks):
            kill_one(ranks, LARGER, env, killed)


def killed_over_shm():
    kills("shm")


def killed_over_tcp():
    kills("tcp")


def killed_over_ucx_tcp():
    kills("ucx over tcp")


def killed_over_ucx_shared_memory():
    kills("ucx over shared memory")


def killed_anywhere_in_the_sweep():
    """Between calls there is no step to name; the rest holds."""
    for env in transports().values():
        sweep, children = in_mid_sweep(3, MANY, env)
        signal_process(children[1], signal.SIGKILL)
        begun = time.monotonic()
        sweep.wait(30)
        check(time.monotonic() - begun < WITHIN, f"took {time.monotonic() - begun:.1f} s\n{sweep.story()}")
        for rank in (0, 2):
            check(re.search(rf"gyre-perf: rank {rank}: rank 1 \(host \S+, pid {children[1]}\) is gone", sweep.err),
                  f"rank {rank}\n{sweep.story()}")
        nothing_is_left(sweep, set(), set())


def two_killed_at_once():
    for env in transports().values():
        sweep, children = in_mid_sweep(4, LARGE, env)
        for rank in (1, 2):
            signal_process(children[rank], signal.SIGKILL)
        begun = time.monotonic()
        sweep.wait(30)
        check(time.monotonic() - begun < WITHIN, f"took {time.monotonic() - begun:.1f} s\n{sweep.story()}")
        for rank in (0, 3):
            check(re.search(rf"gyre-perf: rank {rank}: rank [12] \(.*\) is gone", sweep.err), f"rank {rank}\n{sweep.story()}")
        nothing_is_left(sweep, set(), set())


def killed_parent_takes_its_ranks_along():
    sweep, children = in_mid_sweep(3, LARGE, {})
    files, segments = shared_memory_of(children)
    sweep.send(signal.SIGKILL)
    nothing_is_left(sweep, files, segments)


def stopped_for_six_seconds():
    """All transports and both kinds of rank at the same time, since this needs real time."""
    cases = []
    for name, env in transports().items():
        for stopped in (0, 1):
            sweep, children = in_mid_sweep(2, MANY, env)
            signal_process(children[stopped], signal.SIGSTOP)
            cases.append((f"{name}, rank {stopped}", sweep, children[stopped]))
    time.sleep(6)
    for name, sweep, pid in cases:
        check(sweep.code is None, f"{name}: ended while a rank was stopped\n{sweep.story()}")
        signal_process(pid, signal.SIGCONT)
        shown = len(rows(sweep.out))
        await_that(lambda: len(rows(sweep.out)) > shown + 50 or sweep.code is not None, lambda: f"{name}: does not go on\n{sweep.story()}")
        check(sweep.code is None and sweep.err == "", f"{name}: failed\n{sweep.story()}")
        check(all(row.wrong == row.in_place_wrong == "0" for row in rows(sweep.out)), f"{name}: wrong results\n{sweep.story()}")
        sweep.kill()


def killed_while_joining():
    """Rank 2 never comes; rank 1 has joined and is killed: rank 0 does not wait for its whole timeout."""
    port = free_port()
    ranks = [start_rank(rank, 3, port, "-e", "8", env={"GYRE_LOG": "debug"}) for rank in range(2)]
    time.sleep(1)  # nothing tells from outside that it has joined
    begun = time.monotonic()
    ranks[1].send(signal.SIGKILL)
    ranks[0].wait()
    check(time.monotonic() - begun < WITHIN, f"took {time.monotonic() - begun:.1f} s\n{ranks[0].story()}")
    check(re.search(rf"rank 1 \(host \S+, pid {ranks[1].pid}\) is gone", ranks[0].failed().err), ranks[0].story())


subjects([killed_while_joining, killed_over_shm, killed_over_tcp, killed_over_ucx_tcp, killed_over_ucx_shared_memory, killed_anywhere_in_the_sweep, two_killed_at_once,
          killed_parent_takes_its_ranks_along, stopped_for_six_seconds])
