"""Tables and JSON of what was measured."""

import json
import statistics
import sys

from rows import PUBLISHED
from stats import Ratio, goal_text, verdict


def size_text(size):
    if size >= 1 << 20:
        return f"{size >> 20} MiB"
    return f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def title(row, loop):
    return f"{row.name}, {loop}" if loop else row.name


def best(row, loop, size, results):
    """The other client that takes the least time."""
    others = [one for one in row.contestants() if not one.ours and not one.floor]
    if row.work == "connect":
        # One that does not wait for the server does less.
        others = [one for one in others if one.waits_for_close]
    measured = [one for one in others if results.of(row, loop, size, one, "us")]
    return min(
        measured,
        key=lambda one: statistics.median(results.of(row, loop, size, one, "us")),
        default=None,
    )


def ratio(row, loop, size, ours, other, what, results):
    """`None` where they were not measured in the same rounds."""
    a = results.of(row, loop, size, ours, what)
    b = results.of(row, loop, size, other, what) if other else []
    return Ratio(a, b) if a and len(a) == len(b) and any(b) else None


def comparisons(row, loop, results):
    """For each of our variants and each size: the best other client, the ratio and the goal."""
    for ours in row.contestants():
        if not ours.ours or row.goals.get(ours.name) is None:
            continue
        for size in row.sizes:
            other = best(row, loop, size, results)
            goal = row.goal(ours.name, loop, size)
            yield ours, size, other, ratio(row, loop, size, ours, other, "us", results), goal


def table(row, loop, results, quick):
    print(f"\n### {title(row, loop)}")
    unit = "bytes" if row.unit == "bytes" else "µs a message (processor time of the client)"
    print(f"\n{row.says}: {unit}\n")
    cells = [size_text(size) if size else "a connection" for size in row.sizes]
    print("| client | " + " | ".join(cells) + " |")
    print("|---|" + "---|" * len(cells))
    for one in row.contestants():
        cells = []
        for size in row.sizes:
            us = results.of(row, loop, size, one, "us")
            cpu = results.of(row, loop, size, one, "cpu_us")
            if not us:
                cells.append("–")
            elif row.unit == "bytes":
                cells.append(f"{statistics.median(us):,.0f}")
            else:
                cells.append(f"{statistics.median(us):.2f} ({statistics.median(cpu):.2f})")
        print(f"| {one.name} | " + " | ".join(cells) + " |")
    if quick:
        # A few messages say that it works, not how fast.
        return
    print()
    for ours, size, other, found, goal in comparisons(row, loop, results):
        print(line(size, ours, other, found, goal), flush=True)
        cpu = ratio(row, loop, size, ours, other, "cpu_us", results)
        if cpu is not None and row.unit != "bytes":
            wanted = row.cpu_goal if row.cpu_goal and ours.name == "playfield" else None
            said = f"; goal {goal_text(wanted)}: {verdict(cpu, wanted)}" if wanted else ""
            print(f"  - processor time {cpu.text(None)}{said}")
    if row.name == "sync-rr" and 512 in row.sizes:
        published(row, loop, results)


def line(size, ours, other, found, goal):
    where = size_text(size) if size else "memory"
    if found is None:
        return f"- {ours.name}, {where}: nothing to compare with"
    return (
        f"- {ours.name}, {where}: {found.text(goal)} of {other.name}; "
        f"goal {goal_text(goal)}: {verdict(found, goal)}"
    )


def published(row, loop, results):
    """Against what websocket-rs has published; where the floor is nearer, that is the goal."""
    named = {one.name: one for one in row.contestants()}
    ours, floor = named["playfield"], next(one for one in named.values() if one.floor)
    floor = ratio(row, loop, 512, ours, floor, "us", results)
    for name, value in PUBLISHED.items():
        found = ratio(row, loop, 512, ours, named[name], "us", results)
        if found is None:
            continue
        goal = ("speed", value)
        said = verdict(found, goal)
        if said != "met" and floor and floor.low <= 1:
            said = f"the floor is reached: {floor.text(None)} of its time"
        print(
            f"- websocket-rs' baseline, 512 B: {found.text(goal)} as fast as {name}; "
            f"goal {goal_text(goal)}: {said}"
        )


def verdicts(measured, results):
    for row in measured:
        for loop in row.loops:
            for ours, size, other, found, goal in comparisons(row, loop, results):
                if found is not None:
                    yield row, loop, ours, size, other, found, goal


def summary(measured, results, about):
    missed = [
        f"- {title(row, loop)}: " + line(size, ours, other, found, goal)[2:]
        for row, loop, ours, size, other, found, goal in verdicts(measured, results)
        if not found.reaches(goal)
    ]
    if not about["quick"]:
        print(f"\n### Goals that are missed: {len(missed)}\n")
        print("\n".join(missed) or "none")
    print(f"\nPython {about['python']}, {about['rounds']} rounds; " + ", ".join(
        f"{package} {version}" for package, version in sorted(results.versions.items())))
    checked = sum(one["verified"] for cell in results.cells.values() for one in cell)
    print(f"{checked:,} echoes compared, all equal")
    for line in missing(results, about):
        print(line)


def missing(results, about):
    """What was not measured, and why."""
    for package, why in results.missing.items():
        yield f"not measured: {package}: {why}"
    for (row, loop, name), why in results.failed.items():
        yield f"not measured: {name} in {row}{', ' + loop if loop else ''}: {why}"
    if about["tls"]:
        yield f"not measured: TLS: {about['tls']}"


def as_json(measured, results, about):
    """One row a line, as the other benchmarks print them; why something is missing, as errors."""
    compared = {
        (row.name, loop, size, ours.name): {
            "best": other.name, "ratio": found.median, "ratio_low": found.low,
            "ratio_high": found.high, "goal": goal_text(goal), "goal_met": found.reaches(goal),
        }
        for row, loop, ours, size, other, found, goal in verdicts(measured, results)
    }  # fmt: skip
    sentences = {row.name: row.says for row in measured}
    packages = {one.name: one.package for row in measured for one in row.contestants()}
    for key, cell in results.cells.items():
        row, loop, size, client = key
        us = [one["us"] for one in cell]
        found = {
            "suite": "python", "row": row, "says": sentences[row], "loop": loop, "size": size,
            "size_text": size_text(size), "client": client,
            "package_version": results.versions.get(packages[client]),
            "python": about["python"], "rounds": about["rounds"],
            "us": statistics.median(us), "us_min": min(us), "us_max": max(us),
            "cpu_us": statistics.median(one["cpu_us"] for one in cell),
            "compared": sum(one["verified"] for one in cell), "verified": True,
            **compared.get(key, {}),
        }  # fmt: skip
        print(json.dumps({name: rounded(value) for name, value in found.items()}))
    for line in missing(results, about):
        print(line, file=sys.stderr)


def rounded(value):
    return round(value, 3) if isinstance(value, float) else value
