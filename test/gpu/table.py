#!/usr/bin/env python3
"""The figures of measure-gpu as a table: table.py RESULTS.jsonl"""
import json
import sys

ORDER = ("part", "machine", "copy of the card", "step", "round trip", "small", "all_reduce", "processes", "torch networks")


def words(value):
    if isinstance(value, float):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return str(value)


def main(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for figure in ORDER:
        rows = [{key: words(value) for key, value in line.items() if key != "figure"} for line in lines if line["figure"] == figure]
        if not rows:
            continue
        names = list(rows[0])
        widths = [max(len(name), *(len(row.get(name, "")) for row in rows)) for name in names]
        print(f"\n{figure}")
        print("  ".join(name.rjust(width) for name, width in zip(names, widths)))
        for row in rows:
            print("  ".join(row.get(name, "").rjust(width) for name, width in zip(names, widths)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
