"""The README's training example, without PyTorch: its losses are those of one process, and what is wrong is said."""
import importlib.util
import os
import pathlib
import re
import sys
import tempfile

from system import Process, check, perf, subjects

LIBRARY = os.environ["TEST_NCCL_LIBRARY"]


# What a process of the example finds wrong, as Python starts it.
DIES = """import os
words = open("/proc/self/cmdline").read().split("\\0")
if "--join" in words and words[words.index("--join") + 1] == "2":
    os._exit(3)
"""
NO_MORE_PROCESSES = """import subprocess
started = []
class Popen(subprocess.Popen):
    def __init__(self, command):
        started.append(command)
        if len(started) == 3:
            raise BlockingIOError("no more processes")
        super().__init__(command)
subprocess.Popen = Popen
"""
NO_GPU = """class cuda:
    is_available = lambda: False
    device_count = lambda: 0
"""


def run(ranks, library=LIBRARY, **env):
    return Process([sys.executable, perf(), "--ranks", ranks, "--library", library], env).wait()


def run_by_torchrun(**env):
    return Process([sys.executable, perf()], env).wait()


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


def ranks_that_are_asked_for_are_run_under_any_launcher():
    check(len(losses(run(2, LOCAL_RANK=0, RANK=0, WORLD_SIZE=1))) == 10, "not by gyre")


def what_is_wrong_under_torchrun_is_said():
    for word, env in (("RANK and WORLD_SIZE are not", {}), ("RANK is not", {"WORLD_SIZE": 1}),
                      ("WORLD_SIZE=41", {"RANK": 0, "WORLD_SIZE": 41})):
        process = run_by_torchrun(LOCAL_RANK=0, **env).failed()
        check(word in process.err, f"{env}: {process.err}")
    with tempfile.TemporaryDirectory() as folder:
        torch = pathlib.Path(folder, "torch")
        torch.mkdir()
        torch.joinpath("__init__.py").write_text(NO_GPU)
        torch.joinpath("distributed.py").touch()
        process = run_by_torchrun(LOCAL_RANK=0, RANK=0, WORLD_SIZE=1, PYTHONPATH=folder).failed()
        check("finds no GPU" in process.err and "--ranks" in process.err, process.err)


def no_rank_is_left_when_one_fails_or_is_not_there():
    for trouble, word in ((DIES, "a rank has ended with 3"), (NO_MORE_PROCESSES, "can't be started: no more processes")):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "sitecustomize.py").write_text(trouble)
            process = run(5, PYTHONPATH=folder, GYRE_TIMEOUT=1000).failed()
            check(word in process.err, process.err)
            check(not process.session(), f"still there: {process.session()}")


subjects([losses_are_those_of_one_process, what_is_wrong_is_said, ranks_that_are_asked_for_are_run_under_any_launcher,
          what_is_wrong_under_torchrun_is_said, no_rank_is_left_when_one_fails_or_is_not_there])
