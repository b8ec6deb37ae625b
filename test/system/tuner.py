#!/usr/bin/env python3
"""gyre-perf tuner: what a plugin chooses through each of its tables, and clear errors where there is none to ask. Beside gyre-perf's folder
lie gyre's own plugin, and a stand-in for others (test/perf/fake_tuner.c)."""
import json
import os
import re
import sys
import tempfile

from system import Skipped, check, run, subjects

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
PLUGIN = os.path.join(BUILD, "plugin", "libnccl-net-gyre.so")
FAKE = os.path.join(BUILD, "test", "libfake-tuner.so")
ROW = re.compile(r"^ +(\w+) +(\d+) +(NCCL's own|\w+/\w+) +(NCCL's|\d+) +[\d.]+$", re.M)
RULES = "allreduce,0,65536,tree,ll,-1,2,-1\nallreduce,65537,4294967295,ring,simple,16,-1,-1,-1,-1\nreduce,0,10,ring,ll128,-1,-1,9\n"


def tuner(*arguments, rules=RULES, plugin=PLUGIN):
    if not os.path.exists(PLUGIN):
        raise Skipped("built without a network")
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(rules)
        file.flush()
        return run("tuner", plugin, *arguments, env={"GYRE_TUNER_FILE": file.name})


def choices(process):
    """{(collective, bytes): (choice, channels)}"""
    return {(row[0], int(row[1])): row[2:] for row in ROW.findall(process.passed().out)}


def every_table_chooses_by_the_rules():
    for table in (3, 4, 5, 6):
        process = tuner("--version", table, "--ranks", "9", "--nodes", "2", "-b", "8", "-e", "128K", "-f", "16384")
        check(f"tuner plugin gyre, table {table}: init for 9 ranks on 2 nodes" in process.out, process.story())
        found = choices(process)
        check(len(found) == 10, process.story())
        check(found["all_reduce", 8] == ("tree/ll", "NCCL's") and found["all_reduce", 131072] == ("ring/simple", "16"), process.story())
        check(found["reduce", 8] == ("ring/ll128", "NCCL's") and found["reduce", 131072] == ("NCCL's own", "NCCL's"), process.story())


def by_its_own_name_it_is_there_too():
    link = os.path.join(BUILD, "plugin", "libnccl-tuner-gyre.so")  # NCCL_TUNER_PLUGIN=gyre
    found = tuner("--version", 6, "--ranks", 4, "--nodes", 2, "-b", "8", "-e", "8", plugin=link)
    check(choices(found)["all_reduce", 8] == ("tree/ll", "NCCL's"), found.story())


def predicted_choices_are_rules_as_they_are_written():
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
        shown = run("crossovers", "--nodes", 2, "--rules", file.name).passed()
        rules = file.read()
    changes = re.findall(r"^ +all_reduce +(\d+) +(\w+/\w+) ", shown.out, re.M)
    found = choices(tuner("--ranks", "16", "--nodes", "2", "-b", "8", "-e", "256M", "-f", "2", rules=rules))
    wanted = {size: [choice for start, choice in changes if int(start) <= size][-1] for (collective, size) in found if collective == "all_reduce"}
    check(len(wanted) == 26 and len(set(wanted.values())) > 2, shown.story())
    check(all(found["all_reduce", size] == (choice, "NCCL's") for size, choice in wanted.items()), f"{found}\n{shown.story()}")
    others = choices(tuner("--ranks", "8", "--nodes", "1", "-b", "8", "-e", "8", rules=rules))
    check(set(others.values()) == {("NCCL's own", "NCCL's")}, f"{others}")


def made_profile(*arguments, before=None):
    """(its text, {nodes: {collective: [[bytes, choice]]}}), once crossovers has put them into a file."""
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        if before is not None:
            with open(profile, "w", encoding="utf-8") as file:
                file.write(before)
        run("crossovers", *arguments, "--profile", profile).passed()
        check(os.listdir(folder) == ["profile.json"], f"{os.listdir(folder)}")
        with open(profile, encoding="utf-8") as file:
            text = file.read()
    made = json.loads(text)["nccl"]
    check(made["machine"] and made["version"] and made["date"] and "not measured on GPUs" in made["origin"], f"{made}")
    return text, {job["nodes"]: job["choices"] for job in made["jobs"]}


