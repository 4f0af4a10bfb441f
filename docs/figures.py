"""Draw the figures of the documentation from the runs of ``make demo``: ``python docs/figures.py``."""

from __future__ import annotations

from pathlib import Path

import vl_convert

import weftline
from weftline import compare, figures, lines

ROOT = Path(__file__).resolve().parent.parent
ASSETS = ROOT / "docs" / "assets"
ORDER = ["hpcc", "dcqcn+w", "timely+w", "dctcp"]


def main() -> None:
    """Write the demo's slowdown figure as SVG."""
    points = sorted((ROOT / "out" / "demo" / "points").iterdir())
    runs = [weftline.Run.open(point) for point in points]
    runs.sort(key=lambda run: ORDER.index(lines.scheme_name(run)))
    found = [lines.Line(lines.scheme_name(run), [run]) for run in runs]
    figure = figures.slowdown("FCT slowdown by flow size", found, caption=compare.ideal_text(found))
    ASSETS.mkdir(parents=True, exist_ok=True)
    (ASSETS / "demo-slowdown.svg").write_text(vl_convert.vegalite_to_svg(figure.spec), encoding="utf-8")


if __name__ == "__main__":
    main()
