"""Two hosts: network namespaces joined by a veth pair. What crosses the link, and what happens when it breaks."""
import re
import signal
import subprocess
import time

from hosts import TwoHosts, ip
from killing import WAITING, WITHIN
from system import Process, Skipped, await_that, built_in, check, needs, perf, right_rows, rows, subjects

MiB = 1 << 20
FLAGS = ["-e", "1M", "-f", "16", "-n", "3", "-w", "1"]
INFO = {"GYRE_LOG": "info"}


def start(at, hosts, *flags, env=None, of=None):
    """A rank on each of these hosts, in order; rank 0 is on the first. `of`: more environment, by rank."""
    place = {"GYRE_SIZE": len(hosts), "GYRE_ROOT": f"{at.addresses[hosts[0]]}:4711", **(env or {})}
    return [at.start(host, [perf(), "all_reduce", *flags], {**place, "GYRE_RANK": rank, **(of or {}).get(rank, {})}) for rank, host in enumerate(hosts)]


def stories(ranks):
    return "\n".join(rank.story() for rank in ranks)


def passes(ranks):
    for rank in ranks:
        rank.wait()
    for rank in ranks:
        rank.passed(quiet=False)
    return right_rows(ranks[0])


def joined(ranks, rank, words):
    check(f"{words}\n" in ranks[rank].err, f"rank {rank} does not say '{words}'\n{stories(ranks)}")


def a_rank_on_each():
    with TwoHosts() as hosts:
        ranks = start(hosts, [0, 1], *FLAGS, env=INFO)
        passes(ranks)
        joined(ranks, 0, "tcp to rank 1")
        joined(ranks, 1, "tcp to rank 0")


def ucx_where_both_ranks_ask_for_it():
    with TwoHosts() as hosts:
        if not built_in("ucx"):
            raise Skipped("built without UCX")
        for asking, taken in (([0, 1], "ucx"), ([0], "tcp"), ([1], "tcp")):
            ranks = start(hosts, [0, 1], *FLAGS, env=INFO, of={rank: {"UCX_TLS": "tcp,self"} for rank in asking})
            passes(ranks)
            joined(ranks, 0, f"{taken} to rank 1")
            joined(ranks, 1, f"{taken} to rank 0")


def two_ranks_on_each():
    with TwoHosts() as hosts:
        for order in ([0, 0, 1, 1], [0, 1, 0, 1]):
            ranks = start(hosts, order, *FLAGS, env=INFO)
            large = passes(ranks)[-1].algorithm
            check(large in ("hierarchical", "leaders", "chained_tree"), f"{large}: no schedule by hosts\n{ranks[0].story()}")
            for rank, host in enumerate(order):
                near = [str(other) for other in range(4) if other != rank and order[other] == host]
                far = [str(other) for other in range(4) if order[other] != host]
                joined(ranks, rank, f"shm to rank {', '.join(near)}")
                joined(ranks, rank, f"tcp to rank {', '.join(far)}")


def a_port_that_a_rank_has_asked_itself():
    """A rank that asks before rank 0 listens may be given rank 0's port for its own end, and so reach itself. Rank 0 still listens there."""
    with TwoHosts() as hosts:
        hosts.start(0, ["sh", "-c", "echo 40000 40003 > /proc/sys/net/ipv4/ip_local_port_range"]).wait()
        job = {"GYRE_SIZE": 2, "GYRE_ROOT": "127.0.0.1:40000"}
        itself = "0100007F:9C40 0100007F:9C40"
        asking = hosts.start(0, [perf(), "all_reduce", *FLAGS], {**job, "GYRE_RANK": 1})

        def reached_itself():
            table = hosts.start(0, ["cat", "/proc/net/tcp"])
            table.wait()
            return itself in table.out

        await_that(reached_itself, "the rank does not reach itself")
        passes([hosts.start(0, [perf(), "all_reduce", *FLAGS], {**job, "GYRE_RANK": 0}), asking])


def bytes_on_the_link(hosts, order, flags, algorithm="ring"):
    before = [hosts.sent(host) for host in range(2)]
    passes(start(hosts, order, *flags, "--algorithm", algorithm))
    return [hosts.sent(host) - before[host] for host in range(2)]


def what_crosses_the_link():
    """Of an all-reduce of S bytes, at least S must leave each host, whatever the schedule; between two ranks not much more than S."""
    flags = ["-b", "4M", "-e", "4M", "-n", "10", "-w", "2"]
    least = 2 * (1 + 2 + 10) * 4 * MiB  # checked, warm-up and timed calls; out of place and in place
    with TwoHosts() as hosts:
        for host, sent in enumerate(bytes_on_the_link(hosts, [0, 1], flags)):
            check(least <= sent <= 1.5 * least, f"2 ranks: host {host} sent {sent} bytes, not {least} to 1.5 times that")
        for host, sent in enumerate(bytes_on_the_link(hosts, [0, 0, 1, 1], flags)):
            # A ring of four sends 2 * 3/4 S over each of its connections, one of which leaves each host.
            check(1.5 * least <= sent <= 1.5 * 1.5 * least, f"4 ranks: host {host} sent {sent} bytes, not 1.5 x {least} to 1.5 times that")


def nothing_crosses_for_ranks_on_one_host():
    with TwoHosts() as hosts:
        sent = bytes_on_the_link(hosts, [0, 0], ["-b", "4M", "-e", "4M", "-n", "5"])
        check(max(sent) < 64 << 10, f"{sent} bytes crossed the link, and both ranks are on one host")


