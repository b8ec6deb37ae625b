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
import threading

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
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here: without one, doc/train.py --ranks 4")
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


def place_by_torchrun(parser):
    """Rank and number of ranks, where torchrun has started this process; None: it has not."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    missing = [name for name in names if name not in os.environ]
    if "LOCAL_RANK" in missing:
        return None
    if missing:
        parser.error(f"LOCAL_RANK is set, as torchrun does, but {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not")
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Others:
    """The processes of the other ranks. None outlives the block: where one can't be started, or ends with an error, or this rank does, all
    would wait for it."""

    def __init__(self):
        self.started, self.over, self.lock = [], False, threading.Lock()

    def start(self, command):
        with self.lock:
            if self.over:
                return
            try:
                process = subprocess.Popen(command)
            except OSError as error:
                sys.exit(f"a rank can't be started: {error}")
            self.started.append(process)
        threading.Thread(target=self.watch, args=[process], daemon=True).start()

    def watch(self, process):
        if process.wait() == 0 or self.over:
            return
        print(f"a rank has ended with {process.returncode}", file=sys.stderr, flush=True)
        self.end()
        os._exit(1)  # this rank waits for it inside of a call

    def end(self):
        with self.lock:
            self.over = True
            for process in self.started:
                process.kill()
        for process in self.started:
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            for process in self.started:
                process.wait()
            if any(process.returncode for process in self.started):
                sys.exit(1)
        else:
            self.end()


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "build/plugin/libgyre-nccl.so"
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", type=int, help=f"processes on this machine, 1 to {BATCH}; default: 2")
    parser.add_argument("--library", help=f"libgyre-nccl.so; default: {default}")
    parser.add_argument("--join", nargs=2, metavar=("RANK", "ID"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    by_hand = given.ranks is not None or given.library is not None  # asked for, whatever the environment has
    place = None if by_hand else place_by_torchrun(parser)
    ranks = place[1] if place else 2 if given.ranks is None else given.ranks
    if not 1 <= ranks <= BATCH:
        parser.error(f"{'WORLD_SIZE=' if place else '--ranks '}{ranks}: 1 to {BATCH} ranks can share a batch of {BATCH}")
    if place:
        return train_with_torch(*place)
    library = given.library or str(default)
    gyre = Gyre(library)
    if given.join:
        rank = int(given.join[0])
        gyre.join(ranks, bytes.fromhex(given.join[1]), rank)
        return train(gyre, rank, ranks)
    with Others() as others:
        if ranks > 1:  # this process is rank 0, whose id it must be
            made = gyre.new_id()
            for rank in range(1, ranks):
                others.start([sys.executable, __file__, "--ranks", str(ranks), "--library", library, "--join", str(rank), made.hex()])
            gyre.join(ranks, made, 0)
        train(gyre, 0, ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
