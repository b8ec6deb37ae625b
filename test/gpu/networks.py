#!/usr/bin/env python3
"""The real NCCL under PyTorch, its two ranks on one GPU, by gyre's net plugin and by NCCL's own Socket network in turn: the same results,
and what all-reduces take by each. NCCL takes several ranks on a GPU only as hosts of their own, so all goes by the network.

    test/gpu/networks.py build/plugin/libnccl-net-gyre.so [RESULTS.jsonl]      figures are added to that file
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).parent / "torch_ranks.py"
ROUNDS = 2
SUBJECTS = ("collectives", "transfers", "training", "bits", "speed")
# Nothing but the network, one algorithm, and the loopback's address for all that meets.
COMMON = {"CUDA_VISIBLE_DEVICES": "0", "CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "32",
          "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_FAMILY": "AF_INET",
          "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0",
          "NCCL_IB_DISABLE": "1", "NCCL_RAS_ENABLE": "0", "NCCL_MIN_NCHANNELS": "1", "NCCL_MAX_NCHANNELS": "2",
          "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}


def run(network, plugin):
    """The JSON lines of a run; this process ends where it fails, or where NCCL's network is another one."""
    chosen = {"NCCL_NET": "gyre", "NCCL_NET_PLUGIN": plugin} if network == "gyre" else {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none"}
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run([sys.executable, str(SCRIPT), "2", "--hosts", *SUBJECTS],
                               env={**os.environ, **COMMON, **chosen, "NCCL_DEBUG_FILE": f"{folder}/%p"},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        logs = [file.read_text(errors="replace") for file in pathlib.Path(folder).iterdir()]
    if ended.returncode != 0 or sum(f"Using network {network}" in log for log in logs) != 2:
        sys.exit("\n".join([*logs, ended.stdout, f"{network}: exit code {ended.returncode}, or not 'Using network {network}' on both ranks"]))
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"figure"')]


def compare(lines, results):
    """What an all-reduce takes: medians of each run, of which these are the medians and the spread."""
    sizes = sorted({line["bytes"] for line in lines["gyre"] if line["figure"] == "torch all_reduce"})
    with open(results, "a", encoding="utf-8") as file:
        for size in sizes:
            row = {"figure": "torch networks", "ranks": 2, "runs": ROUNDS, "bytes": size}
            for network, found in lines.items():
                times = [line["us"] for line in found if line["figure"] == "torch all_reduce" and line["bytes"] == size]
                row.update({f"{network}_us": statistics.median(times), f"{network}_spread_us": max(times) - min(times)})
            row["Socket/gyre"] = row["Socket_us"] / row["gyre_us"]
            print(json.dumps(row), file=file)
            print(row)


def main():
    lines = {"Socket": [], "gyre": []}
    for _ in range(ROUNDS):
        for network, found in lines.items():
            found += run(network, os.path.abspath(sys.argv[1]))
    compare(lines, sys.argv[2] if len(sys.argv) > 2 else os.devnull)
    digests = {line["sha256"] for found in lines.values() for line in found if line["figure"] == "torch bits"}
    if len(digests) != 1:
        sys.exit(f"the results differ between networks or runs: {sorted(digests)}")
    print("the same bits by both networks, in all runs")


if __name__ == "__main__":
    main()
