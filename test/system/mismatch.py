"""Ranks that do not call the same: each is told within 5 s which rank differs in what."""
import re

from system import COLLECTIVES, ROOTED, await_that, check, free_port, right_rows, sampled, start_rank, subjects, transports, within

WITHIN = within(5)
ONE_WAY = [*ROOTED, "sendrecv"]  # a rank may only send
SAME = ["-e", "64K", "-n", "3", "-w", "1"]


def start_all(flags, env):
    """A rank for each list of flags, which may begin with a collective."""
    port = free_port()
    ranks = []
    for rank, given in enumerate(flags):
        named = given[0] in COLLECTIVES
        ranks.append(start_rank(rank, len(flags), port, *given[named:], env=env, collective=given[0] if named else "all_reduce"))
    return ranks


def stories(ranks):
    return "\n".join(rank.story() for rank in ranks)


def all_end(ranks):
    await_that(lambda: all(rank.code is not None for rank in ranks), lambda: f"not all ranks have ended\n{stories(ranks)}", 2 * WITHIN)
    for rank in ranks:
        rank.wait()


def all_are_told(flags, env, *patterns, wording="calls differ"):
    ranks = start_all(flags, env)
    all_end(ranks)
    for number, rank in enumerate(ranks):
        rank.complains(f"^gyre-perf: rank {number}: ", wording, *patterns)
        check(rank.seconds < WITHIN, f"took {rank.seconds:.1f} s\n{stories(ranks)}")


def one_size(size):
    return ["-b", size, "-e", size, "-n", "3", "-w", "1"]


def everywhere(different, *patterns, same=SAME, **how):
    """One rank of 2, 3 and 4 calls something else; the patterns may hold {rank}, the one that differs."""
    for env in transports().values():
        for size in sampled((3, 2, 4)):
            odd = size - 1
            flags = [different if rank == odd else same for rank in range(size)]
            all_are_told(flags, env, *(pattern.format(rank=odd) for pattern in patterns), **how)


def sizes():
    everywhere(one_size("16"), "rank {rank} has count=4", "ha(s|ve) count=2", "type=float", same=one_size("8"))


def numbers_of_sizes():
    """Found before the first call: one rank would make calls that the other never makes."""
    everywhere(["-b", "16", *SAME], "rank [1-3] has -b (16|8), rank 0 has (8|16)", "rows 1[34]")


def types():
    everywhere(["-d", "int32", *SAME], "rank {rank} has type=int32", "ha(s|ve) type=float")


def operations():
    everywhere(["-o", "max", *SAME], "rank {rank} has op=max", "ha(s|ve) op=sum")


def algorithms():
    """Found when they join: what moves data one way may never notice."""
    everywhere(["--algorithm", "ring", *SAME], "rank {rank} has GYRE_ALGORITHM=ring, rank 0 has auto", wording="ranks differ")


def collectives():
    for env in transports().values():
        for one, other in zip(COLLECTIVES, COLLECTIVES[1:] + COLLECTIVES[:1]):
            all_are_told([[one, *SAME], [other, *SAME]], env, f"rank 1 has collective {other}, rank 0 has {one}")
        all_are_told([["gather", *SAME], ["gather", *SAME], ["scatter", *SAME]], env, "rank 2 has collective scatter, rank 0 has gather")


def roots():
    for env in transports().values():
        for collective in ROOTED:
            all_are_told([[collective, "-r", "1", *SAME], [collective, *SAME]], env, "rank 1 has -r 0, rank 0 has 1")
            all_are_told([[collective, *SAME], [collective, *SAME], [collective, "-r", "all", *SAME]], env, "rank 2 has -r all, rank 0 has 0")


def counts_of_every_collective():
    """Where every rank hears from others in each call, the engine finds it; else the ranks compare beforehand."""
    for env in transports().values():
        for collective in COLLECTIVES:
            told = (["rank 1 has -b 96, rank 0 has 48"] if collective in ONE_WAY else ["rank 1 has count=", "rank 0 (has|have) count="])
            all_are_told([[collective, *one_size("48")], [collective, *one_size("96")]], env, *told)


