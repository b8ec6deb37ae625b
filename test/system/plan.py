"""gyre-perf plan: what a user sees of a schedule, and that it is proven before it is called good."""
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree

from system import check, run, subjects

FAMILIES = ["naive", "ring", "tree", "double_tree", "halving_doubling", "bucket", "one_shot", "two_shot"]
COLLECTIVES = {"ring": ["reduce_scatter", "all_gather", "broadcast", "reduce"], "tree": ["all_reduce", "broadcast", "reduce"],
               "halving_doubling": ["all_reduce"], "one_shot": ["all_gather"], "pat": ["reduce_scatter", "all_gather"]}


def ring_of_four_is_printed_and_verified():
    done = run("plan", "ring", "--ranks", 4).passed()
    check("ring all-reduce, 4 ranks, 1 channel" in done.out, f"no heading\n{done.story()}")
    for rank in range(4):
        check(f"rank {rank}" in done.out, f"no column of rank {rank}\n{done.story()}")
    check("\nverified: " in done.out, f"does not say verified\n{done.story()}")
    steps = [line for line in done.out.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    check(len(steps) == 7, f"{len(steps)} steps; a fused ring of n ranks has 2n - 1\n{done.story()}")


def the_picture_of_the_guide_is_what_its_command_draws():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(root, "doc", "gyre-perf.md")) as guide:
        command = next(line.split() for line in guide if line.startswith("    gyre-perf plan"))
    arguments, picture = command[2:command.index("-o")], command[-1]
    with open(os.path.join(root, picture)) as file:
        check(run("plan", *arguments).passed().out == file.read(), f"{picture} is outdated; draw it again with: {' '.join(command)}")


def all_families_and_numbers_of_ranks():
    for family in FAMILIES:
        for ranks in (1, 2, 3, 7, 16):
            done = run("plan", family, "--ranks", ranks).passed()
            check("\nverified: " in done.out, f"does not say verified\n{done.story()}")


def channels_and_unfused():
    for family in FAMILIES:
        done = run("plan", family, "--ranks", 3, "--channels", 2).passed()
        check("3 ranks, 2 channels" in done.out and "\nverified: " in done.out, done.story())
        fused = run("plan", family, "--ranks", 4).passed().out
        unfused = run("plan", family, "--ranks", 4, "--unfused").passed().out
        check(unfused.count("\n") >= fused.count("\n"), f"{family}: fewer steps before they are joined than after\n{unfused}\n{fused}")
    check("rrs" not in run("plan", "ring", "--ranks", 4, "--unfused").passed().out, "fused steps in an unfused plan")


def one_channel_is_not_called_channels():
    done = run("plan", "ring", "--ranks", 1).passed()
    check("1 rank, 1 channel," in done.out, f"'1 ranks' or '1 channels'\n{done.story()}")


def wrong_family_suggests_the_right_one():
    for wrong, right in (("rnig", "ring"), ("nave", "naive"), ("oneshot", "one_shot"), ("Ring", "ring")):
        done = run("plan", wrong).complains(wrong, rf"did you mean {right}\?")
        check(done.out == "", f"prints a plan nevertheless\n{done.story()}")
    run("plan", "quicksort").complains("quicksort", "ring", "naive", "one_shot")


def family_is_needed():
    run("plan").complains("algorithm is required")


def wrong_shape():
    for flag, value in (("--ranks", 0), ("--ranks", "x"), ("--channels", 0), ("--channels", 17)):
        run("plan", "ring", flag, value).complains(flag)


    run("plan", "ring", "--collective", "broadcats").complains("--collective", "broadcats", r"did you mean broadcast\?")
    run("plan", "tree", "--collective", "broadcast", "--root", 2).complains("root 2 of 2 ranks")
    run("plan", "tree", "--collective", "all_gather").complains("tree has no all_gather")
    for grid in ("", "x", "2x", "2x0", "two", "2,2", "2x-2"):
        run("plan", "bucket", "--ranks", 4, "--grid", grid).complains("--grid", "4x2")
    run("plan", "bucket", "--ranks", 4, "--grid", "2x3").complains("2x3 for 4 ranks")
    run("plan", "ring", "--ranks", 4, "--nodes", 3).complains("--nodes 3", "4 ranks")
    run("plan", "ring", "--bytes", "1.5X").complains("--bytes", "1.5X")
    run("plan", "ring", "--format", "png").complains("--format", "png", "svg")
    run("plan", "ring", "--slices", 0).complains("--slices")


def every_collective_is_verified_and_simulated():
    for family, collectives in COLLECTIVES.items():
        for collective in collectives:
            done = run("plan", family, "--ranks", 4, "--collective", collective, "--bytes", "64K").passed()
            check("\nverified: " in done.out and "\nsimulated: 64 KiB in " in done.out, done.story())
    done = run("plan", "tree", "--ranks", 5, "--collective", "reduce", "--root", 3).passed()
    check(", root 3\n" in done.out, done.story())


def hops_and_time_are_said():
    for family, hops in (("ring", 6), ("tree", 4), ("one_shot", 1), ("halving_doubling", 4)):
        done = run("plan", family, "--ranks", 4).passed()
        check(re.search(rf"\nsimulated: 1 MiB in [0-9.]+ µs, {hops} hops?, on one node", done.out), done.story())
    done = run("plan", "hierarchical", "--ranks", 4, "--nodes", 2).passed()
    check("on 2 nodes" in done.out, done.story())
    whole = run("plan", "tree", "--ranks", 8, "--bytes", "64M").passed().out
    cut = run("plan", "tree", "--ranks", 8, "--bytes", "64M", "--slices", 16).passed().out
    took = [float(re.search(r"in (?:16 slices a chunk in )?([0-9.]+) ms", out.split("simulated: ")[1]).group(1)) for out in (whole, cut)]
    check(took[1] < 0.6 * took[0], f"slices do not overlap: {took}")


def drawings():
    with tempfile.TemporaryDirectory() as folder:
        for family in ("ring", "tree", "halving_doubling", "hierarchical"):
            svg = run("plan", family, "--ranks", 8, "--nodes", 2, "--format", "svg").passed().out
            root = xml.etree.ElementTree.fromstring(svg)
            check(root.tag.endswith("}svg"), f"not a drawing: {root.tag}")
            path = os.path.join(folder, family + ".svg")
            done = run("plan", family, "--ranks", 8, "--nodes", 2, "--format", "svg", "-o", path).passed()
            with open(path, encoding="utf-8") as file:
                check(done.out == "" and file.read() == svg, "the file is not what is printed without it")
            dot = run("plan", family, "--ranks", 8, "--nodes", 2, "--format", "dot").passed().out
            check(dot.startswith("digraph ") and dot.endswith("}\n"), dot)
            if shutil.which("dot"):
                drawn = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=False)
                check(drawn.returncode == 0 and drawn.stderr == "", drawn.stderr)


def file_that_cannot_be_written():
    for path in ("/no/such/folder/plan.svg", "/dev/full"):
        run("plan", "ring", "--format", "svg", "-o", path).complains("-o " + path)


subjects([ring_of_four_is_printed_and_verified, the_picture_of_the_guide_is_what_its_command_draws, all_families_and_numbers_of_ranks, channels_and_unfused, one_channel_is_not_called_channels,
          every_collective_is_verified_and_simulated, hops_and_time_are_said, drawings, file_that_cannot_be_written,
          wrong_family_suggests_the_right_one, family_is_needed, wrong_shape])
