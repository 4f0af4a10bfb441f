"""Comparison of runs: slowdown by flow size, what it costs, and what schemes differ by.

For the terminal, for a page and as JSON. Runs that differ in the seed alone are one line (`pooling`);
differences are taken from the line that `bases` names, seed by seed where both carried the same flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, nearest, warn
from weftline.measures import (
    decoded,
    evidence,
    flow_rows,
    groups,
    jobs,
    judgements,
    line_notes,
    queue_ports,
    separations,
    slowdown_table,
    stats,
)
from weftline.measures.bases import Axis, Bases
from weftline.measures.given import check_label, found_in
from weftline.measures.judgements import Footnotes, Reason, Separation
from weftline.measures.labels import left_unsaid
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import METRICS, Flows, metric
from weftline.measures.pooling import are_same_bits, same_results, seed_of, shortened
from weftline.sweeps.sweepfile import check_window
from weftline.terminal import Table, warnings_html, wrapped

if TYPE_CHECKING:
    from weftline.lab.agreement import Agreement
    from weftline.measures.given import Given


NO_BASE = Reason("base", "no other line is alike except for one setting")

COMPARED = (
    "step_mean",
    "slowdown_mean",
    "slowdown_p50",
    "slowdown_p95",
    "slowdown_p99",
    "fct_mean",
    "goodput",
    "queue_p99",
    "drops",
)
"""Metrics whose differences are shown, where they were measured."""


class Comparison:
    """Comparison of runs.

    Attributes
    ----------
    lines : list of Line
        What is compared: each a label and its runs, which differ in the seed alone.
    base : Line
        What the others' differences are taken from; in a sweep the first of several, see `base_of`.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        *,
        against: str | None = None,
        axis: Axis | None = None,
        notes: Sequence[str] = (),
        warnings: Sequence[str] = (),
    ) -> None:
        self.lines = list(lines)
        self._notes, self._warnings = list(notes), list(warnings)
        if not self.lines:
            raise InputError("nothing to compare: expected folders of runs or of sweeps that have results")
        self._bases = Bases(self.lines, axis, against)
        self.base = self._bases.first

    def line(self, of: Line | str) -> Line:
        """Return a line, given itself or by its label.

        Raises
        ------
        InputError
            If this is none of `lines`.
        """
        found = next((line for line in self.lines if line is of or line.label == of), None)
        if found is None:
            known = [line.label for line in self.lines]
            near = nearest(of, known) if isinstance(of, str) else ""
            raise InputError(f"expected a line or its label, found {of!r}: {near}known: {', '.join(known)}")
        return found

    def base_of(self, line: Line | str) -> Line | None:
        """Return the line that another one's differences are taken from; None if there is none like it."""
        return self._bases.of(self.line(line))

    def difference(self, name: str, line: Line | str) -> stats.Difference | None:
        """Return a metric of a line, or of the line of a label, minus that of its base.

        By seed if both carried the same flows; None if it has no base.
        """
        line = self.line(line)
        base = self.base_of(line)
        if base is None:
            return None
        return separations.of_metric(name).difference(line, base)

    def separation(self, name: str, line: Line | str) -> Separation:
        """Return whether a line is lower or higher than its base in a metric, or not separated and why."""
        line = self.line(line)
        key = (name, id(line))
        if key not in self._separations:
            self._separations[key] = self._separation(name, line)
        return self._separations[key]

    @cached_property
    def _separations(self) -> dict[tuple[str, int], Separation]:
        return {}

    def _separation(self, name: str, line: Line) -> Separation:
        base = self.base_of(line)
        if base is None:
            doubts = separations.of_metric(name).reasons(line)
            return Separation(0, tuple(doubts) or (NO_BASE,))
        return separations.of_metric(name).between(line, base, paired=False)

    @cached_property
    def warnings(self) -> list[str]:
        """What deserves a look before these numbers are trusted: of the lines, and of the runs themselves."""
        of_percentiles = separations.percentile_warnings(self.lines)
        return [*self._warnings, *line_notes.warnings_of(self.lines), *of_percentiles, *self._of_seeds]

    @property
    def _of_seeds(self) -> list[str]:
        """Sentences on differences over few seeds, and over seeds that one of two lines alone has."""
        found, few = [], set()
        for line in self.lines:
            base = self.base_of(line)
            if base is None:
                continue
            shown = [one for name in COMPARED if (one := self.difference(name, line))]
            few |= {one.estimate.count for one in shown if 1 < one.estimate.count < stats.FEW}
            ours, theirs = (set(map(seed_of, one.runs)) for one in (line, base))
            if ours != theirs and ours & theirs and any(one.paired for one in shown):
                found.append(
                    f"{line.label} has {stats.seeds_text([len(ours)])}, {base.label} {len(theirs)}: their "
                    f"differences are over the {len(ours & theirs)} that both have, their means over all"
                )
        return [
            *found,
            *([f"differences over {stats.seeds_text(sorted(few))}: {stats.FEW_TEXT}"] if few else []),
        ]

    def table(self) -> Table:
        """Return slowdown by flow size and costs, three rows a line."""
        found = slowdown_table.table(self.lines)
        found.note = " ".join(filter(None, [found.note, queue_ports.note(self.lines)]))
        return found

    def differences(self) -> Table | None:
        """Return what each line differs by from its base, None if no line has one."""
        from weftline.sweeps.tables import difference_text, differences_note

        compared = [(line, base) for line in self.lines if (base := self.base_of(line))]
        if not compared:
            return None
        names = [name for name in COMPARED if name != "drops" or _any_drops(base for _, base in compared)]
        found = {line.label: {name: self.difference(name, line) for name in names} for line, _ in compared}
        names = [name for name in names if any(of[name] for of in found.values())]
        notes = Footnotes()
        one_base = len({base.label for _, base in compared}) == 1

        def text(line: Line, base: Line, name: str) -> str:
            message = difference_text(
                found[line.label][name], metric(name).difference_text, self.separation(name, line), notes
            )
            return message + _qualifier([line, base], name)

        rows = [
            [
                line.label if one_base else f"{line.label} minus {base.label}",
                *(text(line, base, name) for name in names),
            ]
            for line, base in compared
        ]
        head = f"minus {compared[0][1].label}" if one_base else "difference"
        shown = [one for of in found.values() for name in names if (one := of[name])]
        intervals = any(one.estimate.low is not None for one in shown)
        same = same_results((line.label, line.runs) for line in self.lines)
        recorded = [
            metric(name).title
            for name in names
            if any(
                are_same_bits(line.runs, base.runs) and self.separation(name, line).order
                for line, base in compared
            )
        ]
        left = any(line.left_text(name) for line in self.lines for name in names if metric(name).completion)
        note = differences_note(
            stats.how_taken(shown),
            notes,
            intervals=intervals,
            found=shown,
            unfinished=left,
            same=same,
            recorded=recorded,
        )
        result = Table([head, *(metric(n).title for n in names)], rows, note=note)
        for row, (line, _) in enumerate(compared):
            for column, name in enumerate(names, start=1):
                if order := self.separation(name, line).order:
                    better = (order > 0) == metric(name).higher_is_better
                    result.marks[row, column] = "better" if better else "worse"
        return result

    @property
    def _without_base(self) -> str:
        """A sentence on the lines that are compared with nothing, empty if there are none."""
        bases = [base for line in self.lines if (base := self.base_of(line))]
        left = [line for line in self.lines if self.base_of(line) is None and line not in bases]
        if len(self.lines) < 2 or not left:
            return ""
        partial = [line.label for line in left if not line.is_done]
        alone = [line.label for line in left if line.is_done and line is not self.base]
        parts = []
        if partial:
            parts.append(f"No difference is shown for what is not done: {'; '.join(partial)}.")
        if alone:
            parts.append(
                "No difference is shown where no other line is alike except for one setting: "
                f"{shortened(alone)}. Name a line with --against (against= in Python)."
            )
        return " ".join(parts)

    @cached_property
    def notes(self) -> list[str]:
        """What a reader has to know: what labels leave out, and which lines have no base."""
        pools = [line.pool for line in self.lines if line.pool is not None]
        unsaid = left_unsaid(pools) if len(pools) == len(self.lines) > 1 else []
        found = [*self._notes, *line_notes.counted_texts(self.lines)]
        found += [f"These lines also differ in {shortened(unsaid)}."] if unsaid else []
        pooled = (
            evidence.pooled_text("step_mean", line.runs, Flows(group=line.group)) for line in self.lines
        )
        found += list(dict.fromkeys(filter(None, pooled)))
        if self._has_lab:
            from weftline.lab import agreement

            found += agreement.without_twins(self.lines)
        return found + ([self._without_base] if self._without_base else [])

    def as_json(self) -> dict[str, Any]:
        """Return all numbers for programs."""
        differences = {
            line.label: {
                name: {
                    "mean": found.estimate.mean,
                    "low": found.estimate.low,
                    "high": found.estimate.high,
                    "seeds": found.estimate.count,
                    "differ": found.unequal,
                    "paired": found.paired,
                    "separated": (separation := self.separation(name, line)).word,
                    "reasons": judgements.reasons_text(separation.reasons),
                }
                for name in COMPARED
                if (found := self.difference(name, line))
            }
            for line in self.lines
            if self.base_of(line) is not None
        }
        bases = {line.label: base.label for line in self.lines if (base := self.base_of(line))}
        return {
            **as_json(self.lines),
            "against": self.base.label,
            "bases": bases,
            "differences": differences,
            "warnings": self.warnings,
            "notes": self.notes,
            **({"agreement": [asdict(one) for one in self.agreements]} if self.agreements else {}),
        }

    @property
    def _has_lab(self) -> bool:
        return any(run.summary.get("engine") == "lab" for line in self.lines for run in line.runs)

    @cached_property
    def agreements(self) -> list[Agreement]:
        """How lines of the lab agree with the simulated ones of their scenario."""
        if not self._has_lab:
            return []
        from weftline.lab import agreement

        return agreement.of(self.lines)

    def tables(self) -> list[Table]:
        """Return all tables: slowdown and costs, groups, jobs, differences."""
        found = (self.table(), groups.table(self.lines), jobs.table(self.lines), self.differences())
        return [table for table in found if table] + [one.table() for one in self.agreements]

    def __str__(self) -> str:
        return self.text()

    def text(self, *, colour: bool = False) -> str:
        """Return all as text; with `colour`, numbers that are separated are green where better, else red."""
        tables = [found.text(colour=colour) for found in self.tables()]
        return "\n\n".join([*tables, *([wrapped("\n".join(self.notes))] if self.notes else [])])

    def __repr__(self) -> str:
        many = len(self.warnings)
        warned = f", {many} warning{'s' if many > 1 else ''}" if many else ""
        return f"<weftline.Comparison of {', '.join(repr(line.label) for line in self.lines)}{warned}>"

    def _repr_html_(self) -> str:
        tables = "".join(found.html() for found in self.tables())
        return (
            tables + "".join(f"<p>{escape(note)}</p>" for note in self.notes) + warnings_html(self.warnings)
        )


