"""What perf/peers/compare-all makes of its measurements: pairs within a round, spreads, marks; and how a file that was cut off goes on. And
what compare-numerics does."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
from unittest import mock

sys.dont_write_bytecode = True
PEERS = pathlib.Path(__file__).resolve().parents[1] / "perf" / "peers"
sys.path.insert(0, str(PEERS))

import all_report  # noqa: E402
from cells import groups, sizes  # noqa: E402



def program(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(PEERS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


compare_all, compare_numerics = program("compare-all"), program("compare-numerics")

# A gyre-perf whose calls take 2 us, ordered ones as many times that as there are ranks; it writes what gyre-perf does.
FAKE_SWEEP = """#!/usr/bin/env python3
import json, os, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
ordered = os.environ["GYRE_NUMERICS"] == "ordered"
way = {"time_us": 2.0 * (int(given["--ranks"]) if ordered else 1), "algbw": 1, "busbw": 1, "wrong": 0, "iterations": int(given["-n"])}
row = {"bytes": int(given["-b"]), "count": 2, "type": given["-d"], "algorithm": "tree" if ordered else given["--transport"], "redop": "sum",
       "root": None, "out_of_place": way, "in_place": {**way, "time_us": 99}, "cycle": 0}
with open(given["--json"], "w") as file:
    for line in ({"gyre": "0.1.0", "collective": "all_reduce", "ranks": 2}, row, {"end": {"rows": 1}}):
        print(json.dumps(line), file=file)
"""


def row(number, contender, us, size=8, hop=50, kind="float32", only_ours=False, **more):
    return {"kind": "measurement", "round": number, "contender": contender, "us": us, "best_us": us, "bytes": size, "hop_ns": hop,
            "type": kind, "op": "all_reduce", "ranks": 2, "transport": "shm", "only_ours": only_ours, **more}


def check(wanted, found):
    assert wanted == found, f"{found} and not {wanted}"


def ratios_are_of_pairs():
    rows = [row(1, "mpich", 4), row(1, "gloo", 6), row(1, "gyre", 2), row(2, "mpich", 9), row(2, "gloo", 3), row(2, "gyre", 3), row(3, "gyre", 1)]
    (rounds,) = all_report.points(rows).values()
    check((1.5, 1, 2, 2), tuple(all_report.ratio(rounds, "gyre")))
    check(None, all_report.ratio(rounds, "gyre-heap"))


def the_hardest_peer_is_named_with_its_own_ratio():
    """Which is less hard than whichever was the fastest of each round."""
    of = ((1, "mpich", 4), (1, "gloo", 6), (1, "gyre", 5), (2, "mpich", 6), (2, "gloo", 3), (2, "gyre", 4), (3, "mpich", 9), (3, "gyre", 8))
    (rounds,) = all_report.points([row(*each) for each in of]).values()
    check(0.8, all_report.ratio(rounds, "gyre").median)
    check(("gloo", (0.975, 0.75, 1.2, 2)), (all_report.hardest(rounds, "gyre")[0], tuple(all_report.hardest(rounds, "gyre")[1])))


def rounds_of_one_hop_count_where_there_are_any():
    far = [row(1, "mpich", 2), row(1, "gyre", 4, hop=240)]
    check((0.5, 1), tuple(all_report.ratio(all_report.points(far).popitem()[1], "gyre"))[::3])
    rows = [*far, row(2, "mpich", 3), row(2, "gyre", 2, hop=60)]
    check((1.5, 1), tuple(all_report.ratio(all_report.points(rows).popitem()[1], "gyre"))[::3])


def bounds_and_wrong_results_are_no_peers():
    rows = [row(1, "mpich", 4), row(1, "bound-mapped", 1), row(1, "openmpi-ob1", 0.1, failure="1 wrong elements"), row(1, "gyre", 2)]
    (rounds,) = all_report.points(rows).values()
    check(2, all_report.ratio(rounds, "gyre").median)


def a_cell_is_lost_beyond_its_spread_only():
    behind = [row(number, name, us) for number, of in ((1, 2), (2, 3), (3, 4)) for name, us in (("mpich", 1), ("gyre", of))]
    check("- lost: 2 ranks, shm, all_reduce, float32, 8 B, gyre: 0.33 (0.25..0.50); to the hardest peer alone, mpich, 0.33 (0.25..0.50)\n",
          all_report.not_led(all_report.points(behind)))
    level = behind + [row(4, "mpich", 2), row(4, "gyre", 1)]
    check(True, all_report.not_led(all_report.points(level)).startswith("- level"))
    check("", all_report.not_led(all_report.points([row(1, "mpich", 1), row(1, "gyre", 1)])))


def the_bound_is_the_larger_one_of_the_same_hop():
    def of(number, size, heap, **hop):
        return [row(number, "bound-mapped", 6, size), row(number, "bound-touched", 7, size), row(number, "gyre-heap", heap, size, **hop)]

    table = all_report.bound_table(all_report.points(of(1, 2048, 10, hop=55) + of(2, 2048, 70, hop=250) + of(3, 2048, 70, size_hop_ns=250) +
                                                     of(1, 4096, 10, hop=55) + of(1, 8192, 14, hop=55)))
    lines = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in table.splitlines()[2:]]
    check([["2 KiB", "0.70", "0.7", "yes", "1 of 3"], ["4 KiB", "0.70", "-", "-", "1 of 1"], ["8 KiB", "0.50", "0.6", "NO", "1 of 1"]],
          [[line[0], line[4], *line[7:]] for line in lines])


def halves_are_compared_at_as_many_elements():
    rows = [row(1, "gyre", 8, 256, only_ours=True), row(1, "gyre", 5, 128, kind="float16"), row(1, "gyre", 99, 256)]
    rates = all_report.halves(all_report.points(rows), all_report.points(rows, only_ours=True))
    check(True, "| shm | float16 | 2 | 64 | 1.60 |" in all_report.halves_table(rates))
    check("", all_report.below_float32(rates))
    slower = all_report.halves(all_report.points(rows + [row(1, "gyre", 10, 128, kind="bfloat16")]), all_report.points(rows, only_ours=True))
    check("- lost: 2 ranks, shm, bfloat16, 64 elements, gyre: 0.80 (0.80..0.80) of float32's\n", all_report.below_float32(slower))


def runs_are_taken_where_the_cpus_are_as_near_as_usual():
    """Neither nearer nor farther than the usual hop; the run's hop is the one least like it."""
    done, probes, runs = ("", [], ""), iter([28, 80, 245, 60, 245, 58, 66]), []
    with mock.patch.multiple(compare_all, hop_ns=lambda: next(probes), run=lambda *_: runs.append(1) or done), mock.patch("time.sleep"):
        check((done, 66), compare_all.run_at_one_hop(None, None, None, 60))
        check((2, []), (len(runs), list(probes)))
        check((done, None), compare_all.run_at_one_hop(None, None, None, None))
    with mock.patch.multiple(compare_all, hop_ns=mock.Mock(side_effect=[60, 28, 245] * 5)), mock.patch("time.sleep"):
        check(60, compare_all.usual_hop_ns())
    with mock.patch.multiple(compare_all, hop_ns=mock.Mock(side_effect=[60, None])), mock.patch("time.sleep"):
        check(None, compare_all.usual_hop_ns())


