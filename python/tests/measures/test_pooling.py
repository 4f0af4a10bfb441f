"""Which runs are averaged as seeds of one experiment, the labels of lines, and reports on the rest.

Most of it on folders that hold a scenario and a summary alone.
"""

from __future__ import annotations

import copy
import json
import random

import pytest

import weftline
from weftline import _native, provenance, scenarios
from weftline.cli.main import main
from weftline.errors import Conflict, DeterminismWarning, InputError, WeftlineWarning
from weftline.measures import pooling
from weftline.measures.comparison import comparison_of
from weftline.measures.lines import lines_of
from weftline.runs import Run

real = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

BASE = {
    "name": "base",
    "seed": 1,
    "topology": {"kind": "leaf-spine", "leaves": 4, "host_link": {"rate": "100Gbps", "delay": "1us"}},
    "switch": {
        "buffer": "32MiB",
        "ecn": [{"rate": "100Gbps", "kmin": "400KB", "kmax": "1.6MB", "pmax": 0.2}],
        "pfc": {"enabled": True},
        "balancer": {"kind": "ecmp", "salt": 0},
    },
    "transport": {"kind": "rdma", "controller": {"kind": "hpcc", "eta": 0.95}, "mtu": "1KB"},
    "telemetry": {"kind": "int", "max_hops": 5},
    "workload": [{"kind": "poisson", "group": "web", "sizes": "websearch", "load": 0.3, "duration": "1ms"}],
    "run": {"until": "flows-done", "grid": "10us", "threads": 1, "memory": "none"},
    "compat": {"like": "none"},
    "failures": {"detection": "100us", "loss": 0.0},
    "measure": {"ideal": "alone", "pauses": False, "queues": {"ports": "*", "every": "20us"}},
}
FAILURE = {"at": "3ms", "link": ["leaf0", "spine1"], "change": "down", "rate": "auto"}
NO_EFFECT = ("name", "run.threads", "run.memory")


class Folders:
    """Makes folders of runs that were never run."""

    def __init__(self, root):
        self.root, self.made = root, 0

    def run(self, scenario=None, *, seed=1, folder=None, provenance=None, **summary):
        self.made += 1
        out = self.root / (folder or f"run{self.made}")
        out.mkdir(parents=True)
        scenario = {**copy.deepcopy(scenario or BASE), "seed": seed}
        (out / "scenario.toml").write_text(scenarios.to_toml(scenario))
        about = {
            "name": scenario["name"],
            "seed": seed,
            "status": "done",
            "fingerprint": f"{seed:016x}",
            "flows": 10,
            "flows_done": 10,
            "end_ns": 2e6,
            "versions": {"weftline": "0.1.0"},
            "provenance": {"build": "0123456789ab", "files": {}, "controllers": {}} | (provenance or {}),
        }
        (out / "summary.json").write_text(json.dumps(about | summary))
        return Run.read(out)


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


def changed(path, value, base=BASE):
    """Return a scenario with a value at a dotted path; None takes it away."""
    found = copy.deepcopy(base)
    *above, last = path.split(".")
    place = found
    for part in above:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return found


def labels(*given):
    return [line.label for line in lines_of(given)]


def sizes(*given):
    return [len(line.runs) for line in lines_of(given)]


def test_runs_that_differ_in_the_seed_alone_are_one_line(folders):
    assert sizes(*[folders.run(seed=seed) for seed in (1, 2, 3)]) == [3]


