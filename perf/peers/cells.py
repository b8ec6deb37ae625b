"""What `compare-all` measures: groups of calls that differ in size only. A group is one run of each contender's program."""
import dataclasses
import os

OPS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
HALVES = ("float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Group:
    op: str
    type: str
    ranks: int
    transport: str
    sizes: tuple
    only_ours: bool = False  # what gyre's other types are compared with, at as many elements

    def key(self):
        return {"op": self.op, "type": self.type, "ranks": self.ranks, "transport": self.transport, "only_ours": self.only_ours}


def sizes(least, most, factor):
    """By the factor, and the largest whatever the factor."""
    found = []
    while least < most:
        found.append(least)
        least *= factor
    return tuple(found) + (most,)


def largest(limits, op, ranks, transport):
    """All-reduce has a limit of its own; more ranks than CPUs lower it, and tcp between those once more."""
    most = limits.largest if op == "all_reduce" else limits.largest_other
    if ranks > (os.cpu_count() or 1):
        most = min(most, limits.largest_crowded_tcp if transport == "tcp" else limits.largest_crowded)
    return most


def groups(limits):
    """All of them, in the order of a round. `limits`: the options of compare-all."""
    found = []
    for ranks in limits.ranks:
        for transport in limits.transports:
            for op in limits.ops:
                most = largest(limits, op, ranks, transport)
                factor = limits.factor if op == "all_reduce" else limits.factor_other
                found.append(Group(op, "float32", ranks, transport, sizes(8, most, factor)))
            if "all_reduce" not in limits.ops:
                continue
            most = min(limits.largest_other, largest(limits, "all_reduce", ranks, transport))
            halves = sizes(128, most // 2, limits.factor_other)
            found.append(Group("all_reduce", "float32", ranks, transport, tuple(2 * size for size in halves), only_ours=True))
            found += [Group("all_reduce", kind, ranks, transport, halves) for kind in HALVES]
    return found
