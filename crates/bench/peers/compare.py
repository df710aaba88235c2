"""Compares the rows of `playfield-bench bench packet --json` with those of a peer.

Usage: compare.py OURS PEER
"""

import json
import sys


def rows(path):
    with open(path, encoding="utf-8") as lines:
        return {(line["row"], line["form"]): line for line in map(json.loads, lines)}


ours, peer = rows(sys.argv[1]), rows(sys.argv[2])
print(f"{'row':>26} {'form':>9} {'ours, ns':>10} {'peer, ns':>10} {'peer / ours':>12}")
for (row, form), line in ours.items():
    if (row, form) in peer:
        other = peer[row, form]
        note = "" if line["verified"] and other["verified"] else "  not verified"
        ratio = other["ns_per_op"] / line["ns_per_op"]
        print(f"{row:>26} {form:>9} {line['ns_per_op']:>10.2f} {other['ns_per_op']:>10.2f} {ratio:>11.2f}x{note}")
