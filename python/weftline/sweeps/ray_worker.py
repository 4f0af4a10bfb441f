"""What a worker of a Ray cluster does: runs a few points and gives their files back."""

from __future__ import annotations

import hashlib
import math
import platform
import shutil
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from weftline import _native, own_schemes, provenance, runs, scenarios
from weftline.controllers import Law
from weftline.errors import InputError, RunFailed
from weftline.scenario import Scenario


def identity() -> dict[str, str]:
    """Return what decides the bits of a run, and the form of its results, in this process.

    ``weftline`` and ``python``: the versions; ``schemes``: those of another crate, with its build; ``build``:
    digest of the engine's file; ``code``: of weftline's own Python; ``arithmetic``: of log and pow, which the
    C library rounds and CUBIC uses.
    """
    return {
        "weftline": _native.version(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "schemes": own_schemes.identity(),
        "build": provenance.build() or "",
        "code": _code(),
        "arithmetic": _arithmetic(),
    }


@cache
def _code() -> str:
    package, code = Path(runs.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] not in ("experiments", "templates"):
            code.update(f"{inside.as_posix()}\0".encode() + path.read_bytes())
    return code.hexdigest()[:12]


@cache
def _arithmetic() -> str:
    numbers = [1 + 9.7 * i / 4096 for i in range(1, 4096)]
    rounded = [math.log(x) for x in numbers] + [math.pow(x, y) for x in numbers for y in (1 / 3, 3.0)]
    return hashlib.sha256(struct.pack(f"{len(rounded)}d", *rounded)).hexdigest()[:12]


def run_group(
    specs: Sequence[Mapping[str, Any]], files: Mapping[str, Any], fetch: Any = None
) -> dict[str, Any]:
    """Run points one after the other.

    Parameters
    ----------
    specs : sequence of dict
        Of each point ``key``, ``text`` (the resolved scenario), ``file`` (its name in messages),
        ``base_dir``, ``threads``, ``named``: the files that each name in it stands for, ``files``: their
        digests, and ``controllers``: those of its controllers in Python.
    files : mapping of digest to bytes
        What is in these files, controllers pickled, or what `fetch` makes it of.

    Returns
    -------
    dict
        ``identity``, and ``results``: of each point ``key``, ``seconds``, ``hops`` and ``files``, the bytes
        of its folder by name; where it failed, ``error`` and ``folder``, what the error calls the folder.
    """
    known = {digest: (fetch(data) if fetch else data) for digest, data in files.items()}
    results = [_one(spec, known) for spec in specs]
    return {"identity": identity(), "results": results}


def _one(spec: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="weftline-"))
    # The results are on a disk that counts when the sweep has written them into its store.
    out = folder / "out"
    try:
        text, moved = _with_files(spec, files, folder)
        laws = {name: _law(name, files[digest]) for name, digest in spec["controllers"].items()}
        source = scenarios.Source(text=text, file=spec["file"], base_dir=spec["base_dir"], controllers=laws)
        scenario = Scenario.of(source, [], seed=None)
        run = scenario.start(threads=spec["threads"], out=out, force=True, sync=False)
        if run.summary.get("status") == "memory-limit":
            return _failed(spec, run.summary.get("reason") or "the memory limit was reached", began, out)
        if moved:
            file = run.out / "scenario.toml"
            text = file.read_text("utf-8")
            for here, there in moved.items():
                text = text.replace(here, there)
            file.write_text(text, "utf-8", newline="")
            _native.write_digests(str(run.out))
        hops = run.summary.get("packet_hops") or 0
        return {"key": spec["key"], "seconds": time.monotonic() - began, "hops": hops, "files": _files(out)}
    except (InputError, RunFailed, OSError) as error:
        return _failed(spec, str(error), began, out)
    except Exception:
        raise
    except BaseException as error:  # a panic of the engine is none of Python's ordinary exceptions
        return _failed(spec, f"internal error of weftline, please report it: {error}", began, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _law(name: str, data: bytes) -> Law:
    from ray import cloudpickle

    try:
        return Law(name, cloudpickle.loads(data), is_of_one_run=True)
    except Exception as error:
        raise InputError(
            f'controller "{name}" cannot be had on this node (workers need the same Python, and the packages '
            f"that it imports): {type(error).__name__}: {error}"
        ) from None


def _failed(spec: Mapping[str, Any], why: str, began: float, out: Path) -> dict[str, Any]:
    found = {"key": spec["key"], "seconds": time.monotonic() - began, "hops": 0, "error": why}
    return {**found, "folder": str(out), "files": _files(out)}


def _files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the files of a run's folder by name; empty if there is none."""
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}


def _with_files(
    spec: Mapping[str, Any], files: Mapping[str, bytes], folder: Path
) -> tuple[str, dict[str, str]]:
    """Return the scenario with its files where this machine has them, and their names here by TOML text."""
    text, moved = spec["text"], {}
    for number, (name, paths) in enumerate(spec["named"].items()):
        here = folder / f"{number}" / Path(name).name
        here.parent.mkdir()
        for path in paths:
            (here.parent / Path(path).name).write_bytes(files[spec["files"][path]])
        old, new = scenarios.value_to_toml(name), scenarios.value_to_toml(str(here))
        text = text.replace(old, new)
        moved[new] = old
    return text, moved
