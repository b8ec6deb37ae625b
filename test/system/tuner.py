#!/usr/bin/env python3
"""gyre-perf tuner: what a plugin chooses through each of its tables, and clear errors where there is none to ask. Beside gyre-perf's folder
lie gyre's own plugin, and a stand-in for others (test/perf/fake_tuner.c)."""
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


def rules_for_others_are_not_this_communicators():
    found = choices(tuner("--ranks", "8", "--nodes", "1", "-b", "8", "-e", "8"))
    check(set(found.values()) == {("NCCL's own", "NCCL's")}, f"{found}")


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


subjects([every_table_chooses_by_the_rules, predicted_choices_are_rules_as_they_are_written, rules_for_others_are_not_this_communicators,
          prices_of_a_tuners_own_and_entries_that_it_forbids_are_choices, what_no_communicator_has_is_not_chosen, what_cannot_be_asked_is_said_in_one_line])
