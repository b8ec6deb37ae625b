"""From the rounds of `compare-all` to tables: a ratio per cell with its spread, geometric means, the share of the bound, 16-bit types, and
the cells in which gyre does not lead."""
import collections
import math
import statistics

from report import OURS, human, microseconds

BOUNDS = ("bound-mapped", "bound-touched")
SAME_HOP = 1.6  # two probes of the same hop differ by less, near and far CPUs by far more
Cell = collections.namedtuple("Cell", "transport op type ranks bytes")
Ratio = collections.namedtuple("Ratio", "median least most rounds")


def apart(hop, other):
    """How many times as far one hop is as another; infinite where one is not known."""
    return max(hop / other, other / hop) if hop and other else math.inf


def near(hop, usual):
    """Two that are, are of one hop."""
    return apart(hop, usual) < math.sqrt(SAME_HOP)


def spread(values):
    return Ratio(statistics.median(values), min(values), max(values), len(values)) if values else None


def points(rows, only_ours=False):
    """cell -> round -> contender -> its row; only what is right counts."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        if row["kind"] == "measurement" and "failure" not in row and row["only_ours"] == only_ours:
            cell = Cell(row["transport"], row["op"], row["type"], row["ranks"], row["bytes"])
            found[cell][row["round"]][row["contender"]] = row
    return found


def is_peer(name):
    return name not in OURS and name not in BOUNDS


def ratio(rounds, ours):
    """The fastest peer of a round over ours in the same round; of rounds in which all had one hop, where there are any."""
    near, values = [], []
    for of in rounds.values():
        peers = [row for name, row in of.items() if is_peer(name)]
        if peers and ours in of:
            values.append(min(row["us"] for row in peers) / of[ours]["us"])
            near += values[-1:] if same_hop([*peers, of[ours]]) else []
    return spread(near or values)


def hardest(rounds, ours):
    """The peer that is the hardest to beat, and what the ratio is to it alone."""
    by_peer = {}
    for peer in {name for of in rounds.values() for name in of if is_peer(name)}:
        alone = {number: {name: row for name, row in of.items() if name in (peer, ours)} for number, of in rounds.items()}
        if of := ratio(alone, ours):
            by_peer[peer] = of
    return min(by_peer.items(), key=lambda item: (item[1].median, item[0]))


def medians(rounds):
    times = collections.defaultdict(list)
    for of in rounds.values():
        for name, row in of.items():
            times[name].append(row["us"])
    return {name: statistics.median(us) for name, us in times.items()}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def markdown(head, lines):
    return "".join("| " + " | ".join(line) + " |\n" for line in [head, ["---"] * len(head), *lines])


def texts(of):
    return [f"{of.median:.2f}", f"{of.least:.2f}..{of.most:.2f}"] if of else ["-", "-"]


def cell_tables(all_points):
    out = ""
    groups = collections.defaultdict(list)
    for cell in sorted(all_points):
        groups[cell[:3]].append(cell)
    for (transport, op, kind), cells in sorted(groups.items(), key=lambda group: (group[0][0], group[0][2] != "float32", group[0][1:])):
        names = sorted({name for cell in cells for of in all_points[cell].values() for name in of if is_peer(name)})
        ours = [name for name in OURS if any(name in of for cell in cells for of in all_points[cell].values())]
        lines = []
        for cell in sorted(cells, key=lambda c: (c.ranks, c.bytes)):
            us = medians(all_points[cell])
            best = min((name for name in us if is_peer(name)), key=us.get, default="-")
            line = [str(cell.ranks), human(cell.bytes), *[microseconds(us.get(name)) for name in names + ours], best]
            ratios = [ratio(all_points[cell], name) for name in ours]
            for of in ratios:
                line += texts(of)
            lines.append([*line, f"{max((of.rounds for of in ratios if of), default=0)} of {len(all_points[cell])}"])
        head = ["ranks", "size", *names, *ours, "best peer"]
        for name in ours:
            head += ["ratio" if name == "gyre" else "heap ratio", "min..max"]
        out += f"\n### {op}, {kind}, {transport}\n\n" + markdown([*head, "rounds"], lines)
    return out


def means(all_points):
    """Geometric means of the cells' medians."""
    values = collections.defaultdict(list)
    for cell, rounds in all_points.items():
        for ours in OURS:
            of = ratio(rounds, ours)
            if of and cell.type == "float32":
                values[cell.transport, cell.op, ours, cell.ranks].append(of.median)
                values[cell.transport, cell.op, ours, "all"].append(of.median)
    ranks = sorted({key[3] for key in values if key[3] != "all"})
    lines = []
    for transport, op, ours in sorted({key[:3] for key in values}):
        cells = [values.get((transport, op, ours, n)) for n in [*ranks, "all"]]
        lines.append([transport, op, ours, *[f"{geometric_mean(of):.2f}" if of else "-" for of in cells], str(len(cells[-1]))])
    return markdown(["transport", "collective", "buffers", *[f"{n} ranks" for n in ranks], "all", "cells"], lines)


def same_hop(rows):
    """At their size, where their programs say; else of the whole run."""
    hops = [hop for row in rows if (hop := row.get("size_hop_ns") or row["hop_ns"])]
    return len(hops) == len(rows) and apart(max(hops), min(hops)) < SAME_HOP


def mark(size):
    """Of the bound, what is asked for; none: nothing between."""
    if size <= 2 << 10:
        return 0.7
    if 8 << 10 <= size <= 8 << 20:
        return 0.6
    return 0.85 if size >= 32 << 20 else None


