#!/usr/bin/env python3
"""Faults of a kernel that the thread sanitizer must report, and a right kernel, of which it must say nothing.

    faults.py PROGRAM [--races]      --races: the program was built with the thread sanitizer
"""
import os
import subprocess
import sys

FAULTS = ["no_barrier_before", "no_barrier_after", "relaxed_flag", "one_address"]
RACE = "ThreadSanitizer: data race"


def run(program, name):
    """Exit status and all that was said."""
    # The first report ends the program.
    options = os.environ.get("TSAN_OPTIONS", "") + ":halt_on_error=1:exitcode=66"
    done = subprocess.run([program, name], capture_output=True, text=True, timeout=100, env={**os.environ, "TSAN_OPTIONS": options})
    return done.returncode, done.stdout + done.stderr


def main(program, *options):
    wrong = []
    status, said = run(program, "none")
    if status != 0 or "sums: right" not in said or "Sanitizer" in said:
        wrong.append(("none", "must run in silence and be right", status, said))
    if "--races" in options:
        for name in FAULTS:
            status, said = run(program, name)
            if status != 66 or RACE not in said:
                wrong.append((name, "must be reported as a data race", status, said))
    else:
        print(f"not built with the thread sanitizer: {', '.join(FAULTS)} were not looked for")
    for name, rule, status, said in wrong:
        print(f"{name}: {rule}; ended with {status}, having said:\n{said}")
    print(f"{len(FAULTS) + 1 if '--races' in options else 1} runs, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
