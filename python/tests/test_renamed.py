"""Names of the version before still work: keys, metrics, arguments, files; a warning has the new name."""

import json

import pytest
from texts import FABRIC, TWO_SCHEMES

import weftline
from weftline import renamed, toml_lines
from weftline.cli import baseline
from weftline.errors import InputError, WeftlineWarning
from weftline.measures import metrics
from weftline.reproduce import experiments
from weftline.sweeps import sweepfile


@pytest.mark.parametrize(("old", "new"), renamed.METRICS.items())
def test_a_metric_is_found_by_its_old_name(old, new):
    with pytest.warns(WeftlineWarning, match=f'"{old}" is now "{new}"'):
        assert metrics.metric(old) is metrics.METRICS[new]


def test_a_sweep_reads_the_old_keys_of_its_report(tmp_path):
    path = tmp_path / "s.toml"
    (tmp_path / "fabric.toml").write_text(FABRIC)
    path.write_text(
        'scenario = "fabric.toml"\nseeds = 2\n[[axis]]\nkey = "workload.0.load"\nvalues = [0.3, 0.5]\n'
        '[report]\nmetrics = ["jain_98_99"]\nanswer = "goodput_98_99 > 1Gbps"\n'
        'sizes = { least = "10KB", most = "1MB" }\n'
    )
    with pytest.warns(WeftlineWarning, match='sizes: "least" is now "min"'):
        report = sweepfile.load(path).report
    assert report.size_range == (10_000, 1_000_000)
    assert list(report.metrics) == ["jain_without_last_second"]
    assert report.bound == ("goodput_without_last_second", ">", 1e9)


def test_an_experiment_reads_old_keys_and_metrics(tmp_path, monkeypatch):
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "fabric.toml").write_text(FABRIC)
    text = TWO_SCHEMES.replace('metric = "slowdown_p95"', 'metric = "jain_98_99"')
    (folder / "experiment.toml").write_text(text.replace("below = 1", "most = 1"))
    monkeypatch.setenv("WEFTLINE_EXPERIMENTS", str(tmp_path))
    with pytest.warns(WeftlineWarning, match='"most" is now "at_most"'):
        found = experiments.load("two")
    (claim,) = found.claims
    assert claim["at_most"] == 1
    assert found.figures[0].options["metric"] == claim["metric"] == "jain_without_last_second"
    (folder / "published.json").write_text('{"a": [{"line": "HPCC", "metric": "jain_98_99", "value": 1}]}')
    with pytest.warns(WeftlineWarning):
        assert found.published_values("a")[0]["metric"] == "jain_without_last_second"


def test_a_stored_benchmark_has_the_old_ends_of_its_range(tmp_path):
    speeds = {"packet_hops_per_cpu_second": 1.0, "packet_hops_per_wall_second": 1.0}
    entry = {"workload": "p8", "fingerprint": "f", "threads": 1, "median": speeds}
    document = {"format": baseline.FORMAT, "version": baseline.VERSION}
    document["workloads"] = [entry | {"least": speeds, "most": speeds}]
    (tmp_path / "old.json").write_text(json.dumps(document))
    with pytest.warns(WeftlineWarning, match='"most" is now "max"'):
        found = baseline.read(tmp_path / "old.json")
    assert found.workloads["p8"]["min"] == found.workloads["p8"]["max"] == speeds


def test_a_run_takes_the_old_arguments(tmp_path, monkeypatch):
    run = weftline.Run(tmp_path, {"slowdown": {"by_group": {"a": {}}}})
    asked = []
    monkeypatch.setattr(
        weftline.runs._native, "completion", lambda *given: asked.append(given) or "{}", raising=False
    )
    monkeypatch.setattr(
        weftline.runs._native, "distribution", lambda *given: asked.append(given) or "[]", raising=False
    )
    with pytest.warns(WeftlineWarning, match='"least" is now "min_size"'):
        run.completion(least=10, most=20, group="a")
    with pytest.warns(WeftlineWarning, match='"most" is now "max_points"'):
        run.distribution("fct_ns", most=50)
    assert asked == [(str(tmp_path), 10, 20, "a"), (str(tmp_path), "fct_ns", 50, None)]
    with pytest.raises(TypeError, match="unexpected keyword argument 'smallest'"):
        run.completion(smallest=1)


def test_a_page_module_is_found_by_its_old_name():
    with pytest.warns(DeprecationWarning, match=r"now weftline\.report\.run_page"):
        from weftline.report import of_runs
    from weftline.report import run_page

    assert of_runs is run_page


def test_an_old_key_next_to_the_new_one_is_an_error():
    where = toml_lines.Where("s.toml", "")
    with pytest.raises(InputError, match='expected either "least" or "min", found both'):
        renamed.keys({"least": "1KB", "min": "1KB"}, renamed.SIZES, where())