def test_stored_runs_of_another_build_are_counted(folders, monkeypatch):
    found = [folders.run(seed=1), folders.run(seed=2, provenance={"build": "fedcba987654"})]
    monkeypatch.setattr(provenance, "build", lambda: "0123456789ab")
    (sentence,) = pooling.of_other_builds(found)
    assert "1 of 2 runs are stored results of another build" in sentence and "fedcba987654" in sentence
    assert pooling.of_other_builds(found[:1]) == []
    monkeypatch.setattr(provenance, "build", lambda: None)
    assert pooling.of_other_builds(found) == [], "what is not known is not judged"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "other"),
        ("run.threads", 8),
        ("run.memory", "8GB"),
        ("measure.pauses", True),
        ("measure.queues", None),
        ("measure.pcap", "*"),
        ("measure.controllers", {"flows": [0], "every": "10us"}),
    ],
)
def test_what_changes_no_bit_does_not_keep_runs_apart(folders, path, value):
    assert sizes(folders.run(), folders.run(changed(path, value), seed=2)) == [2]


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("failures.event", [FAILURE], ["no failures", "failures"]),
        (
            "topology.override",
            [{"between": ["leaf0", "spine0"], "rate": "1Gbps"}],
            ["no topology.override", "topology.override"],
        ),
        (
            "switch.port",
            [{"match": "leaf*.*", "queue": {"kind": "fifo"}}],
            ["no switch.port", "switch.port"],
        ),
        (
            "switch.ecn",
            [BASE["switch"]["ecn"][0] | {"kmin": "100KB"}],
            ["kmin 400 KB", "kmin 100 KB"],
        ),
        ("telemetry.max_hops", 9, ["max_hops 5", "max_hops 9"]),
        ("telemetry.record", 0.5, ["no record", "record 0.5"]),
        ("transport.controller.eta", 0.9, ["eta 0.95", "eta 0.9"]),
        ("transport.ack_priority", True, ["no ack_priority", "ack_priority on"]),
        ("transport.mtu", "4KB", ["mtu 1 KB", "mtu 4 KB"]),
        ("switch.pfc", None, ["pfc.enabled true", "no switch.pfc"]),
        ("workload.0.load", 0.5, ["load 0.3", "load 0.5"]),
        ("measure.ideal", "hpcc", ["ideal alone", "ideal hpcc"]),
        ("run.until", "1ms", ["until flows-done", "until 1 ms"]),
        ("compat.like", "hpcc-ns3", ["like none", "like hpcc-ns3"]),
        ("host.resequencing", {"enabled": True}, ["no host", "host"]),
    ],
)
def test_any_other_difference_makes_two_lines_that_say_it(folders, path, value, names):
    one, other = folders.run(), folders.run(changed(path, value))
    assert sizes(one, other) == [1, 1]
    if path != "switch.pfc":
        assert labels(one, other) == names
    assert labels(other, one) == labels(one, other)[::-1]


def test_one_scheme_next_to_another_is_called_by_its_name_though_more_follows_from_it(folders):
    other = changed("transport.controller", {"kind": "dcqcn", "rai": "50Mbps"})
    other = changed("telemetry", {"kind": "none"}, changed("switch.ecn.0.kmin", "100KB", other))
    assert labels(folders.run(), folders.run(other)) == ["hpcc", "dcqcn"]


def test_controllers_of_tcp_are_distinguished(folders):
    base = changed("transport.kind", "tcp")
    kinds = [changed("transport.controller", {"kind": kind}, base) for kind in ("cubic", "dctcp")]
    assert labels(*map(folders.run, kinds)) == ["cubic", "dctcp"]


def test_a_label_has_as_few_settings_as_tell_all_lines_apart(folders):
    given = [
        folders.run(changed("transport.mtu", mtu, changed("workload.0.load", load, BASE)))
        for mtu, load in (("1KB", 0.3), ("1KB", 0.5), ("4KB", 0.3))
    ]
    assert labels(*given) == ["mtu 1 KB, load 0.3", "mtu 1 KB, load 0.5", "mtu 4 KB, load 0.3"]


def test_what_labels_leave_out_is_a_note(folders):
    other = changed("transport.controller.kind", "dctcp", changed("workload.0.load", 0.5))
    (note,) = comparison_of([folders.run(), folders.run(other)]).notes
    assert note == "These lines also differ in workload.0.load."


def test_a_note_names_the_code_of_controllers_once(folders):
    """Lines without any, and with two laws of one name, differ in that table and in what is in it."""
    second = changed("transport.controller.kind", "python:x")
    second["transport"]["controller"] = {"kind": "python:x"}
    codes = [None, "1" * 64, "2" * 64]
    given = [
        folders.run(
            changed("transport.mtu", f"{n}KB", second if code else BASE),
            provenance=code and {"controllers": {"x": code}},
        )
        for n, code in enumerate(codes, 1)
    ]
    notes = [note for note in comparison_of(given).notes if "also differ" in note]
    assert notes == ['These lines also differ in the code of controller "x".']


