"""NCCLs that a program opens by their files and calls itself, with libgyre-nccl.so loaded before: what they call of their own interface stays
their own, whatever gyre does with the calls of the program."""
import os
import pathlib
import shutil
import tempfile

from system import Process, check, perf, subjects

LIBRARY, INNER = os.environ["TEST_NCCL_LIBRARY"], os.environ["TEST_INNER_NCCL"]


def run(story="direct", second="libnccl-second.so", **env):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libnccl.so.2", "libnccl-second.so", "libnccl-third.so", "other.so"):
            shutil.copy(INNER, pathlib.Path(folder) / name)
        process = Process([perf(), story, 0, 1, f"{folder}/id"],
                          {"LD_LIBRARY_PATH": folder, "TEST_SECOND_NCCL": f"{folder}/{second}", "TEST_THIRD_NCCL": f"{folder}/libnccl-third.so", 
                           **{name: value.replace("FOLDER", folder) for name, value in env.items()}})
        process.wait()
    check(process.code == 0, f"{env}: {process.code}: {process.err}")
    return process


def warnings(process):
    return sorted(line.split()[2].rsplit("/", 1)[-1] for line in process.err.splitlines() if "is called past gyre" in line)


def they_are_their_own_with_gyre_before():
    for env in ({"GYRE_NCCL": "off"}, {}, {"GYRE_COLLECTIVES": "all_reduce"}):
        said = warnings(run(LD_PRELOAD=LIBRARY, **env))
        check(set(said) == {"libnccl-second.so", "libnccl-third.so"}, f"{env}: warned of {said}")


def the_one_that_gyre_is_beside_is_no_other():
    for env, others in (({}, {"libnccl-third.so"}), ({"GYRE_NCCL": "off"}, {"libnccl.so.2", "libnccl-third.so"})):
        said = warnings(run(second="libnccl.so.2", LD_PRELOAD=LIBRARY, **env))
        check(set(said) == others, f"{env}: warned of {said}")


def what_nccl_leaves_to_another_function_of_its_own_is_not_gyres():
    for env in ({}, {"GYRE_NCCL": "FOLDER/other.so"}):  # whatever its file's name
        said = run("last_step", LD_PRELOAD=LIBRARY, GYRE_COLLECTIVES="alltoall", GYRE_LOG="info", **env).err
        check(said.count("gyre may run calls of this communicator on host memory: alltoall") == 2 and "alltoall of" not in said, said)


subjects([they_are_their_own_with_gyre_before, the_one_that_gyre_is_beside_is_no_other,
          what_nccl_leaves_to_another_function_of_its_own_is_not_gyres])
