"""Schemes of another crate, in a module that replaces weftline's engine: see docs/own-schemes.md.

The module is used if it is imported before weftline, or if WEFTLINE_ENGINE names it, as in child processes of
a process that uses it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tomllib
from functools import cache
from pathlib import Path

VARIABLE = "WEFTLINE_ENGINE"
"""Names the module to import in place of weftline's engine."""


def take_engine(name: str) -> None:
    """Import the module `name`, whose engine then is the one of this process.

    Raises
    ------
    ImportError
        If it cannot be imported, or does not contain an engine.
    """
    own = f"{VARIABLE} is {name!r}"
    if not all(part.isidentifier() for part in name.split(".")):
        raise ImportError(f"{own}: expected the name of a Python module, or unset {VARIABLE}")
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{own}, the module whose engine weftline is to use, and it cannot be imported "
            f"({error}): install it for {sys.executable} on {os.uname().nodename}, or unset {VARIABLE}"
        ) from error
    engine = getattr(sys.modules.get("weftline._native"), "__file__", None)
    if engine is None or Path(engine).parent == Path(__file__).parent:
        raise ImportError(f"{own}, which does not contain an engine: unset {VARIABLE}")


def take_engine_or_exit(name: str) -> None:
    """Import the module `name` like `take_engine`; the command line then ends with the error alone.

    The import of weftline fails, so the command line's own handling of errors is not there yet.
    """
    try:
        take_engine(name)
    except ImportError as error:
        # `python -m weftline`, or the installed command.
        if Path(sys.argv[0]).name not in ("-m", "weftline"):
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


@cache
def known() -> dict[str, str]:
    """Return the schemes of another crate by name, each with its crate and version."""
    from weftline import _native

    listed = json.loads(_native.names()).values()
    return {entry["name"]: entry["package"] for kind in listed for entry in kind if "package" in entry}


def taking_part(resolved: str) -> dict[str, str]:
    """Return those of them that a resolved scenario names, in order of names."""
    if not known():
        return {}
    from weftline import scenarios

    kinds = {text for key, text in scenarios.texts_in(tomllib.loads(resolved)) if key == "kind"}
    return {name: known()[name] for name in sorted(known()) if name in kinds}


def as_comments(resolved: str) -> str:
    """Return comments for a scenario's key, one for each of these schemes that it names.

    They contain the digest of the module, because its code may change within a version.
    """
    from weftline import provenance

    schemes = taking_part(resolved).items()
    return "".join(f"# {name} is of {package}, {provenance.build()}\n" for name, package in schemes)


def identity() -> str:
    """Return the crate of these schemes and the build of the module; empty without such schemes."""
    from weftline import provenance

    return ", ".join([*sorted(set(known().values())), f"build {provenance.build()}"]) if known() else ""
