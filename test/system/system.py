"""What the system tests share: running gyre-perf as a user does, and saying clearly what was not as it should be.

A test is a function without arguments; subjects() runs those of a script. Nothing outlives a test: every process is started in a
session of its own, and all of a session's processes are killed when the test ends. The environment is this process's without what
launchers, gyre and UCX read from it, so that tests also pass under a launcher.
"""
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

SKIPPED = 77
UCX = {"ucx over tcp": {"UCX_TLS": "tcp,self"}, "ucx over shared memory": {"UCX_TLS": "posix,sysv,cma,self"}}
GENEROUS = 60  # seconds that a passing run may take on a busy machine

_perf = ""
_running = []


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def perf():
    return _perf


def check(condition, text):
    if not condition:
        raise Failed(text)


def fake_ucx(name):
    """A library of fake/ that stands in for UCX."""
    folder = os.environ.get("TEST_UCX_FAKES")
    if not folder:
        raise Skipped("built without UCX")
    return os.path.join(folder, f"lib{name}.so")


def clean_environment(**more):
    foreign = re.compile(r"(GYRE|UCX|NCCL_TESTS|SLURM|OMPI|PMIX|PMI|MPI|HYDRA|HYDI|TORCHELASTIC|MASTER|LOCAL)_|(RANK|WORLD_SIZE)$")
    sanitizers = ("UCX_MEM_EVENTS", "UCX_HANDLE_ERRORS")  # need these
    kept = {name: value for name, value in os.environ.items() if not foreign.match(name) or name in sanitizers}
    return {**kept, **{name: str(value) for name, value in more.items()}}


class Process:
    """A started command. Its output goes to files, so that nobody has to read it for it to go on."""

    def __init__(self, command, env=None):
        self.command = [str(word) for word in command]
        self._out = tempfile.TemporaryFile("w+")
        self._err = tempfile.TemporaryFile("w+")
        self.started = time.monotonic()
        self._child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                                       env=clean_environment(**(env or {})), start_new_session=True)
        self.pid = self._child.pid
        self.seconds = None
        _running.append(self)

    @staticmethod
    def _text(file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")

    @property
    def out(self):
        return self._text(self._out)

    @property
    def err(self):
        return self._text(self._err)

    @property
    def collective(self):
        return next((word for word in self.command if word in COLLECTIVES), None)

    @property
    def code(self):
        return self._child.poll()

    def wait(self, timeout=GENEROUS):
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"did not end within {timeout} s\n{self.story()}") from None
        if self.seconds is None:
            self.seconds = time.monotonic() - self.started
        return self

    def send(self, number):
        self._child.send_signal(number)

    def children(self):
        return [pid for pid, state in processes().items() if state.parent == self.pid]

    def session(self):
        return [pid for pid, state in processes().items() if state.session == self.pid and state.letter not in "ZX"]

    def kill(self):
        for pid in self.session():
            signal_process(pid, signal.SIGKILL)
        self._child.wait()

    def story(self):
        def indented(text):
            return "".join(f"    | {line}\n" for line in text.splitlines()[-30:])
        return f"    $ {' '.join(self.command)}\n    exit code {self.code}\n{indented(self.out)}    stderr:\n{indented(self.err)}"

    # What is expected of a finished run.

    def passed(self, quiet=True):
        check(self.code == 0, f"exit code {self.code}, not 0\n{self.story()}")
        check(not quiet or self.err == "" and "UCX  " not in self.out, f"a run that passed complains\n{self.story()}")  # UCX logs to stdout
        return self

    def failed(self):
        check(self.code != 0, f"exit code 0, although this can't go well\n{self.story()}")
        check(self.code is None or self.code > 0 and self.code < 128, f"killed by a signal\n{self.story()}")
        for word in ("terminate called", "Traceback", "Sanitizer", "Assertion", "backtrace", "Segmentation", "core dumped"):
            check(word not in self.err + self.out, f"a crash: {word}\n{self.story()}")
        return self

    def complains(self, *patterns):
        """One line on stderr, in which each of the patterns is found; after a wrong flag also a word about --help."""
        self.failed()
        lines = [line for line in self.err.splitlines() if line != "Run with --help for more information."]
        check(len(lines) == 1, f"{len(lines)} lines on stderr, not one\n{self.story()}")
        for pattern in patterns:
            check(re.search(pattern, lines[0]), f"nothing about /{pattern}/\n{self.story()}")
        return self


class State:
    def __init__(self, fields):
        self.letter, self.parent, self.session = fields[0], int(fields[1]), int(fields[3])
        self.ticks = int(fields[11]) + int(fields[12])


def processes():
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                found[int(entry)] = State(file.read().rpartition(")")[2].split())
        except OSError:
            pass  # it has just ended
    return found


def signal_process(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def await_that(condition, text, timeout=GENEROUS):
    """Waits until condition() is true; what it returned."""
    until = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < until, f"{text() if callable(text) else text} (waited {timeout} s)")
        time.sleep(0.02)


def start(*arguments, env=None):
    return Process([perf(), *arguments], env)


def run(*arguments, env=None, timeout=GENEROUS):
    return start(*arguments, env=env).wait(timeout)


