#!/usr/bin/env python3
"""What libgyre-nccl.so shows, against the functions of plugin/abi/nccl.h, of each release of NCCL, and of an NCCL that is installed: nothing
is missing, nothing else is seen, no other library than the system's is needed.

    nccl_exports.py LIBRARY.so nccl.h nccl_functions.txt
"""
import pathlib
import re
import sys

from exports import run, symbols

# That no header of NCCL's declares.
INSIDE = re.compile(r"p?ncclResetDebugInitInternal")


def shown_by(library, kinds="TWi"):
    return {name for kind, name, _ in symbols("--defined-only", library) if kind in kinds}


def by_release(file):
    """The names of functions by the release that first had them, rising."""
    found = {}
    for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            release, *names = line.split()
            found.setdefault(release, []).extend(names)
    return found


def installed():
    """The path of the machine's NCCL; None: it has none."""
    found = re.search(r"libnccl\.so\.2 .*=> (\S+)", run("/sbin/ldconfig", "-p"))
    return found and found[1]


def main(library, header, functions):
    text = pathlib.Path(header).read_text(encoding="utf-8")
    named = set(re.findall(r"^\s*F\([^,]+, (nccl\w+),", text, re.M))
    expected = named | {"p" + name for name in named}
    shown = shown_by(library)
    releases = by_release(functions)
    listed = [name for names in releases.values() for name in names]
    problems = {
        "not exported": expected - shown,
        **{f"of NCCL {release}, but missing": {p + name for name in names for p in ("", "p")} - shown for release, names in releases.items()},
        "of no release": named - set(listed),
        "of two releases": {name for name in listed if listed.count(name) > 1},
        "exported beside": {name for _, name, _ in symbols("--defined-only", library)} - expected - {"gyre_nccl"},
        "not weak, as NCCL's are": named & shown_by(library, "T"),
        "needed": set(re.findall(r"NEEDED.*\[(lib(?:fmt|uc[pstm]|nccl|cuda)[^\]]*)\]", run("readelf", "-d", library))),
    }
    if nccl := installed():
        problems[f"in {nccl}, but missing"] = {n for n in shown_by(nccl) if re.match(r"p?nccl[A-Z]", n) and not INSIDE.match(n)} - expected
    print(f"{len(expected)} functions, of {len(releases)} releases; compared with {nccl or 'no NCCL, since none is installed'}")
    for problem, names in problems.items():
        if names:
            print(f"{library}: {problem}: {', '.join(sorted(names))}")
    return 1 if len(named) < 60 or any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
