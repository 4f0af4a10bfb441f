"""`weftline demo`: numbers of five papers and the published ones, on a page that needs no other package."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weftline.cli.main import main
from weftline.reproduce import demo, experiments


def test_the_demo_names_five_papers_and_parts_that_exist():
    title, text, panels = demo.load()
    assert title and text
    assert [panel.paper for panel in panels] == ["HPCC", "PINT", "pHost", "Cebinae", "MP-HULA"]
    for panel in panels:
        assert panel.deeper.startswith(f"weftline reproduce {panel.experiment.name}")
        assert panel.experiment.claims


def test_a_panel_has_published_and_measured_numbers_with_intervals(monkeypatch, tmp_path, capsys):
    title, text, panels = demo.load()
    shown = [panel for panel in panels if panel.paper == "PINT"]
    monkeypatch.setattr(demo, "load", lambda: (title, text, shown))
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json"]) == 0
    (panel,) = json.loads(capsys.readouterr().out)["panels"]
    ten = next(number for number in panel["numbers"] if "10 hops" in number["text"])
    low, high = ten["interval"]
    assert ten["published"] == 23.4 and low < ten["measured"] < high
    page = (tmp_path / "out/demo/report.html").read_text("utf-8")
    assert "vegaEmbed" in page and "weftline reproduce pint-fig10" in page


def test_a_page_needs_no_other_package(tmp_path):
    """An interpreter without site-packages draws a page."""
    code = "from weftline.report.page import drawing_code; print(len(drawing_code()))"
    package = str(Path(demo.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500_000


def test_the_wheel_says_under_which_licences_it_carries_scripts():
    from weftline.report.page import ASSETS

    text = (ASSETS / "vega-licences.txt").read_text("utf-8")
    assert all(name in text for name in ("vega 6", "vega-lite 6", "vega-embed 7", "d3-array", "Mike Bostock"))


def test_a_wrong_demo_file_says_what_is_wrong(tmp_path):
    from weftline.errors import InputError

    path = tmp_path / "demo.toml"
    path.write_text('title = "t"\ntext = "x"\n[[panel]]\npapers = "HPCC"\n')
    with pytest.raises(InputError, match='unknown key "papers"'):
        demo.load(path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('line = "FQ"', 'line = "FQQ"', 'unknown line "FQQ": did you mean "FQ"?'),
        (
            'line = "FQ"\n',
            'line = "FQ"\nbellow = 1\n',
            'unknown key "bellow" of claim: did you mean "below"?',
        ),
        ("at_most = 1", "at_most = 1.2", "jain_without_last_second is an index from 0 to 1"),
        ("above = 0.988", 'above = "1"', "above: expected number, found '1'"),
        ('line = "FQ"\n', "", 'expected the key "line"'),
        ("row 5, FQ: Jain's index", "row 5, FIFO: Jain's index", "expected a name that no other has"),
    ],
)
def test_claims_of_the_demo_are_checked_as_those_of_experiments(tmp_path, old, new, says):
    from weftline.errors import InputError

    text = next(folder / demo.FILE for folder in experiments.directories()).read_text()
    assert old in text
    path = tmp_path / "demo.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(says)) as error:
        demo.load(path)
    assert str(error.value).startswith(str(path))


def test_claims_of_the_demo_are_on_figures_that_it_runs(tmp_path):
    from weftline.errors import InputError

    text = next(folder / demo.FILE for folder in experiments.directories()).read_text()
    path = tmp_path / "demo.toml"
    path.write_text(text.replace('figure = "jain"', 'figure = "goodput"', 1))
    with pytest.raises(
        InputError, match='figure: expected one of the figures of the panel, jain, found "goo'
    ):
        demo.load(path)
