"""What a page of runs shows before anything else: key numbers, and what limits their value."""

from __future__ import annotations

from collections.abc import Sequence

from weftline.errors import Conflict
from weftline.figures.marks import COLOURS
from weftline.measures import evidence, line_notes, losses, measured_alike, pooling, queue_ports, separations
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


def key_numbers(
    lines: Sequence[Line], first: Sequence[str] = (), *, others: Sequence[Line] = ()
) -> list[KeyNumber]:
    """Return the key numbers of some lines, losses before all others where there are any.

    Parameters
    ----------
    first : sequence of str
        Metrics that come before the usual ones.
    others : sequence of Line
        Lines that the page does not draw; their losses count all the same.
    """
    alarms = [_card([*lines, *others], names, title, is_alarm=True) for title, names in ALARMS]
    numbers = [
        _card(lines, (name,), _title(lines, name))
        for name in dict.fromkeys([*first, *KEYS])
        if not name.startswith("slowdown") or all(line.has_flows for line in lines)
    ]
    raised = [number for number in alarms if number.is_alarm]
    calm = [number for number in alarms if not number.is_alarm]
    found = [number for number in [*raised, *numbers[:-1], *calm, numbers[-1]] if number.values]
    return found[: MAX_KEYS - (len(lines) > 1)]


def _title(lines: Sequence[Line], name: str) -> str:
    """Return the title of a metric, with the ports of one of queues, and with how many flows were measured.

    The latter where these are not all.
    """
    title = queue_ports.titled(name, lines)
    if "goodput" not in metric(name).measured_by:
        return title
    counts = dict.fromkeys(filter(None, (measured_alike.flows_measured(line.runs[0]) for line in lines)))
    texts = [f"{count:,} of {of:,}" for count, of in counts]
    return f"{title} ({' and '.join(texts)} flows)" if any(n < of for n, of in counts) else title


def _card(lines: Sequence[Line], names: Sequence[str], title: str, *, is_alarm: bool = False) -> KeyNumber:
    """Return a card of the sum of some metrics: a bar for each line, or one number that is that of all lines.

    It has up to `MAX_LINES` lines, with a note if there are more. In an alarm those that are not zero come
    first. "–" stands for a percentile of too few flows; the card is empty if it is one for all lines.
    """
    found = []
    few = {line.label for line in lines if any(_is_of_few(line, name) for name in names)}
    if len(few) == len(lines):
        return KeyNumber(title=title, values=[])
    write = metric(names[0]).text
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        means = [mean for name in names if (mean := line.metric(name)) is not None]
        if line.label in few:
            found.append((line.label, "–", colour, 0.0))
        elif means:
            total = sum(mean.value for mean in means)
            text = means[0].text(write) if len(means) == 1 else write(total)
            found.append((line.label, text, colour, total))
    highest = max((total for *_, total in found), default=0)
    if len(found) == len(lines) and not highest:
        return KeyNumber(title=title, values=[("", "0", "", 0.0)])
    # Sorting keeps the order of lines that are not zero, and of those that are.
    ordered = sorted(found, key=lambda one: not one[3]) if is_alarm else found
    shown, hidden = ordered[:MAX_LINES], ordered[MAX_LINES:]
    note = f"{len(shown)} of {len(lines)} lines" if shown and len(shown) < len(lines) else ""
    if is_alarm and hidden and len(found) == len(lines) and not any(total for *_, total in hidden):
        note += ", 0 in the others"
    values = [
        (label, text, colour, total / highest if highest > 0 else 0.0) for label, text, colour, total in shown
    ]
    return KeyNumber(title=title, values=values, is_alarm=is_alarm and highest > 0, note=note)


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
    found += [Caution("Unequal", text, is_grave=True) for text in _unlike(lines)]
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


def _unlike(lines: Sequence[Line]) -> list[str]:
    """Return which numbers of the first row some lines did not measure as the first one did, and in what."""
    first, *others = lines
    found: dict[tuple[str, str], list[str]] = {}
    for line in others:
        for name in KEYS:
            if line.metric(name) and first.metric(name):
                why = measured_alike.unlike(name, first.runs, line.runs)
                found.setdefault((line.label, why), []).append(metric(name).title)
    return [
        f"{', '.join(titles)}: {label} is not measured as {first.label} is ({why}): compare them with care"
        for (label, why), titles in found.items()
        if why
    ]
