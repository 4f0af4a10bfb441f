"""`weftline compare` of scenarios: the settings in force, defaults included, in which they differ."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from weftline import scenarios
from weftline.errors import InputError
from weftline.scenario import Scenario
from weftline.terminal import Table


def command(options: argparse.Namespace) -> int:
    """Print what differs and return the exit status."""
    if options.out or options.against:
        raise InputError("--out and --against are for runs; scenarios have no results to draw")
    if len(options.folders) < 2:
        raise InputError(
            f"{options.folders[0]}: is one scenario; expected two scenarios to compare, or folders of runs"
        )
    found = between(options.folders)
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif found:
        rows = [[key, *(values.get(name, "–") for name in options.folders)] for key, values in found.items()]
        print(Table(["setting", *options.folders], rows, left=1).text())
    else:
        print("the settings in force are the same")
    return 0


def between(names: list[str]) -> dict[str, dict[str, str]]:
    """Return the settings that are not the same in all scenarios: by key, the value of each that has it."""
    flat = {name: dict(_leaves(Scenario(name).values)) for name in names}
    keys = list(dict.fromkeys(key for settings in flat.values() for key in settings))
    return {
        key: {name: settings[key] for name, settings in flat.items() if key in settings}
        for key in keys
        if len({settings.get(key) for settings in flat.values()}) > 1
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every setting with its path, as `--set` writes it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if _is_tables(value) else None
    if inner is None:
        yield path, scenarios.value_to_toml(value)
        return
    for key, below in inner:
        yield from _leaves(below, f"{path}.{key}" if path else str(key))


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
