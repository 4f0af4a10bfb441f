"""What arguments have in common is the same in all commands."""

from __future__ import annotations

import argparse
import json

import pytest

from weftline.cli.main import main, parser


def commands(of: argparse.ArgumentParser, name: str = ""):
    """Yield every command with its parser; `pint` itself only holds commands."""
    inner = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for part, found in action.choices.items():
            yield from commands(found, f"{name} {part}".strip())
    if not inner:
        yield name, of


COMMANDS = dict(commands(parser()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_out_names_a_place(name):
    options = COMMANDS[name]._option_string_actions
    assert options["--json"].nargs == 0
    if "--out" in options:
        metavar = options["--out"].metavar
        assert metavar in ("DIR", "FILE") or "." in metavar
    if "--jobs" in options and "--threads" in options:
        assert options["--threads"].default == 1


def test_new_and_completions_answer_in_json(tmp_path, capsys):
    assert main(["new", "incast", "--json", "--out", str(tmp_path / "a.toml")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["template"] == "incast" and str(tmp_path / "a.toml") in answer["written"]
    assert main(["new", "--list", "--json"]) == 0
    assert "incast" in [entry["name"] for entry in json.loads(capsys.readouterr().out)]
    assert main(["completions", "bash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shell"] == "bash"


def test_test_vectors_are_named_in_json(tmp_path, capsys):
    assert main(["pint", "vectors", "--json", "--out", str(tmp_path)]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert [path.rpartition("/")[2] for path in written] == ["functions.json", "paths.json"]
