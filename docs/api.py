"""The page "Python API" of the documentation, made from the docstrings whenever the site is built.

``python docs/api.py`` prints it. It has what `weftline` exports, and the public methods of its classes.
"""

from __future__ import annotations

import inspect
import textwrap

import weftline
from weftline import pint

PAGE = "api.md"
HEADINGS = ("Attributes", "Parameters", "Returns", "Raises", "Yields")


def markdown() -> str:
    """Return the page."""
    parts = [
        "# Python API",
        "The names of `weftline`, from the docstrings of this version. [Python](python.md) is the guide.",
    ]
    for module, title in ((weftline, "weftline"), (pint, "weftline.pint")):
        parts.append(f"## {title}")
        for name in module.__all__:
            parts += _entry(f"{title}.{name}", getattr(module, name))
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(name: str, thing: object) -> list[str]:
    """Return the heading, the signature and the text of a function or of a class with its methods."""
    found = [f"### {name}", _signature(name, thing), _text(thing)]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for method, what in inspect.getmembers_static(thing):
            inner = what.__func__ if isinstance(what, classmethod | staticmethod) else what
            public = inspect.isroutine(inner) or isinstance(inner, property)
            if not method.startswith("_") and public and inspect.getdoc(inner):
                found += [f"#### {name.rpartition('.')[2]}.{method}", _signature(method, inner), _text(inner)]
    return found


def _signature(name: str, thing: object) -> str:
    try:
        text = f"{name}{inspect.signature(thing)}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return f"```python\n{text}\n```"


def _text(thing: object) -> str:
    """Return a docstring as Markdown: its sections become bold lines, their entries lists."""
    lines = (inspect.getdoc(thing) or "").split("\n")
    parts: list[str] = []
    for number, line in enumerate(lines):
        if line and set(line) == {"-"} and number and lines[number - 1] in HEADINGS:
            parts[-1] = f"\n**{lines[number - 1]}**\n"
        elif number and line.startswith("    "):
            parts.append(line if _in_code(lines, number) else f": {line.strip()}")
        else:
            parts.append(line)
    return textwrap.dedent("\n".join(parts)).strip()


def _in_code(lines: list[str], number: int) -> bool:
    """Whether an indented line is of an example: what is before it is blank, or such a line itself."""
    before = lines[number - 1]
    return not before or (before.startswith("    ") and _in_code(lines, number - 1))


def on_files(files, config):
    """Add the page to the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=markdown()))
    return files


if __name__ == "__main__":
    print(markdown(), end="")
