"""Figures as files: SVG, PDF and PNG, as wide as a column of a paper, in colours that survive print.

A figure takes its size from the preset, with texts of the size that papers use.
`vl-convert-python` (extra `report`) draws, without a browser.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, RunFailed, nearest
from weftline.figures.marks import COLOURS
from weftline.integrity import refuse_result
from weftline.outputs import replaced

if TYPE_CHECKING:
    from weftline.figures.specs import Figure

WIDTHS = {
    # Points (1/72 inch): ACM's and IEEE's two-column styles have columns of 241 and 252 pt.
    "column": 241.0,
    "ieee-column": 252.0,
    "page": 506.0,
    "ieee-page": 516.0,
    "slide": 720.0,
}
"""Widths of the whole picture in points, by name."""
FORMATS = ("svg", "pdf", "png", "json")
GREYS = ("#000000", "#7A7A7A", "#444444", "#A6A6A6", "#222222", "#8F8F8F", "#5C5C5C", "#BBBBBB")
"""Of lines in grey: neighbours in this order differ most; dashes and markers tell them apart too."""


def save(
    figure: Figure, path: str | Path, *, width: str | float | None = None, grey: bool = False, dpi: int = 300
) -> Path:
    """Write a figure to a file, its format by the extension: svg, pdf, png, or json (the specification).

    Parameters
    ----------
    width : str or float, optional
        A name in `WIDTHS` or a number of points; the size on the page without it.
    grey : bool
        Black and greys instead of colours.
    dpi : int
        Of a PNG, dots per inch.

    Raises
    ------
    InputError
        If the extension or the width has no meaning, or the file cannot be there.
    """
    place = Path(path)
    kind = place.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        hint = nearest(kind, list(FORMATS))
        raise InputError(f"{place}: {hint}expected a file that ends in {', '.join(f'.{f}' for f in FORMATS)}")
    spec = for_print(figure, width=width, grey=grey)
    refuse_result(place)
    content = json.dumps(spec, indent=1).encode() if kind == "json" else drawn(spec, kind, dpi)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replaced(place) as part:
            part.write_bytes(content)
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from None
    return place


def for_print(figure: Figure, *, width: str | float | None = None, grey: bool = False) -> dict[str, Any]:
    """Return a figure's specification for paper: white background, sized to the width, perhaps in greys."""
    spec = copy.deepcopy(figure.spec)
    spec["background"] = "white"
    spec["config"] = {
        "font": "Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {"gridColor": "#E4E4E4", "titleFontWeight": "normal", "labelFontSize": 8, "titleFontSize": 8},
        "legend": {"labelFontSize": 8, "titleFontSize": 8, "labelLimit": 220},
        "header": {"labelFontSize": 8},
    }
    if width is not None:
        spec = _fitted(spec, _points(width))
    if grey:
        _in_grey(spec)
    return spec


def _points(width: str | float) -> float:
    if isinstance(width, str):
        if width not in WIDTHS:
            hint = nearest(width, list(WIDTHS))
            raise InputError(f'width: unknown "{width}": {hint}known: {", ".join(WIDTHS)}, or points')
        return WIDTHS[width]
    if not 60 <= width <= 3000:
        raise InputError(f"width: expected 60 to 3000 points, found {width}")
    return float(width)


AXIS = 46.0
"""Points that the axis of y takes with its labels and title at 8 points."""


def _fitted(spec: dict[str, Any], points: float) -> dict[str, Any]:
    """Panels in as many columns as leave each readable, the whole with the requested width."""
    if "hconcat" in spec:
        units = spec.pop("hconcat")
        columns = max(1, min(len(units), int(points // (AXIS + 110))))
        spec["concat"] = [_sized(unit, points / columns - AXIS) for unit in units]
        spec |= {"columns": columns, "spacing": 8}
    else:
        spec = _sized(spec, points - AXIS)
    _narrow_legends(spec, columns=max(1, int(points // 85)))
    return spec


def _sized(unit: dict[str, Any], width: float) -> dict[str, Any]:
    """A unit of this width; its height follows where it is a number."""
    old = unit.get("width")
    found = unit | {"width": max(60, round(width))}
    if isinstance(old, int | float) and isinstance(unit.get("height"), int | float):
        found["height"] = max(70, round(min(unit["height"], unit["height"] * max(0.62, width / old))))
    return found


def _narrow_legends(node: object, *, columns: int) -> None:
    if isinstance(node, dict):
        legend = node.get("legend")
        if isinstance(legend, dict) and "columns" in legend:
            legend["columns"] = min(legend["columns"], columns)
        if isinstance(legend, dict) and "gradientLength" in legend:
            legend["gradientLength"] = min(legend["gradientLength"], 130)
        for inner in node.values():
            _narrow_legends(inner, columns=columns)
    elif isinstance(node, list):
        for inner in node:
            _narrow_legends(inner, columns=columns)


def _grey(colour: str, place: int) -> str:
    """Return the grey that stands for a colour of lines; by its place for another one."""
    return GREYS[(COLOURS.index(colour) if colour in COLOURS else place) % len(GREYS)]


def _in_grey(node: object) -> None:
    """Replace colours of lines by greys, and colour schemes by the one of greys."""
    if isinstance(node, dict):
        colour = node.get("color")
        if isinstance(colour, dict) and isinstance(colour.get("scale"), dict):
            scale = colour["scale"]
            if "range" in scale:
                scale["range"] = [_grey(one, place) for place, one in enumerate(scale["range"])]
            if "scheme" in scale:
                scale["scheme"] = "greys"
        for inner in node.values():
            _in_grey(inner)
    elif isinstance(node, list):
        for inner in node:
            _in_grey(inner)


def drawn(spec: dict[str, Any], kind: str, dpi: int) -> bytes:
    """Return a specification drawn as svg, pdf or png."""
    try:
        import vl_convert
    except ImportError:
        raise RunFailed("figures as files need vl-convert-python: pip install vl-convert-python") from None
    try:
        if kind == "svg":
            return vl_convert.vegalite_to_svg(spec).encode()
        if kind == "pdf":
            return vl_convert.vegalite_to_pdf(spec)
        # A pixel of Vega is a point here.
        return vl_convert.vegalite_to_png(spec, scale=dpi / 72, ppi=dpi)
    except ValueError as error:
        raise RunFailed(f"the figure cannot be drawn: {error}") from None
