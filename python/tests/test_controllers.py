"""Controllers in Python: named in sweeps and on the command line, identified by code, the same on Ray."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest
from texts import FABRIC

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.code_digest import Reader
from weftline.controllers import Law, of
from weftline.errors import InputError

needs_engine = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
    reason="Ray is not installed: pip install ray",
)

LAWS = '''
"""Two laws."""
import weftline
from steps import step

class Halve(weftline.Controller):
    """Halves on a mark."""

    def on_ack(self, ack):
        # The transport keeps the rate within its range.
        self.rate_bps = self.rate_bps / 2 if ack.marked else self.rate_bps + step()


class Still(weftline.Controller):
    def on_ack(self, ack):
        pass
'''
STEPS = "def step():\n    return 50e6\n"
SWEEP = """
scenario = "fabric.toml"
seeds = 2
[controllers]
halve = "laws.py:Halve"
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["python:halve", "dctcp"]
"""


class Halve(weftline.Controller):
    def on_ack(self, ack):
        self.rate_bps = self.rate_bps / 2 if ack.marked else self.rate_bps + 50e6


@pytest.fixture
def folder(tmp_path):
    files = {"fabric.toml": FABRIC, "laws.py": LAWS, "steps.py": STEPS, "which.toml": SWEEP}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    yield tmp_path
    sys.modules.pop("steps", None)


def digest_of(text: str, name: str = "law") -> str:
    around: dict = {"weftline": weftline, "__name__": "__main__"}
    exec(compile(text, "law.py", "exec", dont_inherit=True), around)
    return Reader().digest(around[name])


def test_code_counts_and_comments_and_layout_do_not():
    first = digest_of("def law(x):\n    return x + 1")
    assert first == digest_of("# A law.\ndef law(x):\n\n    return (x  +  1)   # one more")
    assert first != digest_of("def law(x):\n    return x + 2")
    assert first != digest_of("def law(x):\n    return x - 1")


@pytest.mark.parametrize(
    "text",
    [
        "STEP = {}\ndef law(x):\n    return x + STEP",
        "def law(x, step={}):\n    return x + step",
        "def make(step):\n    def law(x):\n        return x + step\n    return law\nlaw = make({})",
        "class law:\n    step = {}",
        "def law():\n    return law.step\nlaw.step = {}",
        "class base:\n    def step(self):\n        return {}\nclass law(base):\n    pass",
        "def step():\n    return {}\ndef law():\n    return [step() for _ in range(2)]",
        "import functools\ndef add(a, b):\n    return a + b\nlaw = functools.partial(add, {})",
        "import functools\n@functools.cache\ndef law():\n    return {}",
        "class S:\n    def __init__(self, s):\n        self.s = s\ns = S({})\ndef law():\n    return s",
        "import dataclasses\n@dataclasses.dataclass\nclass law:\n    step: int = {}",
        "steps = set()\nsteps.add({})\ndef law():\n    return steps",
        "steps = []\nlaw = steps.append\nsteps.append({})",
    ],
)
def test_what_code_refers_to_counts(text):
    assert digest_of(text.format(1)) == digest_of(text.format(1)) != digest_of(text.format(2))


@pytest.mark.parametrize(
    "law",
    [
        "import helped\ndef law():\n    return helped.rate()",
        "def law():\n    from shares import SHARE\n    return SHARE",
        "def law():\n    return (lambda: __import__)() and inner()\n"
        "def inner():\n    import helped\n    return helped.rate()",
    ],
)
def test_modules_that_imported_modules_or_functions_import_count(law, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helped.py").write_text("from shares import SHARE\ndef rate():\n    return SHARE\n")

    def digest(share, *, loaded):
        (tmp_path / "shares.py").write_text(f"SHARE = {share}\n")
        for name in ("helped", "shares"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        if loaded:
            importlib.import_module("helped")
        return digest_of(law)

    first = digest(0.5, loaded=False)
    assert first == digest(0.5, loaded=True), "what ran before does not count"
    assert first != digest(0.25, loaded=False) == digest(0.25, loaded=True)


TUNED = """
import array
import types
GAIN = 1
OTHER = 1
LIMITS = {"high": [1]}
STEPS = array.array("d", [1])
SPACE = types.SimpleNamespace(gain=1)
class Params:
    gain = 1
def rate():
    return GAIN
