"""Schemes from outside the repository: the module of examples/own-scheme has all of weftline, and them."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import own_crate
import pytest

from weftline import _native

ROOT = Path(__file__).resolve().parent.parent.parent

MORE = """
mod last {
    use weftline_python::sim::packet::{PacketId, PacketSlab};
    use weftline_python::sim::{doc::SchemeDoc, parameters::Parameters, queue::*, units::Time};

    #[derive(Debug)]
    pub struct LastFirst;

    impl QueueParameters for LastFirst {
        type State = Waiting;
        const DOC: SchemeDoc =
            SchemeDoc { name: "own-lifo", title: "last come, first served", ..SchemeDoc::NONE };
        fn read(_: &mut Parameters, _: QueueDefaults) -> LastFirst {
            LastFirst
        }
        fn start(&self, _: &PortPlace) -> Waiting {
            Waiting::default()
        }
    }

    #[derive(Default)]
    pub struct Waiting(ClassLists);

    impl QueueDiscipline for Waiting {
        fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _: Time) -> Verdict {
            self.0.push(id, packets);
            Verdict::Queued
        }
        fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _: Time) -> Option<PacketId> {
            let ready = self.0.occupied() & !(paused & !1);
            (ready != 0).then(|| self.0.pop_last(ready.trailing_zeros() as usize, packets))
        }
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn class_bytes(&self, class: u8) -> u64 {
            self.0.class_bytes(class)
        }
        fn is_empty(&self) -> bool {
            self.0.occupied() == 0
        }
    }
}

mod turns {
    use weftline_python::sim::{balance::*, doc::SchemeDoc, packet::Packet, parameters::Parameters};

    #[derive(Debug)]
    pub struct TurnsParameters {
        stride: usize,
    }

    impl BalancerParameters for TurnsParameters {
        type State = Turns;
        const DOC: SchemeDoc = SchemeDoc { name: "own-turns", title: "takes turns", ..SchemeDoc::NONE };
        fn read(p: &mut Parameters) -> TurnsParameters {
            TurnsParameters { stride: p.integer("stride", 1, (1, 9), "Ports from turn to turn.") as usize }
        }
        fn start(&self, _: &Place) -> Turns {
            Turns { stride: self.stride, turn: 0 }
        }
        fn order(&self) -> Reorders {
            Reorders::Packets
        }
    }

    pub struct Turns {
        stride: usize,
        turn: usize,
    }

    impl LoadBalancer for Turns {
        fn choose(&mut self, _: &Packet, candidates: &[u32], _: &impl Ports) -> usize {
            self.turn += self.stride;
            self.turn % candidates.len()
        }
    }
}

#[derive(Debug)]
struct Panics;

impl ControllerParameters for Panics {
    type State = Panics;
    const DOC: SchemeDoc = SchemeDoc { name: "own-panics", title: "panics late", ..SchemeDoc::NONE };
    fn read(p: &mut Parameters) -> Panics {
        assert!(!p.flag("at_once", false, "Panics when it is read."), "too early");
        Panics
    }
    fn needs(&self) -> Needs {
        Needs::window(Window::FollowsRate)
    }
    fn start(&self, _: &FlowContext, _: usize) -> Panics {
        Panics
    }
}

impl CongestionController for Panics {
    fn on_ack(&mut self, ack: &Ack, _: &mut Control) {
        assert!(ack.now < weftline_python::sim::units::Time::from_us(100), "{} is too late", ack.now);
    }
}
"""

SCENARIO = own_crate.SCENARIO + 'controller = { kind = "own-aimd" }\n'

SWEEP = """
scenario = "own.toml"
seeds = [1, 2]
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["own-aimd", "dctcp"]
"""


MODULE = """
    controller AimdParameters, controller Panics, balancer turns::TurnsParameters,
    queue ManagedConfig<drop::DropHeadConfig>, queue last::LastFirst);
use weftline_python::sim::queue::ManagedConfig;
"""


def queue_of_the_page() -> str:
    """The queue discipline of docs/own-schemes.md as a module of the crate."""
    page = (ROOT / "docs/own-schemes.md").read_text("utf-8")
    code = page.partition("### A queue discipline")[2].partition("```rust\n")[2].partition("```")[0]
    code = re.sub(r"^(?://!|weftline_python::module!).*\n", "", code, flags=re.M)
    return f"mod drop {{\n{re.sub(r'^struct ', 'pub struct ', code, flags=re.M)}}}\n"


@pytest.fixture(scope="module")
def site() -> Path:
    """The wheel of the example with more schemes, one of which panics; unpacked as pip does it."""
    example = own_crate.copied(ROOT / "examples/own-scheme", "own-scheme")
    source = example / "src/lib.rs"
    text = source.read_text("utf-8").replace("controller AimdParameters);", MODULE.strip(), 1)
    source.write_text(text + MORE + queue_of_the_page(), "utf-8")
    return own_crate.built(example)


@pytest.fixture
def own(site, tmp_path):
    """The example's command line, in a folder with a scenario and a sweep."""
    (tmp_path / "own.toml").write_text(SCENARIO)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return functools.partial(
        own_crate.call, [sys.executable, site / "bin/own-weftline"], [site, ROOT / "python"], tmp_path
    )


