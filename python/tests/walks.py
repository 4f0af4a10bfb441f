"""The pages that add a scheme to the engine step by step, as changes to the repository.

A ``rust`` block after a path is a new file; a ``diff`` block changes the file that the text before it named
last: its lines with a blank before them stand there, one after the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGES = (
    "docs/adding-a-controller.md",
    "docs/adding-a-queue.md",
    "docs/adding-a-balancer.md",
    "docs/adding-a-topology.md",
    "docs/adding-a-workload.md",
)


@dataclass(frozen=True)
class Change:
    """What one block does to one file."""

    path: str
    before: str
    """Lines that the file has; empty: the file is new."""
    after: str


def changes(text: str) -> list[Change]:
    """Return the changes of a page, in order."""
    found, path = [], ""
    for match in re.finditer(r"`(crates/[\w/.-]+\.rs)`|^```(rust|diff)\n(.*?)^```$", text, re.M | re.S):
        if match[1]:
            path = match[1]
        elif match[2] == "rust":
            found.append(Change(path, "", match[3]))
        else:
            lines = match[3].splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            found.append(Change(path, before, "".join(line[1:] for line in lines if line[0] in " +")))
    return found


def apply(change: Change, root: Path) -> str | None:
    """Make a change below a folder. Returns what is wrong with it, or None."""
    file = root / change.path
    if not change.before:
        if file.exists():
            return f"{change.path} is there already"
        file.write_text(change.after, "utf-8")
        return None
    text = file.read_text("utf-8") if file.is_file() else ""
    if text.count(change.before) != 1:
        return f"{change.path} has this {text.count(change.before)} times, not once:\n{change.before}"
    file.write_text(text.replace(change.before, change.after), "utf-8")
    return None


def offers(text: str, name: str, outside: bool) -> bool:
    """Whether the text of a module defines or re-exports a name, if `outside` for other crates as well."""
    seen = "pub" if outside else r"(?:pub(?:\([^)]*\))?|)"
    defined = rf"^{seen}\s*(?:const\s+)?(?:fn|struct|enum|trait|const|static|type)\s+{name}\b"
    made = rf"^(?:cause|counters)!\(\s*{name},"
    exported = rf"^{seen}\s*use [^;]*\b{name}\b[^;]*;"
    return any(re.search(form, text, re.M) for form in (defined, made, exported))
