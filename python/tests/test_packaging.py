"""What is shipped is whole: the source distribution, from which wheels are built, is looked into."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MATURIN = Path(sys.executable).parent / "maturin"


def listed(folder: str) -> set[str]:
    """Files of a folder that belong to the repository."""
    done = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Path:
    """The source distribution, unpacked."""
    for tool in (MATURIN, "git", "cargo"):
        if not shutil.which(tool):
            pytest.skip(f"{Path(tool).name} is not installed")
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    out = tmp_path_factory.mktemp("sdist")
    done = subprocess.run([MATURIN, "sdist", "-o", out], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        archive.extractall(out, filter="data")
    return next(path for path in out.iterdir() if path.is_dir())


def test_every_file_of_the_package_and_every_experiment_is_shipped(shipped):
    names = listed("python/weftline") | listed("experiments")
    assert [name for name in sorted(names) if not (shipped / name).is_file()] == []


def test_nothing_that_is_shipped_is_a_link():
    done = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("120000")] == []


def test_what_the_engine_compiles_in_is_shipped(shipped):
    missing = []
    for source in (shipped / "crates").glob("*/src/**/*.rs"):
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text("utf-8")):
            if not (source.parent / name).is_file():
                missing.append((source.name, name))
    assert missing == []


def test_the_lock_file_of_the_fuzzers_has_the_dependencies_of_the_crates():
    """`make fuzz` builds with --locked, outside the workspace: its lock file does not follow by itself."""
    lock = tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text("utf-8"))
    locked = {package["name"]: package.get("dependencies", []) for package in lock["package"]}
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        crate = tomllib.loads(manifest.read_text("utf-8"))
        if (name := crate["package"]["name"]) in locked:
            missing = {*crate["dependencies"]} - {entry.split()[0] for entry in locked[name]}
            assert not missing, (
                f"fuzz/Cargo.lock: run `cargo metadata --manifest-path fuzz/Cargo.toml` for {name}"
            )


def test_the_size_of_the_native_module_in_the_docs_is_not_stale():
    """Within 20 %, compressed as in a wheel; of a release build, which is stripped."""
    from weftline import _native

    module = Path(_native.__file__).read_bytes()
    # Names of sections, as linkers write them.
    if b"\0.symtab\0.shstrtab\0" in module or b"\0.symtab\0.strtab\0" in module:
        pytest.skip("a development build, whose symbols are not in the wheel")
    text = (ROOT / "docs/collect.md").read_text("utf-8")
    found = re.search(r"The module takes ([\d.]+) MB and ([\d.]+) MB compressed", text)
    assert found is not None
    for stated, size in zip(found.groups(), (len(module), len(zlib.compress(module))), strict=True):
        assert abs(float(stated) * 1e6 / size - 1) < 0.2, (
            f"docs/collect.md states {stated} MB of {size} bytes"
        )
