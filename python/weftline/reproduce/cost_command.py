"""`weftline reproduce` of an experiment on what runs cost: one run at a time, several of each point."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weftline.errors import InputError
from weftline.reproduce import cost, cost_exhibits, findings
from weftline.reproduce.experiments import Experiment
from weftline.terminal import ProgressLine

if TYPE_CHECKING:
    from weftline.reproduce.reproduction import Size


def carry_out(
    experiment: Experiment,
    size: Size,
    out: Path,
    only: Mapping[str, Sequence[str]],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Measure what is not measured yet and check the claims; None when interrupted."""
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
    panels = cost.plan(experiment, size, out, only)
    if not panels:
        raise InputError(f"--only: no figure of {experiment.name} has all requested variants")
    points = list({point.file: point for panel in panels for point in panel.points}.values())
    quiet = options.quiet or options.json
    if not quiet:
        print(f"{experiment.title}\n{size.says}; {len(points)} points, {experiment.repeats} runs of each")
    line = ProgressLine(quiet=quiet)
    try:
        failed = cost.measure(points, experiment.repeats, show=lambda text: line.show(text, at_once=True))
    except KeyboardInterrupt:
        line.clear()
        print("interrupted; finished runs are kept; run the same command to resume", file=sys.stderr)
        return None
    line.clear()
    for panel in panels:
        panel.measured = cost.summaries(panel.points, experiment.repeats)
    verdicts = [v for claim in experiment.claims if (v := cost.check(claim, panels)) is not None]
    return cost_exhibits.findings(experiment, size, panels, verdicts, failed)
