"""What a run depends on in addition to the text of its scenario: program, files and Python code, by digests.

It goes into summary.json as ``provenance``, so that two runs can be distinguished later by the content of
what they used, not by names. null stands for what could not be read: it is equal to nothing.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from weftline import _native, own_schemes, scenarios


def of(resolved: str, source: scenarios.Source, changes: Sequence[tuple[str, str]] = ()) -> str:
    """Return the provenance of a resolved scenario as JSON.

    ``build``; ``files``: digests of what the scenario names, by key (``workload.0.sizes``); ``controllers``:
    of the code of controllers in Python, by name; ``given``: the keys that the user wrote, not derived or
    default ones, for labels; and ``schemes``, where some of another crate take part: its name and version, by
    scheme.
    """
    from weftline import controllers

    laws = controllers.named_in(tomllib.loads(resolved), source.controllers) if source.controllers else []
    files = scenarios.files_by_key(resolved, source.base_dir)
    found = {
        "build": build(),
        "files": {key: _digest_of_files(source.base_dir, name) for key, name in files.items()},
        "controllers": {law.name: law.known_digest for law in laws},
        "given": scenarios.given(source, changes),
    }
    schemes = own_schemes.taking_part(resolved)
    return json.dumps(found | ({"schemes": schemes} if schemes else {}))


@cache
def build() -> str | None:
    """Return 12 hexadecimal digits of the engine's file, None if it cannot be read.

    The same version, built twice from different sources, gives different digits.
    """
    file = getattr(_native, "__file__", None)
    digest = _digest_of_file(Path(file)) if file else None
    return digest[:12] if digest else None


def _digest_of_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _digest_of_files(base_dir: str, name: str) -> str | None:
    try:
        return scenarios.digest_of(base_dir, name)
    except OSError:
        return None
