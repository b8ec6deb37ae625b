#!/usr/bin/env python3
"""PyTorch on gyre: torch.distributed's "nccl" backend, every rank a process on the one GPU, against references of one process.

    LD_PRELOAD=build/plugin/libgyre-nccl.so GYRE_NCCL=off test/gpu/torch_ranks.py RANKS [SUBJECT…]

Without LD_PRELOAD it is NCCL's, which takes several ranks on one GPU only where each has an NCCL_HOSTID of its own (--hosts). Ends with 0 when
all subjects passed, and prints a line for each. Those that are only run where they are named: `ordered` (4 ranks, GYRE_NUMERICS=ordered);
`bits` and `speed`, which print JSON lines for others to compare (networks.py).
"""
import argparse
import contextlib
import functools
import hashlib
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

GPU = torch.device("cuda:0")
ONLY_BY_NAME = ("ordered", "bits", "speed")


def mine(rank, count, dtype=torch.float32):
    """What a rank gives: small integers, whose sums and products are exact in every type."""
    return ((torch.arange(count) * 7 + rank * 3) % 5 + 1).to(dtype)


def same(what, found, wanted):
    if not torch.equal(found.cpu(), wanted):
        raise AssertionError(f"{what}: {found.cpu().flatten()[:8].tolist()} and not {wanted.flatten()[:8].tolist()}")


