"""A peer that is killed, in every state: who is left gets ncclRemoteError from the plugin within GYRE_PEER_TIMEOUT, finds the peer and the
reason in the log, and closes at once."""
import re
import signal

from net_calling import ABORTED, ENDLESS, KILLED, OVER, REMOTE, await_line, call, closed_at_once, lines, no_crash, ranks_of
from system import await_that, check, signal_process, subjects

LIMIT = 5  # seconds: GYRE_PEER_TIMEOUT's default
SLACK = 2  # on a machine that does much else
REASON = r"WARN: .*(connection (from|to)|connect: to) .*: \S.*"  # whose, and after the colon the reason
ADDRESS = r"WARN: .*(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+"


def survives(run, killed, survivors, what, limit=LIMIT):
    """Every survivor ends with ncclRemoteError, in time."""
    until = lambda: len(lines(run, "^ended with")) == len(survivors) + 1 or run.code is not None
    await_that(until, lambda: f"{what}: ranks are left\n{run.story()}", 60)
    run.wait(10)
    died = lines(run, f"^ended with {KILLED}$", killed)
    check(died, f"{what}: rank {killed} was not killed\n{run.story()}")
    no_crash(run)
    worst = 0
    for rank in survivors:
        check(lines(run, f"^ended with {REMOTE}$", rank), f"{what}: rank {rank} does not end with ncclRemoteError\n{run.story()}")
        heard = lines(run, "ncclRemoteError", rank)[0]
        worst = max(worst, heard.when - died[0].when)
        check(heard.when - died[0].when < limit + SLACK, f"{what}: rank {rank} heard after {heard.when - died[0].when:.1f} s\n{run.story()}")
    check(re.search(REASON, run.err), f"{what}: no reason in the log\n{run.story()}")
    closed_at_once(run, survivors)
    print(f"        {what}: heard after {worst:.2f} s")


def over_all(arguments, killed, survivors, what, env=None):
    """The rank kills itself, as the arguments say."""
    for name, over in OVER.items():
        survives(call(*arguments, env={**over, **(env or {})}), killed, survivors, f"{what}, {name}")


def with_sends_and_receives_in_flight():
    for only in ("ll", "simple"):
        for point in ("sending", "receiving"):
            over_all(["--only", only, *ENDLESS, "--die", f"1@{point}"], 1, [0], f"{only}, while {point}")


def one_of_three():
    over_all(["--pattern", "pairs", "--ranks", "3", *ENDLESS, "--die", "2@sending"], 2, [0, 1], "one of three")


def with_large_messages():
    over_all(["--only", "simple", "--slot", "8M", *ENDLESS, "--die", "1@receiving"], 1, [0], "messages up to 8 MiB")


def on_shared_connections():
    over_all(["--senders", "8", "--slot", "64K", *ENDLESS, "--die", "1@receiving"], 1, [0], "eight senders")


def one_direction_only():
    """Who only sends hears of the receiver's end, and who only receives of the sender's."""
    over_all(["--pattern", "one", *ENDLESS, "--die", "1@receiving"], 1, [0], "the receiver")
    over_all(["--pattern", "one", *ENDLESS, "--die", "0@sending"], 0, [1], "the sender")


def while_idle(flags, killed, survivor, what):
    for name, over in OVER.items():
        run = call(*flags, *ENDLESS, env=over)
        await_line(run, "^idle$", range(2))
        signal_process(ranks_of(run, 2)[killed], signal.SIGKILL)
        survives(run, killed, [survivor], f"{what}, {name}")


def idle_with_receives_posted():
    while_idle(["--silent"], 1, 0, "receives posted on both sides")
    while_idle(["--silent", "--pattern", "one"], 0, 1, "receives posted, the sender")


def with_sends_that_nobody_takes():
    while_idle(["--deaf", "--pattern", "one", "--only", "simple"], 1, 0, "large sends not received")
    while_idle(["--deaf", "--only", "simple"], 1, 0, "large sends not received, of both")


def with_small_sends_that_nobody_takes():
    """The first are away and called done, before the rest waits for a receiver."""
    while_idle(["--deaf", "--pattern", "one", "--only", "ll", "--slot", "256"], 1, 0, "small sends not received")


def a_receiver_while_connecting():
    """It has told where it listens, and is gone before, in, or after accept."""
    for point in ("listening", "accepting", "accepted", "registered"):
        over_all(["--pattern", "one", *ENDLESS, "--die", f"1@{point}"], 1, [0], f"the receiver, {point}")


def a_sender_while_connecting():
    """Before accept has returned there is nobody to be missed: NCCL polls on until the user aborts."""
    for point in ("connecting", "connected", "registered"):
        for name, over in OVER.items():
            run = call("--pattern", "one", *ENDLESS, "--die", f"0@{point}", "--patience", LIMIT + SLACK, env=over)
            run.wait(60)
            no_crash(run)
            if lines(run, f"^ended with {KILLED}$", 0):  # polls may be too few for the point
                check(lines(run, f"^ended with ({REMOTE}|{ABORTED})$", 1), f"the sender, {point}, {name}\n{run.story()}")
            closed_at_once(run, [1])


def while_closing():
    """The survivor may have all it wanted by then."""
    for name, over in OVER.items():
        run = call("--die", "1@closing", "--patience", LIMIT + SLACK, env=over).wait(60)
        no_crash(run)
        closed_at_once(run, [0])
        heard = lines(run, "ncclRemoteError", 0)
        check(not heard or lines(run, f"^ended with {REMOTE}$", 0), f"{name}\n{run.story()}")


def the_log_names_the_address():
    for env in OVER.values():
        run = call(*ENDLESS, "--die", "1@receiving", env=env).wait(60)
        check(re.search(ADDRESS, run.err), f"no peer's address in the log\n{run.story()}")


def a_shorter_limit():
    over_all([*ENDLESS, "--die", "1@receiving"], 1, [0], "GYRE_PEER_TIMEOUT=2", {"GYRE_PEER_TIMEOUT": 2})


subjects([with_sends_and_receives_in_flight, one_of_three, with_large_messages, on_shared_connections, one_direction_only, idle_with_receives_posted,
          with_sends_that_nobody_takes, with_small_sends_that_nobody_takes, a_receiver_while_connecting, a_sender_while_connecting, while_closing,
          a_shorter_limit, the_log_names_the_address])
