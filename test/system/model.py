"""gyre-perf model, explain and crossovers: what a user is told of a machine that is not here."""
import json
import re
import sys
import tempfile

from system import check, run, subjects


def rows(text):
    return [line.split() for line in text.splitlines() if line.strip() and line.strip()[0].isdigit()]


def large_cluster_has_a_winner_for_every_size():
    done = run("model", "--ranks", 16384, "--nodes", 2048).passed()
    table = rows(done.out)
    check([int(row[0]) for row in table] == [8 * 4**i for i in range(14)], f"sizes are not 8, 32, … 512M\n{done.story()}")
    check("nvlink_like" in done.out and "infiniband_like" in done.out, f"does not say which links\n{done.story()}")
    check(all(" x" in line for line in done.out.splitlines() if line.strip()[0].isdigit()), f"a row without runner-up\n{done.story()}")


def no_runner_up_is_faster():
    done = run("model", "--ranks", 8, "--nodes", 8, "--machine", "host", "-b", "16K", "-e", "512K", "-f", 2).passed()
    ahead = [float(row[-1].removeprefix("x")) for row in rows(done.out)]
    check(len(ahead) == 6 and min(ahead) >= 1, done.story())


def sizes_as_asked():
    table = rows(run("model", "--ranks", 4, "-b", "1K", "-e", "4M", "-f", 8).passed().out)
    check([int(row[0]) for row in table] == [1024 * 8**i for i in range(5)], f"{table}")


def every_collective():
    for collective in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "alltoall", "gather", "scatter"):
        for ranks, nodes in ((1, 1), (6, 1), (12, 3)):
            done = run("model", "--ranks", ranks, "--nodes", nodes, "--collective", collective, "-e", "1M").passed()
            check(len(rows(done.out)) == 9, done.story())


def explain_says_everything():
    for arguments in (("explain", "all_reduce", "--ranks", 8, "--bytes", "64K"), ("model", "--ranks", 8, "--explain", "64K")):
        done = run(*arguments).passed()
        for family in ("naive", "ring", "tree", "double_tree", "halving_doubling", "bucket", "hierarchical", "leaders", "one_shot",
                       "two_shot", "pat", "chained_tree"):
            check(f"\n{family} " in done.out, f"nothing of {family}\n{done.story()}")
        check("refused: all ranks are on one node" in done.out, f"no reason of hierarchical\n{done.story()}")
        check("refused: only reduce_scatter and all_gather" in done.out, f"no reason of pat\n{done.story()}")


