"""Digests of runs and seals of texts: damaged single runs, pages that come later, numbers that are kept."""

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

import weftline
from weftline import _native, integrity, outputs
from weftline.cli.main import main
from weftline.errors import DamagedError, ResultsWarning
from weftline.report.view import Catalogue

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built"
)
SCENARIO = {
    "name": "whole",
    "topology": {"kind": "star", "hosts": 4},
    "workload": [{"kind": "poisson", "sizes": "google-rpc", "load": 0.3, "duration": "100us"}],
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("runs") / "whole").out


@pytest.fixture
def run(original, tmp_path):
    return weftline.Run.open(shutil.copytree(original, tmp_path / "run"))


def flip(path, place=0.5):
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


def test_a_whole_run_is_verified_and_one_of_an_earlier_version_is_not(run):
    assert run.verify()
    (run.out / "digests.json").unlink()
    with pytest.raises(DamagedError, match="summary\\.json says that the run wrote it"):
        run.verify()
    summary = {key: value for key, value in run.summary.items() if key != "file_digests"}
    (run.out / "summary.json").write_text(json.dumps(summary))
    with pytest.warns(ResultsWarning, match="would not be noticed"):
        assert not weftline.Run.open(run.out).verify()


def test_a_table_that_changes_after_it_was_read_is_hashed_again(run):
    run.slowdown()
    flip(run.out / "flows.parquet")
    with pytest.raises(DamagedError, match=r"flows\.parquet"):
        run.completion()
    with pytest.raises(DamagedError, match=r"flows\.parquet"):
        run.flows.__arrow_c_stream__()


def test_a_table_of_another_run_is_not_taken_for_one_that_was_not_measured(run):
    assert run.queues is None
    shutil.copy(run.out / "flows.parquet", run.out / "queues.parquet")
    with pytest.raises(DamagedError, match="did not write"):
        _ = weftline.Run.open(run.out).queues


def test_a_replayed_trace_is_checked_where_it_is_of_a_run(run):
    flip(run.out / "flows.parquet")
    replay = {**SCENARIO, "workload": [{"kind": "trace", "file": str(run.out / "flows.parquet")}]}
    with pytest.raises(weftline.InputError, match="are damaged"):
        weftline.run(replay, out=run.out.parent / "replay")


def test_a_page_has_a_digest_in_its_folder_and_is_none_of_the_results(run):
    for _ in range(2):
        assert main(["report", str(run.out)]) == 0
        assert run.verify()
    page = run.out / "report.html"
    _native.check_file(str(page))
    flip(page)
    with pytest.raises(DamagedError, match=r"report\.html"):
        _native.check_file(str(page))
    assert run.verify() and weftline.Run.open(run.out).summary == run.summary


def test_a_page_that_cannot_be_written_leaves_the_one_before_and_the_results(run, capsys):
    resource = pytest.importorskip("resource")
    assert main(["report", str(run.out)]) == 0
    files = {path.name: path.read_bytes() for path in run.out.iterdir()}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        assert main(["report", str(run.out)]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "the page cannot be written: File too large" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in run.out.iterdir()} == files


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs symbolic links")
def test_a_page_is_written_through_a_link_and_to_a_device(run, tmp_path):
    (tmp_path / "link.html").symlink_to("target.html")
    assert main(["report", str(run.out), "--out", str(tmp_path / "link.html")]) == 0
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "target.html").stat().st_size > 1000
    outputs.write_whole(Path(os.devnull), "lost")
    assert not Path(os.devnull).is_file()


def test_the_same_command_moves_damaged_results_aside_and_runs_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = weftline.run(SCENARIO)
    flip(first.out / "flows.parquet")
    damaged = (first.out / "flows.parquet").read_bytes()
    for number in (1, 2):
        with pytest.warns(ResultsWarning, match="the scenario is run again"):
            again = weftline.run(SCENARIO)
        assert again.out == first.out and again.verify()
        assert again.summary["fingerprint"] == first.summary["fingerprint"]
        aside = tmp_path / "out/damaged" / f"{first.out.name}-{number}"
        assert (aside / "flows.parquet").read_bytes() == damaged
        flip(first.out / "flows.parquet")


@pytest.mark.parametrize("name", ["summary.json", "scenario.toml", "flows.parquet", "digests.json"])
def test_commands_on_one_damaged_run_end_with_status_2_and_name_the_file(run, capsys, name):
    flip(run.out / name)
    for command in (["compare"], ["report"], ["query"]):
        more = ["select * from flows"] if command == ["query"] else []
        assert main([*command, str(run.out), *more]) == 2
        output = capsys.readouterr().err
        assert name in output and "run its scenario again" in output and output.count("\n") == 1


def test_the_view_shows_which_run_is_damaged(run):
    flip(run.out / "summary.json", 0.9)
    shutil.copytree(run.out, run.out.with_name("whole"))
    assert {row["run"]: row["status"] for row in Catalogue(run.out.parent).rows()} == {
        "run": "damaged",
        "whole": "damaged",
    }


def test_kept_numbers_serve_only_the_table_that_they_came_from(run):
    kept = run.out / "audit.json"
    assert integrity.numbers_kept(kept, "flows.parquet") is None
    integrity.keep_numbers(kept, "flows.parquet", {"share": 0.5})
    assert integrity.numbers_kept(kept, "flows.parquet") == {"share": 0.5}
    assert integrity.numbers_kept(kept, "summary.json") is None
    assert run.verify()
    kept.write_bytes(kept.read_bytes().replace(b"0.5", b"0.7"))
    assert integrity.numbers_kept(kept, "flows.parquet") is None


def test_nothing_that_was_put_aside_is_overwritten(tmp_path):
    for number in range(1, 4):
        (tmp_path / "file").write_text(f"{number}")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder/inside").write_text(f"{number}")
        for name in ("file", "folder"):
            assert integrity.put_aside(tmp_path / name, tmp_path / "damaged").name == f"{name}-{number}"
    found = [(tmp_path / "damaged" / f"file-{n}").read_text() for n in (1, 2, 3)]
    found += [(tmp_path / "damaged" / f"folder-{n}/inside").read_text() for n in (1, 2, 3)]
    assert found == ["1", "2", "3"] * 2


def test_a_run_without_waiting_for_the_disk_has_its_digests(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFTLINE_SYNC", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert weftline.run(SCENARIO, out=tmp_path / "run").verify()
    assert os.listdir(tmp_path) == ["run"] and not list(Path(tmp_path).rglob("*.part"))
