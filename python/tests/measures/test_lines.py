"""Lines of runs: labels, seeds, warnings, and those that are the same to the bit."""

import pytest
from job_scenarios import SCENARIO

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.figures import specs
from weftline.measures import run_warnings, separations, slowdown_table
from weftline.measures.lines import Line, curves_by_size, lines_of, scheme_name
from weftline.report import answer_text


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("jobs") / "run")


def test_warnings_that_differ_in_numbers_alone_are_one():
    class Warned:
        def __init__(self, *texts):
            self.summary = {"warnings": list(texts)}

    waiting = "a job had not ended: rank 0 waits in step 1; rank 1 waits in step 1"
    runs = [Warned("3 of 8 flows did not finish", waiting), Warned("5 of 8 flows did not finish"), Warned()]
    first, second = run_warnings.of_runs(runs).values()
    assert (first.text, first.of(3)) == (
        "3 of 8 flows did not finish",
        " (2 of 3 runs, with the numbers of the first)",
    )
    assert (second.text, second.of(3), second.of(1), second.of(1, always=True)) == (
        waiting,
        " (1 of 3 runs)",
        "",
        " (1 of 1 runs)",
    )


def test_percentiles_of_too_few_flows_are_a_dash_and_their_number_is_shown(run):
    table = slowdown_table.table(lines_of([run]))
    place = table.columns.index("all")
    by_name = {row[1]: row[place] for row in table.rows}
    assert by_name["flows"] == "84" and by_name["p99"] == "–" and by_name["p50"] != "–"


class Sized(Line):
    """A line whose runs have flows of given sizes, each of the slowdown that the line has."""

    def __init__(self, label, slowdown, *sizes):
        super().__init__(label, [object() for _ in sizes])
        self.keys, self.bins = list(range(len(sizes))), 10
        self.sized = [(sorted(of), [slowdown] * len(of)) for of in sizes]


def test_curves_by_size_have_the_same_sizes_for_every_line_and_seed():
    small, large = Sized("small", 1.0, range(1, 51)), Sized("large", 3.0, range(1001, 1051))
    both = Sized("both", 2.0, [*range(1, 26), *range(1001, 1076)], range(1, 51))
    curves = curves_by_size([small, large, both])
    sizes = {tuple(point["size_bytes"] for point in points) for points in curves.values()}
    assert len(sizes) == 1
    assert [point["count"] for point in curves["small"]] == [9, 8, 8, 13, 12, *[0] * 5]
    assert [point["p50"] is None for point in curves["small"]] == [*[False] * 5, *[True] * 5]
    assert [point["p50"] is None for point in curves["large"]] == [*[True] * 5, *[False] * 4, True]
    assert [point["p50"].count for point in curves["both"]] == [2, 2, 2, *[1] * 7]


def test_a_slowdown_figure_breaks_a_line_at_the_sizes_of_which_it_has_no_flows():
    some = Sized("some", 1.5, [*range(1, 51), *range(2001, 2051)])
    every = Sized("every", 2.0, [*range(1, 51), *range(1001, 1051), *range(2001, 2051)])
    figure = specs.slowdown("s", [some, every], percentiles=["p50"])
    rows = [row for row in figure.spec["data"]["values"] if row["line"] == "some"]
    assert [row["y"] for row in rows] == [*[1.5] * 4, None, None, *[1.5] * 4]
    assert [row[1] for row in figure.tables[0].rows] == [*["1.50"] * 4, "–", "–", *["1.50"] * 4]
    assert [row[2] for row in figure.tables[0].rows] == ["2.00"] * 10


def test_every_flow_is_in_a_column_of_its_size(tmp_path):
    """Two flows of 2 MB, most of the bytes, among a hundred small ones."""
    flows = [{"src": 0, "dst": 1, "size": "5KB", "start": f"{10 * n}us"} for n in range(100)]
    flows += [{"src": 2, "dst": 1, "size": "2MB", "start": f"{n}ms"} for n in range(2)]
    scenario = {"topology": {"kind": "star", "hosts": 3}, "workload": [{"kind": "flows", "flows": flows}]}
    lines = lines_of([weftline.run(scenario, out=tmp_path / "run")])
    table = slowdown_table.table(lines)
    first, last = table.columns.index("≤ 10 KB"), table.columns.index("≤ 10 MB")
    counts, medians = table.rows[3], table.rows[0]
    assert counts[first] == "100" and counts[last] == "2" and counts[last + 1] == "102"
    assert medians[first] != "–" and medians[last] == "–" and "≤ 10 MB (2)" in table.note
    # A page does not compare lines by so few.
    titles = [subject.title for subject in separations.subjects(lines)]
    assert not any("10 MB" in title for title in titles)


def test_figures_and_comparisons_take_labels(run):
    assert [line.label for line in weftline.plot({"Mine": run}).lines] == ["Mine"]
    assert weftline.plot(run).jobs("busbw_bps").spec["data"]["values"]
    found = weftline.compare({"Mine": run, "Again": str(run.out)})
    assert [line.label for line in found.lines] == ["Mine", "Again"]
    with pytest.raises(InputError, match="2 labels for 1 line"):
        weftline.compare(run, labels=["a", "b"])


def test_compare_gives_lines_the_labels_of_the_command_line(run, capsys):
    assert main(["compare", str(run.out), "--label", "Mine"]) == 0
    assert "Mine" in capsys.readouterr().out


