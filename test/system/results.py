"""What is done with results: compared with others, and drawn."""
import json
import os
import re
import sys
import tempfile
import xml.etree.ElementTree

from system import Process, check, perf, run, subjects

QUICK = ["-n", "2", "-w", "1"]


class Folder:
    """A folder of results, gone after the test."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def sweep(self, name, *arguments, collective="all_reduce", env=None):
        run(collective, *(arguments or ("-b", "1K", "-e", "8K")), *QUICK, "--json", self.path(name), env=env).passed()
        return self.path(name)

    def slower(self, name, of, times):
        """The same results with every time so many times as long."""
        with open(of, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            for way in ("out_of_place", "in_place"):
                if way in line:
                    line[way]["time_us"] *= times
        return self.write(name, *lines)

    def write(self, name, *lines):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return self.path(name)

    def measured(self, name):
        run("measure", "--ranks", 2, "-b", "64", "-e", "4K", "--rounds", 3, "-o", self.path(name)).passed()
        return self.path(name)


def ratios(done):
    return [float(word[7]) for word in (line.split() for line in done.out.splitlines() if line.startswith("  "))]


def a_result_is_compared_with_itself_and_with_a_slower_one():
    with Folder() as folder:
        fast = folder.sweep("fast.json", "-b", "1K", "-e", "8K", "-N", 2)
        slow = folder.slower("slow.json", fast, 2)
        same = run("compare", fast, fast).passed()
        check("# all          : geometric mean 1.000 of 8 ratios, 1.000 to 1.000" in same.out, same.story())
        worse = run("compare", fast, slow).passed()
        check("# all          : geometric mean 0.500 of 8 ratios, 0.500 to 0.500" in worse.out, worse.story())
        check("# out of place : geometric mean 0.500 of 4" in worse.out and "# in place     : geometric mean 0.500 of 4" in worse.out, worse.story())
        better = run("compare", slow, fast).passed()
        check("geometric mean 2.000 of 8" in better.out and "N/A" not in better.out, better.story())
        for name, path in (("A", fast), ("B", slow)):
            check(re.search(rf"^# {name}: {path}: gyre \S+ \(\w+[^)]*\), .+ processors, kernel .+Z$", worse.out, re.M), f"no origin\n{worse.story()}")


def comparing_is_also_a_flag():
    with Folder() as folder:
        one, other = folder.sweep("one.json"), folder.sweep("other.json")
        check(run("--compare", one, other).passed().out == run("compare", one, other).passed().out, "another answer")
        run("--compare", one, folder.slower("slow.json", one, 2), "--fail-below", "0.9").failed()
        run("--compare", one).complains("after")


def only_an_option_makes_a_slower_result_fail():
    with Folder() as folder:
        fast = folder.sweep("fast.json")
        slow = folder.slower("slow.json", fast, 1.25)
        run("compare", fast, slow).passed()
        run("compare", fast, slow, "--fail-below", "0.79").passed()
        done = run("compare", fast, slow, "--fail-below", "0.81").failed()
        check(done.code == 4 and "# FAILED: 0.800 is below --fail-below 0.81" in done.out, done.story())
        run("compare", slow, fast, "--fail-below", "1.2").passed()
        for wrong in ("0", "-1", "fast", "nan"):
            run("compare", fast, slow, "--fail-below", wrong).complains("--fail-below", wrong, "such as 0.95")


def what_cannot_be_compared_is_refused():
    with Folder() as folder:
        two = folder.sweep("two.json")
        three = folder.sweep("three.json", "--ranks", 3, "-b", "1K", "-e", "8K")
        other = folder.sweep("reduce.json", collective="reduce")
        large = folder.sweep("large.json", "-b", "16K", "-e", "16K")
        blocking = folder.sweep("blocking.json", "-b", "1K", "-e", "8K", "-z", 1)
        measured = folder.measured("samples.jsonl")
        for path, why in ((three, "ranks: 2 and 3"), (other, "collective: all_reduce and reduce"), (large, "no size, type, operation and root"),
                          (blocking, "blocking: 0 and 1"), (measured, "kind: a sweep and samples")):
            done = run("compare", two, path).complains("cannot be compared", why, os.path.basename(path))
            check(done.code == 2 and done.out == "", done.story())
        run("compare", two, folder.path("missing")).complains("missing: No such file")
        run("compare", two, "/dev/zero").complains("/dev/zero: no regular file")
        run("compare", two).complains("after")
        empty = folder.write("empty")
        run("compare", two, empty).complains("empty: no results: the file is empty")
        broken = folder.write("broken", {"a": 1})
        run("compare", broken, two).complains("broken")


def what_may_differ_is_said():
    with Folder() as folder:
        one = folder.sweep("one.json")
        other = folder.sweep("other.json", "-b", "2K", "-e", "16K", "-u", 3, "--algorithm", "ring", env={"GYRE_TRANSPORT": "shm"})
        done = run("compare", one, other).passed()
        check("# A and B differ in algorithm: auto and ring" in done.out and "# A and B differ in options.unalign: 0 and 3" in done.out, done.story())
        check("# A and B differ in config.GYRE_TRANSPORT: none and shm" in done.out, done.story())
        check("# only in A: 2 points, only in B: 2" in done.out and len(ratios(done)) == 6, done.story())


def samples_are_compared_by_algorithm():
    with Folder() as folder:
        samples = folder.measured("samples.jsonl")
        done = run("compare", samples, samples).passed()
        check(set(ratios(done)) == {1.0} and "one_shot" in done.out and "ring" in done.out, done.story())
        check(re.search(r" \d\.\d\d\.\.\d+\.\d\d ", done.out), f"no spread\n{done.story()}")


def drawn(*arguments):
    done = run("report", *arguments).passed()
    with open(arguments[-1], encoding="utf-8") as file:
        return done, file.read()


def a_sweep_is_drawn():
    with Folder() as folder:
        for collective in ("all_reduce", "broadcast", "alltoall", "sendrecv"):
            sweep = folder.sweep("a.json", "-b", "8", "-e", "64K", "-f", 8, collective=collective)
            done, svg = drawn(sweep, "-o", folder.path("a.svg"))
            xml.etree.ElementTree.fromstring(svg)
            check(svg.count("</title></g>") == 2 * 5, f"{collective}: not five marks in two panels\n{done.story()}")
            check((svg.count("stroke-dasharray") == 3) == (collective != "sendrecv"), f"{collective}: a prediction?")
            check("Time of a call: lower is better" in svg and "Bus bandwidth: higher is better" in svg, "no titles")
            done, page = drawn(sweep, "-o", folder.path("a.html"))
            check(page.count("<tr>") == 1 + 5 and page.count("<svg") == 1 and sweep in page, f"{collective}\n{page}")


def samples_are_drawn_with_the_choice():
    with Folder() as folder:
        samples = folder.measured("samples.jsonl")
        done, svg = drawn(samples, "-o", folder.path("a.svg"))
        xml.etree.ElementTree.fromstring(svg)
        check("The algorithm that gyre chooses is the fastest measured at " in svg and "of 4 sizes" in svg, done.story())
        for algorithm in ("ring", "tree", "one_shot", "naive"):
            check(f">{algorithm}<" in svg, f"{algorithm} is not in the legend")
        check("chosen by gyre" in svg and "predicted for it" in svg, "no legend")
        sweep = folder.sweep("b.json", "--ranks", 3, "-b", "1K", "-e", "8K")
        done, page = drawn(samples, sweep, "-o", folder.path("a.html"))
        check(page.count("<h2>") == 2 and "2 ranks over shm" in page and re.search(r"3 ranks( on 2 processors)? over shm", page), done.story())


def pages_need_nothing_from_elsewhere():
    with Folder() as folder:
        _, page = drawn(folder.sweep("a.json"), "-o", folder.path("a.html"))
        for elsewhere in ("<script", "src=", "href=", "@import", "url("):
            check(elsewhere not in page, f"{elsewhere} in the page")


def what_cannot_be_drawn_is_refused():
    with Folder() as folder:
        sweep = folder.sweep("a.json")
        run("report", sweep, "-o", folder.path("a.pdf")).complains("a.pdf: must end with .html or .svg")
        run("report", sweep, "-o", "/no/such/folder/a.svg").complains("/no/such/folder/a.svg: No such file")
        run("report", sweep).complains("output")
        run("report", folder.path("missing"), "-o", folder.path("a.svg")).complains("missing: No such file")
        run("report", sweep, "--constants", "/no/such", "-o", folder.path("a.svg")).complains("/no/such")
        nothing = folder.sweep("nothing.json", "-b", 0, "-e", 0)
        run("report", nothing, "-o", folder.path("a.svg")).complains("nothing to draw: no size is above 0 bytes")


def documents_of_before_are_read():
    with Folder() as folder:
        sweep = folder.sweep("a.json")
        with open(sweep, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        with open(folder.path("document.json"), "w", encoding="utf-8") as file:
            json.dump({**lines[0], "results": lines[1:-1]}, file, indent=1)
        check("geometric mean 1.000 of 8" in run("compare", sweep, folder.path("document.json")).passed().out, "not the same")
        drawn(folder.path("document.json"), "-o", folder.path("a.svg"))


def compare_numerics_reads_them():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../perf/peers/compare-numerics")
    with Folder() as folder:
        command = [sys.executable, "-B", script, os.path.dirname(os.path.dirname(perf())), "--rounds", "1", "--transports", "shm,tcp", "--ranks", "2",
                   "--types", "f8e4m3", "--sizes", "8", "--output", folder.path("numerics.jsonl")]
        done = Process(command).wait().passed()
        for transport in ("shm", "tcp"):
            check(re.search(rf"^\| {transport} \| 2 \| f8e4m3 \| 8 (\| \d+\.\d\d ){{3}}\| .* \| one_shot \|$", done.out, re.M), done.story())


subjects([a_result_is_compared_with_itself_and_with_a_slower_one, comparing_is_also_a_flag, only_an_option_makes_a_slower_result_fail,
          what_cannot_be_compared_is_refused, what_may_differ_is_said, samples_are_compared_by_algorithm, a_sweep_is_drawn,
          samples_are_drawn_with_the_choice, pages_need_nothing_from_elsewhere, what_cannot_be_drawn_is_refused,
          documents_of_before_are_read, compare_numerics_reads_them])
