"""A peer that is stopped for a minute is not dead: nobody fails, and when it goes on, so does the traffic. All at a time, since it takes long."""
import signal
import time

from net_calling import ENDLESS, OVER, await_line, call, complaints, lines, no_crash, ranks_of
from system import await_that, check, signal_process, subjects

STOPPED = 60
STATES = {"small messages": ["--only", "ll"], "large messages": ["--only", "simple"], "idle": ["--silent"], "nobody takes": ["--deaf", "--pattern", "one"]}


def a_peer_is_stopped_for_a_minute():
    runs = {}
    for over, env in OVER.items():
        for state, flags in STATES.items():
            runs[f"{state}, {over}"] = call(*flags, "--slot", "256K", *ENDLESS, "--patience", 10 * STOPPED, env=env)
    moving = {name: run for name, run in runs.items() if "messages" in name}
    for name, run in runs.items():
        await_line(run, "messages" if name in moving else "^idle$", range(2))
    for run in runs.values():
        signal_process(ranks_of(run, 2)[1], signal.SIGSTOP)
    until = time.monotonic() + STOPPED
    while time.monotonic() < until:
        for name, run in runs.items():
            check(run.code is None and not lines(run, "ends:"), f"{name}: failed while its peer was stopped\n{run.story()}")
        time.sleep(0.2)
    before = {name: len(lines(run, "messages", 1)) for name, run in moving.items()}
    for run in runs.values():
        signal_process(ranks_of(run, 2)[1], signal.SIGCONT)
    for name, run in moving.items():
        await_that(lambda: len(lines(run, "messages", 1)) > before[name] + 2 or run.code is not None, lambda: f"{name}: does not go on\n{run.story()}")
    for name, run in runs.items():
        check(run.code is None and not complaints(run), f"{name}: failed after its peer went on\n{run.story()}")
        no_crash(run)


subjects([a_peer_is_stopped_for_a_minute])
