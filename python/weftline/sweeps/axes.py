"""The axes of a sweep: what varies, read from `[[axis]]` tables; see `sweepfile`."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from weftline import scenarios
from weftline.errors import InputError, nearest
from weftline.terminal import is_one_line
from weftline.toml_lines import Where, check_keys

MAX_VALUES = 200_000
SEEDS_NOT_SET = "the seed cannot be set: every combination runs with each seed of seeds = [1, 2]"
"""What an error says where settings or an axis have the key ``seed``."""
OF_POINTS = ("seed", "run", "status")
"""Columns of ``points.csv`` between the axes and the metrics."""
OF_ESTIMATES = (
    *("metric", "runs", "asked", "mean", "low", "high", "odd", "unfinished", "answer", "reasons"),
    *("against", "difference", "difference_low", "difference_high", "paired", "differ"),
    *("separated", "separated_reasons"),
)
"""Columns of ``table.csv`` after the axes."""
_COLUMNS = {*OF_POINTS, *OF_ESTIMATES, "no_effect", "error", "unfinished", "drops"}
"""What stands next to the axes in tables and in JSON, whatever the report."""
_AXIS_KEYS = "name key keys values range variants"
_RANGE_KEYS = "from to step points scale"
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_QUANTITY = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z%]*)\s*")


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What varies: settings by the name of the variant, in order."""

    name: str
    variants: Mapping[str, Mapping[str, Any]]
    where: str = ""
    """Where it is declared, as ``FILE:LINE``."""

    @property
    def numbers(self) -> list[float] | None:
        """Where the variants stand on an axis of x, None if they are not distinct numbers of one unit."""
        found = [match for name in self.variants if (match := _QUANTITY.fullmatch(name))]
        if len(found) != len(self.variants) or len({match[2] for match in found}) != 1:
            return None
        numbers = [float(match[1]) for match in found]
        return numbers if are_distinct(numbers) else None


def title_of(name: str, variants: Iterable[str]) -> str:
    """Return the title of an axis of x whose variants are numbers of one unit: ``rate (Gbps)``."""
    units = {match[2] for variant in variants if (match := _QUANTITY.fullmatch(variant))}
    unit = units.pop() if len(units) == 1 else ""
    return f"{name} ({unit})" if unit else name


def are_distinct(numbers: Sequence[float]) -> bool:
    """Return whether numbers are finite, and no two of them the same."""
    return len(set(numbers)) == len(numbers) and all(map(math.isfinite, numbers))


def values_of(variants: Sequence[str]) -> dict[str, Any]:
    """Return the values that the variants of an axis stand for: numbers if all are, else the texts.

    Texts where two of them are one number, as 1.1 and 1.10, or one is infinite. Whole numbers of more than 18
    digits are floats.
    """
    numbers: dict[str, Any] = {}
    if all(re.fullmatch(r"[-+]?[0-9]{1,18}", name) for name in variants):
        numbers = {name: int(name) for name in variants}
    elif all(_NUMBER.fullmatch(name) for name in variants):
        numbers = {name: float(name) for name in variants}
    if numbers and are_distinct([*numbers.values()]):
        return numbers
    if set(variants) <= {"true", "false"}:
        return {name: name == "true" for name in variants}
    return {name: name for name in variants}


def read(entries: object, where: Where) -> dict[str, Axis]:
    """Return the axes of a parsed file by name, in order."""
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InputError(f"{where()}: axis: expected [[axis]] tables, found {entries!r}")
    # Different keys may end alike, such as those of two kinds: they are called by their whole paths.
    ends = Counter(key.rsplit(".", 1)[-1] for key in {_first_key(entry) for entry in entries})
    found: dict[str, Axis] = {}
    for number, entry in enumerate(entries):
        key = _first_key(entry)
        end = key.rsplit(".", 1)[-1]
        is_taken = ends[end] > 1 or end.lower() in _COLUMNS
        axis = _axis(entry, number, where, key if is_taken else end)
        for text in (axis.name, *axis.variants):
            if not is_one_line(text):
                raise InputError(
                    f"{where('', 'axis', number)}: axis: expected names of one line without control "
                    f"characters, found {text!r}"
                )
        if any(axis.name.lower() == other.lower() for other in found):
            raise InputError(
                f'{where("name", "axis", number)}: two axes are called "{axis.name}"; capitals make no '
                "difference"
            )
        found[axis.name] = axis
    return found


