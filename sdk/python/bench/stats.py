"""Medians, ratios paired by round, and how sure they are."""

import random
import statistics

SAMPLES = 2000


def interval(values):
    """The 95 % bootstrap interval of the median."""
    chance = random.Random(1)
    count = len(values)
    medians = sorted(statistics.median(chance.choices(values, k=count)) for _ in range(SAMPLES))
    return medians[SAMPLES // 40], medians[-1 - SAMPLES // 40]


class Ratio:
    """Ours divided by another's, round by round."""

    def __init__(self, ours, other):
        self.values = [a / b for a, b in zip(ours, other, strict=True) if b > 0]
        self.median = statistics.median(self.values) if self.values else float("nan")
        self.low, self.high = interval(self.values) if self.values else (self.median, self.median)

    def reaches(self, goal):
        kind, value = goal
        if kind == "tie":
            return self.low <= value
        if kind == "ahead":
            return self.median < value
        if kind == "speed":
            return 1 / self.median >= value
        return self.median <= value

    def is_near(self, goal):
        """Whether the goal is within the interval."""
        kind, value = goal
        value = 1 / value if kind == "speed" else value
        return self.low <= value <= self.high

    def text(self, goal):
        """The ratio of times, or for a goal that is a speed, its inverse."""
        if goal and goal[0] == "speed":
            return f"{1 / self.median:.2f} × ({1 / self.high:.2f}–{1 / self.low:.2f})"
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def goal_text(goal):
    kind, value = goal
    return {
        "tie": "no worse",
        "ahead": "< 1",
        "speed": f"≥ {value} ×",
        "time": f"≤ {value}",
    }[kind]


def verdict(ratio, goal):
    if ratio.reaches(goal):
        return "met"
    return "missed, within the interval" if ratio.is_near(goal) else "missed"
