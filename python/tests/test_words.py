"""Plain words: idioms that are hard to read for who learnt English as a second language, counted by place.

`IDIOMS` has for each idiom what to write instead. words.json stores how many idioms each place has; a count
may only fall. ``python python/tests/test_words.py [PLACE] [PREFIX]`` prints them as FILE:LINE;
``WEFTLINE_ACCEPT=1`` stores counts that are lower than those stored.
"""

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = next(parent for parent in Path(__file__).resolve().parents if (parent / "Makefile").is_file())
STORED = Path(__file__).resolve().with_name("words.json")
COLUMNS = 110

IDIOMS = {
    r"\btold\b": "reported, returned, informed; name who reports",
    r"\bsaid\b": "reported, stated, returned",
    r"\bsays? (so|nothing|no|of|how many|what)\b": "states; name the subject and the object",
    r"\bso (many|much|long|often)\b(?! (that|as)\b)": "N, T, this number of, this time",
    r"(?<!\btimes )\bas (many|much|long|often) as\b": "while; equal to; the same number; automatically",
    r"(?<!\bat )\bleast\b(?![ -](congested|utilised|loaded|marked|recent|significant|squares|urgent))": (
        "minimum, lowest, smallest"
    ),
    r"\b(at )?the most\b(?! (recent|common|urgent|loaded|likely|congested))": "maximum, at most",
    r"\bbeside\b": "next to, in addition to, together with",
    r"\bbehind\b": "after, through, with",
    r"(?<!\bthere )\b(is|are|was|were) no (?!longer|more|less|greater|larger|smaller|slower|faster|differ)": (
        "is not a, is invalid; there is no"
    ),
    r"\b(nobody|no one|somebody|anybody|whoever)\b": "name the component",
    r"\b(hears?|heard|deaf)\b": "receives",
    r"\b(speaks?|spoke|spoken)\b": "reports, uses",
    r"\bon (its|the|their) way\b": "in flight",
    r"\b(ways? (of (a flow|the flow|its|a packet)|through the|between two)|flow's way)\b": "path",
    r"\b(has|have|had) none\b": "does not have one",
    r"\banew\b": "again, newly",
    r"\bgone\b": "lost, removed, closed",
    r"\bbut for\b": "except",
    r"\bfor (want of|nothing)\b": "because there is no; unnecessarily",
    r"\b(go|goes|went|going) on\b": "continues",
    r"\bstands (in|at|on|there|by)\b": "is in",
    r"\b(as|they|it|that) pays?\b": "automatically; is faster",
    r"\basked (for|of)\b": "requested, set",
    r"\bknows? (of|nothing|no)\b": "has no information about",
    r"\b(obey|obeys|obeyed)\b": "handles, follows",
    r"\brecalled\b": "from memory, unverified",
    r"\b(last|without a) words?\b": "see the log; name the output",
    r"\b(on|by) the wall\b": "wall-clock time",
    r"\bword for word\b": "verbatim",
    r"\bone by one\b": "one at a time",
    r"\bthat there is not\b": "that does not exist",
    r"\bas (soon|well) as can be\b": "state the condition",
}
PATTERN = re.compile("|".join(f"(?:{idiom})" for idiom in IDIOMS), re.IGNORECASE)
NAME = re.compile(r"(?<![A-Za-z])(told|said|least|most|heard?|hears|deaf|beside|behind|anew|gone)(?![a-z])")
"""Parts of identifiers that are the same idioms."""

Texts = Iterator[tuple[str, str, int, str]]
"""Place, file, line and text."""


def tracked(*patterns: str) -> list[str]:
    found = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in found.stdout.split("\n") if name and (ROOT / name).is_file()]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


