"""Damage on disk: whatever happens to a file of a run or a store is noticed before it becomes a number.

A bit that flips, a file that is cut, longer, missing or another run's. A sweep moves what is damaged to
``damaged/``, as it is, and runs it again to the same bits; whatever only reads leaves it out with a warning.
"""

import json
import os
import random
import shutil
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import texts
from commands import captured

import weftline
from weftline import _native
from weftline.errors import DamagedError, ResultsWarning
from weftline.sweeps.store import Store

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built"
)
FULL = "WEFTLINE_TRIALS" in os.environ
FLIPS = 1000 if FULL else 25
SCENARIO = f"""
{texts.star("damage", hosts=4, sizes='sizes = "google-rpc"', load=0.3, duration="100us")}
[measure]
goodput = {{ by = "group", every = "10us" }}
queue_histogram = {{ ports = "*", every = "1us" }}
pcap = ["host0->*"]
"""
SWEEP = """
scenario = "fabric.toml"
seeds = 2
[[axis]]
key = "workload.0.load"
values = [0.3, 0.6]
"""
TIMES = ("cpu_seconds", "wall_seconds", "packet_hops_per_cpu_second", "peak_memory_bytes")
"""Keys of a summary that no two runs have alike."""


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """A folder with the store of a finished sweep, ``s``, with its page."""
    monkeypatch.chdir(tmp_path)
    Path("fabric.toml").write_text(SCENARIO)
    Path("sweep.toml").write_text(SWEEP)
    assert captured("sweep", "sweep.toml", "--out", "s")[0] == 0
    return Path("s")


def is_clean(status, printed):
    """Whether a sweep reported no damage."""
    return status == 0 and "note:" not in printed and "damaged" not in printed and "missing" not in printed


def files_of(store):
    """Every file of a store that means something, with what is in it."""
    found = [path for path in store.rglob("*") if path.is_file() and "parts" not in path.parts]
    return {path: path.read_bytes() for path in found if "damaged" not in path.parts}


def meaning(path, data):
    """What must be the same after a run was run again."""
    if path.name == "summary.json":
        return {key: value for key, value in json.loads(data).items() if key not in TIMES}
    return None if path.name in ("digests.json", "index.jsonl", "sweep.json") else data


def harm(rng, path, others):
    """Damage a file in one of several ways; return its new bytes, None if it was removed."""
    data = bytearray(path.read_bytes())
    how = rng.choice(["flip"] * 6 + ["cut", "longer", "gone", "swap"])
    if how == "gone":
        path.unlink()
        return None
    if how == "swap":
        other = rng.choice([o for o in others if o.name == path.name and o != path] or [path])
        if other.read_bytes() != data:
            mine = path.with_name("mine")
            os.rename(path, mine)
            os.rename(other, path)
            os.rename(mine, other)
            return path.read_bytes()
        how = "flip"
    if how == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del data[rng.randrange(len(data)) :]
    else:
        data += rng.choice([b"\n", b" ", b"\0", b"PAR1", rng.randbytes(20)])
    path.write_bytes(data)
    return bytes(data)


def test_every_damage_to_a_store_is_noticed_moved_aside_and_made_again(swept):
    rng = random.Random(15)
    whole = files_of(swept)
    assert {path.name for path in whole} >= {
        *(
            "scenario.toml",
            "summary.json",
            "flows.parquet",
            "series.parquet",
            "queues.parquet",
            "capture.pcapng",
        ),
        *("digests.json", "index.jsonl", "store.json", "sweep.json", "points.csv", "table.csv"),
    }
    expected = {path: meaning(path, data) for path, data in whole.items()}
    for number in range(FLIPS):
        paths = sorted(files_of(swept))
        # As many of the store's own files as of runs'.
        own = [path for path in paths if path.parent == swept]
        path = rng.choice(own if rng.random() < 0.3 else paths)
        aside = {p: p.stat().st_mtime_ns for p in (swept / "damaged").rglob("*")}
        before = path.read_bytes()
        now = harm(rng, path, paths)
        status, out, output = captured("sweep", "sweep.toml", "--out", "s")
        where = f"trial {number}, {path}: {len(before)} bytes, now {now and len(now)}: {output}"
        assert status == 0 and "slowdown" in out, where
        name = path.parent.name if "points" in path.parts else path.name
        assert name in output, where
        assert all(p.stat().st_mtime_ns == t for p, t in aside.items()), f"{where}: something was overwritten"
        new = [p for p in (swept / "damaged").rglob("*") if p not in aside and p.is_file()]
        assert now is None or any(p.read_bytes() == now for p in new), where
        after = files_of(swept)
        assert {p: meaning(p, data) for p, data in after.items()} == expected, where
        status, _, output = captured("sweep", "sweep.toml", "--out", "s")
        assert is_clean(status, output), f"{where}; then {output}"


def numbers(run):
    """Everything that is read of a run."""
    tables = [
        getattr(run, name)() for name in ("slowdown", "completion", "distribution", "deadlines", "backlog")
    ]
    streams = [_native.table(str(run.out), name) for name in ("flows", "series", "queues")]
    for stream in streams:
        stream.__arrow_c_stream__()
    _native.check_file(str(run.out / "capture.pcapng"))
    return [*tables, run.queues, run.over_time("goodput_bps"), run.scenario, run.summary]


