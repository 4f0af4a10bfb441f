"""Names of an earlier version and those that replaced them; the old ones still work, with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weftline.errors import InputError, warn

METRICS = {
    "jain_98_99": "jain_without_last_second",
    "goodput_98_99": "goodput_without_last_second",
    "throughput_98_99": "throughput_without_last_second",
    "utilisation_most": "utilisation_max",
}
SIZES = {"least": "min", "most": "max"}
"""Keys of `sizes` in the report of a sweep, and in figures and claims of experiments."""
CLAIM = {"most": "at_most"}
"""Keys of a claim of an experiment."""
BENCH = {"least": "min", "most": "max"}
"""Keys of a workload in the JSON of `weftline bench`."""
SIZE_ARGUMENTS = {"least": "min_size", "most": "max_size"}
POINT_ARGUMENTS = {"most": "max_points"}


def name(found: str, names: Mapping[str, str], where: str = "") -> str:
    """Return the name that replaced `found`, with a warning; `found` itself if it was not replaced."""
    if found not in names:
        return found
    prefix = f"{where}: " if where else ""
    warn([f'{prefix}"{found}" is now "{names[found]}"; the old name will be removed in the next version'])
    return names[found]


def keys(table: Mapping[str, Any], names: Mapping[str, str], where: str = "") -> dict[str, Any]:
    """Return a table with its keys replaced by `name`.

    Raises
    ------
    InputError
        If the table has both the old and the new key.
    """
    found: dict[str, Any] = {}
    for old, value in table.items():
        new = name(old, names, where)
        if new != old and new in table:
            raise InputError(f'{where}: expected either "{old}" or "{new}", found both')
        found[new] = value
    return found


def arguments(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return keyword arguments that only an earlier version had, by their new names.

    Raises
    ------
    TypeError
        If one of them was never an argument.
    """
    for argument in given:
        if argument not in names:
            raise TypeError(f"unexpected keyword argument {argument!r}")
    return keys(given, names)


def section(table: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return a figure or a claim of an experiment, or the report of a sweep, with the new names."""
    found = dict(table)
    if isinstance(found.get("sizes"), Mapping):
        found["sizes"] = keys(found["sizes"], SIZES, f"{where}sizes")
    if isinstance(found.get("metric"), str):
        found["metric"] = name(found["metric"], METRICS, f"{where}metric")
    if isinstance(found.get("metrics"), list):
        found["metrics"] = [
            name(metric, METRICS, f"{where}metrics") if isinstance(metric, str) else metric
            for metric in found["metrics"]
        ]
    return found
