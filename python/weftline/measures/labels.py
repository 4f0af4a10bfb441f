"""What tells lines from each other: ``hpcc``, ``load 0.5``, ``no failures``, ``hpcc (stalled at 3 ms)``.

A label holds the fewest settings that tell all lines apart. The scheme alone comes first, then the scenario's
name, then the settings that differ; what follows from the choice of the controller (its own parameters, ECN
thresholds, telemetry) is taken only where the scheme and the rest cannot tell, and what follows from another
setting only where the keys that were set cannot: runs record these.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePath
from typing import Any

from weftline import quantities, scenarios
from weftline.measures import pooling
from weftline.measures.pooling import Facts, KeyPath, Pool, Unknown
from weftline.runs import Run

_LONGEST = 40
"""Characters of a value in a label."""
_MAX_TRIED = 1_000_000
"""Sets of settings times pools that are tried; where there are more, settings are added one at a time."""
_ACRONYMS = frozenset({"ecn", "int", "pfc"})
_QUANTITY = re.compile(r"[0-9.]+(?:[KMGT]i?B|B|[KMGT]?bps|[pnum]?s)")
_TABLES = {("failures", "event"): "failures", ("failures",): "failures"}
"""What people call a table that a run has or lacks; others are called by their key."""


def scheme_name(run: Run) -> str:
    """Return the controllers in force as papers write them: ``hpcc``, ``dcqcn+w``, ``dctcp and timely``.

    Of a transport other than RDMA it is the name of the transport.
    """
    return " and ".join(dict.fromkeys(map(_transport_name, transports(run.scenario))))


def transports(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the transport of each workload of a scenario: its own, else the shared one."""
    shared = scenario.get("transport", {})
    own = [one.get("transport") or {} for one in scenario.get("workload") or [{}]]
    return [one if "kind" in one else {**shared, **one} for one in own]


def _transport_name(transport: Mapping[str, Any]) -> str:
    if transport.get("kind", "rdma") != "rdma":
        return str(transport["kind"])
    controller = transport.get("controller", {})
    kind = str(controller.get("kind", "none"))
    return f"{kind}+w" if kind in ("dcqcn", "timely") and controller.get("window") is True else kind


@dataclass(frozen=True)
class Setting:
    """Something that is not the same in all pools."""

    path: KeyPath
    values: tuple[Hashable, ...]
    """One for each pool; equal where it is the same."""
    texts: tuple[str, ...]
    """Its part of the label, for each pool; empty where there is none."""

    @property
    def parts(self) -> tuple[int, ...]:
        """Which pools have the same value, as numbers: two settings with equal parts tell as much."""
        seen: dict[Hashable, int] = {}
        return tuple(seen.setdefault(value, len(seen)) for value in self.values)


def labels(pools: Sequence[Pool], *, start: str = "") -> list[str]:
    """Return a label for each pool, no two of them alike.

    Parameters
    ----------
    start : str
        What all pools are called already; only what differs is added.
    """
    chosen = chosen_settings(pools)
    found = []
    words = [_words(setting.path) for setting in chosen]
    for i, pool in enumerate(pools):
        message = dict.fromkeys(
            setting.texts[i] if words.count(_words(setting.path)) < 2 else _in_full(setting, i)
            for setting in chosen
        )
        text = ", ".join(filter(None, [start, *message])) or scheme_name(pool.runs[0])
        found.append(text + _ending(pool.runs[0], pool.status))
    for more in (_by_seed, _by_folder, _by_number):
        found = _apart(found, pools, more)
    return found


