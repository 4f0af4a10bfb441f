"""Workloads of different durations: steady state, warm-up and which flows are compared."""

from __future__ import annotations

import pytest

import weftline
from weftline.measures import flow_rows, separations, steady
from weftline.measures.flow_choice import FlowChoice
from weftline.measures.lines import Line
from weftline.sweeps import tables

STAR = {"kind": "star", "hosts": 8, "host_link": {"rate": "10Gbps", "delay": "1us"}}
OF_DCTCP = {"controller": {"kind": "dctcp", "min_rate": "auto"}}
OVERLOAD = {"kind": "poisson", "size": "20KB", "hosts": "1-7", "to": "0", "load": 0.2, "duration": "3ms"}
QUIET = {"kind": "poisson", "size": "20KB", "load": 0.001, "duration": "30ms"}


def swept(workloads, tmp_path, axes=None, seeds=3, **report):
    scenario = {"topology": STAR, "transport": OF_DCTCP, "workload": workloads}
    return weftline.sweep(scenario, axes or {}, seeds=seeds, report=report, out=tmp_path / "s")


@pytest.mark.parametrize("group", ["background", "poisson"])
def test_a_workload_that_lasts_longer_does_not_hide_an_overload(tmp_path, group):
    found = swept(
        [OVERLOAD, {**QUIET, "group": group}], tmp_path, group="poisson", answer="slowdown_mean < 500"
    )
    (cell,) = found.cells
    assert [reason.text for reason in found.judgement(cell).reasons] == [steady.GROWING]
    runs = list(cell.runs.values())
    assert steady.remark(runs, warmup=None) == steady.GROWING
    assert steady.remark(runs, warmup=None, group="nobody") == steady.GROWING


@pytest.mark.parametrize("group", ["late", "poisson"])
def test_a_share_as_warmup_is_one_of_the_time_of_each_workload(tmp_path, group):
    early = {"kind": "poisson", "size": "20KB", "load": 0.3, "duration": "2ms"}
    late = {**early, "group": group, "start": "8ms"}
    found = swept([early, late], tmp_path, seeds=1, warmup="20%", drain="10%")
    (run,) = found.runs
    starts = flow_rows.read(run)["start_ns"]
    counted = [starts[n] for n in flow_rows.chosen(run, FlowChoice(warmup="20%", drain="10%").of_run(run))]
    for begin in (0, 8e6):
        own = [start for start in starts if begin <= start <= begin + 2e6]
        span = max(own) - min(own)
        expected = [s for s in own if min(own) + 0.2 * span <= s <= max(own) - 0.1 * span]
        assert len(expected) > 100
        assert sorted(s for s in counted if begin <= s <= begin + 2e6) == pytest.approx(sorted(expected))
    note = next(text for text in tables.notes(found) if text.startswith("Flows that count in a run"))
    assert note.count(" of ") == (2 if group == "late" else 1)
    # A time counts from the first start of all flows.
    window = steady.Window.of(run, "1ms", "")
    assert not window.by_group and window.first_ns == pytest.approx(min(starts) + 1e6)


def test_flows_whose_starts_depend_on_the_scheme_are_not_paired_within_a_warmup(tmp_path):
    loop = {"kind": "closed-loop", "size": "50KB", "clients": "0-1", "servers": "2-3", "requests": 100}
    schemes = {"scheme": {name: {"transport.controller": {"kind": name}} for name in ("dctcp", "hpcc")}}
    found = swept([loop], tmp_path, schemes, metrics=["fct_mean", "wire_bytes"], warmup="50%")
    first, second = found.cells
    text = found.other_flows(second, first, "fct_mean")
    assert "flows count under seed" in text and found.same_flows(second, first)
    assert not found.difference("fct_mean", second).paired and found.difference("wire_bytes", second).paired
    assert text in found.tables()[-1].note
    compared = weftline.compare(tmp_path / "s")
    assert not compared.difference("fct_mean", compared.lines[1]).paired
    # Without it all flows count, which are the same.
    assert not FlowChoice().other_flows(list(first.runs.values()), list(second.runs.values()), "fct_mean")


