"""Strangers on the ports of the plugin: they are dropped, never delay the real peer, and change no data."""
import time

from knocking import HTTP, JUNK, connect, listening_ports, say
from net_calling import ENDLESS, OVER, await_line, call, lines, mailbox, no_crash, ranks_of
from system import await_that, check, subjects

FLAGS = ["--pattern", "one", "--operations", "5"]
TCP = OVER["ucx over tcp"]


def completes(disturb):
    """The receiver listens, and is disturbed before its sender comes; `disturb` returns what must stay open meanwhile."""
    with mailbox() as box:
        receiver = call("--rank", "1", "--mailbox", box, *FLAGS, env=TCP)
        port = await_that(lambda: sorted(listening_ports(receiver.pid)), lambda: f"it does not listen\n{receiver.story()}")[0]
        held = disturb(port)
        sender = call("--rank", "0", "--mailbox", box, *FLAGS, env=TCP)
        begun = time.monotonic()
        for rank in (sender, receiver):
            rank.wait()
            check(rank.code == 0, f"{sender.story()}\n{receiver.story()}")
            no_crash(rank)
        check(time.monotonic() - begun < 10, f"took {time.monotonic() - begun:.1f} s\n{sender.story()}\n{receiver.story()}")
        for stranger in held or []:
            stranger.close()


def junk_and_http():
    def disturb(port):
        for words in (JUNK, HTTP, b"", b"\0", b"\xff" * 300, b"\n" * 10000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            say(port, words)
    completes(disturb)


def silence():
    completes(lambda port: [connect(port) for _ in range(3)])


def junk_and_then_silence():
    def disturb(port):
        held = [connect(port) for _ in range(5)]
        for number, stranger in enumerate(held):
            stranger.sendall(JUNK[:1 << 2 * number])
        return held
    completes(disturb)


def many():
    """More than any backlog, and than descriptors allow where they are not dropped."""
    def disturb(port):
        held = []
        for _ in range(700):
            try:
                held.append(connect(port))
            except OSError:
                break
        return held
    completes(disturb)


def who_comes_again_and_again():
    def disturb(port):
        for _ in range(300):
            say_quickly(port)
    completes(disturb)


def say_quickly(port):
    try:
        with connect(port) as stranger:
            stranger.sendall(HTTP)
    except OSError:
        pass


def at_every_port_while_traffic_runs():
    """Also at UCX's own: either all goes on, or a rank ends with a clear error; data is never wrong."""
    for env in OVER.values():
        run = call(*ENDLESS, env=env)
        await_line(run, "messages", range(2))
        ports = {port for pid in ranks_of(run, 2) for port in listening_ports(pid)}
        for port in sorted(ports):
            for words in (HTTP, JUNK, JUNK[:7], b"", b"\0" * 4096, b"\xff" * 4096, b"\1"):
                say(port, words)
        said = len(lines(run, "messages", 0))
        await_that(lambda: len(lines(run, "messages", 0)) > said + 3 or run.code is not None, lambda: f"does not go on\n{run.story()}")
        no_crash(run)
        check(run.code is None or run.err != "", f"ended without a word\n{run.story()}")
        run.kill()


subjects([junk_and_http, silence, junk_and_then_silence, many, who_comes_again_and_again, at_every_port_while_traffic_runs])
