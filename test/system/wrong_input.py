"""Wrong input: one clear line that names the thing, an exit code that is not 0, and no time lost."""
import os
import re
import signal
import socket
import subprocess
import time

from system import COLLECTIVES, GENEROUS, ROOTED, Skipped, await_that, built_in, check, free_port, perf, right_rows, run, start, start_rank, subjects


def sweep_flags():
    for flags, named in (
            (["-b", "7x"], "7x.*size"), (["-e", ""], "-e|maxbytes"), (["-b", "-1"], "-b|minbytes|-1"), (["-b", "1.5"], "'1.5'.*such as.*1.5M"), (["-b", ".5M"], "'.5M'"),
            (["-b", "99999999999999999999"], "99999999999999999999"), (["-e", "99999999999G"], "99999999999G"),
            (["-b", "1G", "-e", "1M"], r"-b.*-e"), (["-f", "1"], "-f 1"), (["-f", "0"], "-f 0"), (["-f", "x"], "-f|stepfactor"),
            (["-i", "1", "-e", "1G"], "-i 1"), (["-i", "k"], "-i|stepbytes"), (["-n", "0"], "-n,--iters: 0 is not from 1 .*nearest right value is 1$"), (["-n", "-3"], "-n|iters"),
            (["-w", "-1"], "-w|warmup"), (["-c", "-1"], "-c|check"), (["-d", "floaty"], "floaty.*bfloat16"),
            (["-o", "plus"], "plus.*sum"), (["--ranks", "0"], "--ranks"), (["--ranks", "two"], "--ranks"), (["--ranks", "-1"], "--ranks"),
            (["--no-such-flag"], "--no-such-flag"), (["word"], "word"), (["-b"], "-b|minbytes")):
        done = run("all_reduce", *flags).complains(named)
        check("size" not in done.out and "#" not in done.out, f"begins a sweep nevertheless\n{done.story()}")


def flags_of_nccl_tests():
    for flags, named in (
            (["-m", "0"], "-m.*the nearest right value is 1$"), (["-m", "100000"], "nearest right value is 65536"), (["-m", "x"], "'x' is not a whole number"),
            (["-N", "-1"], "-N.*nearest right value is 0"), (["-z", "4"], "-z.*nearest right value is 3"), (["-a", "9"], "-a.*nearest right value is 3"),
            (["-a", "-1"], "-a.*nearest right value is 0"), (["-I", "2"], "-I.*nearest right value is 1"), (["-I", "yes"], "-I.*'yes'"),
            (["-I", "1", "-K", "20"], "-K 20: .*nearest right value is 19"), (["-K", "5"], "-K 5: .*-I 1"), (["-u", "-1"], "-u.*nearest right value is 0"),
            (["-t", "0"], "-t.*nearest right value is 1"), (["-g", "0"], "-g.*nearest right value is 1"), (["-g", "8192"], "-g.*nearest right value is 4096"),
            (["-t", "100", "-g", "100"], "10000 ranks are more than 4096"), (["-t", "2", "-g", "2", "--ranks", "3"], "that is 4 ranks, --ranks says 3"),
            (["-T", "-1"], "-T.*nearest right value is 0"), (["-T", "1.5"], "-T.*whole number"), (["-S", "2"], "-S.*nearest right value is 1"),
            (["-M", "2"], "-M.*nearest right value is 1"), (["-p", "2"], "-p.*nearest right value is 1"), (["-C", "7"], "-C.*nearest right value is 1"),
            (["-y", "2"], "-y.*nearest right value is 1"), (["-x", "3"], "-x.*nearest right value is 2"), (["-V", "999"], "-V.*nearest right value is 128"),
            (["-G", "1"], "-G.*refused: .*CUDA graph.*nearest right value is 0"), (["-G", "x"], "-G.*'x'"),
            (["-R", "3"], "-R.*nearest right value is 2"), (["-D", "1"], "-D.*refused: .*device.*nearest right value is 0"),
            (["--communicators", "0"], "--communicators.*nearest right value is 1"), (["--communicators", "65"], "nearest right value is 64"),
            (["--time-limit", "0"], "--time-limit.*'0'"), (["--time-limit", "-3"], "--time-limit"), (["--time-limit", "1m"], "--time-limit.*'1m'.*such as 30"),
            (["--time-limit", "nan"], "--time-limit.*'nan'"), (["-J", "/no/such/folder/x.json"], "/no/such/folder/x.json")):
        done = run("all_reduce", *flags).complains(named)
        check("#" not in done.out, f"begins a sweep nevertheless\n{done.story()}")