def test_a_number_that_is_partly_without_a_workload_says_so(tmp_path):
    web = {"kind": "poisson", "group": "web", "size": "20KB", "load": 0.1, "duration": "4ms"}
    train = {"kind": "collective", "group": "train", "operation": "ring-all-reduce", "bytes": "1MB"}
    train |= {"hosts": "0-3", "repeat": 4, "compute": "2ms"}
    bulk = {"kind": "bulk", "group": "bulk", "hosts": "4", "to": "5", "size": "1MB"}
    once = {"kind": "incast", "group": "once", "senders": 2, "receiver": 6, "size": "10KB"}
    found = swept([web, train, bulk, once], tmp_path, seeds=2)
    (cell,) = found.cells

    def named(name):
        texts = [one.text for one in found.reasons(name, cell) if one.kind == "ended early"]
        line = Line("A", list(cell.runs.values()))
        assert [
            one.text for one in separations.of_metric(name).reasons(line) if one.kind == "ended early"
        ] == texts
        return [text.split(" ended at ")[0] for text in texts]

    assert named("step_mean of train") == named("slowdown_mean of web") == ["bulk"]
    of_size = separations.of_size(5, "p50").reasons(Line("A", list(cell.runs.values()), group="web"))
    assert "ended early" in [one.kind for one in of_size]
    assert named("slowdown_mean of once") == named("slowdown_mean of bulk") == named("queue_p99") == []
    late = swept([{**web, "start": "6ms", "duration": "30ms"}, train], tmp_path / "late", seeds=2)
    texts = [
        one.text for one in late.reasons("step_mean of train", late.cells[0]) if one.kind == "ended early"
    ]
    assert len(texts) == 1 and texts[0].startswith("web began at 6") and ", after " in texts[0]
    whole = swept([{**web, "duration": "30ms"}, train, once], tmp_path / "whole", seeds=2)
    assert not [r for r in whole.reasons("step_mean of train", whole.cells[0]) if r.kind == "ended early"]


@pytest.mark.parametrize(
    "other", [{"count": 80}, {"count": 80, "start": "1us"}, {"duration": "20ms"}, {"count": 80, "group": "b"}]
)
def test_an_overload_by_a_number_of_flows_is_not_hidden_by_another_workload(other, tmp_path):
    light = {"kind": "poisson", "size": "20KB", "hosts": "4-5", "to": "6", "load": 0.03}
    heavy = {"kind": "poisson", "size": "20KB", "hosts": "0-2", "to": "7", "count": 400}

    def kinds(load):
        found = swept([{**heavy, "load": load}, {**light, **other}], tmp_path / str(load), seeds=3)
        return [one.text for one in found.reasons("slowdown_p50", found.cells[0])]

    assert steady.GROWING in kinds(0.45)
    assert steady.GROWING not in kinds(0.1)


def test_a_gap_between_two_workloads_of_a_group_is_named(tmp_path):
    train = {"kind": "collective", "group": "train", "operation": "ring-all-reduce", "bytes": "1MB"}
    train |= {"hosts": "0-3", "repeat": 4, "compute": "2ms"}
    web = {"kind": "poisson", "group": "web", "size": "20KB", "load": 0.1, "hosts": "4-7"}

    def named(*times):
        parts = [{**web, "start": f"{start}ms", "duration": f"{length}ms"} for start, length in times]
        found = swept([train, *parts], tmp_path / f"{len(list(tmp_path.iterdir()))}", seeds=1)
        reasons = found.reasons("step_mean of train", found.cells[0])
        return [one.text for one in reasons if one.kind == "ended early"]

    (text,) = named((0, 1), (8, 4))
    assert text.startswith("web was absent from 1") and " to 8 ms, " in text
    # Where the second one begins before the first one ends, and after a short pause.
    assert named((0, 5), (4, 8)) == named((0, 4), ("4.4", 8)) == []


