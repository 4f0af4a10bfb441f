"""Two numbers of a metric are ranked only if both were measured alike."""

from types import SimpleNamespace

import pytest

import weftline
from weftline import _native
from weftline.measures import comparison, evidence, ideals, measured_alike, over_time, run_facts
from weftline.measures.judgements import Reason, reasons_text
from weftline.measures.metrics import METRICS, Flows
from weftline.runs import Run

real = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
SCENARIO = {
    "name": "two-racks",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    "workload": [{"kind": "poisson", "sizes": "google-rpc", "load": 0.4, "duration": "300us"}],
    "measure": {"queue_histogram": {"ports": "*", "every": "1us"}},
}
HISTOGRAM = "measure.queue_histogram"


def run_with(measure, *, seed=1, until="flows-done", samples=2000, flows=100, fingerprint="a", ports=8):
    return SimpleNamespace(
        scenario={"seed": seed, "run": {"until": until}, "measure": measure},
        summary={
            "seed": seed,
            "status": "done",
            "flows": flows,
            "flows_done": flows,
            "fingerprint": fingerprint,
        },
        queues={"percentiles": {"samples": samples}} if samples else None,
        recorded=lambda metric, *, max_points: dict.fromkeys(range(ports if metric == "utilisation" else 0)),
    )


def histogram(ports="*", every="1us"):
    return {"queue_histogram": {"ports": ports, "every": every}}


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (run_with(histogram("leaf*->host*")), f"{HISTOGRAM}.ports is * and leaf*->host*"),
        (run_with(histogram(every="2us")), f"{HISTOGRAM}.every is 1 µs and 2 µs"),
        (run_with(histogram(), until="4ms"), "run.until is flows-done and 4ms"),
        (run_with(histogram(), samples=2400), "2,000 and 2,400 samples of queues under seed 1"),
        (run_with(histogram(), seed=2, samples=4000), "2,000 and 4,000 samples of queues in the mean run"),
        (run_with(histogram(every="1000ns"), samples=2100), ""),
    ],
)
def test_percentiles_of_queues_depend_on_ports_interval_and_time(other, text):
    one = run_with(histogram())
    found = measured_alike.unlike("queue_p99", [one], [other])
    assert found.replace("us", "µs") == text.replace("us", "µs")
    doubts = evidence.differ("queue_p99", [one], [other])
    assert [reason.kind for reason in doubts] == (["measures differ"] if text else [])
    # What no sample enters is not concerned.
    assert measured_alike.unlike("fct_mean", [one], [other]) == ""
    assert measured_alike.unlike("drops", [one], [other]) == ""


def test_the_utilisation_of_other_numbers_of_ports_is_not_alike():
    """One pattern names the ports of idle hosts too: the mean over them is lower, and that is all."""
    one = run_with({"utilisation": {"ports": "s0.*", "every": "1us"}})
    for ports, text in ((8, ""), (32, "the utilisation of 8 and 32 ports")):
        other = run_with({"utilisation": {"ports": "s0.*", "every": "1us"}}, ports=ports)
        for name in ("utilisation_mean", "imbalance", "received_share"):
            assert measured_alike.unlike(name, [one], [other]) == text
        assert measured_alike.unlike("fct_mean", [one], [other]) == ""


def test_goodput_by_other_flows_or_intervals_is_not_alike_and_all_flows_are():
    def goodput(listed, every="1ms", **more):
        return run_with({"goodput": {"by": "flow", "flows": listed, "every": every}}, **more)

    two = goodput(["0-1"], flows=2)
    assert measured_alike.unlike("jain", [two], [goodput([0, 1, 2, 3], flows=4)]) == "", "all flows of each"
    assert "goodput.flows" in measured_alike.unlike("jain", [two], [goodput([0, 1], flows=4)])
    assert "goodput.every" in measured_alike.unlike("goodput_total", [two], [goodput([0, 1], "1us", flows=2)])
    ports = run_with({"utilisation": {"ports": "*", "every": "1us"}})
    both = run_with(
        {"utilisation": {"ports": "*", "every": "1us"}, "goodput": {"by": "group", "every": "1us"}}
    )
    assert measured_alike.unlike("imbalance", [ports], [both]) == "", "it reads no goodput"
    without = run_with({"goodput": {"by": "group", "every": "1us"}})
    assert "measure.utilisation" in measured_alike.unlike("utilisation_mean", [without], [both])
    assert measured_alike.unlike("mean of utilisation after 1ms", [ports], [both]) == ""
    assert "measure.controllers" in measured_alike.unlike(
        "mean of cwnd_bytes", [ports], [run_with({"controllers": {"flows": [0], "every": "1us"}})]
    )