@pytest.mark.parametrize("status", ["interrupted", "stalled", "memory-limit", "failed"])
def test_a_run_that_is_not_done_has_a_line_of_its_own_that_says_so(folders, status):
    given = [
        folders.run(),
        folders.run(seed=2),
        folders.run(seed=3, status=status, end_ns=1.2e6),
        folders.run(seed=4, status=status, end_ns=1.2e6),
    ]
    found = lines_of(given)
    assert [len(line.runs) for line in found] == [2, 1, 1]
    output = status.replace("-", " ")
    assert found[0].label == "hpcc"
    assert [line.label for line in found[1:]] == [f"hpcc ({output} at 1.2 ms), seed {n}" for n in (3, 4)]
    assert labels(*given[:3])[1] == f"hpcc ({output} at 1.2 ms)"


def test_a_run_that_is_not_done_is_compared_with_nothing(folders):
    found = comparison_of([folders.run(), folders.run(seed=2, status="interrupted")])
    assert found.base_of(found.lines[1]) is None and found.differences() is None
    assert "not done" in found.notes[0]


def test_the_same_seed_twice_counts_once_and_both_folders_are_named(folders):
    (line,) = lines_of([folders.run(folder="a"), folders.run(folder="b"), folders.run(seed=2)])
    assert len(line.runs) == 2
    (output,) = line.warnings
    assert f"{folders.root / 'a'} and {folders.root / 'b'}" in output and not isinstance(output, Conflict)


def test_the_same_seed_with_two_fingerprints_is_as_grave_as_an_error(folders):
    given = [folders.run(folder="a"), folders.run(folder="b", fingerprint="ff")]
    (line,) = lines_of(given)
    (output,) = line.warnings
    assert isinstance(output, Conflict) and len(line.runs) == 1
    assert "ff" in output and str(folders.root / "a") in output and str(folders.root / "b") in output
    with pytest.warns(DeterminismWarning, match="not deterministic"):
        weftline.plot(*given)


def test_runs_by_another_build_or_version_are_another_line(folders):
    found = labels(folders.run(), folders.run(seed=2, provenance={"build": "ffffffffffff"}))
    assert found == ["build 01234567", "build ffffffff"]
    found = labels(folders.run(), folders.run(seed=2, versions={"weftline": "0.2.0"}))
    assert found == ["weftline 0.1.0", "weftline 0.2.0"]


def test_a_build_that_is_not_recorded_is_equal_to_none_and_that_is_reported(folders):
    found = lines_of([folders.run(seed=seed, provenance={"build": None}) for seed in (1, 2)])
    assert [line.label for line in found] == ["build not recorded, seed 1", "build not recorded, seed 2"]
    assert all("does not record which build made it" in line.warnings[0] for line in found)


def with_file(folders, digest, seed, name="/data/trace.csv", **summary):
    scenario = changed("workload.0.file", name)
    files = {"workload.0.file": digest} if digest != "older" else None
    return folders.run(scenario, seed=seed, provenance={"files": files}, **summary)


def test_files_count_by_their_content_not_by_their_name(folders):
    assert sizes(with_file(folders, "aa", 1), with_file(folders, "aa", 2, "/moved/other.csv")) == [2]
    one, other = with_file(folders, "aa", 1), with_file(folders, "bb", 2)
    assert labels(one, other) == ["file trace.csv (sha256 aa)", "file trace.csv (sha256 bb)"]
    assert labels(one, with_file(folders, "bb", 2, "/data/b.csv")) == ["file trace.csv", "file b.csv"]


@pytest.mark.parametrize("unread", [None, "older"])
def test_a_file_whose_content_is_not_recorded_is_equal_to_none(folders, unread):
    found = lines_of([with_file(folders, unread, seed) for seed in (1, 2)])
    assert len(found) == 2
    assert "content of what workload.0.file names" in found[0].warnings[0]
    one, other, copied = (with_file(folders, unread, 1, fingerprint=print_) for print_ in ("a", "b", "a"))
    assert not pooling.same_traffic([one], [other])
    assert pooling.same_traffic([one], [copied]), "the same bits are the same flows"


def test_code_in_python_counts_by_its_digest(folders):
    scenario = changed("transport.controller", {"kind": "python:aimd"})
    runs_ = [
        folders.run(scenario, seed=seed, provenance={"controllers": {"aimd": digest}})
        for seed, digest in ((1, "aa"), (2, "aa"), (3, "bb"))
    ]
    assert sizes(*runs_) == [2, 1] and labels(*runs_) == ["aimd code aa", "aimd code bb"]


