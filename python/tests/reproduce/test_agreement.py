"""Claims place by place, and on who wins and loses; rows and seconds of `reproduce`; figures of flows."""

from types import SimpleNamespace

import pytest

from weftline.cli.main import main
from weftline.errors import InputError
from weftline.figures import goodput_figures
from weftline.measures import decoded
from weftline.measures.lines import Line
from weftline.reproduce import agreement, checks, experiments, numbers, panels, runner, trial_kinds
from weftline.reproduce.claims import as_json
from weftline.reproduce.experiments import FigureDefinition
from weftline.reproduce.panels import Panel


class Share:
    """A run whose flows have delivered at fixed rates (Mb/s by group) since 1 s."""

    def __init__(self, end_s=10.0, seed=1, **groups):
        self.scenario = {"seed": seed}
        self.rates = [(group, rate) for group, rates in groups.items() for rate in rates]
        self.summary = {"end_ns": 1e9 * end_s}

    def shares(self, from_ns=0, to_ns=None):
        seconds = 1e-9 * (self.summary["end_ns"] if to_ns is None else to_ns) - 1
        ends = {"src": 0, "dst": 1, "start_ns": 1e9, "until_ns": self.summary["end_ns"]}
        return [
            {"flow": n, "group": g, "bytes": 1e6 * r * seconds / 8, **ends}
            for n, (g, r) in enumerate(self.rates)
        ]

    def over_time(self, metric, **_):
        return {f"flow{n}": [[1e9, 0.0], [2e9, 1e6 * rate]] for n, (_, rate) in enumerate(self.rates)}


def figure(**more):
    return FigureDefinition(name="f", title="F", kind="trend", lines="discipline", along="row", **more)


def panel(runs, published, metric="jain"):
    """A panel of one line "FIFO" with a run at each row."""
    lines = [Line("FIFO", [run], place=str(row)) for row, run in enumerate(runs, 1)]
    definition = figure(options={"metric": metric})
    output = [{"line": "FIFO", "points": list(enumerate(published, 1))}]
    return Panel(figure=definition, choice=(), lines=lines, published=output, title="")


CLAIM = {"text": "near", "kind": "agreement", "figure": "f", "line": "FIFO", "outside": 1}


def test_places_outside_a_bound_are_counted_and_named():
    # Jain's index of (9, 3): 144 / 180 = 0.8; of equal rates 1.
    runs = [Share(a=[9, 3]), Share(a=[1, 1]), Share(a=[9, 3])]
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.05}]}
    verdict = agreement.check(Published(), claim, [panel(runs, [0.84, 0.96, 0.9])], seeded=False)
    assert (verdict.word, verdict.measured, verdict.bound) == ("PASS", 1, "≤ 1")
    assert verdict.write(verdict.measured) == "1 of 3 differ (3)"
    assert [place["agrees"] for place in as_json(verdict)["places"]] == [True, True, False]
    assert "0.800 / 0.840" in verdict.detail.text()
    assert (
        agreement.check(
            Published(), claim | {"outside": 0}, [panel(runs, [0.84, 0.96, 0.9])], seeded=False
        ).word
        == "DIFFERS"
    )


def test_places_that_were_not_run_are_open():
    """Of 3 places 1 may differ; 2 were run, and the third might."""
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.05}]}
    for runs, word in (
        ([Share(a=[9, 3]), Share(a=[1, 1])], "OPEN"),
        ([Share(a=[1, 1]), Share(a=[1, 1])], "PASS"),
        ([Share(a=[9, 3]), Share(a=[9, 3])], "DIFFERS"),
    ):
        verdict = agreement.check(Published(), claim, [panel(runs, [1.0, 1.0, 1.0])], seeded=False)
        assert verdict.word == word
        assert [reason.text for reason in verdict.reasons] == ["not run: 3"] * (word == "OPEN")


