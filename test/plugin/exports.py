#!/usr/bin/env python3
"""What a built net plugin shows and needs, against its map file: exactly the map's symbols are exported, as data; no C++ library, fmt or
UCX is needed or left to be found in the program; it stays when it is closed and is bound at load.

    exports.py PLUGIN.so MAP [--sanitized]      --sanitized: the C++ library and the sanitizers' are needed, and that is right
"""
import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(*options):
    """(type, name) of each dynamic symbol, without versions."""
    lines = (line.split() for line in run("nm", "-D", *options).splitlines())
    return [(words[-2], words[-1].split("@")[0], words[-1]) for words in lines if len(words) >= 2]


def main(library, map_file, *options):
    sanitized = "--sanitized" in options
    wrong = []
    text = re.sub(r"#.*", "", pathlib.Path(map_file).read_text())
    expected = set(re.findall(r"[\w*]+", text.split("global:")[1].split("local:")[0]))
    shown = {name: kind for kind, name, _ in symbols("--defined-only", library)}
    if set(shown) != expected:
        wrong.append(f"exported but not in the map: {sorted(set(shown) - expected)}; in the map only: {sorted(expected - set(shown))}")
    wrong += [f"{name} is of kind {kind}, no data" for name, kind in shown.items() if kind not in "DR"]

    dynamic = run("readelf", "-d", library)
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    if not sanitized:
        system = r"(libc|libm|libdl|libpthread|librt|ld-linux[-\w]*)\.so\.\d+"
        wrong += [f"needs {name}" for name in needed if not re.fullmatch(system, name)]
        foreign = re.compile(r"_Z(N|NK|TI|TV|TS|St)|_Zn|_Zd|__cxa_(?!finalize|atexit|thread_atexit_impl)|_Unwind|uc[pstm]_")
        wrong += [f"leaves {full} open" for kind, name, full in symbols("--undefined-only", library)
                  if kind == "U" and (foreign.match(name) or re.search(r"GLIBCXX|CXXABI|GCC_", full))]
    else:
        wrong += [f"needs {name}" for name in needed if re.match(r"libfmt|libuc[pstm]", name)]
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)(.*)", dynamic))
    wrong += [f"is not linked with {flag}" for flag in ("NODELETE", "NOW") if not re.search(rf"\b{flag}\b", flags)]
    for line in wrong:
        print(f"{library}: {line}")
    print(f"{len(shown)} symbols exported, needs {', '.join(needed)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