def roots():
    for flags, named in ((["-r", "2"], "-r 2: no such rank; there are 2, from 0"), (["-r", "3", "--ranks", "3"], "-r 3: .* there are 3"),
                         (["--root", "1", "--ranks", "1"], "-r 1: .* there is 1"), (["-r", "-2"], "-r,--root: '-2' is neither a rank nor all"),
                         (["-r", "x"], "'x' is neither a rank nor all"), (["-r", "9999999999"], "9999999999"), (["-r"], "-r|--root")):
        for collective in ROOTED:
            done = run(collective, *flags).complains(named)
            check("#" not in done.out, f"begins a sweep nevertheless\n{done.story()}")
    job = {"GYRE_SIZE": 2, "GYRE_ROOT": f"127.0.0.1:{free_port()}"}
    for rank in range(2):
        run("reduce", "-r", "2", env={"GYRE_RANK": rank, **job}).complains("-r 2: no such rank; there are 2")


def flags_that_a_collective_does_not_have():
    """nccl-tests' are taken by all, but for what makes no sense anywhere; ours are not."""
    for collective in COLLECTIVES:
        run(collective, "-r", "x").complains("'x' is neither a rank nor all")
        run(collective, "-o", "plus").complains("plus.*sum")
    run("sendrecv", "--algorithm", "ring").complains("--algorithm")
    run("alltoall", "--algorithm", "rnig").complains("rnig", r"did you mean ring\?")
    run("all_to_all").complains("all_to_all")


def names_near_a_right_one():
    run("all_reduce", "--algorithm", "rnig").complains("GYRE_ALGORITHM|--algorithm", "rnig", r"did you mean ring\?")
    run("all_reduce", "--transport", "smh").complains("GYRE_TRANSPORT|--transport", "smh", r"did you mean shm\?")
    run("all_reduce", "-d", "float32").complains("float32", "float", r"did you mean float\?")
    run("all_redcue").complains("all_redcue")


def no_command_prints_the_help():
    done = run()
    check(done.code != 0 and "all_reduce" in done.out + done.err, done.story())


def json_that_cannot_be_written():
    for path in ("/no/such/folder/results.json", "/", "/proc/version"):
        done = run("all_reduce", "-e", "8", "--json", path).complains("--json", path)
        check("#" not in done.out, f"measures first\n{done.story()}")


def options():
    for name, value, hint in (
            ("GYRE_TRANSPROT", "shm", "did you mean GYRE_TRANSPORT"), ("GYRE_SLOT", "4", "did you mean GYRE_SLOTS"),
            ("GYRE_COMPLETELY_ELSE_AND_LONG", "1", "--options"), ("GYRE_TRANSPORT", "smh", "did you mean shm"),
            ("GYRE_ALGORITHM", "one-shot", "did you mean one_shot"), ("GYRE_LOG", "inof", "did you mean info"),
            ("GYRE_SLOTS", "1", "nearest right value is 2"), ("GYRE_SLOTS", "many", "number"),
            ("GYRE_SLOTS", "100000", "nearest right value is 256"), ("GYRE_SLOT_BYTES", "5000", "nearest right value is 4096"),
            ("GYRE_CHANNELS", "100", "nearest right value is 16"), ("GYRE_TIMEOUT", "0", "nearest right value is 1"),
            ("GYRE_TIMEOUT", "-1", "number"), ("GYRE_CHANNELS", "", "number")):
        run("all_reduce", "-e", "8", env={name: value}).complains(name, hint)


