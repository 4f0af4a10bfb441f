"""tshark for tests: what it makes of a capture, with and without the dissector of our own headers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from weftline.cli.packets import dissector

CHECKS = ("ip.check_checksum", "tcp.check_checksum", "udp.check_checksum")
_CHECKSUMS = " || ".join(f"{layer}.checksum.status == 0" for layer in ("ip", "tcp", "udp"))
_WARNED = "(_ws.expert.severity >= 6291456 && _ws.expert.group != 33554432)"
COMPLAINTS = f"_ws.malformed || _ws.short || _ws.lua.error || {_CHECKSUMS} || {_WARNED}"
"""What no packet may be: malformed, cut short, with a wrong checksum, or warned of except for losses."""


def needed() -> None:
    """Skip the test where there is no tshark; under CI only where it could not be installed."""
    if shutil.which("tshark"):
        return
    why = os.environ.get("WEFTLINE_NO_TSHARK")
    if os.environ.get("CI") and not why:
        pytest.fail("no tshark: under CI it must be there (apt install tshark)")
    pytest.skip(why or "no tshark: apt install tshark")


def run(capture: Path, *options: str, ours: bool = True) -> list[str]:
    """Return the lines that tshark prints of a capture; `ours`: with our dissector."""
    checks = [word for check in CHECKS for word in ("-o", f"{check}:TRUE")]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(dissector())
        file.flush()
        script = ["-X", f"lua_script:{file.name}"] if ours else []
        command = ["tshark", "-n", *script, *checks, "-r", str(capture), *options]
        output = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert output.returncode == 0, output.stderr
    return output.stdout.splitlines()


def fields(capture: Path, *names: str, of: str = "", ours: bool = True) -> list[tuple[str, ...]]:
    """Return fields of every packet, or of those that a filter takes."""
    wanted = [word for name in names for word in ("-e", name)]
    chosen = ["-Y", of] if of else []
    lines = run(capture, *chosen, "-T", "fields", *wanted, ours=ours)
    return [tuple(line.split("\t")) for line in lines]


def protocols(capture: Path, *, ours: bool = True) -> Counter:
    """Return how many packets have which layers."""
    return Counter(row[0] for row in fields(capture, "frame.protocols", ours=ours))


def assert_clean(capture: Path) -> None:
    """Check that tshark complains of no packet, whether it knows our headers or not."""
    for ours in (False, True):
        assert run(capture, "-Y", COMPLAINTS, ours=ours) == []
