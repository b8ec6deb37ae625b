#!/usr/bin/env python3
"""Compiles a .cu file with nvcc for several architectures, and keeps what a test of the kernels' quality looks at: the machine code and PTX
of each architecture, what the assembler says of registers and spills, and how long it took. A spill or a use of local memory fails.

    nvcc.py NVCC SOURCE OBJECT DEPFILE ARCH[,ARCH…] [NVCC'S OPTIONS…]

Beside OBJECT it writes OBJECT's name with .json in place of .o, and a folder with .kept in place of .o.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

# The oldest generation which has all the instructions that the kernels use: its PTX serves all later ones, and is made once for them. Where
# no machine code fits, the driver compiles it.
PTX = "90"
NO_SPILLS = "-v,-warn-spills,-warn-lmem-usage,-Werror"
KEPT = (".cubin", ".ptx")


def architectures(names):
    """nvcc's options. A GPU runs machine code of its own generation and at least its own feature level."""
    for name in names:
        yield f"-gencode=arch=compute_{min(name, PTX, key=int)},code=sm_{name}"
    if PTX in names:
        yield f"-gencode=arch=compute_{PTX},code=compute_{PTX}"


def main(nvcc, source, target, depfile, names, *options):
    kept = pathlib.Path(target).with_suffix(".kept")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    command = [nvcc, "-c", source, "-o", target, "-MD", "-MF", depfile, "-MT", target, "--keep", f"--keep-dir={kept}", f"-Xptxas={NO_SPILLS}",
               *architectures(names.split(",")), *options]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - start
    said = done.stdout + done.stderr
    # Of thousands of lines about kernels that are as they should be, nothing.
    details = re.compile(r"ptxas info|\d+ bytes stack frame")
    for line in said.splitlines():
        if not details.search(line):
            print(line, file=sys.stderr)
    if done.returncode != 0:
        return done.returncode
    for path in kept.iterdir():
        if path.suffix not in KEPT:
            path.unlink()
    report = {"seconds": round(seconds, 1), "architectures": names.split(","), "ptxas": said, "command": command}
    pathlib.Path(target).with_suffix(".json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
