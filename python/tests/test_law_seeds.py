"""Random numbers of controllers in Python: those without a seed have a warning, all others none."""

from __future__ import annotations

import copy
import os
import pickle
import random

import pytest
from texts import FABRIC

import weftline
from weftline import _native, hidden_inputs

needs_engine = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fabric.toml").write_text(FABRIC)
    return tmp_path


def without_a_seed(kind):
    class Drawing(weftline.Controller):
        def __init__(self, flow):
            super().__init__(flow)
            self.rng = kind()

        def on_ack(self, ack):
            self.cwnd_bytes = 2000 + 20000 * self.rng.random()

    return Drawing


def seeded_later():
    generator = random.Random()
    generator.seed(7)
    return generator


@needs_engine
@pytest.mark.parametrize(
    ("kind", "warns"),
    [
        (random.Random, True),
        (random.SystemRandom, True),
        (lambda: random.Random(7), False),
        (lambda: copy.deepcopy(random.Random(7)), False),
        (lambda: pickle.loads(pickle.dumps(random.Random(7))), False),
        (seeded_later, False),
    ],
)
def test_a_generator_without_a_seed_has_a_warning(folder, kind, warns):
    law = without_a_seed(kind)
    chosen = {"transport.controller.kind": "python:x"}
    found = weftline.run(folder / "fabric.toml", set=chosen, controllers={"x": law}, out=folder / "run")
    assert any(text.startswith('controller "x" made a generator of') for text in found.warnings) == warns
    assert (random.Random.seed, os.urandom) == (hidden_inputs._SEED, hidden_inputs._SYSTEM)
    assert random.Random.setstate == hidden_inputs._SET


@needs_engine
def test_numpy_without_a_seed_has_a_warning(folder):
    numpy = pytest.importorskip("numpy")
    chosen = {"transport.controller.kind": "python:x"}
    state = numpy.random.RandomState
    # The old generator takes numbers from the system also where it has a seed.
    for kind, warns in (
        (numpy.random.default_rng, True),
        (lambda: numpy.random.default_rng(7), False),
        (lambda: state(), True),
        (lambda: state(None), True),
        (lambda: state(7), False),
        (lambda: numpy.random.RandomState(seed=7), False),
    ):
        law = without_a_seed(kind)
        found = weftline.run(
            folder / "fabric.toml", set=chosen, controllers={"x": law}, out=folder / "run", force=True
        )
        assert any("without a seed" in text for text in found.warnings) == warns