def python(site: Path, folder: Path, code: str, **more) -> subprocess.CompletedProcess:
    """Execute Python with the example on its path."""
    return own_crate.call([sys.executable], [site, ROOT / "python"], folder, "-c", code, **more)


def test_the_page_shows_the_example_which_is_short():
    page = (ROOT / "docs/own-schemes.md").read_text("utf-8")
    assert (ROOT / "examples/own-scheme/src/lib.rs").read_text("utf-8") in page
    files = [ROOT / "examples/own-scheme" / name for name in ("src/lib.rs", "Cargo.toml", "pyproject.toml")]
    lines = [len([line for line in path.read_text("utf-8").splitlines() if line.strip()]) for path in files]
    assert lines[0] <= 50 and sum(lines) <= 80, lines


def test_a_scheme_is_listed_explained_and_in_the_schema(own):
    listed = json.loads(own("list", "controllers", "--json").stdout)["controllers"]
    entry = next(entry for entry in listed if entry["name"] == "own-aimd")
    assert entry["package"] == "own-scheme 0.1.0" and entry["transports"] == {"rdma": "own-aimd"}
    assert [other for other in listed if "package" in other] == listed[-2:]
    assert "[own-scheme 0.1.0]" in own("list").stdout
    explained = json.loads(own("explain", "own-aimd", "--json").stdout)
    assert {p["key"]: p["default"] for p in explained["parameters"]} == {"step": "10Mbps", "cut": "0.5"}
    assert "From: own-scheme 0.1.0" in own("explain", "own-aimd").stdout
    schema = json.loads(own("schema").stdout)
    rdma = next(t for t in schema["$defs"]["transport"]["anyOf"] if t["title"] == "rdma")
    keys = {c["title"]: c["properties"] for c in rdma["properties"]["controller"]["anyOf"]}
    assert keys["own-aimd"]["cut"]["maximum"] == 1


def test_the_queue_of_the_page_runs(own):
    kind = ("--set", "switch.queue.kind=drop-head", "--set", "switch.queue.packets=4")
    found = json.loads(own("run", "own.toml", *kind, "--out", "drop", "--json").stdout)
    assert found["status"] == "done" and found["drop_causes"]


def test_a_queue_has_its_room_too(own):
    listed = json.loads(own("list", "queues", "--json").stdout)["queues"]
    assert listed[-1] == {
        "name": "own-lifo",
        "help": "last come, first served",
        "package": "own-scheme 0.1.0",
    }
    assert "From: own-scheme 0.1.0" in own("explain", "own-lifo").stdout
    found = {
        kind: json.loads(
            own("run", "own.toml", "--set", f"switch.queue.kind={kind}", "--out", kind, "--json").stdout
        )
        for kind in ("fifo", "own-lifo")
    }
    assert all(one["status"] == "done" for one in found.values())
    assert found["fifo"]["fingerprint"] != found["own-lifo"]["fingerprint"]
    assert "own-lifo" in found["own-lifo"]["provenance"]["schemes"]


def test_a_balancer_has_its_room_too(own):
    listed = json.loads(own("list", "balancers", "--json").stdout)["balancers"]
    assert listed[-1]["name"] == "own-turns" and listed[-1]["package"] == "own-scheme 0.1.0"
    assert "stride" in own("explain", "own-turns").stdout
    assert '"own-turns"' in own("schema").stdout
    sets = ["--set", "switch.balancer={ kind = 'own-turns', stride = 3 }"]
    found = json.loads(own("run", "own.toml", *sets, "--out", "turns", "--json", "--quiet").stdout)
    both = {"own-aimd": "own-scheme 0.1.0", "own-turns": "own-scheme 0.1.0"}
    assert found["provenance"]["schemes"] == both and found["status"] == "done"


def test_its_errors_are_those_of_any_scheme(own):
    wrong = own("run", "own.toml", "--set", "transport.controller.cut=2", status=2).stderr
    assert "cut" in wrong and "expected a number from 0 to 1" in wrong
    near = own("run", "own.toml", "--set", "transport.controller.kind=own-amd", status=2).stderr
    assert 'did you mean "own-aimd"?' in near


def test_a_run_says_who_took_part_and_repeats_to_the_bit(own, tmp_path):
    first = json.loads(own("run", "own.toml", "--out", "a", "--json", "--quiet").stdout)
    assert first["status"] == "done"
    assert first["provenance"]["schemes"] == {"own-aimd": "own-scheme 0.1.0"}
    resolved = tomllib.loads((tmp_path / "a/scenario.toml").read_text())
    assert resolved["transport"]["controller"] == {"kind": "own-aimd", "step": "10Mbps", "cut": 0.5}
    again = own("run", "a/scenario.toml", "--threads", "2", "--out", "b", "--json", "--quiet").stdout
    assert json.loads(again)["fingerprint"] == first["fingerprint"]
    own("report", "a", "--out", "page.html")
    assert "own-aimd" in (tmp_path / "page.html").read_text("utf-8")