def bound_table(all_points):
    """The larger of mapped and touched over gyre's on the heap's buffers, best batches, of rounds in which all three had the same hop."""
    lines = []
    for cell in sorted((c for c in all_points if c[:4] == ("shm", "all_reduce", "float32", 2)), key=lambda c: c.bytes):
        paired = [[of[name] for name in (*BOUNDS, "gyre-heap")] for of in all_points[cell].values() if {*BOUNDS, "gyre-heap"} <= set(of)]
        near = [rows for rows in paired if same_hop(rows)]
        share = spread([max(mapped["best_us"], touched["best_us"]) / heap["best_us"] for mapped, touched, heap in near])
        typical = spread([max(mapped["us"], touched["us"]) / heap["us"] for mapped, touched, heap in near])
        us = [statistics.median(column) for column in zip(*[[row["best_us"] for row in rows] for rows in near])] or [None] * 3
        asked = mark(cell.bytes)
        reached = "-" if not share or not asked else "yes" if share.median >= asked else "NO"
        lines.append([human(cell.bytes), *map(microseconds, us), *texts(share), f"{typical.median:.2f}" if typical else "-",
                      f"{asked or '-'}", reached, f"{len(near)} of {len(paired)}"])
    head = ["size", "mapped", "touched", "gyre-heap", "share", "min..max", "share of medians", "mark", "reached", "rounds of one hop"]
    return markdown(head, lines)


def halves(all_points, references):
    """(cell, ours) -> a 16-bit type's rate in elements over float32's, in the same round."""
    rates = {}
    for cell in sorted(c for c in all_points if c.type in ("float16", "bfloat16")):
        reference = references.get(cell._replace(type="float32", bytes=2 * cell.bytes), {})
        for ours in OURS:
            rates[cell, ours] = spread([reference[number][ours]["us"] / of[ours]["us"] for number, of in all_points[cell].items()
                                        if ours in of and ours in reference.get(number, {})])
    return rates


def halves_table(rates):
    lines = [[cell.transport, cell.type, str(cell.ranks), str(cell.bytes // 2), *[text for ours in OURS for text in texts(rates[cell, ours])]]
             for cell in sorted({cell for cell, _ in rates})]
    return markdown(["transport", "type", "ranks", "elements", "gyre", "min..max", "gyre-heap", "min..max"], lines)


def below_float32(rates):
    out = ""
    for (cell, ours), of in rates.items():
        if of and of.median < 1:
            out += (f"- {verdict(of)}: {cell.ranks} ranks, {cell.transport}, {cell.type}, {cell.bytes // 2} elements, {ours}: "
                    f"{of.median:.2f} ({of.least:.2f}..{of.most:.2f}) of float32's\n")
    return out


def verdict(of):
    """Of a median below 1: lost is what is behind even in its best round."""
    return "lost" if of.most < 1 else "level"


def not_led(all_points):
    out = ""
    for cell in sorted(all_points):
        for ours in OURS:
            of = ratio(all_points[cell], ours)
            if of and of.median < 1:
                peer, alone = hardest(all_points[cell], ours)
                out += (f"- {verdict(of)}: {cell.ranks} ranks, {cell.transport}, {cell.op}, {cell.type}, {human(cell.bytes)}, {ours}: "
                        f"{of.median:.2f} ({of.least:.2f}..{of.most:.2f}); to the hardest peer alone, {peer}, "
                        f"{alone.median:.2f} ({alone.least:.2f}..{alone.most:.2f})\n")
    return out


def failures(rows):
    counted = collections.Counter((row["contender"], row["ranks"], row["transport"], row["op"], row["type"], row["failure"])
                                  for row in rows if "failure" in row)
    return "".join(f"- {name}, {ranks} ranks, {transport}, {op}, {kind}: {why} ({count} times)\n"
                   for (name, ranks, transport, op, kind, why), count in sorted(counted.items())) or "None.\n"


def about(rows):
    run, rounds = rows[0], [row for row in rows if row["kind"] == "round"]
    versions = {name: version for row in rounds for name, version in row["versions"].items() if is_peer(name)}
    return (f"{len(rounds)} rounds of {statistics.median([row['seconds'] for row in rounds]):.0f} s, {run['date'][:10]}. {run['processor']}, "
            f"{run['cpus']} CPUs, Linux {run['kernel']}; {'; '.join(f'{name}: {version}' for name, version in sorted(versions.items()))}; "
            f"commits {', '.join(sorted({row['commit'][:12] for row in rounds}))}. Load average after each round: "
            f"{', '.join(str(row['load_average_1min']) for row in rounds)}.\n\nCommand: `{run['command']}`.\n") if rounds else "No rounds.\n"


def summary(rows):
    """Markdown. Times are medians over rounds, in us; ratio: the fastest peer of a round over gyre in the same round."""
    all_points = points(rows)
    rates = halves(all_points, points(rows, only_ours=True))
    return (about(rows) + "\nTimes are medians over rounds, in us. `ratio`: the fastest peer of a round over gyre in the same round, on ordinary "
            "buffers, its median and\nrange over the rounds in which a flag took all of them as long from CPU to CPU, where there are any; "
            "`heap ratio`: on buffers\nof gyre's shared heap. Above 1 gyre is faster.\n"
            "\n## Geometric means\n\n" + means(all_points) +
            "\n## Share of the bound, all-reduce between 2 ranks in shared memory\n\n" + bound_table(all_points) +
            "\n## 16-bit types: rate in elements over float32's\n\n" + halves_table(rates) +
            "\n## Where gyre does not lead\n\n" + (not_led(all_points) + below_float32(rates) or "None.\n") + "\n## What failed\n\n" + failures(rows) +
            "\n## Every cell\n" + cell_tables(all_points))
