#!/usr/bin/env python3
"""A rank of a DistributedDataParallel training dies in the middle: the others end by themselves, soon, with an error, and say which has died.

    LD_PRELOAD=build/plugin/libgyre-nccl.so GYRE_NCCL=off test/gpu/torch_killed.py RANKS
"""
import os
import pathlib
import signal
import sys
import tempfile
import time

import torch
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import torch_ranks

DIES, AT_STEP, STEPS, LIMIT_S = 1, 10, 100_000, 60


def train(rank, ranks, port, said):
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    torch_ranks.join_job(rank, ranks, port)
    network = DistributedDataParallel(torch_ranks.model(), device_ids=[0])
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for step, (inputs, wanted) in enumerate(torch_ranks.batches(rank, ranks, STEPS)):
        if (rank, step) == (DIES, AT_STEP):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(network(inputs), wanted).backward()
        optimizer.step()
        torch.cuda.synchronize()  # which a held stream keeps waiting, until PyTorch's watchdog ends the process
    sys.exit(0)


def what_is_wrong(processes, said):
    """Of the ranks that live on; they are ended here where they don't end."""
    until = time.monotonic() + LIMIT_S
    wrong = []
    for rank, process in enumerate(processes):
        process.join(max(0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            wrong.append(f"rank {rank} has not ended in {LIMIT_S} s")
        elif rank == DIES and process.exitcode != -signal.SIGKILL or rank != DIES and process.exitcode == 0:
            wrong.append(f"rank {rank} ended with {process.exitcode}")
    if not any(f"rank {DIES}" in text.read_text(errors="replace") for rank, text in enumerate(said) if rank != DIES):
        wrong.append(f"nobody names rank {DIES}")
    return wrong


def main():
    ranks = int(sys.argv[1])
    if ranks < 2:
        sys.exit("two ranks at least: one dies")
    with tempfile.TemporaryDirectory() as folder:
        said = [pathlib.Path(folder, f"rank{rank}") for rank in range(ranks)]
        port, begun = torch_ranks.free_port(), time.monotonic()
        processes = [mp.get_context("spawn").Process(target=train, args=(rank, ranks, port, str(said[rank]))) for rank in range(ranks)]
        for process in processes:
            process.start()
        wrong = what_is_wrong(processes, said)
        for text in said if wrong else []:
            print(text.read_text(errors="replace"))
        print(f"killed, {ranks} ranks: {'; '.join(wrong) or 'ok'} ({time.monotonic() - begun:.1f} s)")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
