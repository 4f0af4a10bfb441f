"""A working directory for the tests of PINT."""

from __future__ import annotations

import pytest
from pint_files import LINE, QUERIES


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory with a file of queries and a topology."""
    (tmp_path / "queries.toml").write_text(QUERIES)
    (tmp_path / "line.gml").write_text(LINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path
