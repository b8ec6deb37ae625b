#!/usr/bin/env python3
"""Compiles nccl_header_test.cpp with nccl.h: one for each release, which has our declarations but those of later releases, and NCCL's own where
it is installed. That it notices what is not alike, wrong ones show.

    nccl_header.py ROOT installed|none COMPILER…
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from nccl_exports import by_release

# What nccl.h has by that name since, beside functions.
NEW_NAMES = {"2.10": "ncclBfloat16 ncclAvg", "2.11": "ncclMaxRedOp ncclScalarDevice ncclScalarHostImmediate ncclScalarResidence_t",
             "2.13": "ncclRemoteError", "2.14": "ncclInProgress ncclConfig_t", "2.17": "cgaClusterSize minCTAs maxCTAs netName", "2.18": "splitShare",
             "2.22": "ncclSimInfo_t", "2.24": "ncclFloat8e4m3 ncclFloat8e5m2", "2.26": "trafficClass",
             "2.27": "commName collnetEnable CTAPolicy shrinkShare nvlsCTAs", "2.28": "nChannelsPerNetPeer nvlinkCentricSched",
             "2.29": "graphUsageMode numRmaCtx ncclWaitSignalDesc_t",
             "2.29.7": "ncclCommMemStat_t ncclStatGpuMemSuspend ncclStatGpuMemSuspended ncclStatGpuMemPersist ncclStatGpuMemTotal",
             "2.30": "ncclTimeout maxP2pPeers", "2.30.4": "ncclParamHandle_t", "2.30.5": "graphStreamOrdering",
             "2.31": "launchOrderImplicit numRmaSig rmaEagerInit hostCftMode ncclCollConfig_t",
             "2.32": "nvlsHostMode launchCompletionEvent ncclEncryptionConfig_t"}
# As a header might have it that is not like ours.
CHANGES = {"int splitShare;": ("char* splitShare;", "trafficClass lies elsewhere"), "ncclTimeout = 8": ("ncclTimeout = 9", "ncclTimeout has another value"),
           "int color, int key": ("int color, size_t key", "ncclCommSplit takes other parameters"),
           "(ncclRedOp_t op, ncclComm_t comm)": ("(ncclRedOp_t op)", "ncclRedOpDestroy takes other parameters")}


def parts(release):
    return [int(number) for number in release.split(".")]


def code(release):
    _, minor, patch = [*parts(release), 0][:3]
    return (2000 if minor <= 8 else 20000) + 100 * minor + patch


def header(root, release):
    """An nccl.h; what is newer, or declared by nccl_device.h, has another name there."""
    text = "".join((root / "plugin/abi" / name).read_text(encoding="utf-8") for name in ("nccl_types.h", "nccl.h"))
    functions = by_release(root / "test/plugin/nccl_functions.txt")
    newer = {"ncclCommQueryProperties", *re.findall(r"^ *F\(\w+, (\w+),", text[text.index("#define NCCL_DEVICE_FUNCTIONS"):], re.M)}
    for names in (functions, {since: words.split() for since, words in NEW_NAMES.items()}):
        newer.update(name for since, given in names.items() if parts(since) > parts(release) for name in given)
    lines = [line for line in text.splitlines() if line != "#pragma once" and not line.startswith('#include "')]
    return "\n".join([f"#define NCCL_VERSION_CODE {code(release)}", *[f"#define {name} later_{name}" for name in sorted(newer)], *lines,
                      *[f"#undef {name}" for name in sorted(newer)]])


def compiled(root, compiler, text):
    """What the compiler has to say against it; with NCCL's own header where there is no text."""
    with tempfile.TemporaryDirectory() as folder:
        if text:
            (pathlib.Path(folder) / "nccl.h").write_text(text, encoding="utf-8")
        command = [*compiler, "-std=c++20", "-fsyntax-only", f"-I{folder}", f"-I{root}", str(root / "test/plugin/nccl_header_test.cpp")]
        return "\n".join(line for line in subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines() if "error:" in line)


def main(root, installed, *compiler):
    root = pathlib.Path(root)
    releases = sorted(set(by_release(root / "test/plugin/nccl_functions.txt")) | set(NEW_NAMES), key=parts)
    problems = {f"the nccl.h of {release}": compiled(root, compiler, header(root, release)) for release in releases}
    if installed == "installed":
        problems["the nccl.h that is installed"] = compiled(root, compiler, "")
    last = header(root, releases[-1])
    for ours, (theirs, expected) in CHANGES.items():
        said = compiled(root, compiler, last.replace(ours, theirs, 1))
        problems[f"'{theirs}' for '{ours}'"] = "" if ours in last and expected in said else f"it is not noticed: {said}"
    print(f"{len(problems)} headers, of releases {', '.join(releases)}, that of this machine: {installed}")
    for what, problem in problems.items():
        if problem:
            print(f"{what}: {problem}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
