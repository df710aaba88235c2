"""The walk of `docs/python.md`, from generated types to bots in the guide's duel."""

import os
import re
import subprocess
import sys

from conftest import ROOT, program

GUIDE = (ROOT / "docs" / "guide.md").read_text()
WALK = (ROOT / "docs" / "python.md").read_text()


def test_the_example_is_the_guides_program():
    step = GUIDE[GUIDE.index("## 4. Moves, replies and events") :]
    program = re.search(r"```rust,no_run\n(.*?)```", step, re.DOTALL)[1]
    assert (ROOT / "examples" / "duel.rs").read_text().endswith("\n\n" + program)


def test_bots_play_the_guides_duel(example, tmp_path):
    command = program("playfield-examples", "duel")
    generate = re.search(r"^cargo run -- (generate python --out) \.\./bots$", WALK, re.MULTILINE)[1]
    subprocess.run([*command, *generate.split(), str(tmp_path)], cwd=ROOT, check=True, timeout=300)
    types = (tmp_path / "duel.py").read_text()
    assert "class DuelState" in types and "class Choose" in types
    start = "python\nimport asyncio\n\nimport playfield\nfrom duel import"
    bots = next(part for part in WALK.split("```") if part.startswith(start))
    bots = bots.removeprefix("python\n").replace("127.0.0.1:7350", example("duel"))
    (tmp_path / "bots.py").write_text(bots)
    done = subprocess.run(
        [sys.executable, "-W", "error", "bots.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    won = dict(re.findall(r"^(Ann|Bob) has won (\d) of 5 rounds$", done.stdout, re.MULTILINE))
    assert sum(map(int, won.values())) == 5 and len(won) == 2
    assert len(re.findall(r"^Ann sees \[\d+, \d+\]$", done.stdout, re.MULTILINE)) == 5
