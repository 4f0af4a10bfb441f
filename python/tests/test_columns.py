"""Tests of `weftline.columns` on tables that another tool has written."""

from __future__ import annotations

import pytest

from weftline import columns
from weftline.errors import InputError


def test_text_may_stand_in_a_dictionary_or_by_itself():
    arrow = pytest.importorskip("pyarrow")
    words = ["poisson", None, "", "é", "job"]
    for kind in (arrow.string(), arrow.large_string()):
        plain = arrow.array(words, kind)
        for column in (plain, plain.dictionary_encode(), plain.slice(1, 3)):
            expected = column.to_pylist()
            assert columns.read(arrow.table({"group": column}), ["group"]) == {"group": expected}


def test_a_column_that_is_missing_or_of_another_kind_is_named():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"fct_ns": [1.0], "at": arrow.array([1], arrow.timestamp("ns"))})
    with pytest.raises(InputError, match='the table: has no column "start_ns"'):
        columns.read(table, ["fct_ns", "start_ns"])
    with pytest.raises(InputError, match=r"column \"at\": expected numbers, .* the Arrow format 'tsn:'"):
        columns.read(table, ["at"])