def test_of_runs_that_are_too_short_nothing_is_decided():
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.01}], "seconds": 100, "outside": 0}
    short = agreement.check(Published(), claim, [panel([Share(a=[9, 3])], [0.9])], seeded=False)
    assert (short.word, short.measured) == ("–", 1)
    assert "10 s measured / 100 s published" in short.detail.text()
    one_seed = agreement.check(Published(), claim, [panel([Share(end_s=100, a=[9, 3])], [0.9])])
    assert one_seed.word == "OPEN" and one_seed.reasons[0].text == "1 seed; a verdict needs 3"
    long = agreement.check(Published(), claim, [panel([Share(end_s=100, a=[9, 3])], [0.9])], seeded=False)
    assert long.word == "DIFFERS"


def test_relative_bounds_are_of_the_published_number():
    runs = [Share(a=[49.0]), Share(a=[49.0])]
    mbps = 98 / 99 * 49.0
    claim = CLAIM | {"within": [{"figure": "f", "relative": 0.01}], "outside": 0}
    near, far = (
        panel(runs, [mbps / 1.009, mbps / 0.991], "goodput_without_last_second"),
        panel(runs, [mbps / 1.02] * 2),
    )
    assert agreement.check(Published(), claim, [near]).measured == 0
    far.figure.options["metric"] = "goodput_without_last_second"
    assert agreement.check(Published(), claim, [far]).measured == 2


def test_a_claim_needs_its_bounds():
    for bad in ({"within": []}, {"within": [{"figure": "f"}]}):
        with pytest.raises(InputError, match="within: expected"):
            checks.check_claim(CLAIM | bad, {})
    without = {key: value for key, value in CLAIM.items() if key != "outside"}
    with pytest.raises(InputError, match='expected the key "outside"'):
        checks.check_claim({**without, "within": [{"figure": "f", "relative": 1}]}, {})


def test_the_same_groups_win_and_lose():
    theirs = {"reno": 10.0, "cubic": 20.0, "vegas": 10.5}

    def order(**ours):
        return agreement.same_order({g: {1: numbers.Number.of(ours.get(g))} for g in theirs}, theirs)

    assert order(reno=1, cubic=3, vegas=2) is True
    # Values five per cent apart are not an order.
    assert order(reno=2, cubic=3, vegas=1) is True
    assert order(reno=4, cubic=3, vegas=1) is False
    assert order(reno=1) is None, "a group that is not there has won nothing"


class Published:
    """An experiment whose file says who wins."""

    def variants(self, figure, axis):
        return ["1", "2", "3"]

    def published_values(self, key):
        assert key == "groups"
        return [{"line": "FIFO", "place": "1", "groups": {"reno": 5.0, "cubic": 9.0}}]


def test_order_is_checked_against_the_published_groups():
    claim = CLAIM | {"kind": "order", "outside": 0}
    won = agreement.check(Published(), claim, [panel([Share(reno=[1, 2], cubic=[4])], [1])], seeded=False)
    lost = agreement.check(Published(), claim, [panel([Share(reno=[5, 5], cubic=[4])], [1])], seeded=False)
    assert (won.word, lost.word) == ("PASS", "DIFFERS")
    assert won.places[0]["published_mbps"] == {"reno": 5.0, "cubic": 9.0}


def test_an_order_is_that_of_its_own_panel(monkeypatch):
    entries = [
        {"line": "FIFO", "place": "1", "panel": {"size": size}, "groups": groups}
        for size, groups in (("big", {"reno": 5.0, "cubic": 9.0}), ("small", {"reno": 9.0, "cubic": 5.0}))
    ]
    monkeypatch.setattr(Published, "published_values", lambda self, key: entries)
    found = {}
    for size in ("big", "small"):
        of_size = panel([Share(reno=[1], cubic=[4])], [1])
        of_size.choice = (("size", size),)
        found[size] = agreement.check(Published(), CLAIM | {"kind": "order", "outside": 0}, [of_size])
    assert [verdict.measured for verdict in found.values()] == [0, 1]


