#!/usr/bin/env python3
"""gyre-perf tune_nccl: what is measured with an nccl-tests command becomes what gyre's tuner chooses by. The command is a script that plays
all_reduce_perf, whose times are known, or gyre-perf itself, whose tables are nccl-tests'. Gyre's plugins lie beside gyre-perf's folder."""
import json
import os
import re
import signal
import stat
import sys
import tempfile

from system import Skipped, await_that, check, perf, processes, run, start, subjects

PLUGINS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1]))), "plugin")
PLUGIN, LIBRARY = os.path.join(PLUGINS, "libnccl-net-gyre.so"), os.path.join(PLUGINS, "libgyre-nccl.so")
OWN = {8: 10, 1024: 12, 65536: 40, 1048576: 300}
HEADER = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
REFUSED = "echo 'no algorithm/protocol available for function AllReduce' >&2; echo -------- >&2; exit 3"


def table(times, wrong=0):
    rows = [f"{size} {size // 4} float sum -1 {us - 1} 0 0 0 {us + 1} 0 0 {wrong}" for size, us in times.items()]
    return "\n".join(f"echo '{line}'" for line in [HEADER, *rows])


def ran(choice):
    algorithm, protocol = choice.upper().split("/")
    return f"echo 'host:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={{0..0}}'"


def fails_in(runs, choice, times, how="echo lost >&2; exit 3"):
    """A choice that fails in these of its timed runs, from 1."""
    return f"""case $(grep -c '^{choice} WARN' "${{0%/*}}/calls") in {runs}) {how};; esac\n{table(times)}"""


class Played:
    """A folder with all_reduce_perf, which does what is said by choice, "/" being NCCL's own and "gyre/" gyre, and a profile. Its ranks say on which hosts they
    are; those of "" say nothing."""

    def __init__(self, does, hosts=("",) * 15 + ("host",)):
        self._folder = tempfile.TemporaryDirectory()
        self.profile = os.path.join(self._folder.name, "profile.json")
        self.calls = os.path.join(self._folder.name, "calls")
        self.program = os.path.join(self._folder.name, "all_reduce_perf")
        ranks = "\n".join(f"echo '#  Rank {rank:2} Group  0 Pid 7 on {host} device  7 [0000:0f:00] NVIDIA Abacus'"
                          for rank, host in enumerate(hosts) if host)
        cases = "\n".join(f"{choice})\n{script}\n;;" for choice, script in does.items())
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
choice="${{GYRE_COLLECTIVES:+gyre}}$NCCL_ALGO/$NCCL_PROTO"
echo "$choice $NCCL_DEBUG $NCCL_DEBUG_SUBSYS $NCCL_TUNER_PLUGIN ${{GYRE_TUNER_FILE-none}} $*" >> {self.calls}
{ranks}
echo 'NCCL version 2.28.9+cuda13.0'
case "$choice" in
{cases}
*) {REFUSED};;
esac
""")
        os.chmod(self.program, stat.S_IRWXU)

    def command(self, *words, flags=(), rounds=2):
        return ["tune_nccl", "--profile", self.profile, "--ranks-per-node", 8, "--nodes", 2, "--rounds", rounds, *flags, "--",
                *(words or [self.program, "-b", "8", "-e", "1M"])]

    def tuned(self, *words, flags=(), rounds=2, env=None):
        return run(*self.command(*words, flags=flags, rounds=rounds), env=env)

    def timed(self, choice):
        with open(self.calls, encoding="utf-8") as file:
            return len(re.findall(f"^{choice} WARN", file.read(), re.M))

    def written(self):
        with open(self.profile, encoding="utf-8") as file:
            return json.load(file)

    def write(self, profile):
        with open(self.profile, "w", encoding="utf-8") as file:
            json.dump(profile, file)

    def job(self, ranks_per_node=8, nodes=2):
        return next(job for job in self.written()["nccl"]["jobs"] if (job["ranks_per_node"], job["nodes"]) == (ranks_per_node, nodes))


def usual_times():
    """Small calls are faster by the tree, large ones by NVLink SHARP; in between nothing is faster."""
    return {"/": OWN, "tree/ll": {8: 7, 1024: 8, 65536: 41, 1048576: 900}, "ring/simple": {8: 30, 1024: 31, 65536: 42, 1048576: 310},
            "nvls/simple": {8: 20, 1024: 21, 65536: 40, 1048576: 150}}


def usual():
    return {choice: table(times) for choice, times in usual_times().items()}


THRESHOLDS = [[0, "tree/ll"], [8192, "nccl"], [262144, "nvls/simple"], [1048577, "nccl"]]


def chosen(profile, size, ranks=16, nodes=2):
    """By gyre's tuner, for an all-reduce. On another machine than the one that was played it says so."""
    if not os.path.exists(PLUGIN):
        raise Skipped("built without a network")
    asked = run("tuner", PLUGIN, "--ranks", ranks, "--nodes", nodes, "-b", size, "-e", size, env={"GYRE_TUNER_FILE": profile}).passed(quiet=False)
    check(re.fullmatch(r"(.* WARN: .* measured on NVIDIA Abacus, and this machine has .*\n)?", asked.err), asked.story())
    return re.search(r"^ +all_reduce +\d+ +(NCCL's own|\w+/\w+) ", asked.out, re.M)[1]


