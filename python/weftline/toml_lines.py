"""Line of a key in a TOML file, for messages; and a check for unknown keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from weftline.errors import InputError, nearest


class Where:
    """The line of a key in a file, found by its text without parsing TOML again."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._lines = file, text.splitlines()

    def __call__(self, key: str = "", table: str = "", number: int = 0) -> str:
        """Return ``FILE:LINE`` of a key below the `number`-th header of a table, or ``FILE``."""
        begin = 0
        if table:
            headers = [
                n
                for n, line in enumerate(self._lines)
                if re.match(rf"\s*\[+\s*{re.escape(table)}\s*\]+", line)
            ]
            if number >= len(headers):
                return self._file
            begin = headers[number]
        if not key:
            return f"{self._file}:{begin + 1}" if table else self._file
        for n in range(begin + bool(table), len(self._lines)):
            if re.match(r"\s*\[", self._lines[n]) and not self._lines[n].strip().endswith(","):
                break
            if re.search(rf"(?:^|[\s{{,]){re.escape(key)}\s*=", self._lines[n]):
                return f"{self._file}:{n + 1}"
        return f"{self._file}:{begin + 1}" if table else self._file


def check_keys(
    table: Mapping[str, Any], kind: str, keys: str, where: Where, header: str = "", number: int = 0
) -> None:
    """Refuse a table of the given kind if it has a key other than `keys`, which are separated by blanks."""
    known = sorted({*keys.split()})
    for key in table:
        if key not in known:
            raise InputError(
                f'{where(str(key), header, number)}: unknown key "{key}" of {kind}: '
                f"{nearest(str(key), known)}known: {', '.join(known)}"
            )