def test_places_of_which_nothing_was_published_are_named():
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.05}]}
    none = agreement.check(Published(), claim, [panel([Share(a=[9, 3])], [])])
    assert (none.word, none.measured) == ("–", None)
    assert none.reasons[0].text == "nothing was published at the places that were run: 1"
    some = agreement.check(
        Published(), claim, [panel([Share(a=[9, 3]), Share(a=[1, 1])], [0.8])], seeded=False
    )
    assert some.word == "PASS" and "not published, and not counted: 2" in some.detail.text()
    assert agreement.check(Published(), claim | {"line": "FQ"}, [panel([Share(a=[1])], [1])]) is None


@pytest.mark.parametrize(
    ("second", "word", "measured"),
    [([[9, 3], [1, 1], [9, 3]], "OPEN", 0.867), ([[9, 3]] * 3, "DIFFERS", 0.8)],
)
def test_a_law_shows_the_place_that_decides_and_names_those_that_are_open(second, word, measured):
    seeds = (1, 2, 3)
    places = {"1": [[2, 1]] * 3, "2": second}
    lines = [
        Line(
            "FIFO",
            [Share(seed=n, a=of) for n, of in zip(seeds, rates, strict=True)],
            place=place,
            asked=seeds,
        )
        for place, rates in places.items()
    ]
    drawn = Panel(
        figure=figure(options={"metric": "jain", "expected": "1"}),
        choice=(),
        lines=lines,
        published=[],
        title="",
    )
    # Jain's index of (2, 1) is 0.9; of (9, 3) 0.8.
    claim = CLAIM | {"kind": "law", "tolerance": {"from": 0.85, "to": 0.95 if word == "DIFFERS" else 1.5}}
    experiment = SimpleNamespace(variants=lambda figure, axis: list(places))
    verdict = agreement.check_law(experiment, claim, [drawn])
    assert verdict.word == word and verdict.measured == pytest.approx(measured, abs=1e-3)
    reasons = [reason.text for reason in verdict.reasons]
    assert reasons == (["at 2 the interval reaches over the bound"] if word == "OPEN" else [])


def test_rows_are_variants_of_the_axis_row_whatever_the_size():
    experiment = experiments.load("cebinae-table")
    rows = runner.chosen_rows(experiment, "1-3,12")
    assert rows == ["1", "2", "3", "12"]
    only = {"row": rows, "discipline": ["FQ"]}
    output = runner.chosen_size(experiment, duration="100s", only=only).says
    assert output == "Chosen part: row 1 to 3, 12, discipline FQ, 100 s of arrivals, seed 1"
    assert runner.chosen_variants(experiment, ["row=24-25"]) == {"row": ["24", "25"]}
    jain = experiment.figures[0]
    assert experiment.variants(jain, "row", full=False)[-1] == "10"
    assert "24" in experiment.variants(jain, "row", full=False, asked={"row": ["24"]})
    spread = next(figure for figure in experiment.figures if figure.name == "spread")
    assert experiment.panels(spread) == []
    assert experiment.panels(spread, asked={"start": ["jittered"]}) == [(("start", "jittered"),)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cebinae-table", "--rows", "26"], "--rows 26: no row 26; known: 1 to 25"),
        (["cebinae-table", "--rows", "1-"], '--rows 1-: expected rows such as "1-5"'),
        (["cebinae-table", "--only", "row=0-3"], "--only row=0-3: no row 0; known: 1 to 25"),
        (["hpcc-fct", "--rows", "1"], '--rows: hpcc-fct has no axis "row"; its axes: traffic, load, scheme'),
        (
            ["cebinae-table", "--seconds", "3", "--duration", "3s"],
            "--seconds 3 and --duration 3s: expected one of the two",
        ),
    ],
)
def test_rows_and_seconds_that_make_no_sense_are_reported(capsys, arguments, message):
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_seconds_are_a_duration(capsys):
    assert runner.chosen_duration(None, 30.0) == "30s"
    assert runner.chosen_duration("5ms", None) == "5ms"
    with pytest.raises(SystemExit):
        main(["reproduce", "cebinae-table", "--seconds", "0"])
    assert "expected seconds such as 30 or 0.5" in capsys.readouterr().err


