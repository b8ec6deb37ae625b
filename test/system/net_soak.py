"""Random sizes, tags, groups, communicators and closings, for a minute; the seed is printed, and --seed of the caller repeats it.

As long as wanted, with 2 to SOAK_RANKS ranks: SOAK_SECONDS=3600 test/system/net_soak.py CALLER"""
import os
import random

from net_calling import UCX, all_right, call
from system import subjects

SECONDS = int(os.environ.get("SOAK_SECONDS", "60"))
MOST_RANKS = int(os.environ.get("SOAK_RANKS", "4"))  # each takes up to 600 MB, with the thread sanitizer 3 GB


def soak(env):
    seed = random.randrange(1 << 32)
    print(f"        seed {seed}", flush=True)
    ranks = 2 + seed % max(1, MOST_RANKS - 1)
    all_right(call("--soak", SECONDS // 2, "--ranks", ranks, "--seed", seed, "--patience", 60, env=env).wait(SECONDS + 240), ranks)


def over_tcp():
    soak(UCX["ucx over tcp"])


def over_shared_memory():
    soak(UCX["ucx over shared memory"])


subjects([over_tcp, over_shared_memory])
