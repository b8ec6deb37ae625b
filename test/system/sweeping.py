"""What tests of sweeps share."""
import json
import os
import tempfile

from system import BLOCK_PER_RANK, check, run

SIZE_OF = {"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "int64": 8, "uint64": 8, "double": 8, "f8e4m3": 1, "f8e5m2": 1}
QUICK = ["-n", "2", "-w", "1"]


def count_of(collective, ranks, size, kind="float"):
    """Elements that nccl-tests makes of a size: whole ones, as many for each rank."""
    return size // SIZE_OF.get(kind, 4) // (ranks if collective in BLOCK_PER_RANK else 1)


class Lines:
    """A file of --json: what holds for all, the rows, and how it ended; every line is JSON."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.head, self.rows, self.end = lines[0], lines[1:-1], lines[-1]["end"]
        check(self.end["rows"] == len(self.rows), f"{len(self.rows)} rows, and at the end {self.end}")


def with_json(*arguments, env=None):
    """A run that passes, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        done = run(*arguments, "--json", path, env=env).passed()
        return done, Lines(path)
