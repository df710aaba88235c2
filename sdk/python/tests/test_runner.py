"""``scripts/python-tests``, which runs these tests."""

import contextlib
import os
import signal
import subprocess
import textwrap
import time

import pytest
from conftest import ROOT

SCRIPT = str(ROOT / "scripts" / "python-tests")


@contextlib.contextmanager
def begun(*arguments, **environment):
    """A run, which ends with the test at the latest."""
    process = subprocess.Popen(
        [SCRIPT, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "sdk" / "python" / "tests"),
            **environment,
        },
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_options_are_passed_on():
    with begun("tests/test_runner.py", "--collect-only", "-k", "passed_on") as process:
        output = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 0, output
    assert "test_options_are_passed_on" in output and "test_a_run_that_is_ended" not in output


@pytest.mark.parametrize("whole", [True, False], ids=["all", "one"])
def test_a_run_that_is_ended(tmp_path, whole):
    """Nothing that it has started is left."""
    (tmp_path / "test_node.py").write_text(
        textwrap.dedent(
            """
            import threading

            def test_node(example, capfd):
                address = example("cards")
                with capfd.disabled():
                    print(address, flush=True)
                threading.Event().wait()
            """
        )
    )
    if whole:
        # Some tests of each process.
        running = begun(PYTEST_ADDOPTS="-k 'bot_plays or scenarios or test_long'")
    else:
        running = begun("-p", "conftest", tmp_path / "test_node.py")
    with running as process:
        if whole:
            # The first test has passed.
            assert process.stdout.read(1) == b"."
        else:
            assert any(b"127.0.0.1:" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode != 0
        # A process that has let go of its output may still be ending.
        deadline = time.monotonic() + 60
        with pytest.raises(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(process.pid, 0)
                time.sleep(0.01)
