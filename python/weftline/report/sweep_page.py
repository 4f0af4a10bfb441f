"""The page of a sweep: its question, what kept the bound and what did not, tables, curves with intervals."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from weftline.errors import InputError
from weftline.figures import load_figures, marks
from weftline.figures.specs import Figure
from weftline.measures import evidence, given, judgements, networks, queue_ports
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import metric
from weftline.report import answer_text, headline, page, run_page, why_page
from weftline.report.page import Caution, Lead, Section
from weftline.sweeps import tables
from weftline.sweeps.axes import title_of
from weftline.sweeps.result import Cell, SweepResult
from weftline.sweeps.sweepfile import Choice

MAX_LINES = 12
"""Curves in a figure, and combinations whose flows are drawn."""
MAX_ABOUT = 60
"""Runs named at the foot of the page; the store has them all."""


def write(
    result: SweepResult,
    path: Path,
    *,
    title: str = "",
    question: str = "",
    command: str = "",
    answers: int = 0,
) -> Path:
    """Write the page of a sweep and return its path; the parameters are those of `run_page.write`.

    Raises
    ------
    InputError
        If no point of the sweep has a result yet.
    """
    if not result.cells:
        raise InputError(f"{result.path}: no point of the sweep has a result yet; run it, or --retry it")
    lines = [given.result_line(result, _label(cell), cell) for cell in _drawn(result)]
    drawn = {line.choice for line in lines}
    left = [cell for cell in result.cells if cell.choice not in drawn]
    others = [given.result_line(result, _label(cell), cell) for cell in left]
    text = page.html(
        title=title or result.name,
        subtitle=_subtitle(result),
        about=run_page.about(
            [(line.label, run) for line in lines for run in line.runs][:MAX_ABOUT], command=command
        ),
        lead=Lead(
            question=question or result.question or answer_text.question(lines, others),
            answer=answer(result),
            numbers=headline.key_numbers(lines, result.metrics, others=others),
            cautions=[Caution("Warning", f"{warning}") for warning in tables.warnings(result)],
        ),
        sections=[
            Section(title="The scenario", text="\n\n".join(_scenario(result, lines[0]))),
            Section(title="Answer in numbers", text=_notes(result), tables=result.tables()),
            Section(title="Curves", figures=curves(result)),
            *run_page.figure_sections(lines, by_size=False, heats=False),
            *why_page.slowest_section(lines[:1], answers=answers),
            run_page.rerun_section(lines[:1]),
        ],
    )
    return page.save(path, text)


def _scenario(result: SweepResult, first: Line) -> list[str]:
    """Return the scenario of the first combination in words, and what the others have else."""
    parts = answer_text.scenario([first], networks.built(first.runs[0]))
    varied = [axis.name for axis in result.axes if len(axis.variants) > 1]
    if varied:
        parts.append(f"This is {first.label}; the others differ in {answer_text.listed(varied)}.")
    kinds = dict.fromkeys(
        answer_text.transport(next(iter(cell.runs.values()))) for cell in result.cells if cell.runs
    )
    if len(kinds) > 1:
        parts.append(f"Transports: {'; '.join(kinds)}.")
    return parts


def answer(result: SweepResult) -> list[str]:
    """Return what the sweep answers: who keeps its bound where, or who is first by its first metric."""
    parts = _kept(result) if result.report.bound else _ranked(result)
    if result.failed or result.missing:
        parts.append(f"{len(result.failed)} points failed, {len(result.missing)} have not been run yet.")
    # Of all numbers of the page, those at its top too.
    return parts + ([] if result.choice.is_all else [f"{result.choice.text()}, in every number of flows."])


def _kept(result: SweepResult) -> list[str]:
    """Return which combinations keep the bound, which do not, and why the others are open."""
    judged = [(cell, result.judgement(cell)) for cell in result.combinations]
    parts = []
    for answer, word in (("yes", "Kept"), ("no", "Not kept"), ("open", "Open")):
        cells = [_label(cell) for cell, verdict in judged if verdict.answer == answer]
        parts += [f"{word}: {'; '.join(cells)}."] if cells else []
    reasons = [reason for _, verdict in judged for reason in verdict.reasons]
    return [*parts, *([f"Why open: {judgements.reasons_text(reasons)}."] if reasons else [])]


def _ranked(result: SweepResult) -> list[str]:
    """Return who has the lowest (or highest) first metric at each place of the axes that are not compared.

    Only there do schemes carry the same flows; one is named where it is separated from all others.
    """
    name = result.metrics[0]
    places: dict[str, list[Cell]] = {}
    for cell in result.combinations:
        places.setdefault(_text(result.place(cell)), []).append(cell)
    alone = len(places) == 1
    return [_first(result, name, "" if alone else place, cells) for place, cells in places.items()][
        :MAX_LINES
    ]


def _first(result: SweepResult, name: str, place: str, cells: Sequence[Cell]) -> str:
    """Return one place's values of a metric, and who is first if one is."""
    found = {cell.at(result.rows_axis) if result.rows_axis else "": cell for cell in cells}
    estimates = {label: result.estimate(name, cell) for label, cell in found.items()}
    means = {label: Mean.of_estimate(one) for label, one in estimates.items() if one}
    standing = judgements.leader(
        list(found),
        {label: mean.value for label, mean in means.items()},
        lambda a, b: result.separation(name, found[a], found[b]),
        highest=metric(name).higher_is_better,
    )
    texts = {
        label: f"{label} {mean.text(metric(name).text)}".strip()
        + evidence.qualifier(
            runs=mean.count or 0,
            asked=result.asked,
            left=result.left_text(name, found[label]),
        )
        for label, mean in means.items()
    }
    return answer_text.standing(
        metric(name).title, place, texts, standing, highest=metric(name).higher_is_better
    )


