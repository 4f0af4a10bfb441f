"""`weftline reproduce` of an experiment on what runs cost: one run at a time, several of each point."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from weftline.errors import InputError
from weftline.reproduce import cost, cost_exhibits, findings
from weftline.reproduce.choices import Size
from weftline.reproduce.experiments import Experiment
from weftline.terminal import ProgressLine

plan = cost.plan


def refuse(experiment: Experiment, size: Size, options: argparse.Namespace) -> None:
    """Refuse options that an experiment on cost cannot follow."""
    if len(size.seeds) > 1:
        raise InputError(f"--seeds: {experiment.name} measures what runs cost; expected one seed")
    if (options.jobs or 1) > 1:
        raise InputError(
            f"--jobs {options.jobs}: {experiment.name} measures time; expected one run at a time"
        )
    if options.threads > 1:
        raise InputError(
            f"--threads {options.threads}: the lines of {experiment.name} state how many threads they use"
        )
    if options.on != "local":
        raise InputError(f"--on {options.on}: {experiment.name} measures time; expected this machine")


def amount(experiment: Experiment, points: Sequence[cost.Point]) -> str:
    """Return how much is measured, for the first lines of the output."""
    return f"{len(points)} points, {experiment.repeats} runs of each"


def carry_out(
    experiment: Experiment,
    size: Size,
    panels: list[cost.Panel],
    points: list[cost.Point],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Measure what is not measured yet and check the claims; None when interrupted."""
    line = ProgressLine(quiet=options.quiet or options.json)
    try:
        failed = cost.measure(points, experiment.repeats, show=lambda text: line.show(text, at_once=True))
    except KeyboardInterrupt:
        return None
    finally:
        line.clear()
    for panel in panels:
        panel.measured = cost.summaries(panel.points, experiment.repeats)
    verdicts = [v for claim in experiment.claims if (v := cost.check(claim, panels)) is not None]
    return cost_exhibits.findings(experiment, size, panels, verdicts, failed)