def grids():
    """Each rank says so: what a grid must be is known when all ranks are."""
    for grid in ("3x", "x", "1x2x", "0x2", "2x3", "2*1", "-1x2"):
        done = run("all_reduce", "-e", "8", env={"GYRE_GRID": grid}).failed()
        check(done.err.count(f"GYRE_GRID={grid}: ") == 2, f"not one line of each rank\n{done.story()}")
    right_rows(run("all_reduce", "-e", "8", "--ranks", 6, env={"GYRE_GRID": "3x2", "GYRE_ALGORITHM": "bucket"}))


def groups_that_make_no_sense():
    for collective, flags, env, named in (
            ("all_reduce", [], {"NCCL_TESTS_SPLIT": "XOR 1"}, "NCCL_TESTS_SPLIT=XOR 1: not AND, OR, MOD or DIV"),
            ("all_reduce", [], {"NCCL_TESTS_SPLIT": "MOD 0"}, "NCCL_TESTS_SPLIT=MOD 0: MOD takes a number from 1"),
            ("all_reduce", [], {"NCCL_TESTS_SPLIT_MASK": "x"}, "NCCL_TESTS_SPLIT_MASK=x: not a hexadecimal number"),
            ("all_reduce", ["--time-limit", 1], {"NCCL_TESTS_SPLIT": "MOD 2"}, "NCCL_TESTS_SPLIT=MOD 2: with --time-limit"),
            ("reduce", ["--ranks", 3, "-r", "all"], {"NCCL_TESTS_SPLIT": "DIV 2"}, "with -r all groups of 1 and 2 ranks"),
            ("reduce", ["--ranks", 3, "-r", 1], {"NCCL_TESTS_SPLIT": "DIV 2"}, "NCCL_TESTS_SPLIT=DIV 2: -r 1: no such rank; there is 1, from 0")):
        done = run(collective, "-e", "8", *flags, env=env).complains(named)
        check(done.code == 2 and "#" not in done.out, f"begins a sweep nevertheless\n{done.story()}")


def place_that_makes_no_sense():
    root = {"GYRE_ROOT": "127.0.0.1:1"}
    master = {"MASTER_ADDR": "localhost"}
    for env, named in (
            ({"GYRE_RANK": 0}, "GYRE_SIZE is not set"), ({"GYRE_SIZE": 2}, "GYRE_RANK is not set"),
            ({"GYRE_RANK": 0, "GYRE_SIZE": 2}, "GYRE_ROOT is not set"),
            ({"GYRE_RANK": 2, "GYRE_SIZE": 2, **root}, "GYRE_RANK=2.*GYRE_SIZE=2"),
            ({"GYRE_RANK": -1, "GYRE_SIZE": 2, **root}, "GYRE_RANK=-1"), ({"GYRE_RANK": "x", "GYRE_SIZE": 2, **root}, "GYRE_RANK=x"),
            ({"GYRE_RANK": 0, "GYRE_SIZE": 0, **root}, "GYRE_SIZE=0"), ({"GYRE_RANK": 0, "GYRE_SIZE": "2 ", **root}, "GYRE_SIZE=2 "),
            ({"RANK": 0, "WORLD_SIZE": 2}, "MASTER_ADDR"), ({"RANK": 0, "WORLD_SIZE": 2, **master}, "MASTER_PORT"),
            ({"RANK": 5, "WORLD_SIZE": 2, "MASTER_PORT": 1, **master}, "RANK=5.*WORLD_SIZE=2"),
            ({"RANK": 0, "WORLD_SIZE": 2, "MASTER_PORT": "http", **master}, "MASTER_PORT=http"),
            ({"SLURM_PROCID": 0, "SLURM_STEP_ID": 0}, "SLURM_")):
        run("all_reduce", "-e", "8", env=env).complains(named)


