"""`weftline reproduce` of an experiment on accuracy: points tried on several cores, kept, shown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from weftline.reproduce import findings, trials, trials_exhibits
from weftline.reproduce.choices import Size
from weftline.reproduce.experiments import Experiment
from weftline.sweeps import executor
from weftline.terminal import ProgressLine

plan = trials.plan


def refuse(experiment: Experiment, size: Size, options: argparse.Namespace) -> None:
    """Refuse options that an experiment of trials cannot follow: there is none."""


def amount(experiment: Experiment, points: Sequence[trials.Point]) -> str:
    """Return how much is tried, for the first lines of the output."""
    return f"{len(points)} points"


def carry_out(
    experiment: Experiment,
    size: Size,
    panels: list[trials.Panel],
    points: list[trials.Point],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Try what is not tried yet and check the claims; None when interrupted."""
    try:
        failed = _tried(experiment, points, options, ProgressLine(quiet=options.quiet or options.json))
    except KeyboardInterrupt:
        return None
    if failed is None:
        return None
    for panel in panels:
        panel.found = {p: found for p in panel.points if (found := trials.kept(p)) is not None}
    verdicts = [
        v for claim in experiment.claims if (v := trials.check(claim, panels, seeded=experiment.seeded))
    ]
    return trials_exhibits.findings(experiment, size, panels, verdicts, failed)


def _tried(
    experiment: Experiment, points: Sequence[trials.Point], options: argparse.Namespace, line: ProgressLine
) -> dict[str, str] | None:
    """Run what points need a run of, then try them; return what failed and why, None when interrupted."""
    from weftline.reproduce import reproduction

    jobs = options.jobs or max(1, executor.cores() // max(1, options.threads))
    recorded = {p.recorded.folder: p.recorded for p in points if p.recorded and trials.kept(p) is None}
    failed: dict[str, str] = {}
    if recorded:
        lost = reproduction.run_points(
            list(recorded.values()),
            jobs=jobs,
            threads=options.threads,
            line=line,
            name=experiment.name,
            on=options.on,
        )
        if lost is None:
            return None
        failed |= {point.name: why for point, why in lost}
        missing = {point.folder for point, _ in lost}
        points = [point for point in points if not (point.recorded and point.recorded.folder in missing)]

    def show(text: str) -> None:
        line.show(f"{experiment.name}  {text}", at_once=True)

    try:
        found = trials.run(points, folder=experiment.folder, jobs=jobs, show=show)
    finally:
        line.clear()
    return failed | {f"{point.line}, {point.place}": why for point, why in found.items()}
