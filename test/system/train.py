"""The README's training example, without PyTorch: its losses are those of one process, and what is wrong is said."""
import importlib.util
import os
import re
import sys

from system import Process, check, perf, subjects

LIBRARY = os.environ["TEST_NCCL_LIBRARY"]


def run(ranks, library=LIBRARY):
    return Process([sys.executable, perf(), "--ranks", ranks, "--library", library]).wait()


def losses(process):
    return [float(loss) for loss in re.findall(r"loss (\S+)", process.passed().out)]


def tolerance():
    spec = importlib.util.spec_from_file_location("example", perf())
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.TOLERANCE


def losses_are_those_of_one_process():
    alone = losses(run(1))
    check(len(alone) == 10 and alone[-1] < 0.6 * alone[0], f"one process learns nothing: {alone}")
    for ranks in (2, 5):
        found = losses(run(ranks))
        near = len(found) == len(alone) and all(abs(a - b) <= tolerance() * b for a, b in zip(found, alone))
        check(near, f"{ranks} ranks: {found}, one: {alone}")


def what_is_wrong_is_said():
    for ranks, library, word in ((0, LIBRARY, "--ranks 0"), (41, LIBRARY, "--ranks 41"), (2, "/nowhere.so", "/nowhere.so")):
        process = run(ranks, library).failed()
        check(word in process.err, f"{ranks} ranks, {library}: {process.err}")


subjects([losses_are_those_of_one_process, what_is_wrong_is_said])
