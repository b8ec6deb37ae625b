"""Killing a rank in the middle of a sweep, and what must follow."""
import os
import re
import signal
import time

from system import await_that, check, processes, signal_process, start, within

WAITING = (r"waiting (for|to) .* in step \d+ \(.*\) of round \d+|waiting for its last sends to rank \d+ to complete|"
           r"waiting to (send to|receive from) rank \d+, message \d+|"
           r"waiting for ranks to be done with earlier calls in step 0 \(show\)|waiting to reach rank \d+'s memory in step 1 \(meet\)|"
           r"waiting for rank \d+ to come to (this call|piece \d+ of \d+) in step 1 \(meet\)|"
           r"waiting for rank \d+ to be done with (piece \d+ of \d+|this rank's memory|its part) in step 2 \(leave\)")
WITHIN = within(5)  # seconds from the kill to the end of the last rank
# One call after the other: without a check, which would also be a place to be killed in, but has no step to name.
LARGE = ["-b", "1M", "-e", "64M", "-n", "100000", "-c", "0"]
LARGER = ["-b", "16M", "-e", "16M", "-n", "100000", "-c", "0"]
SMALL = ["-b", "8", "-e", "8", "-n", "1000000000", "-c", "0"]


def in_mid_sweep(ranks, flags, env, collective="all_reduce"):
    """A sweep, and its ranks' processes by rank, all of which have been computing for a while."""
    sweep = start(collective, "--ranks", ranks, *flags, env=env)
    await_that(lambda: "(elements)" in sweep.out, lambda: f"no sweep began\n{sweep.story()}")
    children = sorted(sweep.children())
    check(len(children) == ranks, f"{len(children)} processes for {ranks} ranks\n{sweep.story()}")
    begun = processes()
    await_that(lambda: all(pid in now and now[pid].ticks > begun[pid].ticks + 8 for now in [processes()] for pid in children),
               lambda: f"not all ranks compute\n{sweep.story()}")
    return sweep, children


def shared_memory_of(pids):
    """Files in /dev/shm and System V segments that these processes have mapped."""
    files, segments = set(), set()
    for pid in pids:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            for fields in (line.split() for line in maps):
                if len(fields) >= 6 and fields[5].startswith("/dev/shm/"):
                    files.add(fields[5])
                if len(fields) >= 6 and fields[5].startswith("/SYSV"):
                    segments.add(fields[4])
    return files, segments


def nothing_is_left(sweep, files, segments):
    await_that(lambda: not sweep.session(), lambda: f"processes are left: {sweep.session()}\n{sweep.story()}", 5)
    left = [file for file in files if os.path.exists(file)]
    check(not left, f"files are left: {left}\n{sweep.story()}")
    with open("/proc/sysvipc/shm", encoding="utf-8") as table:
        kept = [line.split()[1] for line in table.readlines()[1:] if line.split()[1] in segments]
    check(not kept, f"System V segments are left: {kept}\n{sweep.story()}")


def everybody_names(sweep, ranks, killed, pid):
    lines = sweep.err.splitlines()
    check(f"gyre-perf: rank {killed} (process {pid}) was killed by signal 9 (Killed)" in lines,
          f"gyre-perf does not say who was killed\n{sweep.story()}")
    for rank in set(range(ranks)) - {killed}:
        own = [line for line in lines if line.startswith(f"gyre-perf: rank {rank}: ")]
        check(len(own) == 1, f"{len(own)} messages of rank {rank}, not one\n{sweep.story()}")
        check(re.search(rf"rank {killed} \(host \S+, pid {pid}\) is gone", own[0]),
              f"rank {rank} does not name rank {killed}\n{sweep.story()}")
        check(re.search(WAITING, own[0]),
              f"rank {rank} does not say what it waited for\n{sweep.story()}")
    check(len(lines) == ranks, f"{len(lines)} lines for {ranks} ranks\n{sweep.story()}")


def kill_one(ranks, flags, env, killed, collective="all_reduce"):
    sweep, children = in_mid_sweep(ranks, flags, env, collective)
    files, segments = shared_memory_of(children)
    signal_process(children[killed], signal.SIGKILL)
    begun = time.monotonic()
    sweep.wait(30)
    seconds = time.monotonic() - begun
    check(seconds < WITHIN, f"took {seconds:.1f} s\n{sweep.story()}")
    check(sweep.code not in (0, None), f"exit code {sweep.code}\n{sweep.story()}")
    everybody_names(sweep, ranks, killed, children[killed])
    nothing_is_left(sweep, files, segments)
