"""From measurements to figures: medians per contender, and the ratio of each round between its best peer and gyre."""
import collections
import statistics

Summary = collections.namedtuple("Summary", "ranks bytes medians best_peer ratios rounds")


def summarize(rows):
    """One Summary per (ranks, bytes). A contender's time counts only where the run ended well and the sums were right."""
    points = collections.defaultdict(lambda: collections.defaultdict(dict))  # (ranks, bytes) -> round -> contender -> us
    for row in rows:
        if "failure" not in row:
            points[row["ranks"], row["bytes"]][row["round"]][row["contender"]] = row["us"]
    return [summary_of(point, rounds) for point, rounds in sorted(points.items())]


def summary_of(point, rounds):
    times = collections.defaultdict(list)
    ratios = []
    for of_contender in rounds.values():
        for contender, us in of_contender.items():
            times[contender].append(us)
        peers = [us for contender, us in of_contender.items() if contender != "gyre"]
        if peers and "gyre" in of_contender:
            ratios.append(min(peers) / of_contender["gyre"])
    medians = {contender: statistics.median(of) for contender, of in times.items()}
    best = min((c for c in medians if c != "gyre"), key=medians.get, default=None)
    return Summary(*point, medians, best, ratios, len(rounds))


def row_of(summary):
    row = {"kind": "summary", "ranks": summary.ranks, "bytes": summary.bytes, "rounds": summary.rounds,
           "median_us": summary.medians, "best_peer": summary.best_peer}
    if summary.ratios:
        row |= {"ratio_median": statistics.median(summary.ratios), "ratio_min": min(summary.ratios), "ratio_max": max(summary.ratios),
                "ratio_rounds": len(summary.ratios)}
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
    head = ["ranks", "size", *names, "best peer", "ratio", "min..max", "rounds"]
    lines = [head, ["---"] * len(head)]
    for s in summaries:
        ratio = [f"{statistics.median(s.ratios):.2f}", f"{min(s.ratios):.2f}..{max(s.ratios):.2f}"] if s.ratios else ["-", "-"]
        cells = [microseconds(s.medians.get(name)) for name in names]
        lines.append([str(s.ranks), human(s.bytes), *cells, s.best_peer or "-", *ratio, str(s.rounds)])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
