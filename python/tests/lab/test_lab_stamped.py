"""The lab's experiment on PINT: its file, its verdicts, and what it holds real digests against."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftline import InputError, Scenario
from weftline.cli.main import main
from weftline.lab import experiment, stamped

FOLDER = Path(__file__).parents[3] / "experiments/pint/lab"


def made(
    packets: list[float], *, equal: int = 100, contradictions: int = 0, paths: int | None = None
) -> stamped.Row:
    """A row of which ten packets are expected."""
    known = stamped.FLOWS if paths is None else paths
    runs = [stamped.Decoded(FOLDER, 100, equal, known, contradictions, one, []) for one in packets]
    return stamped.Row(5, 10.0, runs)


def test_a_row_is_equal_where_the_interval_lies_within_the_margin() -> None:
    assert made([10.0, 10.1, 9.9]).verdict(0.1) == "equal"
    assert made([10.0, 13.0, 8.0]).verdict(0.1) == "open"
    assert made([13.0, 13.1, 12.9]).verdict(0.1) == "different"
    assert made([10.0]).verdict(0.1) == "open", "one run has no interval"
    assert made([10.0, 10.1, 9.9], paths=99).verdict(0.1) == "open", "a mean of the paths that were known"


def test_one_wrong_digest_or_path_is_different_at_any_interval() -> None:
    assert made([10.0, 10.1, 9.9], equal=99).verdict(0.1) == "different"
    assert made([10.0, 10.1, 9.9], contradictions=1).verdict(0.1) == "different"


def test_experiments_have_names_and_a_wrong_one_is_answered_with_those() -> None:
    assert {"lab-cebinae", "lab-pint", "lab-pint-paths"} <= set(experiment.named())
    rows = experiment.read("lab-pint-paths").rows
    assert [row.switches for row in rows][::5] == [2, 59] and rows[-1].published == 67.8
    assert isinstance(experiment.read("lab-pint"), stamped.Experiment)
    assert isinstance(experiment.read(experiment.named()["lab-cebinae"]), experiment.Experiment)
    with pytest.raises(
        InputError,
        match="lab-pnt: the lab has lab-cebinae, lab-hpcc, lab-hula, lab-mphula, lab-phost, lab-pint, "
        "lab-pint-ioam, lab-pint-paths",
    ):
        experiment.read("lab-pnt")
    with pytest.raises(InputError, match="has no row 3: it has 2, 5, 10, 25"):
        experiment.read("lab-pint", ["3"])


def test_chains_are_networks_that_a_scenario_takes(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(stamped.network(3, [(0, 1), (1, 2)]))
    changes = {
        "topology.file": str(tmp_path / "chain.toml"),
        "telemetry.queries": str(FOLDER / "queries.toml"),
    }
    facts = Scenario(FOLDER / "scenario.toml", set=changes).check()["topology"]
    assert facts["switches"] == 3 and facts["hosts"] == 2


@pytest.mark.parametrize(("seeds", "wrong"), [("1-3", False), ("3,1,2", False), ("4-6", True), ("0", True)])
def test_repeats_have_the_seeds_from_1_on(
    seeds: str, wrong: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["reproduce", "lab-pint", "--dry-run", "--seeds", seeds])
    printed = capsys.readouterr()
    assert status == (2 if wrong else 0), printed
    assert ("have the seeds from 1 on" in printed.err) is wrong
