"""A scheme is a file: the patches of crates/sim/tests/additions each add one, and then it works everywhere.

A patch adds one file below ``src``, at most two lines to its room's registry, and one test. All patches are
applied to a copy of the repository, which is built once. The crates of the copy have another version, so that
cargo compiles the dependencies only once for both.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import own_crate
import pytest

from weftline import scenarios

ROOT = own_crate.ROOT
SOURCES = "crates/sim/src/"
PATCHES = sorted((ROOT / "crates/sim/tests/additions").glob("*.patch"))
NOT_OPTIMISED = 'profile.dev.package."*".opt-level=0', "profile.dev.opt-level=0", "profile.dev.debug=false"

TEST = re.compile(r"^crates/sim/(src/.*/(tests|situations?|testing)|tests/.*|src/.*/tests/.*)\.rs$")
"""Files that are compiled for tests only."""
STORED = "crates/sim/tests/fingerprints"
"""Stored results and texts. Several additions change the same lines there, so the copy keeps the old ones."""


@dataclass(frozen=True)
class Changed:
    """What a patch does to one file."""

    path: str
    new: bool
    added: list[str]
    removed: list[str]


def changed(patch: Path) -> list[Changed]:
    """Return the files that a patch changes."""
    found = []
    for part in re.split(r"^diff --git ", patch.read_text("utf-8"), flags=re.M)[1:]:
        (path,) = re.findall(r"^\+\+\+ b/(.*)$", part, re.M)
        body = part.partition("\n@@")[2].splitlines()
        lines = {sign: [line[1:] for line in body if line.startswith(sign)] for sign in "+-"}
        found.append(Changed(path, "\nnew file mode" in part, lines["+"], lines["-"]))
    return found


def new_file(patch: Path) -> Changed:
    """Return the file below ``src`` that a patch adds."""
    (found,) = [file for file in changed(patch) if file.new and file.path.startswith(SOURCES)]
    return found


def name_of(patch: Path) -> str:
    """Return the name of the scheme that a patch adds, as a scenario has it."""
    return re.findall(r'^\s+name: "([\w-]+)",$', "\n".join(new_file(patch).added), re.M)[0]


def choice(patch: Path) -> dict[str, str]:
    """Return the setting that chooses the scheme of a patch."""
    room = new_file(patch).path.removeprefix(SOURCES).partition("/")[0]
    keys = {
        "queue": "switch.queue.kind",
        "balance": "switch.balancer.kind",
        "transport": "transport.kind",
        "congestion": "transport.controller.kind",
    }
    more = {"transport.kind": "rdma"} if room == "congestion" else {}
    return {**more, keys[room]: name_of(patch)}


def test_there_is_a_patch_for_a_queue_a_balancer_and_a_transport():
    assert {"queue", "balancer", "transport"} <= {patch.stem for patch in PATCHES}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_is_one_file_one_line_of_a_registry_and_a_test(patch):
    files, file = changed(patch), new_file(patch)
    tests = [other for other in files if other != file and TEST.search(other.path)]
    others = [other for other in files if other != file and other not in tests]
    (registry,) = [other for other in others if not other.path.startswith(STORED)]
    assert len(tests) <= 1
    room = file.path.removeprefix(SOURCES).partition("/")[0]
    assert Path(registry.path).parts[3] == room and not registry.new and not registry.removed
    module, kind = Path(file.path).stem, r"\w+ = (\w+<)?(\w+::)?%s::\w+>?;"
    module = Path(file.path).parent.name if module == "mod" else module
    expected = [rf"(pub(\(crate\))? )?mod {module};", kind % module]
    lines = [line.strip() for line in registry.added]
    assert len(lines) <= 2 and all(any(re.fullmatch(form, line) for form in expected) for line in lines), (
        lines
    )
    assert any(
        "#[test]" in line or re.match(r"def test_", line) for it in (file, *tests) for line in it.added
    )


@pytest.fixture(scope="module")
def tree() -> Path:
    """A copy of the repository with all patches applied."""
    own_crate.need("git", "cargo", own_crate.MATURIN)
    there = own_crate.TARGET / "own-crates/additions"
    shutil.rmtree(there, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, there / name, follow_symlinks=False)
    for name in ("Cargo.toml", "Cargo.lock"):
        text = (there / name).read_text("utf-8")
        ours = r'(\[workspace\.package\]\nversion = "|name = "weftline-[a-z]+"\nversion = ")[^"]+'
        (there / name).write_text(re.sub(ours, r"\g<1>0.0.1", text), "utf-8")
    apart = {**os.environ, "GIT_CEILING_DIRECTORIES": str(there.parent)}
    for patch in PATCHES:
        command = ["git", "apply", f"--exclude={STORED}/*", "--whitespace=error", str(patch)]
        done = subprocess.run(command, cwd=there, env=apart, capture_output=True, text=True)
        assert done.returncode == 0, f"{patch.name} does not apply any more:\n{done.stderr}"
    return there


@pytest.fixture(scope="module")
def site(tree) -> Path:
    """weftline as built from the copy."""
    return own_crate.built(tree, *NOT_OPTIMISED)


@pytest.fixture
def weftline(site, tmp_path):
    """Its command line, in a folder with a scenario and a sweep over the additions."""
    (tmp_path / "added.toml").write_text(own_crate.SCENARIO + 'kind = "tcp"\n')
    variants = [{"name": name_of(patch), "set": choice(patch)} for patch in PATCHES]
    sweep = {"scenario": "added.toml", "seeds": 1, "axis": [{"name": "added", "variants": variants}]}
    (tmp_path / "sweep.toml").write_text(scenarios.to_toml(sweep))
    return functools.partial(own_crate.call, [sys.executable, "-m", "weftline"], [site], tmp_path)


def test_the_tests_of_the_patches_pass_as_do_those_of_every_scheme(tree):
    given = [word for setting in NOT_OPTIMISED for word in ("--config", setting)]
    modules = [
        file.path.removeprefix(SOURCES).removesuffix(".rs").removesuffix("/mod").replace("/", "::") + "::"
        for file in map(new_file, PATCHES)
    ]
    manifest = tomllib.loads((tree / "crates/sim/Cargo.toml").read_text("utf-8"))
    binaries = {test["name"] for test in manifest["test"]}
    changed_tests = {
        Path(file.path).relative_to("crates/sim/tests").parts[0].removesuffix(".rs")
        for patch in PATCHES
        for file in changed(patch)
        if file.path.startswith("crates/sim/tests/")
    }
    targets = {name if name in binaries else "runs" for name in changed_tests}
    tests = [word for target in sorted(targets) for word in ("--test", target)]
    command = ["cargo", *given, "test", "--offline", "-p", "weftline-sim"]
    # Presets are of networks of thousands of hosts, and of no scheme.
    rooms = [*modules, "describe::", "scenario::", "--skip", "scenario::presets::"]
    own_crate.run([*command, "--lib", "--", *rooms], tree)
    if tests:
        own_crate.run([*command, *tests, "--", *map(name_of, PATCHES)], tree)


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_an_addition_is_listed_explained_and_run(patch, weftline, tmp_path):
    name = name_of(patch)
    listed = json.loads(weftline("list", "--json").stdout)
    assert name in [entry["name"] for kind in listed.values() for entry in kind]
    explained = json.loads(weftline("explain", name, "--json").stdout)
    assert explained["title"] and explained["source"] and explained["validation"]
    assert f'"{name}"' in weftline("schema").stdout
    sets = [word for key, value in choice(patch).items() for word in ("--set", f"{key}={value}")]
    found = [
        json.loads(
            weftline("run", "added.toml", *sets, "--threads", n, "--out", n, "--json", "--quiet").stdout
        )
        for n in ("1", "2")
    ]
    assert found[0]["status"] == "done" and found[0]["flows_done"] == found[0]["flows"] > 0
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    assert json.loads(weftline("check", "1/scenario.toml", "--json").stdout)["topology"]["hosts"] == 8


def test_additions_are_swept_and_reported(weftline, tmp_path):
    weftline("sweep", "sweep.toml", "--out", "store", "--quiet")
    assert len(list((tmp_path / "store/points").iterdir())) == len(PATCHES)
    weftline("report", "store", "--out", "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert [name for name in map(name_of, PATCHES) if name not in page] == []