def test_distributions_and_groups_over_time_are_of_the_flows():
    definition = figure(options={})
    lines = [Line("FIFO", [Share(reno=[1.0, 3.0], cubic=[6.0])])]
    output = [{"line": "FIFO", "mbps": [2.0, 4.0], "group": "reno", "mean": 2.5, "points": [[2, 2.5]]}]
    p = Panel(figure=definition, choice=(), lines=lines, published=output, title="")
    rows = goodput_figures.draw_cdf(p, "T").spec["data"]["values"]
    ours = [(row["x"], row["y"]) for row in rows if not row["published"]]
    assert [share for _, share in ours] == [pytest.approx(100 / 3, rel=1e-4), pytest.approx(66.667), 100]
    assert ours[-1][0] == pytest.approx(6 * 98 / 99)
    assert [goodput_figures.at_share([1, 2, 3, 4], share) for share in (0.01, 0.25, 0.26, 1)] == [1, 1, 2, 4]
    (drawn,) = goodput_figures.draw_groups(p, "T")
    means = [(r["line"], r["x"], r["y"]) for r in drawn.spec["data"]["values"] if not r["published"]]
    assert means == [("reno", 1, 0), ("reno", 2, 2), ("cubic", 1, 0), ("cubic", 2, 6)]
    assert "1.98 / 2.50" in goodput_figures.groups_table(p, "").text()


def test_a_matrix_has_a_cell_for_every_pair():
    lines = [
        Line(row, [Share(a=[rate], b=[1.0])], place=column)
        for row, rate in (("x", 1.0), ("y", 3.0))
        for column in ("x", "y")
    ]
    definition = FigureDefinition(
        name="m", title="M", kind="matrix", lines="first", along="second", options={"metric": "first_share"}
    )
    p = Panel(figure=definition, choice=(), lines=lines, published=[], title="")
    cells = panels._draw_matrix(p, "M").spec["data"]["values"]
    assert [(c["row"], c["column"], c["value"]) for c in cells][2:] == [("y", "x", 75), ("y", "y", 75)]
    assert panels._matrix_table(p, "M").rows == [["x", "50 %", "50 %"], ["y", "75 %", "75 %"]]
    assert panels._matrix_table(p, "M").note == ""
    nothing = Line("z", [Share()], place="x")
    unmeasured = Panel(figure=definition, choice=(), lines=[*lines, nothing], published=[], title="")
    assert panels._matrix_table(unmeasured, "M").rows[-1] == ["z", "–", "–"], "no row is left out silently"


def test_a_matrix_of_means_over_known_paths_states_how_many_were_not(monkeypatch):
    lines = [Line("a", [Share(a=[1.0], b=[1.0])], place=place) for place in ("x", "y")]
    counts = {"x": (3, 40), "y": (0, 40)}
    by_run = {id(line.runs[0]): counts[line.place] for line in lines}
    monkeypatch.setattr(decoded, "paths_open", lambda run, known: by_run[id(run)])
    monkeypatch.setattr(decoded, "_numbers", lambda run, known: {"path_packets": 12.0})
    definition = FigureDefinition(
        name="m", title="M", kind="matrix", lines="first", along="second", options={"metric": "path_packets"}
    )
    p = Panel(figure=definition, choice=(), lines=lines, published=[], title="")
    for table in (*panels.tables_of([p]), *panels._draw_matrix(p, "M").tables):
        assert table.rows == [["a", "12.0", "12.0"]]
        assert table.note == "Left out: 3 of 40 paths never known of a, x."


def test_state_is_counted_by_the_formulas():
    def of(scheme, flows):
        return trial_kinds.state_of_port({"scheme": scheme, "flows": flows, "sharing": 0.01})

    assert of("fq", 100) == {"memory_bytes": 3300, "queues": 100, "accesses": 3}
    assert of("cebinae", 10)["memory_bytes"] == 2 * 2048 * 12 + 64
    # 1 - (1 - 1/m)^(n - 1) = 0.1 in each of two rows: m = 1 / (1 - 0.9^(1/100)) = 949.6 for 101 flows.
    assert trial_kinds.sketch_slots(101, 0.01) == 950
    assert of("afq", 101)["memory_bytes"] == 2 * 950 * 4
    assert trial_kinds.sketch_slots(1, 0.01) == 1
