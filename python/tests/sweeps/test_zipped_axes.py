"""Axes that advance together are compared, ranked and drawn as one axis."""

import pytest

import weftline
from weftline.measures import comparison
from weftline.report import sweep_page
from weftline.sweeps import zipped_axes

SCHEMES = {"transport.controller.kind": ["hpcc", "dctcp"], "transport.mtu": ["1KB", "4KB"]}
NETWORKS = {"topology.hosts": [2, 3, 4], "switch.buffer": ["1MB", "2MB", "3MB"]}
REPORT = {"metrics": ["goodput"], "along": "hosts"}


@pytest.fixture
def swept(engine, tmp_path, scenario):
    zipped = [["kind", "mtu"], ["hosts", "buffer"]]
    return weftline.sweep(
        scenario, SCHEMES | NETWORKS, zip=zipped, seeds=3, report=REPORT, out=tmp_path / "s"
    )


def test_axes_advance_together_where_a_variant_of_one_has_one_of_the_other():
    names = ("a", "b", "c", "d", "e")
    rows = ("1x.pk", "1x.qk", "2y.pk", "2y.qk")
    found = zipped_axes.groups(tuple(zip(names, row, strict=True)) for row in rows)
    assert found == [frozenset("ab")], "a product does not, nor does an axis of one variant"
    assert zipped_axes.partners(found, "a") == {"b"} and zipped_axes.partners(found, "d") == frozenset()
    one_way = zipped_axes.groups((("a", a), ("b", b)) for a, b in ("1x", "2x", "3y"))
    assert one_way == []


def test_a_scheme_is_compared_with_the_first_whatever_advances_with_it(swept):
    apart = [estimate for estimate in swept.estimates if estimate["against"]]
    assert [(e["kind"], e["mtu"], e["hosts"], e["against"]) for e in apart] == [
        ("dctcp", "4KB", hosts, "hpcc") for hosts in (2, 3, 4)
    ]
    assert all(e["difference"] < 0 and e["paired"] for e in apart), "half as fast in the stand-in"
    for cell in swept.cells[3:]:
        base = swept.base_of(cell)
        assert (base.at("kind"), base.at("hosts")) == ("hpcc", cell.at("hosts"))


def test_tables_have_the_axes_that_advance_with_x_in_their_columns(swept):
    of_goodput = swept.tables()[0]
    assert of_goodput.columns == [
        *("mtu", "kind"),
        *("hosts 2, buffer 1MB", "hosts 3, buffer 2MB", "hosts 4, buffer 3MB"),
    ]
    assert [row[:2] for row in of_goodput.rows] == [["1KB", "hpcc"], ["4KB", "dctcp"]]
    assert "no run" not in str(swept) and all(all(row) for row in of_goodput.rows)


def test_a_figure_has_a_line_a_scheme_and_says_what_advances_with_x(swept):
    figure = swept.plot()
    points = figure.spec["data"]["values"]
    assert {point["line"] for point in points} == {"hpcc, 1KB", "dctcp, 4KB"} and len(points) == 6
    assert "With hosts advances buffer (1MB, 2MB, 3MB)." in figure.caption


def test_the_page_ranks_schemes_at_each_place_of_the_other_axes(swept):
    ranked = sweep_page.answer(swept)
    assert len(ranked) == 3 and all("hpcc" in text and "dctcp" in text for text in ranked)


def test_compare_takes_the_differences_of_the_sweep(swept):
    compared = comparison.comparison_of([swept])
    for line, cell in zip(compared.lines, swept.cells, strict=True):
        assert compared.difference("goodput", line) == swept.difference("goodput", cell)
    other = comparison.comparison_of([swept], against="dctcp")
    assert other.base_of(other.lines[0]) is other.lines[3]
    fixed = comparison.comparison_of([swept], against=compared.lines[4].label)
    assert [fixed.base_of(line) is not None for line in fixed.lines] == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
