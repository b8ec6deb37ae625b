#!/usr/bin/env python3
"""What GYRE_STATS writes for a process that moves messages through the net plugin, and what it logs of devices and connections.

    net_stats.py PLUGIN          opens PLUGIN's table of version 8 in processes of their own
"""
import ctypes
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

SLOTS = ["init", "devices", "getProperties", "listen", "connect", "accept", "regMr", "regMrDmaBuf", "deregMr", "isend", "irecv",
         "iflush", "test", "closeSend", "closeRecv", "closeListen", "getDeviceMr", "irecvConsumed"]
HOST = 1
MESSAGES = 20
BYTES = 3000


class Plugin:
    """The table's slots by name. Each call must succeed."""

    def __init__(self, path):
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        table = (ctypes.c_void_p * (1 + len(SLOTS))).in_dll(library, "ncclNetPlugin_v8")
        self.slots = {name: table[1 + i] for i, name in enumerate(SLOTS)}

    def __getattr__(self, name):
        call = ctypes.CFUNCTYPE(ctypes.c_int)(self.slots[name])

        def checked(*arguments):
            result = call(*arguments)
            if result != 0:
                sys.exit(f"{name}: {result}")
        return checked


class Pair:
    """A connection of this process with itself."""

    def __init__(self, plugin):
        self.plugin = plugin
        handle = ctypes.create_string_buffer(128)
        self.listener, self.sender, self.receiver = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        plugin.listen(0, handle, ctypes.byref(self.listener))
        while not (self.sender and self.receiver):
            if not self.sender:
                plugin.connect(0, handle, ctypes.byref(self.sender), None)
            if not self.receiver:
                plugin.accept(self.listener, ctypes.byref(self.receiver), None)
        self.source, self.target = ctypes.create_string_buffer(b"x" * BYTES, BYTES), ctypes.create_string_buffer(BYTES)
        self.source_memory, self.target_memory = ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t(BYTES)
        plugin.regMr(self.sender, self.source, size, HOST, ctypes.byref(self.source_memory))
        plugin.regMr(self.receiver, self.target, size, HOST, ctypes.byref(self.target_memory))

    def finish(self, request):
        done = ctypes.c_int(0)
        while not done.value:
            self.plugin.test(request, ctypes.byref(done), None)

    def move(self):
        sent, received = ctypes.c_void_p(), ctypes.c_void_p()
        while not received:
            self.plugin.irecv(self.receiver, 1, (ctypes.c_void_p * 1)(ctypes.addressof(self.target)), (ctypes.c_int * 1)(BYTES),
                              (ctypes.c_int * 1)(7), (ctypes.c_void_p * 1)(self.target_memory.value), ctypes.byref(received))
        while not sent:
            self.plugin.isend(self.sender, self.source, BYTES, 7, self.source_memory, ctypes.byref(sent))
        done = ctypes.c_int(0)
        self.plugin.test(sent, ctypes.byref(done), None)
        self.finish(received)
        if not done.value:
            self.finish(sent)
        assert self.target.raw == self.source.raw

    def close(self):
        self.plugin.deregMr(self.sender, self.source_memory)
        self.plugin.deregMr(self.receiver, self.target_memory)
        self.plugin.closeSend(self.sender)
        self.plugin.closeRecv(self.receiver)
        self.plugin.closeListen(self.listener)


def writers():
    """Threads of this process that write counters."""
    return sum("gyre-stats" in task.read_text() for task in pathlib.Path("/proc/self/task").glob("*/comm"))


def job(path, how):
    plugin = Plugin(path)
    plugin.init(None)
    pairs = [Pair(plugin), Pair(plugin)]
    for pair in pairs:
        for _ in range(MESSAGES):
            pair.move()
    file = pathlib.Path(f"{os.environ['GYRE_STATS']}.{os.getpid()}")
    if how == "periodic":
        assert writers() == 1
        while json.loads(file.read_text())["totals"]["bytes"] < 4 * MESSAGES * BYTES:
            time.sleep(0.01)
    if how == "exit":
        sys.exit(0)
    for pair in pairs:
        pair.close()
    while writers() > 0:  # it was joined; the kernel may still list it
        time.sleep(0.01)
    os._exit(0)  # nothing more is written


def check_job(path, how, folder):
    environment = dict(os.environ, GYRE_STATS=f"{folder}/{how}", GYRE_LOG="info", GYRE_STATS_SECONDS="1" if how == "periodic" else "0")
    child = subprocess.Popen([sys.executable, __file__, path, how], env=environment, stderr=subprocess.PIPE, text=True)
    log = child.communicate(timeout=120)[1]
    assert child.returncode == 0, log
    told = json.loads((folder / f"{how}.{child.pid}").read_text())
    check_json(told, child.pid, "open" if how == "exit" else "closed")
    check_prometheus((folder / f"{how}.{child.pid}.prom").read_text(), child.pid)
    assert log.count("info: device ") == len(told["devices"]), log
    assert log.count(" sends to ") == 2 and log.count(" receives from ") == 2, log


def check_json(told, pid, state):
    assert told["pid"] == pid and told["host"] == socket.gethostname(), told
    assert told["strangers"] == 0 and told["devices"], told
    assert told["totals"]["bytes"] == 4 * MESSAGES * BYTES and told["totals"]["messages"] == 4 * MESSAGES, told
    directions = sorted(connection["direction"] for connection in told["connections"])
    assert directions == ["receive", "receive", "send", "send"], told
    for connection in told["connections"]:
        assert connection["bytes"] == MESSAGES * BYTES and connection["messages"] == MESSAGES, connection
        assert connection["waited_us"] > 0 and connection["errors"] == 0 and connection["state"] == state, connection
        assert connection["device"] == told["devices"][0]["name"] and connection["way"] and connection["address"], connection
        assert f"{told['host']}, process {pid}" in connection["peer"], connection


def check_prometheus(text, pid):
    lines = [line for line in text.splitlines() if line.startswith("gyre_net_bytes_total{")]
    assert len(lines) == 4, text
    for line in lines:
        assert f'pid="{pid}"' in line and line.endswith(f" {MESSAGES * BYTES}"), line


def main():
    path = sys.argv[1]
    if len(sys.argv) > 2:
        return job(path, sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        for how in ["closed", "exit", "periodic"]:
            check_job(path, how, pathlib.Path(folder))
            print(f"{how}: both files are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
