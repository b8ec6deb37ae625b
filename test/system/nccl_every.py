"""Every function of NCCL's interface as programs call it: processes, in C, libgyre-nccl.so loaded before them, by gyre alone."""
import os
import pathlib
import re
import subprocess
import tempfile

from system import Process, check, needs, perf, subjects

FUNCTIONS = pathlib.Path(__file__).parent.parent / "plugin" / "nccl_functions.txt"


def run(story, ranks, nccl="TEST_FAKE_NCCL", **env):
    """The loader wants a libnccl.so.2, which is never called, or is gyre."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libnccl.so.2").symlink_to(os.environ[nccl])
        env = {"LD_PRELOAD": os.environ["TEST_NCCL_LIBRARY"], "LD_LIBRARY_PATH": folder, "GYRE_NCCL": "off", **env}
        started = [Process([perf(), story, rank, ranks, f"{folder}/id"], env) for rank in range(ranks)]
        for process in started:
            process.wait()
    for rank, process in enumerate(started):
        check(process.code == 0, f"rank {rank} of {ranks}: {process.code}: {process.err}")


def the_program_calls_every_function():
    needs("nm")
    lines = FUNCTIONS.read_text(encoding="utf-8").splitlines()
    every = {name for line in lines if not line.startswith("#") for name in line.split()[1:]}
    called = set(re.findall(r"\bU (nccl\w+)", subprocess.run(["nm", "-D", perf()], capture_output=True, text=True, check=True).stdout))
    check(len(every) > 60 and every <= called, f"not called: {every - called}")


def every_function_does_what_it_says():
    for ranks in (1, 2, 3, 4, 8):
        run("everything", ranks)


def what_gyre_does_not_do_says_so():
    run("refused", 1)


def a_configuration_that_gyre_can_not_follow_is_an_error():
    run("wrongly_configured", 2)
    run("encryption", 1)


def a_programs_own_kernels_have_teams_and_nothing_else():
    run("kernels", 1)
    run("kernels", 4)


def a_program_starts_with_gyre_by_nccls_name_whatever_it_calls():
    run("kernels", 2, "TEST_NCCL_LIBRARY", LD_PRELOAD="", LD_BIND_NOW="1")


def every_function_has_its_twin():
    run("twins", 1)


def communicators_need_not_block():
    for ranks in (1, 2, 3, 4, 8):
        run("non_blocking", ranks)


def a_making_that_waits_in_vain_is_aborted():
    run("aborted_on_the_way", 2)


def pytorchs_calls_in_their_order():
    for ranks in (1, 2, 3, 4, 8):
        run("as_pytorch", ranks)


subjects([the_program_calls_every_function, every_function_does_what_it_says, what_gyre_does_not_do_says_so,
          a_configuration_that_gyre_can_not_follow_is_an_error, a_programs_own_kernels_have_teams_and_nothing_else,
          a_program_starts_with_gyre_by_nccls_name_whatever_it_calls, every_function_has_its_twin,
          communicators_need_not_block, a_making_that_waits_in_vain_is_aborted, pytorchs_calls_in_their_order])
