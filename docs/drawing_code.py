"""Make `python/weftline/assets/vega.js.gz`, the code that draws the figures of pages, and its licences.

    python docs/drawing_code.py                    the code, from the installed vl-convert-python
    python docs/drawing_code.py --licences FOLDER  the licences, from the node_modules in which npm installed
                                                   vega, vega-lite and vega-embed of the same versions

The package carries both, so that a page needs no other package. Every library in the bundle permits its
redistribution (BSD-3-Clause, ISC, MIT, 0BSD, Unlicense) where its notice is kept.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "python/weftline/assets"
BUNDLED = ("BSD-3-Clause", "ISC", "MIT", "0BSD", "Unlicense")
# Of the command-line tools in vega's packages, none of which is in the bundle.
TOOLS = "ansi-regex ansi-styles cliui commander emoji-regex escalade get-caller-file get-east-asian-width "
TOOLS += "iconv-lite safer-buffer string-width strip-ansi wrap-ansi y18n yargs yargs-parser"


def code() -> None:
    """Write the bundle, the same bytes for the same version of vl-convert-python."""
    import vl_convert

    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    (ASSETS / "vega.js.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def licences(modules: Path) -> None:
    """Write the licences of the libraries in the bundle, each text once with the libraries that it is of."""
    named: dict[str, list[str]] = {}
    for folder in sorted(modules.iterdir()):
        about = folder / "package.json"
        if not about.is_file() or folder.name in TOOLS.split():
            continue
        found = json.loads(about.read_text("utf-8"))
        if found["license"] not in BUNDLED:
            raise SystemExit(f"{folder.name}: {found['license']}: may it be redistributed?")
        texts = sorted(path for path in folder.iterdir() if path.name.upper().startswith("LICEN"))
        text = texts[0].read_text("utf-8") if texts else f"{found['license']}; {found.get('author')}"
        named.setdefault(text.strip(), []).append(f"{found['name']} {found['version']}")
    head = (
        "vega.js.gz, which the pages of weftline embed, is a bundle of the following libraries. All of them\n"
        "permit redistribution with these notices. It is made by docs/drawing_code.py.\n"
    )
    parts = [f"{', '.join(names)}\n\n{text}\n" for text, names in named.items()]
    line = f"\n{'-' * 100}\n"
    (ASSETS / "vega-licences.txt").write_text(line.join([head, *parts]), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--licences"]:
        licences(Path(sys.argv[2]))
    else:
        code()
