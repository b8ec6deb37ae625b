"""A program for NCCL with the NCCL of this machine, without a GPU's help: gyre before it changes no answer, and what gyre takes for granted
of NCCL is so."""
import ctypes
import os
import re
import tempfile

from system import Process, Skipped, check, perf, subjects

BEFORE = {"LD_PRELOAD": os.environ["TEST_NCCL_LIBRARY"]}
TAKES = {**BEFORE, "GYRE_COLLECTIVES": "all_reduce"}


def run(story, **env):
    """The linker finds NCCL as it does for any program."""
    with tempfile.TemporaryDirectory() as folder:
        process = Process([perf(), story, 0, 1, f"{folder}/id"], {"ASAN_OPTIONS": "detect_leaks=0", **env}).wait()
    check(process.code == 0, f"{process.code}: {process.out} {process.err}")
    return process


def an_nccl():
    try:
        return ctypes.CDLL("libnccl.so.2")
    except OSError as error:
        raise Skipped(f"there is no NCCL: {error}") from None


def by_name(folder):
    """gyre goes by NCCL's name there, and asks NCCL by its path."""
    an_nccl()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        (loaded,) = {line.split()[-1] for line in maps if "/libnccl.so" in line}
    os.symlink(BEFORE["LD_PRELOAD"], f"{folder}/libnccl.so.2")
    return {"LD_LIBRARY_PATH": folder, "GYRE_NCCL": loaded, "GYRE_COLLECTIVES": "all_reduce"}


def gyre_before_it_changes_no_answer():
    version = ctypes.c_int()
    check(an_nccl().ncclGetVersion(ctypes.byref(version)) == 0, "no version")
    alone = run("facts").out
    check(alone.startswith(f"version {version.value}, {version.value}\n"), alone)
    with tempfile.TemporaryDirectory() as folder:
        for env in (BEFORE, TAKES, by_name(folder)):
            with_gyre = run("facts", **env)
            check(with_gyre.out == alone, f"{env}:\n{with_gyre.out}\nNCCL alone:\n{alone}")


def a_wrong_call_spoils_its_group():
    an_nccl()
    for env in ({}, TAKES):
        said = run("facts", **env).out
        for line in ("an end without a start: 5,", "a sum of no communicator: 4,", "the end of its group: 4,", "the next start: 0,", "its end: 0,"):
            check(f"\n{line}" in said, f"{env}: not '{line}': {said}")


def its_unique_ids_have_room():
    an_nccl()
    for env, said in (({}, "empty"), (BEFORE, "empty"), (TAKES, "written")):
        check(run("id", **env).out == f"the second half is {said}\n", f"{env}: not {said}")


def what_its_release_lacks_says_so():
    an_nccl()
    for env in (BEFORE, TAKES):
        process = run("lacks", **env)
        told = re.findall(r"(ncclC?\w+): the NCCL of this machine is too old", process.err)
        check(told == process.out.split(), f"{env}: {process.out} {process.err}")


subjects([gyre_before_it_changes_no_answer, a_wrong_call_spoils_its_group, its_unique_ids_have_room, what_its_release_lacks_says_so])