"""


@pytest.mark.parametrize("imported", ["module", "function"])
@pytest.mark.parametrize(
    "reads, change",
    [
        ("tuned.GAIN", "GAIN = 2"),
        ("getattr(tuned, 'GAIN')", "GAIN = 2"),
        ("tuned.LIMITS['high']", "LIMITS['high'][0] = 2"),
        ("tuned.STEPS", "STEPS[0] = 2"),
        ("tuned.SPACE.gain", "SPACE.gain = 2"),
        ("tuned.Params.gain", "Params.gain = 2"),
        ("tuned.rate()", "GAIN = 2"),
    ],
)
def test_values_that_a_module_of_ones_own_is_given_at_run_time_count(
    reads, change, imported, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    text = TUNED.replace("GAIN, OTHER = 1, 1", "GAIN = 1\nOTHER = 1")
    (tmp_path / "tuned.py").write_text(text)
    monkeypatch.delitem(sys.modules, "tuned", raising=False)
    importlib.invalidate_caches()
    law = f"import tuned\ndef law():\n    return {reads}"
    if imported == "function":
        law = f"def law():\n    import tuned\n    return {reads}"
    before = digest_of(law)
    tuned = importlib.import_module("tuned")
    tuned.OTHER = 2
    assert digest_of(law) == before, "the code does not name it"
    exec(change, vars(tuned))
    is_constant = "STEPS" not in reads and "SPACE" not in reads
    assert (digest_of(law) != before) == (imported == "module" or is_constant)
    sys.modules.pop("tuned")


def test_the_digest_is_the_same_in_every_process(folder):
    ask = "import sys; sys.path.insert(0, '.'); import laws; from weftline.code_digest import Reader; "
    ask += "print(Reader().digest(laws.Halve))"
    # The second reads laws.py from the bytecode that the first left, with strings hashed in another way.
    found = {
        subprocess.run(
            [sys.executable, "-c", ask],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert found == {Law.of_file("halve", "laws.py:Halve", folder).digest + "\n"}


def test_what_has_no_content_that_can_be_stated_is_refused_by_name():
    lock = threading.Lock()

    class Locked(Halve):
        def on_ack(self, ack):
            with lock:
                super().on_ack(ack)

    with pytest.raises(InputError, match=r'controller "locked" depends on .* lock'):
        _ = Law("locked", Locked).digest


def test_what_has_no_digest_is_named_with_the_code_that_reads_it(tmp_path):
    text = "import re, threading\nA = re.compile('a')\nLOCK = threading.Lock()\n"
    text += "def law():\n    return A, {}\n"
    (tmp_path / "law.py").write_text(text.format("LOCK"))
    with pytest.raises(InputError, match=r"LOCK, which law reads \(law.py:4\): .*cannot pickle"):
        _ = Law.of_file("x", "law.py:law", tmp_path).digest
    assert Law.of_file("x", "law.py:law", tmp_path).known_digest is None
    (tmp_path / "law.py").write_text(text.format("1"))
    assert Law.of_file("x", "law.py:law", tmp_path).digest


def test_what_refers_to_itself_has_a_digest():
    @dataclasses.dataclass
    class Chain:
        next: object = None

    chain = Chain()
    chain.next = chain
    assert Reader().digest(functools.partial(Halve, chain)) == Reader().digest(
        functools.partial(Halve, chain)
    )


@pytest.mark.parametrize(
    "given, message",
    [
        ("laws.py:Halv", 'no class "Halv": did you mean "Halve"?'),
        ("law.py:Halve", "law.py: cannot be read: No such file"),
        ("laws.py", 'expected "FILE.py:CLASS", found "laws.py"'),
        ("laws:Halve", 'expected "FILE.py:CLASS"'),
        ("broken.py:Halve", "broken.py:2: "),
        ("raises.py:Halve", "raises.py:2: ZeroDivisionError: division by zero"),
        ("raises.py:", 'expected "FILE.py:CLASS"'),
        ("ends.py:Halve", "ends.py:2: it ends the program (SystemExit: 5)"),
        ("plain.py:Plain", "has no method on_ack"),
        (7, "expected a class with on_ack"),
    ],
)
def test_a_controller_that_cannot_be_had_is_named_with_its_place(folder, given, message):
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    (folder / "raises.py").write_text("x = 1\ny = 1 / 0\n")
    (folder / "ends.py").write_text("import sys\nsys.exit(5)\n")
    (folder / "plain.py").write_text("class Plain:\n    pass\n")
    with pytest.raises(InputError) as refused:
        of({"halve": given}, folder)
    assert message in str(refused.value) and "halve" in str(refused.value)


def test_the_file_of_a_sweep_says_where_its_controllers_are_missing(engine, folder):
    (folder / "which.toml").write_text(SWEEP.replace("laws.py:Halve", "laws.py:Half"))
    with pytest.raises(InputError, match=r"which.toml:4: controllers: halve: .* did you mean"):
        weftline.sweep(folder / "which.toml", out=folder / "store")


@needs_engine
def test_a_sweep_takes_a_controller_from_a_file_and_runs_it_again_when_its_code_changes(folder, capsys):
    command = ["sweep", str(folder / "which.toml"), "--out", str(folder / "store"), "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    keys = {(row["scheme"], row["seed"]): row["run"] for row in first["runs"]}
    assert len(set(keys.values())) == 4

    (folder / "laws.py").write_text(LAWS.replace("# The transport", "# As ever, the transport"))
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == first["runs"], "a comment is no other law"

    sys.modules.pop("steps", None)
    (folder / "laws.py").write_text(LAWS + "\n# so that it is read again\n")
    (folder / "steps.py").write_text(STEPS.replace("50e6", "5e6"))
    assert main(command) == 0
    second = json.loads(capsys.readouterr().out)
    again = {(row["scheme"], row["seed"]): row["run"] for row in second["runs"]}
    changed = {place for place in keys if keys[place] != again[place]}
    assert changed == {("python:halve", 1), ("python:halve", 2)}


@needs_engine
def test_a_controller_that_nothing_names_has_a_warning(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = 'controller "mine" was given and is not used: no controller of this scenario is "python:mine"'
    with pytest.warns(weftline.WeftlineWarning, match=text):
        weftline.run("fabric.toml", controllers={"mine": Halve})
    assert main(["run", "fabric.toml", "--controller", "mine=laws.py:Halve", "--out", "other"]) == 0
    assert text in " ".join(capsys.readouterr().err.split())
    kinds = {"transport.controller.kind": ["python:halve", "dctcp"]}
    given = {"halve": Halve, "mine": Halve}
    with pytest.warns(weftline.WeftlineWarning, match='"mine" was given .* of any combination'):
        found = weftline.sweep("fabric.toml", kinds, controllers=given, seeds=1)
    assert not any('"halve" was given' in text for text in found.warnings)


@needs_engine
def test_a_built_in_controller_is_itself_where_one_in_python_has_its_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    kinds = {"transport.controller.kind": ["dctcp", "python:dctcp"]}
    found = weftline.sweep("fabric.toml", kinds, controllers={"dctcp": Halve}, seeds=1)
    built_in, own = (run.summary["fingerprint"] for run in found.runs)
    alone = weftline.run("fabric.toml", set={"transport.controller.kind": "dctcp"})
    assert built_in == alone.summary["fingerprint"] != own
    with pytest.raises(InputError, match='"halve" is written in Python: set "python:halve"'):
        weftline.run("fabric.toml", set={"transport.controller.kind": "halve"}, controllers={"halve": Halve})


@needs_engine
def test_a_sweep_from_python_takes_classes_and_gives_the_results_of_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    kind = "transport.controller.kind"
    found = weftline.sweep(
        "fabric.toml", {kind: ["python:halve", "dctcp"]}, controllers={"halve": Halve}, out="store"
    )
    alone = weftline.run("fabric.toml", controllers={"halve": Halve}, set={kind: "python:halve"}, seed=1)
    assert found.runs[0].summary["fingerprint"] == alone.summary["fingerprint"]
    about = json.loads((folder / "store" / "sweep.json").read_text())
    assert about["controllers"]["halve"]["sha256"] == Law("halve", Halve).digest


STATEFUL = """
import weftline
import counts

