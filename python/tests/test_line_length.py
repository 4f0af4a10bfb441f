"""Markdown and comments of Rust are at most 110 columns wide; ruff checks Python.

``python python/tests/test_line_length.py FILE...`` wraps the paragraphs of files that have a longer line.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from test_words import COLUMNS, read, tracked

# Made from experiments/ledger.toml and from the code.
GENERATED = ("docs/claims.md",)
RUST_COMMENT_LIMIT = 1700
"""Comment lines of Rust that are longer; the number may only fall."""

KEEP = re.compile(r"`[^`]*`|<!--.*?-->|\]\([^)]*\)")
"""Parts of a paragraph that no line break divides."""
ITEM = re.compile(r"(?:[-*]|\d+\.) +")
NOT_FIRST = re.compile(r"(?:[-+*>|#]+|\d+[.)])\s")


def wrapped(lines: list[str], prefix: str) -> list[str]:
    """Return the lines of one paragraph or list item, without their prefix, at most 110 columns wide."""
    text = " ".join(line.strip() for line in lines)
    item = ITEM.match(text)
    indent = re.match(r" *", lines[0])[0]
    following = indent + " " * (len(item[0]) if item else 0)
    if not item and len(lines) > 1:
        following = re.match(r" *", lines[1])[0]
    whole = KEEP.sub(lambda found: found[0].replace(" ", "\0"), text)
    # A line that begins with such a mark would be a list, a quotation or a heading.
    whole = whole[:3] + re.sub(rf" (?={NOT_FIRST.pattern})", "\0", whole[3:])
    found = textwrap.wrap(
        whole,
        COLUMNS,
        initial_indent=prefix + indent,
        subsequent_indent=prefix + following,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in found]


def wrapped_block(lines: list[str], prefix: str) -> list[str]:
    """Return lines that share a prefix with their long paragraphs wrapped; code, tables and headings stay."""
    found: list[str] = []
    paragraph: list[str] = []
    fenced = False

    def close() -> None:
        if any(len(prefix + line) > COLUMNS for line in paragraph):
            found.extend(wrapped(paragraph, prefix))
        else:
            found.extend(prefix + line if line else prefix.rstrip() for line in paragraph)
        paragraph.clear()

    after_blank = True
    for line in lines:
        bare = line.strip()
        fence = bare.startswith("```")
        # Lines indented by four columns after a blank line are code, or the picture of something.
        stays = fenced or fence or not bare or re.match(r"[|#>]|<!--|\[.*\]: ", bare)
        picture = after_blank and line.startswith("    ")
        if stays or picture or (not paragraph and found and found[-1].startswith(prefix + "    ")):
            close()
            found.append(prefix + line if line else prefix.rstrip())
        elif paragraph and not ITEM.match(bare):
            paragraph.append(line)
        else:
            close()
            paragraph.append(line)
        fenced ^= fence
        after_blank = not bare
    close()
    return found


MADE = re.compile(r"^<!-- (?:parameters|rules|measured table):.*?^<!-- end of [^\n]*$", re.M | re.S)
"""Parts of a page that are made from the code."""


def wrapped_markdown(text: str) -> str:
    found, last = [], 0
    for made in MADE.finditer(text):
        found += wrapped_block(text[last : made.start()].removesuffix("\n").split("\n"), "")
        found.append(made[0])
        last = made.end() + 1
    return "\n".join(found + wrapped_block(text[last:].split("\n"), ""))


RUST_COMMENT = re.compile(r"( *)(//[/!]?)(?: |$)(.*)")


def wrapped_rust(text: str) -> str:
    found: list[str] = []
    block: list[str] = []
    before = None
    for line in [*text.split("\n"), None]:
        comment = RUST_COMMENT.fullmatch(line) if line is not None else None
        prefix = f"{comment[1]}{comment[2]} " if comment else None
        if prefix != before and before is not None:
            found += wrapped_block(block, before)
            block = []
        before = prefix
        if comment:
            block.append(comment[3])
        elif line is not None:
            found.append(line)
    return "\n".join(found)


WRAPPED = {".md": wrapped_markdown, ".rs": wrapped_rust}
"""What wraps a file, by its ending."""


def too_long(name: str) -> list[str]:
    """Return the lines of a page or of a Rust file's comments that are too long and could be wrapped."""
    text = read(name)
    new = set(WRAPPED[Path(name).suffix](text).split("\n"))
    return [line for line in text.split("\n") if len(line) > COLUMNS and line not in new]


@pytest.mark.parametrize("name", [name for name in tracked("*.md") if name not in GENERATED])
def test_markdown_is_wrapped(name):
    assert not too_long(name), f"python python/tests/test_line_length.py {name} wraps it"


def test_comments_of_rust_become_shorter():
    found = sum(len(too_long(name)) for name in tracked("crates/*.rs", "fuzz/*.rs", "benches/*.rs"))
    assert found <= RUST_COMMENT_LIMIT


def test_wrapping_keeps_items_code_tables_and_links():
    words = "word " * 30
    text = f"# {words}\n\n- {words}`a b`\n  {words}\n- short\n\n| {words} |\n\n```\n{words}\n```\n"
    found = wrapped_markdown(text).split("\n")
    assert all(len(line) <= COLUMNS for line in found if line.startswith(("- ", "  ")))
    assert found[0] == f"# {words}" and f"| {words} |" in found and words in found and "- short" in found
    assert sum(line.startswith("- ") for line in found) == 2
    rust = wrapped_rust(f"fn f() {{\n    /// {words}\n    ///\n    /// end\n}}")
    assert rust.split("\n")[-3:] == ["    ///", "    /// end", "}"]
    assert max(map(len, rust.split("\n"))) <= COLUMNS


def test_files_that_it_cannot_wrap_are_refused(tmp_path):
    code, page = tmp_path / "code.py", tmp_path / "page.md"
    for path in (code, page):
        path.write_text("word " * 30 + "\n")
    call = [sys.executable, __file__, str(page), str(code)]
    found = subprocess.run(call, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and "code.py: expected files that end with .md or .rs" in found.stderr
    assert code.read_text() == page.read_text() == "word " * 30 + "\n"
    assert subprocess.run(call[:-1], check=False).returncode == 0 and page.read_text().count("\n") == 2


if __name__ == "__main__":
    if other := [name for name in sys.argv[1:] if Path(name).suffix not in WRAPPED]:
        sys.exit(f"{', '.join(other)}: expected files that end with {' or '.join(WRAPPED)}")
    for argument in sys.argv[1:]:
        path = Path(argument)
        path.write_text(WRAPPED[path.suffix](path.read_text(encoding="utf-8")), encoding="utf-8")
