"""Lines of what is given to compare or draw: runs, folders, sweeps, result stores, and dicts of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

from weftline.errors import InputError
from weftline.measures.bases import Axis, combinations
from weftline.measures.labels import labels
from weftline.measures.line_notes import small
from weftline.measures.lines import Choice, Line, lines_of
from weftline.measures.pooling import pools
from weftline.runs import Run
from weftline.terminal import is_one_line

if TYPE_CHECKING:
    from typing import Any

    from weftline.sweeps.result import Cell, SweepResult

    Given = str | os.PathLike[str] | Run | SweepResult | Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """The lines of what was given, how they are compared, and what a reader has to know about them."""

    lines: list[Line]
    axis: Axis | None = None
    """The axis along which those of a sweep or of stores are compared."""
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


def found_in(of: Sequence[Given]) -> Found:
    """Return the lines, the axis along which they are compared, and the notes and warnings."""
    from weftline.sweeps.result import SweepResult
    from weftline.sweeps.store import Store

    for one in of:
        if not isinstance(one, str | os.PathLike | Run | SweepResult | Mapping):
            hint = "; pass them as separate arguments, or by a label" if isinstance(one, list | tuple) else ""
            raise InputError(
                "expected runs, sweeps, folders of these, or a dict of them by label, found an object of "
                f"type {type(one).__name__}{hint}"
            )
    if any(isinstance(one, Mapping) for one in of):
        return _joined([_by_label(one) if isinstance(one, Mapping) else found_in([one]) for one in of])
    if len(of) > 1 and any(isinstance(one, SweepResult) for one in of):
        return _joined([found_in([one]) for one in of])
    if len(of) == 1 and (isinstance(of[0], SweepResult) or _is_sweep(of[0])):
        alone = of[0]
        return _of_sweep(alone if isinstance(alone, SweepResult) else SweepResult.open(cast("str", alone)))
    runs: list[Run] = []
    stores, notes = False, []
    for one in of:
        if isinstance(one, Run):
            runs.append(one)
            continue
        assert not isinstance(one, Mapping | SweepResult), "they are alone, or have their lines above"
        if Store.is_at(one):
            stores, kept = True, Store.open(one)
            keys = [entry.key for entry in kept.entries()]
            if _is_sweep(one):
                result = SweepResult.open(one)
                # Keys are digests: their order is none.
                order = {run.out.name: place for place, run in enumerate(result.runs)}
                keys.sort(key=lambda key: order.get(key, len(order)))
                if not result.choice.is_all:
                    notes.append(
                        f"The report of the sweep in {os.fspath(one)} does not apply to these lines, in "
                        f"which all flows count. There: {small(result.choice.text())}."
                    )
            runs += [Run.read(kept.points / key) for key in keys]
        else:
            runs += [Run.read(folder) for folder in _repeats(one)]
    lines = lines_of(runs)
    return Found(*(combinations(lines) if stores else (lines, None)), notes=notes)


def lines_in(of: Sequence[Given]) -> list[Line]:
    """Return the lines of runs, folders and stores; one sweep alone keeps the names of its variants."""
    return found_in(of).lines


def _joined(parts: Sequence[Found]) -> Found:
    """Return the lines of all, with their notes and warnings, but no axis."""
    return Found(
        [line for part in parts for line in part.lines],
        notes=[note for part in parts for note in part.notes],
        warnings=[warning for part in parts for warning in part.warnings],
    )


def _by_label(of: Mapping[str, Given | Sequence[Given]]) -> Found:
    """Return the lines of a dict by label; where there are several of a label, their own are added."""
    parts = []
    for label, given in of.items():
        check_label(label)
        found = found_in(list(given) if isinstance(given, list | tuple) else [cast("Given", given)])
        alone = len(found.lines) == 1
        lines = [replace(one, label=label if alone else f"{label}, {one.label}") for one in found.lines]
        parts.append(replace(found, lines=lines))
    return _joined(parts)


def check_label(label: object) -> None:
    """Refuse a label that is not text in one line."""
    if not isinstance(label, str) or not is_one_line(label):
        raise InputError(f"label: expected text in one line without control characters, found {label!r}")


def _of_sweep(result: SweepResult) -> Found:
    """Return the lines of a sweep; combinations without any result are named."""
    lines = [line for cell in result.cells for line in cell_lines(result, cell)]
    empty = [cell.choice for cell in result.combinations if not cell.runs]
    warnings = [
        f"{', '.join(variant for _, variant in choice) or result.name} has no results: "
        f"{lacking_text(result, choice)}"
        for choice in empty
    ]
    axis = Axis(result.rows_axis, result.against, result.zipped) if result.rows_axis else None
    return Found(lines, axis, warnings=[*warnings, *result.remarks])


def _repeats(of: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of a run that the lab repeated, else the folder itself."""
    folder = Path(of)
    if (folder / "summary.json").exists():
        return [folder]
    numbered = [
        one for one in folder.glob("[0-9]*") if one.name.isdecimal() and (one / "summary.json").exists()
    ]
    return sorted(numbered, key=lambda one: int(one.name)) or [folder]


def _is_sweep(of: object) -> TypeGuard[str | os.PathLike[str]]:
    from weftline.sweeps.result import FILE

    return not isinstance(of, Run) and (Path(of) / FILE).exists()  # type: ignore[arg-type]


def cell_lines(result: SweepResult, cell: Cell) -> list[Line]:
    """Return the line of a combination of a sweep, and one for each of its runs that cannot be pooled.

    The key of a run in the store vouches for its scenario and its files; builds that were not recorded are
    taken to be one, with a warning. The flows that the sweep's report chooses count.
    """
    label = ", ".join(variant for _, variant in cell.choice) or result.name
    found = pools(list(cell.runs.values()), vouched=True)
    lacking = lacking_text(result, cell.choice)
    of_sweep = [f"{len(cell.runs)} of {result.asked} runs: {lacking}"] if lacking else []
    return [
        replace(result_line(result, text, cell, pool.runs), pool=pool, warnings=[*pool.warnings, *of_sweep])
        for text, pool in zip(labels(found, start=label), found, strict=True)
    ]


def result_line(result: SweepResult, label: str, cell: Cell, runs: list[Run] | None = None) -> Line:
    """Return a combination of a sweep as a line, with the flows, seeds and intervals of its report."""
    return Line(
        label,
        list(cell.runs.values()) if runs is None else runs,
        group=result.report.group,
        choice=cell.choice,
        asked=tuple(result.seeds),
        chosen=result.choice,
        interval=result.report.interval,
    )


def lacking_text(result: SweepResult, choice: Choice) -> str:
    """Return ``"seed 2 failed (it raised ...); seeds 3 and 4 have no result"``, "" if nothing is lacking."""
    # What follows the first line, such as a traceback, is in the warnings of the sweep itself.
    failed = [(seed, why.strip().partition("\n")[0]) for of, seed, why in result.failed if of == choice]
    parts = [f"seed {seed} failed ({why.rstrip(':.')})" for seed, why in failed]
    seeds = [str(seed) for of, seed in result.missing if of == choice]
    if seeds:
        named = " and ".join(filter(None, [", ".join(seeds[:-1]), seeds[-1]]))
        one = len(seeds) == 1
        parts.append(
            f"seed{'s' * (not one)} {named} {'has' if one else 'have'} no result in the store (damaged, "
            "deleted, or not run yet)"
        )
    return "; ".join(parts)
