"""The same bits and the same texts: every case of the engine's fingerprints, through the Python module.

`crates/sim/tests/fingerprints/texts.txt` stores a digest of each text that people and programs read: of every
case the resolved scenario and summary.json (without what depends on the machine), the list of names, what
`explain` prints of each, and the schema. A changed line is a change that users see: it needs its reason in
the commit. ``WEFTLINE_ACCEPT=1`` stores what is found; ``WEFTLINE_TEXTS=DIR`` writes the texts themselves, to
compare two states of the code with diff.
"""

import hashlib
import json
import os
import tomllib
from pathlib import Path

import pytest

weftline = pytest.importorskip("weftline")
native = pytest.importorskip("weftline._native")

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "sim" / "tests" / "fingerprints"
TEXTS = FOLDER / "texts.txt"
CASES = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))["case"]
STORED = {
    line.split()[0]: line.split()[1]
    for line in (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
}
MACHINE = (
    "cpu_seconds",
    "wall_seconds",
    "packet_hops_per_cpu_second",
    "peak_memory_bytes",
    "versions",
    "provenance",
    "share_alone",
    "threads_ratio",
    "threads",
    "regions",
    "windows",
    "balance",
    "most_speedup",
    "crossing_share",
)
"""Keys of summary.json that depend on the machine or the build."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("fingerprints")
    return {
        name: weftline.run(FOLDER / f"{case['base']}.toml", set=case.get("set"), out=out / name)
        for name, case in CASES.items()
    }


def test_runs_through_python_have_the_stored_fingerprints(runs):
    found = {name: run.summary["fingerprint"] for name, run in runs.items()}
    assert found == STORED


def texts(runs) -> dict[str, str]:
    found = {}
    for name, run in runs.items():
        # Some files are named by their whole path, which is that of this checkout.
        resolved = (run.out / "scenario.toml").read_text(encoding="utf-8")
        found[f"resolved/{name}"] = resolved.replace(f"{FOLDER}{os.sep}", "")
        summary = {key: value for key, value in run.summary.items() if key not in MACHINE}
        found[f"summary/{name}"] = json.dumps(summary, indent=1)
    names = json.loads(native.names())
    found["list"] = json.dumps(names, indent=1)
    found["schema"] = json.dumps(json.loads(native.schema()), indent=1)
    for kind, entries in names.items():
        for entry in entries:
            if entry["name"] not in ("none", "auto"):
                found[f"explain/{kind}/{entry['name']}"] = json.dumps(
                    json.loads(native.explain(entry["name"])), indent=1
                )
    return found


def test_texts_are_those_that_are_stored(runs):
    found = texts(runs)
    if folder := os.environ.get("WEFTLINE_TEXTS"):
        for name, text in found.items():
            path = Path(folder, name.replace("/", "-") + ".txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
    digests = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in found.items()}
    if os.environ.get("WEFTLINE_ACCEPT"):
        TEXTS.write_text("".join(f"{name} {digest}\n" for name, digest in digests.items()), encoding="utf-8")
    stored = dict(line.split() for line in TEXTS.read_text(encoding="utf-8").splitlines())
    changed = sorted(name for name in digests.keys() | stored.keys() if digests.get(name) != stored.get(name))
    assert not changed, f"other texts than those stored (WEFTLINE_ACCEPT=1 stores them): {', '.join(changed)}"
