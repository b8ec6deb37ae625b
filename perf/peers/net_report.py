"""From measurements of net plugins to figures: medians per contender and case, and ratios to a reference within each round."""
import collections
import statistics

UNITS = {"bandwidth": ("mb_per_s", "MB/s"), "latency": ("us", "us"), "rate": ("messages_per_s", "1000/s")}
REFERENCES = {"shm": "ucx-shm", "tcp": "ucx-tcp"}


def figure_of(row):
    """The one number of a row; small messages count by their number."""
    return row[UNITS["rate" if row["case"] == "rate" else row["kind_of_case"]][0]]


def by_case(rows):
    """case -> contender -> round -> figure, of the rows that went well."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in rows:
        if "failure" not in row:
            found[row["case"], row["bytes"], row["connections"]][row["contender"]][row["round"]] = figure_of(row)
    return found


def summaries(rows):
    transports = {row["contender"]: row["transport"] for row in rows}
    for (case, size, connections), of_contenders in by_case(rows).items():
        for contender, rounds in of_contenders.items():
            values = sorted(rounds.values())
            reference = of_contenders.get(REFERENCES[transports[contender]], {})
            pairs = [(value, reference[number]) for number, value in rounds.items() if number in reference]
            ratios = sorted(value / other for value, other in pairs)
            yield {"kind": "summary", "case": case, "bytes": size, "connections": connections, "contender": contender,
                   "transport": transports[contender], "median": statistics.median(values), "least": values[0], "most": values[-1],
                   "rounds": len(values), "ratio": statistics.median(ratios) if ratios else None,
                   "ratio_least": ratios[0] if ratios else None, "ratio_most": ratios[-1] if ratios else None,
                   "difference": statistics.median(value - other for value, other in pairs) if pairs else None}


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number_text(case, value):
    if case == "latency":
        return f"{value:.2f}"
    return f"{value / 1e3:.0f}" if case == "rate" else f"{value:.0f}"


def table(found):
    """A row per case and contender; the ratio is to ucx_perftest over the same transport."""
    lines = ["| transport | case | size | connections | contender | median | least..most | ratio | least..most | difference | rounds |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    order = {"bandwidth": 0, "rate": 1, "latency": 2}
    for s in sorted(found, key=lambda s: (s["transport"], order[s["case"]], s["bytes"], s["connections"])):
        case = s["case"]
        spread = f"{number_text(case, s['least'])}..{number_text(case, s['most'])}"
        ratio, of_ratio, difference = "", "", ""
        if s["ratio"] is not None and s["contender"] != REFERENCES[s["transport"]]:
            ratio, of_ratio = f"{s['ratio']:.2f}", f"{s['ratio_least']:.2f}..{s['ratio_most']:.2f}"
            difference = f"{s['difference']:+.2f}" if case == "latency" else ""
        lines.append(f"| {s['transport']} | {case}, {UNITS[case][1]} | {size_text(s['bytes'])} | {s['connections']} | {s['contender']} | "
                     f"{number_text(case, s['median'])} | {spread} | {ratio} | {of_ratio} | {difference} | {s['rounds']} |")
    return "\n".join(lines) + "\n"
