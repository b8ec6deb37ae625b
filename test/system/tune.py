"""gyre-perf tune: a profile of this machine; and GYRE_EXPLAIN, what is chosen by it and why."""
import json
import os
import tempfile

from system import check, run, subjects

QUICK = ["--collectives", "all_reduce,all_gather", "--ranks", 2, "--transport", "shm", "-b", "64", "-e", "4K", "--rounds", 2]


def a_profile_is_made_and_taken_here():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "constants.json")
        done = run("tune", *QUICK, "-o", profile).passed()
        check("price's error" in done.out and "regret: median" in done.out and f"GYRE_CONSTANTS={profile}" in done.out, done.story())
        with open(profile, encoding="utf-8") as file:
            made = json.load(file)
        check(made["made_for"]["processors"] == os.cpu_count(), f"made for {made['made_for']}")
        check("fitted to" in made["links"]["host"]["origin"]["note"], f"{made['links']['host']}")
        check(os.path.exists(profile + ".samples.jsonl"), "no samples")
        measured, gathered = made["machines"]["host"]["measured"]
        check((measured["collective"], gathered["collective"]) == ("all_reduce", "all_gather"), f"{measured}, {gathered}")
        check(gathered["bytes"] == [size // 2 for size in measured["bytes"]], f"not of a block: {gathered}")
        check(measured["bytes"] == [64, 128, 256, 512, 1024, 2048, 4096] and measured["ranks"] == 2, f"{measured}")
        check(all(len(times["us"]) == 7 for times in measured["times"]) and len(measured["times"]) > 5, f"{measured['times']}")
        done = run("all_reduce", "-b", "1K", "-e", "1K", "-n", 2, "--explain", env={"GYRE_CONSTANTS": profile}).passed()
        check("by its times, not its price" in done.out, done.story())
        run("all_reduce", "-b", "1K", "-e", "1K", "-n", 2, env={"GYRE_CONSTANTS": profile}).passed()


def a_profile_of_another_machine_or_version_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "constants.json")
        run("tune", *QUICK, "-o", profile).passed()
        with open(profile, encoding="utf-8") as file:
            made = json.load(file)
        other = {**made, "made_for": {**made["made_for"], "gyre": "0.0.1"}}
        foreign = os.path.join(folder, "foreign.json")
        with open(foreign, "w", encoding="utf-8") as file:
            json.dump(other, file)
        run("tune", *QUICK, "-o", profile, env={"GYRE_CONSTANTS": foreign}).passed()  # what the refusal advises
        for key, value, words in (("processors", 1024, "this machine has"), ("processor", "abacus", "this machine has"), ("gyre", "0.0.1", "this is gyre"),
                                  ("gyre", "0.1.0", "this is gyre"), ("gyre", "0.1.0+0", "this is gyre")):
            other = {**made, "made_for": {**made["made_for"], key: value}}
            with open(profile, "w", encoding="utf-8") as file:
                json.dump(other, file)
            done = run("all_reduce", "-e", "1K", env={"GYRE_CONSTANTS": profile}).failed()
            check(all(word in done.err for word in (profile, "made for", words, "gyre-perf tune")), done.story())
        del made["made_for"]
        with open(profile, "w", encoding="utf-8") as file:
            json.dump(made, file)
        run("all_reduce", "-b", "1K", "-e", "1K", "-n", 2, env={"GYRE_CONSTANTS": profile}).passed()


def a_second_transport_leaves_what_was_measured_of_the_first():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "constants.json")
        little = ["--collectives", "all_reduce", "--ranks", 2, "-b", 64, "-e", 128, "--rounds", 1, "-o", profile]
        run("tune", *little, "--transport", "shm").passed()
        with open(profile, encoding="utf-8") as file:
            first = json.load(file)
        tcp = [*little, "--transport", "tcp"]
        done = run("tune", *tcp).passed()
        check(f"{profile}: what it has of host was measured here before, and stays" in done.out, done.story())
        with open(profile, encoding="utf-8") as file:
            both = json.load(file)
        check("measured" in both["machines"]["host_tcp"] and "measured" not in first["machines"]["host_tcp"], f"{both['machines']}")
        for table in ("links", "ranks", "machines"):
            check(both[table]["host"] == first[table]["host"], f"{both[table]['host']}, not {first[table]['host']}")
        both["made_for"]["gyre"] = "0.0.1"  # holds no more
        with open(profile, "w", encoding="utf-8") as file:
            json.dump(both, file)
        done = run("tune", *tcp).passed()
        check(f"{profile}: begun anew from the constants compiled in, as made for gyre 0.0.1" in done.out, done.story())
        with open(profile, encoding="utf-8") as file:
            check("measured" not in json.load(file)["machines"]["host"], "kept what another version measured")


