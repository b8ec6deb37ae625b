"""What a figure needs beside it to be believed: the machine, the versions, the commit, the command, the date."""
import datetime
import os
import platform
import shlex
import subprocess
import sys

from contenders import ROOT


def output(*command):
    """The command's stdout, or nothing where it fails or is not installed."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def processor():
    for line in output("lscpu").splitlines():
        if line.startswith("Model name:"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def first_line(text):
    return text.splitlines()[0].lstrip("# ") if text else "unknown"


def facts(versions):
    """One JSON object for the head of a results file. `versions`: contender -> what its library calls itself."""
    return {
        "kind": "run",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "processor": processor(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "load_average_1min": round(os.getloadavg()[0], 2),
        "versions": versions,
        "ucx": first_line(output("ucx_info", "-v")),
        "compiler": first_line(output("g++", "--version")),
        "commit": output("git", "rev-parse", "--verify", "HEAD") or "none",
        "uncommitted_changes": bool(output("git", "status", "--porcelain")),
    }
