"""A program written for NCCL, with libgyre-nccl.so loaded before it and a real NCCL (a fake one) behind: what gyre takes over, and that all
else, and all of a communicator without gyre on each rank, is NCCL's."""
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile

from system import Process, check, fake_ucx, perf, subjects

LIBRARY, FAKE = os.environ["TEST_NCCL_LIBRARY"], os.environ["TEST_FAKE_NCCL"]
OURS = {"LD_PRELOAD": LIBRARY, "GYRE_COLLECTIVES": "all_reduce"}
FILES = tempfile.TemporaryDirectory()


def run(story, *ranks, ucx=None, **env):
    """A dictionary for each rank: what differs from OURS, of which None is not set; None: it runs without gyre."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libnccl.so.2").symlink_to(LIBRARY if "GYRE_NCCL" in env else FAKE)
        shutil.copy(FAKE, pathlib.Path(folder) / "libnccl-second.so")
        if ucx:
            (pathlib.Path(folder) / "libucp.so.0").symlink_to(ucx)
        common = {"LD_LIBRARY_PATH": folder, "TEST_FAKE_FOLDER": folder, **env}
        started = [Process([perf(), story, rank, len(ranks), pathlib.Path(folder) / "id"],
                           common if own is None else {name: value for name, value in {**common, **OURS, **own}.items() if value is not None})
                   for rank, own in enumerate(ranks)]
        for process in started:
            process.wait()
        return started


def all_right(processes):
    for rank, process in enumerate(processes):
        check(process.code == 0, f"rank {rank}: {process.code}: {process.out} {process.err}")
    return processes


def steps(process):
    """What came to NCCL in each step of the program, by its name."""
    found, name = {}, ""
    for line in process.out.splitlines():
        if line.startswith("-- "):
            name = line[3:]
        elif line.startswith("NCCL: "):
            found.setdefault(name, []).append(line[6:])
    return found


def calls_by_nccl(process, step):
    return [line.split()[0] for line in steps(process).get(step, [])]


def gyre_takes_what_it_may_and_nccl_the_rest():
    group = ["ncclGroupStart", "ncclGroupEnd"]
    whole = ["ncclGroupStart", "ncclAllReduce", "ncclAllReduce", "ncclGroupEnd"]
    for rank, process in enumerate(all_right(run("takes", {}, {}, {}, GYRE_MIN_BYTES="8", GYRE_LOG="info"))):
        mixed = {0: ["ncclGroupStart", "ncclAllReduce", "ncclSend", "ncclGroupEnd"], 1: ["ncclGroupStart", "ncclAllReduce", "ncclRecv", "ncclGroupEnd"]}
        expected = {"small": ["ncclAllReduce"], "large": [], "premultiplied": ["ncclRedOpCreatePreMulSum", "ncclRedOpDestroy"], "group": group,
                    "group with a small one": whole, "group with a small one first": whole, "mixed": mixed.get(rank, ["ncclAllReduce"]),
                    # As a group on all ranks: NCCL chooses for its calls together.
                    "mixed group": [*whole[:-1], *{0: ["ncclSend"], 1: ["ncclRecv"]}[rank], "ncclGroupEnd"] if rank < 2 else [*group, *whole],
                    "wrong": ["ncclAllReduce"], "large again": [], "end": ["ncclCommDestroy"]}
        for step, calls in expected.items():
            check(calls_by_nccl(process, step) == calls, f"rank {rank}, {step}: NCCL was asked for {calls_by_nccl(process, step)}")
        sizes = [line.split()[2] for line in steps(process)["group with a small one"] if "AllReduce" in line]
        check(sizes == ["1000", "1"], f"the order in a group is {sizes}")
        for said in ("gyre may run calls", "all_reduce of about 4 bytes by NCCL: it is smaller than GYRE_MIN_BYTES", "all_reduce of about 4000 bytes by gyre"):
            check(process.err.count(said) == 1, f"rank {rank} has not said once '{said}': {process.err}")


def gyre_takes_calls_where_it_has_the_name_of_nccl():
    for process in all_right(run("plain", {"LD_PRELOAD": None}, {"LD_PRELOAD": None}, GYRE_NCCL=FAKE)):
        check(steps(process)[""] and calls_by_nccl(process, "large") == [], f"{process.out} {process.err}")


def by_default_nccl_runs_everything():
    for process in all_right(run("plain", {"GYRE_COLLECTIVES": None}, {"GYRE_COLLECTIVES": None})):
        check(calls_by_nccl(process, "large") == ["ncclAllReduce"] and process.err == "", f"{process.out} {process.err}")


def nccl_alone(why, *ranks, slower_than=0.0, by="plain", **env):
    """On all ranks, with a word why on those that have gyre; the rank that is to blame is among them where its options are."""
    for rank, process in enumerate(all_right(run(by, *ranks, **env))):
        check(calls_by_nccl(process, "large") == ["ncclAllReduce"], f"rank {rank}: {process.out} {process.err}")
        with_gyre = ranks[rank] is not None and ranks[rank].get("GYRE_COLLECTIVES", "all_reduce")
        check(not with_gyre or (why in process.err and "NCCL runs all calls" in process.err), f"rank {rank} does not say '{why}': {process.err}")
        check(process.seconds < slower_than + 5, f"rank {rank} took {process.seconds} s")


def a_rank_without_gyre_leaves_all_to_nccl():
    nccl_alone("rank 2 of 3 did not join within 1 s", {}, {}, None, GYRE_TIMEOUT="1")


def where_the_maker_of_the_id_has_no_gyre_nobody_waits():
    nccl_alone("the process that made it has no gyre", None, {}, {})


def ranks_that_differ_leave_all_to_nccl():
    nccl_alone("rank 1 has GYRE_MIN_BYTES=16, rank 0 has GYRE_MIN_BYTES=0", {}, {"GYRE_MIN_BYTES": "16"}, {})
    nccl_alone("rank 1 has GYRE_COLLECTIVES=none, rank 0 has GYRE_COLLECTIVES=all_reduce", {}, {"GYRE_COLLECTIVES": ""})
    nccl_alone("rank 1 has no GYRE_COLLECTIVES, rank 0 has GYRE_COLLECTIVES=all_reduce", {}, {"GYRE_COLLECTIVES": None})
    nccl_alone("rank 1 has GYRE_ALGORITHM", {}, {"GYRE_ALGORITHM": "ring"})


def a_process_with_two_copies_of_nccl_leaves_all_to_nccl():
    second = {"TEST_SECOND_NCCL": "libnccl-second.so"}
    nccl_alone("several copies of NCCL", {}, second, {})
    nccl_alone("several copies of NCCL", second, second)
    for process in run("plain", second, second):
        check("libnccl.so.2 and" in process.err and "libnccl-second.so" in process.err, f"the copies are not named: {process.err}")


def collectives_with_a_configuration_are_nccls():
    takes = {"GYRE_COLLECTIVES": "all_reduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,gather,scatter"}
    for rank, process in enumerate(all_right(run("configured", takes, takes, takes, GYRE_LOG="info"))):
        expected = [line[10:] for line in process.out.splitlines() if line.startswith("expected: ")]
        check(len(expected) == 8 and steps(process)["configured"] == expected, f"rank {rank}: {process.out} {process.err}")
        for step in ("without a configuration", "large"):
            check(calls_by_nccl(process, step) == [], f"rank {rank}, {step}: {process.out} {process.err}")
        check(process.err.count("by NCCL: it has a configuration of its own") == 8, f"rank {rank}: {process.err}")


def a_programs_own_kernels_are_nccls():
    for env in ({}, {"GYRE_COLLECTIVES": None}, {"LD_PRELOAD": None, "LD_BIND_NOW": "1"}):
        nccl = {"GYRE_NCCL": FAKE} if "LD_PRELOAD" in env else {}
        for rank, process in enumerate(all_right(run("kernels", env, env, **nccl))):
            asked = [line for line in process.out.splitlines() if line.startswith(("NCCL: ncclTeam", "NCCL: ncclGetMulti"))]
            check(asked == [f"NCCL: ncclTeamRankToLsa 12 {rank + 20} 30 5", "NCCL: ncclGetMultimemDevicePointer 1 6"], f"{env}: {asked}")
            lacks = re.findall(r"(nccl\w+): the NCCL of this machine is too old", process.err)
            check(lacks == ["ncclTeamRail", "ncclTeamRankToWorld", "ncclDevCommCreate"], f"{env}: {process.err}")


def releases_that_nobody_knows_are_taken_for_what_they_are():
    later = {"TEST_FAKE_VERSION": "29900"}
    for process in all_right(run("plain", later, later)):
        check(calls_by_nccl(process, "large") == [], f"{process.out} {process.err}")
    full = {**later, "TEST_FAKE_ID": "full"}
    nccl_alone("", full, full)
    process, _ = run("plain", full, full)
    check("uses the bytes of its unique id" in process.err, process.err)


def an_nccl_that_encrypts_runs_all_calls():
    nccl_alone("NCCL is to encrypt its connections", {}, {}, by="encrypted")


def what_leaves_gyre_no_way_leaves_all_to_nccl():
    nccl_alone("NCCL_COMM_ID leaves no room", {}, NCCL_COMM_ID="127.0.0.1:4711")


def what_does_not_block_is_gyres_too():
    for rank, process in enumerate(all_right(run("does_not_block", {}, {}, {}, {}))):
        for step in ("large", "half"):
            check("ncclAllReduce" not in calls_by_nccl(process, step), f"rank {rank}, {step}: {process.out} {process.err}")
        check(process.err == "", f"rank {rank}: {process.err}")


def what_does_not_block_is_nccls_where_ranks_differ():
    nccl_alone("rank 2 of 3 did not join within 1 s", {}, {}, None, by="does_not_block", GYRE_TIMEOUT="1")
    nccl_alone("rank 1 has GYRE_MIN_BYTES=16, rank 0 has GYRE_MIN_BYTES=0", {}, {"GYRE_MIN_BYTES": "16"}, by="does_not_block")
    nccl_alone("rank 1 has no GYRE_COLLECTIVES, rank 0 has GYRE_COLLECTIVES=all_reduce", {}, {"GYRE_COLLECTIVES": None}, by="does_not_block")


def a_rank_that_dies_before_it_has_voted_keeps_nobody():
    for rank, process in enumerate(run("loses_one", {}, {}, {}, GYRE_TIMEOUT="1", TEST_FAKE_DIES="1")):
        check(process.code == (-signal.SIGKILL if rank == 1 else 0), f"rank {rank}: {process.code}: {process.err}")
        check(rank == 1 or "rank 1 of 3 did not join" in process.err, f"rank {rank} does not name who died: {process.err}")
        check(process.seconds < 6, f"rank {rank} took {process.seconds} s")


def processes_fork_and_end_while_ranks_vote():
    # What the thread that votes holds looks lost in the child, where that thread is not.
    for rank, process in enumerate(all_right(run("leaves", {}, {}, None, GYRE_TIMEOUT="60", LSAN_OPTIONS="detect_leaks=0"))):
        check(process.seconds < 10, f"rank {rank} took {process.seconds} s")


def an_init_that_nccl_refuses_stays_refused():
    for story in ("fails", "fails_in_a_group"):
        for rank, process in enumerate(all_right(run(story, {}, {}, {}, GYRE_TIMEOUT="1", TEST_FAKE_FAILS="1"))):
            check(rank == 1 or "rank 1 of 3 did not join" in process.err, f"{story}, rank {rank}: {process.err}")


def communicators_of_some_ranks_are_gyres_too():
    for rank, process in enumerate(all_right(run("parts", {}, {}, {}, {}))):
        for step in ("half", "rest", "end"):
            check("ncclAllReduce" not in calls_by_nccl(process, step), f"rank {rank}, {step}: {process.out} {process.err}")
        check(process.err == "", f"rank {rank}: {process.err}")


def by(file, host="a"):
    """A rank that goes by a file of choices."""
    return {"GYRE_COLLECTIVES": None, "GYRE_TUNER_FILE": str(file), "GYRE_HOSTID": host}


def written(name, text):
    file = pathlib.Path(FILES.name) / name
    file.write_text(text, encoding="utf-8")
    return file


def profile(name, choices=((0, "nccl"), (4000, "gyre"), (4001, "nccl")), version=os.environ["TEST_PROFILE_VERSION"]):
    """Of two ranks on each of two nodes."""
    jobs = [{"ranks_per_node": 2, "nodes": 2, "choices": {"all_reduce": choices}}]
    return written(name, json.dumps({"nccl": {"machine": "m", "version": version, "date": "", "origin": "a test", "jobs": jobs}}))


def where_a_profile_gives_it_calls_gyre_takes_them():
    file = profile("profile.json")
    for process in all_right(run("plain", *[by(file, host) for host in "abba"], GYRE_LOG="info")):
        check(calls_by_nccl(process, "large") == [], f"{process.out} {process.err}")
        check(process.err.count("all_reduce of about 4000 bytes by gyre: the profile") == 1, process.err)
    for hosts, why in (("aaab", "none on 2 nodes with different numbers of ranks"), ("aaaa", "none on 1 node")):
        for process in all_right(run("plain", *[by(file, host) for host in hosts], GYRE_LOG="info")):
            check(calls_by_nccl(process, "large") == ["ncclAllReduce"] and "warning" not in process.err, f"{hosts}: {process.out} {process.err}")
            check(f"NCCL runs all calls of this communicator: the profile gives gyre {why}" in process.err, f"{hosts}: {process.err}")


def an_empty_list_of_collectives_leaves_all_to_nccl_whatever_the_profile():
    for file in (profile("profile.json"), "/nowhere"):
        for process in all_right(run("plain", *[{**by(file, host), "GYRE_COLLECTIVES": ""} for host in "aabb"])):
            check(calls_by_nccl(process, "large") == ["ncclAllReduce"] and process.err == "", f"{process.out} {process.err}")


def ranks_of_other_profiles_leave_all_to_nccl():
    file, other = profile("profile.json"), profile("other.json", [[0, "gyre"]])
    for odd, said in ((other, "a file with the hash [0-9a-f]{16}"), ("", "no profile"), ("/nowhere", "no profile: .*No such file.*"),
                      (profile("older.json", version="0.0.1"), "no profile: .*made by another gyre.*")):
        for rank, process in enumerate(all_right(run("plain", by(file), by(odd, "b"), by(file), by(file, "b")))):
            check(calls_by_nccl(process, "large") == ["ncclAllReduce"], f"rank {rank}: {process.out} {process.err}")
            heard = re.search(f"NCCL runs all calls of this communicator: rank 1 has {said}, rank 0 has a file with the hash ", process.err)
            check(heard or (rank == 1 and odd != other),  # who would take nothing over says so in the background, and may end before
                  f"rank {rank} does not say '{said}': {process.err}")


def a_file_that_gives_gyre_nothing_is_no_failure():
    for file, warned in ((profile("older.json", version="0.0.1"), "made by another gyre"), ("/nowhere", "/nowhere: No such file"),
                         (profile("wrong.json", [[0, "gyer"]]), 'all_reduce[0] = [0,"gyer"]: must be'), (profile("ncclown.json", [[0, "nccl"]]), ""),
                         (written("rules.csv", "allreduce,0,8,ring,ll,-1,-1,-1\n"), "")):
        for process in all_right(run("plain", *[by(file, host) for host in "aabb"])):
            check(calls_by_nccl(process, "large") == ["ncclAllReduce"], f"{process.out} {process.err}")
            check(warned in process.err and process.err.count("\n") == (1 if warned else 0), f"not one warning of '{warned}': {process.err}")
            check(not warned or f"GYRE_TUNER_FILE={file}: " in process.err, f"'{file}' is not named: {process.err}")


def ranks_of_one_process():
    (process,) = all_right(run("all_here", {}))
    check("written into" not in process.out, process.out)
    check(calls_by_nccl(process, "group") == ["ncclGroupStart", "ncclAllReduce", "ncclAllReduce", "ncclGroupEnd"], process.out)
    check(calls_by_nccl(process, "threads") == [], f"{process.out} {process.err}")


def ucx_is_opened_before_gyre_and_nccl_have_threads():
    for process in all_right(run("takes", {}, {}, {}, ucx=fake_ucx("ucp-1.9"), UCX_TLS="tcp", GYRE_MIN_BYTES="8", TEST_FAKE_THREADS="yes")):
        check(re.findall("UCX is loaded beside .*", process.err) == ["UCX is loaded beside 0 other threads"], process.err)


def an_abort_ends_what_gyre_runs():
    all_right(run("aborted", {}, {}))


def a_killed_rank_is_named():
    for rank, process in enumerate(run("killed", {}, {}, {})):
        check(process.code == (-signal.SIGKILL if rank == 1 else 0), f"rank {rank}: {process.code}: {process.err}")
        check(rank == 1 or "rank 1" in process.out, f"rank {rank} does not name who died: {process.out}")


subjects([gyre_takes_what_it_may_and_nccl_the_rest, gyre_takes_calls_where_it_has_the_name_of_nccl, by_default_nccl_runs_everything, a_rank_without_gyre_leaves_all_to_nccl,
          where_the_maker_of_the_id_has_no_gyre_nobody_waits, ranks_that_differ_leave_all_to_nccl,
          a_process_with_two_copies_of_nccl_leaves_all_to_nccl, what_leaves_gyre_no_way_leaves_all_to_nccl,
          what_does_not_block_is_gyres_too, what_does_not_block_is_nccls_where_ranks_differ, a_rank_that_dies_before_it_has_voted_keeps_nobody, processes_fork_and_end_while_ranks_vote,
          collectives_with_a_configuration_are_nccls, a_programs_own_kernels_are_nccls,
          releases_that_nobody_knows_are_taken_for_what_they_are, an_nccl_that_encrypts_runs_all_calls,
          an_init_that_nccl_refuses_stays_refused, communicators_of_some_ranks_are_gyres_too,
          where_a_profile_gives_it_calls_gyre_takes_them,
          an_empty_list_of_collectives_leaves_all_to_nccl_whatever_the_profile, ranks_of_other_profiles_leave_all_to_nccl, a_file_that_gives_gyre_nothing_is_no_failure,
          ranks_of_one_process, ucx_is_opened_before_gyre_and_nccl_have_threads, an_abort_ends_what_gyre_runs, a_killed_rank_is_named])