def root_that_is_no_address():
    for root in ("", "nowhere", ":5000", "localhost:", "localhost:port", "localhost:0", "localhost:99999", "fd00::1:80", "localhost:80x",
                 "localhost:-1"):
        run("all_reduce", "-e", "8", env={"GYRE_RANK": 1, "GYRE_SIZE": 2, "GYRE_ROOT": root}).complains(f"GYRE_ROOT={root}")


def ranks_against_the_launcher():
    run("all_reduce", "--ranks", 3, env={"GYRE_RANK": 0, "GYRE_SIZE": 2, "GYRE_ROOT": "localhost:1"}).complains("--ranks 3")


def name_that_does_not_resolve():
    done = start_rank(1, 2, 4711, "-e", "8", host="no-such-host.invalid").wait().complains("rank 1", "no-such-host.invalid", "resolve")
    check(done.seconds < 30, f"took {done.seconds:.1f} s\n{done.story()}")


def port_in_use():
    port = free_port()
    with socket.create_server(("0.0.0.0", port)):
        done = start_rank(0, 2, port, "-e", "8").wait().complains("rank 0", f"127.0.0.1:{port}", "in use")
        check(done.seconds < 5, f"took {done.seconds:.1f} s\n{done.story()}")


def in_two_seconds(process, *patterns):
    """GYRE_TIMEOUT=2 and what a busy machine may add."""
    process.wait(20).complains(*patterns)
    check(1.5 < process.seconds < 6, f"took {process.seconds:.1f} s, not about 2\n{process.story()}")


def root_that_refuses():
    port = free_port()
    in_two_seconds(start_rank(1, 2, port, "-e", "8", env={"GYRE_TIMEOUT": 2}), "rank 1", f"127.0.0.1:{port}", "refused", "2 s")


def root_that_cannot_be_reached():
    # 203.0.113.0/24 is set aside for documentation: nobody answers there.
    in_two_seconds(start_rank(1, 2, 4711, "-e", "8", host="203.0.113.7", env={"GYRE_TIMEOUT": 2}), "rank 1", "203.0.113.7:4711", "2 s")


def root_that_is_another_program():
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        in_two_seconds(start_rank(1, 2, port, "-e", "8", env={"GYRE_TIMEOUT": 2}), "rank 1", f"127.0.0.1:{port}", "does not answer")


def ranks_that_are_missing():
    port = free_port()
    here = [start_rank(rank, 5, port, "-e", "8", env={"GYRE_TIMEOUT": 2}) for rank in (0, 2, 3)]
    for rank, process in zip((0, 2, 3), here):
        in_two_seconds(process, f"^gyre-perf: rank {rank}: ", "ranks? 1 and 4 of 5|ranks? 1, 4 of 5", "2 s")


def rank_that_is_there_twice():
    port = free_port()
    ranks = [start_rank(rank, 3, port, "-e", "8", env={"GYRE_TIMEOUT": 2}) for rank in (0, 1, 1)]
    for process in ranks:
        process.wait(20).failed()
    check(any("rank 1 joined twice" in process.err for process in ranks), "\n".join(process.story() for process in ranks))


def ranks_that_do_not_agree_on_their_number():
    port = free_port()
    ranks = [start_rank(rank, size, port, "-e", "8", env={"GYRE_TIMEOUT": 2}) for rank, size in ((0, 3), (1, 3), (2, 4))]
    for rank, process in enumerate(ranks):
        process.wait(20).complains(f"^gyre-perf: rank {rank}: ", "rank 2 says the job has 4 ranks, rank 0 says 3")


def options_that_differ():
    for name, one, other in (("GYRE_SLOTS", 4, 8), ("GYRE_CHANNELS", 1, 2), ("GYRE_SLOT_BYTES", 4096, 8192),
                             ("GYRE_TRANSPORT", "shm", "auto")):
        port = free_port()
        ranks = [start_rank(rank, 3, port, "-e", "8", env={name: other if rank == 1 else one}) for rank in range(3)]
        for rank, process in enumerate(ranks):
            process.wait(20).complains(f"^gyre-perf: rank {rank}: ", f"rank 1 has {name}={other}, rank 0 has {one}")


