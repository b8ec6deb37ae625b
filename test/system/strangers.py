"""Strangers on the ports of a job: the rendezvous completes, results stay right, nothing crashes."""
import socket
import time

from knocking import HTTP, JUNK, connect, listening_ports, say
from system import UCX, Skipped, await_that, built_in, check, free_port, right_rows, rows, start, start_rank, subjects

FLAGS = ["-e", "64K", "-n", "3", "-w", "1"]
HELLO = b"gyrejoin"  # how a rank begins


def rank_0_that_listens(size, port, *flags, env=None):
    root = start_rank(0, size, port, *flags, env=env)
    await_that(lambda: ("127.0.0.1", port) in listening_ports(root.pid), lambda: f"rank 0 does not listen on {port}\n{root.story()}")
    return root


def completes(disturb, size=2, env=None):
    """Rank 0 is disturbed while it waits for the others; `disturb` returns what must stay open meanwhile."""
    port = free_port()
    root = rank_0_that_listens(size, port, *FLAGS, env=env)
    held = disturb(port)
    others = [start_rank(rank, size, port, *FLAGS, env=env) for rank in range(1, size)]
    for rank in others:
        rank.wait().passed()
    right_rows(root.wait().passed())
    for stranger in held or []:
        stranger.close()


def junk_and_http():
    def disturb(port):
        for words in (JUNK, HTTP, b"", b"\0", b"\xff" * 300, b"\n" * 10000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            say(port, words)
    completes(disturb)


def half_messages():
    def disturb(port):
        for words in (HELLO[:3], HELLO, HELLO + b"\1\0\0\0", HELLO + JUNK[:95], HELLO + JUNK, HELLO + b"\0" * 96, HELLO + b"\xff" * 96):
            say(port, words)
    completes(disturb)


def a_hello_of_another_job_or_of_no_rank():
    def disturb(port):
        for version, rank, size, job in ((1, 1, 3, 0xdead), (1, 7, 3, 0), (1, -1, 3, 0), (1, 0, 3, 0), (1, 1, 2, 0), (2, 1, 3, 0),
                                         (1, 1 << 30, 3, 0)):
            words = HELLO + b"".join(number.to_bytes(4, "little", signed=number < 0) for number in (version, rank, size, 0))
            say(port, words + job.to_bytes(8, "little") + b"\0" * 72)
    completes(disturb, 3)


def silence():
    completes(lambda port: [connect(port) for _ in range(3)], 3)


def half_a_hello_and_then_silence():
    def disturb(port):
        held = [connect(port) for _ in range(3)]
        for stranger in held:
            stranger.sendall(HELLO + b"\1\0\0\0")
        return held
    completes(disturb, 3)


def many_connections():
    completes(lambda port: [connect(port) for _ in range(700)])
    completes(lambda port: [say(port, HTTP) for _ in range(20)] and None, 3)


def connections_that_reset():
    def disturb(port):
        for _ in range(50):
            stranger = connect(port)
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            stranger.sendall(HTTP[:20])
            stranger.close()
    completes(disturb)


def a_stranger_where_rank_0_should_be():
    """It answers junk to rank 1 and goes; then rank 0 comes."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        other = start_rank(1, 2, port, *FLAGS)
        server.settimeout(20)
        with server.accept()[0] as guest:
            guest.sendall(JUNK[:1000])
    root = start_rank(0, 2, port, *FLAGS)
    other.wait().passed()
    right_rows(root.wait().passed())


def at_the_ports_of_a_running_sweep(env):
    """Garbage to every port on which the ranks listen, while they compute and while rank 0's own is still open."""
    sweep = start("all_reduce", "--ranks", 3, "-b", "8", "-e", "700K", "-i", "8", "-n", "2", "-w", "1", env=env)
    await_that(lambda: len(rows(sweep.out)) > 20 or sweep.code is not None, lambda: f"no rows\n{sweep.story()}")
    ports = {port for pid in sweep.children() for port in listening_ports(pid)}
    for port in sorted(ports):
        for words in (HTTP, JUNK, JUNK[:7], b"", b"\0" * 4096, b"\xff" * 4096, b"\1", HELLO + JUNK[:96]):
            say(port, words)
    held = [connect(port) for port in ports for _ in range(20)] if sweep.code is None else []
    shown = len(rows(sweep.out))
    await_that(lambda: len(rows(sweep.out)) > shown + 50 or sweep.code is not None, lambda: f"does not go on\n{sweep.story()}")
    for stranger in held:
        stranger.close()
    if sweep.code is None:
        check(sweep.err == "", f"complains although it goes on\n{sweep.story()}")
        check(all(row.wrong == row.in_place_wrong == "0" for row in rows(sweep.out)), f"wrong results\n{sweep.story()}")
        return ports
    sweep.failed()
    check("rank" in sweep.err, f"ended without a clear error\n{sweep.story()}")
    return ports


def at_the_ports_of_a_sweep_over_shm():
    at_the_ports_of_a_running_sweep({"GYRE_TRANSPORT": "shm"})


def at_the_ports_of_tcp():
    ports = at_the_ports_of_a_running_sweep({"GYRE_TRANSPORT": "tcp"})
    check(len(ports) >= 3, f"ranks listen on {ports} only: this test has tested nothing")


def at_the_ports_of_ucx():
    if not built_in("ucx"):
        raise Skipped("built without UCX")
    ports = at_the_ports_of_a_running_sweep({"GYRE_TRANSPORT": "ucx", **UCX["ucx over tcp"]})
    check(len(ports) >= 3, f"UCX over TCP listens on {ports} only: this test has tested nothing")


def at_the_watch_port_of_ranks_by_hand():
    """Who comes after all ranks have joined meets a closed port or a closed connection."""
    port = free_port()
    flags = ["-b", "8", "-e", "700K", "-i", "8", "-n", "2", "-w", "1"]
    ranks = [start_rank(rank, 2, port, *flags) for rank in range(2)]
    await_that(lambda: len(rows(ranks[0].out)) > 20, lambda: f"no rows\n{ranks[0].story()}")
    begun = time.monotonic()
    while time.monotonic() < begun + 1:
        say(port, JUNK[:500])
    shown = len(rows(ranks[0].out))
    await_that(lambda: len(rows(ranks[0].out)) > shown + 20, lambda: f"does not go on\n{ranks[0].story()}")
    check(all(rank.err == "" and rank.code is None for rank in ranks), "\n".join(rank.story() for rank in ranks))


subjects([junk_and_http, half_messages, a_hello_of_another_job_or_of_no_rank, silence, half_a_hello_and_then_silence, many_connections,
          connections_that_reset, a_stranger_where_rank_0_should_be, at_the_ports_of_a_sweep_over_shm, at_the_ports_of_tcp, at_the_ports_of_ucx,
          at_the_watch_port_of_ranks_by_hand])