def types_and_operations_of_what_has_a_root():
    for env in transports().values():
        all_are_told([["broadcast", *SAME], ["broadcast", "-d", "int32", *SAME]], env, "rank 1 has -d int32, rank 0 has float")
        all_are_told([["reduce", *SAME], ["reduce", "-o", "max", *SAME]], env, "rank 1 has -o max, rank 0 has sum")


def large_sizes():
    """Of which neither fits the slots of a connection."""
    for env in transports().values():
        all_are_told([["-b", "8M", "-e", "8M", "-n", "3"], ["-b", "16M", "-e", "16M", "-n", "3"]], env,
                     "rank 0 has count=2097152", "rank 1 has count=4194304")


def rank_0_alone_differs():
    for env in transports().values():
        all_are_told([["-o", "min", *SAME], SAME, SAME], env, "rank 0 has op=min", "ranks 1 and 2 have op=sum|ranks 1, 2 have op=sum")


def all_differ_and_in_everything():
    for env in transports().values():
        all_are_told([one_size("8"), [*one_size("16"), "-d", "int32"], [*one_size("32"), "-o", "max"]], env,
                     "rank 0 has count=2 type=float op=sum", "rank 1 has count=4 type=int32 op=sum", "rank 2 has count=8 type=float op=max")


def number_of_calls():
    """The ranks agree on each call, but one makes more of them; the others are in none, or in a later one."""
    for env in transports().values():
        ranks = start_all([["-b", "8", "-e", "8", "-n", "3"], ["-b", "8", "-e", "8", "-n", "5"]], env)
        all_end(ranks)
        for number, rank in enumerate(ranks):
            rank.complains(f"^gyre-perf: rank {number}: ", "rank [01] ")
            check(re.search("call|left", rank.err), f"says nothing about calls\n{stories(ranks)}")


def what_decides_the_number_of_calls():
    """Found before the first call: by -n alone as many would not be made."""
    for flag, one, other in (("-n", 3, 5), ("-w", 1, 2), ("-c", 1, 2), ("-m", 2, 3), ("-N", 1, 0), ("-z", 1, 3), ("-I", 0, 1),
                             ("--time-limit", 50, 60)):
        shared = ["-b", "8", "-e", "8"]
        all_are_told([[*shared, flag, one], [*shared, flag, other], [*shared, flag, one]], {"GYRE_TRANSPORT": "shm"},
                     f"rank 1 has {flag} {other}, rank 0 has {one}")
    all_are_told([SAME, [*SAME, "--time-limit", 50]], {"GYRE_TRANSPORT": "shm"}, "rank 1 has --time-limit 50, rank 0 has none")


def number_of_sizes():
    """One rank is through and leaves while the other goes on."""
    for env in transports().values():
        ranks = start_all([["-b", "8", "-e", "8", "-n", "3"], ["-b", "8", "-e", "16", "-n", "3"]], env)
        all_end(ranks)
        check(any(rank.code != 0 for rank in ranks), f"nobody minds\n{stories(ranks)}")
        for rank in ranks:
            if rank.code != 0:
                rank.complains("rank [01] ")


def what_may_differ():
    """Timeouts and the level of the log are each rank's own."""
    for env in transports().values():
        port = free_port()
        ranks = [start_rank(rank, 2, port, *SAME, env={"GYRE_TIMEOUT": 20 + rank, "GYRE_LOG": ("error", "warn")[rank], **env})
                 for rank in range(2)]
        for rank in ranks:
            rank.wait().passed()
        right_rows(ranks[0])


subjects([collectives, roots, counts_of_every_collective, types_and_operations_of_what_has_a_root, sizes, numbers_of_sizes, types,
          operations, algorithms, large_sizes, rank_0_alone_differs, all_differ_and_in_everything, number_of_calls, what_decides_the_number_of_calls, number_of_sizes,
          what_may_differ])