def a_file_that_was_cut_off_goes_on_after_its_last_whole_round():
    lines = [{"kind": "run"}, row(1, "gyre", 1), {"kind": "round", "round": 1}, row(2, "gyre", 2)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.jsonl"
        check([], compare_all.read(path))
        whole = "".join(json.dumps(line) + "\n" for line in lines[:3])
        for rest in ("", json.dumps(lines[3]) + "\n", json.dumps(lines[3])[:20]):
            path.write_text(whole + rest)
            check(lines[:3], compare_all.read(path))
            check(whole, path.read_text())


def sizes_end_with_the_largest():
    check((8, 32, 100), sizes(8, 100, 4))
    check((8, 32, 128), sizes(8, 128, 4))


def what_a_round_has():
    sys.argv = ["compare-all", "x", "--ranks", "2", "--transports", "tcp", "--ops", "all_reduce,broadcast", "--largest-other", "512"]
    found = groups(compare_all.arguments())
    check([("all_reduce", "float32", False), ("broadcast", "float32", False), ("all_reduce", "float32", True), ("all_reduce", "float16", False),
           ("all_reduce", "bfloat16", False)], [(g.op, g.type, g.only_ours) for g in found])
    check({(256, 512)}, {g.sizes for g in found if g.only_ours})
    check({(128, 256)}, {g.sizes for g in found if g.type != "float32"})
    check(256 << 20, found[0].sizes[-1])


def ordered_numerics_are_set_beside_the_default():
    with tempfile.TemporaryDirectory() as folder:
        fake, output = pathlib.Path(folder) / "perf" / "gyre-perf", pathlib.Path(folder) / "numerics.jsonl"
        fake.parent.mkdir()
        fake.write_text(FAKE_SWEEP)
        fake.chmod(0o755)
        sys.argv = ["compare-numerics", folder, "--rounds", "2", "--transports", "shm,tcp", "--ranks", "2,4", "--types", "f8e4m3", "--sizes", "8,4K",
                    "--output", str(output)]
        with contextlib.redirect_stdout(io.StringIO()) as table:
            compare_numerics.main()
        lines = [line.strip("|").split("|") for line in table.getvalue().splitlines()[2:]]
        check([[f" {word} " for word in (transport, ranks, "f8e4m3", size, "2.00", f"{2.0 * ranks:.2f}", f"{ranks:.2f}",
                                         f"{ranks:.2f}..{ranks:.2f}", transport, "tree")]
               for transport in ("shm", "tcp") for ranks in (2, 4) for size in (8, 4096)], lines)
        run, *rows = map(json.loads, output.read_text().splitlines())
        check(("run", 2 * 8 * 2), (run["kind"], len(rows)))
        check(["default", "ordered"] * 8 + ["ordered", "default"] * 8, [row["numerics"] for row in rows])
        check({("shm", 2.0), ("tree", 4.0), ("tcp", 2.0), ("tree", 8.0)}, {(row["algorithm"], row["time_us"]) for row in rows})


for test in (ratios_are_of_pairs, the_hardest_peer_is_named_with_its_own_ratio, rounds_of_one_hop_count_where_there_are_any,
             bounds_and_wrong_results_are_no_peers, a_cell_is_lost_beyond_its_spread_only, the_bound_is_the_larger_one_of_the_same_hop,
             halves_are_compared_at_as_many_elements,
             runs_are_taken_where_the_cpus_are_as_near_as_usual, a_file_that_was_cut_off_goes_on_after_its_last_whole_round,
             sizes_end_with_the_largest, what_a_round_has, ordered_numerics_are_set_beside_the_default):
    test()
