"""A stand-in for the engine, so that what is around it can be tested without a build and in milliseconds."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import sys
import tomllib
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# A process of pytest-xdist has the width of its parent's terminal; what is printed here goes to none.
os.environ.pop("COLUMNS", None)

try:
    from weftline import _native
except ImportError:
    _native = types.ModuleType("weftline._native")
    _native.InputError = type("InputError", (ValueError,), {})
    _native.DamagedError = type("DamagedError", (_native.InputError,), {})
    _native.RunFailed = type("RunFailed", (RuntimeError,), {})
    # Without a build nothing vouches for results.
    _native.check_file = _native.cover_file = _native.decode_tables = lambda *_: None
    _native.check_files = _native.write_digests = _native.sync_files = _native.seal_is_whole = lambda *_: None
    _native.stamps = lambda _, names: [None for _ in names]
    _native.sealed = lambda text: text + "\n"
    _native.FolderClaim = type("FolderClaim", (), {"__init__": lambda *_: None, "release": lambda _: None})
    sys.modules["weftline._native"] = _native
    import weftline

    weftline._native = _native

LONGEST = (
    "test_additions.py",
    "test_ray.py",
    "test_sweep_engine.py",
    "test_docs.py",
    "test_own_scheme.py",
    "test_engine.py",
)
"""Files that take longest begin first, so that no process of pytest-xdist works alone at the end. The two
that build crates are apart, because one build waits for another."""


def pytest_configure(config):
    """Let pytest-xdist begin files in their order; by default it begins with those of many tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Put the tests of the longest files first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


SPEED = {"hpcc": 1.0, "dctcp": 2.0, "dcqcn": 3.0, "timely": 4.0}
"""Factor on every slowdown of the stand-in, by controller."""


class StandIn:
    """A scenario with the methods of the native one; its engine has the answers."""

    def __init__(self, engine: Engine, *source) -> None:
        self._engine = engine
        missing = ("", "", [], None, None)
        self._source = (*source, *missing[len(source) - 1 :])
        self.resolved = engine.resolve(*self._source)

    def run(self, out, **options) -> str:
        return self._engine.run(*self._source[:5], out, **options)

    def foreseen(self, memory=None) -> list[str]:
        return []

    def check(self) -> str:
        return self._engine.check(*self._source)

    def look(self, max_flows) -> str:
        return json.dumps(json.loads(self.check())["estimate"])

    def network(self) -> str:
        return self._engine.network(*self._source)


