"""Tables on a terminal, and the names by which people look for things."""

import pytest
from job_scenarios import SCENARIO

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("jobs") / "run")


def test_tables_fit_a_narrow_terminal_and_colours_respect_no_color(run, capsys, monkeypatch):
    from weftline import terminal

    for width in (50, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (["list"], ["compare", str(run.out)], ["check", str(run.out / "scenario.toml")]):
            assert main(command) == 0
            assert max(map(len, capsys.readouterr().out.splitlines())) <= width, command

    class Screen:
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.has_colour(Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal.has_colour(Screen())
    table = terminal.Table(["", "x"], [["a", "1"]], marks={(0, 1): "better"})
    assert "\x1b[32m" in table.text(colour=True) and "\x1b" not in table.text()


def test_people_find_things_by_the_names_that_they_know(capsys):
    for name, found in [("all-reduce", "collective"), ("p99", "slowdown_p99"), ("jct", "step_mean")]:
        assert main(["explain", name]) == 0
        assert f"{name} is explained by {found}" in capsys.readouterr().out
    assert main(["list", "metrics"]) == 0
    assert "busbw" in capsys.readouterr().out
    assert main(["list", "congestion"]) == 0
    assert "dcqcn" in capsys.readouterr().out