def test_jobs_loops_and_traces_that_end_early_are_named_where_the_rest_has_a_chosen_length(tmp_path):
    web = {"kind": "poisson", "group": "web", "size": "20KB", "load": 0.1, "duration": "12ms"}
    train = {"kind": "collective", "operation": "ring-all-reduce", "bytes": "1MB", "hosts": "0-3"}
    short = {**train, "group": "short", "repeat": 3}
    loop = {"kind": "closed-loop", "group": "loop", "size": "50KB", "clients": "4", "servers": "5"}
    flows = [{"src": 6, "dst": 7, "size": "10KB", "start": f"{at}us"} for at in (0, 500, 1000)]
    trace = {"kind": "flows", "group": "trace", "flows": flows}
    once = {**train, "group": "once", "repeat": 1}
    event = {**trace, "group": "event", "flows": [{**one, "start": "0us"} for one in flows]}

    def named(name, *workloads):
        found = swept(list(workloads), tmp_path / f"{len(list(tmp_path.iterdir()))}", seeds=1)
        reasons = found.reasons(name, found.cells[0])
        return [one.text.split(" at ")[0] for one in reasons if one.kind == "ended early"]

    of_web, of_train = "slowdown_mean of web", "step_mean of long"
    assert named(of_web, web, short) == ["short ended"]
    assert named(of_web, web, {**loop, "requests": 20}) == ["loop ended"]
    assert named(of_web, web, trace) == ["trace ended"]
    # Groups that the flows of a trace have themselves, and a job whose messages have no rows.
    first, *rest = trace["flows"]
    own = [{**first, "group": "b"}, *({**one, "group": "a"} for one in rest)]
    assert named(of_web, web, {"kind": "flows", "flows": own}) == ["a, b ended"]
    assert named(of_web, web, {**short, "messages": False}) == ["short ended"]
    assert named(of_train, {**train, "group": "long", "repeat": 9}, short) == ["short ended"]
    assert named(of_web, {**web, "duration": "2ms"}, {**short, "start": "1ms"}) == ["short began"]
    # One event, and numbers of what has a length of its own.
    assert named(of_web, web, once, event) == named("slowdown_mean of short", web, short) == []
    assert named("slowdown_mean of trace", trace, {**loop, "requests": 3}) == []
    assert named("step_mean of short", short, {**loop, "requests": 500}) == []


ROUNDS = {
    "kind": "incast",
    "arrivals": "periodic",
    "every": "100us",
    "count": 40,
    "senders": 7,
    "size": "20KB",
}
AT_RANDOM = {**OVERLOAD, "duration": "auto", "count": 300}


@pytest.mark.parametrize("early", [{**ROUNDS, "receiver": "0"}, AT_RANDOM])
def test_a_later_workload_of_the_same_group_does_not_hide_an_overload(tmp_path, early):
    late = {**early, "count": 10, "start": "60ms"}
    found = swept([early, late], tmp_path, answer="slowdown_mean < 5000")
    assert steady.remark(list(found.cells[0].runs.values()), warmup=None) == steady.GROWING


def test_an_incast_that_the_warmup_leaves_out_is_named_though_another_has_its_group(tmp_path):
    once = {"kind": "incast", "senders": 7, "receiver": "0", "size": "20KB"}
    later = {**once, "arrivals": "poisson", "load": 0.1, "start": "1ms", "duration": "5ms", "senders": 3}
    found = swept([once, later], tmp_path, seeds=2, warmup="500us")
    (cell,) = found.cells
    texts = [one.text for one in found.reasons("slowdown_mean", cell) if one.kind == "left out"]
    named = "no flow of group incast from 0 ns on counts, of 7 in a run"
    assert texts == [f"{named}: all start in the warm-up or the drain"]


def test_lines_of_a_sweep_next_to_another_run_keep_its_order(tmp_path):
    loads = {"workload.0.load": [0.5, 0.1, 0.4, 0.2, 0.3]}
    swept([QUIET | {"duration": "1ms"}], tmp_path, loads, seeds=1)
    alone = weftline.run({"topology": STAR, "workload": QUIET}, out=tmp_path / "alone")
    labels = [line.label for line in weftline.compare(tmp_path / "s", alone).lines]
    assert [label.rpartition(" ")[2] for label in labels[:5]] == ["0.5", "0.1", "0.4", "0.2", "0.3"], labels
