"""Runs with controllers in Python are seeds of one experiment only if their code is the same."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from weftline.measures import pooling


@pytest.mark.parametrize("kind", ["python:mine", "mine"])
def test_code_counts_with_the_prefix_and_without_as_folders_of_earlier_builds_have_it(kind):
    def facts(code):
        scenario = {"transport": {"kind": "rdma", "controller": {"kind": kind}}}
        made_of = {"controllers": {"mine": code}}
        run = SimpleNamespace(scenario=scenario, summary={"provenance": made_of}, out=Path("run"))
        return pooling.scenario_facts(run)

    assert facts("a" * 64) == facts("a" * 64) != facts("b" * 64)