def start_rank(rank, size, port, *arguments, env=None, host="127.0.0.1", collective="all_reduce"):
    """A rank started by hand, as a launcher that gyre does not know would."""
    return start(collective, *arguments, env={"GYRE_RANK": rank, "GYRE_SIZE": size, "GYRE_ROOT": f"{host}:{port}", **(env or {})})


def free_port():
    """Below the range from which the kernel gives ports to connections, so that it stays free."""
    while True:
        port = random.randrange(10000, 19000)
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::", port))
                return port
            except OSError:
                continue


REDUCING = ["all_reduce", "reduce_scatter", "reduce"]
ROOTED = ["broadcast", "reduce", "gather", "scatter"]
NEVER_IN_PLACE = ["alltoall", "sendrecv"]
BLOCK_PER_RANK = ["reduce_scatter", "all_gather", "alltoall", "gather", "scatter"]  # in the larger buffer
COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv"]


def bus_factor(collective, ranks):
    if collective in ("broadcast", "reduce", "sendrecv"):
        return 1
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


_NUMBER = r"([\d.]+|N/A)"
_TIMES = rf"{_NUMBER} +{_NUMBER} +{_NUMBER} +(\d+|N/A)"  # time, algbw, busbw, #wrong
_PREDICTED = r"(?: +(?:[\d.]+|N/A) +(?:[+-]?\d+%|N/A))?"  # where something predicts
ROW = re.compile(rf"^ +(\d+) +(\d+) +(\w+) +(\w+) +(-1|\d+) +{_TIMES} +{_TIMES}{_PREDICTED} +(\w+)$", re.M)


class Row:
    def __init__(self, fields):
        self.bytes, self.count, self.type, self.op, self.root = int(fields[0]), int(fields[1]), fields[2], fields[3], int(fields[4])
        self.time, self.algbw, self.busbw, self.wrong = float(fields[5]), float(fields[6]), float(fields[7]), fields[8]
        self.in_place, self.in_place_wrong, self.algorithm = fields[9:13], fields[12], fields[13]


def rows(output):
    return [Row(fields) for fields in ROW.findall(output)]


def right_rows(process, sizes=None):
    """The table's rows; the run must have passed, with nothing wrong in any row and the sizes wanted."""
    found = rows(process.passed(quiet=False).out)
    check(found, f"no rows\n{process.story()}")
    in_place = "N/A" if process.collective in NEVER_IN_PLACE else "0"
    check(all(row.wrong == "0" and row.in_place_wrong == in_place for row in found), f"wrong results\n{process.story()}")
    check("Out of bounds values : 0 OK" in process.out, f"the summary does not say OK\n{process.story()}")
    check(sizes is None or [row.bytes for row in found] == list(sizes), f"sizes are not {sizes}\n{process.story()}")
    return found


def needs(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            raise Skipped(f"{tool} is not installed")


def built_in(transport):
    """Whether this gyre-perf has that transport."""
    return run("all_reduce", "-e", "8", "-n", "1", "--transport", transport).code == 0


def within(seconds):
    """A limit: programs with sanitizers take four times as long."""
    return seconds * (4 if "TEST_SANITIZED" in os.environ else 1)


def sampled(values):
    """All, or where a sanitizer would make that minutes every third."""
    return list(values)[::3 if "TEST_SANITIZED" in os.environ else 1]


def transports():
    """Name in words -> environment, for what is built in."""
    found = {"shm": {"GYRE_TRANSPORT": "shm"}}
    if built_in("tcp"):
        found["tcp"] = {"GYRE_TRANSPORT": "tcp"}
    if built_in("ucx"):
        found.update({name: {"GYRE_TRANSPORT": "ucx", **env} for name, env in UCX.items()})
    return found


def _one(test):
    """'ok', 'skipped' or 'FAILED' and why."""
    try:
        test()
        return "ok", ""
    except Skipped as reason:
        return "skipped", str(reason)
    except Failed as reason:
        return "FAILED", str(reason)
    except Exception:  # the test itself is wrong, or met what it did not expect; the other tests still run
        return "FAILED", traceback.format_exc() + "".join(process.story() for process in _running)
    finally:
        for process in _running:
            process.kill()
        _running.clear()


def subjects(tests):
    """Runs the tests, or those named on the command line after the binary, and ends this process with their verdict."""
    global _perf
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH_TO_GYRE_PERF [TEST…]")
    _perf = os.path.abspath(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` runs
    named = {test.__name__: test for test in tests}
    unknown = [name for name in sys.argv[2:] if name not in named]
    if unknown:
        sys.exit(f"no such test: {' '.join(unknown)}")
    wanted = [named[name] for name in sys.argv[2:]] or tests
    verdicts = []
    for test in wanted:
        begun = time.monotonic()
        verdict, why = _one(test)
        verdicts.append(verdict)
        print(f"{verdict:7} {test.__name__.replace('_', ' ')} ({time.monotonic() - begun:.1f} s){': ' if why else ''}{why}", flush=True)
    if "FAILED" in verdicts:
        sys.exit(1)
    sys.exit(0 if "ok" in verdicts else SKIPPED)
