"""What moves messages between two processes here, how each is started, and what it answers: gyre-perf net with any net plugin, and
ucx_perftest on the same UCX transports. A case is ("bandwidth" | "latency", bytes, connections).

A plugin is driven twice where it is compared with ucx_perftest: as NCCL drives it (a slot for each message under way, the processor
yielded while nothing moves) and "alike", as ucx_perftest drives UCX (one buffer for all messages, no yielding).
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

SHM = {"UCX_TLS": "posix,sysv,cma,self"}
TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "NCCL_SOCKET_IFNAME": "lo"}
DEPTH = 8
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    bytes: int
    connections: int = 1


class Failed(Exception):
    pass


def last_line(text):
    return (text.strip().splitlines() or ["no output"])[-1][:200]


@dataclasses.dataclass(frozen=True)
class Plugin:
    """gyre-perf net with a plugin."""
    name: str
    transport: str
    gyre_perf: str
    path: str
    environment: dict
    alike: bool = False

    def can(self, case):
        return not self.alike or case.connections == 1

    def run(self, case, time_ms, limit_s):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.jsonl"
            command = [self.gyre_perf, "net", self.path, f"--{case.kind}", "-b", str(case.bytes), "-e", str(case.bytes), "-c",
                       str(case.connections), "--depth", str(DEPTH), "--time-ms", str(time_ms), "--json", str(file),
                       *(["--shared-buffer", "--spin"] if self.alike else [])]
            try:
                done = subprocess.run(command, env={**os.environ, **TCP, **self.environment}, text=True, capture_output=True,
                                      timeout=limit_s, check=False)
            except subprocess.TimeoutExpired:
                raise Failed(f"took longer than {limit_s} s") from None
            if done.returncode != 0:
                raise Failed(f"exit status {done.returncode}: {last_line(done.stderr)}")
            row = next(row for row in map(json.loads, file.read_text().splitlines()) if row["kind"] == "net")
        if case.kind == "latency":
            return {"us": row["latency"]["p50_us"], "p99_us": row["latency"]["p99_us"], "waited": row["latency"]["waited"]}
        found = row["bandwidth"]
        return {"mb_per_s": found["gb_per_s"] * 1e3, "messages_per_s": found["messages_per_s"], "waited": found["waited"]}


@dataclasses.dataclass
class Perftest:
    """ucx_perftest, its two processes on a processor each. It counts messages, so how many fill the time is learned from run to run."""
    name: str
    transport: str
    environment: dict
    flags: tuple = ()
    tests: tuple = ("tag_bw", "tag_lat")
    alike: bool = True
    _per_message: dict = dataclasses.field(default_factory=dict)

    def can(self, case):
        return case.connections == 1

    def run(self, case, time_ms, limit_s):
        if case not in self._per_message:  # at first too few to be a measurement
            self._once(case, 32 if case.bytes >= MIB else 512, limit_s)
        return self._once(case, max(32, int(time_ms / 1e3 / self._per_message[case])), limit_s)

    def _once(self, case, messages, limit_s):
        port = str(20000 + os.getpid() % 5000)
        environment = {**os.environ, **self.environment}
        count = ["-n", str(messages), "-w", str(max(8, messages // 10))]
        flags = ["-p", port, *self.flags]
        test = ["-t", self.tests[0], "-O", str(DEPTH)] if case.kind == "bandwidth" else ["-t", self.tests[1]]
        with subprocess.Popen(["ucx_perftest", *flags, "-c", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as server:
            try:
                await_listening(int(port), server)
                done = subprocess.run(["ucx_perftest", "127.0.0.1", *flags, "-c", "1", *test, "-s", str(case.bytes), *count, "-f", "-v"],
                                      env=environment, text=True, capture_output=True, timeout=limit_s, check=False)
                server.wait(10)
            except subprocess.TimeoutExpired:
                raise Failed(f"took longer than {limit_s} s") from None
            finally:
                if server.poll() is None:
                    server.kill()
        return self._read(case, done)

    def _read(self, case, done):
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or len(lines) < 2 or not lines[-2].startswith("iterations,"):
            raise Failed(f"exit status {done.returncode}: {last_line(done.stdout + done.stderr)}")
        values = dict(zip(lines[-2].split(","), map(float, lines[-1].split(","))))
        if case.kind == "latency":
            self._per_message[case] = max(values["overall_lat"], 1e-3) * 2e-6
            return {"us": values["50.0_percentile_lat"], "mean_us": values["overall_lat"]}
        self._per_message[case] = 1 / max(values["overall_mr"], 1)
        return {"mb_per_s": values["overall_mr"] * case.bytes / 1e6, "messages_per_s": values["overall_mr"]}


def await_listening(port, process):
    """Until the server listens, as the kernel says; to connect by way of trial would end it."""
    wanted = f":{port:04X} "
    while process.poll() is None:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            if any(wanted in line and " 0A " in line for line in open(table, encoding="ascii")):
                return
    raise Failed(f"ucx_perftest ended: {last_line(process.stdout.read())}")


def contenders(gyre_perf, plugin, others):
    """`others`: (name, path) of plugins that are compared over TCP."""
    found = []
    if pathlib.Path(plugin).exists():
        for transport, environment in (("shm", SHM), ("tcp", TCP)):
            found += [Plugin(f"gyre-{transport}", transport, gyre_perf, plugin, environment),
                      Plugin(f"gyre-{transport}-alike", transport, gyre_perf, plugin, environment, alike=True)]
    # UCX 1.13 makes no endpoints with error handling over shared memory.
    found += [Perftest("ucx-shm", "shm", SHM), Perftest("ucx-tcp", "tcp", TCP, flags=("-e",))]
    return found + [Plugin(name, "tcp", gyre_perf, path, {}) for name, path in others]


# UCX's ways over TCP: ucx_perftest's interfaces, and the settings that change what goes into one write and when a rendezvous begins.
INTERFACES = {"am": ("ucp_am_bw", "ucp_am_lat"), "stream": ("stream_bw", "stream_lat"), "put": ("ucp_put_bw", "ucp_put_lat")}
SETTINGS = {
    "seg-64k": {"UCX_TCP_TX_SEG_SIZE": "64k", "UCX_TCP_RX_SEG_SIZE": "128k"},
    "seg-256k": {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "512k"},
    "seg-1m": {"UCX_TCP_TX_SEG_SIZE": "1m", "UCX_TCP_RX_SEG_SIZE": "2m"},
    "seg-256k-rndv-256k": {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "512k", "UCX_RNDV_THRESH": "256k"},
    "seg-256k-rndv-1m": {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "512k", "UCX_RNDV_THRESH": "1m"},
    "seg-256k-rndv-inf": {"UCX_TCP_TX_SEG_SIZE": "256k", "UCX_TCP_RX_SEG_SIZE": "512k", "UCX_RNDV_THRESH": "inf"},
    "sendv-0": {"UCX_TCP_SENDV_THRESH": "0"},
    "sendv-inf": {"UCX_TCP_SENDV_THRESH": "inf"},
    "zcopy-inf": {"UCX_ZCOPY_THRESH": "inf"},
    "zcopy-1k": {"UCX_ZCOPY_THRESH": "1k"},
    "rndv-inf": {"UCX_RNDV_THRESH": "inf"},
    "rndv-8k": {"UCX_RNDV_THRESH": "8k"},
    "rndv-64k": {"UCX_RNDV_THRESH": "64k"},
    "rndv-512k": {"UCX_RNDV_THRESH": "512k"},
    "put-off": {"UCX_TCP_PUT_ENABLE": "n"},
    "poll-1": {"UCX_TCP_MAX_POLL": "1"},
    "poll-128": {"UCX_TCP_MAX_POLL": "128"},
    "nagle": {"UCX_TCP_NODELAY": "n"},
    "buffers-4m": {"UCX_TCP_SNDBUF": "4m", "UCX_TCP_RCVBUF": "4m"},
}


def studied():
    """ucx_perftest over TCP in every way; "ucx-tcp" is the one that the others are compared with."""
    ways = [Perftest("ucx-tcp", "tcp", TCP, flags=("-e",)), Perftest("tag-no-e", "tcp", TCP)]
    ways += [Perftest(name, "tcp", TCP, flags=("-e",), tests=tests) for name, tests in INTERFACES.items()]
    return ways + [Perftest(name, "tcp", {**TCP, **settings}, flags=("-e",)) for name, settings in SETTINGS.items()]