class Engine:
    """Does what the native module promises, with invented numbers that depend on scenario and seed alone."""

    def __init__(self) -> None:
        self.runs: list[Path] = []
        self.outcome: BaseException | str = "done"
        self.benched: list[str] = []
        self.measured: dict = {}

    def version(self) -> str:
        return "0.1.0"

    def Scenario(self, *source, **options) -> StandIn:  # noqa: N802
        return StandIn(self, *source, *options.values())

    def resolve(self, text, file, base_dir, sets, seed, controllers=None) -> str:
        from weftline.scenarios import to_toml

        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _native.InputError(f"{file}: {error}") from None
        for path, value in sets:
            _put(document, path.split("."), value)
        if seed is not None:
            document["seed"] = seed
        if "topology" not in document:
            raise _native.InputError(f"{file}: missing section [topology]")
        return to_toml(document)

    def run(
        self,
        text,
        file,
        base_dir,
        sets,
        seed,
        out,
        *,
        force=False,
        threads=None,
        progress=None,
        memory=None,
        provenance=None,
        sync=True,
        claim=None,
    ) -> str:
        if claim is not None:
            claim.release()
        resolved = self.resolve(text, file, base_dir, sets, seed)
        folder = Path(out)
        if folder.exists() and any(folder.iterdir()) and not force:
            raise _native.InputError(f"{out}: exists; choose another --out, or --force to replace it")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scenario.toml").write_text(resolved)
        self.runs.append(folder)
        if progress:
            progress(
                {
                    "now_ns": 1e6,
                    "until_ns": 2e6,
                    "flows_done": 10,
                    "flows": 20,
                    "packet_hops": 1,
                    "seconds": 1.0,
                }
                | {"hops_per_second": 5e6}
            )
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        document = tomllib.loads(resolved)
        summary = {
            "name": document.get("name", "run"),
            "status": self.outcome,
            "seed": document.get("seed", 1),
            "flows": 2000,
            "flows_done": 2000,
            "end_ns": 2e6,
            "packet_hops": 12_000_000,
            "packet_hops_per_cpu_second": 6e6,
            "cpu_seconds": 2.0,
            "bytes_on_wire": 10**9,
            "pauses": 0,
            "paused_share": 0.0,
            "drops": 0,
            "fingerprint": hashlib.sha256(resolved.encode()).hexdigest()[:16],
            "versions": {"weftline": "0.1.0"},
            "provenance": json.loads(provenance or "{}"),
            "memory_limit_bytes": None,
            "wall_seconds": 1.1,
            "threads": 2 if threads == 0 else threads or 1,
            "warnings": ["threads: so few"] if threads and threads > 4 else [],
            "balance": 1.02,
            "crossing_share": 0.17,
        }
        if self.outcome == "memory-limit":
            summary |= {
                "memory_limit_bytes": 8 * 10**9,
                "memory_held_bytes": 8_012_345_344,
                "flows_done": 700,
            }
        (folder / "flows.parquet").write_bytes(b"PAR1PAR1")
        (folder / "summary.json").write_text(json.dumps({**summary, "file_digests": "xxh3-128"}))
        _native.write_digests(str(folder))
        return json.dumps({**summary, "out": out})

    def slowdown(self, directory, bins, scheme, group=None) -> str:
        document = tomllib.loads((Path(directory) / "scenario.toml").read_text())
        factor = SPEED[document["transport"]["controller"]["kind"]]
        noise = random.Random(document.get("seed", 1)).uniform(0, 0.1)
        rows = [self._bin(10 ** (3 + 4 * i / 20), factor, noise) for i in range(1, bins + 1)]
        if scheme == "decades":
            rows = [self._bin(10**d, factor, noise) for d in (3, 4, 5, 6, 7)]
        return json.dumps({"bins": rows, "overall": self._bin(1e7, factor, noise) | {"count": 2000}})

    def _bin(self, size, factor, noise) -> dict:
        p50 = 1 + 0.1 * factor + noise
        return {"size_bytes": size, "count": 50, "p50": p50, "p95": 2 * p50, "p99": 3 * p50, "mean": p50}

    def completion(self, directory, min_size=0, max_size=None, group=None) -> str:
        document = tomllib.loads((Path(directory) / "scenario.toml").read_text())
        factor = SPEED[document["transport"]["controller"]["kind"]]
        load = document["workload"][0].get("load", 0.5)
        goodput = {"mean": 1e11 * (1 - load) / factor}
        count, slowdown = 7 if min_size else 2000, self._bin(1e7, factor, 0)
        found = {"count": count, "goodput_bps": goodput, "fct_ns": None, "slowdown": slowdown, "nfct": factor}
        return json.dumps(found)

    def distribution(self, directory, column, max_size=300, group=None) -> str:
        document = tomllib.loads((Path(directory) / "scenario.toml").read_text())
        factor = SPEED[document["transport"]["controller"]["kind"]]
        return json.dumps([[1 + factor * i / 10, i / 20] for i in range(1, 21)])

    def deadlines(self, directory, group=None) -> str:
        return json.dumps({"count": 0, "met": 0})

    def backlog(self, directory) -> str:
        return "null"

    def shares(self, directory, from_ns, to_ns) -> str:
        return "[]"

    def queues(self, directory) -> str:
        cdf = [[1000, 0.6], [2000, 0.9], [21_000, 0.99], [201_000, 1.0]]
        percentiles = {"p50": 0, "p95": 9000, "p99": 20_000, "p999": 150_000, "max": 200_000}
        return json.dumps({"percentiles": percentiles | {"samples": 2000}, "cdf": cdf})

    def series(self, directory, metric, every_ns, max_points) -> str:
        values = {"all": [[t * 1e4, 1e9 * t] for t in range(20)]} if metric == "goodput_bps" else {}
        return json.dumps({"entities": values})

    def table(self, directory, name):
        return f"{name} of {directory}"

    def check(self, text, file, base_dir, sets, seed, controllers=None) -> str:
        self.resolve(text, file, base_dir, sets, seed)
        return json.dumps(
            {
                "topology": {"hosts": 32, "base_rtt_ns": 8200.0},
                "flows": 12345,
                "ecn": [{"kmin": 1}],
                "estimate": {
                    "packet_hops": 12_345_678.0,
                    "end_ns": 4.97e6,
                    "flows_in_flight": 1234,
                    "packets_in_flight": 56789,
                    "seconds": 83.4,
                    "seconds_on_threads": 45.08,
                    "machine_factor": 1.0,
                    "memory_bytes": 1_234_567_890,
                    "memory": {
                        "program_bytes": 24_500_000,
                        "packets_bytes": 10**9,
                        "summary_bytes": 10**8,
                        "routes_bytes": 7,
                    },
                },
                "run": {"threads": 2, "until_ns": None, "memory_limit_bytes": None},
                "warnings": ["look here"],
            }
        )

    def network(self, text, file, base_dir, sets, seed, controllers=None) -> str:
        nodes = [{"name": f"host{i}", "kind": "host", "tier": 0} for i in range(3)]
        nodes.append({"name": "s0", "kind": "switch", "tier": 1})
        rate = {"rate_bps": 10**11, "delay_ns": 1000.0}
        ends = [{"a": i, "b": 3, "a_port": f"host{i}.p0", "b_port": f"s0.p{i}"} for i in range(3)]
        return json.dumps({"nodes": nodes, "links": [end | rate for end in ends]})

    def schema(self) -> str:
        return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"})

    def names(self) -> str:
        law = {
            "name": "dctcp",
            "help": "shares of marks",
            "transports": {"rdma": "tcp.dctcp", "tcp": "dctcp"},
        }
        return json.dumps(
            {
                "controllers": [{"name": "hpcc", "help": "control from per-hop telemetry"}],
                "tcp-controllers": [law],
            }
        )

    def explain(self, name) -> str:
        if name != "hpcc":
            raise _native.InputError(f'unknown name "{name}"')
        parameter = {"key": "eta", "type": "number", "default": 0.95, "help": "load to aim at"}
        return json.dumps(
            {"name": "hpcc", "title": "HPCC", "text": "Steers load.", "parameters": [parameter]}
        )

    def workloads(self) -> str:
        return json.dumps([{"name": name, "description": f"The workload {name}."} for name in ("p8", "pod")])

    def bench(self, workload, threads=1, sets=()) -> str:
        self.benched.append(workload)
        measured = {
            "threads": threads,
            "packet_hops": 10_000_000,
            "events": 12_000_000,
            "flows": 100,
            "fingerprint": "0123456789abcdef",
            "setup_seconds": 0.5,
            "cpu_seconds": 2.0,
            "wall_seconds": 2.5,
            "peak_memory_bytes": 50_000_000,
            "memory_before_bytes": 20_000_000,
            "instructions_per_hop": None,
        }
        return json.dumps(measured | self.measured)


