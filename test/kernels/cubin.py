"""A GPU's machine code without a disassembler. A cubin is an ELF file with a section .text.NAME for each kernel, of instructions of 16 bytes
that have their opcode in the lowest 12 bits and, where they go to memory, a code of their width in bits 73 to 75. Undocumented, so what an
opcode means is learned from probes (learn), anew for each architecture and compiler, and fails loudly where that gives no clear answer."""
import collections
import pathlib
import re
import struct
import subprocess


def kernels(path):
    """{mangled name: machine code}"""
    data = pathlib.Path(path).read_bytes()
    if data[:4] != b"\x7fELF":
        raise ValueError(f"{path} is no ELF file")
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    found = {}
    for name_at, _, _, _, offset, length in sections:
        at = sections[names][4] + name_at
        name = data[at:data.index(b"\0", at)].decode()
        if name.startswith(".text."):
            found[name[len(".text."):]] = data[offset:offset + length]
    return found


def instructions(code):
    """How many there are of each (opcode, width)."""
    words = struct.iter_unpack("<QQ", code[:len(code) // 16 * 16])
    return collections.Counter((low & 0xfff, high >> 9 & 7) for low, high in words)


def readable(names):
    """{mangled: as it was written}"""
    names = list(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.splitlines()))


def learn(path):
    """The (opcode, width) of a load and a store of a pack, from probe.cu."""
    counts = {}
    code = kernels(path)
    for name, text in readable(code).items():
        loads, stores = re.search(r"probe<(\d+), (\d+)>", text).groups()
        counts[int(loads), int(stores)] = instructions(code[name])
    found = []
    for more in ((6, 1), (1, 6)):
        grown = [key for key, count in counts[more].items() if count - counts[1, 1][key] == 5]
        if len(grown) != 1:
            raise ValueError(f"{path}: the probe {more} has 5 more than the probe (1, 1) of {grown}, not of one instruction")
        found += grown
    return found