def constants_of_a_file():
    free = {"origin": {"machine": "", "date": "", "command": "", "note": "nothing costs anything but a network message"}}
    link = {"beta_ns_per_byte": 0, "overhead_us": 0, "by_processor": False, **free}
    constants = {
        "links": {"near": {"alpha_us": 0, **link}, "far": {"alpha_us": 7, **link}},
        "ranks": {"idle": {"gamma_ns_per_byte": 0, "copy_ns_per_byte": 0, "step_us": 0, **free}},
        "machines": {"mine": {"local": "near", "network": "far", "rank": "idle", "nics_per_node": 0, "processors_per_node": 0}}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(constants, file)
        file.flush()
        done = run("explain", "all_reduce", "--ranks", 8, "--nodes", 8, "--constants", file.name, "--machine", "mine").passed()
        ring = [line.split() for line in done.out.splitlines() if line.startswith("ring ")][0]
        check(ring[2] == "98.00", f"14 hops of 7 us are 98 us, not {ring[2]}\n{done.story()}")
        run("model", "--constants", file.name, "--machine", "mind").complains("mind", r"did you mean mine\?")
        constants["links"]["far"]["alpha_us"] = "fast"
        file.seek(0)
        file.truncate()
        json.dump(constants, file)
        file.flush()
        run("model", "--constants", file.name, "--machine", "mine").complains("links.far.alpha_us", '"fast"', "must be a number")
    run("model", "--constants", "/nowhere.json").complains("/nowhere.json", "No such file")
    run("model", "--constants", "/dev/zero").complains("/dev/zero: no regular file")
    run("fit", "/dev/zero", "-o", "/nowhere/constants.json").complains("/dev/zero: no regular file")


def crossovers_of_every_machine():
    row = re.compile(r"^ +(\w+) +(\d+) +(\w+/\w+) +(\w+/\w+) +([\d.]+)$", re.M)
    for arguments in ((), ("--nodes", 2), ("--nodes", 128), ("--machine", "pcie_4090"), ("--machine", "cloud_t4", "--nodes", 2, "--ranks", 4)):
        done = run("crossovers", *arguments).passed()
        check("not measured on GPUs" in done.out, done.story())
        found = row.findall(done.out)
        sizes = {}
        for collective, size, *_ in found:
            sizes.setdefault(collective, []).append(int(size))
        check(list(sizes) == ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"], done.story())
        check(all(of == sorted(set(of)) and of[0] == 1 for of in sizes.values()), f"sizes are not rising from 1\n{done.story()}")
        check(all(float(ratio) >= 1 for *_, ratio in found), f"gyre's choice is not its own best\n{done.story()}")
        check(all(ours.startswith("ring") for collective, _, ours, *_ in found if collective != "all_reduce"), done.story())


def regrets(done):
    return [float(ratio) for ratio in re.findall(r"^ +\d+ .* (\d+\.\d{3})  ", done.out, re.M)]


def check_regrets(jobs):
    """Of jobs with their sizes, how many these are last."""
    for collective in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce"):
        for *job, sizes in jobs:
            done = run("model", "--simulate", "--collective", collective, *job, timeout=300).passed()
            ratios = regrets(done)
            check(len(ratios) == sizes and max(ratios) <= 1.05, done.story())


def choices_are_near_the_best_simulated():
    by_doubling = ("-e", "4M", "-f", 2)
    check_regrets((("--ranks", 8, "--nodes", 1, *by_doubling, 20), ("--ranks", 16, "--nodes", 2, *by_doubling, 20),
                   ("--ranks", 8, "--nodes", 8, "--machine", "host", *by_doubling, 20),
                   ("--ranks", 64, "--nodes", 16, "--machine", "host_tcp", "-b", "256K", *by_doubling, 5),
                   *(("--ranks", ranks, "--nodes", nodes, "-b", "64K", "-e", "1M", "-f", 16, 2) for ranks, nodes in ((128, 16), (512, 64), (512, 512)))))


def choices_are_near_the_best_on_large_clusters():
    """What takes a minute, and is asked for by name."""
    check_regrets((("--ranks", 128, "--nodes", 16, "-e", "128M", "-f", 4, 13), ("--ranks", 512, "--nodes", 64, "-e", "32M", "-f", 4, 12),
                   ("--ranks", 512, "--nodes", 512, "-e", "2M", "-f", 4, 10), ("--ranks", 4096, "--nodes", 4096, "-e", "8M", "-f", 32, 5),
                   ("--ranks", 64, "--nodes", 16, "--machine", "host_tcp", "-e", "128M", "-f", 4, 13)))


def choices_on_the_simulator():
    job = ("model", "--simulate", "--ranks", 8, "--nodes", 2)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/simulated.json"
        ratios = regrets(run(*job, "-e", "1M", "-f", 2, "-o", file).passed())
        check(len(ratios) == 18 and max(ratios) <= 1.05, f"{ratios}")
        with open(file, encoding="utf-8") as made:
            (entry,) = json.load(made)["machines"]["gpu_cluster"]["measured"]
        check((entry["ranks"], entry["per_node"], entry["bytes"]) == (8, 4, [(8 + 2 * j) * 2**i for i in range(17) for j in range(4)] + [8 * 2**17]), f"{entry}")
        done = run(*job, "-b", 9, "-e", "640K", "--constants", file).passed()
        ratios = regrets(done)
        check(len(ratios) == 9 and max(ratios) <= 1.05, done.story())
        run(*job, "-e", "1K", "--constants", file, "-o", file).passed()  # takes the place of the other
        with open(file, encoding="utf-8") as made:
            check(len(json.load(made)["machines"]["gpu_cluster"]["measured"]) == 1, "two entries of one job")
        for collective in ("reduce_scatter", "all_gather", "alltoall", "gather"):
            sizes = ("--collective", collective, "-b", 256, "-e", "1M", "--ranks", 8, "--nodes", 2)
            run("model", "--simulate", *sizes, "-o", file).passed()
            ratios = regrets(run("model", "--simulate", *sizes, "--constants", file).passed())
            check(max(ratios) < 1.0005, f"{collective}: {ratios}")
        run(*job, "-e", "1K", "-o", "/nowhere/simulated.json").complains("--output /nowhere/simulated.json")
    run("model", "-o", "constants.json").complains("--simulate")
    check("too many messages" in run("model", "--simulate", "--ranks", 16384, "-b", "1G", "-e", "1G").passed().out, "simulated 16384 ranks")


def wrong_input():
    run("crossovers", "--rules", "/nowhere/rules.csv").complains("--rules /nowhere/rules.csv: No such file")
    run("crossovers", "--machine", "dgx_h10").complains("dgx_h10", r"did you mean dgx_h100\?")
    run("crossovers", "--ranks", 10, "--nodes", 3).complains("10 ranks", "3 nodes")
    run("crossovers", "--ranks", 9).complains("--ranks 9", "8 GPUs")
    run("crossovers", "--constants", "/nowhere.json").complains("/nowhere.json")
    run("model", "--ranks", 10, "--nodes", 3).complains("--nodes 3", "10 ranks")
    run("model", "--ranks", 0).complains("--ranks")
    run("model", "-f", 1).complains("--stepfactor: Value 1")
    run("model", "-b", "1M", "-e", "1K").complains("-b 1048576")
    run("model", "--collective", "all_sort").complains("all_sort", "all_reduce")
    run("explain", "broadcats").complains("broadcats", r"did you mean broadcast\?")
    run("model", "--machine", "gpu_clutser").complains("gpu_clutser", r"did you mean gpu_cluster\?")
    run("explain").complains("collective is required")
    run("explain", "all_reduce", "--bytes", "many").complains("many", "--bytes")
    run("explain", "broadcast", "--root", 8, "--ranks", 8).complains("--root 8")


subjects([large_cluster_has_a_winner_for_every_size, no_runner_up_is_faster, sizes_as_asked, every_collective,
          explain_says_everything, constants_of_a_file, crossovers_of_every_machine, choices_are_near_the_best_simulated, choices_on_the_simulator, wrong_input]
         + ([choices_are_near_the_best_on_large_clusters] if sys.argv[2:] else []))
