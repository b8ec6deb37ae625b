#!/usr/bin/env python3
"""From which size on an all-reduce is faster by the second of two than by the first: by gyre's prices, by NCCL's defaults, and by NCCL's rule
with parts of its defaults as gyre has them. A part that moves NCCL's size to gyre's is a reason for their difference.

    changes.py build/perf/gyre-perf > changes.txt        from the root of the repository"""
import copy
import json
import re
import subprocess
import sys
import tempfile

EXAMPLES = [("dgx_h100", 1), ("dgx_h100", 2), ("dgx_h100", 16), ("dgx_h100", 128), ("pcie_4090", 1), ("cloud_t4", 2)]
NO_BOUND = [1e6] * 3
ROW = re.compile(r"^ +(\w+/\w+) +(\w+/\w+) +(\d+|always|never) +(\d+|always|never)$", re.M)


def bounds(constants, key):
    for generation in constants[key]:
        constants[key][generation] = NO_BOUND


def ll(published):
    bounds(published, "ll_gb_per_s")
    published["tree"]["ll_share"] = 0.5


def base(published):
    for algorithm in ("tree", "ring"):
        published[algorithm]["base_us"] = [6.6] * 3


def correction(published):
    for sizes in published["tree"]["correction"].values():
        sizes[:] = [1] * len(sizes)


def plateau(published):
    published["ring"].update(plateau=1, plateau_before_ampere=1)


def tree(published):
    published["tree"].update(share=1, simple_tree_share=1, ll128_share_one_node=120 / 128, ll128_share_nodes=120 / 128)
    bounds(published, "tree_gb_per_s")
    bounds(published, "tree_ll128_gb_per_s")


def posting(published):
    published["overhead_us"].update(intel=0, amd=0)


def hops(link, network):
    def change(published):
        for algorithm in ("tree", "ring"):
            protocols = [1, 2, 6]
            published[algorithm].update(nvlink_us=protocols, pci_us=[us + link for us in protocols],
                                        network_us=[us + network for us in protocols])
    return change


def sizes(gyre_perf, machine, nodes, constants):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(constants, file)
        file.flush()
        return ROW.findall(subprocess.run([gyre_perf, "crossovers", "--machine", machine, "--nodes", str(nodes), "--constants", file.name],
                                          check=True, capture_output=True, text=True).stdout)


def main():
    with open("topo/nccl/constants.json", encoding="utf-8") as file:
        constants = json.load(file)
    for machine, nodes in EXAMPLES:
        own = constants["machines"][machine]
        as_gyre = hops(own["link_us"], own["network_us"])
        parts = {"NCCL": [], "LL: half of the links": [ll], "one base latency": [base], "no correction by size": [correction],
                 "no plateau of the ring": [plateau], "trees at full rate": [tree], "no posting": [posting], "gyre's hops": [as_gyre],
                 "all of these": [ll, base, correction, plateau, tree, posting, as_gyre]}
        found = {}
        for name, changes in parts.items():
            changed = copy.deepcopy(constants)
            for change in changes:
                change(changed["published"])
            found[name] = sizes(sys.argv[1], machine, nodes, changed)
        pairs = [f"{first}, {second}" for first, second, *_ in found["NCCL"]]
        print(f"# {machine}, {nodes} node{'s' if nodes > 1 else ''}; bytes\n  {'':<22}" + "".join(f"{pair:>26}" for pair in pairs))
        print(f"  {'gyre':<22}" + "".join(f"{gyre:>26}" for *_, gyre, _ in found["NCCL"]))
        for name, rows in found.items():
            print(f"  {name:<22}" + "".join(f"{nccl:>26}" for *_, nccl in rows))


main()