def asked(profile, ranks, nodes, size):
    """{collective: choice} of calls of so many bytes."""
    found = choices(tuner("--ranks", ranks, "--nodes", nodes, "-b", size, "-e", size, rules=profile))
    return {collective: choice for (collective, _), (choice, _) in found.items()}


def a_profiles_choices_change_at_its_thresholds_and_nowhere_else():
    profile, jobs = made_profile("--nodes", 5)
    check(list(jobs) == [1, 2, 4, 5], f"{list(jobs)}")
    check(all(list(job) == ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"] for job in jobs.values()), f"{jobs}")
    for nodes, of in ((1, 1), (3, 2), (10, 5)):  # itself; the one before; the last, up to twice its nodes
        starts = {start for changes in jobs[of].values() for start, _ in changes}
        check(len(starts) > 5, f"{jobs[of]}")
        for size in sorted({start + by for start in starts for by in (-1, 0, 1)} - {-1}):
            wanted = {collective: [choice for start, choice in changes if start <= size][-1] for collective, changes in jobs[of].items()}
            found = asked(profile, 8 * nodes, nodes, size)
            check(found == wanted, f"{size} bytes on {nodes} nodes: {found}, not {wanted}")
    for ranks, nodes in ((12, 3), (7, 1), (17, 2), (88, 11), (100000, 12500)):  # others per node, not as many on each, or far more nodes
        found = asked(profile, ranks, nodes, 8)
        check(set(found.values()) == {"NCCL's own"}, f"{ranks} ranks on {nodes} nodes: {found}")


def a_profile_keeps_what_else_it_has():
    others = {"links": {"b": 1.25, "a": 12345678901}, "about": ["mine"], "made_for": {"processor": "abacus", "gyre": "0.0.1"}}
    profile, jobs = made_profile("--machine", "cloud_t4", "--nodes", 2, "--ranks", 2,
                                 before=json.dumps({"nccl": {"version": "0.0.1", "jobs": 7}, **others}))
    check(list(jobs) == [2], f"{jobs}")  # one rank on one node chooses nothing
    kept = json.loads(profile)
    del kept["nccl"]
    check(json.dumps(kept) == json.dumps(others), profile)
    check(asked(profile, 3, 3, 8)["broadcast"] == "ring/ll", profile)


def a_profile_of_tune_alone_leaves_all_to_nccl():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "profile.json")
        run("tune", "--collectives", "all_reduce", "--ranks", 2, "--transport", "shm", "-b", "64", "-e", "64", "--rounds", 1, "-o", profile).passed()
        with open(profile, encoding="utf-8") as file:
            found = asked(file.read(), 8, 1, 8)
    check(set(found.values()) == {"NCCL's own"}, f"{found}")


def what_is_no_profile_is_left_as_it_is():
    with tempfile.NamedTemporaryFile("w+", suffix=".json") as file:
        for text, words in (("{", "is not JSON"), ("[]", "must be an object"), ('{"nccl": 1, "nccl": 2}', "stands twice"),
                            ('{"nccl": {"jobs": 7}}', "nccl.version: is missing")):
            file.seek(0)
            file.truncate()
            file.write(text)
            file.flush()
            run("crossovers", "--profile", file.name).complains(f"{file.name}: .*{words}")
            file.seek(0)
            check(file.read() == text, "overwritten")
    run("crossovers", "--profile", "/nowhere/profile.json").complains("/nowhere/profile.json: No such file")


def a_profile_of_another_version_is_refused_with_the_reason():
    process = tuner(rules=re.sub('"version": "[^"]*"', '"version": "0.0.1"', made_profile()[0]))
    check(process.failed() and 'nccl.version = "0.0.1": made by another gyre' in process.err, process.story())


def rules_for_others_are_not_this_communicators():
    found = choices(tuner("--ranks", "8", "--nodes", "1", "-b", "8", "-e", "8"))
    check(set(found.values()) == {("NCCL's own", "NCCL's")}, f"{found}")


def the_largest_job_takes_little():
    """The bounds are the issue's; that a call takes less than 1 us is a figure (perf/results/2026-11-29-tuner/), no test."""
    wide = [f"{algorithm},{protocol},-1,-1,-1,{operations},{buffers}" for algorithm in ("tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
            for protocol in ("ll", "ll128", "simple") for operations in (-1, 1) for buffers in (-1, 0)]
    files = {"nothing": "",
             "a rule for each of 1000 sizes": "".join(f"allreduce,{1000 * i},{1000 * i + 999},ring,ll,-1,-1,-1\n" for i in range(1000)),
             "18,000 rules that cover each other, none of which a broadcast has":
                 "".join(f"broadcast,{i},{2**40 - i},{wide[i % len(wide)]}\n" for i in range(18000)),
             "a profile of 15 jobs": made_profile("--nodes", 12500)[0]}
    for what, rules in files.items():
        done = tuner("--ranks", 100000, "--nodes", 12500, "-b", 8, "-e", 8, rules=rules).passed()
        took = re.search(r"init for 100000 ranks on 12500 nodes took ([\d.]+) ms and (\d+) KiB", done.out)
        check(took is not None, done.story())
        check(float(took[1]) < 1000 and int(took[2]) < 100_000_000 >> 10, f"{what}\n{done.story()}")
        chosen = {choice for choice, _ in choices(done).values()} - {"NCCL's own"}
        check(bool(chosen) == what.startswith("a "), f"{what}: {chosen}")


def prices_of_a_tuners_own_and_entries_that_it_forbids_are_choices():
    process = tuner("-b", "8", "-e", "8", plugin=FAKE)
    check("tuner plugin fake, table 4" in process.out, process.story())
    found = {collective: choice for (collective, _), (choice, _) in ((row[:2], row[2:]) for row in ROW.findall(process.out))}
    check(found == {"all_reduce": "ring/ll", "reduce_scatter": "ring/ll", "all_gather": "ring/ll", "broadcast": "ring/simple"}, process.story())
    check(process.failed().code == 1 and "tuner plugin fake, table 4: getCollInfo: ncclInternalError" in process.err, process.story())


def what_no_communicator_has_is_not_chosen():
    found = choices(tuner("-b", "8", "-e", "8", rules="allreduce,0,10,pat,simple,-1,-1,-1\nbroadcast,0,10,tree,ll,-1,-1,-1\n"))
    check(found["all_reduce", 8][0] == found["broadcast", 8][0] == "NCCL's own", f"{found}")


def what_cannot_be_asked_is_said_in_one_line():
    for arguments, words in ((("--ranks", "2", "--nodes", "3"), "--nodes 3: more than --ranks 2"), (("--version", "7"), "--version"),
                             (("-b", "9", "-e", "8"), "-b 9 is larger")):
        process = tuner(*arguments)
        check(process.failed() and words in process.err, process.story())
    process = tuner(plugin="/lib/none.so")
    check(process.failed() and "tuner plugin /lib/none.so: cannot be opened" in process.err, process.story())
    process = tuner(plugin="")
    check(process.failed() and "tuner plugin : no path" in process.err, process.story())
    process = tuner(plugin=os.path.join(BUILD, "plugin", "libgyre-nccl.so"))
    check(process.failed() and "has no table ncclTunerPlugin_v3 to _v6" in process.err, process.story())
    process = tuner(rules="allreduce,0,1,wood,ll,-1,-1,-1\n")
    check(process.failed() and "init: nccl" in process.err and "wood" in process.err, process.story())


subjects([every_table_chooses_by_the_rules, by_its_own_name_it_is_there_too, predicted_choices_are_rules_as_they_are_written,
          a_profiles_choices_change_at_its_thresholds_and_nowhere_else, a_profile_keeps_what_else_it_has,
          a_profile_of_tune_alone_leaves_all_to_nccl, what_is_no_profile_is_left_as_it_is,
          a_profile_of_another_version_is_refused_with_the_reason, rules_for_others_are_not_this_communicators,
          prices_of_a_tuners_own_and_entries_that_it_forbids_are_choices, what_no_communicator_has_is_not_chosen,
          the_largest_job_takes_little, what_cannot_be_asked_is_said_in_one_line])
