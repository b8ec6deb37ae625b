"""A program written for NCCL whose ranks are processes with a GPU each, one of the host's threads, by gyre alone: they reach each other's
GPU memory as by CUDA's IPC. The library that is loaded before it is gyre's, on such GPUs."""
import os
import pathlib
import signal
import tempfile

from system import Process, check, perf, subjects

LIBRARY, FAKE = os.environ["TEST_NCCL_LIBRARY"], os.environ["TEST_FAKE_NCCL"]


def run(story, ranks, **env):
    """The loader wants a libnccl.so.2, which is never called."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libnccl.so.2").symlink_to(FAKE)
        env = {"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": folder, "GYRE_NCCL": "off", "GYRE_LOG": "info", **env}
        started = [Process([perf(), story, rank, ranks, f"{folder}/id"], env) for rank in range(ranks)]
        for process in started:
            process.wait()
        return started


def sums_and_messages_of_gpu_memory():
    for ranks in (2, 4):
        for env in ({}, {"NCCL_P2P_DISABLE": "1"}):
            for rank, process in enumerate(run("works", ranks, **env)):
                check(process.code == 0, f"rank {rank} of {ranks}, {env}: {process.code}: {process.err}")


def a_killed_rank_is_named_and_left_behind():
    for ranks in (2, 4):
        for rank, process in enumerate(run("killed", ranks)):
            wanted = -signal.SIGKILL if rank == 1 else 0
            check(process.code == wanted, f"rank {rank} of {ranks}: {process.code}: {process.err}")
            # Whoever has seen it first gives the communicator up, of which the others may hear before: with the cause.
            check(rank == 1 or "rank 1" in process.out, f"rank {rank} does not name who died: {process.out}")


subjects([sums_and_messages_of_gpu_memory, a_killed_rank_is_named_and_left_behind])
