"""The client tests of `websockets`, run against this package: all pass but those that
`compat/failing.txt` lists, with the reasons."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

COMPAT = ROOT / "sdk" / "python" / "compat"


def tag():
    spec = importlib.util.spec_from_file_location("compat_run", COMPAT / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TAG


def source():
    """A checkout of `websockets`: the one that PLAYFIELD_WEBSOCKETS names, or one from GitHub. The
    distribution on PyPI has no tests of its clients."""
    if given := os.environ.get("PLAYFIELD_WEBSOCKETS"):
        return pathlib.Path(given)
    folder = ROOT / "target" / f"websockets-{tag()}"
    if not (folder / "tests").is_dir():
        url = "https://github.com/python-websockets/websockets"
        command = ["git", "clone", "--quiet", "--depth=1", f"--branch={tag()}", url, str(folder)]
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                timeout=120,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            )
        except (OSError, subprocess.SubprocessError):
            pytest.skip(
                "the source of websockets can't be fetched; PLAYFIELD_WEBSOCKETS names a checkout"
            )
    return folder


def run(names=()):
    known = ["--known", str(COMPAT / "failing.txt")]
    command = [sys.executable, str(COMPAT / "run.py"), str(source()), *known, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    results = {}
    for line in done.stdout.splitlines():
        word, name, why = (*line.split(" ", 2), "")[:3]
        if word in ("ok", "skipped", "failed") and results.get(name, ("", ""))[0] != "failed":
            results[name] = (word, why)
    assert results, done.stderr
    return results


def failed(results):
    return {name: why for name, (word, why) in results.items() if word == "failed"}


def test_the_client_tests_of_websockets():
    results = run()
    assert sum(word == "ok" for word, _ in results.values()) > 200
    # Their timeouts are short; on a machine with other work, one may need a second try.
    wrong = failed(results)
    assert not wrong or not failed(run(list(wrong)))