def chosen_settings(pools: Sequence[Pool]) -> list[Setting]:
    """Return the fewest settings that tell all pools apart, without how their runs ended."""
    kinds = {pool.fixed: i for i, pool in reversed(list(enumerate(pools)))}
    if len(kinds) < 2:
        return []
    places = sorted(kinds.values())
    scheme, name = _scheme(pools), _name(pools)

    def distinguished(settings: Sequence[Setting]) -> int:
        return len({tuple(setting.values[i] for setting in settings) for i in places})

    def tells(settings: Sequence[Setting]) -> bool:
        return distinguished(settings) == len(places)

    for alone in (scheme, name):
        if alone and tells([alone]):
            return [alone]
    fixed = [scheme] if scheme else []
    found = settings(pools)
    candidates = _distinct(found)
    for some in (_distinct(_written(found, pools)), candidates):
        if tells([*fixed, *some]) and (chosen := _fewest(some, fixed, tells, len(places))):
            return chosen

    chosen = list(fixed)
    while distinguished(chosen) < len(places):
        chosen.append(max(candidates, key=lambda setting: distinguished([*chosen, setting])))
    return chosen


def _fewest(
    candidates: Sequence[Setting], fixed: list[Setting], tells: Callable[[list[Setting]], bool], places: int
) -> list[Setting] | None:
    """The first of the smallest sets that tell all pools apart; None where too many had to be tried."""
    for size in range(1, len(candidates) + 1):
        if math.comb(len(candidates), size) * places > _MAX_TRIED:
            return None
        for some in combinations(candidates, size):
            if tells([*fixed, *some]):
                return [*fixed, *some]
    return None


def _written(found: Sequence[Setting], pools: Sequence[Pool]) -> list[Setting]:
    """The settings that the scenario of a pool or --set gave; all if that is unknown."""
    given: set[str] = set()
    for pool in pools:
        recorded = pooling.given(pool.runs[0])
        if recorded is None:
            return list(found)
        given.update(recorded)

    def is_written(setting: Setting) -> bool:
        path = pooling.setting_path(setting.path)
        return path in given or any(key.startswith(f"{path}.") for key in given)

    return [setting for setting in found if is_written(setting)]


def settings(pools: Sequence[Pool]) -> list[Setting]:
    """Return everything that differs: settings, what follows from the controller, the build."""
    facts = [pool.facts for pool in pools]
    paths = _ordered(facts)
    names = _Names(paths)
    found: dict[KeyPath, Setting] = {}
    for path in paths:
        lacks = [_missing(path, one) for one in facts]
        for prefix in dict.fromkeys(filter(None, lacks)):
            if len(prefix) < len(path) and prefix not in found:
                found[prefix] = _table_setting(prefix, facts)
        values = tuple(one.get(path, ("absent", lack)) for one, lack in zip(facts, lacks, strict=True))
        if len(set(values)) > 1:
            texts = tuple(
                names.absent(lack) if lack else names.value_text(path, one[path], pool)
                for one, lack, pool in zip(facts, lacks, pools, strict=True)
            )
            found[path] = Setting(path, values, texts)
    return [_readable(found[path]) for path in sorted(found, key=_rank)]


def _rank(path: KeyPath) -> int:
    """The controller first, the build last; what follows from the controller after all other settings."""
    if path == ("transport", "controller", "kind"):
        return 0
    if path in (pooling.VERSION, pooling.BUILD):
        return 3
    return 2 if follows_from_controller(path) else 1


def follows_from_controller(path: KeyPath) -> bool:
    """Return whether the value of a key follows from the choice of the controller where it is not given."""
    if path[0] == "workload":
        # Its own transport has the keys of the shared one.
        return path[2:3] == ("transport",) and follows_from_controller(path[2:])
    return path[0] == "telemetry" or path[:2] in (
        ("switch", "ecn"),
        ("transport", "ack_priority"),
        ("transport", "controller"),
    )


