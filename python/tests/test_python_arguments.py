"""Arguments of the wrong type or kind are input errors that name them."""

import pytest
import texts

import weftline
from weftline import _native
from weftline.errors import InputError, RunFailed

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
SCENARIO = texts.star("small", hosts=4, sizes='size = "20KB"', load=0.5, duration="100us")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "small.toml").write_text(SCENARIO)
    return weftline.run(folder / "small.toml", out=folder / "run")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("force", 1),
        ("force", "yes"),
        ("out", 5),
        ("out", b"x"),
        ("out", "\ud800"),
        ("out", "a\0b"),
        ("progress", 5),
        ("progress", "bar"),
        ("progress", []),
        ("progress", float("nan")),
        ("set", {"name": "\ud800"}),
    ],
)
def test_run_names_the_argument_that_is_wrong(tmp_path, monkeypatch, argument, value):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    with pytest.raises(InputError, match=f"^{argument}: ") as raised:
        weftline.run("small.toml", **{argument: value})
    str(raised.value).encode("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("threads", value) for value in (-1, 1025, "2", 1000.0, True)),
        *(("memory", value) for value in ("x", "", "0B", "5", -5, 8e9, True)),
        *(("seed", value) for value in (-1, 2**63, 1.5, "1", True)),
    ],
)
def test_an_argument_is_checked_before_stored_results_are_returned(run, argument, value):
    expected = {
        "threads": "a whole number from 0 to 1024",
        "memory": '"none" or a size above zero such as "8GB", found ',
        "seed": r"a whole number from 0 to 2\^63 - 1, found ",
    }
    with pytest.raises(InputError, match=f"^{argument}: expected {expected[argument]}"):
        weftline.run(run.out.parent / "small.toml", out=run.out, **{argument: value})


@pytest.mark.parametrize(
    "limits", [{"threads": 2}, {"memory": "none"}, {"memory": " 0.5 TB"}, {"threads": 0}]
)
def test_other_limits_do_not_make_another_run(run, limits):
    assert weftline.run(run.out.parent / "small.toml", out=run.out, **limits).reused


def test_the_largest_seed(run):
    assert weftline.Scenario(run.out.parent / "small.toml", seed=2**63 - 1).values["seed"] == 2**63 - 1


@pytest.mark.parametrize("name", ["\udcff.toml", "\ud800.toml"])
def test_the_name_of_a_scenario_is_text(name):
    with pytest.raises(InputError, match=r"^scenario: expected text in UTF-8"):
        weftline.run(name)


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("slowdown", {"group": 1}, "group"),
        ("slowdown", {"group": []}, "group"),
        ("slowdown", {"bins": []}, "bins"),
        ("slowdown", {"bins": True}, "bins"),
        ("slowdown", {"scheme": None}, "scheme"),
        ("completion", {"group": 1}, "group"),
        ("distribution", {"column": 1}, "column"),
        ("distribution", {"group": []}, "group"),
        ("distribution", {"max_points": -1}, "max_points"),
        ("distribution", {"max_points": 10**40}, "max_points"),
        ("deadlines", {"group": {}}, "group"),
        ("over_time", {"metric": 1}, "metric"),
        ("over_time", {"metric": "queue_bytes", "every_ns": "1us"}, "every_ns"),
        *(
            ("over_time", {"metric": "queue_bytes", "every_ns": every}, "every_ns")
            for every in (-1, float("nan"), float("inf"), 10**400)
        ),
        ("over_time", {"metric": "queue_bytes", "max_points": "many"}, "max_points"),
        ("shares", {"from_ns": "0"}, "from_ns"),
        ("shares", {"from_ns": 5e5, "to_ns": 1e5}, "to_ns"),
    ],
)
def test_a_reading_names_the_argument_that_is_wrong(run, method, arguments, named):
    with pytest.raises(InputError, match=f"^{named}: expected "):
        getattr(run, method)(**arguments)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3"])
def test_a_number_of_rows_or_flows_is_a_whole_one(run, value):
    with pytest.raises(InputError, match=r"^max_rows: expected a whole number from 0"):
        run.flows.to_dicts(max_rows=value)
    with pytest.raises(InputError, match=r"^max_flows: expected a whole number from 0"):
        weftline.Scenario(run.folder / "scenario.toml").estimate(max_flows=value)


@pytest.mark.parametrize("captures", [[], {}, set(), 5, {"a": 1}, b"x", ["\ud800"], [5]])
def test_a_collector_is_given_captures(captures):
    with pytest.raises(InputError, match=r"^captures: expected "):
        weftline.collect(captures)


def test_findings_that_find_no_room_are_a_failure_and_not_wrong_input(tmp_path):
    resource = pytest.importorskip("resource")
    found = weftline.Collected(summary={"a": 1}, paths=[], hops=[], events=[], sources=[], pint=[])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(RunFailed, match="File too large"):
            found.save(tmp_path / "found")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        found.save(tmp_path / "file")


@pytest.mark.parametrize("argument", ["jobs", "threads"])
@pytest.mark.parametrize("value", [-1, 0, 1.5, "2", True])
def test_a_sweep_names_the_count_that_is_wrong(tmp_path, argument, value):
    (tmp_path / "small.toml").write_text(SCENARIO)
    with pytest.raises(InputError, match=f"^{argument}: expected a whole number from 1"):
        weftline.sweep(tmp_path / "small.toml", {"seed": [1]}, out=tmp_path / "s", **{argument: value})
    assert not (tmp_path / "s").exists()


def test_a_value_that_holds_itself_is_an_error_that_names_its_key(tmp_path):
    ring: list[object] = []
    ring.append(ring)
    table: dict[str, object] = {}
    table["a"] = table
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for value in (ring, table, deep):
        with pytest.raises(InputError, match=r"^workload(\.a)?: a list or a table holds itself"):
            weftline.Scenario({"workload": value})
        with pytest.raises(InputError, match=r"^set: workload: a list or a table holds itself"):
            weftline.run({}, set={"workload": value}, out=tmp_path / "r")


@pytest.mark.parametrize("number", [-1, 2**64, 1.5, "3", None, float("nan")])
def test_sketches_name_the_number_that_they_refuse(number):
    from weftline import pint

    frequent = pint.FrequentSketch(4)
    calls = {
        "k": lambda: pint.QuantileSketch(k=number if number is not None else "x"),
        "seed": lambda: pint.QuantileSketch(seed=number if number is not None else "x"),
        "counters": lambda: pint.FrequentSketch(number),
        "values": lambda: frequent.update([1, number]),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match=f"^{name}: expected a whole number from "):
            call()
    assert len(frequent) == 0
    assert pint.QuantileSketch(8, 2**64 - 1).rank_error == 0