def reductions(rank, ranks):
    operations = {dist.ReduceOp.SUM: torch.add, dist.ReduceOp.PRODUCT: torch.mul, dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
        for operation, reference in operations.items():
            for count in (1, 1000, 100_003):
                data = mine(rank, count, dtype).to(GPU)
                dist.all_reduce(data, operation)
                same(f"all_reduce {operation} {dtype} {count}", data, functools.reduce(reference, [mine(r, count, dtype) for r in range(ranks)]))
    data = mine(rank, 1024).to(GPU)
    dist.all_reduce(data, dist.ReduceOp.AVG)
    wanted = sum(mine(r, 1024) for r in range(ranks)) / ranks
    if not torch.allclose(data.cpu(), wanted, rtol=1e-6):
        raise AssertionError("all_reduce AVG")
    data = mine(rank, 1024).to(GPU)
    dist.all_reduce(data, dist._make_nccl_premul_sum(2.0))
    same("all_reduce PREMUL_SUM", data, 2 * sum(mine(r, 1024) for r in range(ranks)))
    data = (mine(rank, 1024) > 4).to(GPU)
    dist.all_reduce(data, dist.ReduceOp.MAX)
    same("all_reduce MAX of bool", data, functools.reduce(torch.logical_or, [mine(r, 1024) > 4 for r in range(ranks)]))


def collectives(rank, ranks):
    count = 4099
    every = [mine(r, count) for r in range(ranks)]
    data = every[rank].to(GPU)
    for root in range(ranks):
        copy = data.clone()
        dist.broadcast(copy, root)
        same(f"broadcast from {root}", copy, every[root])
        copy = data.clone()
        dist.reduce(copy, root)
        if rank == root:
            same(f"reduce to {root}", copy, sum(every))
        gathered = [torch.empty_like(data) for _ in every] if rank == root else None
        dist.gather(data, gathered, root)
        if rank == root:
            same(f"gather to {root}", torch.cat(gathered), torch.cat(every))
        part = torch.empty_like(data)
        dist.scatter(part, [e.to(GPU) for e in every] if rank == root else None, root)
        same(f"scatter from {root}", part, every[rank])
    gathered = torch.empty(ranks * count, device=GPU)
    dist.all_gather_into_tensor(gathered, data)
    same("all_gather_into_tensor", gathered, torch.cat(every))
    parts = [torch.empty_like(data) for _ in every]
    dist.all_gather(parts, data)
    same("all_gather", torch.cat(parts), torch.cat(every))
    whole = [torch.cat([mine(r + p, count) for p in range(ranks)]) for r in range(ranks)]
    part = torch.empty(count, device=GPU)
    dist.reduce_scatter_tensor(part, whole[rank].to(GPU))
    same("reduce_scatter_tensor", part, sum(w[rank * count:(rank + 1) * count] for w in whole))
    swapped = torch.empty(ranks * count, device=GPU)
    dist.all_to_all_single(swapped, whole[rank].to(GPU))
    same("all_to_all_single", swapped, torch.cat([w[rank * count:(rank + 1) * count] for w in whole]))
    dist.reduce_scatter(part, list(whole[rank].to(GPU).chunk(ranks)))
    same("reduce_scatter", part, sum(w[rank * count:(rank + 1) * count] for w in whole))
    dist.all_to_all(parts, list(whole[rank].to(GPU).chunk(ranks)))
    same("all_to_all", torch.cat(parts), torch.cat([w[rank * count:(rank + 1) * count] for w in whole]))
    dist.barrier()


def coalesced(rank, ranks):
    """Several collectives in one group of NCCL's, as FSDP and optimizers that split their state have them."""
    sizes = (1, 1000, 100_003)
    every = [[mine(r, size) for r in range(ranks)] for size in sizes]
    sums = [of[rank].to(GPU) for of in every]
    with dist._coalescing_manager():
        for data in sums:
            dist.all_reduce(data)
    gathered = [torch.empty(ranks * size, device=GPU) for size in sizes]
    with dist._coalescing_manager(async_ops=True) as work:
        for whole, of in zip(gathered, every):
            dist.all_gather_into_tensor(whole, of[rank].to(GPU))
    work.wait()
    parts = [torch.empty(size, device=GPU) for size in sizes]
    with dist._coalescing_manager():
        for part, whole in zip(parts, gathered):
            dist.reduce_scatter_tensor(part, whole)
    for size, of, data, whole, part in zip(sizes, every, sums, gathered, parts):
        same(f"coalesced all_reduce of {size}", data, sum(of))
        same(f"coalesced all_gather_into_tensor of {size}", whole, torch.cat(of))
        same(f"coalesced reduce_scatter_tensor of {size}", part, ranks * of[rank])


def uneven(rank, ranks):
    """What ranks give each other has different lengths, none among them: rank r gives rank p the first 10 * r + p - 1 of its numbers."""
    def length(giver, taker):
        return max(10 * giver + taker - 1, 0)
    data = mine(rank, 100 * ranks).to(GPU)
    given = torch.cat([data[:length(rank, p)] for p in range(ranks)])
    came = torch.empty(sum(length(p, rank) for p in range(ranks)), device=GPU)
    dist.all_to_all_single(came, given, [length(p, rank) for p in range(ranks)], [length(rank, p) for p in range(ranks)])
    same("uneven all_to_all_single", came, torch.cat([mine(p, 100 * ranks)[:length(p, rank)] for p in range(ranks)]))
    parts = [torch.empty(length(p, 0), device=GPU) for p in range(ranks)]
    dist.all_gather(parts, data[:length(rank, 0)].contiguous())
    same("uneven all_gather", torch.cat(parts), torch.cat([mine(p, 100 * ranks)[:length(p, 0)] for p in range(ranks)]))


def types(rank, ranks):
    """Of what is only moved."""
    for dtype in (torch.bool, torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64):
        every = [mine(r, 1001).to(dtype) for r in range(ranks)]
        copy = every[rank].to(GPU)
        dist.broadcast(copy, ranks - 1)
        same(f"broadcast {dtype}", copy, every[-1])
        gathered = torch.empty(ranks * 1001, dtype=dtype, device=GPU)
        dist.all_gather_into_tensor(gathered, every[rank].to(GPU))
        same(f"all_gather_into_tensor {dtype}", gathered, torch.cat(every))


def objects(rank, ranks):
    """Pickled, by collectives of bytes."""
    gathered, lists = [None] * ranks, [["a", {"rank": rank}]]
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * (100 * rank)})
    dist.broadcast_object_list(lists, 1)
    if gathered != [{"rank": r, "text": "x" * (100 * r)} for r in range(ranks)] or lists != [["a", {"rank": 1}]]:
        raise AssertionError(f"{gathered}, {lists}")
    collected, own = [None] * ranks if rank == 0 else None, [None]
    dist.gather_object(("of", rank), collected)
    dist.scatter_object_list(own, [{"for": r} for r in range(ranks)] if rank == 0 else None)
    if rank == 0 and collected != [("of", r) for r in range(ranks)] or own != [{"for": rank}]:
        raise AssertionError(f"{collected}, {own}")