def _any_drops(lines: Iterable[Line]) -> bool:
    return any(slowdown_table.positive(line.metric("drops")) for line in lines)


def compare(
    *of: Given,
    against: str | None = None,
    labels: Sequence[str] = (),
    group: str | None = None,
    min_size: int | str | None = None,
    max_size: int | str | None = None,
    warmup: str | None = None,
    drain: str | None = None,
) -> Comparison:
    """Compare runs: percentiles by flow size, costs, and differences with 95 % intervals.

    Parameters
    ----------
    *of : path, Run, SweepResult or dict
        Runs, folders of runs, sweeps, or result stores, whose runs are all taken; a dict gives them by label,
        ``{"Mine": run, "Theirs": [other, another]}``. Runs that differ in the seed alone
        are averaged: the same resolved scenario except for keys that change no bit, files by content, by the
        same build, all done. The combinations of a sweep or a store are each compared with the one that
        differs in one axis.
    against : str, optional
        The label of what the others are compared with, or a variant of an axis of a sweep; without it the
        first.
    labels : sequence of str, optional
        What the lines are called, in their order.
    group : str, optional
        Only the flows of this group count. This, the sizes, `warmup` and `drain` are those of the report of a
        sweep without it; elsewhere all flows count.
    min_size, max_size : int or str, optional
        Range of sizes of the flows that count, ends included: bytes, or text such as ``"10KB"``.
    warmup, drain : str, optional
        Flows that start within this time (``"1ms"``), or share (``"10%"``), of the beginning or end of the
        arrivals do not count.

    What deserves a look is in ``warnings``, and given as `WeftlineWarning`.

    Raises
    ------
    InputError
        If a folder holds no results.
    """
    choice = chosen_flows(
        group=group, min_size=min_size, max_size=max_size, warmup=warmup, drain=drain, prefix=""
    )
    found = comparison_of(of, against=against, labels=labels, choice=choice)
    warn(found.warnings)
    return found


