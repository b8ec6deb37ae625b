#!/usr/bin/env python3
"""Fails when an include breaks the floors (the table below, which is the one that counts): up, sideways, in a circle, not from the root,
a library's header outside its folder, or PTX outside its header. Prints file:line, the include, and the rule. Standard library only, so that it runs anywhere.

    test/layers.py [ROOT]        checks the tree (default: the repository this file is in)
    test/layers.py --self-test   plants one violation of each rule in a temporary tree and expects each to be found
"""
import pathlib
import re
import sys
import tempfile

# Includes point down. Folders on one floor are siblings: none includes another.
FLOORS = {"base": 0, "schedule": 1, "transport": 2, "kernels": 2, "topo": 2, "engine": 3, "plugin": 4, "perf": 5, "test": 5}
# test/ mirrors all folders, perf/ among them, and nothing includes test/.
SIDEWAYS_ALLOWED = {("test", "perf")}

# What is included : the only places for it.
LIBRARIES = [
    ("UCX", r"(ucp|uct|ucs|ucm)/", ["transport"]),
    ("verbs", r"infiniband/|rdma/", ["transport"]),
    # test/simt runs kernels on the host and takes CUDA's number types; test/gpu is what needs a GPU.
    ("CUDA", r"cuda(\.h|_|/)|cub/|thrust/|cooperative_groups|driver_types\.h|vector_types\.h|device_launch_parameters\.h",
     ["kernels", "test/gpu", "test/simt"]),
    ("Catch2", r"catch2?/|catch\.hpp|catch_all\.hpp", ["test"]),
    # One test compares our declarations with an installed NCCL's.
    ("NCCL", r"nccl", ["plugin", "test/plugin"]),
]
# schedule/ is pure: no I/O, no threads.
PURE = {"schedule": r"(thread|mutex|shared_mutex|condition_variable|future|iostream|fstream|cstdio|unistd\.h|pthread\.h|sys/.*)$"}

# GPU instructions by hand: in one header, where each has a twin for a host's compiler.
PTX = re.compile(r"\basm\b")
PTX_HEADER = "kernels/mem.h"

# NCCL's types and functions are declared in plugin/ only; a test may define functions, to stand in for a real NCCL.
NCCL_TYPE = re.compile(r"^\s*(typedef\s+)?(struct|enum|union|class)\s+nccl[A-Z]\w*\s*[;{:]|^\s*using\s+nccl[A-Z]\w*\s*="
                       r"|}\s*nccl[A-Z]\w*\s*;")
NCCL_FUNCTION = re.compile(r'^\s*(extern\s+"C"\s+)?ncclResult_t\s+p?nccl[A-Z]\w*\s*\(')

SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Blanks out comments and keeps string literals and line ends: an include path is a literal too.
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)


