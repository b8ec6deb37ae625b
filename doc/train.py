#!/usr/bin/env python3
"""Trains a small network on several ranks, as DistributedDataParallel does: each computes on its part of the batch, and the gradients are
summed by gyre. The losses are those of one rank within TOLERANCE, since sums of floats depend on their order.

    doc/train.py --ranks 4      # no GPU, no PyTorch: Python's numbers, by NCCL's interface on host memory
    LD_PRELOAD=$PWD/build/plugin/libgyre-nccl.so GYRE_NCCL=off torchrun --nproc-per-node 2 doc/train.py     # PyTorch, on a GPU
"""
import argparse
import ctypes
import math
import os
import pathlib
import random
import subprocess
import sys

TOLERANCE = 1e-3  # of a loss, relative
STEPS, SHOWN, BATCH, HIDDEN, RATE = 200, 20, 40, 8, 0.2
FLOAT32, SUM = 7, 0  # ncclDataType_t, ncclRedOp_t

numbers = random.Random(1)  # the same on all ranks
DATA = [(a, b, math.sin(3 * a) * b) for a, b in ((numbers.uniform(-1, 1), numbers.uniform(-1, 1)) for _ in range(BATCH))]
INITIAL = [numbers.gauss(0, 0.5) for _ in range(4 * HIDDEN + 1)]  # HIDDEN rows of two weights and a bias; weights of the output, its bias


class Gyre:
    """NCCL's functions on memory of the host. A program for GPUs differs in where its buffers lie."""

    class Id(ctypes.Structure):
        _fields_ = [("internal", ctypes.c_char * 128)]

    def __init__(self, library):
        os.environ.update(GYRE_NCCL="off", GYRE_DEVICE="host")
        try:
            self.nccl = ctypes.CDLL(library)
        except OSError as error:
            sys.exit(f"{error}: build it (./setup), or say where it is (--library)")
        self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        self.comm = ctypes.c_void_p()

    def call(self, name, *arguments):
        if getattr(self.nccl, name)(*arguments) != 0:
            sys.exit(f"{name}: {self.nccl.ncclGetLastError(None).decode()}")

    def new_id(self):
        made = self.Id()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)

    def join(self, ranks, made, rank):
        self.call("ncclCommInitRank", ctypes.byref(self.comm), ranks, self.Id.from_buffer_copy(made), rank)

    def sum(self, values):
        """Over all ranks, in place, as DistributedDataParallel's buckets."""
        data = (ctypes.c_float * len(values))(*values)
        if self.comm:
            self.call("ncclAllReduce", data, data, ctypes.c_size_t(len(values)), FLOAT32, SUM, self.comm, None)
        return list(data)

    def leave(self):
        if self.comm:
            self.call("ncclCommDestroy", self.comm)


def gradient(parameters, samples):
    """Of half the squared error, summed over the samples; the error's sum is last."""
    sums = [0.0] * (len(parameters) + 1)
    out = 3 * HIDDEN  # where the output's weights begin
    for a, b, wanted in samples:
        hidden = [math.tanh(parameters[3 * h] * a + parameters[3 * h + 1] * b + parameters[3 * h + 2]) for h in range(HIDDEN)]
        error = sum(parameters[out + h] * hidden[h] for h in range(HIDDEN)) + parameters[out + HIDDEN] - wanted
        for h in range(HIDDEN):
            back = error * parameters[out + h] * (1 - hidden[h] ** 2)
            for i, part in enumerate((back * a, back * b, back)):
                sums[3 * h + i] += part
            sums[out + h] += error * hidden[h]
        sums[out + HIDDEN] += error
        sums[-1] += error ** 2 / 2
    return sums


def show(step, loss):
    print(f"step {step}: loss {loss:.6f}", flush=True)


def train(gyre, rank, ranks):
    parameters = list(INITIAL)
    for step in range(1, STEPS + 1):
        *gradients, loss = gyre.sum(gradient(parameters, DATA[rank::ranks]))
        parameters = [p - RATE * g / BATCH for p, g in zip(parameters, gradients)]
        if rank == 0 and step % SHOWN == 0:
            show(step, loss / BATCH)
    gyre.leave()


def train_with_torch(rank, ranks):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group("nccl")
    model = torch.nn.Sequential(torch.nn.Linear(2, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1)).cuda()
    with torch.no_grad():
        rows, out = torch.tensor(INITIAL[:3 * HIDDEN]).view(HIDDEN, 3), torch.tensor(INITIAL[3 * HIDDEN:])
        for parameter, value in zip(model.parameters(), (rows[:, :2], rows[:, 2], out[None, :-1], out[-1:])):
            parameter.copy_(value)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    samples = torch.tensor(DATA[rank::ranks]).cuda()
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = ((model(samples[:, :2]) - samples[:, 2:]) ** 2).sum() / 2 / BATCH
        (ranks * loss).backward()  # DistributedDataParallel divides by the ranks
        optimizer.step()
        dist.all_reduce(loss := loss.detach())
        if rank == 0 and step % SHOWN == 0:
            show(step, loss.item())
    dist.destroy_process_group()


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "build/plugin/libgyre-nccl.so"
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, default=2, help=f"processes on this machine, 1 to {BATCH}")
    parser.add_argument("--library", default=str(default), help="libgyre-nccl.so")
    parser.add_argument("--join", nargs=2, metavar=("RANK", "ID"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if "LOCAL_RANK" in os.environ:  # torchrun
        return train_with_torch(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    if not 1 <= given.ranks <= BATCH:
        parser.error(f"--ranks {given.ranks}: 1 to {BATCH} ranks can share a batch of {BATCH}")
    gyre = Gyre(given.library)
    if given.join:
        rank = int(given.join[0])
        gyre.join(given.ranks, bytes.fromhex(given.join[1]), rank)
        return train(gyre, rank, given.ranks)
    others = []
    if given.ranks > 1:  # this process is rank 0, whose id it must be
        made = gyre.new_id()
        command = [sys.executable, __file__, "--ranks", str(given.ranks), "--library", given.library, "--join"]
        others = [subprocess.Popen([*command, str(rank), made.hex()]) for rank in range(1, given.ranks)]
        gyre.join(given.ranks, made, 0)
    train(gyre, 0, given.ranks)
    return int(any([other.wait() != 0 for other in others]))


if __name__ == "__main__":
    sys.exit(main())
