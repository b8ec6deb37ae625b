"""What the tests of the net plugin share: runs of the caller (test/plugin/caller.cpp), which plays NCCL against it, and what they say.

The caller's path is the first argument, in place of gyre-perf's; the plugin's is in TEST_NET_PLUGIN.
"""
import os
import re
import tempfile

from system import UCX, Process, await_that, check, perf

REMOTE, ABORTED, KILLED = 16, 18, 137  # exit codes: 10 + ncclResult_t, and the shell's for SIGKILL
ENDLESS = ["--operations", "1000000000"]
OVER = {**UCX, "whatever UCX takes": {}}


def plugin():
    return os.path.abspath(os.environ["TEST_NET_PLUGIN"])


def call(*arguments, env=None):
    return Process([perf(), plugin(), *arguments], env)


class Line:
    """A line of the caller's: when, by the clock of all processes, which rank, and what."""

    def __init__(self, when, rank, text):
        self.when, self.rank, self.text = float(when), int(rank), text


def lines(process, pattern="", rank=None):
    found = [Line(*fields) for fields in re.findall(r"^([\d.]+) rank (\d+): (.*)$", process.out, re.M)]
    return [line for line in found if re.search(pattern, line.text) and rank in (None, line.rank)]


def await_line(process, pattern, ranks):
    """Until each of these ranks has said it."""
    await_that(lambda: all(lines(process, pattern, rank) for rank in ranks) or process.code is not None,
               lambda: f"not all of ranks {list(ranks)} said /{pattern}/\n{process.story()}")
    check(process.code is None, f"ended before ranks {list(ranks)} said /{pattern}/\n{process.story()}")


def ranks_of(process, size):
    """Processes of the ranks, in their order."""
    return sorted(await_that(lambda: len(process.children()) == size and process.children(), "not all ranks started"))


def complaints(process):
    """What was said on stderr, but that UCX_TLS leaves shared memory only: the test's wish."""
    return [line for line in process.err.splitlines() if "only ranks of one host can be joined" not in line]


def all_right(process, size, quiet=True):
    """The caller found nothing wrong, and the plugin had nothing to warn of."""
    check(process.code == 0, f"exit code {process.code}, not 0\n{process.story()}")
    check(len({line.rank for line in lines(process, "all is right")}) == size, f"not all is right\n{process.story()}")
    check(not quiet or not complaints(process), f"a run that passed complains\n{process.story()}")
    return process


def no_crash(process):
    for word in ("WRONG", "terminate called", "Sanitizer", "Assertion", "backtrace", "Segmentation", "core dumped"):
        check(word not in process.err + process.out, f"{word}\n{process.story()}")


def closed_at_once(process, ranks):
    for rank in ranks:
        said = lines(process, r"^closed \d+ of \d+ connections in [\d.]+ s$", rank)
        check(said, f"rank {rank} did not close\n{process.story()}")
        seconds = float(said[-1].text.split()[-2])
        check(seconds < 2, f"rank {rank} took {seconds} s to close\n{process.story()}")


def mailbox():
    return tempfile.TemporaryDirectory(prefix="caller-")
