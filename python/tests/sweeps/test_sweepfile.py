"""Files of sweeps: what they stand for, and the errors of wrong ones."""

from pathlib import Path

import pytest

import weftline
from weftline import scenarios
from weftline.errors import InputError
from weftline.sweeps import axes, runner, sweepfile


def read(text, tmp_path, scenario):
    path = tmp_path / "sweep.toml"
    path.write_text(f'scenario = "{scenario.name}"\n' + text)
    return sweepfile.load(path)


def test_axes_multiply_and_the_last_one_runs_fastest(engine, tmp_path, scenario):
    sweep = read(
        """
seeds = 2
[set]
"workload.0.duration" = "2ms"
[[axis]]
name = "scheme"
variants = [
  { name = "HPCC", set = { "transport.controller.kind" = "hpcc" } },
  { name = "DCTCP", set = { "transport.controller.kind" = "dctcp" } },
]
[[axis]]
key = "workload.0.load"
values = [0.3, 0.5]
""",
        tmp_path,
        scenario,
    )
    assert [tuple(variant for _, variant in choice) for choice in sweep.combinations()] == [
        ("HPCC", "0.3"),
        ("HPCC", "0.5"),
        ("DCTCP", "0.3"),
        ("DCTCP", "0.5"),
    ]
    assert sweep.changes(sweep.combinations()[1]) == {
        "workload.0.duration": "2ms",
        "transport.controller.kind": "hpcc",
        "workload.0.load": 0.5,
    }
    assert [point.seed for point in runner.plan(sweep, tmp_path / "s").points] == [1] * 4 + [2] * 4


def test_paired_keys_and_zipped_axes_advance_together(engine, tmp_path, scenario):
    sweep = read(
        """
zip = [["size", "load"]]
[[axis]]
name = "size"
keys = ["topology.leaves", "topology.spines"]
values = [[2, 1], [4, 2]]
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["hpcc", "dctcp"]
[[axis]]
name = "load"
key = "workload.0.load"
values = [0.3, 0.5]
""",
        tmp_path,
        scenario,
    )
    found = [tuple(variant for _, variant in choice) for choice in sweep.combinations()]
    assert found == [
        ("2 1", "hpcc", "0.3"),
        ("2 1", "dctcp", "0.3"),
        ("4 2", "hpcc", "0.5"),
        ("4 2", "dctcp", "0.5"),
    ]
    assert sweep.changes(sweep.combinations()[2])["topology.spines"] == 2


@pytest.mark.parametrize(
    "table, expected",
    [
        ({"from": 0.1, "to": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"from": 1, "to": 9, "step": 4}, [1, 5, 9]),
        ({"from": "10us", "to": "30us", "step": "10us"}, ["10us", "20us", "30us"]),
        ({"from": 0, "to": 1, "points": 3}, [0.0, 0.5, 1.0]),
        ({"from": "1KB", "to": "1000KB", "points": 4, "scale": "log"}, ["1KB", "10KB", "100KB", "1000KB"]),
        ({"from": 1, "to": 100, "points": 3, "scale": "log"}, [1, 10, 100]),
        ({"from": 2, "to": 2, "step": 1}, [2]),
        ({"from": 2, "to": 6, "points": 3}, [2, 4, 6]),
        ({"from": 2, "to": 7, "points": 3}, [2.0, 4.5, 7.0]),
        ({"from": 2.0, "to": 6.0, "points": 3}, [2.0, 4.0, 6.0]),
    ],
)
def test_ranges_include_both_ends(table, expected):
    found = axes.range_values(table, "here")
    assert found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    "value, expected",
    [(3, [1, 2, 3]), ([7, 2], [7, 2]), ("1-3,9,2", [1, 2, 3, 9])],
)
def test_seeds_are_a_number_a_list_or_ranges(value, expected):
    assert sweepfile.parse_seeds(value, "seeds") == expected


def test_a_seed_is_listed_once():
    with pytest.raises(InputError, match=r"seeds: 7 is there twice"):
        sweepfile.parse_seeds([7, 2, 7], "seeds")


