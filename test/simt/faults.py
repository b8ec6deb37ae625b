#!/usr/bin/env python3
"""Faults of kernels that the thread sanitizer must report, or whose sums are wrong, and right kernels, of which it must say nothing.

    faults.py PROGRAM [--races]      --races: the program was built with the thread sanitizer
"""
import os
import subprocess
import sys

RIGHT = ["none", "packets"]
RACES = ["no_barrier_before", "no_barrier_after", "relaxed_flag", "one_address", "packets_flag_first"]
WRONG = ["packets_flag_first", "packets_one_buffer"]
RACE = "ThreadSanitizer: data race"


def run(program, name):
    """Exit status and all that was said."""
    # The first report ends the program.
    options = os.environ.get("TSAN_OPTIONS", "") + ":halt_on_error=1:exitcode=66"
    done = subprocess.run([program, name], capture_output=True, text=True, timeout=100, env={**os.environ, "TSAN_OPTIONS": options})
    return done.returncode, done.stdout + done.stderr


def main(program, *options):
    wrong = []
    for name in RIGHT:
        status, said = run(program, name)
        if status != 0 or "sums: right" not in said or "Sanitizer" in said:
            wrong.append((name, "must run in silence and be right", status, said))
    if "--races" in options:
        for name in RACES:
            status, said = run(program, name)
            if status != 66 or RACE not in said:
                wrong.append((name, "must be reported as a data race", status, said))
    else:
        print(f"not built with the thread sanitizer: races of {', '.join(RACES)} were not looked for")
        for name in WRONG:
            status, said = run(program, name)
            if status != 1 or "sums: wrong" not in said:
                wrong.append((name, "must have wrong sums", status, said))
    for name, rule, status, said in wrong:
        print(f"{name}: {rule}; ended with {status}, having said:\n{said}")
    print(f"{len(RIGHT) + len(RACES if '--races' in options else WRONG)} runs, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
