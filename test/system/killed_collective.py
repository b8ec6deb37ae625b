"""A rank that is killed in any collective: the others end within 5 s and say who died and what they waited for; nothing is left."""
from killing import LARGER, SMALL, kill_one
from system import COLLECTIVES, ROOTED, Skipped, subjects, transports


def root(collective):
    return ["-r", "1"] if collective in ROOTED else []


def over(name):
    """The root in half of the collectives, another rank in the others: in large and in small calls in turn."""
    if name not in transports():
        raise Skipped("built without UCX")
    for number, collective in enumerate(COLLECTIVES[1:]):
        killed, size = ((1, LARGER), (2, SMALL))[number % 2]
        kill_one(3, [*size, *root(collective)], transports()[name], killed, collective)


def over_shm():
    """Each collective both ways."""
    for collective in COLLECTIVES[1:]:
        for killed, size in ((1, LARGER), (2, SMALL)):
            kill_one(3, [*size, *root(collective)], transports()["shm"], killed, collective)
    straight = {**transports()["shm"], "GYRE_ATTACH": "2"}  # two ranks that read each other's buffers
    for collective, *roots in (["all_gather", 0], ["alltoall", 0], *([rooted, 0, 1] for rooted in ("broadcast", "scatter", "gather"))):
        for taken in roots:
            kill_one(2, ["-b", "2M", "-e", "2M", "-n", "1000000", "-c", "0", "-r", taken], straight, 1, collective)


def where_ranks_reach_each_others_memory():
    """All buffers in the shared heap, which each rank has mapped; large and small ones in turn."""
    for number, collective in enumerate([*COLLECTIVES, "all_reduce"]):
        killed, size = ((1, "16M"), (2, "64K"))[number % 2]
        kill_one(3, ["-b", size, "-e", size, "-n", "1000000", "-c", "0", "-R", "1", *root(collective)], transports()["shm"], killed, collective)


def on_several_communicators():
    for env in transports().values():
        kill_one(3, ["-b", "2M", "-e", "2M", "-n", "1000000", "-c", "0", "--communicators", "3"], env, 1)


def over_tcp():
    over("tcp")


def over_ucx_tcp():
    over("ucx over tcp")


def over_ucx_shared_memory():
    over("ucx over shared memory")


subjects([over_shm, where_ranks_reach_each_others_memory, on_several_communicators, over_tcp, over_ucx_tcp, over_ucx_shared_memory])
