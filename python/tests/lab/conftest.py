"""The lab's tests need root and a kernel: where `weftline lab doctor` finds a problem they name it and skip.

``WEFTLINE_LAB=1`` (`make lab`) turns such a skip into a failure, so that a lost privilege is noticed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def dumbbell_text(name: str = "dumbbell", size: str = "3MB", limit: str = "100KB") -> str:
    """Return a scenario of two flows that share 20 Mb/s."""
    return f"""
name = "{name}"
seed = 1
[topology]
kind = "dumbbell"
left = 2
right = 2
host_link = {{ rate = "1Gbps", delay = "2ms" }}
bottleneck_link = {{ rate = "20Mbps", delay = "5ms" }}
[switch]
queue = {{ kind = "fifo", limit = "{limit}" }}
[transport]
kind = "tcp"
[[workload]]
kind = "flows"
flows = [
    {{ src = 0, dst = 2, size = "{size}", start = "0ms" }},
    {{ src = 1, dst = 3, size = "{size}", start = "0ms" }},
]
[measure]
queues = {{ every = "20ms" }}
"""


@pytest.fixture
def dumbbell(tmp_path: Path) -> Path:
    """A scenario that takes three seconds."""
    file = tmp_path / "dumbbell.toml"
    file.write_text(dumbbell_text())
    return file


@pytest.fixture
def machine() -> None:
    """Skip, or fail under `make lab`, where nothing can run."""
    from weftline.lab import doctor

    wrong = [one for one in doctor.findings(measure=False) if one.state == "problem"]
    if wrong:
        text = "; ".join(f"{one.name}: {one.text}" for one in wrong)
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)(f"lab doctor: {text}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run those of the lab next to no other test: they measure lateness, and `lab clean` is for all runs."""
    for item in items:
        if "machine" in getattr(item, "fixturenames", ()):
            item.add_marker("alone")