def check_names(names: Iterable[str], metrics: Iterable[str], where: Callable[[int], str]) -> None:
    """Refuse axes that are called as a column of the results is: one of the two would be lost.

    Capitals make no difference, as in SQL. `where` has the place of an axis by its number.
    """
    taken = _COLUMNS | {name.lower() for name in metrics}
    for number, name in enumerate(names):
        if name.lower() in taken:
            raise InputError(
                f'{where(number)}: an axis cannot be called "{name}": the tables of a sweep have a column of '
                f'this name; expected another name, such as "{name} axis"'
            )


def _first_key(entry: Mapping[str, Any]) -> str:
    """Return the path that an axis without a name is called after; empty if it has a name or no path."""
    keys = [] if "name" in entry else entry.get("keys", [entry.get("key")])
    first = keys[0] if isinstance(keys, list) and keys else None
    return first if isinstance(first, str) else ""


def _axis(entry: Mapping[str, Any], number: int, where: Where, called: str) -> Axis:
    here = where("", "axis", number)
    check_keys(entry, "axis", _AXIS_KEYS, where, "axis", number)
    forms = [key for key in ("key", "keys", "variants") if key in entry]
    if len(forms) != 1:
        raise InputError(
            f"{here}: axis: expected one of key, keys and variants, found {' and '.join(forms) or 'none'}"
        )
    keys = entry.get("keys", [entry["key"]] if "key" in entry else [])
    if not isinstance(keys, list) or not all(isinstance(key, str) and key.strip() for key in keys):
        raise InputError(
            f'{here}: {forms[0]}: expected a path such as "workload.0.load", found {entry[forms[0]]!r}'
        )
    if "seed" in keys:
        raise InputError(f"{here}: axis: {SEEDS_NOT_SET}")
    if twice := [key for key, count in Counter(keys).items() if count > 1]:
        raise InputError(f"{here}: keys: {twice[0]} is there twice")
    name = entry.get("name", called or None)
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{here}: name: expected a text, found {name!r}")
    here = f'{here}: axis "{name}"'
    if "variants" in entry:
        variants = _named(entry["variants"], here, where, number)
    else:
        if len(forms + [key for key in ("values", "range") if key in entry]) != 2:
            raise InputError(f"{here}: expected either values or range")
        values = range_values(entry["range"], here) if "range" in entry else entry["values"]
        variants = _listed(keys, values, here, several="keys" in entry)
    if not variants:
        raise InputError(f"{here}: expected at least one value")
    return Axis(name=name, variants=variants, where=where("", "axis", number))


def _named(variants: object, here: str, where: Where, number: int) -> dict[str, dict[str, Any]]:
    if not isinstance(variants, list) or not all(isinstance(variant, Mapping) for variant in variants):
        raise InputError(f'{here}: variants: expected a list of {{ name = "...", set = {{ ... }} }}')
    found: dict[str, dict[str, Any]] = {}
    for variant in variants:
        check_keys(variant, "variant", "name set", where, "axis", number)
        name, settings = variant.get("name"), variant.get("set", {})
        if not isinstance(name, str) or not name.strip() or not isinstance(settings, Mapping):
            raise InputError(
                f"{here}: variants: expected a name and a table called set, found {dict(variant)!r}"
            )
        if "seed" in settings:
            raise InputError(f'{here}: variant "{name}": {SEEDS_NOT_SET}')
        if name in found:
            raise InputError(f'{here}: two variants are called "{name}"')
        found[name] = dict(settings)
    return found


def _listed(keys: list[str], values: object, here: str, *, several: bool) -> dict[str, dict[str, Any]]:
    if not isinstance(values, list | tuple):
        raise InputError(f"{here}: values: expected a list, found {values!r}")
    found: dict[str, dict[str, Any]] = {}
    for value in values:
        row = list(value) if several and isinstance(value, list | tuple) else [value]
        if len(row) != len(keys):
            raise InputError(
                f"{here}: values: expected {len(keys)} values, one for each key, found {value!r}"
            )
        name = " ".join(_text(part, f"{here}: values: {key}") for key, part in zip(keys, row, strict=True))
        if name in found:
            raise InputError(f"{here}: values: {name} is there twice")
        found[name] = dict(zip(keys, row, strict=True))
    return found


def _text(value: object, place: str) -> str:
    is_text = isinstance(value, str | os.PathLike)
    return scenarios.plain(value) if is_text else scenarios.value_to_toml(value, place)