def comparison_of(
    of: Sequence[Given],
    *,
    against: str | None = None,
    labels: Sequence[str] = (),
    choice: Mapping[str, Any] | None = None,
) -> Comparison:
    """Return the same without giving its warnings; `choice` is what `chosen_flows` returns."""
    found = found_in(of)
    lines = _labelled(found.lines, labels)
    if choice:
        lines = [_choosing(line, choice) for line in lines]
    notes = [] if choice else found.notes
    return Comparison(lines, against=against, axis=found.axis, notes=notes, warnings=found.warnings)


def chosen_flows(*, prefix: str, **given: Any) -> dict[str, Any]:
    """Return the settings of a `FlowChoice` that were given, checked; names in errors begin with `prefix`.

    Raises
    ------
    InputError
        If a size, or a time or share, is none, or no flow can be chosen.
    """
    named = {key: f"{prefix}{key.replace('_', '-') if prefix else key}" for key in given}
    found = {key: value for key, value in given.items() if value is not None}
    for key in ("min_size", "max_size"):
        if key in found:
            found[key] = flow_rows.size_of(found[key], named[key])
    low, high = found.get("min_size", 0), found.get("max_size")
    if high is not None and low > high:
        raise InputError(f"expected {named['min_size']} at most {named['max_size']}, found {low} and {high}")
    check_window({key: found[key] for key in ("warmup", "drain") if key in found}, named.__getitem__)
    return found