def lines_of(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    blank = lambda m: m[0] if m[0].startswith('"') else re.sub(r"[^\n]", " ", m[0])
    return COMMENT.sub(blank, text).splitlines()


def sources(root):
    """Paths relative to the root, sorted. Hidden folders and what a build made are not ours."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        skipped = any(part.startswith((".", "build")) or part in ("subprojects", "__pycache__") for part in relative.parts[:-1])
        if path.suffix in SOURCES and not skipped and path.is_file():
            yield relative


def inside(relative, folders):
    return any(relative.as_posix().startswith(folder + "/") for folder in folders)


def library_rule(relative, name):
    for library, pattern, folders in LIBRARIES:
        if re.match(pattern, name) and not inside(relative, folders):
            return f"{library}'s headers belong in {' and '.join(f + '/' for f in folders)} only"
    pattern = PURE.get(relative.parts[0])
    if pattern and re.match(pattern, name):
        return f"{relative.parts[0]}/ is pure: no I/O, no threads"
    return None


def floor_rule(relative, name):
    """For an include of one of our own files, named from the root."""
    here, there = relative.parts[0], name.split("/")[0]
    if here == there:
        return None
    if FLOORS[there] > FLOORS[here]:
        return f"up: {here}/ is floor {FLOORS[here]}, {there}/ is floor {FLOORS[there]}"
    if FLOORS[there] == FLOORS[here] and (here, there) not in SIDEWAYS_ALLOWED:
        return f"sideways: {here}/ and {there}/ are siblings on floor {FLOORS[here]}"
    return None


def include_rule(relative, quote, name):
    """The rule that this include breaks, or None."""
    ours = name.split("/")[0] in FLOORS and "/" in name
    if name.startswith((".", "/")) or "/../" in name:
        return "not from the repository root"
    if not ours:
        broken = library_rule(relative, name)
        return broken or ("not from the repository root" if quote == '"' else None)
    if quote == "<":
        return "our own files are included with quotes"
    return floor_rule(relative, name)


def declaration_rule(relative, line):
    if inside(relative, ["kernels", "test/gpu", "test/simt"]) and relative.as_posix() != PTX_HEADER and PTX.search(line):
        return f"PTX belongs in {PTX_HEADER} only"
    if inside(relative, ["plugin"]):
        return None
    if NCCL_TYPE.search(line) or (NCCL_FUNCTION.match(line) and not inside(relative, ["test"])):
        return "NCCL's declarations belong in plugin/ only"
    return None


def circles(includes):
    """One finding per circle among files. `includes`: file -> [(line, included file)]."""
    found, state = [], {}

    def visit(file, way):
        state[file] = "open"
        for number, line, target in includes.get(file, []):
            if state.get(target) == "open":
                circle = [*way[way.index(target):], target]
                found.append((file, number, line, "circle: " + " -> ".join(circle)))
            elif target not in state:
                visit(target, [*way, target])
        state[file] = "done"

    for file in sorted(includes):
        if file not in state:
            visit(file, [file])
    return found


def check(root):
    """All findings: (file, line number, line, rule)."""
    findings, includes = [], {}
    for relative in sources(root):
        if relative.parts[0] not in FLOORS:
            findings.append((relative.as_posix(), 1, relative.name, "no floor: name the folder in test/layers.py"))
            continue
        for number, line in enumerate(lines_of(root / relative), 1):
            match = INCLUDE.match(line)
            rule = include_rule(relative, *match.groups()) if match else declaration_rule(relative, line)
            if rule:
                findings.append((relative.as_posix(), number, line.strip(), rule))
            if match:
                includes.setdefault(relative.as_posix(), []).append((number, line.strip(), match[2]))
    return findings + circles(includes)


# file, its text, a word of the rule it must break (None: none)
PLANTED = [
    ("base/result.h", "#pragma once\n#include <string>\n", None),
    ("base/upward.h", '#include "engine/executor.h"\n', "up"),
    ("engine/executor.h", '#include "base/result.h"\n#include "transport/transport.h"\n', None),
    ("transport/transport.h", '#include "base/result.h"\n', None),
    ("transport/ucx.cpp", "#include <ucp/api/ucp.h>\n#include <infiniband/verbs.h>\n", None),
    ("transport/sideways.cpp", '#include "kernels/op.h"\n', "sideways"),
    ("kernels/sideways.h", '#include "topo/graph.h"\n', "sideways"),
    ("kernels/reduce.cu", "#include <cuda_runtime.h>\n", None),
    ("topo/relative.cpp", '#include "../base/result.h"\n', "root"),
    ("topo/bare.cpp", '#include "graph.h"\n', "root"),
    ("topo/brackets.cpp", "#include <base/result.h>\n", "quotes"),
    ("topo/one.h", '#include "topo/two.h"\n', "circle"),
    ("topo/two.h", '#include "topo/three.h"\n', None),
    ("topo/three.h", '#include "topo/one.h"\n', None),
    ("engine/ucp.cpp", "#  include <ucp/api/ucp.h>\n", "UCX"),
    ("engine/verbs.cpp", "#include <infiniband/verbs.h>\n", "verbs"),
    ("engine/stream.h", "#include <cuda_runtime.h>\n", "CUDA"),
    ("test/simt/types.h", "#include <cuda_fp16.h>\n", None),
    ("kernels/mem.h", '#pragma once\nvoid relax() { asm volatile("nanosleep.u32 32;"); }\n', None),
    ("kernels/spin.cu", 'void relax() { asm volatile("nanosleep.u32 32;"); }\n', "PTX"),
    ("test/simt/kernel.cpp", '#include "kernels/reduce.cu"\n', None),
    ("test/cuda.cpp", "#include <cuda.h>\n", "CUDA"),
    ("perf/catch.cpp", "#include <catch2/catch.hpp>\n", "Catch2"),
    ("test/catch.h", "#include <catch2/catch.hpp>\n", None),
    ("test/perf/table_test.cpp", '#include "perf/table.h"\n#include "test/catch.h"\n', None),
    ("perf/backwards.cpp", '#include "test/catch.h"\n', "sideways"),
    ("engine/nccl.cpp", "#include <nccl.h>\n", "NCCL"),
    ("engine/declared.h", "typedef struct ncclComm* ncclComm_t;\nstruct ncclUniqueId { char internal[128]; };\n", "NCCL"),
    ("perf/function.cpp", 'extern "C" ncclResult_t ncclAllReduce(const void*);\n', "NCCL"),
    ("plugin/abi/nccl.h", "struct ncclUniqueId { char internal[128]; };\nncclResult_t ncclGetVersion(int*);\n", None),
    ("test/fake_nccl.cpp", '#include "plugin/abi/nccl.h"\nncclResult_t ncclGetVersion(int*) { return {}; }\n', None),
    ("schedule/threads.cpp", "#include <thread>\n", "pure"),
    ("schedule/comment.cpp", '/* #include "engine/a.h"\n#include "engine/b.h" */\n// #include "engine/c.h"\n', None),
    ("schedule/after.cpp", '/* why */ #include "engine/executor.h"  // because\n', "up"),
    ("extra/stray.cpp", "int x;\n", "no floor"),
    ("build/made.cpp", '#include "../base/result.h"\n', None),
]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text, _ in PLANTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        findings = check(root)
    # A circle is reported at the include that closes it, wherever the search began.
    found = {}
    for file, _, _, rule in findings:
        found.setdefault("topo/one.h" if rule.startswith("circle") else file, []).append(rule)
    wrong = 0
    for name, _, expected in PLANTED:
        rules = found.get(name, [])
        if any(expected in rule for rule in rules) if expected else not rules:
            continue
        wrong += 1
        print(f"self-test: {name}: expected {expected or 'nothing'}, found {rules or 'nothing'}")
    print(f"self-test: {len(PLANTED)} files planted, {wrong} not as expected")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    findings = check(root)
    for file, number, line, rule in findings:
        print(f"{file}:{number}: {line}: {rule}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
