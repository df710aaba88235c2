"""Type checkers find nothing wrong with the package, the programs of the documentation, and what
``generate python`` writes. They are skipped where they are not installed."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

GENERATED = ROOT / "crates" / "codegen" / "tests" / "python"

#: What a checker is to find wrong, at these lines.
WRONG = """
import playfield
import playfield.sync
from duel import Dealt, Play


def of_a_card(dealt: Dealt) -> None:
    print(dealt.nothing)  # wrong


def bot(client: playfield.sync.Client) -> None:
    room = client.join_or_create("duel", key=7)  # wrong
    room.request(Play(cards=[], face_down="yes"))  # wrong
    left: int = room.request(Play(cards=[], face_down=True), reply=int, timeout=1)
    text: str = room.request(Play(cards=[], face_down=True), reply=int)  # wrong
    room.on(Dealt, lambda dealt: print(dealt.to, dealt.form))  # wrong
    room.on_left(lambda why: print(why.code, left, text))
    room.on_left(lambda why: print(why.cod))  # wrong


async def waits(room: playfield.Room) -> None:
    await room.until(lambda state: state.round > 3)
    dealt = await room.request("Deal", reply=Dealt)
    print(dealt.to + "x")  # wrong
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the programs, and the generated files that they import."""
    folder = tmp_path_factory.mktemp("programs")
    for path in GENERATED.glob("*.py"):
        shutil.copy(path, folder / path.name)
    # The guide's duel has another schema than that of the generator's tests.
    duel = (GENERATED / "duel.py").read_text()
    guide = "\n\n@_dataclasses.dataclass(frozen=True)\nclass %s:\n    %s: %s\n"
    duel += guide % ("Choose", "index", "int") + guide % ("Shown", "numbers", "_abc.Sequence[int]")
    (folder / "duel.py").write_text(duel)
    text = (ROOT / "docs" / "python.md").read_text()
    found = [
        part for part in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "main()" in part
    ]
    found += [
        part
        for part in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "sync.connect(" in part
    ]
    assert len(found) >= 4
    for number, program in enumerate(found):
        if program.startswith("AGAIN"):
            play = "async def play(room: playfield.Room) -> None: ...\n\n"
            program = f"import asyncio\nimport playfield\n\n{play}{program}"
        (folder / f"program{number}.py").write_text(program)
    (folder / "wrong.py").write_text(WRONG.lstrip("\n"))
    return folder


def is_wrong(lines):
    """Whether the lines are those that are to be found."""
    marked = [
        number for number, line in enumerate(WRONG.lstrip("\n").split("\n"), 1) if "# wrong" in line
    ]
    assert sorted(set(lines)) == marked


def test_mypy(programs):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
         str(programs / "cache"), "--follow-imports", "normal", str(programs)],
        env={**os.environ, "MYPYPATH": str(ROOT / "sdk" / "python")},
        cwd=programs, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    errors = [
        line
        for line in done.stdout.splitlines()
        if ": error: " in line and "/websocket/" not in line
    ]
    wrong = [line for line in errors if line.startswith("wrong.py:")]
    assert [line for line in errors if line not in wrong] == [] and done.stderr == ""
    is_wrong([int(line.split(":")[1]) for line in wrong])


def test_pyright(programs):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    settings = {"extraPaths": [str(ROOT / "sdk" / "python")], "typeCheckingMode": "standard"}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(programs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = [
        one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"
    ]
    wrong = [one for one in found if one["file"].endswith("wrong.py")]
    assert [one for one in found if one not in wrong] == []
    is_wrong([one["range"]["start"]["line"] + 1 for one in wrong])