def a_profile_keeps_what_the_tuner_chooses_by():
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "constants.json")
        run("crossovers", "--profile", profile).passed()
        run("all_reduce", "-e", "1K", env={"GYRE_CONSTANTS": profile}).failed()  # says nothing of costs yet
        with open(profile, encoding="utf-8") as file:
            chosen = json.load(file)["nccl"]
        done = run("tune", *QUICK, "-o", profile).passed()
        check(f"crossovers --machine M --nodes N --profile {profile}" in done.out, done.story())
        with open(profile, encoding="utf-8") as file:
            check(json.load(file)["nccl"] == chosen, "not as before")
        run("all_reduce", "-b", "1K", "-e", "1K", "-n", 2, env={"GYRE_CONSTANTS": profile}).passed()


def what_cannot_be_written_is_said():
    run("tune", *QUICK, "-o", "/nowhere/constants.json").complains("/nowhere/constants.json")
    with tempfile.TemporaryDirectory() as folder:
        run("tune", *QUICK, "-o", folder).complains(f"--output {folder}: ")
        run("tune", *QUICK, "-o", "").complains("--output")
        samples = os.path.join(folder, "constants.json.samples.jsonl")
        with open(samples, "w", encoding="utf-8") as file:
            file.write("kept\n")
        if not os.path.isdir("/sys/class/infiniband"):
            done = run("tune", "--transport", "shm,verbs", "-o", os.path.join(folder, "constants.json")).complains("--transport verbs: ")
            check("2 ranks" not in done.out, done.story())
        run("tune", "--ranks", 2, "-b", "1K", "-e", 512, "-o", os.path.join(folder, "constants.json")).complains("512")
        check(os.path.exists(samples), "a wrong size has cost the samples of before")


def each_kind_of_call_is_explained_once():
    done = run("all_reduce", "-b", "1K", "-e", "4K", "-f", 4, "-n", 5, env={"GYRE_EXPLAIN": "1"}).passed(quiet=False)
    for sizes in ("1024 to 2047", "4096 to 8191"):
        check(done.err.count(f"explain: all_reduce, blocks of {sizes} bytes: ") == 2, f"not said once, and at the end\n{done.story()}")
    check("one_shot" in done.err and "ring" in done.err and "refused" in done.err, f"no candidates\n{done.story()}")
    check(" times" in done.err, f"not how often\n{done.story()}")
    heap = run("all_reduce", "-b", "4K", "-e", "4K", "-n", 5, "-R", 1, env={"GYRE_EXPLAIN": "1"}).passed(quiet=False)
    check("of the shared heap: two_shot ran" in heap.err and "one_shot ran" not in heap.err, heap.story())
    nothing = run("all_reduce", "-b", 0, "-e", 0, env={"GYRE_EXPLAIN": "1"}).passed(quiet=False)
    check("explain: all_reduce of nothing: " in nothing.err, nothing.story())
    run("all_reduce", "-b", "1K", "-e", "1K", "-n", 2).passed()  # says nothing unasked


subjects([a_profile_is_made_and_taken_here, a_profile_of_another_machine_or_version_is_refused,
          a_second_transport_leaves_what_was_measured_of_the_first, a_profile_keeps_what_the_tuner_chooses_by,
          what_cannot_be_written_is_said, each_kind_of_call_is_explained_once])
