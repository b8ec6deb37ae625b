"""How a sweep goes and what it reports: iterations, percentiles, JSON lines, limits of time and memory, groups of ranks."""
import json
import os
import platform
import re
import signal
import tempfile

from killing import in_mid_sweep
from sweeping import Lines, QUICK, with_json
from system import (COLLECTIVES, NEVER_IN_PLACE, REDUCING, ROOTED, await_that, built_in, bus_factor, check, free_port, right_rows, run, signal_process, start,
                    start_rank, subjects, transports, within)


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
    machine, versions = head["machine"], head["versions"]
    check((machine["host"], machine["machine"], machine["kernel"]) == (os.uname().nodename, os.uname().machine, os.uname().release), f"{head}")
    check(re.fullmatch(r"(g\+\+|clang) \d+\.\d+\.\d+", versions["compiler"]) and versions["libc"] == " ".join(platform.libc_ver()), f"{head}")
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


def json_says_what_was_set_and_which_ucx_was_opened():
    _, written = with_json("all_reduce", "-e", "8", "--transport", "shm", *QUICK, env={"GYRE_SLOTS": "4", "GYRE_WAIT": "yield"})
    check(written.head["config"] == {"GYRE_SLOTS": 4, "GYRE_TRANSPORT": "shm", "GYRE_WAIT": "yield"}, f"{written.head}")
    check(written.head["versions"]["ucx"] is None, f"UCX without a reason: {written.head}")
    if built_in("ucx"):
        _, written = with_json("all_reduce", "-e", "8", "--transport", "ucx", *QUICK)
        check(re.fullmatch(r"1\.\d+\.\d+", written.head["versions"]["ucx"]), f"{written.head}")


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


subjects([json_of_every_collective, iterations_and_warmup, json_has_every_row, json_says_what_was_set_and_which_ucx_was_opened, json_has_null_for_what_was_not_checked,
          json_by_the_name_that_nccl_tests_has, json_is_written_by_rank_0_alone, bandwidth_that_is_wanted, percentiles_of_iterations,
          many_iterations_need_no_more_memory, ways_of_blocking_and_averaging, several_calls_an_iteration, cycles, cycles_without_end,
          sizes_that_do_not_fit_are_left_out, time_limit, timeout_of_a_row, timeout_of_a_row_names_who_is_waited_for, groups_of_ranks,
          groups_that_differ, times_of_day_and_memory])
