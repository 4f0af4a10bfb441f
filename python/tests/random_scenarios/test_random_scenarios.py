"""A sample of `make random`, and what draws, judges and shrinks scenarios."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from weftline import _native

if not getattr(_native, "__file__", None):
    pytest.skip("the native module is not built (maturin develop)", allow_module_level=True)

import drawing
import judging
import search
import shrinking

# Times are held against estimates, and the sample takes two cores.
pytestmark = pytest.mark.alone

SAMPLE, SEED = 24, "sample"


@pytest.fixture(scope="module")
def built():
    """The program that runs scenarios without Python, in both builds."""
    if not shutil.which("cargo") and not os.environ.get("CI"):
        pytest.skip("cargo is not installed")
    judging.build()


@pytest.fixture
def judge(tmp_path):
    """A judge in a folder of its own."""
    made = judging.Judge(tmp_path)
    yield made
    made.close()


def test_nothing_is_wrong_with_a_sample_of_random_scenarios(built):
    found = search.search(SAMPLE, SEED, 2, 0, None, say=print)
    assert not found.failures, found.report()
    assert found.judged > 0.9 * SAMPLE, found.report()


def test_what_failed_once_does_not_fail_again(built):
    found = search.search(0, SEED, 2, 0, search.KEPT, say=print)
    assert found.again == len(list(search.KEPT.glob("*.toml")))
    assert not found.failures, found.report()


def test_the_same_seed_draws_the_same_scenario(judge):
    draws = [search.drawings(judge).scenario("twice/7") for _ in range(2)]
    assert draws[0] == draws[1]


def test_every_scheme_of_every_room_is_drawn_sooner_or_later():
    """Each kind that the schema names comes up among values drawn of its section, without a repair."""
    drawn = drawing.Drawing(search.SCHEMA, search.explained, lambda _: {}, lambda _: {})
    properties = search.SCHEMA["properties"]
    for name in ("topology", "switch", "transport", "telemetry", "workload"):
        seen: set[str] = set()
        for number in range(4000):
            draw = drawing.Draw(drawn, random.Random(number))
            draw.network = drawing.Network(["host0", "host1"], ["s0"], [("host0", "s0"), ("host1", "s0")])
            seen |= set(kinds(draw.value(name, properties[name])))
        assert set(named(properties[name])) <= seen, name


def kinds(value: object):
    """Yield every kind of a drawn section."""
    for path, part in shrinking.parts(value):
        if path[-1] == "kind":
            yield part


def named(schema: dict):
    """Yield every kind that a part of the schema names."""
    if "$ref" in schema:
        schema = search.SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    kind = schema.get("properties", {}).get("kind", {})
    yield from kind.get("enum", [kind["const"]] if "const" in kind else [])
    lists = [schema["items"]] if "items" in schema else []
    for part in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *lists):
        yield from named(part)


def test_a_crash_and_a_hang_of_the_native_module_are_failures_and_not_the_end(judge, tmp_path):
    with pytest.raises(judging.GoneError, match="no answer"):
        judge.native.ask("check", "", seconds=0.001)
    with pytest.raises(ValueError, match="workload"):
        judge.native.ask("check", '[topology]\nkind = "star"')
    judge.native.process.kill()
    with pytest.raises(judging.GoneError, match="ended it"):
        judge.native.ask("check", "")


def test_a_process_that_was_stopped_past_its_deadline_and_continued_does_not_hang(judge):
    star = '[topology]\nkind = "star"\n[[workload]]\nkind = "incast"'
    assert judge.native.ask("check", star)["topology"]["hosts"] > 1
    process = judge.native.process
    process.send_signal(signal.SIGSTOP)
    threading.Timer(0.9, process.send_signal, [signal.SIGCONT]).start()
    # Three deadlines, of which it has used no CPU time.
    assert judge.native.ask("check", star, seconds=0.3)["topology"]["hosts"] > 1


def test_a_failing_scenario_is_made_smaller_until_nothing_can_go():
    document = {
        "seed": 40,
        "topology": {"kind": "star", "hosts": 16},
        "workload": [{"kind": "poisson", "load": 0.5}, {"kind": "incast", "size": "64KB", "count": 3}],
        "measure": {"queues": {"every": "1us"}},
    }

    def fails(tried):
        return any(one.get("kind") == "incast" and "size" in one for one in tried["workload"])

    assert shrinking.shrunk(document, fails, 10) == {
        "topology": {"kind": "star"},
        "workload": [{"kind": "incast", "size": "1KB"}],
    }


def test_errors_name_their_keys_and_messages_their_kind():
    message = "a.toml:4: switch.ecn.1.rate: 40Gbps has its thresholds\na.toml: workload: expected one"
    assert drawing.located(message) == [
        ("switch.ecn.1.rate", "40Gbps has its thresholds"),
        ("workload", "expected one"),
    ]
    assert drawing.without_numbers('flow 12: "x" took 1.5e-3 s') == 'flow N: "..." took N s'


def test_a_kept_scenario_states_what_was_wrong(judge, tmp_path):
    document = {"topology": {"kind": "star"}, "workload": [{"kind": "incast"}]}
    failure = judging.Failure("results", "flow 3: fct 2 ns is below the ideal time, 4 ns")
    path = search.keep(document, failure, judge, "1/5", 0, tmp_path)
    assert path.read_text().startswith("# results (draw 1/5):\n# flow 3: fct 2 ns")
    assert Counter(path.name)["."] == 1 and Path(path).suffix == ".toml"
