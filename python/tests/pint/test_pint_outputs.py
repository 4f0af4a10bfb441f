"""What commands of PINT write: never over what they read, and whole or not at all."""

from __future__ import annotations

import pytest

native = pytest.importorskip("weftline._native", reason="the native module is not built")

from weftline import __main__ as cli  # noqa: E402
from weftline import pint  # noqa: E402
from weftline.errors import InputError  # noqa: E402

QUERIES = """bits = 8
hops = { expected = 2, maximal = 4 }
[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
bits = 8
"""
SEEN = "packet_id,hop,utilisation\n1,1,100\n1,2,200\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.toml").write_text(QUERIES)
    (tmp_path / "seen.csv").write_text(SEEN)
    assert cli.main(["pint", "encode", "q.toml", "seen.csv", "--out", "digests.csv"]) == 0
    (tmp_path / "link.csv").symlink_to("digests.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("encode q.toml seen.csv --out seen.csv", "--out: seen.csv is read by this command"),
        ("encode q.toml seen.csv --out ./q.toml", "--out: q.toml is read by this command"),
        ("decode digests.csv --plan q.toml --out digests.csv", "--out: digests.csv is read by this command"),
        (
            "decode digests.csv --plan q.toml --findings link.csv",
            "--findings: link.csv is read by this command",
        ),
        ("decode digests.csv --plan q.toml --findings q.toml", "--findings: q.toml is read by this command"),
        (
            "decode digests.csv --plan q.toml --out new --findings new",
            "--findings: new is also the file of --out",
        ),
        ("plan q.toml --out q.toml", "--out: q.toml is read by this command"),
    ],
)
def test_no_output_replaces_what_is_read(folder, capsys, command, error):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert cli.main(["pint", *command.split()]) == 2
    assert error in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_same_holds_in_python(folder):
    plan = pint.Plan.open("q.toml")
    with pytest.raises(InputError, match=r"out: seen.csv is read"):
        pint.encode(plan, "seen.csv", "seen.csv")
    with pytest.raises(InputError, match=r"findings: digests.csv is read"):
        pint.decode(plan, "digests.csv", findings="digests.csv")
    assert (folder / "seen.csv").read_text() == SEEN


def test_an_error_in_the_input_leaves_the_earlier_output(folder, capsys):
    earlier = (folder / "digests.csv").read_bytes()
    (folder / "seen.csv").write_text(SEEN + "2,1,x\n")
    assert cli.main(["pint", "encode", "q.toml", "seen.csv", "--out", "digests.csv"]) == 2
    (folder / "paths.csv").write_text("earlier")
    (folder / "wrong.csv").write_bytes(earlier + b"x\n")
    assert cli.main(["pint", "decode", "wrong.csv", "--plan", "q.toml", "--out", "paths.csv"]) == 2
    assert (folder / "digests.csv").read_bytes() == earlier
    assert (folder / "paths.csv").read_text() == "earlier"
    assert not list(folder.glob("*.part")) and not list(folder.glob(".*"))


def test_outputs_that_cannot_be_written_are_named(folder, capsys):
    for out in ("none/digests.csv", "."):
        assert cli.main(["pint", "encode", "q.toml", "seen.csv", "--out", out]) == 2
        assert f"error: {out}: " in capsys.readouterr().err
    assert cli.main(["pint", "encode", "q.toml", "seen.csv", "--out", "/dev/null"]) == 0