def test_measures_that_are_not_the_same_in_pooled_runs_are_named(folders):
    (line,) = lines_of([folders.run(), folders.run(changed("measure.queues.every", "1us"), seed=2)])
    assert "measure.queues" in line.warnings[0]


KEYS = [
    ("switch.buffer", ["16MiB", "64MiB"]),
    ("switch.ecn.0.kmin", ["100KB", "200KB"]),
    ("switch.balancer.salt", [1, 2]),
    ("switch.port", [[{"match": "leaf*.*"}], [{"match": "spine*.*"}], None]),
    ("topology.leaves", [2, 8]),
    ("topology.override", [[{"between": ["a", "b"], "rate": "1Gbps"}], None]),
    ("transport.controller.kind", ["dctcp", "dcqcn", "python:x"]),
    ("transport.controller.eta", [0.9, None]),
    ("transport.kind", ["tcp", "phost"]),
    ("telemetry.max_hops", [1, 2]),
    ("telemetry.record", [0.5, 1.0]),
    ("workload.0.load", [0.5, 0.7]),
    ("workload.0.sizes", ["fb-hadoop", "/data/sizes.txt"]),
    ("failures.event", [[FAILURE], [FAILURE, FAILURE | {"at": "6ms", "change": "up"}], None]),
    ("failures.loss", [0.01, 0.1]),
    ("run.until", ["1ms"]),
    ("compat.like", ["hpcc-ns3"]),
    ("measure.ideal", ["hpcc", "phost"]),
    ("measure.pauses", [True]),
    ("measure.queue_histogram", [{"ports": "*", "every": "1us"}]),
    ("measure.pcap", ["*"]),
    ("run.threads", [2, 0]),
    ("run.memory", ["8GB"]),
    ("name", ["other", "third"]),
]


def counted(scenario):
    """The rule in other words: what is left of a scenario when all that changes no bit is taken out."""
    found = copy.deepcopy(scenario)
    for key in ("name", "seed"):
        del found[key]
    for key in ("threads", "memory"):
        del found["run"][key]
    found["measure"] = found["measure"].get("ideal")
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize("case", range(200))
def test_random_pairs_are_pooled_if_and_only_if_the_rule_says_so(folders, case):
    draw = random.Random(case)
    given = []
    for _ in range(2):
        scenario = copy.deepcopy(BASE)
        for path, values in draw.sample(KEYS, draw.choice((0, 1, 1, 2))):
            value = draw.choice(values)
            with_value = changed(path, value, scenario) if value is not None else scenario
            scenario = with_value
        made_of = {
            "build": draw.choice(["aa", "aa", "aa", "bb", None]),
            "files": draw.choice([{"workload.0.sizes": "11"}, {"workload.0.sizes": "22"}])
            if scenario["workload"][0]["sizes"].startswith("/")
            else {},
            "controllers": {"x": draw.choice(["1", "2"])}
            if scenario["transport"]["controller"]["kind"] == "python:x"
            else {},
        }
        given.append(
            (
                scenario,
                draw.choice([1, 2, 3]),
                made_of,
                draw.choice(["done", "done", "done", "interrupted"]),
            )
        )
    (one, seed, made, status), (other, seed2, made2, status2) = given
    alike = counted(one) == counted(other) and made == made2 and made["build"] is not None
    alike = alike and status == status2
    expected = [1] if alike and seed == seed2 else [2] if alike and status == "done" else [1, 1]
    found = lines_of([folders.run(s, seed=n, provenance=m, status=st, end_ns=2e6) for s, n, m, st in given])
    assert [len(line.runs) for line in found] == expected
    assert len({line.label for line in found}) == len(found)


@pytest.mark.parametrize("case", range(40))
def test_no_two_lines_have_one_label(folders, case):
    draw = random.Random(1000 + case)
    given = []
    for _ in range(draw.randint(2, 8)):
        scenario = copy.deepcopy(BASE)
        for path, values in draw.sample(KEYS, draw.randint(0, 5)):
            value = draw.choice(values)
            scenario = changed(path, value, scenario) if value is not None else scenario
        given.append(folders.run(scenario, seed=draw.randint(1, 3), status=draw.choice(["done", "stalled"])))
    found = lines_of(given)
    names = [line.label for line in found]
    assert len(set(names)) == len(names) and all(names)
    assert [line.label for line in lines_of(given)] == names


