"""What a page of runs shows before anything else: key numbers, and what limits their value."""

from __future__ import annotations

from collections.abc import Sequence

from weftline.errors import Conflict
from weftline.figures.marks import COLOURS
from weftline.measures import evidence, line_notes, losses, pooling, separations
from weftline.measures.lines import Line
from weftline.measures.metrics import Flows, metric
from weftline.report.page import Caution, KeyNumber

KEYS = ("slowdown_p50", "slowdown_p99", "queue_p99", "goodput_total", "jain", "pauses")
"""Metrics of the first row of a page, where they were measured."""
ALARMS = (("flows unfinished", ("unfinished",)), ("packets lost", losses.SHOWN))
"""Counts that have to be zero for the other numbers to be the whole story."""
_UNFINISHED = "flows did not finish"
"""What the engine writes of a run that left flows unfinished."""
MAX_KEYS, MAX_LINES = 6, 6
"""Cards, one fewer where each has bars; and lines in a card."""


def key_numbers(lines: Sequence[Line], first: Sequence[str] = ()) -> list[KeyNumber]:
    """Return the key numbers of some lines, losses before all others where there are any.

    `first` names metrics that come before the usual ones.
    """
    alarms = [KeyNumber(title=title, values=_values(lines, names), is_alarm=True) for title, names in ALARMS]
    others = [
        KeyNumber(title=metric(name).title, values=_values(lines, (name,)))
        for name in dict.fromkeys([*first, *KEYS])
        if not name.startswith("slowdown") or all(line.has_flows for line in lines)
    ]
    raised = [number for number in alarms if any(share for *_, share in number.values)]
    calm = [KeyNumber(title=n.title, values=n.values) for n in alarms if n not in raised]
    found = [number for number in [*raised, *others[:-1], *calm, others[-1]] if number.values]
    return found[: MAX_KEYS - (len(lines) > 1)]


def _values(lines: Sequence[Line], names: Sequence[str]) -> list[tuple[str, str, str, float]]:
    """Return label, text, colour and share of the largest of the sum of some metrics, by line.

    "–" stands for a percentile of too few flows; nothing is returned if it is one for all lines.
    """
    found = []
    few = {line.label for line in lines[:MAX_LINES] if any(_is_of_few(line, name) for name in names)}
    if len(few) == len(lines[:MAX_LINES]):
        return []
    for number, line in enumerate(lines[:MAX_LINES]):
        means = [mean for name in names if (mean := line.metric(name)) is not None]
        if line.label in few:
            found.append((line.label, "–", COLOURS[number % len(COLOURS)], 0.0))
        elif means:
            total = sum(mean.value for mean in means)
            write = metric(names[0]).text
            text = means[0].text(write) if len(means) == 1 else write(total)
            found.append((line.label, text, COLOURS[number % len(COLOURS)], total))
    highest = max((total for *_, total in found), default=0)
    if found and not highest:
        return [("", "0", "", 0.0)]
    return [
        (label, text, colour, total / highest if highest > 0 else 0.0) for label, text, colour, total in found
    ]


def _is_of_few(line: Line, name: str) -> bool:
    counted = line.counts.counted(line.runs, name) if evidence.needed(name) else 0
    return bool(evidence.few_flows(name, counted))


def cautions(lines: Sequence[Line]) -> list[Caution]:
    """Return what limits the value of these runs' numbers, gravest first."""
    found = [Caution("Flows", text) for text in line_notes.counted_texts(lines)]
    for line in lines:
        of = f"{line.label}: " if len(lines) > 1 else ""
        said = any(_UNFINISHED in warning for warning in line_notes.warnings_of([line]))
        if not said and (left := line.unfinished()):
            text = f"{of}{evidence.unfinished_text(left, line.runs)}; completion times leave them out"
            found.append(Caution("Unfinished", text, is_grave=True))
        if text := evidence.steps_text("step_mean", line.runs, Flows(group=line.group)):
            text = f"{of}{text}; times of steps leave the others out"
            found.append(Caution("Unfinished", text, is_grave=True))
        lost = [
            f"{line.metric_text(name)} {metric(name).title}"
            for name in losses.SHOWN
            if (mean := line.metric(name)) and mean.value
        ]
        if lost:
            found.append(Caution("Lost packets", of + ", ".join(lost), is_grave=True))
    first, *others = lines
    unlike = [line.label for line in others if not pooling.same_traffic(first.runs, line.runs)]
    if unlike:
        text = f"the flows of {', '.join(unlike)} are not those of {first.label}: compare them with care"
        found.append(Caution("Unequal", text, is_grave=True))
    if len(lines) > 1 and any(len(line.runs) == 1 for line in lines):
        single = [line.label for line in lines if len(line.runs) == 1]
        found.append(Caution("Under-sampled", f"{', '.join(single)}: one seed (there is no interval)"))
    finished = [line for line in lines if line.has_flows]
    sizes = sorted({decade for line in finished for decade in line.by_decade()})
    if few := separations.few_flows(finished, sizes) if finished else "":
        found.append(Caution("Under-sampled", f"too few flows for a percentile: {few}"))
    for warning in line_notes.warnings_of(lines):
        text = warning if len(lines) > 1 else warning.removeprefix(f"{first.label}: ")
        kind = "Unfinished" if _UNFINISHED in warning else "Warning"
        is_grave = kind == "Unfinished" or isinstance(warning, Conflict)
        found.append(Caution(kind, text, is_grave=is_grave))
    return sorted(found, key=lambda caution: not caution.is_grave)
