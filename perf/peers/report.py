"""From measurements to figures: medians per contender, and the ratio of each round between its best peer and gyre, on ordinary buffers and
on those of gyre's shared heap."""
import collections
import statistics

OURS = ("gyre", "gyre-heap")
Summary = collections.namedtuple("Summary", "ranks bytes medians best_peer ratios rounds")  # ratios: by ours


def summarize(rows):
    """One Summary per (ranks, bytes). A contender's time counts only where the run ended well and the sums were right."""
    points = collections.defaultdict(lambda: collections.defaultdict(dict))  # (ranks, bytes) -> round -> contender -> us
    for row in rows:
        if "failure" not in row:
            points[row["ranks"], row["bytes"]][row["round"]][row["contender"]] = row["us"]
    return [summary_of(point, rounds) for point, rounds in sorted(points.items())]


def summary_of(point, rounds):
    times = collections.defaultdict(list)
    ratios = {ours: [] for ours in OURS}
    for of_contender in rounds.values():
        for contender, us in of_contender.items():
            times[contender].append(us)
        peers = [us for contender, us in of_contender.items() if contender not in OURS]
        for ours in OURS:
            if peers and ours in of_contender:
                ratios[ours].append(min(peers) / of_contender[ours])
    medians = {contender: statistics.median(of) for contender, of in times.items()}
    best = min((c for c in medians if c not in OURS), key=medians.get, default=None)
    return Summary(*point, medians, best, ratios, len(rounds))


def row_of(summary):
    row = {"kind": "summary", "ranks": summary.ranks, "bytes": summary.bytes, "rounds": summary.rounds,
           "median_us": summary.medians, "best_peer": summary.best_peer}
    for ours, ratios in summary.ratios.items():
        if ratios:
            prefix = "" if ours == "gyre" else "heap_"
            row |= {f"{prefix}ratio_median": statistics.median(ratios), f"{prefix}ratio_min": min(ratios),
                    f"{prefix}ratio_max": max(ratios), f"{prefix}ratio_rounds": len(ratios)}
    return row


def human(size):
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"


def microseconds(us):
    return "-" if us is None else f"{us:.0f}" if us >= 100 else f"{us:.2f}"


def table(summaries, names):
    """Markdown; also what is printed. Times are medians over rounds, in us."""
    head = ["ranks", "size", *names, "best peer", "ratio", "min..max", "heap ratio", "min..max", "rounds"]
    lines = [head, ["---"] * len(head)]
    for s in summaries:
        ratio = []
        for ratios in s.ratios.values():
            ratio += [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}..{max(ratios):.2f}"] if ratios else ["-", "-"]
        cells = [microseconds(s.medians.get(name)) for name in names]
        lines.append([str(s.ranks), human(s.bytes), *cells, s.best_peer or "-", *ratio, str(s.rounds)])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