@pytest.fixture
def single(tmp_path):
    (tmp_path / "fabric.toml").write_text(SCENARIO)
    return weftline.run(tmp_path / "fabric.toml", out=tmp_path / "run").out


def test_no_damage_to_a_run_becomes_a_number(single, tmp_path):
    rng = random.Random(7)
    weftline.run(tmp_path / "fabric.toml", seed=2, out=tmp_path / "other")
    others = [path for folder in (single, tmp_path / "other") for path in sorted(folder.iterdir())]
    numbers(weftline.Run.open(single))
    for number in range(4 * FLIPS):
        path = rng.choice([other for other in others if other.parent == single])
        kept = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-kept"))
        harm(rng, path, others)
        with pytest.raises(DamagedError) as error:
            numbers(weftline.Run.open(single))
        assert str(path) in str(error.value) or "digests.json" in str(error.value), (
            f"trial {number}: {error.value}"
        )
        assert "run its scenario again" in str(error.value)
        for folder in (single, tmp_path / "other"):
            shutil.rmtree(folder)
            shutil.copytree(kept / folder.name, folder)
        shutil.rmtree(kept)


def test_readers_of_a_store_leave_a_damaged_run_out_and_name_it(swept):
    harmed = sorted((swept / "points").iterdir())[0]
    before = json.loads(captured("query", "s", "select count(*) as n from flows", "--format", "json")[1])
    data = bytearray((harmed / "flows.parquet").read_bytes())
    data[len(data) // 2] ^= 4
    (harmed / "flows.parquet").write_bytes(data)
    for arguments in (["compare", "s"], ["report", "s"], ["query", "s", "select count(*) from runs"]):
        status, out, output = captured(*arguments)
        assert status == 0 and out, output
        assert harmed.name in output and "1 of 4 runs" in output and "flows.parquet" in output, output
    found = json.loads(captured("query", "s", "select count(*) as n from runs", "--format", "json")[1])
    assert found == [{"n": 3}]
    flows = json.loads(captured("query", "s", "select count(*) as n from flows", "--format", "json")[1])
    assert flows[0]["n"] < before[0]["n"]


def as_if_untouched(store):
    """Write into the index that the files are as they were: what a disk that loses bits would say."""
    entries, _, _ = store.index.read()
    for key, entry in entries.items():
        store.index.note(replace(entry, stamp=_native.stamps(str(store.points), [key])[0]))


@pytest.mark.parametrize("name", ["flows.parquet", "summary.json", "scenario.toml"])
def test_damage_that_nobody_did_is_found_when_it_is_read(swept, name):
    harmed = sorted((swept / "points").iterdir())[0]
    data = bytearray((harmed / name).read_bytes())
    data[len(data) // 2] ^= 1
    (harmed / name).write_bytes(data)
    time.sleep(0.3)
    as_if_untouched(Store(swept))
    for arguments in (["compare", "s"], ["report", "s"]):
        status, out, output = captured(*arguments)
        assert status == 0 and out and harmed.name in output, output
    # Another process would not know.
    from weftline.sweeps import store

    store._SUSPECT.clear()
    as_if_untouched(Store(swept))
    status, _, output = captured("sweep", "sweep.toml", "--out", "s")
    assert status in (0, 1) and "damaged results are now in" in output
    status, _, output = captured("sweep", "sweep.toml", "--out", "s")
    assert is_clean(status, output), output
    assert len(list((swept / "points").iterdir())) == 4


def of_an_earlier_version(store):
    """Take from a store what earlier versions did not write."""
    for path in [*store.rglob("digests.json"), *store.glob("index.jsonl")]:
        path.unlink()
    for path in store.glob("points/*/summary.json"):
        summary = json.loads(path.read_text())
        summary.pop("file_digests", None)
        path.write_text(json.dumps(summary))
    (store / "store.json").write_text('{"format": 1, "begun_by": "weftline 0.1.0"}\n')


def test_a_store_of_an_earlier_version_is_read_with_a_note(swept):
    before = captured("compare", "s")[1]
    of_an_earlier_version(swept)
    status, out, output = captured("compare", "s")
    assert (status, out) == (0, before) and "earlier version of weftline wrote 4 of 4 runs" in output
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        weftline.Run.open(shutil.copytree(sorted((swept / "points").iterdir())[0], "alone"))
    assert [w.category for w in found] == [ResultsWarning] and "would not be noticed" in str(found[0].message)


def test_no_byte_of_a_table_of_an_earlier_version_blocks_a_store(swept):
    """A required field of a Parquet footer once did, for good and with exit status 2."""
    rng = random.Random(3)
    of_an_earlier_version(swept)
    path = sorted((swept / "points").iterdir())[0] / "flows.parquet"
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    places = rng.sample(range(len(whole) - footer, len(whole)), 300 if FULL else 12)
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        statuses = [captured("sweep", "sweep.toml", "--out", "s", "--quiet") for _ in range(2)]
        assert statuses[0][0] in (0, 1) and statuses[1][0] == 0, (place, statuses)
        assert captured("compare", "s")[0] == 0, place
        of_an_earlier_version(swept)
        path.write_bytes(whole)