def left_unsaid(pools: Sequence[Pool]) -> list[str]:
    """Return in which keys, and code, pools differ that neither their labels say nor the scheme decides."""
    chosen = chosen_settings(pools)
    scheme, name = _scheme(pools), _name(pools)
    if name and name in chosen:
        return []
    text = {setting.path for setting in chosen}
    found = {setting.path: setting for setting in settings(pools)}
    left: dict[KeyPath, Setting] = {}
    for path, setting in found.items():
        above = [path[:length] for length in range(1, len(path)) if path[:length] in found]
        message = path in text or any(
            prefix in text or found[prefix].parts == setting.parts for prefix in above
        )
        if not message and not (scheme and follows_from_controller(path)):
            left[path] = setting
            # It says which pools lack the table that it is in, too.
            for prefix in above:
                if prefix in left and len(set(setting.parts)) == len(
                    set(zip(setting.parts, left[prefix].parts, strict=True))
                ):
                    del left[prefix]
    return [_unsaid_text(path) for path in left]


def _unsaid_text(path: KeyPath) -> str:
    """Return what is named: a key, or the code of a controller in Python."""
    if path[0] != pooling.LAWS:
        return pooling.setting_path(path)
    return f'the code of controller "{path[1]}"' if len(path) > 1 else "the code of controllers"


def _scheme(pools: Sequence[Pool]) -> Setting | None:
    names = tuple(scheme_name(pool.runs[0]) for pool in pools)
    return Setting(("scheme",), names, names) if len(set(names)) > 1 else None


def _name(pools: Sequence[Pool]) -> Setting | None:
    """The scenario's name, where all runs of each pool have one."""
    names = [{run.name for run in pool.runs} for pool in pools]
    if any(len(one) > 1 for one in names):
        return None
    texts = tuple(one.copy().pop() for one in names)
    return Setting(("name",), texts, texts) if len(set(texts)) > 1 else None


def _distinct(found: Sequence[Setting]) -> list[Setting]:
    """Of settings that tell as much, the first."""
    first: dict[tuple[int, ...], Setting] = {}
    for setting in found:
        first.setdefault(setting.parts, setting)
    return list(first.values())


def _ordered(facts: Sequence[Facts]) -> list[KeyPath]:
    """All paths, in the order of the first scenario that has them, tables together."""
    return sorted(dict.fromkeys(path for one in facts for path in one), key=_order_of(facts))


def _order_of(facts: Sequence[Facts]) -> Callable[[KeyPath], tuple[Any, ...]]:
    tops: dict[str, int] = {}
    places: dict[KeyPath, int] = {}
    for one in facts:
        for path in one:
            tops.setdefault(path[0], len(tops))
            places.setdefault(path, len(places))
    return lambda path: (tops[path[0]], places[path])


def _missing(path: KeyPath, facts: Facts) -> KeyPath | None:
    """Return the shortest part of a path at which there is nothing, None if there is a value."""
    if path in facts:
        return None
    for length in range(1, len(path)):
        if not any(known[:length] == path[:length] for known in facts):
            return path[:length]
    return path


def _table_setting(prefix: KeyPath, facts: Sequence[Facts]) -> Setting:
    """Whether a run has a table at all."""
    there = tuple(any(known[: len(prefix)] == prefix for known in one) for one in facts)
    name = _noun(prefix)
    return Setting(prefix, there, tuple(name if has else f"no {name}" for has in there))


def _noun(prefix: KeyPath) -> str:
    if prefix in _TABLES:
        return _TABLES[prefix]
    if prefix[-1].isdigit():
        return f"{prefix[-2]} {prefix[-1]}"
    return pooling.setting_path(prefix) if len(prefix) < 3 else prefix[-1]


