"""The sweep: nccl-tests' columns and flags, right results for every type, operation, algorithm, transport and number of ranks."""
import json
import os
import tempfile

from system import (BLOCK_PER_RANK, COLLECTIVES, NEVER_IN_PLACE, REDUCING, ROOTED, Skipped, built_in, bus_factor, check, right_rows, run,
                    subjects, transports)

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"]
OPS = ["sum", "prod", "max", "min", "avg"]
QUICK = ["-n", "2", "-w", "1"]
SIZE_OF = {"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "int64": 8, "uint64": 8, "double": 8, "f8e4m3": 1, "f8e5m2": 1}


def count_of(collective, ranks, size, kind="float"):
    """Elements that nccl-tests makes of a size: whole ones, as many for each rank."""
    return size // SIZE_OF.get(kind, 4) // (ranks if collective in BLOCK_PER_RANK else 1)


def without_options_but_a_small_end():
    done = run("all_reduce", "-e", "4K").passed()
    found = right_rows(done, [8 << i for i in range(10)])
    check(all(row.type == "float" and row.op == "sum" and row.count == row.bytes // 4 for row in found), done.story())
    for line in ("size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
                 "(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)", "out-of-place in-place", "Avg bus bandwidth",
                 "ranks 2,"):
        check(line in " ".join(done.out.split()), f"no '{line}'\n{done.story()}")


def numbers_of_ranks():
    for ranks in (1, 2, 3, 4, 7):
        done = run("all_reduce", "--ranks", ranks, "-b", "4", "-e", "64K", "-f", "16", *QUICK).passed()
        check(f"ranks {ranks}," in done.out, f"the head does not say {ranks} ranks\n{done.story()}")
        for row in right_rows(done):
            check(ranks > 1 or row.busbw == 0, f"one rank has no bus\n{done.story()}")


def every_type_and_operation():
    done = run("all_reduce", "-d", "all", "-o", "all", "-b", "4K", "-e", "4K", "--ranks", 3, *QUICK).passed()
    found = {(row.type, row.op) for row in right_rows(done)}
    missing = {(t, o) for t in TYPES for o in OPS} - found
    check(not missing, f"missing: {missing}\n{done.story()}")
    done = run("all_reduce", "-d", "all", "-o", "all", "-e", "4K", *QUICK).passed()
    check(len(right_rows(done)) == len(TYPES) * len(OPS) * 10, f"not ten rows for each type and operation\n{done.story()}")


def one_type_and_operation():
    for kind, op, size in (("half", "max", 2), ("double", "avg", 8), ("int8", "prod", 1)):
        row = right_rows(run("all_reduce", "-d", kind, "-o", op, "-b", "1K", "-e", "1K", *QUICK).passed(), [1024])[0]
        check((row.type, row.op, row.count) == (kind, op, 1024 // size), f"{kind} {op}: the row says {vars(row)}")


def sizes():
    for flags, wanted in ((["-b", "1K", "-e", "16K"], [1024, 2048, 4096, 8192, 16384]),
                          (["-b", "1k", "-e", "64KB", "-f", "4"], [1024, 4096, 16384, 65536]),
                          (["-b", "1000", "-e", "2000", "-i", "400"], [1000, 1400, 1800]),
                          (["--minbytes", "1M", "--maxbytes", "1M"], [1 << 20]),
                          (["-b", "24", "-e", "100", "-f", "3"], [24, 72]),
                          (["-b", "10", "-e", "10"], [8]),  # whole elements
                          (["-b", "0", "-e", "0"], [0])):
        right_rows(run("all_reduce", *flags, *QUICK).passed(), wanted)


def every_collective():
    """Every root, whole and broken sizes, a size without an element for each rank."""
    sizes = [2, 34, 578, 9826, 167042]
    for collective in COLLECTIVES:
        for ranks in (1, 2, 3, 4):
            roots = range(ranks) if collective in ROOTED else [-1]
            flags = ["-r", "all"] if collective in ROOTED else []
            done = run(collective, "--ranks", ranks, "-b", "2", "-e", "200K", "-f", "17", *flags, *QUICK).passed()
            found = right_rows(done)
            blocks = ranks if collective in BLOCK_PER_RANK else 1
            wanted = [(4 * blocks * count_of(collective, ranks, size), count_of(collective, ranks, size), root)
                      for root in roots for size in sizes]
            check([(row.bytes, row.count, row.root) for row in found] == wanted, f"wanted {wanted}\n{done.story()}")
            for row in found:
                check(row.op == ("sum" if collective in REDUCING else "none"), f"redop is {row.op}\n{done.story()}")
                check((row.in_place[0] == "N/A") == (collective in NEVER_IN_PLACE), f"in place?\n{done.story()}")
            each = f" for each of {ranks} ranks" if blocks > 1 else ""
            check(done.out.count(f"# 2 bytes hold no float{each}: called with 0 elements\n") == len(roots),
                  f"does not say that there is nothing to move\n{done.story()}")


def every_type_and_operation_of_what_reduces():
    for collective in ("reduce_scatter", "reduce"):
        done = run(collective, "-d", "all", "-o", "all", "-b", "1000", "-e", "5000", "-f", "5", *QUICK).passed()
        found = right_rows(done)
        check([(row.type, row.op, row.count) for row in found] ==
              [(t, o, count_of(collective, 2, size, t)) for t in TYPES for o in OPS for size in (1000, 5000)], done.story())


def every_type_of_what_moves():
    for collective in COLLECTIVES:
        if collective in REDUCING:
            continue
        done = run(collective, "-d", "all", "-b", "1000", "-e", "5000", "-f", "5", "--ranks", 3, *QUICK).passed()
        check([(row.type, row.op, row.count) for row in right_rows(done)] ==
              [(t, "none", count_of(collective, 3, size, t)) for t in TYPES for size in (1000, 5000)], done.story())


def one_root():
    for collective in ROOTED:
        for flags, root in (([], 0), (["-r", "2"], 2), (["--root", "1"], 1)):
            found = right_rows(run(collective, *flags, "--ranks", 3, "-b", "3M", "-e", "3M", "-n", "1").passed())
            check([row.root for row in found] == [root], f"{collective}: root {found[0].root}, not {root}")


def roots_of_nccl_tests():
    """There, -1 stands for all."""
    check([row.root for row in right_rows(run("reduce", "-r", "-1", "-e", "8", *QUICK).passed())] == [0, 1], "not both roots")


def without_check_nothing_is_called_right():
    done = run("all_reduce", "-c", "0", "-e", "64", *QUICK).passed()
    check(done.out.count("N/A") == 8, f"#wrong is not N/A everywhere\n{done.story()}")
    check("Out of bounds" not in done.out, f"a verdict without a check\n{done.story()}")
    right_rows(run("all_reduce", "-c", "5", "-e", "64", *QUICK).passed())


def iterations_and_warmup():
    for flags, said in ((["-n", "1", "-w", "0"], "warmup 0, iters 1,"),
                        (["--iters", "123", "--warmup_iters", "17"], "warmup 17, iters 123,")):
        done = run("all_reduce", "-e", "8", *flags).passed()
        right_rows(done, [8])
        check(said in done.out, f"the head does not say '{said}'\n{done.story()}")


def json_has_every_row():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        done = run("all_reduce", "-b", "1K", "-e", "64K", "-o", "all", "--ranks", 3, "--json", path, *QUICK).passed()
        with open(path, encoding="utf-8") as file:
            written = json.load(file)
    shown = right_rows(done)
    results = written["results"]
    check([(r["bytes"], r["count"], r["type"], r["redop"], r["algorithm"]) for r in results] ==
          [(r.bytes, r.count, r.type, r.op, r.algorithm) for r in shown], f"other rows than shown: {results}\n{done.story()}")
    check(written["ranks"] == 3 and written["collective"] == "all_reduce" and "--json" in written["command"], f"{written}")
    for result in results:
        for way in (result["out_of_place"], result["in_place"]):
            check(way["wrong"] == 0, f"wrong: {result}")
            bandwidth = result["bytes"] / way["time_us"] / 1e3
            check(abs(way["algbw"] - bandwidth) <= 1e-6 * bandwidth, f"algbw is not bytes / time: {result}")
            check(abs(way["busbw"] - bandwidth * 4 / 3) <= 1e-6 * bandwidth, f"busbw is not 4/3 algbw with 3 ranks: {result}")
    mean = sum(r["out_of_place"]["busbw"] + r["in_place"]["busbw"] for r in results) / 2 / len(results)
    check(f"Avg bus bandwidth    : {mean:.4f}" in done.out, f"the mean of busbw is {mean}\n{done.story()}")


def json_of_every_collective():
    for collective in COLLECTIVES:
        with tempfile.NamedTemporaryFile() as file:
            run(collective, "-b", "12K", "-e", "48K", "--ranks", 3, "--json", file.name, *QUICK).passed()
            written = json.load(file)
        check(written["collective"] == collective and len(written["results"]) == 3, f"{written}")
        for result in written["results"]:
            check(result["redop"] == ("sum" if collective in REDUCING else None), f"redop: {result}")
            check(result["root"] == (0 if collective in ROOTED else None), f"root: {result}")
            check((result["in_place"] is None) == (collective in NEVER_IN_PLACE), f"in place: {result}")
            predicted = result.get("predicted_us")
            check((predicted is None) == (collective == "sendrecv"), f"a prediction is for what is chosen by price: {result}")
            check(predicted is None or predicted > 0, f"predicted: {result}")
            for way in (result["out_of_place"], result["in_place"]):
                if way is None:
                    continue
                bandwidth = result["bytes"] / way["time_us"] / 1e3
                check(abs(way["algbw"] - bandwidth) <= 1e-6 * bandwidth, f"algbw is not bytes / time: {result}")
                check(abs(way["busbw"] - bandwidth * bus_factor(collective, 3)) <= 1e-6 * bandwidth, f"{collective}: {result}")


def json_has_null_for_what_was_not_checked():
    with tempfile.NamedTemporaryFile() as file:
        run("all_reduce", "-e", "8", "-c", "0", "--json", file.name, *QUICK).passed()
        check(json.load(file)["results"][0]["in_place"]["wrong"] is None, "wrong is not null")


def every_algorithm():
    for algorithm in ("ring", "naive", "one_shot"):
        for how in (["--algorithm", algorithm], []):
            env = {} if how else {"GYRE_ALGORITHM": algorithm}
            done = run("all_reduce", *how, "--ranks", 4, "-e", "256K", "-f", "32", *QUICK, env=env).passed()
            check({row.algorithm for row in right_rows(done)} == {algorithm}, f"not {algorithm}\n{done.story()}")
    chosen = {row.algorithm for row in right_rows(run("all_reduce", "--ranks", 4, "-e", "4M", "-f", "16", *QUICK).passed())}
    check(len(chosen) > 1, f"auto has the same algorithm for 8 bytes and for 4 MiB: {chosen}")


def every_algorithm_of_every_collective():
    """Where a family has no such collective, another runs, and the log says so."""
    families = run("plan", "quicksort").err.split("must be one of ")[1].split(";")[0].strip().split(", ")
    check("ring" in families and len(families) > 2, f"families: {families}")
    for collective in COLLECTIVES[:-1]:
        for family in families:
            done = run(collective, "--ranks", 4, "--algorithm", family, "-b", "2K", "-e", "64K", "-f", "32", "-n", "1", "-w", "0",
                       env={"GYRE_LOG": "info"})
            used = {row.algorithm for row in right_rows(done)}
            check(used == {family} or family not in used and f"{collective} runs {[*used][0]} and not {family}: " in done.err, f"{family}: {used}\n{done.story()}")


def every_collective_over_every_transport():
    for name, env in transports().items():
        for collective in COLLECTIVES:
            done = run(collective, "--ranks", 3, "-b", "8", "-e", "3M", "-f", "48", *QUICK, env=env)
            right_rows(done)
            check(done.code == 0, f"{name}\n{done.story()}")


def every_transport():
    for name, env in {**transports(), "auto": {"GYRE_TRANSPORT": "auto"}}.items():
        for ranks in (2, 3):
            done = run("all_reduce", "--ranks", ranks, "-e", "1M", "-f", "32", *QUICK, env=env)
            right_rows(done)
            done.passed()
            word = "shm" if name in ("shm", "auto") else "tcp" if name == "tcp" else "ucx"
            check(f"transport {word}," in done.out, f"the head does not say {word}\n{done.story()}")


def the_flag_is_stronger_than_the_environment():
    done = run("all_reduce", "-e", "8", "--transport", "shm", "--algorithm", "ring",
               env={"GYRE_TRANSPORT": "ucx", "GYRE_ALGORITHM": "naive"}).passed()
    check("transport shm," in done.out and right_rows(done)[0].algorithm == "ring", done.story())


def two_channels():
    for name, env in transports().items():
        done = run("all_reduce", "--ranks", 3, "-e", "1M", "-f", "16", *QUICK, env={"GYRE_CHANNELS": 2, **env})
        right_rows(done)
        check(done.code == 0, f"{name}\n{done.story()}")


def small_and_few_slots():
    for env in ({"GYRE_SLOTS": 2, "GYRE_SLOT_BYTES": "4K"}, {"GYRE_SLOTS": 3, "GYRE_SLOT_BYTES": "1M", "GYRE_CHANNELS": 3}):
        right_rows(run("all_reduce", "--ranks", 3, "-b", "1000", "-e", "3M", "-f", "7", *QUICK, env=env).passed())


def info_says_who_is_joined_how():
    done = run("all_reduce", "--ranks", 3, "-e", "8", env={"GYRE_LOG": "info"}).passed(quiet=False)
    for rank, others in enumerate(("1, 2", "0, 2", "0, 1")):
        check(f"rank {rank}: info: " in done.err and f"shm to rank {others}\n" in done.err, f"rank {rank}\n{done.story()}")
        check(f"rank {rank}: info: rank {rank}:" not in done.err, f"says twice which rank speaks\n{done.story()}")
    if not built_in("ucx"):
        raise Skipped("built without UCX; shm is as it should be")
    done = run("all_reduce", "-e", "8", env={"GYRE_LOG": "info", "GYRE_TRANSPORT": "ucx"}).passed(quiet=False)
    check("ucx to rank 1\n" in done.err and "ucx to rank 0\n" in done.err, done.story())


def options_shows_values_and_origin():
    done = run("--options", env={"GYRE_SLOTS": 16, "GYRE_LOG": "debug"}).passed()
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for begin in ("GYRE_SLOTS 16 environment", "GYRE_LOG debug environment", "GYRE_TRANSPORT auto default"):
        check(any(line.startswith(begin) for line in lines), f"no line '{begin}'\n{done.story()}")


def help_names_every_flag():
    for collective in COLLECTIVES:
        done = run(collective, "--help").passed()
        check(("--op" in done.out) == (collective in REDUCING) and ("--root" in done.out) == (collective in ROOTED), done.story())
    done = run("all_reduce", "--help").passed()
    for flag in ("-b", "-e", "-f", "-i", "-n", "-w", "-d", "-o", "-c", "--ranks", "--algorithm", "--transport", "--json"):
        check(flag in done.out, f"{flag} is not in the help\n{done.story()}")
    check("gyre " in run("--version").passed().out, "no version")


subjects([every_collective, every_type_and_operation_of_what_reduces, every_type_of_what_moves, one_root, roots_of_nccl_tests,
          json_of_every_collective, every_algorithm_of_every_collective, every_collective_over_every_transport,
          without_options_but_a_small_end, numbers_of_ranks, every_type_and_operation, one_type_and_operation, sizes,
          without_check_nothing_is_called_right, iterations_and_warmup, json_has_every_row, json_has_null_for_what_was_not_checked,
          every_algorithm, every_transport, the_flag_is_stronger_than_the_environment, two_channels, small_and_few_slots,
          info_says_who_is_joined_how, options_shows_values_and_origin, help_names_every_flag])
