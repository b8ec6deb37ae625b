#!/usr/bin/env python3
"""Whether the GPU's kernels were compiled as they should be: no spills or local memory, few registers, whole packs loaded and stored, all of a
batch's before its use, a fused multiply-add where there must be one and nowhere else, and no more code than expected. Needs no GPU and
no disassembler; reads what kernels/nvcc.py kept.

    quality.py NVCC REPORT.json…
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cubin

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_REGISTERS = 64  # of 512 threads: two blocks fit a multiprocessor
MOST_REGISTERS_STAYS = 128  # one block does
MOST_INSTRUCTIONS = 2500
STAYS_PACKS = 1 + 1 + 2 + 2 + 3, 1 + 2 + 1 + 2 + 1  # loads and stores: each shape's, but of lists, is in it
ORDERED_PACKS = 2, 2
MOST_BYTES = 13 << 20  # of all machine code of all architectures; 2 of them kernels of packets
STEP = re.compile(r"step_kernel<(.+), (\d+), (\d+), (\d+)>\(")
STAYS = re.compile(r"stay_kernel<(.+), (?:unsigned )?\w+(?: \w+)?, (?:true|false)>\(")
PACKETS = re.compile(r"packet_kernel<(.+?) ?>\(")

ORDERED = re.compile(r"ordered_(?:stay_)?kernel<(\w+), (\w+)")

# What a kernel's PTX must have, by its reduction; those not named here must not fuse.
FUSED = {"Premultiplied<float>": "fma.rn.f32", "Premultiplied<double>": "fma.rn.f64", "Premultiplied<Half>": "fma.rn.f16x2",
         "Premultiplied<Bfloat16>": "fma.rn.bf16x2"}
NATIVE = {"Plain<Half, Sum>": "add.rn.f16x2", "Plain<Half, Prod>": "mul.rn.f16x2", "Plain<Half, Min>": "min.f16x2",
          "Plain<Bfloat16, Sum>": "add.rn.bf16x2", "Plain<Bfloat16, Max>": "max.bf16x2", "Plain<float, Max>": "max.f32",
          "Plain<Float8e4m3, Sum>": "cvt.rn.satfinite.e4m3x2.f16x2", "Plain<Float8e5m2, Prod>": "cvt.rn.satfinite.e5m2x2.f16x2"}


def assembler(text):
    """{(architecture, mangled name): {registers, stack, spilled}} of what ptxas says."""
    found, entry = {}, {}
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line):
            entry = found.setdefault((match[2], match[1]), {})
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            entry["stack"], entry["spilled"] = int(match[1]), int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            entry["registers"] = int(match[1])
    return found


def learned(nvcc, architectures):
    """{architecture: (load of a pack, store of a pack)}"""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in architectures:
            path = pathlib.Path(folder) / f"probe_{name}.cubin"
            subprocess.run([nvcc, "-cubin", f"-arch=sm_{name}", "-std=c++20", f"-I{ROOT}", "-o", path, ROOT / "test/kernels/probe.cu"], check=True)
            found[name] = cubin.learn(path)
    return found


def step(text):
    """(reduction, sources, destinations, packs) of a kernel's readable name."""
    match = STEP.search(text.replace("gyre::kernels::", ""))
    return (match[1], *map(int, match.groups()[1:])) if match else None


def packs_of(kernel):
    """Loads and stores of packs that there must be at least."""
    _, sources, destinations, packs = kernel
    # In batches and, for what is left of them, by single packs. Of a list's sources two are there at least: the first, and those in the
    # loop; of its destinations those in the loop.
    return (sources or 2) * (packs + 1), (destinations or 1) * (packs + 1)


def code_faults(code, loads, stores, load, store):
    counts = cubin.instructions(code)
    if counts[load] < loads:
        yield f"{counts[load]} loads of packs, not {loads}"
    if counts[store] < stores:
        yield f"{counts[store]} stores of packs, not {stores}"
    if len(code) // 16 > MOST_INSTRUCTIONS:
        yield f"{len(code) // 16} instructions, more than {MOST_INSTRUCTIONS}"


def stays(text):
    """The same of a kernel that stays: its reduction."""
    match = STAYS.search(text.replace("gyre::kernels::", ""))
    return match[1] if match else None


def packets(text):
    """The same of a kernel of packets."""
    match = PACKETS.search(text.replace("gyre::kernels::", ""))
    return match[1] if match else None


def ordered(text):
    """The same of a kernel of ordered numerics, that stays or not."""
    match = ORDERED.search(text.replace("gyre::kernels::", ""))
    return f"{match[2]} of {match[1]}, ordered" if match else None


def said_faults(said, most=MOST_REGISTERS):
    if said.get("registers", 1000) > most:
        yield f"{said.get('registers')} registers, more than {most}"
    if said.get("stack") != 0 or said.get("spilled") != 0:
        yield f"stack of {said.get('stack')} bytes, {said.get('spilled')} spilled"


def ptx_faults(kernel, text):
    reduction, sources = kernel[:2]
    fused = sorted(set(re.findall(r"\bfma\.[\w.]+", text)))
    wanted = FUSED.get(reduction) if sources != 1 else None
    if wanted and wanted not in fused:
        yield f"PTX has no {wanted}"
    if not wanted and fused:
        yield f"PTX fuses: {', '.join(fused)}"
    if sources != 1 and reduction in NATIVE and NATIVE[reduction] not in text:
        yield f"PTX has no {NATIVE[reduction]}"
    if "ld.global.L1::no_allocate.v4.u32" not in text:
        yield "PTX loads no packs past the first-level cache"