def test_labels_name_what_was_set_and_not_what_follows_from_it(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 3},
        "workload": [{"kind": "permutation", "size": "9KB"}],
    }
    plain = weftline.run(scenario, out=tmp_path / "a")
    off = weftline.run(scenario, set={"switch.pfc.enabled": False}, out=tmp_path / "b")
    slow = weftline.run(scenario, set={"transport.rto": "1ms"}, out=tmp_path / "c")
    assert [line.label for line in lines_of([plain, off])] == ["PFC on", "PFC off"]
    assert lines_of([plain, slow])[1].label == "rto 1 ms"
    assert "transport.rto" in slow.summary["provenance"]["given"]
    assert weftline.run(scenario, out=tmp_path / "a").reused


def test_a_run_has_the_controllers_of_its_workloads(tmp_path):
    """The shared transport has no flow: neither its controller nor its telemetry is that of the run."""
    flow = {"kind": "flows", "flows": [{"src": 0, "dst": 2, "size": "5KB"}]}

    def run(*kinds):
        own = [{**flow, "transport": {"controller": {"kind": kind}}} for kind in kinds]
        scenario = {"topology": {"kind": "star", "hosts": 3}, "workload": own}
        return weftline.run(scenario, out=tmp_path / "-".join(kinds))

    alone, other, both = run("dctcp", "dctcp"), run("timely", "timely"), run("dctcp", "timely")
    assert (scheme_name(alone), scheme_name(both)) == ("dctcp", "dctcp and timely")
    assert answer_text.transport(alone) == "RDMA with dctcp"
    found = [alone, other, both]
    assert [line.label for line in lines_of(found)] == ["dctcp", "timely", "dctcp and timely"]


def test_runs_of_other_seeds_draw_other_links_and_are_one_line(tmp_path):
    scenario = {
        "topology": {"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 1},
        "workload": [{"kind": "permutation", "size": "900KB"}],
        "failures": {"event": [{"at": "1us", "random": 1, "lasts": "20us"}]},
    }
    found = [weftline.run(scenario, seed=seed, out=tmp_path / str(seed)) for seed in (1, 2, 3)]
    failed = [run.summary["failures"][0]["change"] for run in found]
    assert len(set(failed)) > 1 and all(" - " in one and one.endswith(" down") for one in failed)
    assert [run.summary["failures"][1]["change"] for run in found] == [
        one.replace(" down", " up") for one in failed
    ]
    assert len(lines_of(found)) == 1


def test_lines_of_which_a_setting_changes_no_bit_are_named(tmp_path):
    """A star has one path: no packet depends on the balancer, and tables say that."""
    scenario = {
        "name": "star",
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "permutation", "size": "90KB"}],
    }
    small = {"transport.mtu": "500B"}
    spray = {"switch.balancer.kind": "spray"}
    variants = {"ecmp": {}, "spray": spray, "small": small, "small, spray": small | spray}
    found = weftline.sweep(scenario, {"balancer": variants}, seeds=3, out=tmp_path / "sweep")
    notes = [table.note for table in found.tables()]
    (note,) = [line for note in notes for line in note.splitlines() if "to the bit" in line]
    same = "ecmp and spray; small and small, spray"
    assert note == f"Flows and ports are the same to the bit: {same}. What sets them apart moved no packet."
    runs = [cell.runs[1] for cell in found.cells]
    assert "to the bit" in weftline.compare(*runs[:2]).differences().note
    assert "to the bit" not in weftline.compare(runs[0], runs[2]).differences().note
    differences = weftline.compare(*runs).differences()
    (note,) = [line for line in differences.note.splitlines() if "to the bit" in line]
    assert note.count("; ") == 1, "two lines that are alike and differ from the base are named as well"


class Bins:
    """A run whose slowdown table is given: the counts of its bins, and their sizes."""

    def __init__(self, tables):
        self.tables, self.summary, self.scenario, self.out = tables, {"status": "done"}, {}, "x"

    def slowdown(self, *, bins=20, scheme="equal-count", group=None):
        rows = [
            {"count": count, "size_bytes": size, "p50": p50, "p95": p50, "p99": p50}
            for count, size, p50 in self.tables[bins]
        ]
        return {"bins": rows, "overall": {"count": sum(row["count"] for row in rows)}}


def test_a_curve_of_runs_with_unlike_bins_has_fewer_points_and_leaves_no_flow_out():
    one = Bins({4: [(5, 10, 1.0)] * 4, 2: [(10, 10, 1.0), (10, 20, 3.0)], 1: [(20, 20, 2.0)]})
    other = Bins({4: [(5, 10, 1.0), (15, 20, 2.0)], 2: [(10, 10, 2.0), (10, 20, 4.0)], 1: [(20, 20, 3.0)]})
    found = Line("x", [one, other]).curve(4)
    assert [point["share"] for point in found] == [0.5, 1.0]
    assert [point["p50"].value for point in found] == [1.5, 3.5]
    assert all(point["p50"].count == 2 for point in found)


def test_bins_of_the_same_sizes_are_alike_though_their_shares_are_not():
    one = Bins({4: [(15, 10, 1.0), (5, 20, 2.0)]})
    other = Bins({4: [(10, 10, 3.0), (10, 20, 4.0)]})
    assert [point["p50"].value for point in Line("x", [one, other]).curve(4)] == [2.0, 3.0]
