"""How each library is started, at its best: the settings that decide whether a comparison is fair live here and nowhere else.

Above the number of CPUs a rank that spins keeps the CPU from the rank it waits for, so every library is asked to yield there: Open MPI
by mpi_yield_when_idle, MPICH by our program's non-blocking calls (its blocking ones never yield), Gloo sleeps in epoll anyway,
gyre decides for itself. Up to the number of CPUs ranks are bound, except Gloo's: its loop threads would share their rank's CPU.
"""
import dataclasses
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS_BUILD = ROOT / "perf" / "peers" / "build"
SHM = "posix,sysv,cma,self"
# coll/tuned's numbers: 3 recursive doubling, 6 Rabenseifner
TUNED = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm"]


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    transport: str
    command: list
    environment: dict

    @property
    def program(self):
        """Our program: the last word of the command that is a path of ours."""
        return next(word for word in reversed(self.command) if pathlib.Path(word).name.startswith("peer_"))


def open_mpi(name, transport, ranks, crowded, *settings):
    command = ["mpirun.openmpi", "-n", str(ranks), "--oversubscribe", "--bind-to", "none" if crowded else "core",
               "--mca", "mpi_yield_when_idle", "1" if crowded else "0", "--mca", "coll", "^monitoring", *settings,
               str(PEERS_BUILD / "peer_openmpi")]
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_LOG_LEVEL": "error"}
    return Contender(name, transport, command, environment)


def mpich(name, transport, ranks, crowded, **environment):
    command = ["mpirun.mpich", "-n", str(ranks), "-bind-to", "none" if crowded else "core", str(PEERS_BUILD / "peer_mpich")]
    return Contender(name, transport, command + (["--yield"] if crowded else []), {"UCX_LOG_LEVEL": "error", **environment})


def ours(name, program, transport, ranks, bind, *settings, **environment):
    """Programs that start their ranks themselves."""
    return Contender(name, transport, [str(program), "-n", str(ranks), *settings] + (["--bind"] if bind else []), environment)


# "any": Open MPI would otherwise refuse UCX on a machine without RDMA.
OPEN_MPI_UCX = ["--mca", "pml", "ucx", "--mca", "osc", "^ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]


def over_shm(ranks, gyre, crowded):
    return [
        open_mpi("openmpi-ob1", "shm", ranks, crowded, "--mca", "pml", "ob1", "--mca", "btl", "vader,self"),
        open_mpi("openmpi-ucx", "shm", ranks, crowded, *OPEN_MPI_UCX, "-x", f"UCX_TLS={SHM}"),
        mpich("mpich", "shm", ranks, crowded),
        ours("ucc", PEERS_BUILD / "peer_ucc", "shm", ranks, not crowded, *(["--yield"] if crowded else []), UCX_TLS=SHM),
        ours("gyre", gyre, "shm", ranks, not crowded),
        ours("gyre-heap", gyre, "shm", ranks, not crowded, "--heap"),
    ]


def over_tcp(ranks, gyre, crowded):
    """By the loopback interface, as if every rank had a host of its own."""
    ucx = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
    exported = [word for name, value in ucx.items() for word in ("-x", f"{name}={value}")]
    return [
        open_mpi("openmpi-ob1", "tcp", ranks, crowded, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"),
        open_mpi("openmpi-ucx", "tcp", ranks, crowded, *OPEN_MPI_UCX, *exported),
        mpich("mpich", "tcp", ranks, crowded, MPIR_CVAR_NOLOCAL="1", **ucx),
        ours("ucc", PEERS_BUILD / "peer_ucc", "tcp", ranks, not crowded, *(["--yield"] if crowded else []), **ucx),
        ours("gloo", PEERS_BUILD / "peer_gloo", "tcp", ranks, False),
        ours("gyre", gyre, "tcp", ranks, not crowded, GYRE_TRANSPORT="tcp"),
    ]


def bounds():
    """What an all-reduce between 2 ranks on mapped memory costs at least (peer_bound.cpp)."""
    program = PEERS_BUILD / "peer_bound"
    found = [ours("bound-mapped", program, "shm", 2, True), ours("bound-touched", program, "shm", 2, True, "--touched")]
    return [c for c in found if os.access(c.program, os.X_OK)]


def contenders(ranks, gyre, tuned=False, transport=None):
    """All whose program exists; `gyre`: path of peer_gyre. `tuned` adds the peers' other algorithms; no transport: shared memory, and
    Gloo, which has only tcp."""
    crowded = ranks > os.cpu_count()
    found = over_tcp(ranks, gyre, crowded) if transport == "tcp" else over_shm(ranks, gyre, crowded)
    if transport is None:
        found.insert(3, next(c for c in over_tcp(ranks, gyre, crowded) if c.name == "gloo"))
    if tuned:
        ob1 = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]
        ucx = [*OPEN_MPI_UCX, "-x", f"UCX_TLS={SHM}"]
        found += [
            open_mpi("openmpi-ob1-doubling", "shm", ranks, crowded, *ob1, *TUNED, "3"),
            open_mpi("openmpi-ob1-rabenseifner", "shm", ranks, crowded, *ob1, *TUNED, "6"),
            open_mpi("openmpi-ucx-rabenseifner", "shm", ranks, crowded, *ucx, *TUNED, "6"),
            mpich("mpich-scatter-gather", "shm", ranks, crowded, MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM="mpir",
                  MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM="reduce_scatter_allgather"),
        ]
    return [c for c in found if os.access(c.program, os.X_OK)]