def range_values(table: object, here: str) -> list[Any]:
    """Return the values of ``{ from, to, step }`` or ``{ from, to, points, scale }``, both ends included.

    Decimal numbers stay decimal: 0.1, 0.2, 0.3. Between whole numbers the values are whole numbers if
    all of them can be. With ``scale = "log"`` each value is the same factor above
    the one before, rounded to four figures.
    """
    if not isinstance(table, Mapping):
        raise InputError(f"{here}: range: expected {{ from = 0.3, to = 0.7, step = 0.1 }}, found {table!r}")
    for key in table:
        if key not in _RANGE_KEYS.split():
            known = _RANGE_KEYS.split()
            raise InputError(
                f'{here}: range: unknown key "{key}": {nearest(str(key), known)}known: {", ".join(known)}'
            )
    (first, unit), (last, unit_of_last) = (
        _decimal(table.get(key), f"{here}: range: {key}") for key in ("from", "to")
    )
    if unit != unit_of_last:
        raise InputError(
            f"{here}: range: expected from and to with the same unit, found {table['from']} and {table['to']}"
        )
    if last < first:
        raise InputError(f"{here}: range: expected from at most to, found {table['from']} and {table['to']}")
    if ("step" in table) == ("points" in table):
        raise InputError(f"{here}: range: expected either step or points")
    steps = _stepped(table, first, last, unit, here) if "step" in table else _spaced(table, first, last, here)
    whole = _is_whole(table, steps)
    return [_with_unit(value, unit, whole=whole) for value in steps]


def _stepped(table: Mapping[str, Any], first: Decimal, last: Decimal, unit: str, here: str) -> list[Decimal]:
    step, of_step = _decimal(table["step"], f"{here}: range: step")
    if step <= 0 or of_step != unit or "scale" in table:
        raise InputError(
            f"{here}: range: step: expected a number above 0 in the unit of from, and no scale, "
            f"found {table['step']!r}"
        )
    count = int((last - first) / step) + 1
    if count > MAX_VALUES:
        raise InputError(f"{here}: range: step: {count:,} values; expected at most {MAX_VALUES:,}")
    return [first + n * step for n in range(count)]


def _spaced(table: Mapping[str, Any], first: Decimal, last: Decimal, here: str) -> list[Decimal]:
    count, scale = table["points"], table.get("scale", "linear")
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MAX_VALUES:
        expected = f"a number from 2 to {MAX_VALUES:,}"
        raise InputError(f"{here}: range: points: expected {expected}, found {count!r}")
    if scale not in ("linear", "log"):
        raise InputError(f'{here}: range: scale: expected "linear" or "log", found {scale!r}')
    if scale == "linear":
        return [first + (last - first) * n / (count - 1) for n in range(count)]
    if first <= 0:
        raise InputError(
            f"{here}: range: from: expected a number above 0 on a log scale, found {table['from']!r}"
        )
    factor = (last / first).ln() / (count - 1)
    inner = [Decimal(f"{first * (factor * n).exp():.4g}") for n in range(1, count - 1)]
    return [first, *inner, last]


def _decimal(value: object, what: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(str(value)) if not isinstance(value, bool) else None
    try:
        return Decimal(match[1]), match[2]  # type: ignore[index]
    except (TypeError, InvalidOperation):
        raise InputError(
            f'{what}: expected a number, or a quantity such as "10us", found {value!r}'
        ) from None


def _is_whole(table: Mapping[str, Any], steps: Sequence[Decimal]) -> bool:
    """Return whether the values are whole numbers: those of whole ends on a log scale are rounded."""
    if not all(isinstance(table[key], int) for key in ("from", "to", "step") if key in table):
        return False
    return table.get("scale") == "log" or all(value == round(value) for value in steps)


def _with_unit(value: Decimal, unit: str, *, whole: bool) -> Any:
    if unit:
        return f"{_plain(value)}{unit}"
    return round(value) if whole else float(_plain(value))


def _plain(value: Decimal) -> str:
    text = f"{round(value, 12):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_zipped(entries: object, axes: Mapping[str, Axis], where: Where) -> list[list[str]]:
    """Return the lists of axes that advance together."""
    here = f"{where('zip')}: zip"
    if isinstance(entries, list) and entries and all(isinstance(entry, str) for entry in entries):
        entries = [entries]
    if not isinstance(entries, list) or not all(
        isinstance(entry, list) and len(entry) > 1 for entry in entries
    ):
        raise InputError(f'{here}: expected lists of axes such as [["leaves", "spines"]], found {entries!r}')
    seen: set[str] = set()
    for names in entries:
        for name in names:
            if name not in axes:
                known = f"{nearest(str(name), list(axes))}known: {', '.join(axes)}"
                raise InputError(
                    f"{here}: unknown axis {name!r}: "
                    + (known if axes else "this sweep has no axis; each [[axis]] table adds one")
                )
            if name in seen:
                raise InputError(f'{here}: "{name}" is there twice')
            seen.add(name)
        counts = {name: len(axes[name].variants) for name in names}
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise InputError(f"{here}: axes that advance together have equally many values, but {text}")
    return entries
