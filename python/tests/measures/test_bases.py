"""Which line the difference of another one is taken from, in sweeps and in several stores."""

import warnings

import pytest
from test_pooling import SMALL

pytest.importorskip("weftline._native")

import weftline
from weftline.errors import InputError
from weftline.measures.comparison import comparison_of


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    over = {
        "scheme": {"H": {"transport.controller.kind": "hpcc"}, "D": {"transport.controller.kind": "dctcp"}},
        "workload.0.load": [0.2, 0.7],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return weftline.sweep(SMALL, over, seeds=2, out=tmp_path_factory.mktemp("sweep") / "s")


def test_the_cells_of_a_sweep_are_compared_with_the_one_of_the_same_load(swept):
    found = comparison_of([swept.path])
    assert {line.label: found.base_of(line).label for line in found.lines if found.base_of(line)} == {
        "D, 0.2": "H, 0.2",
        "D, 0.7": "H, 0.7",
    }
    assert set(found.as_json()["differences"]) == {"D, 0.2", "D, 0.7"}
    assert "D, 0.7 minus H, 0.7" in str(found) and "D, 0.7 minus H, 0.2" not in str(found)


def test_against_names_a_cell_or_a_variant_of_an_axis(swept):
    found = comparison_of([swept.path], against="H, 0.7")
    assert {line.label for line in found.lines if found.base_of(line)} == {"H, 0.2", "D, 0.7"}
    assert "D, 0.2" in found.notes[-1]
    found = comparison_of([swept.path], against="0.7")
    assert {line.label: found.base_of(line).label for line in found.lines if found.base_of(line)} == {
        "H, 0.2": "H, 0.7",
        "D, 0.2": "D, 0.7",
    }
    with pytest.raises(InputError, match=r"known: H, 0.2"):
        comparison_of([swept.path], against="X")


def test_runs_of_several_stores_are_compared_with_the_one_alike_but_for_the_scheme(swept, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = weftline.sweep(
            SMALL, {"workload.0.load": [0.2]}, set={"switch.buffer": "1MiB"}, seeds=2, out=tmp_path / "t"
        )
    found = comparison_of([swept.path, more.path])
    bases = {line.label: base.label for line in found.lines if (base := found.base_of(line))}
    assert len(found.lines) == 5 and len(bases) == 2
    for label, base in bases.items():
        assert label != base and label.partition(", ")[2] == base.partition(", ")[2]
    assert "No difference is shown where no other line is alike" in found.notes[-1]
