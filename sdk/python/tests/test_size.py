"""What users install is small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from playfield import _playfield


@pytest.mark.skipif(sys.platform != "linux", reason="debug information is elsewhere")
def test_the_extension_has_no_debug_information() -> None:
    extension = Path(_playfield.__file__).read_bytes()
    assert extension.startswith(b"\x7fELF")
    assert b".debug_info" not in extension