@real
def test_every_key_of_a_scenario_keeps_runs_apart_but_those_without_effect():
    """The keys are those of the schema: a new one counts unless it is named in `WITHOUT_EFFECT`."""
    keys = set(json.loads(_native.schema())["properties"])
    without = {name.partition(".")[0] for name in pooling.WITHOUT_EFFECT}
    assert without <= keys
    assert keys - without == {
        "compat",
        "failures",
        "host",
        "scale",
        "switch",
        "telemetry",
        "topology",
        "transport",
    } | {"workload"}


SMALL = {
    "name": "small",
    "topology": {
        "kind": "leaf-spine",
        "leaves": 2,
        "spines": 2,
        "hosts_per_leaf": 4,
        "host_link": {"rate": "10Gbps", "delay": "1us"},
    },
    "workload": [{"kind": "poisson", "sizes": "fb-hadoop", "load": 0.5, "duration": "500us"}],
}
MEASURES = {
    "queues": {},
    "queue_histogram": {},
    "utilisation": {},
    "port_events": {},
    "disciplines": {},
    "goodput": {"by": "flow", "flows": ["0-9"]},
    "controllers": {"flows": [0, 1]},
    "pauses": True,
    "reordering": True,
    "paths": True,
    "subflows": True,
    "pcap": "*",
}


@real
@pytest.mark.parametrize("controller", ["hpcc", "dcqcn"])
def test_no_measure_changes_a_bit_of_what_flows_do(tmp_path, controller):
    schema = json.loads(_native.schema())["properties"]["measure"]["properties"]
    assert set(schema) == {*MEASURES, "ideal", "pcap_bytes", "pcap_snaplen"}
    scenario = SMALL | {"transport": {"controller": {"kind": controller}}}
    plain = weftline.run(scenario, out=tmp_path / "plain")
    for name, value in MEASURES.items():
        found = weftline.run({**scenario, "measure": {name: value}}, out=tmp_path / name)
        assert found.summary["fingerprint"] == plain.summary["fingerprint"], name
        flows = [(run.out / "flows.parquet").read_bytes() for run in (plain, found)]
        assert flows[0] == flows[1], name


@real
def test_a_resolved_scenario_depends_on_the_seed_in_the_seed_alone():
    """Else no two seeds would be pooled."""
    for kind in ("ecmp", "letflow", "drill"):
        scenario = {**SMALL, "switch": {"balancer": {"kind": kind}}}
        one, other = (weftline.Scenario(scenario, seed=seed).values for seed in (1, 7))
        assert one | {"seed": 7} == other


@real
def test_a_run_records_its_build_its_files_and_its_code(tmp_path):
    (tmp_path / "sizes.txt").write_text("1000 0\n2000 100\n")

    class Still(weftline.Controller):
        def on_ack(self, ack):
            self.rate = 1e9

    found = weftline.run(
        changed("workload.0.sizes", str(tmp_path / "sizes.txt"), SMALL)
        | {"transport": {"controller": {"kind": "python:still"}}},
        controllers={"still": Still},
        out=tmp_path / "run",
    )
    made_of = found.summary["provenance"]
    assert len(made_of["build"]) == 12 and set(made_of["controllers"]) == {"still"}
    import hashlib

    expected = hashlib.sha256((tmp_path / "sizes.txt").read_bytes()).hexdigest()
    assert made_of["files"] == {"workload.0.sizes": expected}


@real
def test_the_same_traffic_is_the_same_file_content_and_the_same_frames(tmp_path):
    def run(name, **more):
        return weftline.run({**SMALL, **more}, out=tmp_path / name)

    def paired(*pair):
        return pooling.same_traffic(*[[run] for run in pair])

    plain, other = run("a"), run("b", transport={"controller": {"kind": "dcqcn"}})
    assert paired(plain, other)
    assert not paired(plain, run("c", run={"until": "200us"}))
    wired = [SMALL["workload"][0] | {"load_counts": "wire"}]
    first = run("d", workload=wired)
    assert paired(first, run("e", workload=wired, switch={"buffer": "1MiB"}))
    assert not paired(first, run("f", workload=wired, transport={"controller": {"kind": "dcqcn"}}))
    for name, last in (("g", "2000"), ("h", "3000")):
        (tmp_path / "sizes.txt").write_text(f"1000 0\n{last} 100\n")
        run(name, workload=[SMALL["workload"][0] | {"sizes": str(tmp_path / "sizes.txt")}])
    assert not paired(Run.read(tmp_path / "g"), Run.read(tmp_path / "h"))


