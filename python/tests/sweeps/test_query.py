"""SQL over result stores, and comparisons with paired differences."""

import json
import shutil

import pytest

import weftline
from weftline import _native, integrity
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.sweeps import store

duckdb = pytest.importorskip("duckdb", reason="SQL needs DuckDB")
real = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

FABRIC = {
    "name": "fabric",
    "topology": {"kind": "star", "hosts": 4},
    "workload": [{"kind": "poisson", "sizes": "websearch", "load": 0.5, "duration": "300us"}],
    "measure": {"queues": {"ports": "*", "every": "10us"}},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of four runs, in a folder whose name is hostile to patterns and quotes."""
    folder = tmp_path_factory.mktemp("it's [a] store*")
    return weftline.sweep(
        FABRIC,
        {"scheme": {"H": {"transport.controller.kind": "hpcc"}, "D": {"transport.controller.kind": "dctcp"}}},
        seeds=2,
        report={"metrics": ["slowdown_p50"]},
        out=folder / "s",
    )


def asked(capsys, *arguments):
    assert main(["query", *map(str, arguments), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@real
def test_tables_of_a_store_are_tied_by_run(swept, capsys):
    from weftline.sweeps import tables

    tables.write(swept)
    counted = asked(
        capsys,
        swept.path,
        "select scheme, count(*) n from points join runs r using (run) group by all order by 1",
    )
    assert [(row["scheme"], row["n"]) for row in counted] == [("D", 2), ("H", 2)]
    by_run = asked(capsys, swept.path, "select run, count(*) n from flows group by run order by run")
    totals = asked(capsys, swept.path, "select run, flows::int n from runs order by run")
    assert by_run == totals and len(totals) == 4
    (row,) = asked(capsys, swept.path, "select count(distinct run) n, min(metric) m from series")
    assert row == {"n": 4, "m": "queue_bytes"}


@real
def test_a_run_and_a_store_without_points_can_be_asked_too(swept, capsys, tmp_path):
    run = swept.runs[0]
    (row,) = asked(capsys, run.out, "select run, status from runs")
    assert row == {"run": run.out.name, "status": "done"}
    kept = store.Store.create(tmp_path / "empty")
    assert asked(capsys, kept.path, "select count(*) n from flows") == [{"n": 0}]
    assert asked(capsys, kept.path, "select count(*) n from points") == [{"n": 0}]


@real
def test_a_wrong_question_is_wrong_input(swept, capsys):
    assert main(["query", str(swept.path), "select * from flowz"]) == 2
    assert 'Did you mean "flows"' in capsys.readouterr().err
    assert main(["query", str(swept.path / "nothing"), "select 1"]) == 2


@real
def test_tables_are_printed_as_table_and_csv(swept, capsys):
    question = "select 'a' as word, 2.5 as number, null as missing"
    assert main(["query", str(swept.path), question]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["a", "2.5000", "–"]
    assert main(["query", str(swept.path), question, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "word,number,missing\na,2.5,\n"
    assert main(["query", str(swept.path)]) == 0
    assert "flows: run, flow_id, src" in capsys.readouterr().out


@real
def test_a_comparison_takes_differences_on_the_same_flows(swept, capsys):
    found = weftline.compare(swept.path)
    assert [line.label for line in found.lines] == ["H", "D"] and found.base.label == "H"
    assert found.difference("slowdown_p50", found.lines[1]).paired
    assert "seed by seed on the same flows" in str(found) and "<table>" in found._repr_html_()
    by_folder = weftline.compare(*[run.out for run in swept.runs], against="dctcp")
    expected = found.difference("slowdown_p50", found.lines[1]).estimate.mean
    (other,) = (line for line in by_folder.lines if line is not by_folder.base)
    assert by_folder.difference("slowdown_p50", other).estimate.mean == pytest.approx(-expected)
    assert main(["compare", str(swept.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"]["D"]["slowdown_p50"]["paired"] is True


@real
def test_runs_of_other_flows_are_compared_as_independent(swept, tmp_path):
    more = weftline.sweep(FABRIC, {"workload.0.load": [0.3, 0.6]}, seeds=3, out=tmp_path / "s")
    found = weftline.compare(more.path)
    apart = found.difference("slowdown_p50", found.lines[1])
    assert not apart.paired and apart.estimate.low < apart.estimate.high


@real
def test_what_cannot_be_compared_is_reported(swept, tmp_path):
    with pytest.raises(InputError, match="known: H, D"):
        weftline.compare(swept.path, against="HPCC")
    with pytest.raises(InputError, match="nothing to compare"):
        weftline.compare(store.Store.create(tmp_path / "empty").path)


@real
@pytest.mark.parametrize(
    "spoiled", [b"", b"\x00\xff\xfe", b'a,b\n"1,2\n', b"scheme,seed,run\n1\n", "x,ü\n".encode("latin-1")]
)
def test_a_damaged_table_of_points_is_reported_and_the_runs_are_there(swept, capsys, tmp_path, spoiled):

    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    (copy / "points.csv").write_bytes(spoiled)
    for _ in range(2):
        assert main(["query", str(copy), "select count(*) n from points", "--csv"]) == 0
        printed = capsys.readouterr()
        assert printed.out == "n\n4\n" and "points.csv" in printed.err
        # The file alone may be as damaged as it likes: digests of an earlier version do not name it.
        (copy / "digests.json").unlink(missing_ok=True)


@real
def test_no_file_outside_is_read_or_written_unless_it_is_asked_for(swept, capsys, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    question = f"select * from read_csv('{tmp_path}/secret.csv')"
    assert main(["query", str(swept.path), question]) == 2
    assert "--external" in capsys.readouterr().err
    assert main(["query", str(swept.path), f"copy (select 1) to '{tmp_path}/made.csv'"]) == 2
    assert not (tmp_path / "made.csv").exists()
    assert main(["query", "--external", str(swept.path), question]) == 0


@real
@pytest.mark.parametrize("how", ["damaged", "deleted"])
def test_points_leave_out_damaged_and_deleted_runs_as_runs_do(swept, tmp_path, capsys, how):

    from weftline.sweeps import tables

    tables.write(swept)
    copy = tmp_path / "copy"
    shutil.copytree(swept.path, copy)
    lost = swept.cells[0].runs.folder(1).name
    if how == "deleted":
        shutil.rmtree(copy / "points" / lost)
    else:
        (copy / "points" / lost / "flows.parquet").write_bytes(b"PAR1")
    assert main(["query", str(copy), "select run from points order by run", "--format", "json"]) == 0
    printed = capsys.readouterr()
    points = json.loads(printed.out)
    assert "1 of 4 points of the sweep are left out, because they have no finished run" in printed.err
    runs = asked(capsys, copy, "select run from runs order by run")
    assert points == runs and len(points) == 3 and {"run": lost} not in points


@real
def test_variants_that_are_one_number_stay_apart(tmp_path, capsys):
    loads = {"1.10": {"workload.0.load": 0.3}, "1.1": {"workload.0.load": 0.5}}
    found = weftline.sweep(FABRIC, {"v": loads, "n": {"1": {}, "02": {}}}, out=tmp_path / "s")
    assert [(row["v"], row["n"]) for row in found.rows] == [("1.10", 1), ("1.10", 2), ("1.1", 1), ("1.1", 2)]
    assert found.axes[0].numbers is None
    by_v = asked(capsys, found.path, "select v, sum(n)::int n from points group by v order by v desc")
    assert by_v == [{"v": "1.10", "n": 3}, {"v": "1.1", "n": 3}]


@real
@pytest.mark.parametrize("name", ["1e999", "\u0663", "1" + "0" * 45])
def test_variants_that_no_table_has_as_a_number_can_be_queried(tmp_path, capsys, name):
    variants = {name: {"workload.0.load": 0.3}, "2": {"workload.0.load": 0.5}}
    found = weftline.sweep(FABRIC, {"v": variants}, out=tmp_path / "s")
    rows = asked(capsys, found.path, "select v, slowdown_p50 from points")
    assert len(rows) == 2 and all(row["slowdown_p50"] >= 1 for row in rows)
    assert found.axes[0].numbers in (None, [1e45, 2])


@real
def test_a_sweep_from_python_writes_its_tables(swept, capsys):
    sql = "select scheme, count(slowdown_p50) n from points group by all order by all"
    assert asked(capsys, swept.path, sql) == [{"scheme": "D", "n": 2}, {"scheme": "H", "n": 2}]


@real
def test_a_store_whose_axis_is_called_as_a_column_is_reported(swept, tmp_path):
    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    about, _ = integrity.read_sealed(copy / "sweep.json", "")
    about["axes"][0]["name"] = "status"
    (copy / "sweep.json").write_text(integrity.sealed(about))
    with pytest.raises(InputError, match='an axis cannot be called "status"'):
        weftline.load(copy)


@real
def test_runs_as_csv_name_an_axis_apart_from_a_column(tmp_path, capsys):
    found = weftline.sweep(FABRIC, {"flows": {"a": {}}}, out=tmp_path / "s")
    assert main(["query", str(found.path), "--csv"]) == 0
    head = capsys.readouterr().out.splitlines()[0].split(",")
    assert head.count("flows") == 1 and "flows axis" in head


@real
def test_points_are_all_finished_runs_with_their_axes_whatever_points_csv_has(swept, tmp_path, capsys):
    sql = "select scheme, seed, run, status, slowdown_p50 from points order by all"
    full = asked(capsys, swept.path, sql)
    assert len(full) == 4 and all(row["slowdown_p50"] >= 1 for row in full)
    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    lines = (copy / "points.csv").read_text().splitlines(keepends=True)
    # That of a sweep which had one point; then that of a sweep which was killed before it wrote any.
    store.Store(copy).write({"points.csv": "".join(lines[:2])})
    assert asked(capsys, copy, sql) == full
    store.Store(copy).remove(["points.csv"])
    assert asked(capsys, copy, sql) == full


@real
def test_a_store_without_the_description_of_a_sweep_has_its_axes_and_metrics_too(swept, tmp_path, capsys):
    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    sql = "select scheme, count(slowdown_p50) n, min(seed) seed from points group by all order by all"
    (copy / "sweep.json").unlink()
    assert asked(capsys, copy, sql) == [
        {"scheme": "D", "n": 2, "seed": 1},
        {"scheme": "H", "n": 2, "seed": 1},
    ]


@real
def test_a_sweep_with_another_report_removes_the_tables_of_the_one_before(swept, tmp_path):
    from weftline.sweeps import runner, sweepfile

    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    data = {"name": "fabric", "scenario": FABRIC, "seeds": 2, "report": {"metrics": ["slowdown_p50"]}}
    for report, are_there in (({}, True), ({"warmup": "10us"}, False)):
        asked_for = {**data, "report": data["report"] | report}
        sweep = sweepfile.read(asked_for, file="s.toml", base_dir=tmp_path)
        runner.write_description(runner.plan(sweep, copy))
        assert (copy / "points.csv").exists() == (copy / "table.csv").exists() == are_there
    assert store.Store.create(copy).remarks == []


@real
def test_a_folder_is_known_by_its_name_however_it_is_given(swept, capsys, monkeypatch):
    run = swept.runs[0].out
    sql = "select run, count(*)::int n from runs join flows using (run) group by run"
    expected = [{"run": run.name, "n": swept.runs[0].summary["flows"]}]
    monkeypatch.chdir(run)
    assert asked(capsys, ".", sql) == expected
    (run / "inner").mkdir()
    monkeypatch.chdir(run / "inner")
    assert asked(capsys, "..", sql) == expected
    assert main(["query", "..", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{run.name},")
    (run / "inner").rmdir()


@real
@pytest.mark.parametrize("at", [0, 1])
def test_runs_that_lack_a_column_have_null_in_it(swept, tmp_path, capsys, at):
    copy = tmp_path / "s"
    shutil.copytree(swept.path, copy)
    old = sorted((copy / "points").iterdir())[at]
    file = old / "flows.parquet"
    sql = f"copy (select * exclude (timeouts) from '{file}') to '{tmp_path}/old.parquet'"
    duckdb.connect().execute(sql)
    shutil.move(tmp_path / "old.parquet", file)
    # Such a build wrote no digests either.
    about = json.loads((old / "summary.json").read_text())
    about.pop("file_digests")
    (old / "summary.json").write_text(json.dumps(about))
    (old / "digests.json").unlink()
    found = asked(capsys, copy, "select run, sum(timeouts)::int n from flows group by run order by run")
    assert [row["n"] is None for row in found] == [place == at for place in range(4)]


@real
def test_json_has_null_for_numbers_that_it_cannot_hold_and_text_for_other_types(swept, capsys):
    sql = (
        "select 'nan'::double a, ['inf'::double, 1.5] b, {'x': '-inf'::double} c, 2.5 d, "
        "'00000000-0000-0000-0000-000000000000'::uuid u, date '2020-01-02' t"
    )
    (row,) = asked(capsys, swept.path, sql)
    assert row == {
        "a": None,
        "b": [None, 1.5],
        "c": {"x": None},
        "d": 2.5,
        "u": "00000000-0000-0000-0000-000000000000",
        "t": "2020-01-02",
    }


@real
def test_an_empty_question_lists_all_columns(swept, capsys):
    assert main(["query", str(swept.path), ""]) == 0
    assert "flows: run, flow_id, src" in capsys.readouterr().out


@real
def test_equal_names_of_columns_are_distinct_keys_in_json(swept, capsys):
    """A join has columns of both tables, and none of them may be lost."""
    (row,) = asked(capsys, swept.path, "select 1 as a, 2 as a, 3 as a_1")
    assert row == {"a": 1, "a_2": 2, "a_1": 3}
    joined = asked(capsys, swept.path, "select r.seed, p.seed from runs r join points p using (run)")
    assert all(row["seed"] == row["seed_1"] for row in joined) and len(joined) == 4


@real
@pytest.mark.parametrize(
    ("sql", "found"), [(";", "nothing"), ("-- no", "nothing"), ("select 1; select 2", "2 of")]
)
def test_sql_without_one_answer_is_an_error(swept, capsys, sql, found):
    assert main(["query", str(swept.path), "--", sql]) == 2
    assert f"expected one statement of SQL whose rows are printed, found {found}" in capsys.readouterr().err


@real
def test_statements_before_the_answer_are_run(swept, capsys):
    sql = "create view four as select * from runs; select count(*) n from four"
    assert asked(capsys, swept.path, sql) == [{"n": 4}]


@real
def test_a_table_that_cannot_be_read_and_has_no_digest_is_named(tmp_path, capsys):
    run = weftline.run(FABRIC, out=tmp_path / "r")
    (run.out / "digests.json").unlink()
    summary = json.loads((run.out / "summary.json").read_text())
    del summary["file_digests"]  # as in folders of earlier versions
    (run.out / "summary.json").write_text(json.dumps(summary))
    flows = run.out / "flows.parquet"
    flows.write_bytes(flows.read_bytes()[:2000])
    assert main(["query", str(run.out)]) == 2
    error = capsys.readouterr().err
    assert "the results are damaged" in error and str(flows) in error


@real
def test_an_answer_over_a_run_that_did_not_end_says_so(tmp_path, capsys):
    with pytest.warns(weftline.WeftlineWarning, match="memory limit"):
        weftline.run(FABRIC, memory="1B", out=tmp_path / "r")
    assert main(["query", str(tmp_path / "r"), "select count(*) from flows"]) == 0
    assert f"the run in {tmp_path / 'r'} is " in capsys.readouterr().err
