#!/usr/bin/env python3
"""gyre-perf net: figures of gyre's plugin over every transport and table, clear errors for what cannot be measured, and for each fault of
a plugin its name and an exit code. Beside gyre-perf's folder lie the plugin, and one that adds faults to it (test/perf/faulty_net.cpp)."""
import json
import os
import re
import sys
import tempfile

from system import UCX, Skipped, check, free_port, run, start, subjects

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[1])))
PLUGIN = os.path.join(BUILD, "plugin", "libnccl-net-gyre.so")
FAULTY = os.path.join(BUILD, "test", "libfaulty-net.so")
QUICK = ["--time-ms", "5"]
TCP = {**UCX["ucx over tcp"], "UCX_NET_DEVICES": "lo", "NCCL_SOCKET_IFNAME": "lo"}
ROW = re.compile(r"^ +(\d+) +(\d+) +(\d+) +([12]) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(\d+|N/A)$", re.M)


def net(*arguments, env=None, plugin=PLUGIN):
    if not os.path.exists(PLUGIN):
        raise Skipped("built without UCX")
    return run("net", plugin, *QUICK, *arguments, env={**TCP, **(env or {})})


def rows_of(process):
    found = ROW.findall(process.passed().out)
    check(found, f"no rows\n{process.story()}")
    return found


def faulty(fault, *arguments, **env):
    return net("-b", "1000", "-e", "1000", *arguments, plugin=FAULTY, env={"FAULTY_NET": fault, "FAULTY_NET_INNER": PLUGIN, **env})


def sizes_around_a_word_are_right_over_every_transport():
    for name, environment in UCX.items():
        process = net("-b", "0", "-e", "9", "-i", "1", env=environment)
        found = rows_of(process)
        check([row[0] for row in found] == [str(size) for size in range(10)], f"{name}: other sizes\n{process.story()}")
        check(all(row[11] == "0" for row in found), f"{name}: wrong bytes\n{process.story()}")
        check("# Wrong bytes : 0 OK" in process.out, process.story())


def every_table_gives_figures():
    for table in range(5, 13):
        process = net("-b", "4K", "-e", "4K", "--version", table)
        check(rows_of(process)[0][11] == "0" and f"table {table}," in process.out, process.story())


def several_connections_both_ways_are_right():
    for connections in (2, 8):
        row, = rows_of(net("-b", "100K", "-e", "100K", "-c", connections, "--bidirectional", "--depth", "3"))
        check(row[1:4] == (str(connections), "3", "2") and row[11] == "0", f"not as asked: {row}")


def one_buffer_and_no_yielding_are_right():
    row, = rows_of(net("-b", "1M", "-e", "1M", "--shared-buffer", "--spin"))
    check(row[11] == "0", f"wrong bytes: {row}")


def what_is_not_asked_for_is_not_measured():
    row, = rows_of(net("-b", "8", "-e", "8", "--bandwidth", "--check", "0"))
    check(row[8:] == ("N/A", "N/A", "N/A", "N/A") and row[4] != "N/A", f"{row}")
    row, = rows_of(net("-b", "8", "-e", "8", "--latency"))
    check(row[4:8] == ("N/A", "N/A", "N/A", "N/A") and row[8] != "N/A" and row[11] == "0", f"{row}")


def rows_are_written_as_json_lines():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.jsonl")
        net("-b", "8", "-e", "32", "--json", file).passed()
        lines = [json.loads(line) for line in open(file, encoding="utf-8")]
    check([line["kind"] for line in lines] == ["run", "net", "net"], f"{lines}")
    check(lines[0]["plugin"]["name"] == "gyre" and lines[1]["bytes"] == 8, f"{lines}")
    check(lines[2]["latency"]["p50_us"] > 0 and lines[2]["bandwidth"]["messages"] > 0, f"{lines}")


def two_ranks_that_were_started_by_hand_measure_together():
    port = free_port()
    both = [start("net", PLUGIN, *QUICK, "-b", "1K", "-e", "1K", env={**TCP, "GYRE_RANK": rank, "GYRE_SIZE": 2, "GYRE_ROOT": f"127.0.0.1:{port}"})
            for rank in (0, 1)]
    for process in both:
        process.wait().passed()
    check(len(ROW.findall(both[0].out)) == 1 and both[1].out == "", both[0].story() + both[1].story())


def what_cannot_be_measured_is_said_in_one_line():
    run("net").complains("plugin")
    run("net", "/nowhere/plugin.so").complains("/nowhere/plugin.so", "cannot be opened")
    run("net", sys.executable).complains("cannot be opened|no table")
    net("--version", "4").complains("--version", "5 to 12")
    net("--device", "1000").complains("--device 1000", "from 0")
    net("--device", "-1").complains("--device")
    net("-c", "0").complains("--connections")
    net("--depth", "257").complains("--depth")
    net("-b", "9", "-e", "8").complains("-b 9")
    net("--time-ms", "0").complains("--time-ms")
    net("--bandwidth", "--latency").complains("excludes")
    net("--json", "/nowhere/rows.jsonl").complains("--json /nowhere/rows.jsonl")
    run("net", FAULTY, "--version", "9", env={"FAULTY_NET_INNER": PLUGIN}).complains("no table 9, but 12")


def three_ranks_are_refused():
    run("net", PLUGIN, env={**TCP, "GYRE_RANK": 0, "GYRE_SIZE": 3, "GYRE_ROOT": "127.0.0.1:1"}).complains("2 ranks", "started 3")


def a_plugin_without_its_own_fault_passes():
    check(rows_of(faulty(""))[0][11] == "0", "wrong bytes")


def a_plugin_that_does_not_post_at_once_is_asked_again():
    check(rows_of(faulty("refuse_some"))[0][11] == "0", "wrong bytes")


def wrong_data_and_wrong_sizes_are_counted_and_end_in_3():
    for fault in ("wrong_byte", "wrong_size"):
        process = faulty(fault, "--check", "5")
        check(process.code == 3 and "# Wrong bytes : 10 FAILED" in process.out, f"{fault}\n{process.story()}")


def an_error_of_a_plugin_is_named_with_the_call():
    for fault, call in (("send_error", "isend: ncclSystemError"), ("test_error", "test of a .*: ncclRemoteError")):
        process = faulty(fault)
        check(process.failed().code == 1, process.story())
        check(re.search(rf"rank \d: net plugin gyre, table 12: {call}", process.err), process.story())


def a_plugin_in_which_nothing_moves_ends_the_run():
    process = faulty("never_done", GYRE_TIMEOUT=1)
    check(process.failed().code == 1 and "nothing moved for 1 s" in process.err, process.story())


subjects([sizes_around_a_word_are_right_over_every_transport, every_table_gives_figures, several_connections_both_ways_are_right, one_buffer_and_no_yielding_are_right, what_is_not_asked_for_is_not_measured, rows_are_written_as_json_lines, two_ranks_that_were_started_by_hand_measure_together, what_cannot_be_measured_is_said_in_one_line, three_ranks_are_refused, a_plugin_without_its_own_fault_passes, a_plugin_that_does_not_post_at_once_is_asked_again, wrong_data_and_wrong_sizes_are_counted_and_end_in_3, an_error_of_a_plugin_is_named_with_the_call, a_plugin_in_which_nothing_moves_ends_the_run])
