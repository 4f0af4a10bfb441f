"""Write DIST/weftline.cdx.json: what the wheels are made of, as a CycloneDX bill of materials.

The crates are those that `cargo metadata` resolves for the Python module; the libraries that pages embed are
those of `vega-licences.txt`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def crates() -> list[dict]:
    """Return the crates that the module is built from, itself left out, each with its licence."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--manifest-path"]
    done = subprocess.run([*command, ROOT / "crates/python/Cargo.toml"], capture_output=True, check=True)
    found = json.loads(done.stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting, seen = [found["resolve"]["root"]], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for edge in nodes[name]["deps"]:
            if any(kind["kind"] != "dev" for kind in edge["dep_kinds"]):
                waiting.append(edge["pkg"])
    return [
        component("cargo", package["name"], package["version"], package.get("license"))
        for package in sorted((packages[name] for name in seen), key=lambda package: package["name"])
        if package["source"]
    ]


def scripts() -> list[dict]:
    """Return the libraries in the drawing code of pages."""
    text = (ROOT / "python/weftline/assets/vega-licences.txt").read_text("utf-8")
    lines = re.findall(r"^-+\n(.*)$", text, re.MULTILINE)
    return [component("npm", *entry.split()[:2]) for line in lines for entry in line.split(", ")]


def component(kind: str, name: str, version: str, licence: str | None = None) -> dict:
    """Return one entry of the bill."""
    found: dict = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{name}@{version}",
    }
    return found | ({"licenses": [{"expression": licence.replace("/", " OR ")}]} if licence else {})


def main(dist: Path) -> None:
    """Write the bill."""
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "weftline", "version": version[1] if version else ""}
        },
        "components": [*crates(), *scripts()],
    }
    (dist / "weftline.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
