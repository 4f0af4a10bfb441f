"""Install the wheel of this machine from DIST into an empty environment and run `weftline demo` there."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path


def main(dist: Path) -> None:
    """Raise where the wheel does not install alone, or its demo fails or takes more than a minute of CPU."""
    machine = platform.machine()
    wheels = [path for path in sorted(dist.glob("*.whl")) if path.stem.endswith(machine)]
    if not wheels:
        raise SystemExit(f"{dist}: no wheel for {machine}; `make wheel` builds one")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin/python"
        install = [python, "-m", "pip", "install", "--quiet", "--no-index", wheels[-1].resolve()]
        subprocess.run(install, check=True)
        started = time.monotonic()
        subprocess.run([Path(folder) / "bin/weftline", "demo"], cwd=folder, check=True)
        page = Path(folder) / "out/demo/report.html"
        size, seconds = page.stat().st_size, time.monotonic() - started
        print(f"{wheels[-1].name}: demo in {seconds:.0f} s, a page of {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