def what_is_faster_is_what_the_tuner_chooses():
    played = Played(usual(), "a" * 8 + "b" * 8)
    done = played.tuned(env={"GYRE_TUNER_FILE": "/nowhere", "NCCL_ALGO": "ring", "NCCL_DEBUG": "TRACE"}).passed()
    check(re.search(r"^ +1024 +12\.00 +0\.00 +tree/ll +8\.00 +0\.667 +tree/ll$", done.out, re.M), done.story())
    check(re.search(r"^ +65536 +40\.00 .* NCCL's own$", done.out, re.M) and played.profile in done.out, done.story())
    job = played.job()
    check(job["choices"] == {"all_reduce": THRESHOLDS}, f"{job}")
    how = job["measured"]["all_reduce"]
    check(how["machine"] == "NVIDIA Abacus" and how["nccl"] == "2.28.9+cuda13.0" and how["rounds"] == 2, f"{how}")
    check(how["us"]["1024"] == {"nccl": 12, "tree/ll": 8} and how["us"]["1048576"]["nvls/simple"] == 150, f"{how}")
    check(how["gyre"] and re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", how["date"]) and played.program in how["command"], f"{how}")
    for size, choice in ((4, "tree/ll"), (8191, "tree/ll"), (8192, "NCCL's own"), (262143, "NCCL's own"), (262144, "nvls/simple"), (1048577, "NCCL's own")):
        check(chosen(played.profile, size) == choice, f"{size} bytes: not {choice}")
    check(chosen(played.profile, 8, ranks=8) == "NCCL's own", "chosen for a job of another size")


def runs_are_in_turn_and_without_a_tuner():
    played = Played(usual())
    played.tuned(env={"GYRE_TUNER_FILE": "/nowhere", "NCCL_ALGO": "ring", "NCCL_DEBUG": "TRACE"}).passed()
    with open(played.calls, encoding="utf-8") as file:
        calls = file.read().splitlines()
    looked, timed = calls[:11], calls[11:]
    check(looked[0] == "/ INFO TUNING none none -b 8 -e 1M" and all(" INFO TUNING none none " in call for call in looked), f"{looked}")
    round_of = [f"{choice} WARN  none none -b 8 -e 1M" for choice in ("/", "tree/ll", "ring/simple", "nvls/simple")]
    check(timed == round_of * 2, f"{timed}")


def variables_reach_ranks_behind_a_launcher_that_leaves_them():
    played = Played(usual())
    path = f"PATH={os.environ['PATH']}"
    done = played.tuned("env", "-i", path, "{env}", played.program).passed()
    check(played.job()["choices"]["all_reduce"] == THRESHOLDS, done.story())
    behind = Played({"/": table(OWN)})
    done = behind.tuned("env", "-i", path, behind.program).passed()
    check("{env} before the program" in done.out and behind.job()["choices"]["all_reduce"] == [[0, "nccl"]], done.story())


def what_fails_hangs_is_wrong_or_runs_as_another_is_left_out_with_the_reason():
    fast = {size: 2 for size in OWN}
    played = Played({"/": f"{ran('ring/ll')}\n{table(OWN)}", "ring/ll": f"{ran('ring/ll')}\n{table(OWN)}", "tree/ll": f"sleep 1000\n{table(fast)}",
                     "tree/simple": table(fast, wrong=7),
                     "tree/ll128": "echo 'h:1:2 [0] enqueue.cc:9 NCCL WARN Error : no algorithm'; echo '  Exit code: 3' >&2; exit 3",
                     "nvls/simple": f"{ran('ring/simple')}\n{table(fast)}", "ring/ll128": "echo nothing",
                     "ring/simple": "printf '\\033[1m%0400d\\n' 7 >&2; exit 3"})
    done = played.tuned(flags=["--timeout", 3]).passed()
    for choice, reason in (("tree/ll", "did not end within 3 s"), ("tree/simple", "wrong results: #wrong of 8 bytes is 7"),
                           ("nvls/simple", "NCCL ran ring/simple in its place"), ("ring/ll128", "it printed no table of nccl-tests'"),
                           ("tree/ll128", "exit code 3: Error : no algorithm"),
                           ("ring/simple", f"exit code 3: ?[1m{'0' * 296}…\n"),
                           ("collnet_chain/simple", "exit code 3: no algorithm/protocol available for function AllReduce")):
        check(f"# {choice} is left out: {reason}" in done.out, done.story())
    check("does not say what it runs" not in done.out, done.story())
    check(played.job()["choices"] == {"all_reduce": [[0, "nccl"]]}, f"{played.job()}")
    check(chosen(played.profile, 8) == "NCCL's own", "chosen all the same")


def what_fails_in_a_round_is_tried_once_more():
    played = Played({**usual(), "/": fails_in("1|4", "/", OWN), "tree/ll": fails_in("3", "tree/ll", usual_times()["tree/ll"])})
    done = played.tuned(rounds=3).passed()
    check(played.job()["choices"]["all_reduce"] == THRESHOLDS and played.job()["measured"]["all_reduce"]["rounds"] == 3, done.story())
    check(done.out.count("# NCCL's own choice is tried once more: exit code 3: lost\n") == 2 and "left out: exit code 3: lost" not in done.out, done.story())
    check("# tree/ll is tried once more: exit code 3: lost\n" in done.out and played.timed("tree/ll") == 4, done.story())
    for how, runs, again, reason in (("exit 3", "2|3", True, "exit code 3: "), ("sleep 1000", "2", False, "did not end within 3 s"),
                                     (f"{table(OWN, wrong=7)}\necho bad >&2; exit 1", "2", False, "wrong results: #wrong of 8 bytes is 7")):
        played = Played({**usual(), "tree/ll": fails_in(runs, "tree/ll", usual_times()["tree/ll"], how)})
        done = played.tuned(flags=["--timeout", 3], rounds=3).passed()
        check(f"# tree/ll is left out: {reason}" in done.out and ("tried once more" in done.out) == again, done.story())
        check(played.timed("tree/ll") == 2 + again and played.job()["choices"]["all_reduce"] == [[0, "nccl"], *THRESHOLDS[2:]], done.story())


def measuring_ends_with_whole_rounds_where_nccls_own_choice_fails():
    played = Played({**usual(), "/": fails_in("3|4", "/", OWN)})
    done = played.tuned(rounds=5).passed()
    check("# the measuring ends with 2 of 5 rounds: NCCL's own choice fails: exit code 3: lost\n" in done.out, done.story())
    check(played.job()["choices"]["all_reduce"] == THRESHOLDS and played.job()["measured"]["all_reduce"]["rounds"] == 2, f"{played.job()}")
    for runs, how, reason in (("2|3", "echo lost >&2; exit 3", "exit code 3: lost"), ("3", table(OWN, wrong=7), "wrong results: ")):
        played = Played({**usual(), "/": fails_in(runs, "/", OWN, how)})
        played.tuned(rounds=5).complains(f"with NCCL's own choice: {reason}")
        check(not os.path.exists(played.profile), "written")


def where_nothing_runs_nothing_is_written():
    for does, words in (({}, "with NCCL's own choice: exit code 3: no algorithm"), ({"/": table(OWN)}, "nothing ran but NCCL's own choice"),
                        ({"/": "echo nothing", "ring/ll": table(OWN)}, "with NCCL's own choice: it printed no table of nccl-tests'")):
        played = Played(does)
        played.tuned().complains(words)
        check(not os.path.exists(played.profile), "written")
    for hosts, words in (([""] * 7 + ["a"], "8 ranks ran, not 16"), ("abcd" * 4, "its ranks ran on 4 hosts, not on 2"),
                         ("a" * 9 + "b" * 7, "9 ranks ran on a, not 8")):
        played = Played(usual(), hosts)
        played.tuned().complains(f"with NCCL's own choice: {words}")
        check(not os.path.exists(played.profile), "written")
    Played(usual(), "a" * 16).tuned().passed()  # two hosts may have one name
    played = Played({"/": f"{ran('ring/ll')}\n{table(OWN)}"})
    other = os.path.join(os.path.dirname(played.program), "bench")
    os.rename(played.program, other)
    played.tuned(other, flags=["--collective", "broadcast"]).complains("with NCCL's own choice: NCCL ran all_reduce, not broadcast")


def the_rest_of_a_profile_stays_and_measured_choices_outlive_predictions():
    played = Played(usual())
    run("crossovers", "--nodes", 2, "--profile", played.profile).passed()
    before = {"links": {"b": 1.25}, **played.written()}
    played.write(before)
    played.tuned().passed()
    job, predicted = played.job(), before["nccl"]["jobs"][1]
    check(job["choices"] == {**predicted["choices"], "all_reduce": THRESHOLDS} and list(job["measured"]) == ["all_reduce"], f"{job}")
    check(played.written() == {**before, "nccl": {**before["nccl"], "jobs": [before["nccl"]["jobs"][0], job]}}, f"{played.written()}")
    run("crossovers", "--nodes", 4, "--machine", "pcie_4090", "--profile", played.profile).passed()
    after = played.job()
    check(after["choices"]["all_reduce"] == THRESHOLDS and after["measured"] == job["measured"], f"{after}")
    check(after["choices"]["reduce"] != predicted["choices"]["reduce"], "not predicted anew")
    stale = played.written()
    stale["nccl"]["version"] = "0.0.1"
    played.write(stale)
    done = played.tuned().passed()
    check("what was measured of NCCL alone stays; left out: " in done.out, done.story())
    check(len(played.written()["nccl"]["jobs"]) == 1 and played.written()["links"] == {"b": 1.25}, done.story())
    check(chosen(played.profile, 8) == "tree/ll", f"{played.written()}")


def by(who, sizes=tuple(OWN)):
    """What libgyre-nccl.so says of an all-reduce's sizes."""
    return "\n".join(f"echo 'gyre: info: rank 0 of 16: all_reduce of about {size} bytes by {who}' >&2" for size in sizes)


def gyre_beside_nccl_is_one_more_choice():
    noted = 'echo "$LD_PRELOAD $GYRE_COLLECTIVES $GYRE_LOG ${GYRE_MAX_BYTES-none}" >> "${0%/*}/with"'
    times = {8: 5, 1024: 9, 65536: 30, 1048576: 140}
    played = Played({**usual(), "gyre/": f"{noted}\n{by('gyre: GYRE_COLLECTIVES')}\n{table(times)}"})
    done = played.tuned(flags=["--library", os.path.relpath(LIBRARY)],
                        env={"LD_PRELOAD": "libdl.so.2", "GYRE_COLLECTIVES": "broadcast", "GYRE_MAX_BYTES": "8"}).passed()
    check(played.job()["choices"]["all_reduce"] == [[0, "gyre", "tree/ll"], [91, "tree/ll"], [8192, "gyre"], [262144, "gyre", "nvls/simple"], [1048577, "nccl"]],
          f"{played.job()} {done.story()}")
    check(re.search(r"^ +1024 +12\.00 .* tree/ll +8\.00 +0\.667 +9\.00 +tree/ll$", done.out, re.M), done.story())
    check(re.search(r"^ +8 +10\.00 .* +5\.00 +gyre, else tree/ll$", done.out, re.M) and f"LD_PRELOAD={LIBRARY}" in done.out, done.story())
    with open(os.path.join(os.path.dirname(played.calls), "with"), encoding="utf-8") as file:
        check(set(file) == {f"{LIBRARY}:libdl.so.2 all_reduce info none\n"}, "other variables")
    with open(played.calls, encoding="utf-8") as file:
        timed = [line.split()[0] for line in file if " WARN " in line]
    check(timed == ["/", "tree/ll", "ring/simple", "nvls/simple", "gyre/"] * 2, f"{timed}")
    check(re.search(r"^ +65536 +40\.00 .* +30\.00 +gyre$", done.out, re.M), done.story())
    for size, choice in ((8, "tree/ll"), (1024, "tree/ll"), (65536, "NCCL's own"), (1048576, "nvls/simple")):
        check(chosen(played.profile, size) == choice, f"{size} bytes: not {choice}")


def where_gyre_does_not_show_that_it_ran_the_sizes_it_is_left_out():
    fast = table({size: 2 for size in OWN})
    alone = "NCCL runs all calls of this communicator: rank 3 of 16 did not join within 10 s"
    for says, reason in (("", "gyre does not say that it ran 8 bytes\n"), (by("gyre", (8, 1024)), "gyre does not say that it ran 65536 bytes\n"),
                         (f"echo '{alone}' >&2", f"gyre does not say that it ran 8 bytes: {alone}\n"),
                         (by("gyre") + "\n" + by("NCCL: its stream is being captured"), "NCCL ran about 8 bytes in its place: its stream is being captured\n"),
                         (by("gyre") + "\n" + ran("ring/ll"), "NCCL ran ring/ll in its place\n"), ("echo lost >&2; exit 3", "exit code 3: lost\n")):
        played = Played({**usual(), "gyre/": f"{says}\n{fast}"})
        done = played.tuned(flags=["--library", LIBRARY]).passed()
        check(f"# gyre is left out: {reason}" in done.out and played.timed("gyre/") == 0, done.story())
        check(played.job()["choices"]["all_reduce"] == THRESHOLDS and "LD_PRELOAD=" not in done.out, done.story())
    fails = f"""case $(grep -c '^gyre/ WARN' "${{0%/*}}/calls") in 2|3) ;; *) {"; ".join(by("gyre").splitlines())};; esac\n{fast}"""
    played = Played({**usual(), "gyre/": fails})
    done = played.tuned(flags=["--library", LIBRARY]).passed()
    check("# gyre is left out: gyre does not say that it ran 8 bytes\n" in done.out and played.timed("gyre/") == 3, done.story())
    check(played.job()["choices"]["all_reduce"] == THRESHOLDS, f"{played.job()}")


def tables_of_gyre_perf_are_read_too():
    played = Played({})
    done = run(*played.command(perf(), "broadcast", "-b", 8, "-e", 64, "-n", 2, "-w", 1)).passed()
    check(re.findall(r"^ +(\d+) ", done.out, re.M) == ["8", "16", "32", "64"], done.story())
    check(list(played.job()["choices"]) == ["broadcast"] and played.job()["measured"]["broadcast"]["nccl"] == "unknown", f"{played.job()}")


def what_is_wrong_is_said_before_anything_runs():
    played = Played(usual())
    played.tuned("mpirun", "./train.py").complains("names none of all_reduce, .*--collective says")
    played.tuned("sh", "-c", "./all_reduce_perf; ./reduce_perf").complains("names more than one of")
    played.tuned(flags=["--collective", "alltoall"]).complains("--collective alltoall: NCCL asks a tuner only for all_reduce, ")
    played.tuned(flags=["--collective", "broadcast"]).complains("--collective broadcast: the command runs all_reduce")
    played.tuned("./alltoall_perf", flags=["--collective", "broadcast"]).complains("--collective broadcast: the command runs alltoall")
    played.tuned("env", "LD_LIBRARY_PATH=/opt/reduce", "A=/x/reduce_perf", "/opt/reduce", "reduce").complains("names none of all_reduce")
    played.tuned("sh", "-c", "{env} ./all_reduce_perf").complains("{env} ./all_reduce_perf: {env} must be a word of its own")
    played.tuned(flags=["--collective", "all_red"]).complains("did you mean all_reduce")
    played.tuned(flags=["--rounds", 1]).complains("--rounds")
    for library in ("/nowhere/libgyre-nccl.so", PLUGINS):
        played.tuned(flags=["--library", library]).complains(f"--library {library}: is no file")
    for name in ("a:b.so", "a b.so"):
        library = os.path.join(os.path.dirname(played.profile), name)
        open(library, "w").close()
        played.tuned(flags=["--library", library]).complains(f"--library {library}: LD_PRELOAD takes no path with a colon or a space")
    played.tuned("/nowhere/all_reduce_perf").complains("/nowhere/all_reduce_perf: No such file")
    run("tune_nccl", "--profile", played.profile, "--ranks-per-node", 8).complains("command")
    for place in ("/nowhere/profile.json", os.path.dirname(played.profile), ""):
        run("tune_nccl", "--profile", place, "--ranks-per-node", 8, "--", played.program).complains(f"--profile {place}: ")
    played.write({"nccl": {**json.loads('{"machine": "m", "date": "", "origin": "", "jobs": [7]}'), "version": version()}})
    played.tuned().complains(r"nccl.jobs\[0\] = 7: must be an object")
    check(not os.path.exists(played.calls), "something ran")


def version():
    with tempfile.TemporaryDirectory() as folder:
        run("crossovers", "--profile", f"{folder}/profile.json").passed()
        with open(f"{folder}/profile.json", encoding="utf-8") as file:
            return json.load(file)["nccl"]["version"]


def a_signal_ends_the_command_too():
    played = Played({"/": "sleep 1000"})
    tuning = start(*played.command())
    await_that(lambda: os.path.exists(played.calls), "nothing was started")
    await_that(lambda: len(tuning.session()) > 2, "no sleep")
    tuning.send(signal.SIGTERM)
    tuning.wait()
    check(tuning.code == -signal.SIGTERM, tuning.story())
    await_that(lambda: not tuning.session(), lambda: f"left: {tuning.session()} of {len(processes())}")


subjects([what_is_faster_is_what_the_tuner_chooses, runs_are_in_turn_and_without_a_tuner, variables_reach_ranks_behind_a_launcher_that_leaves_them,
          what_fails_hangs_is_wrong_or_runs_as_another_is_left_out_with_the_reason, what_fails_in_a_round_is_tried_once_more,
          measuring_ends_with_whole_rounds_where_nccls_own_choice_fails, where_nothing_runs_nothing_is_written,
          the_rest_of_a_profile_stays_and_measured_choices_outlive_predictions, gyre_beside_nccl_is_one_more_choice,
          where_gyre_does_not_show_that_it_ran_the_sizes_it_is_left_out, tables_of_gyre_perf_are_read_too,
          what_is_wrong_is_said_before_anything_runs, a_signal_ends_the_command_too])
