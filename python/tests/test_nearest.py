"""The nearest of known names: the rules of the engine, by the table of cases that its tests read, too."""

import csv
from pathlib import Path

import pytest

from weftline.errors import nearest, nearest_key, nearest_of

TABLE = Path(__file__).resolve().parents[2] / "crates" / "pint" / "tests" / "nearest.csv"
CASES = [tuple(row.values()) for row in csv.DictReader(TABLE.read_text("utf-8").splitlines())]


@pytest.mark.parametrize(("found", "known", "name", "key"), CASES)
def test_the_nearest_name_and_key_are_those_of_the_engine(found, known, name, key):
    assert (nearest_of(found, known.split(" ")) or "") == name
    assert (nearest_key(found, known.split(" ")) or "") == key


def test_a_text_offers_the_nearest_name_or_nothing():
    assert nearest("hpc", ["dctcp", "hpcc"]) == 'did you mean "hpcc"? '
    assert nearest("bananas", ["dctcp", "hpcc"]) == nearest("bananas", []) == ""