@real
def test_a_mean_says_over_how_many_seeds_it_is(tmp_path):
    def run(seed, **measure):
        return weftline.run({**SMALL, "measure": measure}, seed=seed, out=tmp_path / str(seed))

    given = [run(1, queue_histogram={}), run(2, queue_histogram={}), run(3)]
    found = comparison_of(given)
    assert "Means over 3 seeds" in str(found)
    assert found.as_json()["lines"][0]["metrics"]["queue_p99"]["seeds"] == 2
    alone = str(comparison_of(given[:1]))
    assert "±" not in alone and "interval" not in alone and "seeds" not in alone


@real
def test_a_table_of_one_seed_explains_no_interval(tmp_path):
    given = [
        weftline.run({**SMALL, "transport": {"controller": {"kind": kind}}}, out=tmp_path / kind)
        for kind in ("hpcc", "dctcp")
    ]
    text = str(comparison_of(given))
    assert "over 1 seed" in text and "±" not in text and "There are no intervals" in text


@real
def test_python_gives_the_warnings_of_the_command_line(tmp_path, capsys):
    few = {**SMALL, "run": {"threads": 4}}
    (tmp_path / "few.toml").write_text(scenarios.to_toml(few))
    assert main(["run", str(tmp_path / "few.toml"), "--out", str(tmp_path / "cli")]) == 0
    printed = [
        line.removeprefix("warning: ")
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("warning: ")
    ]
    with pytest.warns(WeftlineWarning) as given:
        found = weftline.run(few, out=tmp_path / "python")
    assert printed and [str(one.message) for one in given] == printed == found.warnings
    assert all(one.filename == __file__ for one in given)
    number = "1 warning" if len(printed) == 1 else f"{len(printed)} warnings"
    assert number in repr(found) and "Warning:" in found._repr_html_()
    with pytest.warns(WeftlineWarning):
        opened = Run.open(found.out)
    assert opened.warnings == printed
    with pytest.warns(WeftlineWarning, match="threads"):
        compared = weftline.compare(found.out)
    assert number in repr(compared) and printed[-1] in compared._repr_html_()


def test_a_run_that_stalled_warns_in_python_too(engine):
    engine.outcome = "stalled"
    scenario = {"topology": {"kind": "star"}, "transport": {"controller": {"kind": "hpcc"}}, "workload": [{}]}
    with pytest.warns(WeftlineWarning, match="flows are unfinished"):
        found = weftline.run(scenario, out="r")
    assert "stalled" in found._repr_html_()


@real
def test_a_sweep_from_python_warns_as_the_command_line_does(tmp_path, capsys):
    file = tmp_path / "sweep.toml"
    small = SMALL | {"workload": [SMALL["workload"][0] | {"load": 0.1, "duration": "100us"}]}
    (tmp_path / "small.toml").write_text(scenarios.to_toml(small))
    file.write_text('scenario = "small.toml"\nname = "s"\nseeds = 1\n[report]\nmetrics = ["slowdown_p99"]\n')
    assert main(["sweep", str(file), "--json", "--out", str(tmp_path / "s")]) == 0
    printed = json.loads(capsys.readouterr().out)["warnings"]
    with pytest.warns(WeftlineWarning) as given:
        found = weftline.sweep(file, out=tmp_path / "s")
    assert printed and [str(one.message) for one in given] == printed == found.warnings
    assert "warning" in repr(found) and printed[0] in found._repr_html_()


@pytest.mark.parametrize("given", [5, None, b"folder", ["a", "b"], {"A": 5}, {"A": [["a"]]}])
def test_what_holds_no_runs_is_refused_with_what_was_expected(given):
    with pytest.raises(
        InputError, match="expected runs, sweeps, folders of these, or a dict of them by label"
    ):
        comparison_of([given])


@pytest.mark.parametrize("label", [5, None, "red\x1b[31m", "two\nlines"])
def test_labels_are_text_in_one_line(folders, label):
    with pytest.raises(InputError, match="label: expected text in one line"):
        comparison_of([{label: folders.run()}])
    with pytest.raises(InputError, match="label: expected text in one line"):
        comparison_of([folders.run()], labels=[label])