def curves(result: SweepResult) -> list[Figure]:
    """Return each metric over the axis of x, a curve for each other combination, if there is such an axis."""
    axis = next((axis for axis in result.axes if axis.name == result.report.along and axis.numbers), None)
    axis = axis or next((axis for axis in result.axes if axis.numbers), None)
    if axis is None or len(axis.variants) < 2:
        return []
    drawn = [name for name in result.metrics if any(result.estimate(name, cell) for cell in result.cells)]
    return [curve(result, name, axis.name) for name in drawn]


def curve(result: SweepResult, name: str, along: str) -> Figure:
    """Return one metric of a sweep over an axis of numbers, with bands where there are several seeds.

    Of more than `MAX_LINES` lines the first are drawn; the caption states this, and which points have no
    value.
    """
    axis = next((axis for axis in result.axes if axis.name == along), None)
    if axis is None or not axis.numbers:
        known = ", ".join(axis.name for axis in result.axes if axis.numbers)
        if not known:
            raise InputError("this sweep has no axis whose variants are distinct numbers of one unit")
        raise InputError(
            f'"{along}" is not an axis of numbers in this sweep; the axes of numbers are: {known}'
        )
    place = dict(zip(axis.variants, axis.numbers, strict=True))
    found, together = metric(name), result.together(along)
    points = []
    lacking: list[Cell] = []
    for cell in result.combinations:
        estimate = result.estimate(name, cell)
        if estimate is None:
            lacking.append(cell)
            continue
        mean = Mean.of_estimate(estimate, found.scale)
        points.append((_label(cell, without=together), place[cell.at(along)], mean))
    if not points:
        raise InputError(f"{name} has no value in any combination of this sweep: there is nothing to draw")
    lines = list(dict.fromkeys(label for label, _, _ in points))
    kept = lines[:MAX_LINES]
    labels = list(dict.fromkeys(_label(cell, without=together) for cell in result.cells))
    notes = [_zipped_text(result, along), _ports(result, name), _left_out(result, name)]
    if lacking:
        notes.append(f"Without a value: {'; '.join(map(_label, lacking))}.")
    if len(lines) > len(kept):
        notes.append(f"The first {len(kept)} of {len(lines)} lines are drawn.")
    title = found.title[:1].upper() + found.title[1:]
    figure = load_figures.curve(
        f"{title} over {along}",
        [point for point in points if point[0] in kept],
        axes=(title_of(axis.name, axis.variants), found.axis or found.title),
        caption=" ".join(filter(None, notes)),
    )
    marks.keep_marks(figure.spec, labels)
    return figure


def _ports(result: SweepResult, name: str) -> str:
    """Return which ports a metric of queues is of, where ports of hosts are among them; "" of another one."""
    if "queue_histogram" not in metric(name).measured_by:
        return ""
    return queue_ports.note([given.result_line(result, _label(cell), cell) for cell in result.cells])


def _left_out(result: SweepResult, name: str) -> str:
    """Return which means of a figure are of fewer runs, or leave out what did not finish, for its caption."""
    parts = []
    for cell in result.cells:
        estimate = result.estimate(name, cell)
        left = result.left_text(name, cell)
        text = evidence.qualifier(runs=estimate.count if estimate else 0, asked=result.asked, left=left)
        parts += [f"{_label(cell)}{text}"] if text and estimate else []
    return (
        f"Fewer runs, or unfinished flows or steps, or unknown paths, that are left out: {'; '.join(parts)}."
        if parts
        else ""
    )


def _drawn(result: SweepResult) -> Sequence[Cell]:
    """The combinations whose flows are drawn: all, or those at the last place of the axis of x."""
    if len(result.cells) <= MAX_LINES or not result.report.along:
        return result.cells[:MAX_LINES]
    last = next(axis.variants[-1] for axis in result.axes if axis.name == result.report.along)
    at_last = [cell for cell in result.cells if cell.at(result.report.along) == last]
    return (at_last or result.cells)[:MAX_LINES]


def _zipped_text(result: SweepResult, along: str) -> str:
    """Return which axes advance with the axis of x, for the caption; "" if none."""
    axes = [axis for axis in result.axes if axis.name in result.together(along) - {along}]
    parts = [f"{axis.name} ({', '.join(axis.variants)})" for axis in axes]
    return f"With {along} advances {' and '.join(parts)}." if parts else ""


def _label(cell: Cell, *, without: Collection[str] = ()) -> str:
    return _text(tuple(pair for pair in cell.choice if pair[0] not in without))


def _text(choice: Choice) -> str:
    parts = [f"{axis} {variant}" if _is_number(variant) else variant for axis, variant in choice]
    return ", ".join(parts) or "all"


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _subtitle(result: SweepResult) -> str:
    runs = sum(len(cell.runs) for cell in result.cells)
    return f"{len(result.cells)} combinations, {runs} runs, weftline {result.version}"


def _notes(result: SweepResult) -> str:
    """What was varied, and what the numbers are."""
    return "\n\n".join([_axes_text(result), *tables.notes(result)])


def _axes_text(result: SweepResult) -> str:
    axes = "; ".join(f"{axis.name}: {', '.join(axis.variants)}" for axis in result.axes)
    seeds = (
        f"seeds {', '.join(map(str, result.seeds))}" if len(result.seeds) > 1 else f"seed {result.seeds[0]}"
    )
    return f"Varied: {axes or 'nothing'}; {seeds}, the same for every combination."
