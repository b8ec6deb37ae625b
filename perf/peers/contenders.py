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


def open_mpi(name, ranks, crowded, *settings):
    command = ["mpirun.openmpi", "-n", str(ranks), "--oversubscribe", "--bind-to", "none" if crowded else "core",
               "--mca", "mpi_yield_when_idle", "1" if crowded else "0", "--mca", "coll", "^monitoring", *settings,
               str(PEERS_BUILD / "peer_openmpi")]
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_LOG_LEVEL": "error"}
    return Contender(name, "shm", command, environment)


def mpich(name, ranks, crowded, **environment):
    command = ["mpirun.mpich", "-n", str(ranks), "-bind-to", "none" if crowded else "core", str(PEERS_BUILD / "peer_mpich")]
    return Contender(name, "shm", command + (["--yield"] if crowded else []), {"UCX_LOG_LEVEL": "error", **environment})


def contenders(ranks, gyre, tuned=False):
    """All whose program exists; `gyre`: path of peer_gyre. `tuned` adds the peers' other algorithms."""
    crowded = ranks > os.cpu_count()
    ob1 = ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]
    # "any": Open MPI would otherwise refuse UCX on a machine without RDMA.
    ucx = ["--mca", "pml", "ucx", "--mca", "osc", "^ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
           "-x", f"UCX_TLS={SHM}"]
    found = [
        open_mpi("openmpi-ob1", ranks, crowded, *ob1),
        open_mpi("openmpi-ucx", ranks, crowded, *ucx),
        mpich("mpich", ranks, crowded),
        Contender("gloo", "tcp", [str(PEERS_BUILD / "peer_gloo"), "-n", str(ranks)], {}),
        Contender("gyre", "shm", [str(gyre), "-n", str(ranks)] + ([] if crowded else ["--bind"]), {}),
        Contender("gyre-heap", "shm", [str(gyre), "-n", str(ranks), "--heap"] + ([] if crowded else ["--bind"]), {}),
    ]
    if tuned:
        found += [
            open_mpi("openmpi-ob1-doubling", ranks, crowded, *ob1, *TUNED, "3"),
            open_mpi("openmpi-ob1-rabenseifner", ranks, crowded, *ob1, *TUNED, "6"),
            open_mpi("openmpi-ucx-rabenseifner", ranks, crowded, *ucx, *TUNED, "6"),
            mpich("mpich-scatter-gather", ranks, crowded, MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM="mpir",
                  MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM="reduce_scatter_allgather"),
        ]
    return [c for c in found if os.access(c.program, os.X_OK)]
