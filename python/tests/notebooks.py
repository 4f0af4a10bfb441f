"""Runs the notebooks of examples/ and stores what their cells show: `make notebooks`.

Cells run in this process, in order, in one namespace and an empty folder: no kernel is needed. Figures are
stored as pictures, which GitHub and every viewer show, without their specifications.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
KEPT = ("image/svg+xml", "text/html", "text/plain")


def run_cell(text: str, names: dict) -> object:
    """Run a cell and return the value of its last line, if that is an expression."""
    tree = ast.parse(text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None


def shown(value: object) -> dict[str, str]:
    """Return what a notebook shows of a value, by MIME type."""
    if hasattr(value, "_repr_mimebundle_"):
        found = value._repr_mimebundle_()
    else:
        found = {"text/plain": repr(value)}
        if hasattr(value, "_repr_html_"):
            found["text/html"] = value._repr_html_()
    return {kind: found[kind] for kind in KEPT if kind in found}


def run(path: Path) -> dict:
    """Run a notebook in the working directory and return it with its outputs."""
    document = json.loads(path.read_text("utf-8"))
    names: dict = {"__name__": "__main__"}
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        printed, warned = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(warned):
            value = run_cell("".join(cell["source"]), names)
        cell["execution_count"], cell["outputs"] = number, []
        for name, stream in (("stdout", printed), ("stderr", warned)):
            if text := _lines(stream.getvalue()):
                cell["outputs"].append({"name": name, "output_type": "stream", "text": text})
        if value is not None:
            data = {kind: _lines(text) for kind, text in sorted(shown(value).items())}
            result = {"data": data, "execution_count": number, "metadata": {}}
            cell["outputs"].append(result | {"output_type": "execute_result"})
    return document


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run all notebooks, or those named, and store them."""
    for path in [Path(name).resolve() for name in sys.argv[1:]] or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            document = run(path)
            text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
            if str(Path(folder)) in text or os.fspath(Path.home()) + os.sep in text:
                raise SystemExit(f"{path}: an output has a path of this machine")
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text) / 1e3:,.0f} KB")


if __name__ == "__main__":
    main()
