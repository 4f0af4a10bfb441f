"""Schemes of another crate, which a module of one's own brings along: see docs/own-schemes.md.

Such a module holds a whole engine and takes the place of the one that came with weftline: when it is imported
before weftline, or when WEFTLINE_ENGINE names it, as it does in processes that it starts.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tomllib
from functools import cache

VARIABLE = "WEFTLINE_ENGINE"
"""Names the module to import in place of weftline's engine."""


def take_engine(name: str) -> None:
    """Import the module `name`, whose engine then is the one of this process.

    Raises
    ------
    ImportError
        If it cannot be imported here, or is no such module.
    """
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{VARIABLE} is {name}, the module whose engine weftline is to use, and it cannot be imported "
            f"({error}): install it for {sys.executable} on {os.uname().nodename}, or unset {VARIABLE}"
        ) from error
    if "weftline._native" not in sys.modules:
        raise ImportError(f"{VARIABLE} is {name}, which is a module without an engine: unset {VARIABLE}")


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
    """Return what tells runs of a scenario apart that differ in the code of these schemes; empty for none.

    The code is told by the build of the module, since it may change under one version.
    """
    from weftline import provenance

    schemes = taking_part(resolved).items()
    return "".join(f"# {name} is of {package}, {provenance.build()}\n" for name, package in schemes)


def identity() -> str:
    """Return the crates that schemes come from with the build of the module, empty without such schemes."""
    from weftline import provenance

    return ", ".join([*sorted(set(known().values())), f"build {provenance.build()}"]) if known() else ""
