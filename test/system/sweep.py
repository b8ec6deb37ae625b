"""The sweep: nccl-tests' columns and flags, right results for every type, operation, algorithm, transport and number of ranks."""
import json
import os
import re
import signal
import tempfile

from killing import in_mid_sweep
from system import (BLOCK_PER_RANK, COLLECTIVES, NEVER_IN_PLACE, REDUCING, ROOTED, Skipped, await_that, built_in, bus_factor, check, free_port, right_rows,
                    run, signal_process, start, start_rank, subjects, transports, within)

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"]
OPS = ["sum", "prod", "max", "min", "avg", "mulsum"]
QUICK = ["-n", "2", "-w", "1"]
SIZE_OF = {"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "int64": 8, "uint64": 8, "double": 8, "f8e4m3": 1, "f8e5m2": 1}


def count_of(collective, ranks, size, kind="float"):
    """Elements that nccl-tests makes of a size: whole ones, as many for each rank."""
    return size // SIZE_OF.get(kind, 4) // (ranks if collective in BLOCK_PER_RANK else 1)


class Lines:
    """A file of --json: what holds for all, the rows, and how it ended; every line is JSON."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.head, self.rows, self.end = lines[0], lines[1:-1], lines[-1]["end"]
        check(self.end["rows"] == len(self.rows), f"{len(self.rows)} rows, and at the end {self.end}")


def with_json(*arguments, env=None):
    """A run that passes, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        done = run(*arguments, "--json", path, env=env).passed()
        return done, Lines(path)


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
                          (["-b", "1.5K", "-e", "0.003M"], [1536, 3072]),
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
    done, written = with_json("all_reduce", "-b", "1K", "-e", "64K", "-o", "all", "--ranks", 3, *QUICK)
    shown = right_rows(done)
    check([(r["bytes"], r["count"], r["type"], r["redop"], r["algorithm"]) for r in written.rows] ==
          [(r.bytes, r.count, r.type, r.op, r.algorithm) for r in shown], f"other rows than shown: {written.rows}\n{done.story()}")
    head = written.head
    check(head["ranks"] == 3 and head["collective"] == "all_reduce" and "--json" in head["command"] and head["algorithm"] == "auto", f"{head}")
    check(head["machine"]["processors"] > 0 and head["gyre"] and head["commit"] and head["date"].endswith("Z"), f"{head}")
    for result in written.rows:
        for way in (result["out_of_place"], result["in_place"]):
            check(way["wrong"] == 0, f"wrong: {result}")
            bandwidth = result["bytes"] / way["time_us"] / 1e3
            check(abs(way["algbw"] - bandwidth) <= 1e-6 * bandwidth, f"algbw is not bytes / time: {result}")
            check(abs(way["busbw"] - bandwidth * 4 / 3) <= 1e-6 * bandwidth, f"busbw is not 4/3 algbw with 3 ranks: {result}")
    mean = sum(r["out_of_place"]["busbw"] + r["in_place"]["busbw"] for r in written.rows) / 2 / len(written.rows)
    check(f"Avg bus bandwidth    : {mean:.4f}" in done.out, f"the mean of busbw is {mean}\n{done.story()}")
    check(abs(written.end["average_busbw"] - mean) <= 1e-9 * mean and written.end["wrong"] == 0 and written.end["ended_by"] == "last row",
          f"{written.end}")


def json_of_every_collective():
    for collective in COLLECTIVES:
        _, written = with_json(collective, "-b", "12K", "-e", "48K", "--ranks", 3, *QUICK)
        check(written.head["collective"] == collective and len(written.rows) == 3, f"{written.head} {written.rows}")
        for result in written.rows:
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
    _, written = with_json("all_reduce", "-e", "8", "-c", "0", *QUICK)
    check(written.rows[0]["in_place"]["wrong"] is None and written.end["wrong"] is None, "wrong is not null")


def json_by_the_name_that_nccl_tests_has():
    for flag in ("-J", "--output_file"):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            run("all_reduce", "-e", "8", flag, file.name, *QUICK).passed()
            check(len(Lines(file.name).rows) == 1, f"{flag}: not one row")


def json_is_written_by_rank_0_alone():
    """Under a launcher the others leave no file, and need not be able to."""
    with tempfile.TemporaryDirectory() as folder:
        written, left = (os.path.join(folder, name) for name in ("results.json", "left.json"))
        port = free_port()
        ranks = [start_rank(rank, 3, port, "-e", "8", "--json", path, *QUICK) for rank, path in enumerate((written, left, "/no/such/folder/x.json"))]
        for rank in ranks:
            rank.wait().passed()
        check(len(Lines(written).rows) == 1 and not os.path.exists(left), f"rank 0 wrote {os.listdir(folder)}")
    done = start_rank(0, 2, free_port(), "-e", "8", "--json", "/no/such/folder/x.json").wait().complains("--json /no/such/folder/x.json: cannot be written")
    check(done.code == 2 and "#" not in done.out, done.story())


def bandwidth_that_is_wanted():
    """By the variable that nccl-tests has; nine tenths of it are enough."""
    flags = ["all_reduce", "-e", "1K", *QUICK]
    done, written = with_json(*flags, env={"NCCL_TESTS_MIN_BW": "1e-6"})
    check(re.search(r"^# Avg bus bandwidth    : [\d.]+ OK$", done.out, re.M) and written.end["busbw_ok"] is True and written.end["wanted_busbw"] == 1e-6,
          f"{written.end}\n{done.story()}")
    done = run(*flags, env={"NCCL_TESTS_MIN_BW": "1000000"}).failed()
    check(done.code == 4 and re.search(r"^# Avg bus bandwidth    : [\d.]+ FAILED$", done.out, re.M) and done.err == "", done.story())
    done, written = with_json(*flags)
    check(re.search(r"^# Avg bus bandwidth    : [\d.]+\n#\n# Collective test concluded: all_reduce$", done.out, re.M), done.story())
    check("busbw_ok" not in written.end, f"{written.end}")
    done = run(*flags, env={"NCCL_TESTS_MIN_BW": "fast"}).complains("NCCL_TESTS_MIN_BW=fast: not a bandwidth in GB/s, such as 10 or 0.5")
    check(done.code == 2 and "#" not in done.out, done.story())


def percentiles_of_iterations():
    flags = ["-b", "1K", "-e", "4K", "--ranks", 3, "-n", 50, "-w", 2]
    for collective in ("all_reduce", "alltoall"):
        done, written = with_json(collective, *flags, "-I", 1, "-K", 10, "-m", 2)
        heads = " ".join(done.out.split())
        check("time algbw busbw #wrong i_p50 i_p90 i_p99 i_max" in heads, f"no columns\n{done.story()}")
        lines = [line.split() for line in done.out.splitlines() if line.startswith("  ")]
        check(len(lines) == len(written.rows) == 3, done.story())
        for line, row in zip(lines, written.rows):
            check(len(line) == 24, f"{len(line)} words in {line}")
            for first, way in ((9, row["out_of_place"]), (17, row["in_place"])):
                if way is None:
                    check(line[first:first + 4] == ["N/A"] * 4, f"{line}")
                    continue
                of = way["percentiles"]
                check(of["iterations"] == 3 * 40, f"not 40 iterations of each of 3 ranks: {of}")
                ascending = [of[key] for key in ("min_us", "p50_us", "p90_us", "p99_us", "max_us")]
                check(ascending == sorted(ascending) and ascending[0] > 0, f"{of}")
                check(line[first:first + 4] == [f"{value:.2f}" for value in ascending[1:]], f"{line} is not {of}")
    check("i_p50" not in run("all_reduce", "-e", "8", "-I", 0, *QUICK).passed().out, "columns that were not asked for")


def many_iterations_need_no_more_memory():
    peaks = []
    for iterations in (1000, 400000):
        done = run("all_reduce", "-b", "8", "-e", "8", "-n", iterations, "-I", 1, "-M", 1).passed()
        peaks.append(float(done.out.split("Peak memory            : ")[1].split()[0]))
    check(peaks[1] < peaks[0] + 2, f"the most of memory in MiB: {peaks}")


def ways_of_blocking_and_averaging():
    for collective in ("all_reduce", "broadcast", "sendrecv"):
        for flags in (["-z", 0], ["-z", 1], ["--blocking", 2], ["-z", 3], ["-z", 3, "-a", 0], ["-a", 1], ["-a", 2], ["--average", 3]):
            done = run(collective, "-b", "1K", "-e", "64K", "-f", 8, "--ranks", 3, *flags, *QUICK)
            right_rows(done, None)
            said = f"blocking {flags[1] if flags[0] in ('-z', '--blocking') else 0}, average {flags[-1] if flags[-2] in ('-a', '--average') else 1},"
            check(said in done.out, f"the head does not say {said}\n{done.story()}")


def several_calls_an_iteration():
    for collective in COLLECTIVES:
        done, written = with_json(collective, "-b", "8K", "-e", "8K", "--ranks", 3, "-m", 5, *QUICK)
        right_rows(done)
        check(written.head["options"]["calls_per_iteration"] == 5 and "agg iters 5," in done.out, done.story())


def cycles():
    done, written = with_json("all_reduce", "-b", "8", "-e", "32", "-N", 3, *QUICK)
    right_rows(done, [8, 16, 32] * 3)
    check([row["cycle"] for row in written.rows] == [0] * 3 + [1] * 3 + [2] * 3, f"{written.rows}")


def cycles_without_end():
    """Until it is told to stop; what was written by then can be read."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        process = start("all_reduce", "-b", "8", "-e", "16", "-N", 0, *QUICK, "--json", path)
        await_that(lambda: os.path.exists(path) and open(path, encoding="utf-8").read().count("\n") > 20, "no 20 rows")
        process.send(signal.SIGINT)
        process.wait()
        with open(path, encoding="utf-8") as file:
            whole = [json.loads(line) for line in file if line.endswith("\n")]
    check({row["bytes"] for row in whole[1:]} == {8, 16} and whole[-1]["cycle"] > 5, f"{whole[-1]}")
    done, written = with_json("all_reduce", "-b", "8", "-e", "16", "-N", 0, "--time-limit", "0.5", *QUICK)
    check(len(written.rows) > 4 and f"ended after {len(written.rows)} rows" in done.out, done.story())


def sizes_that_do_not_fit_are_left_out():
    """The step leads from a size that fits everywhere to one that fits nowhere."""
    done, written = with_json("all_reduce", "-b", "1K", "-e", "1048576G", "-f", 1 << 40, *QUICK)
    right_rows(done, [1024])
    found = re.search(r"^# maxbytes reduced to (\d+): buffers of more than \1 bytes do not fit the memory that is available to all ranks$", done.out, re.M)
    check(found and f"maxbytes {found[1]}," in done.out and len(written.rows) == 1, done.story())
    check("reduced to" not in run("all_reduce", "-b", "1K", "-e", "1K", *QUICK).passed().out, "what fits is reduced")


def misaligned_buffers():
    for collective in COLLECTIVES:
        for shift in (1, 3):
            done = run(collective, "-u", shift, "-d", "all", "-b", "1000", "-e", "70000", "-f", 70, "--ranks", 3, *QUICK)
            right_rows(done)
            check(f"unalign {shift}," in done.out, done.story())


def buffers_of_the_shared_heap():
    """Also shifted, in place, between 1 to 3 ranks, and for every type of what is reduced; ranks of one process are threads of the unit tests."""
    for collective in COLLECTIVES:
        for registered, flags in ((1, ["--ranks", 3]), (2, ["--ranks", 3, "-u", 3]), (1, ["--ranks", 1]), (1, ["--communicators", 2])):
            done, written = with_json(collective, "-R", registered, "-b", "8", "-e", "300K", "-f", 190, "-c", 2, *flags, *QUICK)
            right_rows(done)
            check(f"local register {registered}," in done.out and written.head["options"]["local_register"] == registered, done.story())
    right_rows(run("all_reduce", "-R", 1, "-u", 1, "-d", "all", "-o", "all", "-b", "5000", "-e", "5000", *QUICK).passed())
    done, written = with_json("all_reduce", "-e", "8", *QUICK)
    check("local register 0," in done.out and written.head["options"]["local_register"] == 0, f"not ordinary memory unasked\n{done.story()}")


def several_communicators():
    for name, env in transports().items():
        for collective in ("all_reduce", "gather", "sendrecv"):
            done, written = with_json(collective, "-b", "1K", "-e", "1M", "-f", 32, "--ranks", 3, "--communicators", 3, "-m", 2, *QUICK, env=env)
            right_rows(done)
            check(written.head["options"]["communicators"] == 3 and "communicators 3" in done.out, f"{name}\n{done.story()}")
    port = free_port()
    ranks = [start_rank(rank, 3, port, "-e", "1K", "--communicators", 4, *QUICK) for rank in range(3)]
    for rank in ranks:
        rank.wait().passed()
    right_rows(ranks[0])


def time_limit():
    """Within a row, within the warm-up, within checks, and between rows; every rank ends by itself with success."""
    for flags, most_rows in ((["-n", 1 << 30], 1), (["-w", 1 << 30], 1), (["-c", 1 << 30], 1), (["-i", 1], 65000)):
        done, written = with_json("all_reduce", "-b", "8", "-e", "64K", "--ranks", 3, *flags, "--time-limit", "0.5")
        check(done.seconds < 20, f"took {done.seconds:.1f} s\n{done.story()}")
        check(0 < len(written.rows) <= most_rows and written.end["ended_by"] == "time limit", f"{written.end}\n{done.story()}")
        check(f"# --time-limit 0.5 s: ended after {len(written.rows)} of " in done.out, f"does not say so\n{done.story()}")
        check("Avg bus bandwidth" in done.out and "0 OK" in done.out, f"no closing lines\n{done.story()}")
        if most_rows == 1:
            row = written.rows[0]
            check(row["cut"] == "time limit" and row["in_place"] is None and "# the row above has " in done.out, f"{row}\n{done.story()}")
    done, written = with_json("all_reduce", "-e", "64", "--time-limit", "100", *QUICK)
    right_rows(done, [8, 16, 32, 64])
    check(written.end["ended_by"] == "last row" and "time-limit" not in done.out.split("\n", 1)[1], done.story())
    check(all("cut" not in row for row in written.rows), f"{written.rows}")


def timeout_of_a_row():
    done = run("all_reduce", "-b", "8", "-e", "8", "-n", 1 << 30, "-T", 1).failed()
    check("-T 1: all_reduce of 8 bytes has not ended within 1 s" in done.err, done.story())
    check(done.seconds < 10, f"took {done.seconds:.1f} s")
    right_rows(run("all_reduce", "-e", "64", "-T", 50, *QUICK).passed(), [8, 16, 32, 64])


def timeout_of_a_row_names_who_is_waited_for():
    """Both transports at the same time, since this needs real time."""
    limit = within(10)
    sweeps = []
    for env in ({"GYRE_TRANSPORT": "shm"}, {"GYRE_TRANSPORT": "tcp"}):
        sweep, children = in_mid_sweep(3, ["-b", "1M", "-e", "1M", "-n", 1 << 30, "-c", 0, "-T", limit], env)
        signal_process(children[1], signal.SIGSTOP)
        sweeps.append(sweep)
    for sweep in sweeps:
        for rank in (0, 2):
            pattern = (rf"^gyre-perf: rank {rank}: .*-T {limit}: all_reduce of 1048576 bytes has not ended within {limit} s; "
                       rf"rank {rank} was in call \d+, all_reduce .*, waiting .*, by \w+")
            await_that(lambda: re.search(pattern, sweep.err, re.M), lambda: f"rank {rank} does not say whom it waits for\n{sweep.story()}", 60)


def ranks_by_threads_and_gpus():
    for flags, ranks in ((["-g", 3], 3), (["-t", 2, "-g", 2], 4), (["-t", 1], 1), (["-g", 1], 1), (["--nthreads", 3, "--ranks", 3], 3)):
        done = run("all_reduce", "-e", "8", *flags, *QUICK).passed()
        check(f"ranks {ranks}," in done.out, f"{flags}: not {ranks} ranks\n{done.story()}")
    port = free_port()
    ranks = [start_rank(rank, 2, port, "-e", "8", "-t", 1, "-g", 1, *QUICK) for rank in range(2)]
    for rank in ranks:
        rank.wait().passed()
    start_rank(0, 2, free_port(), "-g", 2).wait().complains("-g 2", "launcher", "2 times as many")


def groups_of_ranks():
    """As nccl-tests splits ranks; each group sweeps by itself, and the table is that of rank 0's."""
    sizes = [1024, 2048, 4096]
    for env, groups in (({"NCCL_TESTS_SPLIT": "MOD 2"}, {0: [0, 2], 1: [1, 3]}), ({"NCCL_TESTS_SPLIT_MASK": "0x2"}, {0: [0, 1], 2: [2, 3]})):
        done, written = with_json("all_reduce", "--ranks", 4, "-b", "1K", "-e", "4K", *QUICK, env=env)
        right_rows(done, sizes)
        head = "".join(f"# group {color}: ranks {ranks[0]}, {ranks[1]}\n" for color, ranks in groups.items())
        check("ranks 2," in done.out and head in done.out, f"no groups of two\n{done.story()}")
        check(written.head["ranks"] == 2 and written.head["groups"] == [{"color": color, "ranks": ranks} for color, ranks in groups.items()], f"{written.head}")
        for color in groups:
            check(re.search(rf"^# group {color}: avg bus bandwidth [\d.]+, 0 wrong$", done.out, re.M), f"no result of group {color}\n{done.story()}")
        for way in (row["out_of_place"] for row in written.rows):
            check(abs(way["busbw"] - way["algbw"]) <= 1e-9 * way["algbw"], f"busbw is not algbw, as between 2 ranks: {way}")
    for name, env in transports().items():
        for collective in ("all_reduce", "gather", "sendrecv"):
            done = run(collective, "--ranks", 4, "-b", "1K", "-e", "1M", "-f", 32, "--communicators", 2, *QUICK, env={"NCCL_TESTS_SPLIT": "DIV 3", **env})
            right_rows(done)
            check("ranks 3," in done.out and "# group 1: rank 3\n" in done.out, f"{name}\n{done.story()}")
    check("group" not in run("all_reduce", "-e", "8", *QUICK).passed().out, "groups that nobody asked for")


def groups_that_differ():
    port = free_port()
    ranks = [start_rank(rank, 3, port, "-e", "8", *QUICK, env={"NCCL_TESTS_SPLIT": "MOD 2"} if rank else {}) for rank in range(3)]
    for rank in ranks:
        rank.wait().complains("groups differ: rank 1 has NCCL_TESTS_SPLIT=MOD 2, rank 0 has no NCCL_TESTS_SPLIT")


def times_of_day_and_memory():
    done = run("all_reduce", "-e", "64", "-S", 1, "-M", 1, *QUICK).passed()
    check(len(re.findall(r" 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d  one_shot$", done.out, re.M)) == 4, f"not four times\n{done.story()}")
    check(re.search(r"^# Peak memory            : [1-9][\d.]* MiB, rank [01]$", done.out, re.M), done.story())


def flags_without_effect_are_taken_with_a_note():
    for flag, long in (("-p", "--parallel_init"), ("-y", "--stream_null"), ("-x", "--cta_policy"), ("-V", "--device_cta_count"), ("-C", "--report_cputime")):
        for name in (flag, long):
            done = run("all_reduce", "-e", "8", name, 1, *QUICK).passed()
            right_rows(done, [8])
            check(f"# {flag} 1 has no effect: " in done.out, f"no note\n{done.story()}")
            check(f"{flag} 0 has" not in run("all_reduce", "-e", "8", name, 0, *QUICK).passed().out, "a note about nothing")
    for flags in (["-G", 0], ["--cudagraph", 0], ["-D", 0], ["-T", 0], ["-I", 0], ["-K", 0]):
        right_rows(run("all_reduce", "-e", "8", *flags, *QUICK).passed(), [8])


def what_scripts_of_nccl_tests_say():
    """One list of flags for all of its tests, with which each measures what it is for."""
    for collective in COLLECTIVES:
        done = run(collective, "-b", "8", "-e", "1K", "-f", 2, "-t", 1, "-g", 2, "-n", 5, "-w", 1, "-m", 1, "-p", 0, "-c", 1, "-o", "max", "-d", "float",
                   "-r", "all", "-z", 0, "-G", 0, "-a", 1, "-C", 0, "-R", 0, "-N", 1).passed()
        roots = [0, 1] if collective in ROOTED else [-1]
        found = right_rows(done, [8 << i for i in range(8)] * len(roots))
        check([row.root for row in found] == [root for root in roots for _ in range(8)], done.story())
        check({row.op for row in found} == {"max" if collective in REDUCING else "none"}, done.story())
        check(("# -o has no effect: " in done.out) == (collective not in REDUCING) and ("# -r has no effect: " in done.out) == (collective not in ROOTED),
              done.story())
        done = run(collective, "-e", "8", "-o", "sum", "-r", 0, *QUICK).passed()
        check("has no effect" not in done.out, f"a note about what is so anyway\n{done.story()}")


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
        said = " ".join(done.out.split())
        check(("has no operation" in said) == (collective not in REDUCING) and ("has no root" in said) == (collective not in ROOTED), done.story())
    done = run("all_reduce", "--help").passed()
    for flag in ("-b", "-e", "-f", "-i", "-n", "-w", "-d", "-o", "-c", "--ranks", "--algorithm", "--transport", "--json", "-t", "-g", "-m", "-N", "-p",
                 "-z", "-y", "-x", "-V", "-T", "-G", "-C", "-a", "-R", "-D", "-S", "-M", "-J", "-u", "-I", "-K", "--communicators", "--time-limit"):
        check(flag in done.out, f"{flag} is not in the help\n{done.story()}")
    check("gyre " in run("--version").passed().out, "no version")


subjects([every_collective, every_type_and_operation_of_what_reduces, every_type_of_what_moves, one_root, roots_of_nccl_tests,
          json_of_every_collective, every_algorithm_of_every_collective, every_collective_over_every_transport,
          without_options_but_a_small_end, numbers_of_ranks, every_type_and_operation, one_type_and_operation, sizes,
          without_check_nothing_is_called_right, iterations_and_warmup, json_has_every_row, json_has_null_for_what_was_not_checked,
          json_by_the_name_that_nccl_tests_has, json_is_written_by_rank_0_alone, bandwidth_that_is_wanted, percentiles_of_iterations, many_iterations_need_no_more_memory,
          ways_of_blocking_and_averaging, several_calls_an_iteration, cycles, cycles_without_end, sizes_that_do_not_fit_are_left_out, misaligned_buffers, buffers_of_the_shared_heap,
          several_communicators, time_limit, timeout_of_a_row, timeout_of_a_row_names_who_is_waited_for,
          ranks_by_threads_and_gpus, groups_of_ranks, groups_that_differ, times_of_day_and_memory,
          flags_without_effect_are_taken_with_a_note, what_scripts_of_nccl_tests_say, every_algorithm, every_transport,
          the_flag_is_stronger_than_the_environment, two_channels, small_and_few_slots, info_says_who_is_joined_how, options_shows_values_and_origin, help_names_every_flag])
