"""`weftline new`: a commented scenario that runs, and the schema that editors complete its keys by.

A template is a folder in `templates/`: NAME.toml and the files that it refers to. Its first comment is what
it is good for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from weftline import _native
from weftline.errors import InputError, RunFailed, nearest
from weftline.outputs import write_whole

TEMPLATES = Path(__file__).parents[1] / "templates"
DEFAULT = "leaf-spine"
SCHEMA = "weftline.schema.json"
"""Name of the schema's file next to a scenario."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """A scenario to start from."""

    name: str
    about: str
    """Its first comment: what it shows, in one line."""
    files: dict[str, str]
    """Texts by file name, the scenario first."""


def names() -> list[str]:
    """Return the names of all templates, the default one first."""
    found = sorted(
        folder.name for folder in TEMPLATES.iterdir() if (folder / f"{folder.name}.toml").is_file()
    )
    return sorted(found, key=lambda name: name != DEFAULT)


def template(name: str) -> Template:
    """Return a template.

    Raises
    ------
    InputError
        If none has this name; the nearest one is offered.
    """
    known = names()
    if name not in known:
        raise InputError(f'unknown template "{name}": {nearest(name, known)}known: {", ".join(known)}')
    paths = sorted((TEMPLATES / name).iterdir(), key=lambda path: path.stem != name)
    files = {path.name: path.read_text("utf-8") for path in paths}
    about = files[f"{name}.toml"].partition("\n")[0].lstrip("# ")
    return Template(name=name, about=about, files=files)


def write(
    name: str, path: str | Path | None = None, *, force: bool = False, schema: bool = True
) -> list[Path]:
    """Write a template's scenario to `path` (default ``NAME.toml``), and the files that it needs.

    Parameters
    ----------
    force : bool
        Replace files that are there.
    schema : bool
        Write the JSON Schema next to the scenario too, and name it in the scenario's first line, where
        editors (Even Better TOML, taplo) look for it.

    Returns
    -------
    list of Path
        What was written, the scenario first.
    """
    found = template(name)
    scenario = Path(path) if path is not None else Path(f"{name}.toml")
    texts = {scenario.parent / file: text for file, text in found.files.items()}
    texts = {scenario: texts.pop(scenario.parent / f"{name}.toml"), **texts}
    taken = [str(place) for place in texts if place.exists() and not force]
    if taken:
        raise InputError(f"{', '.join(taken)}: exists; choose another --out, or --force to replace it")
    if schema and _may_be_schema(scenario.parent / SCHEMA):
        texts[scenario] = f"#:schema ./{SCHEMA}\n{texts[scenario]}"
        texts[scenario.parent / SCHEMA] = _native.schema() + "\n"
    for place, text in texts.items():
        _write(place, text)
    return list(texts)


def _may_be_schema(path: Path) -> bool:
    """Whether nothing is at `path` that is not a schema of ours."""
    try:
        return json.loads(path.read_text("utf-8")).get("title") == "weftline scenario"
    except FileNotFoundError:
        return True
    except (OSError, ValueError, AttributeError):
        return False


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written: {error.strerror or error}") from None