@pytest.mark.parametrize(
    "name", ["slowdown_p99", "slowdown_mean", "small_p95", "nfct", "slowdown_p50 of web"]
)
def test_slowdowns_of_two_definitions_are_not_compared(name):
    one, other = (run_with({"ideal": ideal}) for ideal in ("alone", "hpcc"))
    (reason,) = evidence.measures_differ(name, [one], [other])
    assert reason == Reason("ideals differ", "measure.ideal is alone and hpcc; compare fct_mean")
    assert evidence.measures_differ(name, [one], [one]) == []
    assert evidence.measures_differ(name, [one], [run_with({})]) == [], "the lab records none"


def test_runs_of_one_mean_that_measured_otherwise_open_the_verdict():
    runs = [run_with(histogram()), run_with(histogram("leaf*->host*"), seed=2)]
    found = evidence.against(runs, "queue_p99", remark="")
    assert [reason.kind for reason in found] == ["measures differ"]
    assert evidence.against(runs, "drops", remark="") == []


def test_a_percentile_of_queues_needs_twenty_samples_beyond_it():
    def reasons(name, samples):
        runs = [run_with(histogram(), samples=5000), run_with(histogram(), seed=2, samples=samples)]
        return [reason.text for reason in evidence.against(runs, name, remark="")]

    assert reasons("queue_p99", 1999) == ["1,999 samples of queues in a run; p99 needs 2,000"]
    assert reasons("queue_p99", 2000) == [] == reasons("queue_p95", 400)
    assert reasons("queue_p95", 399) == ["399 samples of queues in a run; p95 needs 400"]
    assert reasons("queue_max", 1) == []


@real
def test_runs_of_the_same_bits_are_not_ranked_by_how_their_queues_were_sampled(tmp_path):
    swept = weftline.sweep(
        SCENARIO,
        {
            "ports": {
                "all": {f"{HISTOGRAM}.ports": "*"},
                "edge": {f"{HISTOGRAM}.ports": "leaf*->host*"},
                "rare": {f"{HISTOGRAM}.every": "100us"},
                "long": {"run.until": "2ms"},
                "ideal": {"measure.ideal": "hpcc"},
            }
        },
        seeds=4,
        report={"metrics": ["queue_p99", "slowdown_mean"], "answer": "queue_p99 < 1MB"},
        out=tmp_path / "s",
    )
    cells = {cell.at("ports"): cell for cell in swept.cells}
    assert swept.verdict(cells["all"]) == "yes" and swept.verdict(cells["rare"]) == "open"
    assert all(not swept.separation("queue_p99", cells[name], paired=False).order for name in cells)
    # The same bits are the same flows, whatever `until` says.
    assert all(swept.same_flows(cells["all"], cells[name]) for name in cells)

    def reasons(name, variant):
        return reasons_text(swept.separation(name, cells[variant], paired=False).reasons)

    assert f"{HISTOGRAM}.ports is leaf*->host* and *" in reasons("queue_p99", "edge")
    assert "run.until is 2ms and flows-done" in reasons("queue_p99", "long")
    assert "measure.ideal is hpcc and alone" in reasons("slowdown_mean", "ideal")
    assert "not measured alike" not in reasons("slowdown_mean", "edge")
    assert "same to the bit" in str(swept) and ") *" not in str(swept)
    # The same by `compare`, and a mean over both ways of measuring has a warning.
    compared = comparison.comparison_of([swept])
    assert {compared.separation("queue_p99", line).order for line in compared.lines[1:]} == {0}
    mixed = [*list(cells["all"].runs.values())[:2], *list(cells["edge"].runs.values())[2:]]
    (warning,) = [text for text in comparison.comparison_of(mixed).warnings if "did not measure" in text]
    assert "neither ranked nor held against a bound" in warning


def test_a_star_between_runs_of_the_same_bits_has_its_cause_in_the_note():
    from weftline.measures.judgements import Footnotes
    from weftline.sweeps import tables

    note = tables.differences_note("x", Footnotes(), intervals=True, same=["a and b"], recorded=["packets"])
    assert "A star between runs that are the same to the bit (packets) is of what they recorded" in note
    assert "A star between" not in tables.differences_note("x", Footnotes(), intervals=True, same=["a and b"])


@pytest.mark.parametrize("interval", [(None, None), (-90.0, 10.0), (-50.0, -30.0)])
def test_a_difference_of_what_was_not_measured_alike_is_marked_whatever_its_interval(interval):
    from weftline.measures.judgements import Footnotes, Reason, Separation
    from weftline.measures.stats import Difference, Estimate
    from weftline.sweeps import tables

    found = Difference(Estimate(-40.0, *interval, 5), paired=True, base=80.0)
    notes = Footnotes()
    reasons = (Reason("measures differ", "ports is a and *"), Reason("interval", "holds zero"))
    text = tables.difference_text(found, "{:.0f}".format, Separation(0, reasons[:1]), notes)
    assert text.endswith(" [1]") and notes.text() == "[1] not measured alike (ports is a and *)"
    of_chance = tables.difference_text(found, "{:.0f}".format, Separation(0, reasons[1:]), notes)
    assert of_chance.endswith("]") == (interval == (-50.0, -30.0))


