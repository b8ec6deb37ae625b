"""The sweep: right results for every type, operation, algorithm, transport and number of ranks, by nccl-tests' flags."""
from sweeping import QUICK, count_of, with_json
from system import (BLOCK_PER_RANK, COLLECTIVES, NEVER_IN_PLACE, REDUCING, ROOTED, Skipped, built_in, check, free_port, right_rows, run, start_rank,
                    subjects, transports)

TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"]
OPS = ["sum", "prod", "max", "min", "avg", "mulsum"]


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


def ranks_by_threads_and_gpus():
    for flags, ranks in ((["-g", 3], 3), (["-t", 2, "-g", 2], 4), (["-t", 1], 1), (["-g", 1], 1), (["--nthreads", 3, "--ranks", 3], 3)):
        done = run("all_reduce", "-e", "8", *flags, *QUICK).passed()
        check(f"ranks {ranks}," in done.out, f"{flags}: not {ranks} ranks\n{done.story()}")
    port = free_port()
    ranks = [start_rank(rank, 2, port, "-e", "8", "-t", 1, "-g", 1, *QUICK) for rank in range(2)]
    for rank in ranks:
        rank.wait().passed()
    start_rank(0, 2, free_port(), "-g", 2).wait().complains("-g 2", "launcher", "2 times as many")


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
          every_algorithm_of_every_collective, every_collective_over_every_transport, without_options_but_a_small_end, numbers_of_ranks,
          every_type_and_operation, one_type_and_operation, sizes, without_check_nothing_is_called_right, misaligned_buffers,
          buffers_of_the_shared_heap, several_communicators, ranks_by_threads_and_gpus, flags_without_effect_are_taken_with_a_note,
          what_scripts_of_nccl_tests_say, every_algorithm, every_transport, the_flag_is_stronger_than_the_environment, two_channels,
          small_and_few_slots, info_says_who_is_joined_how, options_shows_values_and_origin, help_names_every_flag])
