"""What the tests of pages share."""

from __future__ import annotations

import os

import chromium
import pytest


@pytest.fixture(scope="module")
def browser():
    """A browser; without one the test is skipped with its reason, but under CI it fails."""
    why = chromium.missing()
    tried = os.environ.get("WEFTLINE_NO_BROWSER")
    if why and os.environ.get("CI") and not tried:
        pytest.fail(f"under CI pages are looked at in a browser: {why}")
    if why:
        # WEFTLINE_NO_BROWSER says why none could be installed.
        pytest.skip(tried or why)
    found = chromium.Chromium(chromium.program())
    yield found
    found.close()