def transfers(rank, ranks):
    data, came = mine(rank, 5000).to(GPU), torch.empty(5000, device=GPU)
    calls = [dist.P2POp(dist.isend, data, (rank + 1) % ranks), dist.P2POp(dist.irecv, came, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    same("isend and irecv", came, mine((rank - 1) % ranks, 5000))
    for giver in range(ranks - 1):
        if rank == giver:
            dist.send(data, giver + 1)
        elif rank == giver + 1:
            dist.recv(came, giver)
    if rank > 0:
        same("send and recv", came, mine(rank - 1, 5000))


def groups(rank, ranks):
    half = [dist.new_group([r for r in range(ranks) if r % 2 == odd]) for odd in (0, 1)]
    data = torch.full((1000,), float(rank), device=GPU)
    dist.all_reduce(data, group=half[rank % 2])
    same("all_reduce of a group", data, torch.full((1000,), float(sum(r for r in range(ranks) if r % 2 == rank % 2))))


def beside(rank, ranks):
    """Two process groups of all ranks at the same time, each on a stream of its own."""
    every = [dist.group.WORLD, dist.new_group(list(range(ranks)))]
    data = [torch.full((100_000,), float(i + 1), device=GPU) for i in range(len(every))]
    for _ in range(20):
        for work in [dist.all_reduce(each, group=group, async_op=True) for each, group in zip(data, every)]:
            work.wait()
        for each in data:
            each.div_(ranks)
    for i, each in enumerate(data):
        same(f"20 steps of group {i}", each, torch.full((100_000,), float(i + 1)))


def streams(rank, ranks):
    """What is enqueued behind a collective sees its result, and what came before it is in it, without the host waiting."""
    data = torch.zeros(1 << 20, device=GPU)
    for step in range(50):
        data.add_(1)
        dist.all_reduce(data)
        data.div_(ranks)
    same("50 steps", data, torch.full((1 << 20,), 50.0))


def model():
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(GPU)


def batches(part, parts, steps=20):
    generator = torch.Generator().manual_seed(9)
    for _ in range(steps):
        inputs, wanted = torch.randn(64, 64, generator=generator), torch.randn(64, 8, generator=generator)
        yield inputs.chunk(parts)[part].to(GPU), wanted.chunk(parts)[part].to(GPU)


def train(network, part, parts, reduce):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for inputs, wanted in batches(part, parts):
        loss = torch.nn.functional.mse_loss(network(inputs), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(reduce(loss.detach()))
    return torch.stack(losses).cpu()


def mean_loss(loss):
    loss = loss.clone()
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    return loss


def training(rank, ranks):
    """DDP: the losses of one process within 1e-4, and the same bits in two runs."""
    alone = train(model(), 0, 1, lambda loss: loss)
    first, second = (train(DistributedDataParallel(model(), device_ids=[0]), rank, ranks, mean_loss) for _ in range(2))
    if not torch.allclose(first, alone, rtol=1e-4):
        raise AssertionError(f"losses of {ranks} ranks {first[-3:].tolist()}, of one {alone[-3:].tolist()}")
    if not torch.equal(first, second):
        raise AssertionError("two runs differ")


def train_parts(network, parts, own):
    """Of a batch in so many parts a rank has its own, one after the other: the parameters at the end."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for step in zip(*(batches(part, parts) for part in own)):
        optimizer.zero_grad()
        for i, (inputs, wanted) in enumerate(step):
            with network.no_sync() if i + 1 < len(own) else contextlib.nullcontext():
                (torch.nn.functional.mse_loss(network(inputs), wanted) / len(own)).backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()]).cpu()


def ordered(rank, ranks):
    """The same bits with 2 and 4 ranks. gyre's sum of 4 is (0+1)+(2+3), so each of 2 ranks has two parts that are neighbours, and adds them;
    what all divide by is a power of two, and changes no bit."""
    if os.environ.get("GYRE_NUMERICS") != "ordered" or ranks != 4:
        raise AssertionError("wants GYRE_NUMERICS=ordered and 4 ranks")
    pair = dist.new_group([0, 1])
    by_four = train_parts(DistributedDataParallel(model(), device_ids=[0]), 4, [rank])
    if rank < 2:
        network = DistributedDataParallel(model(), device_ids=[0], process_group=pair)
        same("parameters of 2 ranks, of 4", train_parts(network, 4, [2 * rank, 2 * rank + 1]), by_four)


def sharded(rank, ranks):
    from torch.distributed.fsdp import fully_shard
    alone = train(model(), 0, 1, lambda loss: loss)
    network = model()
    fully_shard(network)
    losses = train(network, rank, ranks, mean_loss)
    if not torch.allclose(losses, alone, rtol=1e-4):
        raise AssertionError(f"losses of {ranks} ranks {losses[-3:].tolist()}, of one {alone[-3:].tolist()}")


def graphs(rank, ranks):
    """Warm-up, a capture as training has it, a thousand replays, and other collectives between them."""
    data, other = torch.zeros(100_003, device=GPU), torch.full((1000,), float(rank), device=GPU)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        dist.all_reduce(data)
    torch.cuda.current_stream().wait_stream(side)
    for mode in ("global", "thread_local", "relaxed"):
        graph = torch.cuda.CUDAGraph()
        data.zero_()
        with torch.cuda.graph(graph, capture_error_mode=mode):
            data.add_(1)
            dist.all_reduce(data)
            data.div_(ranks)
            dist.all_reduce(data, dist.ReduceOp.MAX)
        for step in range(1000):
            graph.replay()
            if step % 100 == 99:
                copy = other.clone()
                dist.all_reduce(copy)
                same(f"all_reduce after {step} replays", copy, torch.full((1000,), float(sum(range(ranks)))))
        same(f"1000 replays, captured {mode}", data, torch.full((100_003,), 1000.0))
        torch.cuda.synchronize()
        del graph


def bits(rank, ranks):
    """A digest of sums of any floats, and of a training, for others to compare: of 2 ranks each has one result, whoever adds."""
    digest = hashlib.sha256()
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for count in (1, 1000, 1_000_003):
            data = torch.randn(count, generator=torch.Generator().manual_seed(rank)).to(dtype).to(GPU)
            dist.all_reduce(data)
            digest.update(bytes(data.cpu().view(torch.uint8).tolist()))
    losses = train(DistributedDataParallel(model(), device_ids=[0]), rank, ranks, mean_loss)
    digest.update(bytes(losses.view(torch.uint8).tolist()))
    if rank == 0:
        print(json.dumps({"figure": "torch bits", "ranks": ranks, "sha256": digest.hexdigest()}), flush=True)


def speed(rank, ranks):
    for size in (8, 1 << 10, 32 << 10, 1 << 20, 16 << 20, 128 << 20):
        data = torch.zeros(size // 4, device=GPU)
        times = []
        for i in range(5 + (50 if size < 8 << 20 else 10)):
            torch.cuda.synchronize()
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(data)
            torch.cuda.synchronize()
            if i >= 5:
                times.append(time.perf_counter() - begin)
        if rank == 0:
            median = sorted(times)[len(times) // 2]
            print(json.dumps({"figure": "torch all_reduce", "ranks": ranks, "bytes": size, "us": median * 1e6, "gb_per_s": size / median / 1e9}), flush=True)


SUBJECTS = {each.__name__: each for each in (reductions, collectives, coalesced, uneven, types, objects, transfers, groups, beside, streams, training, ordered, sharded, graphs, bits,
                                               speed)}


def join_job(rank, ranks, port, hosts=False):
    if hosts:
        os.environ["NCCL_HOSTID"] = f"host{rank}"
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.cuda.set_device(GPU)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def rank_main(rank, ranks, port, names, hosts):
    join_job(rank, ranks, port, hosts)
    wrong = False
    for name in names:
        begin = time.perf_counter()
        try:
            SUBJECTS[name](rank, ranks)
            torch.cuda.synchronize()
            said = "ok"
        except AssertionError as error:
            wrong, said = True, f"rank {rank}: {error}"
        if rank == 0 or said != "ok":
            print(f"{name}, {ranks} ranks: {said} ({time.perf_counter() - begin:.1f} s)", flush=True)
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--hosts", action="store_true", help="each rank says to be a host of its own (NCCL)")
    given = parser.parse_args()
    unknown = [name for name in given.subjects if name not in SUBJECTS]
    if given.ranks < 1 or unknown:
        parser.error(f"no such subject: {unknown[0]}" if unknown else f"{given.ranks} ranks")
    names = given.subjects or [name for name in SUBJECTS if name not in ONLY_BY_NAME]
    mp.spawn(rank_main, args=(given.ranks, free_port(), names, given.hosts), nprocs=given.ranks)


if __name__ == "__main__":
    main()
