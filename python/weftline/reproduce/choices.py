"""What the command line chooses of an experiment: size, duration, seeds, variants, rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weftline import quantities
from weftline.errors import InputError, nearest
from weftline.reproduce.experiments import SEEDS, Experiment


@dataclass(kw_only=True)
class Size:
    """How much of an experiment is run."""

    full: bool
    says: str
    settings: dict[str, Any]
    seeds: list[int]


def chosen_size(
    experiment: Experiment,
    *,
    full: bool = False,
    duration: str | None = None,
    hosts: int | None = None,
    seeds: Sequence[int] | None = None,
    only: Mapping[str, list[str]] | None = None,
) -> Size:
    """Return the settings of the small or the full size, with what the user chose instead.

    `only`: the variants by axis that are left of it, for messages.

    Raises
    ------
    InputError
        If the experiment cannot be run with this duration or number of hosts.
    """
    size = experiment.sizes["full" if full else "small"]
    settings = dict(size.get("set", {}))
    hosts = hosts if hosts is not None else size.get("hosts")
    duration = duration or size.get("duration")
    if hosts is not None:
        if str(hosts) not in experiment.hosts:
            known = ", ".join(experiment.hosts) or "none: its network is fixed"
            raise InputError(f"{experiment.name} cannot be run with {hosts} hosts; known: {known}")
        settings.update(experiment.hosts[str(hosts)])
    if duration is not None:
        if not experiment.duration_keys:
            raise InputError(f"{experiment.name} has no duration to choose: its flows are given")
        if not re.fullmatch(r"\s*[0-9.]+\s*(ps|ns|us|ms|s)\s*", duration):
            raise InputError(
                f'--duration {duration}: expected a time such as "5ms" (units: ps, ns, us, ms, s)'
            )
        settings.update(dict.fromkeys(experiment.duration_keys, duration))
    parts = [size["says"]] if size.get("says") and not only else []
    parts += [f"{axis} {_spans(names)}" for axis, names in (only or {}).items()]
    if hosts is not None:
        parts.append(f"{hosts} hosts")
    if duration is not None:
        parts.append(f"{quantities.spaced(duration)} of arrivals")
    seeds = list(seeds or size.get("seeds") or _usual_seeds(experiment, full=full))
    parts.append(f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds")
    label = "Full size" if full else "Small size"
    label = f"Chosen part{' of the full size' if full else ''}" if only else label
    return Size(full=full, says=f"{label}: {', '.join(parts)}", settings=settings, seeds=seeds)


def _usual_seeds(experiment: Experiment, *, full: bool) -> list[int]:
    """The seeds that a verdict on the claims of an experiment needs."""
    if not experiment.claims or not experiment.seeded or experiment.measures_cost:
        return [1]
    return SEEDS["full" if full else "small"]


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``"1-5"`` or ``"1,2,7"``."""
    return parse_numbers(text, f"--seeds {text}", "seed")


def parse_numbers(text: str, option: str, what: str) -> list[int]:
    """Return the numbers of ``"1-5"`` or ``"1,2,7"``, each once."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if not match:
            raise InputError(f'{option}: expected {what}s such as "1-5" or "1,2,7"')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= 10_000:
            raise InputError(f"{option}: {part.strip()} is not a range of at most 10000 {what}s")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def chosen_variants(experiment: Experiment, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the variants of each axis that ``AXIS=VARIANT`` texts leave; a variant may be cut short.

    Raises
    ------
    InputError
        If there is no such axis or variant, or several begin so.
    """
    chosen: dict[str, list[str]] = {}
    for text in texts:
        axis, _, variant = text.partition("=")
        if axis not in experiment.axes:
            names = list(experiment.axes)
            hint = nearest(axis, names)
            raise InputError(f'--only {text}: no axis "{axis}"; {hint}known: {", ".join(names)}')
        variants = list(experiment.axes[axis])
        found = [name for name in variants if name == variant]
        found = found or [name for name in variants if name.lower().startswith(variant.lower())]
        if re.fullmatch(r"\d+\s*[-,][\d\s,-]+", variant) and variant not in variants:
            chosen.setdefault(axis, []).extend(_numbered(variants, variant, f"--only {text}", axis))
            continue
        if len(found) != 1 or not variant:
            known = ", ".join(f'"{name}"' for name in found or variants)
            what = "several begin so" if found and variant else f'no "{variant}" on it'
            raise InputError(f"--only {text}: {what}: {known}")
        chosen.setdefault(axis, []).append(found[0])
    return chosen


def _spans(names: Sequence[str]) -> str:
    """Names in a list, but "1 to 25" for numbers that follow each other."""
    spans: list[list[str]] = []
    for name in names:
        follows = spans and name.isdecimal() and spans[-1][-1] == str(int(name) - 1)
        spans[-1].append(name) if follows else spans.append([name])
    return ", ".join(f"{span[0]} to {span[-1]}" if len(span) > 1 else span[0] for span in spans)


def chosen_rows(experiment: Experiment, text: str) -> list[str]:
    """Return the variants of the axis "row" that ``"1-10,12"`` names.

    Raises
    ------
    InputError
        If the experiment has no such axis, or no such row.
    """
    if "row" not in experiment.axes:
        known = ", ".join(experiment.axes) or "none"
        raise InputError(f'--rows: {experiment.name} has no axis "row"; its axes: {known}')
    return _numbered(list(experiment.axes["row"]), text, f"--rows {text}", "row")


def _numbered(variants: Sequence[str], text: str, option: str, axis: str) -> list[str]:
    """The variants that a list of numbers and ranges names; they are numbers themselves."""
    wanted = [str(number) for number in parse_numbers(text, option, axis)]
    for name in wanted:
        if name not in variants:
            known = f"{variants[0]} to {variants[-1]}" if variants[0].isdecimal() else ", ".join(variants)
            raise InputError(f"{option}: no {axis} {name}; known: {known}")
    return wanted


def chosen_duration(duration: str | None, seconds: float | None) -> str | None:
    """Return what --duration or --seconds says, of which only one may be given."""
    if seconds is None:
        return duration
    if duration is not None:
        raise InputError(f"--seconds {seconds:g} and --duration {duration}: expected one of the two")
    return f"{seconds:g}s"
