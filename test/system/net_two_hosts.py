"""The plugin between two hosts: network namespaces joined by a veth pair. Traffic, a link that is cut, and one that is cut for a second."""
import time

from hosts import TwoHosts, ip
from net_calling import ENDLESS, REMOTE, await_line, closed_at_once, lines, mailbox, no_crash, plugin
from system import await_that, check, perf, subjects

LIMIT, SLACK = 5, 3  # seconds: GYRE_PEER_TIMEOUT's default, and what a busy machine adds
# What UCX takes may be memory that the two hosts have in common, and then the link is needed for what connections say of themselves alone.
TLS = {"tcp": {"UCX_TLS": "tcp,self"}, "whatever UCX takes": {}}


def stories(ranks):
    return "\n".join(rank.story() for rank in ranks)


def ranks_on(hosts, box, *flags, env=None):
    """A rank on each host."""
    return [hosts.start(host, [perf(), plugin(), "--rank", host, "--mailbox", box, *flags], env) for host in range(2)]


def a_rank_on_each():
    """What UCX takes by itself may be the memory of the machine, which the two have in common."""
    for name, env in TLS.items():
        with TwoHosts() as hosts, mailbox() as box:
            before = hosts.sent(0)
            ranks = ranks_on(hosts, box, "--senders", "2", env=env)
            for rank in ranks:
                rank.wait()
            check(all(rank.code == 0 and rank.err == "" for rank in ranks), stories(ranks))
            check(name != "tcp" or hosts.sent(0) - before > 1 << 20, f"only {hosts.sent(0) - before} bytes crossed the link\n{stories(ranks)}")


def cut(what, *flags, awaited="messages"):
    for name, env in TLS.items():
        with TwoHosts() as hosts, mailbox() as box:
            ranks = ranks_on(hosts, box, *flags, *ENDLESS, env=env)
            for number, rank in enumerate(ranks):
                await_line(rank, awaited, [number])
            hosts.cut()
            begun = time.clock_gettime(time.CLOCK_MONOTONIC)
            await_that(lambda: all(rank.code is not None for rank in ranks), lambda: f"{what}, {name}: left\n{stories(ranks)}", 60)
            worst = 0
            for number, rank in enumerate(ranks):
                no_crash(rank)
                check(rank.code == REMOTE, f"{what}, {name}: rank {number} ended with {rank.code}\n{stories(ranks)}")
                worst = max(worst, lines(rank, "ncclRemoteError", number)[0].when - begun)
                check("WARN" in rank.err, f"{what}, {name}: rank {number} says nothing\n{rank.story()}")
                closed_at_once(rank, [number])
            check(worst < LIMIT + SLACK, f"{what}, {name}: heard after {worst:.1f} s\n{stories(ranks)}")
            print(f"        {what}, {name}: heard after {worst:.2f} s")


def a_link_that_is_cut_in_large_messages():
    cut("large", "--only", "simple")


def a_link_that_is_cut_in_small_messages():
    cut("small", "--only", "ll")


def a_link_that_is_cut_while_idle():
    cut("idle", "--silent", awaited="^idle$")


def the_log_names_the_address():
    with TwoHosts() as hosts, mailbox() as box:
        ranks = ranks_on(hosts, box, *ENDLESS, env=TLS["tcp"])
        for number, rank in enumerate(ranks):
            await_line(rank, "messages", [number])
        hosts.cut()
        for number, rank in enumerate(ranks):
            rank.wait()
            check(hosts.addresses[1 - number] in rank.err, f"rank {number} does not name the peer's address\n{rank.story()}")


def a_link_that_is_cut_for_a_second():
    """TCP brings what was lost; nobody fails."""
    with TwoHosts() as hosts, mailbox() as box:
        ranks = ranks_on(hosts, box, *ENDLESS, env=TLS["tcp"])
        for number, rank in enumerate(ranks):
            await_line(rank, "messages", [number])
        hosts.cut()
        time.sleep(1)
        ip("-n", hosts.names[1], "link", "set", hosts.links[1], "up")
        said = [len(lines(rank, "messages")) for rank in ranks]
        await_that(lambda: all(len(lines(rank, "messages")) > said[i] + 3 or rank.code is not None for i, rank in enumerate(ranks)),
                   lambda: f"does not go on\n{stories(ranks)}")
        check(all(rank.code is None and rank.err == "" for rank in ranks), stories(ranks))


subjects([a_rank_on_each, a_link_that_is_cut_in_large_messages, a_link_that_is_cut_in_small_messages, a_link_that_is_cut_while_idle, the_log_names_the_address,
          a_link_that_is_cut_for_a_second])