def test_a_panic_names_the_scheme_and_the_line_and_keeps_the_results(own, tmp_path):
    kind = "transport.controller.kind=own-panics"
    for threads in "1", "2":
        failed = own("run", "own.toml", "--set", kind, "--threads", threads, "--out", threads, status=1)
        assert 'controller "own-panics" panicked: 100' in failed.stderr and "lib.rs:" in failed.stderr
        summary = json.loads((tmp_path / threads / "summary.json").read_text())
        assert summary["status"] == "failed" and "own-panics" in summary["reason"]
        found = python_json(own, "len(pyarrow.table(weftline.Run.read('1').flows))", tmp_path)
        assert found > 0
    early = own("run", "own.toml", "--set", kind, "--set", "transport.controller.at_once=true", status=2)
    assert 'controller "own-panics" panicked: too early' in early.stderr


def python_json(own, expression: str, folder: Path) -> object:
    """Return what a Python expression is, in a process that has the example."""
    code = f"import own_scheme, weftline, json, pyarrow; print(json.dumps({expression}))"
    return json.loads(python(own.args[1][0], folder, code).stdout.splitlines()[-1])


def fingerprints(store: Path) -> dict[str, str]:
    """Return the fingerprint of every run of a store, by key."""
    summaries = {
        path.parent.name: json.loads(path.read_text()) for path in store.glob("points/*/summary.json")
    }
    assert all(summary["status"] == "done" for summary in summaries.values())
    return {key: summary["fingerprint"] for key, summary in summaries.items()}


# It uses the Ray of this machine if there is one, such as that of another test, which has not this crate.
@pytest.mark.alone
def test_a_sweep_gives_the_same_here_and_on_ray(own, tmp_path):
    own("sweep", "sweep.toml", "--out", "here", "--quiet")
    here = fingerprints(tmp_path / "here")
    assert len(here) == 4
    own("sweep", "sweep.toml", "--out", "ray", "--on", "ray", "--jobs", "2", "--quiet", RAY_ADDRESS="")
    assert fingerprints(tmp_path / "ray") == here
    own("report", "here", "--out", "page.html")
    assert "own-aimd" in (tmp_path / "page.html").read_text("utf-8")


KEYS = """
import json, sys
from weftline import provenance, scenarios
from weftline.sweeps import store
if len(sys.argv) > 1:
    provenance.build = lambda: sys.argv[1]
source = scenarios.load("own.toml")
kinds = [{"transport.controller": {"kind": kind}} for kind in json.loads(sys.stdin.read())]
print(json.dumps([store.point(store.Path("s"), source, kind, 1, name="").key for kind in kinds]))
"""


def test_results_count_by_the_build_where_its_schemes_take_part_and_only_there(own, site, tmp_path):
    def keys(first: str, kinds: list[str], *build: str) -> list[str]:
        path, program = [site, ROOT / "python"], [sys.executable, "-c", first + KEYS]
        return json.loads(own_crate.call(program, path, tmp_path, *build, stdin=json.dumps(kinds)).stdout)

    both = ["own-aimd", "dctcp"]
    ours, other = keys("import own_scheme", both), keys("import own_scheme", both, "another")
    assert ours[0] != other[0] and ours[1] == other[1]
    if hasattr(_native, "Table"):
        assert keys("", ["dctcp"]) == ours[1:], "what weftline has itself is shared with it"


def test_a_process_has_one_engine_and_others_are_refused(site, tmp_path):
    done = python(
        site, tmp_path, "import weftline, own_scheme, weftline.runs as r; print(r._native.__file__)"
    )
    assert "own_scheme" in done.stdout, "nothing was in use yet"
    late = python(site, tmp_path, "import weftline._native, own_scheme", status=1).stderr
    assert hasattr(_native, "Table") is False or "import own_scheme.own_scheme before weftline" in late
    named = python(
        site, tmp_path, "import weftline; print(weftline.own_schemes.known())", WEFTLINE_ENGINE="own_scheme"
    )
    assert json.loads(named.stdout.replace("'", '"'))["own-aimd"] == "own-scheme 0.1.0"
    missing = python(site, tmp_path, "import weftline", WEFTLINE_ENGINE="not_there", status=1).stderr
    assert "WEFTLINE_ENGINE is 'not_there'" in missing and "install it for" in missing


def test_a_stored_run_opens_without_its_schemes_and_says_what_it_lacks_to_run_again(own, tmp_path):
    if not hasattr(_native, "Table"):
        pytest.skip("the native module of the installed weftline is not built: make .venv/.native")
    own("run", "own.toml", "--out", "a", "--quiet")
    plain = functools.partial(own_crate.call, [sys.executable, "-m", "weftline"], [ROOT / "python"], tmp_path)
    plain("report", "a", "--out", "page.html")
    assert "own-aimd" in (tmp_path / "page.html").read_text("utf-8")
    again = plain("run", "a/scenario.toml", "--out", "b", status=2).stderr
    assert 'unknown controller "own-aimd"' in again and "Traceback" not in again
