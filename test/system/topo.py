"""gyre-perf topo: this machine, another's files, and files that are none. See system.py."""
import os
import tempfile
import xml.etree.ElementTree

from system import check, run, subjects


def this_machine():
    done = run("topo", env={"NCCL_TOPO_FILE": ""}).passed()
    check(done.out.startswith("this machine: ") and "NUMA node " in done.out, done.story())
    for nodes in ("0", "x", "16385"):
        run("topo", "--nodes", nodes).complains("--nodes")


def what_is_dumped_is_read_back():
    with tempfile.TemporaryDirectory() as folder:
        first, second = os.path.join(folder, "first.xml"), os.path.join(folder, "second.xml")
        shown = run("topo", "--dump", first, env={"NCCL_TOPO_FILE": ""}).passed()
        run("topo", "--xml", first, "--dump", second).passed()
        with open(first, encoding="utf-8") as a, open(second, encoding="utf-8") as b:
            check(a.read() == b.read(), shown.story())
        named = run("topo", env={"NCCL_TOPO_FILE": first}).passed()
        check(named.out == shown.out.replace("this machine: ", f"this machine, NCCL_TOPO_FILE {first}: "), named.story() + shown.story())


def a_machine_with_gpus_is_drawn_with_its_channels():
    """Four GPUs at an NVSwitch, two of them and their NICs on each NUMA node."""
    gpu = '<pci busid="0000:{0}1:00.0" class="0x030200"><gpu dev="{0}" sm="90"><nvlink target="fffffff:ffff:ff" count="4" tclass="0x068000"/></gpu></pci>'
    nic = '<pci busid="0000:{0}2:00.0" class="0x020700"><nic><net name="mlx5_{0}" dev="{0}" speed="400000" port="1" guid="0x1{0}"/></nic></pci>'
    parts = ["".join((gpu + nic).format(number) for number in (2 * numa, 2 * numa + 1)) for numa in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        machine, again, *pictures = (os.path.join(folder, name) for name in ("machine.xml", "again.xml", "a.svg", "b.svg"))
        with open(machine, "w", encoding="utf-8") as file:
            file.write('<system version="1">' + "".join(f'<cpu numaid="{numa}">{inside}</cpu>' for numa, inside in enumerate(parts)) + "</system>")
        done = run("topo", "--xml", machine, "--nodes", 2, "--svg", pictures[0], "--dump", again).passed()
        from_dump = run("topo", "--xml", again, "--nodes", 2, "--svg", pictures[1]).passed()
        check(from_dump.out == done.out.replace(machine, again), done.story() + from_dump.story())
        drawn = []
        for picture in pictures:
            drawn.append(["".join(text.itertext()) for text in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")])
        check(drawn[0][1:] == drawn[1][1:], f"{drawn}")  # but for the file's name
        check({"Channels over 2 such nodes", *(f"mlx5_{number}, 400 Gbit/s" for number in range(4))} <= set(drawn[0]), f"{drawn[0]}")
        for channel in range(4):  # two rows, each of two ports and all GPUs
            panel = drawn[0].index(f"channel {channel}") + 1
            for row in (drawn[0][panel:panel + 6], drawn[0][panel + 6:panel + 12]):
                check(row[0] == f"mlx5_{channel}" and row[1].startswith("mlx5_") and sorted(row[2:]) == list("0123"), f"{drawn[0]}")
        check(any(text.startswith("arrows: a ring; pale band: a tree") for text in drawn[0]), f"{drawn[0]}")
        check(sum(" → GPU " in line and line.endswith("; NVLinks of its own") for line in done.out.splitlines()) == 8, done.story())


def files_that_are_none():
    with tempfile.TemporaryDirectory() as folder:
        bad = os.path.join(folder, "bad.xml")
        with open(bad, "w", encoding="utf-8") as file:
            file.write('<system version="1">\n <cpu numaid="0">\n  <pci/>\n </cpu>\n</system>\n')
        odd = os.path.join(folder, "odd.xml")
        with open(odd, "w", encoding="utf-8") as file:
            file.write('<system version="1">\n <cpu numaid="0"><nic><net name="a&#27;b"/></nic></cpu>\n</system>\n')
        run("topo", "--xml", odd).complains(f"--xml {odd}:2:", "name of <net>")
        empty = os.path.join(folder, "empty.xml")
        with open(empty, "w", encoding="utf-8"):
            pass
        run("topo", "--xml", bad).complains(f"--xml {bad}:3:4: busid=")
        run("topo", env={"NCCL_TOPO_FILE": bad}).complains(f"NCCL_TOPO_FILE {bad}:3:4: ")
        run("topo", "--xml", "/dev/null").complains("--xml /dev/null: no regular file")
        run("topo", "--xml", "/dev/zero").complains("--xml /dev/zero: no regular file")
        run("topo", "--xml", empty).complains(f"--xml {empty}:1:1: ")
        run("topo", "--xml", folder).complains(f"--xml {folder}: ")
        run("topo", "--xml", bad + "x").complains("No such file")
        run("topo", "--root", folder).complains(f"no machine below {folder}")
        run("topo", "--svg", folder, env={"NCCL_TOPO_FILE": ""}).complains(f"--svg {folder}: ")
        run("topo", "--dump", folder, env={"NCCL_TOPO_FILE": ""}).complains(f"--dump {folder}: ")
        run("topo", "--root", "/", "--xml", bad).complains("--root", "--xml")


def paths_that_are_empty_or_the_same():
    for flag in ("--root", "--xml", "--dump", "--svg"):
        run("topo", flag, "").complains(f"{flag}: an empty path")
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "machine.xml")
        run("topo", "--dump", machine, env={"NCCL_TOPO_FILE": ""}).passed()
        both = os.path.join(folder, "both")
        again = os.path.join(folder, ".", "both")
        run("topo", "--xml", machine, "--svg", both, "--dump", again).complains(f"--svg {both}: the same file as --dump")
        check(not os.path.exists(both), "written before it was refused")
        run("topo", "--xml", machine, "--svg", machine).complains(f"--svg {machine}: the same file as --xml")


def nodes_without_gpus():
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "machine.xml")
        with open(machine, "w", encoding="utf-8") as file:
            file.write('<system version="1">\n <cpu numaid="0"/>\n</system>\n')
        done = run("topo", "--xml", machine, "--nodes", "4").passed()
        check(done.out.endswith("\n--nodes 4: no GPUs, so no channels\n"), done.story())
        check("--nodes" not in run("topo", "--xml", machine).passed().out, "without --nodes")


def nics_without_names():
    with tempfile.TemporaryDirectory() as folder:
        cloud = os.path.join(folder, "cloud.xml")
        with open(cloud, "w", encoding="utf-8") as file:
            file.write('<system version="1">\n <cpu numaid="0">\n  <pci busid="ffff:ff:01.0" class="0x060400">\n   <pci busid="0001:00:00.0" class="0x030200"/>\n'
                       '   <pci busid="0101:00:00.0" class="0x020700"/>\n  </pci>\n </cpu>\n</system>\n')
        done = run("topo", "--xml", cloud, "--dump", os.path.join(folder, "again.xml")).passed()
        check("  0101:00:00.0 (PIX)\n" in done.out and "unknown" not in done.out.split("best first")[1], done.story())
        with open(os.path.join(folder, "again.xml"), encoding="utf-8") as file:
            check("<net" not in file.read(), "a name that is none")
        again = run("topo", "--xml", os.path.join(folder, "again.xml")).passed()
        check("  0101:00:00.0 (PIX)\n" in again.out, again.story())


def a_file_of_several_hosts():
    with tempfile.TemporaryDirectory() as folder:
        hosts = os.path.join(folder, "hosts.xml")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write('<system version="1">\n <cpu host_hash="0x1" numaid="0"/>\n <cpu host_hash="0x2" numaid="5"/>\n</system>\n')
        done = run("topo", "--xml", hosts).passed()
        check(f"{hosts}, host 1 of 2 (--host): 1 NUMA node," in done.out and "NUMA node 0" in done.out, done.story())
        done = run("topo", "--xml", hosts, "--host", 2).passed()
        check("host 2 of 2" in done.out and "NUMA node 5" in done.out, done.story())
        run("topo", "--xml", hosts, "--host", 3).complains(f"--host 3: {hosts} has 2 hosts")
        run("topo", "--host", 1).complains("--host", "--xml")
        done = run("topo", env={"NCCL_TOPO_FILE": hosts, "GYRE_LOG": "info"}).passed(quiet=False)
        check(f"NCCL_TOPO_FILE {hosts}: taken for this machine's map, of 2 hosts in it the first" in done.err, done.story())


subjects([a_machine_with_gpus_is_drawn_with_its_channels, a_file_of_several_hosts, nics_without_names, this_machine, what_is_dumped_is_read_back, files_that_are_none, paths_that_are_empty_or_the_same, nodes_without_gpus])