class Counting(weftline.Controller):
    flows = 0

    def __init__(self, flow):
        super().__init__(flow)
        Counting.flows += 1

    def on_ack(self, ack):
        from package import later
        counts.ACKS += 1
        later.SEEN.append(len(later.SEEN))
        self.rate_bps = self.flow.line_rate_bps / (Counting.flows + counts.ACKS % 3 + len(later.SEEN) % 2)
"""


@needs_engine
def test_a_point_gives_the_same_bits_whatever_ran_before_it_in_the_process(folder):
    (folder / "package").mkdir()
    files = {"laws.py": STATEFUL, "counts.py": "ACKS = 0\n", "package/__init__.py": ""}
    for name, text in (files | {"package/later.py": "SEEN = []\n"}).items():
        (folder / name).write_text(text)
    kind = {"transport.controller.kind": ["python:x"]}
    found = [
        weftline.sweep(
            folder / "fabric.toml",
            kind,
            controllers={"x": f"{folder}/laws.py:Counting"},
            seeds=seeds,
            out=folder / f"store-{len(seeds)}",
            jobs=1,
        )
        for seeds in ([1, 2, 3], [3])
    ]
    last, alone = (one.runs[-1] for one in found)
    assert last.out.name == alone.out.name
    assert last.summary["fingerprint"] == alone.summary["fingerprint"]
    assert not any("controller" in text for one in found for text in one.warnings)
    assert "counts" not in sys.modules and "package.later" not in sys.modules


TABLE: dict = {}


@needs_engine
def test_a_run_warns_of_what_its_controller_used_that_does_not_identify_it(folder, monkeypatch):
    class Dependent(weftline.Controller):
        seen = 0

        def on_ack(self, ack):
            type(self).seen += 1
            TABLE[1] = self.seen
            self.rate_bps *= random.uniform(0.9, 1) * float(os.environ.get("STEP", "1"))
            (folder / "steps.py").read_text()
            (folder / "fabric.toml").read_text()
            (folder / "log.txt").write_text("seen")

    def run(law):
        chosen = {"transport.controller.kind": "python:x"}
        return weftline.run(folder / "fabric.toml", set=chosen, controllers={"x": law}, out=folder / "run")

    monkeypatch.setenv("STEP", "0.99")
    found = run(Dependent)
    changed, drawn, files, variables = found.summary["warnings"][-4:]
    assert found.verify()
    assert "changed TABLE and Dependent.seen" in changed or "changed Dependent.seen and TABLE" in changed
    assert drawn.startswith("the global generator of random was used")
    assert f"read the file {folder / 'fabric.toml'} during" in files
    assert "read the environment variable STEP during" in variables


@needs_engine
def test_an_edited_law_has_a_default_folder_of_its_own_and_why_names_the_edit(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    chosen = {"transport.controller.kind": "python:halve"}
    first = weftline.run("fabric.toml", set=chosen, controllers={"halve": "laws.py:Halve"})
    (folder / "steps.py").write_text(STEPS.replace("50e6", "10e6"))
    second = weftline.run("fabric.toml", set=chosen, controllers={"halve": "laws.py:Halve"})
    assert first.out != second.out and first.verify()
    assert first.summary["fingerprint"] != second.summary["fingerprint"], "the module that it imports is read"
    assert main(["why", str(first.out), "--controller", "halve=laws.py:Halve"]) == 2
    assert 'the code of controller "halve" differs from that of the run' in capsys.readouterr().err


def test_code_that_was_imported_before_its_file_changed_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stale_steps.py").write_text("STEP = 1\ndef step():\n    return STEP\n")
    module = importlib.import_module("stale_steps")

    class Stepping(Halve):
        def on_ack(self, ack):
            self.rate_bps += module.step()

    first = Law("x", Stepping).digest
    (tmp_path / "stale_steps.py").write_text("# A comment.\nSTEP = 1\ndef step():\n    return STEP\n")
    assert Law("x", Stepping).known_digest
    (tmp_path / "stale_steps.py").write_text("STEP = 20\ndef step():\n    return STEP\n")
    with pytest.raises(
        InputError, match=r"stale_steps.py has changed since it was imported, .*importlib.reload"
    ):
        _ = Law("x", Stepping).digest
    importlib.reload(module)
    assert Law("x", Stepping).digest != first


def test_a_scenario_that_is_run_again_is_identified_by_what_its_law_is_then(folder, monkeypatch):
    monkeypatch.chdir(folder)

    class Slows(weftline.Controller):
        share = 0.5

        def on_ack(self, ack):
            self.rate_bps = self.flow.line_rate_bps * self.share

    kind = {"transport.controller.kind": "python:slows"}
    scenario = weftline.Scenario("fabric.toml", set=kind, controllers={"slows": Slows})
    first = scenario.run()
    assert scenario.run().reused
    Slows.share = 0.1
    other = scenario.run()
    assert not other.reused and other.out != first.out
    assert other.summary["fingerprint"] != first.summary["fingerprint"]
    given = weftline.run("fabric.toml", set=kind, controllers={"slows": Slows})
    assert given.reused and given.out == other.out


def test_a_file_that_is_not_the_same_each_time_is_refused_with_the_attribute(tmp_path):
    text = (
        "import random\nclass Law:\n    rng = random.Random({})\n    def on_ack(self, ack):\n        pass\n"
    )
    (tmp_path / "law.py").write_text(text.format(7))
    law = Law.of_file("x", "law.py:Law", tmp_path)
    assert law.of_next_run().make is not law.make
    (tmp_path / "law.py").write_text(text.format(""))
    with pytest.raises(InputError, match=r"executing .*law.py again gave another content of Law.rng"):
        Law.of_file("x", "law.py:Law", tmp_path).of_next_run()


@needs_engine
def test_a_controller_that_raises_fails_its_points_alone(folder):
    class Broken(weftline.Controller):
        def on_ack(self, ack):
            raise RuntimeError("no idea")

    found = weftline.sweep(
        folder / "fabric.toml",
        {"transport.controller.kind": ["python:broken", "dctcp"]},
        controllers={"broken": Broken},
        out=folder / "store",
    )
    assert len(found.rows) == 1 and len(found.failed) == 1
    assert "no idea" in found.failed[0][2]


@needs_engine
@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(1000)"])
def test_a_sweep_whose_controller_never_returns_can_be_interrupted(folder, body):
    law = "import time, weftline\nclass Halve(weftline.Controller):\n    def on_ack(self, ack):\n        "
    (folder / "laws.py").write_text(f"{law}{body}\n")
    command = [sys.executable, "-m", "weftline", "sweep", "which.toml", "--out", "store"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as running:
        kept = folder / "store" / "parts"
        while running.poll() is None and not (kept.is_dir() and any(kept.iterdir())):
            time.sleep(0.05)
        time.sleep(1)
        running.terminate()
        try:
            _, errors = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 1 and "interrupted; finished runs are kept" in errors


@needs_engine
@pytest.mark.parametrize(
    ("name", "value"), [("rate_bps", None), ("rate_bps", "1Gbps"), ("cwnd_bytes", float("nan"))]
)
def test_a_value_that_is_no_number_is_an_error_of_the_controllers_attribute(folder, name, value):
    class Wrong(weftline.Controller):
        def on_ack(self, ack):
            setattr(self, name, value)

    with pytest.raises(weftline.errors.RunFailed, match=f'controller "wrong": {name} is {value!r}: expected'):
        weftline.run(
            folder / "fabric.toml",
            controllers={"wrong": Wrong},
            set={"transport.controller.kind": "python:wrong"},
            out=folder / "wrong",
        )


@needs_engine
def test_the_command_line_runs_and_checks_a_controller_from_a_file(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    chosen = ["--controller", "halve=laws.py:Halve", "--set", "transport.controller.kind=python:halve"]
    assert main(["check", "fabric.toml", "--json", *chosen]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"]["seconds"] > 0
    assert main(["run", "fabric.toml", "--out", "out", "--quiet", *chosen]) == 0
    assert main(["run", "fabric.toml", *chosen[2:]]) == 2
    assert "--controller halve=FILE.py:CLASS" in capsys.readouterr().err
    assert main(["run", "fabric.toml", *chosen[:2], "--set", "transport.controller.kind=python:halv"]) == 2
    assert 'did you mean "python:halve"?' in capsys.readouterr().err
    assert main(["run", "fabric.toml", "--controller", "halve=other.py:Halve", *chosen]) == 2
    assert '"halve" is given twice' in capsys.readouterr().err
    assert main(["run", "fabric.toml", "--controller", "halve", *chosen[2:]]) == 2
    assert "expected NAME=FILE.py:CLASS" in capsys.readouterr().err


@needs_engine
def test_the_page_of_a_run_with_a_controller_in_python_shows_the_network(folder):
    from weftline.measures import lines, networks
    from weftline.report import run_page

    run = weftline.run(
        folder / "fabric.toml",
        controllers={"halve": Halve},
        set={"transport.controller.kind": "python:halve"},
        out=folder / "run",
    )
    assert networks.built(run)["nodes"]
    (line,) = lines.lines_of([run])
    assert "--controller halve=FILE.py:CLASS" in run_page.rerun_section([line]).text


@needs_engine
@needs_ray
def test_on_ray_a_controller_in_python_has_the_same_results(folder):
    for on in ("local", "ray"):
        weftline.sweep(folder / "which.toml", out=folder / on, on=on, jobs=2)
    local, ray = (
        {run.out.name: run.summary["fingerprint"] for run in weftline.load(folder / on).runs}
        for on in ("local", "ray")
    )
    assert len(local) == 4 and local == ray
