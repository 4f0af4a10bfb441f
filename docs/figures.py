"""Draw the figures of the documentation: ``python docs/figures.py``.

The first is drawn from the runs of ``make demo``, those of "Scale" from ``weftline reproduce scale`` (from
its full size where that was measured), both with the native module that is installed now.
"""

from __future__ import annotations

from pathlib import Path

import vl_convert

import weftline
from weftline.figures import specs
from weftline.measures import comparison, lines
from weftline.reproduce import cost, cost_exhibits, experiments, reproduction

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
ORDER = ["hpcc", "dcqcn+w", "timely+w", "dctcp"]


def main() -> None:
    """Write as SVG what there are runs for, and say what is missing."""
    ASSETS.mkdir(parents=True, exist_ok=True)
    if not demo():
        print("no demo-slowdown.svg: run `make demo` first")
    if not scale():
        print("no scale-*.svg: run `weftline reproduce scale` first, with this build")


def demo() -> bool:
    """Draw the demo's slowdowns; False where it was not run."""
    folder = ROOT / "out" / "demo" / "points"
    if not folder.is_dir():
        return False
    runs = [weftline.Run.open(point) for point in sorted(folder.iterdir())]
    runs.sort(key=lambda run: ORDER.index(lines.scheme_name(run)))
    found = [lines.Line(lines.scheme_name(run), [run]) for run in runs]
    write(
        "demo-slowdown",
        specs.slowdown("FCT slowdown by flow size", found, caption=comparison.ideal_text(found)),
    )
    return True


def scale() -> bool:
    """Draw the scale study, a file for each of its figures; False where neither of its sizes was measured."""
    experiment = experiments.load("scale")
    for full in (True, False):
        size = reproduction.chosen_size(experiment, full=full)
        panels = cost.plan(experiment, size, ROOT / "out" / experiment.out)
        for panel in panels:
            panel.measured = cost.summaries(panel.points, experiment.repeats)
        if all(len(panel.measured) == len(panel.points) for panel in panels):
            for panel in panels:
                write(f"scale-{panel.figure.name}", cost_exhibits.figure(panel))
            return True
    return False


def write(name: str, figure: specs.Figure) -> None:
    """Write a figure into the documentation."""
    (ASSETS / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(figure.spec), encoding="utf-8")


if __name__ == "__main__":
    main()
