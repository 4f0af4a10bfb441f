"""Runs with jobs that tests share."""

from __future__ import annotations

import pytest
from job_scenarios import SCENARIO, STEPS, TRAINING

pytest.importorskip("weftline._native")

import weftline


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("jobs") / "run")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return weftline.run(TRAINING, out=tmp_path_factory.mktemp("training") / "run")


@pytest.fixture(scope="module")
def training_steps(tmp_path_factory):
    return weftline.run(TRAINING, set=STEPS, out=tmp_path_factory.mktemp("training-steps") / "run")