def results_that_cannot_be_written():
    if not os.path.exists("/dev/full"):
        raise Skipped("there is no /dev/full")
    done = run("all_reduce", "-e", "8", "-n", "1", "--json", "/dev/full").failed()
    check("rank 0: --json /dev/full: " in done.err, f"a file that took nothing is called written\n{done.story()}")


def buffers_that_do_not_fit():
    done = run("all_reduce", "-b", "1048576G", "-e", "1048576G", "-n", "1").failed()
    for rank in range(2):
        check(re.search(rf"rank {rank}: -b 1125899906842624: buffers of more than \d+ bytes do not fit the memory", done.err), f"rank {rank} does not complain\n{done.story()}")
    check("#" not in done.out, f"begins a sweep nevertheless\n{done.story()}")


def interrupted():
    process = start("all_reduce", "-b", "8", "-e", "8", "-n", "1000000000")
    await_that(lambda: "algorithm" in process.out, "no sweep began")
    begun = time.monotonic()
    process.send(signal.SIGINT)
    process.wait(GENEROUS)
    check(process.code != 0 and time.monotonic() - begun < 10, process.story())
    await_that(lambda: not process.session(), "ranks are left", 5)


def interrupted_while_ranks_start():
    for delay in (0.005, 0.01, 0.02, 0.05):
        process = start("all_reduce", "--ranks", "16", "-b", "8", "-e", "8", "-n", "1000000000")
        time.sleep(delay)
        process.send(signal.SIGTERM)
        process.wait(GENEROUS)
        check(process.code != 0, process.story())
        await_that(lambda: not process.session(), "ranks are left", 5)


def loopback_between_processes():
    begun = time.monotonic()
    done = run("all_reduce", "--transport", "loopback", "-e", "8").failed()
    check("other processes need shm or ucx" in done.err, done.story())
    check(time.monotonic() - begun < 10, "took long")


def transports_that_only_some_ranks_have():
    """UCX is of no use to rank 1; the ranks share a host and do not need it."""
    if not built_in("ucx"):
        raise Skipped("built without UCX")
    port = free_port()
    ranks = [start_rank(rank, 2, port, "-e", "8", env={"UCX_TLS": ("tcp,self", "rc")[rank]}) for rank in range(2)]
    for process in ranks:
        process.wait(GENEROUS).passed(quiet=False)
    port = free_port()
    ranks = [start_rank(rank, 2, port, "-e", "8", "--transport", "ucx", env={"UCX_TLS": ("tcp,self", "rc")[rank]}) for rank in range(2)]
    for process, said in zip(ranks, ("rank 1 cannot use ucx", "UCX cannot be used here: ")):
        check(said in process.wait(GENEROUS).failed().err, process.story())


def an_output_that_takes_no_more():
    for arguments in (["all_reduce", "-e", "1K"], ["plan", "ring", "--ranks", "64"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([perf(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        check(done.returncode == 1 and re.search("takes no more|No space left", done.stderr), f"{arguments}: {done.returncode}\n{done.stderr}")


subjects([an_output_that_takes_no_more, flags_of_nccl_tests, roots, grids, flags_that_a_collective_does_not_have, interrupted_while_ranks_start, loopback_between_processes, transports_that_only_some_ranks_have, sweep_flags, names_near_a_right_one, no_command_prints_the_help, json_that_cannot_be_written, options, groups_that_make_no_sense, place_that_makes_no_sense,
          root_that_is_no_address, ranks_against_the_launcher, name_that_does_not_resolve, port_in_use, root_that_refuses,
          root_that_cannot_be_reached, root_that_is_another_program, ranks_that_are_missing, rank_that_is_there_twice,
          ranks_that_do_not_agree_on_their_number, options_that_differ, results_that_cannot_be_written,
          buffers_that_do_not_fit, interrupted])
