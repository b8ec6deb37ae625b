"""A program written for NCCL, with libgyre-nccl.so loaded before it: by gyre alone, and where there is a real NCCL (a fake one)."""
import os
import pathlib
import re
import signal
import sys
import tempfile

from system import Process, Skipped, check, fake_ucx, perf, subjects

LIBRARY, FAKE = os.environ["TEST_NCCL_LIBRARY"], os.environ["TEST_FAKE_NCCL"]


def start(story, rank, ranks, folder, nccl=FAKE, ucx=None, **env):
    """The program is linked with libnccl.so.2, which is that one."""
    for name, library in (("libnccl.so.2", nccl), ("libucp.so.0", ucx)):
        if library and not (named := pathlib.Path(folder) / name).is_symlink():
            named.symlink_to(library)
    return Process([perf(), story, rank, ranks, pathlib.Path(folder) / "id"], {"LD_PRELOAD": LIBRARY, "LD_LIBRARY_PATH": folder, "TEST_FAKE_FOLDER": folder, **env})


def run(story, ranks, **env):
    with tempfile.TemporaryDirectory() as folder:
        started = [start(story, rank, ranks, folder, GYRE_NCCL="off", **env) for rank in range(ranks)]
        for process in started:
            process.wait()
        return started


def by_gyre_alone():
    for ranks in (1, 2, 3, 4, 8):
        for transport in ("auto", "tcp"):
            for process in run("works", ranks, GYRE_TRANSPORT=transport):
                check(process.code == 0, f"{ranks} ranks over {transport}: {process.code}: {process.err}")


def children_of_a_fork_do_no_harm():
    for process in run("forks", 3, ASAN_OPTIONS="detect_leaks=0"):  # in a child, of what the parent's threads hold
        check(process.code == 0, f"{process.code}: {process.err}")


def a_program_may_end_without_destroying():
    for process in run("leaves", 3):
        check(process.code == 0 and process.err == "", f"{process.code}: {process.err}")


def a_killed_rank_is_named_and_left_behind():
    for rank, process in enumerate(run("killed", 3)):
        wanted = -signal.SIGKILL if rank == 1 else 0
        check(process.code == wanted, f"rank {rank}: {process.code}: {process.err}")
        check(rank == 1 or "rank 1" in process.out, f"rank {rank} does not name who died: {process.out}")


def a_killed_rank_is_missed_while_a_child_of_its_lives():
    for transport in ("shm", "tcp"):
        for rank, process in enumerate(run("orphan", 3, GYRE_TRANSPORT=transport)):
            wanted = -signal.SIGKILL if rank == 1 else 0
            check(process.code == wanted, f"rank {rank} over {transport}: {process.code}: {process.err}")


def calls_that_differ_are_an_error_on_all_ranks():
    for rank, process in enumerate(run("mismatch", 3)):
        check(process.code == 0, f"rank {rank}: {process.code}: {process.err}")
        check("count" in process.out, f"rank {rank} does not say what differs: {process.out}")


def a_wrong_option_is_named():
    with tempfile.TemporaryDirectory() as folder:
        for name, value, why in (("GYRE_NCLL", "off", "GYRE_NCLL"), ("GYRE_NCCL", "of", "GYRE_NCCL=of: must be auto, off"), ("GYRE_NCCL", "/nowhere.so", "GYRE_NCCL=/nowhere.so: .*No such file"),
                                 ("GYRE_NCCL", LIBRARY, "it is gyre, not NCCL"), ("GYRE_NCCL", __file__, "GYRE_NCCL=.*nccl_preload.py: .*invalid ELF header")):
            process = start("works", 0, 1, folder, **{name: value}).wait()
            check(process.code == 1 and re.search(why, process.err), f"{name}={value}: {process.code}: {process.err}")


def settings_are_read_from_nccls_file():
    with tempfile.TemporaryDirectory() as folder:
        (settings := pathlib.Path(folder) / "nccl.conf").write_text("NCCL_SOCKET_IFNAME=nosuch0\n")
        given = {"GYRE_TRANSPORT": "tcp", "GYRE_LOG": "info", "NCCL_CONF_FILE": str(settings)}
        for process in run("works", 2, **given):
            check(process.code != 0 and f"{settings} has NCCL_SOCKET_IFNAME=nosuch0" in process.err, f"{process.code}: {process.err}")
            check(re.search("error.*nosuch0", process.err), f"the interface is not looked for: {process.err}")
        for process in run("works", 2, NCCL_SOCKET_IFNAME="lo", **given):
            check(process.code == 0 and "nosuch0" not in process.err, f"{process.code}: {process.err}")


def ucx_is_opened_before_any_thread():
    for process in run("works", 2, ucx=fake_ucx("ucp-1.9"), UCX_TLS="tcp"):
        check(process.code == 0, f"{process.code}: {process.err}")
        check(re.findall("UCX is loaded beside .*", process.err) == ["UCX is loaded beside 0 other threads"], process.err)


def a_real_nccl_is_asked():
    with tempfile.TemporaryDirectory() as folder:
        process = start("who", 0, 1, folder).wait()
        check(process.code == 0, f"{process.code}: {process.err}")
        said = ["NCCL: ncclGetVersion", "version 21903", "NCCL: ncclCommInitRank 1 0", "NCCL: ncclGroupStart",
                "NCCL: ncclAllReduce 1 1 2 0 0 1", "NCCL: ncclGroupEnd", "NCCL: ncclCommDestroy 0", "memory 5, NCCL's own words"]
        check(process.out.splitlines() == said, process.out)
        check(re.search(r"ncclCommMemStats: .*too old", process.err), process.err)


def gyre_by_the_name_of_nccl_is_no_real_one():
    with tempfile.TemporaryDirectory() as folder:
        process = start("who", 0, 1, folder, nccl=LIBRARY).wait()
        check("version 22809" in process.out, f"{process.code}: {process.out} {process.err}")


def an_nccl_that_is_named_is_asked_where_gyre_has_its_name():
    if "TEST_SANITIZED" in os.environ:
        raise Skipped("Python has no sanitizer's runtime")
    opens = "import ctypes; nccl = ctypes.CDLL('libnccl.so.2'); version = ctypes.c_int(); print(nccl.ncclGetVersion(ctypes.byref(version)), version.value)"
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libnccl.so.2").symlink_to(LIBRARY)
        for asked, version in ((FAKE, 21903), ("auto", 22809)):
            process = Process([sys.executable, "-c", opens], {"LD_LIBRARY_PATH": folder, "GYRE_NCCL": asked}).wait()
            check(f"0 {version}\n" in process.out, f"{asked}: {process.code}: {process.out} {process.err}")


subjects([by_gyre_alone, children_of_a_fork_do_no_harm, a_program_may_end_without_destroying, a_killed_rank_is_named_and_left_behind, a_killed_rank_is_missed_while_a_child_of_its_lives, calls_that_differ_are_an_error_on_all_ranks, a_wrong_option_is_named,
          settings_are_read_from_nccls_file, ucx_is_opened_before_any_thread, a_real_nccl_is_asked, gyre_by_the_name_of_nccl_is_no_real_one, an_nccl_that_is_named_is_asked_where_gyre_has_its_name])
