"""`weftline reproduce` of an experiment on accuracy: points tried on several cores, kept, shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weftline.errors import InputError
from weftline.reproduce import findings, trials, trials_exhibits
from weftline.reproduce.experiments import Experiment
from weftline.sweeps import executor
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
    """Try what is not tried yet and check the claims; None when interrupted."""
    if len(size.seeds) > 1:
        raise InputError(f"--seeds: {experiment.name} has many trials of each point; expected one seed")
    panels = trials.plan(experiment, size, out, only)
    if not panels:
        raise InputError(f"--only: no figure of {experiment.name} has all requested variants")
    points = list({point.file: point for panel in panels for point in panel.points}.values())
    quiet = options.quiet or options.json
    if not quiet:
        print(f"{experiment.title}\n{size.says}; {len(points)} points")
    try:
        failed = _tried(experiment, points, options, ProgressLine(quiet=quiet))
    except KeyboardInterrupt:
        failed = None
    if failed is None:
        print("interrupted; finished trials are kept; run the same command to resume", file=sys.stderr)
        return None
    for panel in panels:
        panel.found = {p: found for p in panel.points if (found := trials.kept(p)) is not None}
    verdicts = [v for claim in experiment.claims if (v := trials.check(claim, panels)) is not None]
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