def _choosing(line: Line, choice: Mapping[str, Any]) -> Line:
    """Return a line in which other flows count."""
    chosen = replace(line.by_size, **choice)
    if chosen.group is not None:
        for run in line.runs:
            flow_rows.check_group(run, chosen.group)
    if not chosen.counts_any(line.runs):
        raise InputError(f"{line.label}: no flow counts. {chosen.text()}")
    return replace(line, chosen=chosen, group=chosen.group)


def _labelled(lines: list[Line], labels: Sequence[str]) -> list[Line]:
    """Give lines other labels, if there are any."""
    if not labels:
        return lines
    if len(labels) != len(lines):
        known = ", ".join(line.label for line in lines)
        raise InputError(
            f"{len(labels)} label{'s' * (len(labels) != 1)} for {len(lines)} line{'s' * (len(lines) != 1)}: "
            f"expected one for each of {known}"
        )
    for label in labels:
        check_label(label)
    if len(set(labels)) < len(labels):
        raise InputError("two lines have the same label: expected different ones")
    return [replace(line, label=label) for line, label in zip(lines, labels, strict=True)]


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the same numbers for programs; ``interval`` is null for a single run."""
    return {
        "lines": [
            {
                "label": line.label,
                "runs": [str(run.out) for run in line.runs],
                "seeds": [run.summary.get("seed") for run in line.runs],
                **({"asked": list(line.asked)} if line.asked else {}),
                **({} if line.by_size.is_all else {"flows": asdict(line.by_size)}),
                "slowdown": {
                    "all": _numbers(line.overall()),
                    **{
                        str(10**decade): _numbers(p) | {"flows": separations.fewest([line], decade)}
                        for decade, p in sorted(line.by_decade().items())
                    },
                },
                "metrics": {
                    name: _number(line.metric(name)) for name in METRICS if not name.startswith("slowdown")
                },
                "unknown_paths": {
                    name: {"unknown": left, "of": of}
                    for name in decoded.KNOWN
                    for left, of in [evidence.paths_open(name, line.runs)]
                    if of
                },
            }
            for line in lines
        ]
    }


def _qualifier(lines: Sequence[Line], name: str) -> str:
    """Note on a difference of these lines: what did not finish, where that matters."""
    runs = [run for line in lines for run in line.runs]
    left = sum(line.unfinished(name) for line in lines) if evidence.of_finished_flows(name) else 0
    undecided = evidence.undecided_text(
        name, runs, [line.counts.of_run(run, name) for line in lines for run in line.runs]
    )
    return evidence.qualifier(left=evidence.left_text(name, runs, unfinished_flows=left, undecided=undecided))


def _number(mean: Mean | None) -> dict[str, Any] | None:
    if mean is None:
        return None
    found: dict[str, Any] = {"value": mean.value, "interval": mean.interval, "seeds": mean.count}
    if mean.interval is not None:
        found |= {"low": mean.low, "high": mean.high}
    found |= {"odd": asdict(mean.oddity)} if mean.oddity else {}
    return found | ({"bin": mean.bin_width} if mean.bin_width else {})


def _numbers(percentiles: dict[str, Mean | None]) -> dict[str, Any]:
    return {p: _number(mean) for p, mean in percentiles.items()}
