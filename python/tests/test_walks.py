"""The pages that add schemes fit the engine as it is, and build.

That what they say fits is seen by applying it to a copy; the build takes minutes of a core, so it is done
where WEFTLINE_WALKS=1 asks for it (`make validate`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import walks

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = (
    "aimd",
    "drop_head",
    "shortest",
    "ring",
    "gossip",
    "congestion::tests::situations",
    "scenario::explain",
    "queue::read",
)
"""What is run of the engine's tests: those of the pages, and those that look through the registries."""


def copy(to: Path) -> Path:
    """Copy what cargo needs of the repository."""
    for name in ("Cargo.toml", "Cargo.lock", "rustfmt.toml"):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, to / name)
    for name in ("crates", "benches"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("target", "*.so"))
    return to


def applied(root: Path) -> list[str]:
    """Apply all pages below a folder; what does not fit."""
    wrong = []
    for page in walks.PAGES:
        for change in walks.changes((ROOT / page).read_text("utf-8")):
            problem = walks.apply(change, root)
            if problem:
                wrong.append(f"{page}: {problem}")
    return wrong


def test_every_step_of_the_pages_fits_the_files_that_it_names(tmp_path):
    assert applied(copy(tmp_path)) == []


@pytest.mark.parametrize("page", walks.PAGES)
def test_what_the_files_of_a_page_use_is_there_and_public_where_another_crate_may_use_it(page):
    text = (ROOT / page).read_text("utf-8")
    outside = "own-schemes.md" in text
    for change in walks.changes(text):
        if change.before:
            continue
        room = ROOT / Path(change.path).parent
        code = change.after.partition("#[cfg(test)]")[0]
        used = re.findall(r"^use super((?:::\w+)*)::(?:\{([^}]*)\}|(\w+));", code, re.M)
        assert used, page
        for module, several, one in used:
            names = re.findall(r"\w+", several or one)
            stem = module.removeprefix("::").replace("::", "/")
            files = [room / "mod.rs"] if not stem else [room / f"{stem}.rs", room / stem / "mod.rs"]
            [file] = [file for file in files if file.is_file()]
            for name in names:
                assert walks.offers(file.read_text("utf-8"), name, outside), f"{page}: {file}: {name}"


def test_the_page_on_a_transport_shows_the_registry_lines_of_its_patch():
    """`test_additions.py` applies and builds the patch itself."""
    page = (ROOT / "docs/adding-a-transport.md").read_text("utf-8")
    patch = (ROOT / "crates/sim/tests/additions/transport.patch").read_text("utf-8").splitlines()
    blocks = re.findall(r"^```diff\n(.*?)^```$", page, re.M | re.S)
    assert blocks
    registry = (ROOT / "crates/sim/src/transport/mod.rs").read_text("utf-8").splitlines()
    for line in "".join(blocks).splitlines():
        assert (line in patch) if line[0] == "+" else (line[1:] in registry), line


@pytest.mark.skipif(os.environ.get("WEFTLINE_WALKS") != "1", reason="takes minutes: set WEFTLINE_WALKS=1")
def test_what_the_pages_add_is_formatted_builds_and_passes_its_tests(tmp_path):
    root = copy(tmp_path)
    assert applied(root) == []
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    environment = {**os.environ, "CARGO_TARGET_DIR": target}
    subprocess.run(["cargo", "fmt", "-p", "weftline-sim", "--check"], cwd=root, check=True)
    command = ["cargo", "test", "-p", "weftline-sim", "--lib", "--", *TESTS]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-4000:]
    for test in (
        "congestion::aimd::tests::a_marked_round_trip",
        "queue::drop_head::tests::a_full_port",
        "balance::shortest::tests::the_port",
        "topology::ring::tests::opposite_hosts",
        "workload::gossip::tests::every_host",
    ):
        assert test in done.stdout