@real
def test_a_metric_is_held_to_the_measures_that_it_reads_and_to_no_others(tmp_path):
    class Watched(Run):
        def recorded(self, metric, **options):
            opened.add(over_time.series(metric).measure)
            return super().recorded(metric, **options)

        def backlog(self):
            opened.add("goodput")
            return super().backlog()

        def shares(self, *times):
            opened.add("goodput")
            return super().shares(*times)

        @property
        def queues(self):
            opened.add("queue_histogram")
            return super().queues

    run = weftline.run(
        {
            "topology": {
                "kind": "dumbbell",
                "left": 2,
                "right": 2,
                "host_link": {"rate": "10Gbps", "delay": "1us"},
                "bottleneck_link": {"rate": "10Gbps", "delay": "1us"},
            },
            "workload": [
                {"kind": "bulk", "hosts": "0", "to": "2", "size": "100MB"},
                {"kind": "bulk", "hosts": "1", "to": "3", "size": "100MB", "start": "200us"},
            ],
            "failures": {"event": [{"at": "500us", "link": ["s0", "s1"], "change": "rate", "rate": "5Gbps"}]},
            "measure": {
                "queue_histogram": {"ports": "*", "every": "1us"},
                "utilisation": {"ports": "s0->s1", "every": "50us"},
                "goodput": {"by": "flow", "flows": [0, 1], "every": "50us"},
            },
            "run": {"until": "1ms"},
        },
        out=tmp_path / "run",
    )
    watched = Watched(run.out, run.summary)
    known = set()
    for name, found in METRICS.items():
        opened: set[str] = set()
        value, held_to = found.read(watched), {*found.measured_by} - {"ideal"}
        assert opened == held_to if value is not None else opened <= held_to, name
        known |= opened
    assert known == {"queue_histogram", "utilisation", "goodput"}


@real
def test_the_terminal_says_which_ports_metrics_of_queues_are_of(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": {"kind": "incast", "senders": 3, "receiver": 0, "size": "100KB"},
    }
    texts = {}
    for ports in ("*", "s0.*"):
        given = {**scenario, "measure": {"queue_histogram": {"ports": ports}}}
        run = weftline.run(given, out=tmp_path / ports[0])
        texts[ports] = dict(run_facts.facts(run))["queue p95 / p99 / max"]
        note = "Metrics of queues are of 4 switch ports and 4 host ports."
        assert (note in weftline.compare(run).table().note) == (ports == "*")
    assert texts["*"].endswith(", of all ports, those of hosts too") and "hosts" not in texts["s0.*"]


@real
def test_ideal_times_are_compared_of_the_flows_that_finished_in_both_runs(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": {
            "kind": "flows",
            "flows": [{"src": 0, "dst": 3, "size": size} for size in ("1KB", "9MB")],
        },
    }
    whole = weftline.run(scenario, out=tmp_path / "whole")
    cut = weftline.run({**scenario, "run": {"until": "100us"}}, out=tmp_path / "cut")
    assert (whole.summary["flows_done"], cut.summary["flows_done"]) == (2, 1)
    ours, theirs = ideals.pair_of("slowdown_mean", whole, cut, Flows())
    assert ours == theirs == ideals.of_flows(cut, Flows()) < ideals.of_flows(whole, Flows())
    assert evidence.ideals_differ("slowdown_mean", [whole], [cut]) == []
    note = weftline.compare(whole, cut).differences().note
    assert "Means are over the flows that finished: other ones in each line where some did not." in note


def test_a_percentile_of_queues_under_random_arrivals_needs_as_many_flows_as_that_of_slowdowns():
    def reasons(name, flows, kind="poisson"):
        runs = [run_with(histogram(), seed=seed, samples=50_000, flows=flows) for seed in (1, 2)]
        for run in runs:
            run.scenario["workload"] = [{"kind": kind, "duration": "1ms"}]
        return [reason.text for reason in evidence.short_for_queues(name, runs)]

    assert reasons("queue_p99", 348) == ["348 flows in a run; an interval of p99 of queues needs 2,000"]
    assert reasons("queue_p95", 399) == ["399 flows in a run; an interval of p95 of queues needs 400"]
    assert reasons("queue_p99", 2_000) == reasons("queue_p95", 400) == reasons("queue_max", 9) == []
    # Flows that start at once fill queues by a law of their own.
    assert reasons("queue_p99", 348, "incast") == []


@real
def test_compare_warns_of_queues_of_runs_that_are_too_short_for_their_p99(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 4, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "workload": [{"kind": "poisson", "size": "20KB", "load": 0.5, "duration": "600us"}],
        "measure": {"queue_histogram": {"ports": ["s0"]}},
    }
    runs = [weftline.run(scenario, seed=seed, out=tmp_path / str(seed)) for seed in (1, 2)]
    with pytest.warns(weftline.WeftlineWarning, match="queue p99, .*p99 of queues needs 2,000"):
        weftline.compare(*runs)
