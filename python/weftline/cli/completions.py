"""`weftline completions SHELL`: what bash, zsh or fish needs to complete commands, options and names.

The words come from the parser of the command line and from the catalogue, at the moment when the script is
made; a new version needs a new script.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field

from weftline.errors import InputError, nearest

SHELLS = ("bash", "zsh", "fish")


@dataclass(kw_only=True)
class Command:
    """What can follow one command."""

    name: str
    help: str = ""
    options: list[tuple[str, str, bool]] = field(default_factory=list)
    """Long options, their help, and whether a value follows."""
    words: list[str] = field(default_factory=list)
    """Names that may stand where a file may not."""
    files: str = ""
    """Pattern of the files that may stand there: ``*.toml``, or ``/`` for folders."""


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for a shell.

    Raises
    ------
    InputError
        If the shell is not one of `SHELLS`.
    """
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if shell not in makers:
        raise InputError(f'unknown shell "{shell}": {nearest(shell, list(SHELLS))}known: {", ".join(SHELLS)}')
    return makers[shell](commands(parser))


def commands(parser: argparse.ArgumentParser) -> list[Command]:
    """Return the commands of a parser, in its order, with the words and files that they take."""
    found = []
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, inner in action.choices.items():
            found.append(_command(name, helps.get(name, ""), inner))
    return found


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    command = Command(name=name, help=text)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            command.words += list(action.choices)
        elif action.option_strings and action.help != argparse.SUPPRESS:
            option = max(action.option_strings, key=len)
            command.options.append((option, " ".join((action.help or "").split()), action.nargs != 0))
        elif not action.option_strings:
            words, files = _values(action.dest, action.metavar)
            command.words += words
            command.files = command.files or files
    return command


def _values(dest: str, metavar: object) -> tuple[list[str], str]:
    """Names and the pattern of files that a positional argument takes, by what it is called in the help."""
    from weftline.cli import main, start
    from weftline.reproduce import experiments

    if metavar in ("SCENARIO.toml", "SWEEP.toml"):
        return [], "*.toml"
    if metavar == "DIR":
        return [], "/"
    listed = {
        "KIND": lambda: list(main.KINDS),
        "EXPERIMENT": lambda: [name for name, _ in experiments.titles()],
        "TEMPLATE": start.names,
        "SHELL": lambda: list(SHELLS),
        "NAME": _explained,
        "WORKLOAD": _workloads,
    }
    return (listed[metavar](), "") if metavar in listed else ([], "*")


def _explained() -> list[str]:
    from weftline.cli import explain

    return explain.names()


def _workloads() -> list[str]:
    from weftline import _native

    return [entry["name"] for entry in json.loads(_native.workloads())]


def _bash(found: list[Command]) -> str:
    cases = []
    for command in found:
        words = " ".join([option for option, *_ in command.options] + command.words)
        files = {"/": "compgen -d", "": "true"}.get(command.files, "compgen -f")
        cases.append(f'    {command.name}) words="{words}"; files="{files}" ;;')
    names = " ".join(command.name for command in found)
    return _BASH.format(names=names, cases="\n".join(cases))


_BASH = """# bash completion of weftline: source this file, or put it where bash-completion looks.
_weftline() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words files=true
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $($files -- "$current"))
}}
complete -o filenames -F _weftline weftline
"""


def _zsh(found: list[Command]) -> str:
    lines = "\n".join(f"    {_quoted(f'{c.name}:{_bare(c.help)}')}" for c in found)
    cases = []
    for command in found:
        # A star: the option may be given again. What follows an option with a value is not a scenario.
        specs = [
            _quoted(f"*{option}[{_bare(text)}]" + (":value:_files" if value else ""))
            for option, text, value in command.options
        ]
        if command.words:
            specs.append(_quoted(f"*:name:({' '.join(command.words)})"))
        elif command.files:
            inner = {"/": "_files -/"}.get(command.files, f'_files -g "{command.files}(-.)"')
            specs.append(_quoted(f"*:file:{inner}"))
        cases.append(f"    {command.name}) _arguments {' '.join(specs)} ;;")
    return _ZSH.format(lines=lines, cases="\n".join(cases))


_ZSH = """#compdef weftline
# zsh completion of weftline: call this file _weftline and put it into a folder of $fpath.
_weftline() {{
  local -a commands
  commands=(
{lines}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{cases}
  esac
}}
# From a folder of $fpath zsh runs this file at the first Tab, and that Tab wants an answer too.
if [[ $funcstack[1] == _weftline ]]; then
  _weftline "$@"
else
  compdef _weftline weftline
fi
"""


def _fish(found: list[Command]) -> str:
    lines = ["# fish completion of weftline: put this file into ~/.config/fish/completions."]
    lines.append("complete -c weftline -f")
    for command in found:
        lines.append(
            f"complete -c weftline -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}"
        )
        place = f"complete -c weftline -n '__fish_seen_subcommand_from {command.name}'"
        lines += [
            f"{place} -l {option[2:]} -d {_quoted(text)}" + (" -r -F" if value else "")
            for option, text, value in command.options
        ]
        if command.words:
            lines.append(f"{place} -a {_quoted(' '.join(command.words))}")
        elif command.files == "/":
            lines.append(f"{place} -a '(__fish_complete_directories)'")
        elif command.files:
            lines.append(f"{place} -F")
    return "\n".join(lines) + "\n"


def _bare(text: str) -> str:
    """Text without what zsh would take for its own syntax."""
    return text.replace("[", "(").replace("]", ")").replace(":", " ")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
