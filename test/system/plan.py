"""gyre-perf plan: what a user sees of a schedule, and that it is proven before it is called good."""
from system import check, run, subjects

FAMILIES = ["ring", "naive", "one_shot"]


def ring_of_four_is_printed_and_verified():
    done = run("plan", "ring", "--ranks", 4).passed()
    check("ring all-reduce, 4 ranks, 1 channel" in done.out, f"no heading\n{done.story()}")
    for rank in range(4):
        check(f"rank {rank}" in done.out, f"no column of rank {rank}\n{done.story()}")
    check("\nverified: " in done.out, f"does not say verified\n{done.story()}")
    steps = [line for line in done.out.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    check(len(steps) == 7, f"{len(steps)} steps; a fused ring of n ranks has 2n - 1\n{done.story()}")


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


subjects([ring_of_four_is_printed_and_verified, all_families_and_numbers_of_ranks, channels_and_unfused,
          one_channel_is_not_called_channels, wrong_family_suggests_the_right_one, family_is_needed, wrong_shape])
