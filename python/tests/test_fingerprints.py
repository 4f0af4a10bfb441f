"""The same bits through the Python module as in the Rust tests, debug or release."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "fingerprints"
STORED = [
    line.split()
    for line in (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("name", "expected"), STORED)
def test_a_run_through_python_has_the_stored_fingerprint(name, expected, tmp_path):
    weftline = pytest.importorskip("weftline")
    pytest.importorskip("weftline._native")
    run = weftline.run(FOLDER / f"{name}.toml", out=tmp_path / name)
    assert run.summary["fingerprint"] == expected
