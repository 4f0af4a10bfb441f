"""Draw the figures of the documentation: ``python docs/figures.py``.

The first is drawn from the runs of ``make demo``, those of "Scale" from ``weftline reproduce scale`` (from
its full size where that was measured), both with the native module that is installed now. `make measured`
draws them too, with the numbers next to them.
"""

from __future__ import annotations

from pathlib import Path

import vl_convert

import weftline
from weftline.figures import specs
from weftline.measures import line_notes, lines
from weftline.reproduce import cost, experiments, findings, runner

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
RIVALS = 'weftline reproduce rivals --full --only "traffic=web search" --only "load=50 %"'


def main() -> None:
    """Write the figures that have runs as SVG, and report what is missing."""
    ASSETS.mkdir(parents=True, exist_ok=True)
    try:
        demo()
    except weftline.InputError:
        print("no demo-slowdown.svg: run `make demo` first")
    try:
        rivals()
    except weftline.InputError:
        print(f"no rivals-slowdown.svg: run `{RIVALS}` first, with this build")
    if not scale():
        print("no scale-*.svg: run `weftline reproduce scale` first, with this build")


def demo_lines() -> list[lines.Line]:
    """Return the runs of the demo as it is now, a line for each scheme.

    Raises
    ------
    weftline.InputError
        If one of them has not been run.
    """
    experiment = experiments.load("demo")
    size = runner.chosen_size(experiment)
    plan = runner.plan_points(experiment, size, ROOT / "out" / experiment.out)
    return [
        lines.Line(label, [weftline.Run.open(point.folder) for point in points])
        for _, _, label, points in plan
    ]


def demo() -> Path:
    """Draw the demo's slowdowns and return the file."""
    found = demo_lines()
    return write(
        "demo-slowdown",
        specs.slowdown("FCT slowdown by flow size", found, caption=line_notes.ideal_text(found)),
    )


def rivals() -> Path:
    """Draw the p99 slowdown of short and long flows of every transport under web search at half load.

    Of the full size, whose runs are long enough for a 99th percentile of long flows.
    """
    experiment = experiments.load("rivals")
    size = runner.chosen_size(experiment, full=True)
    plan = runner.plan_points(experiment, size, ROOT / "out" / experiment.store)
    runs = {
        label: [weftline.Run.open(point.folder) for point in points]
        for figure, panel, label, points in plan
        if figure.name == "short" and dict(panel) == {"traffic": "web search", "load": "50 %"}
    }
    sides = []
    for title, sizes in (("flows up to 100 KB", (0, 100_000)), ("flows above 1 MB", (1_000_000, None))):
        found = [lines.Line(label, of, group="poisson", sizes=sizes) for label, of in runs.items()]
        spec = specs.bars(title, found, metric_name="slowdown_p99").spec
        sides.append(spec | {"title": title, "width": 300})
    return write("rivals-slowdown", specs.Figure(title="", spec={"hconcat": sides}, caption="", tables=[]))


def scale_panels() -> list[cost.Panel]:
    """Return the scale study in its largest size that was measured; nothing where neither was."""
    experiment = experiments.load("scale")
    for full in (True, False):
        size = runner.chosen_size(experiment, full=full)
        panels = cost.plan(experiment, size, ROOT / "out" / experiment.store)
        for panel in panels:
            panel.measured = cost.summaries(panel.points, experiment.repeats)
        if all(len(panel.measured) == len(panel.points) for panel in panels):
            return panels
    return []


def scale() -> bool:
    """Draw the scale study, a file for each of its figures; False where it was not measured."""
    panels = scale_panels()
    for panel in panels:
        write(f"scale-{panel.figure.name}", findings.figure_of_cost(panel))
    return bool(panels)


def write(name: str, figure: specs.Figure) -> Path:
    """Write a figure into the documentation and return its file."""
    path = ASSETS / f"{name}.svg"
    path.write_text(vl_convert.vegalite_to_svg(figure.spec), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
