"""gyre-perf measure by ranks that a launcher started, on hosts that are pretended: what its samples say, and what fit makes of them for which jobs."""
import json
import os
import tempfile

from system import check, free_port, run, start, subjects

QUICK = ["-b", "64K", "-e", "256K", "-f", 4, "--rounds", 2]  # of large sizes there are fewer calls
SIZES = [64 << 10, 256 << 10]


def job(hosts, *words, env=None):
    """A rank on each of these hosts, in order; they have ended."""
    there = {"GYRE_SIZE": len(hosts), "GYRE_ROOT": f"127.0.0.1:{free_port()}", **(env or {})}
    ranks = [start(*words, env={**there, "GYRE_RANK": rank, "GYRE_HOSTID": host}) for rank, host in enumerate(hosts)]
    return [rank.wait() for rank in ranks]


def measured(hosts, file):
    ranks = [rank.passed() for rank in job(hosts, "measure", *QUICK, "-o", file)]
    check("round 2 of 2" in ranks[0].out and all(rank.out == "" for rank in ranks[1:]), "\n".join(rank.story() for rank in ranks))
    with open(file, encoding="utf-8") as lines:
        head, *samples = [json.loads(line) for line in lines]
    check("machine" in head and samples, f"{head}")
    return samples


def fitted(file, *samples):
    done = run("fit", *samples, "--for-this-machine", "-o", file).passed()
    with open(file, encoding="utf-8") as made:
        return json.load(made), done


def samples_say_nodes_and_network():
    with tempfile.TemporaryDirectory() as folder:
        samples = measured("aabb", os.path.join(folder, "hosts.jsonl"))
        check(all((s["ranks"], s["nodes"], s["transport"]) == (4, 2, "shm") and s["network"] != "shm" for s in samples), f"{samples[0]}")
        check({tuple(s["grid"]) for s in samples if s["algorithm"] == "hierarchical"} == {(2, 2)}, "not by hosts")
        check(sorted({s["bytes"] for s in samples}) == SIZES, f"{samples}")
        local = os.path.join(folder, "local.jsonl")
        run("measure", *QUICK, "-o", local).passed()
        check('"nodes"' not in open(local, encoding="utf-8").read(), "local ranks are on nodes")
        made, done = fitted(os.path.join(folder, "constants.json"), os.path.join(folder, "hosts.jsonl"))
        check([name for name in made["links"] if name in ("host_between", "host_crowded_between")], done.story())
        done = run("regret", os.path.join(folder, "hosts.jsonl"), local).passed()
        check({tuple(line.split()[1:4]) for line in done.out.splitlines() if line.startswith("all_reduce")} == {("4", "2", "shm"), ("2", "1", "shm")}, done.story())


def all_are_measured_in_the_first_rounds():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "samples.jsonl")
        run("measure", "--ranks", 4, "-b", 8, "-e", 8, "--rounds", 8, "-o", file).passed()
        with open(file, encoding="utf-8") as lines:
            _, *samples = [json.loads(line) for line in lines]
        rounds = {s["algorithm"]: len(s["us"]) for s in samples}
        check(rounds and all(5 <= each <= 8 for each in rounds.values()), f"{rounds}")


def the_link_between_hosts_is_fitted_and_none_inside():
    with tempfile.TemporaryDirectory() as folder:
        hosts, local, profile = (os.path.join(folder, name) for name in ("hosts.jsonl", "local.jsonl", "constants.json"))
        measured("ab", hosts)
        run("measure", *QUICK, "--transport", "tcp", "-o", local).passed()
        alone, _ = fitted(profile, local)
        both, done = fitted(profile, local, hosts)
        check("\nhost_tcp " in done.out and "\nhost_tcp_between " in done.out, done.story())
        check("fitted to" in both["links"]["host_tcp_between"]["origin"]["note"], f"{both['links']}")
        check([both["machines"]["host_tcp"][kind] for kind in ("local", "network")] == ["host_tcp", "host_tcp_between"], f"{both['machines']['host_tcp']}")
        for table in ("links", "ranks"):
            alone_in, both_in = ({name: {**entry, "origin": ""} for name, entry in made[table].items()} for made in (alone, both))
            both_in.pop("host_tcp_between", None)
            check(alone_in == both_in, f"samples of several hosts changed what is inside of one: {both_in}")
        run("all_reduce", "-e", "1K", "-n", 2, env={"GYRE_CONSTANTS": profile}).passed()


def times_count_for_jobs_on_as_many_hosts_only():
    with tempfile.TemporaryDirectory() as folder:
        hosts, profile = os.path.join(folder, "hosts.jsonl"), os.path.join(folder, "constants.json")
        network = measured("ab", hosts)[0]
        made, _ = fitted(profile, hosts)
        machine, = [name for name, of in made["machines"].items() if "measured" in of]
        (entry,) = made["machines"][machine]["measured"]
        check((entry["ranks"], entry.get("per_node"), entry["bytes"]) == (2, 1, SIZES), f"{entry}")
        explain = ["all_reduce", "-b", "512", "-e", "512", "-n", 2, "--explain"]
        env = {"GYRE_CONSTANTS": profile}
        there = job("ab", *explain, env=env)
        check(all(rank.passed() for rank in there) and "by its times, not its price" in there[0].out, there[0].story())
        here = run(*explain, "--transport", "tcp", env=env).passed()
        check("# one_shot " in here.out and "by its times" not in here.out, f"{network}: one host goes by times of two\n{here.story()}")
        without = run("fit", hosts, "-o", profile).passed()
        with open(profile, encoding="utf-8") as file:
            made = json.load(file)
        check("made_for" not in made and "measured" not in made["machines"][machine], without.story())


def what_cannot_be_measured_is_said():
    with tempfile.TemporaryDirectory() as folder:
        out = ["-o", os.path.join(folder, "samples.jsonl")]
        for hosts, words, complaint in (("ab", ["measure", "--ranks", 3, *out], "--ranks 3: the launcher started 2"),
                                        ("aab", ["measure", *QUICK, *out], "hosts have 2 and 1 ranks"),
                                        ("abab", ["measure", *QUICK, *out], "ranks 0, 2 are on one host.*map-by slot"),
                                        ("ab", ["tune", *out], "tune is for one host.*the launcher started 2.*gyre-perf measure")):
            for rank in job(hosts, *words):
                rank.complains(complaint)
        run("measure", *out, env={"GYRE_RANK": 0, "GYRE_SIZE": "two"}).complains("GYRE_SIZE=two")
        for hosts in ("ab", "a"):  # one that is alone starts its own
            for rank in job(hosts, "measure", "--ranks", 2, "--rounds", 1, "-e", 8, *out):
                rank.passed()


subjects([samples_say_nodes_and_network, all_are_measured_in_the_first_rounds, the_link_between_hosts_is_fitted_and_none_inside,
          times_count_for_jobs_on_as_many_hosts_only, what_cannot_be_measured_is_said])
