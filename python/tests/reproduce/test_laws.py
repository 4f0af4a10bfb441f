"""Formulas of figures, claims on them, and metrics of series."""

from types import SimpleNamespace

import pytest

from weftline.errors import InputError
from weftline.measures import over_time
from weftline.measures.metrics import metric
from weftline.reproduce import experiments, formulas


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("1.31 * x / sqrt(4)", 6.55),
        ("-x ** 2 + cbrt(27)", -97.0),
        ("min(x, 3) / max(1, 2)", 1.5),
        ("pi", 3.14159),
    ],
)
def test_formulas_come_to_what_they_state(formula, expected):
    assert formulas.value(formula, {"x": 10.0}) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("x +", "not a formula"),
        ("y * 2", 'unknown "y"'),
        ("sqroot(x)", 'unknown "sqroot"'),
        ("1 / (x - x)", "no value"),
        ("sqrt(-x)", "no value"),
        ("x ** 999 ** 9", "no value"),
        ("__import__('os')", "unknown"),
        ("x.real", "not allowed"),
        ("[x][0]", "not allowed"),
        ("'a' * 3", "not allowed"),
        ("min(x, key=x)", "not allowed"),
    ],
)
def test_what_is_not_a_formula_is_refused(formula, message):
    with pytest.raises(InputError, match=message):
        formulas.value(formula, {"x": 2.0})


def _run(points):
    return SimpleNamespace(recorded=lambda name, max_points: {"flow0": points} if name == "mode" else {})


def test_metrics_of_series_read_what_their_names_state():
    run = _run([[1e9, 0.0], [2e9, 3.0], [3e9, 3.0], [4e9, 0.0], [5e9, 3.0], [6e9, 1.0]])
    found = {
        "mean of mode after 4s": 4 / 3,
        "min of mode": 0.0,
        "max of mode after 6s": 1.0,
        "median of mode": 2.0,
        "share of mode = 3": 0.5,
        "period of mode = 3": 3e9,
        "period of mode": 1e9 * 4 / 3,
        "floor of mode in 2s": (0.0 + 0.0 + 1.0) / 3,
        "mean of cwnd_bytes": None,
        "mean of mode after 7s": None,
    }
    assert {name: over_time.reader(name)(run) for name in found} == pytest.approx(found)
    assert over_time.reader("goodput") is None
    assert metric("period of mode = 3").text(3e9) == "3 s"


@pytest.mark.parametrize("name", ["mean of mode = 3", "share of mode", "floor of mode", "min of mode in 1s"])
def test_statistics_that_lack_or_have_too_much_are_refused(name):
    with pytest.raises(InputError):
        metric(name)


@pytest.mark.parametrize(
    "tolerance", [None, 0.1, {"relative": "a"}, {"relative": 0.1, "absolute": 1}, {"from": 2, "to": 1}]
)
def test_a_tolerance_is_a_ratio_or_a_difference(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        formulas.tolerance({"text": "t", "tolerance": tolerance})


@pytest.mark.parametrize(
    ("tolerance", "inside", "outside"),
    [
        ({"relative": 0.25}, (0.75, 1.25), (0.7, 1.3)),
        ({"from": 0.5, "to": 1.0}, (0.5, 1.0), (0.4, 1.1)),
        ({"absolute": 1}, (-1, 1), (-1.1, 1.1)),
        ({"at_most": 0}, (-9, 0), (0.1,)),
    ],
)
def test_a_deviation_is_inside_a_tolerance_or_outside(tolerance, inside, outside):
    allowed = formulas.tolerance({"text": "t", "tolerance": tolerance})
    assert all(allowed.beyond(deviation) <= 0 for deviation in inside)
    assert all(allowed.beyond(deviation) > 0 for deviation in outside)


def test_vegas_may_have_fewer_than_four_packets_queued_and_not_more():
    laws = experiments.load("laws")
    claim = next(claim for claim in laws.claims if claim["text"] == "and never more than four")
    figure = next(figure for figure in laws.figures if figure.name == claim["figure"])
    beta = formulas.value(formulas.formula_of(figure, "Vegas"), figure.options["where"])
    allowed = formulas.tolerance(claim)
    assert beta == 4 and allowed.beyond(0.0 - beta) <= 0 and allowed.beyond(4.1 - beta) > 0


def test_the_laws_have_a_formula_for_every_claim():
    experiment = experiments.load("laws")
    figures = {figure.name: figure for figure in experiment.figures}
    assert len(experiment.claims) >= 20
    for claim in experiment.claims:
        assert claim["kind"] == "law"
        assert formulas.formula_of(figures[claim["figure"]], claim["line"])
