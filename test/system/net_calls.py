"""NCCL's calls, in its order, over every table of the plugin, from all numbers of ranks, and all data right."""
import signal

from net_calling import ABORTED, ENDLESS, OVER, REMOTE, all_right, await_line, call, closed_at_once, no_crash, ranks_of
from system import check, sampled, signal_process, subjects


def every_table():
    for env in OVER.values():
        for table in sampled(range(12, 4, -1)):
            all_right(call("--table", table, "--rounds", "2", env=env).wait(), 2)


def rings_and_pairs():
    for env in OVER.values():
        for pattern in ("ring", "pairs"):
            for ranks in sampled((3, 2, 5, 8)):
                slot = "1M" if ranks < 5 else "64K"
                all_right(call("--pattern", pattern, "--ranks", ranks, "--slot", slot, "--operations", "4", env=env).wait(120), ranks)


def one_rank_to_itself():
    """Both ends are made by one thread, and used by another."""
    for env in OVER.values():
        all_right(call("--ranks", "1", "--channels", "3", env=env).wait(), 1)


def shared_connections():
    """Several senders on one connection, told apart by tags; receives in groups."""
    for env in OVER.values():
        for senders in sampled((5, 2, 8)):
            all_right(call("--senders", senders, "--slot", "256K", "--ranks", "3", env=env).wait(), 3)


def several_communicators_and_channels():
    for env in OVER.values():
        for table in (10, 12):
            all_right(call("--table", table, "--contexts", "3", "--channels", "2", "--rounds", "2", env=env).wait(), 2)


def many_channels():
    for env in OVER.values():
        all_right(call("--channels", "64", "--slot", "64K", "--operations", "2", env=env).wait(120), 2)


def large_slots():
    for env in OVER.values():
        all_right(call("--slot", "8M", "--only", "simple", env=env).wait(), 2)


def an_abort_in_mid_traffic():
    """Ranks are told to end, one after the other: they close with everything under way. Who still runs may see that the other has gone."""
    for env in OVER.values():
        for only in ("ll", "simple"):
            run = call("--pattern", "pairs", "--ranks", "3", "--only", only, *ENDLESS, env=env)
            await_line(run, "messages", range(3))
            for pid in ranks_of(run, 3):
                signal_process(pid, signal.SIGTERM)
            run.wait(20)
            check(run.code in (ABORTED, REMOTE), f"exit code {run.code}\n{run.story()}")
            no_crash(run)
            closed_at_once(run, range(3))


subjects([every_table, rings_and_pairs, one_rank_to_itself, shared_connections, several_communicators_and_channels, many_channels, large_slots,
          an_abort_in_mid_traffic])