def test_axes_whose_keys_end_alike_are_called_by_their_paths():
    values = ["a", "b"]
    entries = [{"key": "switch.balancer.kind", "values": values}, {"key": "transport.kind", "values": values}]
    assert list(axes.read(entries, lambda *_: "here")) == ["switch.balancer.kind", "transport.kind"]
    assert list(axes.read([{"key": "a.mean", "values": values}], lambda *_: "here")) == ["a.mean"]
    entries[0]["name"] = "balancer"
    assert list(axes.read(entries, lambda *_: "here")) == ["balancer", "kind"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("seeds = 0", ":2: seeds: expected a number of runs from 1"),
        ("seeds = true", "seeds: expected a number of runs"),
        ("seeds = []", "seeds: expected a number of runs"),
        ('seeds = "5-1"', "5-1 is not a range"),
        ("sedes = 3", ':2: unknown key "sedes" of sweep: did you mean "seeds"'),
        ('[[axis]]\nkey = "a.b"', "expected either values or range"),
        ('[[axis]]\nkey = "a.b"\nvalues = []', "expected at least one value"),
        ('[[axis]]\nkey = "a.b"\nvalues = [1, 1]', "1 is there twice"),
        ('[[axis]]\nkey = "a.b"\nvalues = 3', "values: expected a list"),
        ('[[axis]]\nkey = "a.b"\nvalus = [3]', ':4: unknown key "valus" of axis: did you mean "values"'),
        ("[[axis]]\nvalues = [1]", "expected one of key, keys and variants, found none"),
        ('[[axis]]\nkeys = ["a", "b"]\nvalues = [[1]]', "expected 2 values"),
        ('[[axis]]\nkey = "seed"\nvalues = [1, 2]', ":2: axis: the seed cannot be set: every combination"),
        ('[[axis]]\nkeys = ["a", "seed"]\nvalues = [[1, 2]]', "seeds = [1, 2]"),
        (
            '[[axis]]\nname = "x"\nvariants = [{ name = "a", set = { seed = 3 } }]',
            'variant "a": the seed cannot be set',
        ),
        ("[set]\nseed = 3", ":3: set: the seed cannot be set"),
        ('[[axis]]\nname = "seed"\nkey = "a"\nvalues = [1, 2]', 'an axis cannot be called "seed"'),
        ('[[axis]]\nname = "a\\nb"\nkey = "a"\nvalues = [1]', ":2: axis: expected names of one line"),
        ('[[axis]]\nkey = "a"\nvalues = ["\\u001b[31m"]', "control characters, found '\\x1b[31m'"),
        (
            '[report]\nmetrics = ["goodput"]\n[[axis]]\nname = "Goodput"\nkey = "a"\nvalues = [1]',
            ':5: an axis cannot be called "Goodput": the tables of a sweep have a column of this name',
        ),
        (
            '[[axis]]\nkey = "load"\nvalues = [1]\n[[axis]]\nname = "Load"\nkey = "b"\nvalues = [1]',
            'two axes are called "Load"; capitals make no difference',
        ),
        ('[[axis]]\nkey = "a"\nvalues = [1]\n[[axis]]\nkey = "a"\nvalues = [2]', "two axes"),
        ('[[axis]]\nkey = "a"\nrange = { from = 1, to = 0, step = 1 }', "expected from at most to"),
        ('[[axis]]\nkey = "a"\nrange = { from = 1, to = 2 }', "expected either step or points"),
        ('[[axis]]\nkey = "a"\nrange = { from = 1, to = 2, step = 0 }', "expected a number above 0"),
        (
            '[[axis]]\nkey = "a"\nrange = { from = 0, to = 2, points = 2, scale = "log" }',
            "above 0 on a log scale",
        ),
        ('[[axis]]\nkey = "a"\nrange = { from = "1us", to = "2ms", points = 2 }', "with the same unit"),
        ('[[axis]]\nname = "n"\nkeys = ["a", "b", "a"]\nvalues = [[1, 2, 3]]', "keys: a is there twice"),
        ('[[axis]]\nkey = "a"\nrange = { from = 0, to = 1e9, step = 1 }', "values; expected at most"),
        ('[[axis]]\nname = "x"\nvariants = [{ nmae = "a" }]', 'unknown key "nmae" of variant'),
        ('zip = [["a", "b"]]', "unknown axis 'a': this sweep has no axis"),
        ('[report]\nmetrics = ["slowdwon_p99"]', 'did you mean "slowdown_p99"'),
        ("[report]\nmetrics = 7", "report.metrics: expected a list of metrics, found 7"),
        ('[report]\nrows = "scheme"', "report.rows: expected an axis"),
        ('[report]\nanswer = "slowdown_p99 5"', "expected a bound on a metric"),
        ('[report]\nanswer = "slowdown_p99 <= 5"', "expected a bound on a metric, with < or >,"),
        ('[report]\nwarmup = "1"', "a time such as"),
        ('[report]\ninterval = "z"', '"t" or "bootstrap"'),
        ('[report]\ndrain = "-5%"', ":3: report.drain: expected a time such as"),
        ('[report]\nsizes = { least = "10" }', "expected a size with its unit"),
        ('[report]\nwarmup = "110%"', ':3: report.warmup: no flow counts with warmup = "110%"'),
        (
            '[report]\nwarmup = "60%"\ndrain = "60%"',
            'with warmup = "60%" and drain = "60%": expected less than',
        ),
        (
            '[report]\nsizes = { min = "1MB", max = "10KB" }',
            'no flow has a size from min = "1MB" to max = "10KB"',
        ),
        (
            '[report]\nanswer = "fct_p99 < 5"',
            ":3: report.answer: fct_p99 is a time: expected a time with its unit",
        ),
        ("seeds = 5\nseeds = 6", "Cannot overwrite a value"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(engine, tmp_path, scenario, text, message):
    with pytest.raises(InputError) as error:
        read(text, tmp_path, scenario)
    assert message in str(error.value) and str(tmp_path / "sweep.toml") in str(error.value)


def test_an_axis_that_names_no_key_is_named(engine, tmp_path, scenario, monkeypatch):
    def refuse(text, file, base_dir, sets, seed, controllers=None):
        raise InputError(f'{file}: --set {sets[0][0]}: unknown key "laod": did you mean "load"?')

    sweep = read('[[axis]]\nname = "load"\nkey = "workload.0.laod"\nvalues = [0.3]', tmp_path, scenario)
    monkeypatch.setattr(engine, "resolve", refuse)
    with pytest.raises(InputError, match=r'sweep.toml:2: axis "load", load 0.3: .*did you mean "load"'):
        runner.plan(sweep, tmp_path / "s")


def test_a_scenario_that_is_not_there_is_named(engine, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('seeds = 1\nscenario = "nothing.toml"\n')
    with pytest.raises(InputError, match=r"sweep.toml:2: scenario: .*nothing.toml: no such file"):
        sweepfile.load(path)
    path.write_text("seeds = 1\n")
    with pytest.raises(InputError, match=r"scenario: expected a file .*found nothing"):
        sweepfile.load(path)


def test_a_scenario_is_no_sweep(engine, scenario):
    with pytest.raises(InputError, match=r'this is a scenario; expected a sweep, .*scenario = "small.toml"'):
        sweepfile.load(scenario)


def test_the_scenario_may_stand_in_the_file(engine, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        '[scenario]\n[scenario.topology]\nkind = "star"\n[[axis]]\nkey = "topology.hosts"\nvalues = [2, 3]\n'
    )
    sweep = sweepfile.load(path)
    assert len(runner.plan(sweep, tmp_path / "s").points) == 2 and sweep.name == "sweep"


def test_combinations_that_are_one_run_are_reported(engine, tmp_path, scenario):
    sweep = read('[[axis]]\nname = "x"\nvariants = [{ name = "a" }, { name = "b" }]', tmp_path, scenario)
    assert runner.plan(sweep, tmp_path / "s").same == [
        '"x a" and "x b" are the same run: what differs has no effect'
    ]


def test_a_bound_is_read_in_the_unit_of_its_metric():
    assert sweepfile.Report(answer="fct_p99 < 2ms").bound == ("fct_p99", "<", 2e6)
    assert sweepfile.Report(answer="goodput > 40Gbps").bound == ("goodput", ">", 40e9)
    assert sweepfile.Report(answer="queue_p99 < 20KB").bound == ("queue_p99", "<", 20e3)
    assert sweepfile.Report(answer="deadlines_met > 95%").bound == ("deadlines_met", ">", 0.95)
    assert sweepfile.Report(answer="deadlines_met > 0.95").bound == ("deadlines_met", ">", 0.95)
    assert sweepfile.Report(answer="drops > 0").bound == ("drops", ">", 0)
    assert sweepfile.Report(answer="backlog_growth < 0").bound == ("backlog_growth", "<", 0)
    assert sweepfile.Report(answer="imbalance < 300%").bound == ("imbalance", "<", 3)
    assert sweepfile.Report(answer="drops host -> leaf < 5").bound == ("drops host -> leaf", "<", 5)
    assert sweepfile.Report(answer="mean of cwnd_bytes < 5 KB").bound == ("mean of cwnd_bytes", "<", 5e3)


@pytest.mark.parametrize(
    "answer, message",
    [
        ("fct_p99 < 2Gbps", 'fct_p99 is a time: expected a time with its unit such as "10us"'),
        ("fct_p99 < 5", "expected a time with its unit such as \"10us\", found '5'"),
        ("goodput > 5us", 'goodput is a rate: expected a rate with its unit such as "100Mbps"'),
        ("queue_p99 < 20", 'queue_p99 is a size: expected a size with its unit such as "200KB"'),
        ("slowdown_p99 < 5us", "slowdown_p99 has no unit: expected a plain number such as 5"),
        ("slowdown_p99 < 5%", "slowdown_p99 has no unit: expected a plain number such as 5"),
        ("drops < 5KB", "drops is a count: expected a plain number such as 5"),
        ("retransmitted < 1%", "retransmitted is a count: expected a plain number such as 5"),
        ("deadlines_met > 1ms", 'deadlines_met is a share: expected a share such as "20%" or 0.2'),
        ("share web > x%", 'share web is a share: expected a share such as "20%" or 0.2'),
        ("slowdown_p99 < inf", "expected a finite number"),
        (
            "deadlines_met > 95",
            'deadlines_met is never above 100 %, so no value is above 9,500 %; did you mean "95%"?',
        ),
        ("deadlines_met > 100%", "is never above 100 %, so no value is above 100 %"),
        ("jain < 2", "jain is never above 1.00, so every value is below 2.00"),
        ("drops < 0", "drops is never below 0, so no value is below 0"),
        ("drops > -1", "drops is never below 0, so every value is above -1"),
        ("deadlines_met > nan", "expected a finite number"),
        ("slowdwon_p99 < 5", 'did you mean "slowdown_p99"'),
    ],
)
def test_a_bound_in_another_unit_than_that_of_its_metric_is_refused(answer, message):
    with pytest.raises(InputError) as error:
        _ = sweepfile.Report(answer=answer).bound
    assert message in str(error.value)


def test_a_sweep_without_seeds_has_that_of_its_scenario(engine, tmp_path, scenario):
    assert read("", tmp_path, scenario).seeds == [1]
    scenario.write_text("seed = 9\n" + scenario.read_text())
    assert read("", tmp_path, scenario).seeds == [9]
    assert read("seeds = 2", tmp_path, scenario).seeds == [1, 2]


@pytest.mark.parametrize(
    "report, message",
    [
        (
            'group = "wbe"',
            ':2: report.group = "wbe": no workload has the group "wbe": did you mean "web"? known:',
        ),
        ('metrics = ["slowdown_p50 of wb"]', 'metric "slowdown_p50 of wb": no workload has the group "wb"'),
        ('metrics = ["step_mean of xyz"]', 'no workload has the group "xyz": known: web'),
        ('metrics = ["share wb"]', 'no workload has the group "wb"'),
        ('answer = "goodput of wb > 1Gbps"', 'no workload has the group "wb"'),
    ],
)
def test_a_group_that_no_workload_has_is_refused_before_anything_runs(
    engine, tmp_path, scenario, report, message
):
    scenario.write_text(scenario.read_text() + 'group = "web"\n')
    with pytest.raises(InputError) as error:
        runner.plan(read(f"[report]\n{report}\n", tmp_path, scenario), tmp_path / "s")
    assert message in str(error.value) and not engine.runs
    sweep = read('[report]\ngroup = "web"\nmetrics = ["share web", "goodput of web"]\n', tmp_path, scenario)
    assert len(runner.plan(sweep, tmp_path / "s").points) == 1


def test_a_value_of_an_axis_is_named_as_text_and_what_toml_cannot_hold_with_its_place():
    entries = [{"key": "workload.0.sizes", "values": [Path("a/sizes.csv"), "websearch", 2]}]
    (axis,) = axes.read(entries, lambda *_: "here").values()
    assert list(axis.variants) == ["a/sizes.csv", "websearch", "2"]
    with pytest.raises(InputError, match=r'axis "mtu": values: transport.mtu: a scenario cannot hold None'):
        axes.read([{"key": "transport.mtu", "values": [1500, None]}], lambda *_: "here")


def test_a_sweep_from_python_takes_arrays_and_refuses_what_is_no_list(engine, tmp_path, scenario):
    numpy = pytest.importorskip("numpy")
    loads = numpy.linspace(0.3, 0.6, 2)
    for values in (loads, list(loads)):
        found = weftline.sweep(
            scenario, {"workload.0.load": values}, seeds=numpy.arange(1, 3), out=tmp_path / "s"
        )
        assert [dict(cell.choice)["load"] for cell in found.cells] == ["0.3", "0.6"] and found.seeds == [1, 2]
    assert len(engine.runs) == 4
    for values in ("5KB", 5, None):
        with pytest.raises(InputError, match=r'axis "size": values: expected a list, found'):
            weftline.sweep(scenario, {"workload.0.size": values})
    with pytest.raises(InputError, match="seeds: expected a number of runs from 1"):
        weftline.sweep(scenario, {}, seeds=0)
    with pytest.raises(InputError, match="over: expected a dict"):
        weftline.sweep(scenario, ["workload.0.load"])


def test_against_is_a_variant_of_the_axis_that_is_compared(tmp_path, scenario):
    axes = """
        [[axis]]
        key = "workload.0.load"
        values = [0.3, 0.5]
        [[axis]]
        name = "kind"
        variants = [
          { name = "hpcc", set = { "transport.controller.kind" = "hpcc" } },
          { name = "dctcp", set = { "transport.controller.kind" = "dctcp" } },
        ]
        [report]
        """
    assert read(axes + 'against = "dctcp"', tmp_path, scenario).report.rows == "kind"
    assert read(axes + 'against = "0.5"', tmp_path, scenario).report.rows == "load"
    wrong = 'along = "load"\nagainst = "0.5"', 'rows = "kind"\nagainst = "0.5"'
    for text in wrong:
        with pytest.raises(
            InputError, match=r"report.against: expected a variant of kind; known: hpcc, dctcp"
        ):
            read(axes + text, tmp_path, scenario)


def test_layers_are_applied_in_their_order():
    found = scenarios.layered({"a.b": 1, "c": 2}, {"a": {"kind": "x"}}, {"a.b": 3})
    assert list(found.items()) == [("c", 2), ("a", {"kind": "x"}), ("a.b", 3)]


def test_an_axis_that_replaces_a_table_in_which_a_key_is_set_is_refused(tmp_path, scenario):
    schemes = """
        [[axis]]
        name = "scheme"
        variants = [{ name = "HPCC", set = { "transport.controller" = { kind = "hpcc" } } }]
        """
    eta = '[[axis]]\nkey = "transport.controller.eta"\nvalues = [0.5, 0.7]\n'
    assert len(read(schemes + eta, tmp_path, scenario).combinations()) == 2
    lost = 'axis "scheme": transport.controller replaces the table in which {} has transport.controller.eta'
    for text, earlier in (('[set]\n"transport.controller.eta" = 0.9\n', r"\[set\]"), (eta, 'axis "eta"')):
        with pytest.raises(InputError, match=lost.format(earlier)):
            read(text + schemes, tmp_path, scenario)
    with pytest.raises(InputError, match=r"--set: a replaces the table in which a\.b is set before it"):
        scenarios.parse_sets(["a.b=1", "a={ c = 2 }"])
    with pytest.raises(InputError, match=r"set: a replaces the table in which a\.b is set before it"):
        scenarios.settings({"a.b": 1, "a": {"c": 2}})
    assert scenarios.parse_sets(["a={ c = 2 }", "a.b=1"]) == [("a", "{ c = 2 }"), ("a.b", "1")]


def test_one_table_that_undoes_its_own_earlier_key_is_refused(tmp_path, scenario):
    undone = '{ "transport.controller.eta" = 0.5, "transport.controller" = { kind = "hpcc" } }'
    axis = f'[[axis]]\nname = "scheme"\nvariants = [{{ name = "low", set = {undone} }}]\n'
    with pytest.raises(InputError, match=r'axis "scheme", variant "low": transport.controller replaces'):
        read(axis, tmp_path, scenario)
    axes = '[[axis]]\nkey = "workload.0.load"\nvalues = [0.5]\n'
    with pytest.raises(InputError, match=r"\[set\]: transport.controller replaces"):
        read(f"set = {undone}\n{axes}", tmp_path, scenario)