def _put(table, path, value) -> None:
    with contextlib.suppress(tomllib.TOMLDecodeError):
        value = tomllib.loads(f"v = {value}")["v"]
    for key in path[:-1]:
        table = table[int(key)] if isinstance(table, list) else table.setdefault(key, {})
    table[int(path[-1]) if isinstance(table, list) else path[-1]] = value


NATIVE = (
    "version",
    "Scenario",
    "slowdown",
    "completion",
    "deadlines",
    "distribution",
    "backlog",
    "shares",
    "queues",
    "series",
    "table",
    "schema",
    "names",
    "explain",
    "bench",
    "workloads",
)


def sized_slowdowns(run):
    """Return sizes and slowdowns of flows that have the percentiles of the stand-in's bins."""
    rows = run.slowdown()["bins"]
    slowdowns = [v for row in rows for v in 47 * [row["p50"]] + 2 * [row["p95"]] + [row["p99"]]]
    return [row["size_bytes"] for row in rows for _ in range(row["count"])], slowdowns


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """The stand-in in place of the engine, in an empty working directory."""
    found = Engine()
    for name in NATIVE:
        monkeypatch.setattr(_native, name, getattr(found, name), raising=False)
    from weftline import provenance
    from weftline.cli import bench
    from weftline.measures import flow_choice, flow_rows, ideals, queue_ports, sharing, steady

    monkeypatch.setattr(provenance, "build", lambda: "0123456789ab")
    # The stand-in has no tables of flows and queues, so it has no series over time, and no ends of flows.
    monkeypatch.setattr(steady, "under_way", lambda run, of, warmup="": None)
    monkeypatch.setattr(steady, "long_bytes", lambda run, of: (0, 0))
    monkeypatch.setattr(flow_rows, "pooled", lambda runs, flows, column: {})
    monkeypatch.setattr(flow_rows, "offered", lambda run: str(run.out).encode())
    monkeypatch.setattr(flow_choice.FlowChoice, "sized_slowdowns", lambda choice, run: sized_slowdowns(run))
    monkeypatch.setattr(sharing, "under_way", lambda run: {})
    monkeypatch.setattr(queue_ports, "of_run", lambda run: None)
    monkeypatch.setattr(ideals, "_has_unfinished", lambda run: False)
    monkeypatch.setattr(bench, "in_own_process", lambda *asked: json.loads(found.bench(*asked)))
    monkeypatch.chdir(tmp_path)
    return found


@pytest.fixture
def scenario(tmp_path) -> Path:
    """A small scenario file."""
    path = tmp_path / "small.toml"
    path.write_text(
        'name = "small"\n[topology]\nkind = "star"\n'
        '[transport]\nkind = "rdma"\ncontroller = { kind = "hpcc" }\n'
        '[[workload]]\nkind = "poisson"\nload = 0.5\nduration = "1ms"\n'
    )
    return path
