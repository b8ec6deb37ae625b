#!/usr/bin/env python3
"""CUDA_DEVICE_MAX_CONNECTIONS as a program has it that libgyre-nccl.so is loaded into.

    nccl_connections.py LIBRARY.so
"""
import os
import subprocess
import sys

VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"


def connections(library, **said):
    """Empty: there is no such variable."""
    env = {name: value for name, value in os.environ.items() if name != VARIABLE and not name.startswith("GYRE_")}
    program = [sys.executable, "-c", f"import os; print(os.environ.get('{VARIABLE}', ''))"]
    return subprocess.run(program, env=env | said | {"LD_PRELOAD": library}, check=True, capture_output=True, text=True).stdout.strip()


def main(library):
    cases = [({"GYRE_NCCL": "off"}, "32"), ({"GYRE_COLLECTIVES": "all_reduce"}, "32"), ({"GYRE_NCCL": "off", VARIABLE: "1"}, "1"),
             ({}, ""), ({"GYRE_COLLECTIVES": ""}, "")]
    wrong = [f"{said}: '{got}', not '{wanted}'" for said, wanted in cases if (got := connections(library, **said)) != wanted]
    sys.exit("\n".join(wrong) or 0)


main(*sys.argv[1:])
