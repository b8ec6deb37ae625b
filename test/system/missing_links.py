"""Hosts of which not all reach each other: those that do pass on what the others send each other, or say what can't be done."""
import re

from hosts import Star
from system import check, perf, right_rows, subjects

SPOKES = 3
FLAGS = ["-b", "1K", "-e", "1M", "-f", "32", "-n", "2", "-w", "1"]


def sweep(star, *flags, env=None):
    ranks = [star.start(host, [perf(), *flags], {"GYRE_SIZE": SPOKES + 1, "GYRE_RANK": host, "GYRE_ROOT": f"{star.hub[host]}:4711",
                                                 "GYRE_TIMEOUT": 2, **(env or {})}) for host in range(SPOKES + 1)]
    for rank in ranks:
        rank.wait()
    return ranks


def passes(ranks):
    for rank in ranks:
        rank.passed(quiet=False)
    check(len(right_rows(ranks[0])) == 3, ranks[0].story())


def collectives_have_relays():
    with Star(SPOKES + 1) as star:
        for collective in ("all_reduce", "all_gather", "broadcast", "gather"):
            ranks = sweep(star, collective, *FLAGS)
            passes(ranks)
            check("cannot be joined" not in ranks[0].err, ranks[0].story())
            for spoke in range(1, SPOKES + 1):
                other = min({1, 2, 3} - {spoke})
                check(re.search(rf"warning: rank {spoke} cannot be joined with rank {other} \(transport auto\): .*, and not with 1 more; in collectives",
                                ranks[spoke].err), ranks[spoke].story())


def an_algorithm_that_needs_what_is_missing():
    """A ring goes by the hub, and so do sums in the order of ranks."""
    with Star(SPOKES + 1) as star:
        for env in ({"GYRE_ALGORITHM": "ring"}, {"GYRE_NUMERICS": "ordered"}):
            ranks = sweep(star, "all_reduce", *FLAGS, env=env)
            passes(ranks)
            if "GYRE_ALGORITHM" in env:
                check(all(row.algorithm == "ring" for row in right_rows(ranks[0])), ranks[0].story())


def what_can_not_be_relayed():
    with Star(SPOKES + 1) as star:
        for collective, spoke, why in (("alltoall", 0, r"no algorithm has alltoall for 4 ranks; naive: no way from rank [123] to rank [123]"),
                                       ("sendrecv", 1, r"exchange: transfer \d \((to|from) rank [123]\): this rank is not joined with it")):
            for rank in sweep(star, collective, *FLAGS)[spoke:]:
                rank.failed()
                check(re.search(why, rank.err), rank.story())


subjects([collectives_have_relays, an_algorithm_that_needs_what_is_missing, what_can_not_be_relayed])
