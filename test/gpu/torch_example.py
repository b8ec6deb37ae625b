#!/usr/bin/env python3
"""The README's training example by torchrun: with each number of ranks the losses of the first, within what sums in another order change.

    LD_PRELOAD=build/plugin/libgyre-nccl.so GYRE_NCCL=off test/gpu/torch_example.py 1 2
"""
import importlib.util
import pathlib
import re
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).parents[2] / "doc/train.py"


def tolerance():
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.TOLERANCE


def losses(ranks):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
    ended = subprocess.run([*torchrun, str(EXAMPLE)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    found = [float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", ended.stdout, re.MULTILINE)]
    if ended.returncode != 0 or not found:
        sys.exit(f"{ended.stdout}{ranks} ranks: exit code {ended.returncode}, {len(found)} losses")
    return found


def main():
    most = tolerance()
    first, *others = [losses(ranks) for ranks in sys.argv[1:]]
    for ranks, found in zip(sys.argv[2:], others):
        if len(found) != len(first) or any(abs(a - b) > most * a for a, b in zip(first, found)):
            sys.exit(f"losses of {ranks} ranks {found}, of {sys.argv[1]} {first}")
    print(f"example: ok, {len(first)} losses each, the last {first[-1]}")


if __name__ == "__main__":
    main()
