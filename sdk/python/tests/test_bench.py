"""The benchmark runs, and compares each echo. How fast it is, tests don't ask."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

RUN = pathlib.Path(__file__).parents[1] / "bench" / "run.py"


def bench(*options):
    return subprocess.run(
        [sys.executable, str(RUN), *options], capture_output=True, text=True, timeout=300
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the bench needs Linux")
@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is missing for the echo server")
def test_quick():
    done = bench("--quick", "--json", "--package", "playfield")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(row["verified"] is True for row in rows)
    compared = {}
    for row in rows:
        if row["client"].startswith("playfield") and row["row"] != "idle":
            compared.setdefault(row["row"], []).append(row["compared"])
    assert len(compared) == (15 if "not measured: TLS" in done.stderr else 20)
    assert all(all(counts) for counts in compared.values())


def test_wrong_options():
    for options, said in [
        (["--row", "nope"], "there is no row nope"),
        (["--package", "nope"], "there is no package nope"),
        (["--rownds", "3"], "--rownds"),
        (["--rounds", "0"], "at least 1"),
    ]:
        done = bench(*options)
        assert done.returncode != 0
        assert said in done.stderr
        assert "rows: sync-rr" in done.stderr