def a_rank_that_is_killed():
    with TwoHosts() as hosts:
        for killed in (1, 2):
            ranks = start(hosts, [0, 0, 1, 1], "-b", "1M", "-e", "1M", "-n", "1000000", "-c", "0")
            await_that(lambda at=ranks: "(elements)" in at[0].out, lambda at=ranks: f"no sweep began\n{stories(at)}")
            time.sleep(0.2)
            ranks[killed].send(signal.SIGKILL)
            begun = time.monotonic()
            living = [rank for rank in ranks if rank is not ranks[killed]]
            await_that(lambda at=living: all(rank.code is not None for rank in at), lambda at=ranks: f"ranks do not end\n{stories(at)}", 15)
            check(time.monotonic() - begun < WITHIN, f"took {time.monotonic() - begun:.1f} s\n{stories(ranks)}")
            for rank in living:
                check(re.search(rf"rank {killed} \(host \S+, pid {ranks[killed].pid}\) is gone.*({WAITING})", rank.failed().err),
                      f"a rank does not name rank {killed}, or not what it waited for\n{stories(ranks)}")


def a_link_that_is_cut():
    with TwoHosts() as hosts:
        ranks = start(hosts, [0, 0, 1, 1], "-b", "1K", "-e", "64M", "-f", "2", "-n", "100")
        await_that(lambda: len(rows(ranks[0].out)) > 2, lambda: f"no sweep began\n{stories(ranks)}")
        hosts.cut()
        begun = time.monotonic()
        await_that(lambda: all(rank.code is not None for rank in ranks), lambda: f"ranks are left without a link\n{stories(ranks)}", 15)
        print(f"        after {time.monotonic() - begun:.1f} s:")
        for number, rank in enumerate(ranks):
            rank.failed()
            print(f"        {rank.err.strip()}")
            check(re.search(rf"^gyre-perf: rank {number}: .*rank \d", rank.err, re.M),
                  f"rank {number} has no clear message\n{stories(ranks)}")


def a_link_that_is_cut_for_a_second():
    """TCP brings what was lost; nobody fails."""
    with TwoHosts() as hosts:
        ranks = start(hosts, [0, 1], "-b", "1K", "-e", "200K", "-i", "1K", "-n", "5")
        await_that(lambda: len(rows(ranks[0].out)) > 2, lambda: f"no sweep began\n{stories(ranks)}")
        hosts.cut()
        time.sleep(1)
        ip("-n", hosts.names[1], "link", "set", hosts.links[1], "up")
        check(len(passes(ranks)) == 200, stories(ranks))


def shm_between_hosts():
    with TwoHosts() as hosts:
        for order in ([0, 1], [0, 0, 1, 1]):
            ranks = start(hosts, order, *FLAGS, env={"GYRE_TRANSPORT": "shm"})
            for number, rank in enumerate(ranks):
                rank.wait(20).complains(f"^gyre-perf: rank {number}: ", "shm does not reach another host",
                                        r"rank \d cannot be joined with rank \d")


def the_same_hostid_on_both():
    """A namespace of its own does not part memory: shm works, and the option says that it may be used."""
    with TwoHosts() as hosts:
        ranks = start(hosts, [0, 1], *FLAGS, env={"GYRE_HOSTID": "one", **INFO})
        passes(ranks)
        joined(ranks, 0, "shm to rank 1")


def different_hostids_on_one_host():
    with TwoHosts() as hosts:
        place = {"GYRE_SIZE": 2, "GYRE_ROOT": "127.0.0.1:4712", **INFO}
        ranks = [Process(["ip", "netns", "exec", hosts.names[0], perf(), "all_reduce", *FLAGS],
                         {**place, "GYRE_RANK": rank, "GYRE_HOSTID": f"host{rank}"}) for rank in range(2)]
        passes(ranks)
        joined(ranks, 0, "tcp to rank 1")


def the_same_hostid_where_memory_is_not_shared():
    """With process numbers of its own, rank 1 cannot open rank 0's memory: auto takes tcp, shm says why not."""
    own_processes = ["unshare", "--pid", "--fork", "--mount-proc"]
    needs("unshare")
    if subprocess.run([*own_processes, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("unshare --pid is not permitted")
    with TwoHosts() as hosts:
        for transport in ("auto", "shm"):
            place = {"GYRE_SIZE": 2, "GYRE_ROOT": f"{hosts.addresses[0]}:4713", "GYRE_HOSTID": "one", "GYRE_TRANSPORT": transport}
            ranks = [Process(["ip", "netns", "exec", hosts.names[rank], *own_processes, perf(), "all_reduce", *FLAGS],
                             {**place, "GYRE_RANK": rank, "GYRE_TIMEOUT": 5}) for rank in range(2)]
            if transport == "auto":
                passes(ranks)
                check("transport tcp," in ranks[0].out, stories(ranks))
            else:
                for number, rank in enumerate(ranks):
                    rank.wait(30).complains(f"^gyre-perf: rank {number}: ", "shm", r"rank \d cannot be joined with rank \d")


subjects([a_rank_on_each, ucx_where_both_ranks_ask_for_it, two_ranks_on_each, a_port_that_a_rank_has_asked_itself, what_crosses_the_link,
          nothing_crosses_for_ranks_on_one_host, a_rank_that_is_killed, a_link_that_is_cut, a_link_that_is_cut_for_a_second, shm_between_hosts, the_same_hostid_on_both,
          different_hostids_on_one_host, the_same_hostid_where_memory_is_not_shared])
