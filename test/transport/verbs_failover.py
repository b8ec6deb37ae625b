#!/usr/bin/env python3
"""Checks verbs_failover.pml with spin: that its claims hold in every case, and that without one of its rules, one of them does not.

  verbs_failover.py [--long]

Each case is searched whole. --long: larger ones, without the mutants. 77: spin is not installed."""
import pathlib, re, shutil, subprocess, sys, tempfile

MODEL = pathlib.Path(__file__).resolve().with_suffix('.pml')
QUICK = [dict(PIECES=2, FAILURES=1), dict(MESSAGES=1, PIECES=1), dict(PATHS=3, PIECES=1, GENERATIONS=1)]
LONG = [dict(PIECES=1), dict(MESSAGES=1, PIECES=2), dict(PATHS=3, PIECES=2, GENERATIONS=1),
        dict(PATHS=3, MESSAGES=3, RING=2, PIECES=1, GENERATIONS=1)]
TWO, THREE = dict(PIECES=1), dict(PATHS=3, PIECES=1, GENERATIONS=1)
MUTANTS = dict(ANSWERS_BEFORE_DRAINED=TWO, ASKS_NOT=TWO, SETS_DIFFER=THREE, LEAVES_PAIR=TWO, NO_PROBE=TWO, ANY_MAIL=THREE,
               ALL_CREDITS=THREE, NO_ANSWER=TWO, IGNORES_SET=TWO, LOSES_QUIETLY=TWO)


def search(defines, optimize):
    """Of this case: how many states it has, and the first claim that fails, or None."""
    with tempfile.TemporaryDirectory() as folder:
        def call(*command):
            ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if ran.returncode != 0:
                sys.exit(f'{" ".join(command)}: {ran.stdout}')
            return ran.stdout
        call('spin', '-a', *(f'-D{name}={value}' for name, value in defines.items()), str(MODEL))
        call('gcc', '-w', optimize, '-DSAFETY', '-DCOLLAPSE', '-DVECTORSZ=1024', '-o', 'pan', 'pan.c')
        said = call('./pan', '-m100000')
    errors, states = (int(re.search(pattern, said)[1]) for pattern in (r'errors: (\d+)', r'(\d+) states, stored'))
    if 'Search not completed' in said and errors == 0 or 'max search depth too small' in said:
        sys.exit(f'{defines}: not searched whole: {said}')
    return states, re.search(r'pan:1: (.*)', said)[1] if errors > 0 else None


def main():
    if not shutil.which('spin') or not shutil.which('gcc'):
        print('spin or gcc is not installed')
        return 77
    wrong = 0
    for case in LONG if '--long' in sys.argv else QUICK:
        states, failed = search(case, '-O2')
        print(f'{case}: {states} states, {failed or "all claims hold"}', flush=True)
        wrong += failed is not None
    for name, case in {} if '--long' in sys.argv else MUTANTS.items():
        mutant = re.search(rf'#define {name} (\d+)', MODEL.read_text())[1]
        states, failed = search(dict(case, MUTANT=mutant), '-O0')
        print(f'{name}: {failed[:60] + " ..." if failed else f"no claim fails in {states} states"}', flush=True)
        wrong += failed is None or 'invalid array index' in failed
    return 1 if wrong else 0


sys.exit(main())