def stay_faults(reduction, text):
    for word in ("ld.acquire.sys.global.u64", "st.release.sys.global.u64", "bar.sync"):
        if word not in text:
            yield f"PTX has no {word}"
    fused = sorted(set(re.findall(r"\bfma\.[\w.]+", text)))
    if reduction in FUSED and FUSED[reduction] not in fused:
        yield f"PTX has no {FUSED[reduction]}"
    if reduction not in FUSED and fused:
        yield f"PTX fuses: {', '.join(fused)}"


def packet_faults(text):
    for word in ("ld.relaxed.sys.global.v2.u64", "st.relaxed.sys.global.v2.u64", "st.release.sys.global.u64", "bar.sync"):
        if word not in text:
            yield f"PTX has no {word}"
    if fused := sorted(set(re.findall(r"\bfma\.[\w.]+", text))):
        yield f"PTX fuses: {', '.join(fused)}"


def ordered_faults(text):
    if fused := sorted(set(re.findall(r"\bfma\.[\w.]+", text))):
        yield f"PTX fuses: {', '.join(fused)}"
    for word in ("ld.global.L1::no_allocate.v4.u32", "st.global.cs.v4.u32"):
        if word not in text:
            yield f"PTX has no {word}"


def ptx_entries(text):
    """{mangled name: body}"""
    parts = re.split(r"\.entry\s+(\w+)\s*\(", text)
    return dict(zip(parts[1::2], parts[2::2]))


class Figures:
    def __init__(self):
        self.kernels, self.bytes, self.registers, self.longest, self.seconds = 0, 0, {}, 0, 0.0
        self.reductions = set()

    def add(self, reduction, code, registers):
        self.kernels += 1
        self.reductions.add(reduction)
        self.bytes += len(code)
        self.registers[registers] = self.registers.get(registers, 0) + 1
        self.longest = max(self.longest, len(code) // 16)

    def write(self, path):
        """As data, to compare builds by."""
        path.write_text(json.dumps({"kernels": self.kernels, "bytes": self.bytes, "longest": self.longest, "compile_seconds": self.seconds,
                                    "kernels_by_registers": self.registers}) + "\n")

    def __str__(self):
        registers = ", ".join(f"{number}: {self.registers[number]}" for number in sorted(self.registers))
        return (f"{self.kernels} kernels, {self.bytes / 2**20:.1f} MiB, the longest {self.longest} instructions, compiled in {self.seconds:.0f} s\n"
                f"kernels by registers: {registers}")


def check(report_path, known, figures):
    """Yields (kernel, architecture, fault)."""
    report = json.loads(report_path.read_text())
    said = assembler(report["ptxas"])
    figures.seconds += report["seconds"]
    kept = report_path.with_suffix(".kept")
    for architecture in report["architectures"]:
        path, = kept.glob(f"*_{architecture}.cubin")
        code = cubin.kernels(path)
        for name, text in cubin.readable(code).items():
            kernel = step(text)
            entry = said.get((architecture, name), {})
            if named := ordered(text):
                figures.add(named, code[name], entry.get("registers", 0))
                most = MOST_REGISTERS_STAYS if "_stay_" in text else MOST_REGISTERS
                for fault in [*code_faults(code[name], *ORDERED_PACKS, *known[architecture]), *said_faults(entry, most)]:
                    yield (named, "two", "", ""), architecture, fault
                continue
            if named := packets(text):
                figures.add(f"{named}, packets", code[name], entry.get("registers", 0))
                for fault in said_faults(entry, MOST_REGISTERS_STAYS):
                    yield (named, "packets", "", ""), architecture, fault
                continue
            if kernel is None:
                figures.add(f"{stays(text)}, stays", code[name], entry.get("registers", 0))
                for fault in [*code_faults(code[name], *STAYS_PACKS, *known[architecture]), *said_faults(entry, MOST_REGISTERS_STAYS)]:
                    yield (stays(text), "stays", "", ""), architecture, fault
                continue
            figures.add(kernel[0], code[name], entry.get("registers", 0))
            for fault in [*code_faults(code[name], *packs_of(kernel), *known[architecture]), *said_faults(entry)]:
                yield kernel, architecture, fault
    path = max(kept.glob("*.ptx"))  # compute_90's, or the only one
    entries = ptx_entries(path.read_text())
    for name, text in cubin.readable(entries).items():
        if named := ordered(text):
            for fault in ordered_faults(entries[name]):
                yield (named, "two", "", ""), "ptx", fault
            continue
        if named := packets(text):
            for fault in packet_faults(entries[name]):
                yield (named, "packets", "", ""), "ptx", fault
            continue
        for fault in ptx_faults(step(text), entries[name]) if step(text) else stay_faults(stays(text), entries[name]):
            yield step(text) or (stays(text), "stays", "", ""), "ptx", fault


def main(nvcc, *reports):
    reports = [pathlib.Path(report) for report in reports]
    architectures = sorted({name for report in reports for name in json.loads(report.read_text())["architectures"]}, key=int)
    known = learned(nvcc, architectures)
    figures = Figures()
    faults = [fault for report in reports for fault in check(report, known, figures)]
    wrong = [f"{reduction} {sources or 'many'} -> {destinations or 'many'}, {packs} packs, {architecture}: {fault}"
             for (reduction, sources, destinations, packs), architecture, fault in faults]
    wrong += [f"no kernel of {name}" for name in sorted({*FUSED, *NATIVE} - figures.reductions)]
    if figures.bytes > MOST_BYTES:
        wrong.append(f"more than {MOST_BYTES >> 20} MiB of machine code")
    figures.write(reports[0].with_name("quality.json"))
    print(*wrong, figures, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