RUST_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*)|(?P<raw>r(?P<hashes>#*)".*?"(?P=hashes))|(?P<text>"(?:\\.|[^"\\])*")|\'(?:\\.|[^\'\\])\'',
    re.S,
)
RUST_HELP = re.compile(r"(help|title|text|source|equations|validation|about):?\s*=?\s*(concat!\()?\s*$")


def rust(name: str) -> Texts:
    """Comments and names of a file; outside tests its texts: help of schemes and parameters, else errors."""
    text = read(name)
    tests = re.search(r"#\[cfg\(test\)\]\s*(pub(\(\w+\))? )?mod \w+ \{", text)
    shown = (
        name.startswith("crates/") and "/src/" in name and not re.search(r"tests?(_\w+)?\.rs|/tests/", name)
    )
    end = tests.start() if tests else len(text)
    code, last = [], 0
    for found in RUST_TOKEN.finditer(text):
        code.append(text[last : found.start()])
        last = found.end()
        code.append("\n" * found[0].count("\n"))
        line = text.count("\n", 0, found.start()) + 1
        if found["comment"]:
            yield "comments Rust", name, line, found["comment"]
        elif (found["text"] or found["raw"]) and shown and found.start() < end and " " in found[0]:
            is_help = RUST_HELP.search(text, max(0, found.start() - 40), found.start())
            words = re.sub(r"\\\n\s*", "", found[0])
            yield "help Rust" if is_help else "errors Rust", name, line, words
    code.append(text[last:])
    for number, line in enumerate("".join(code).split("\n"), 1):
        yield "names Rust", name, number, line


def python(name: str) -> Texts:
    """Comments with docstrings, names; outside tests texts: arguments such as `help`, else errors."""
    text = read(name)
    shown = name.startswith("python/weftline/")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield "comments Python", name, token.start[0], token.string
        elif token.type == tokenize.NAME:
            yield "names Python", name, token.start[0], token.string
    tree, done = ast.parse(text), set()

    def words(node: ast.AST) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(words(part) or "{}" for part in node.values)
        return None

    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and (found := words(node.value)) is not None:
            done.add(id(node.value))
            yield "comments Python", name, node.lineno, found
        if isinstance(node, ast.keyword) and node.arg in ("help", "description", "epilog"):
            for part in ast.walk(node.value):
                if (found := words(part)) is not None and id(part) not in done:
                    done.update(map(id, ast.walk(part)))
                    yield "help", name, part.lineno, found
    for node in ast.walk(tree):
        if id(node) not in done and (found := words(node)) is not None:
            done.update(map(id, ast.walk(node)))
            if shown and " " in found and "the old name" not in found:
                yield "errors", name, node.lineno, found


def markdown(name: str) -> Texts:
    """Text of a page, without code and what is made from the code; a paragraph is one text."""
    text = re.sub(
        r"(?m)^<!-- (parameters|rules|measured table):.*?^<!-- end of [^\n]*", _blank, read(name), flags=re.S
    )
    text = re.sub(r"(?ms)^```.*?^```", _blank, text)
    text = re.sub(r"`[^`\n]*`", "``", text)
    for found in re.finditer(r"(?:[^\n]+\n)+", text + "\n"):
        yield "docs", name, text.count("\n", 0, found.start()) + 1, found[0]


def _blank(found: re.Match) -> str:
    return "\n" * found[0].count("\n")


def toml(name: str) -> Texts:
    """Comments and texts of experiments, trials and benches."""
    for number, line in enumerate(read(name).split("\n"), 1):
        yield "experiments", name, number, line


def texts() -> Texts:
    here = Path(__file__).resolve().relative_to(ROOT).as_posix()
    for name in tracked("*.rs"):
        yield from rust(name)
    for name in tracked("*.py"):
        if name != here:
            yield from python(name)
    for name in tracked("*.md"):
        # Made from experiments/ledger.toml.
        if name != "docs/claims.md":
            yield from markdown(name)
    for name in tracked(
        "experiments/*.toml", "trials/*.toml", "benches/*.toml", "python/*.toml", "crates/*/src/*.toml"
    ):
        yield from toml(name)
    for name in ("Makefile", "mkdocs.yml", "pyproject.toml"):
        for number, line in enumerate(read(name).split("\n"), 1):
            yield "docs", name, number, line


def found_idioms() -> Texts:
    """Every idiom with its place, file, line and the words around it."""
    for place, name, line, text in texts():
        for found in (NAME if place.startswith("names") else PATTERN).finditer(text):
            around = text[max(0, found.start() - 50) : found.end() + 50].replace("\n", " ")
            yield place, name, line + text.count("\n", 0, found.start()), around


def counts() -> dict[str, int]:
    found: dict[str, int] = {}
    for place, *_ in found_idioms():
        found[place] = found.get(place, 0) + 1
    return dict(sorted(found.items()))


def test_idioms_only_become_fewer():
    found, stored = counts(), json.loads(STORED.read_text(encoding="utf-8"))
    if os.environ.get("WEFTLINE_ACCEPT"):
        stored = {place: min(found.get(place, 0), count) for place, count in stored.items()}
        STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    more = {place: count for place, count in found.items() if count > stored.get(place, 0)}
    assert not more, (
        f"more idioms than {STORED.name} allows; python {Path(__file__).name} PLACE prints them: {more}"
    )


def test_the_counts_find_an_idiom_in_every_kind_of_text(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    source = tmp_path / "crates" / "x" / "src"
    source.mkdir(parents=True)
    (source / "x.rs").write_text(
        '// said\nlet help = "so many hosts"; bail!("is no cell"); f(told, \'"\');\n'
    )
    package = tmp_path / "python" / "weftline"
    package.mkdir(parents=True)
    (package / "x.py").write_text(
        '"""Said."""\nf(help="as many as pay")\nraise E(f"{x} is no cell")\nsaid = 1\n'
    )
    (tmp_path / "x.md").write_text("Nobody hears\nit. `said`\n\n```\ntold\n```\n")
    found = [
        (place, line)
        for texts in (rust("crates/x/src/x.rs"), python("python/weftline/x.py"), markdown("x.md"))
        for place, _, line, text in texts
        for _ in (NAME if place.startswith("names") else PATTERN).finditer(text)
    ]
    assert sorted(found) == [
        ("comments Python", 1),
        ("comments Rust", 1),
        ("docs", 1),
        ("docs", 1),
        ("errors", 3),
        ("errors Rust", 2),
        ("help", 2),
        ("help Rust", 2),
        ("names Python", 4),
        ("names Rust", 2),
    ]


if __name__ == "__main__":
    place, prefix = [*sys.argv[1:], "", ""][:2]
    if not place:
        print(json.dumps(counts(), indent=1))
    for where, name, line, around in found_idioms() if place else ():
        if where == place and name.startswith(prefix):
            print(f"{name}:{line}: {around}")
