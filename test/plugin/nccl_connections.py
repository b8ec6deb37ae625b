#!/usr/bin/env python3
"""CUDA_DEVICE_MAX_CONNECTIONS as a program has it that libgyre-nccl.so is loaded into, and what is said of that.

    nccl_connections.py LIBRARY.so
"""
import os
import subprocess
import sys

VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"
SAYS = f"import os; print(os.environ.get('{VARIABLE}', ''))"
CALLS = "import ctypes; ctypes.CDLL(None).ncclGetVersion(ctypes.byref(ctypes.c_int()))"
STARTS = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"


def output(library, program, said):
    env = {name: value for name, value in os.environ.items() if name != VARIABLE and not name.startswith("GYRE_")}
    done = subprocess.run([sys.executable, "-c", *program], env=env | said | {"LD_PRELOAD": library}, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip()


def what_programs_have(library):
    """Empty: there is no such variable."""
    cases = [({"GYRE_NCCL": "off"}, "32"), ({"GYRE_COLLECTIVES": "all_reduce"}, "32"), ({"GYRE_NCCL": "off", VARIABLE: "1"}, "1"),
             ({}, ""), ({"GYRE_COLLECTIVES": ""}, "")]
    return [f"{said}: '{got}', not '{wanted}'" for said, wanted in cases if (got := output(library, [SAYS], said)) != wanted]


def what_is_said(library):
    """By a process whose variable it is, and by what that starts, as torchrun starts ranks."""
    cases = [({}, 1), ({VARIABLE: "32"}, 0)]
    wrong = []
    for given, times in cases:
        for program in ([CALLS], [STARTS, CALLS]):
            text = output(library, program, {"GYRE_NCCL": "off", "GYRE_LOG": "info", **given})
            if text.count(f"{VARIABLE} is set to 32 by gyre") != times:
                wrong.append(f"{given}, {program}: not {times} times: {text}")
    return wrong


def main(library):
    sys.exit("\n".join(what_programs_have(library) + what_is_said(library)) or 0)


main(*sys.argv[1:])