class _Names:
    """Names of settings: their final word, with the words before it where that is ambiguous."""

    def __init__(self, paths: Sequence[KeyPath]) -> None:
        plain = {_words(path) for path in paths}
        self._plain = plain

    def name(self, path: KeyPath) -> str:
        words = _words(path)
        if path[:2] == ("failures", "event"):
            return " ".join(("failure", *words[2:]))
        for length in range(1, len(words)):
            if sum(other[-length:] == words[-length:] for other in self._plain) == 1:
                return ".".join(words[-length:])
        return ".".join(words)

    def value_text(self, path: KeyPath, value: object, pool: Pool) -> str:
        if path == pooling.VERSION:
            return f"weftline {value}" if value else "version not recorded"
        if path == pooling.BUILD:
            unknown = isinstance(value, Unknown) or not value
            return "build not recorded" if unknown else f"build {str(value)[:8]}"
        if path == pooling.ENGINE:
            return str(json.loads(str(value)))
        if path[0] == pooling.LAWS:
            return (
                f"{path[1]} {'of unknown code' if isinstance(value, Unknown) else f'code {str(value)[:8]}'}"
            )
        if path[-2:] == ("controller", "kind"):
            return str(json.loads(str(value)))
        text = _file_text(path, value, pool.runs[0]) or _value_text(str(value))
        if path[-1] == "enabled" and len(path) > 1 and text in ("on", "off"):
            noun = path[-2]
            return f"{noun.upper() if noun in _ACRONYMS else noun} {text}"
        return f"{self.name(path)} {text}"

    def absent(self, path: KeyPath) -> str:
        if path == pooling.ENGINE:
            return "simulator"
        is_table = path in _TABLES or path[-1].isdigit()
        return f"no {_noun(path) if is_table else self.name(path)}"


def _in_full(setting: Setting, place: int) -> str:
    """Part of the label of a setting whose short name is not unique."""
    return f"{pooling.setting_path(setting.path)} {setting.texts[place].partition(' ')[2]}"


def _words(path: KeyPath) -> KeyPath:
    return tuple(part for part in path if not part.isdigit())


def _file_text(path: KeyPath, value: object, run: Run) -> str:
    """A file by its name and the first digits of its content; empty if the value is not a file."""
    if path[-1] not in scenarios.FILE_KEYS or not (
        isinstance(value, Unknown) or str(value).startswith("sha256")
    ):
        return ""
    given: object = run.scenario
    for part in path:
        given = given[int(part)] if isinstance(given, list) else given[part]  # type: ignore[index]
    content = "content not recorded" if isinstance(value, Unknown) else str(value)[:15]
    return f"{PurePath(str(given)).name} ({content})"


def _value_text(text: str) -> str:
    value = json.loads(text)
    if isinstance(value, list):
        value = " ".join(map(str, value))
    message = ("on" if value else "off") if isinstance(value, bool) else str(value)
    message = quantities.spaced(message) if _QUANTITY.fullmatch(message) else message
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"


def _readable(setting: Setting) -> Setting:
    """Without the digests of files where their names tell as much."""
    short = tuple(text.partition(" (sha256 ")[0] for text in setting.texts)
    by_name = Setting(setting.path, short, short)
    return Setting(setting.path, setting.values, short) if by_name.parts == setting.parts else setting


def _ending(run: Run, status: str) -> str:
    """How a run ended that is not done: `` (interrupted at 1.2 ms)``."""
    if status == "done":
        return ""
    text = {"memory-limit": "memory limit", "unknown": "unknown end"}.get(status, status)
    end = run.summary.get("end_ns")
    at = f" at {quantities.time_text(end)}" if isinstance(end, int | float) else ""
    return f" ({text}{at})"


def _apart(found: list[str], pools: Sequence[Pool], more: Callable[[Pool, int], str]) -> list[str]:
    """Add something to the labels that several pools share."""
    seen: dict[str, int] = {}
    result = []
    for text, pool in zip(found, pools, strict=True):
        seen[text] = seen.get(text, 0) + 1
        added = more(pool, seen[text]) if found.count(text) > 1 else ""
        result.append(f"{text}, {added}" if added else text)
    return result


def _by_seed(pool: Pool, number: int) -> str:
    return f"seed {pooling.seed_of(pool.runs[0])}" if len(pool.runs) == 1 else ""


def _by_folder(pool: Pool, number: int) -> str:
    return str(pool.runs[0].out)


def _by_number(pool: Pool, number: int) -> str:
    return f"number {number}"
