"""Numbers that pages state in their text are those that come out of their own files, as printed."""

from __future__ import annotations

import pytest
from snippets import ROOT, blocks

import weftline
from weftline import _native
from weftline.cli import start

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)


def law(text: str) -> type:
    """The class of a page's block of Python."""
    names: dict = {}
    exec(text, names)
    return names["Aimd"]


def test_the_page_on_controllers_states_what_the_window_of_its_law_is_worth(tmp_path):
    """Its Rust version has a window that follows the rate; so has the one in Python."""
    path = ROOT / "docs" / "adding-a-controller.md"
    text = next(block.text for block in blocks(path) if block.file == "aimd.py")
    rate_alone = "".join(line for line in text.splitlines(keepends=True) if "cwnd_bytes =" not in line)
    assert text.count("cwnd_bytes =") == 2
    start.write("leaf-spine", str(tmp_path / "mine.toml"), schema=False)

    def found(controller: str, **controllers: type) -> tuple[str, str]:
        run = weftline.run(
            tmp_path / "mine.toml",
            out=tmp_path / str(len(list(tmp_path.iterdir()))),
            controllers=controllers,
            set={"transport.controller.kind": controller},
        )
        summary = run.summary
        return f"{summary['slowdown']['p99']:.3g}", f"{summary['queues']['max'] / 1e3:.3g}"

    page = " ".join(path.read_text("utf-8").split())
    with_window, without = found("python:aimd", aimd=law(text)), found("python:aimd", aimd=law(rate_alone))
    longest = f"{float(without[1]) / 1e3:.3g} MB in place of {with_window[1]} KB"
    tail = f"slowdown {without[0]} in place of {with_window[0]}, as against {found('dctcp')[0]} of DCTCP"
    assert longest in page and tail in page, (longest, tail)
