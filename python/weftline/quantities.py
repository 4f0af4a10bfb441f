"""Numbers as people read and write them: bytes, times, counts, shares.

KB, MB and GB are powers of ten, as in a scenario.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from weftline.errors import InputError

_BYTES = {"B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIMES = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}
_RATES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# As in a scenario, an underscore stands between two digits.
_NUMBER = r"\s*((?:[0-9.]|(?<=[0-9])_(?=[0-9]))+)\s*"
_QUANTITY = re.compile(_NUMBER + r"([A-Za-z\u00b5\u03bc]+)\s*\Z")
_RATE = re.compile(_NUMBER + r"([KkMGT]?)bps\s*\Z")


def parse_bytes(text: str) -> float:
    """Return the bytes of ``"200KB"``, below 2^64."""
    size = _parsed(_QUANTITY, text, _BYTES, 'a size with its unit such as "200KB"')
    if size >= 2**64:
        raise InputError(f"expected a size below 2^64 B, found {size:.1e} B")
    return size


def parse_rate(text: str) -> float:
    """Return the bits per second of ``"100Mbps"``."""
    return _parsed(_RATE, text, _RATES, 'a rate with its unit such as "100Mbps"')


def parse_time_ns(text: str) -> float:
    """Return the nanoseconds of ``"1.5ms"``."""
    return _parsed(_QUANTITY, text, _TIMES, 'a time with its unit such as "10us"')


def _parsed(pattern: re.Pattern[str], text: str, units: Mapping[str, float], expected: str) -> float:
    match = pattern.match(str(text))
    if match and match[2] in units:
        # 64.1 KB are 64,100 B: the product of the two floating-point numbers is less.
        with contextlib.suppress(ValueError, OverflowError):
            return float(Fraction(match[1].replace("_", "")) * Fraction(units[match[2]]))
    found = repr(text)
    raise InputError(f"expected {expected}, found {found if len(found) <= 80 else found[:60] + '...'}")


def spaced(text: str) -> str:
    """Return ``"10ms"`` as ``"10 ms"``."""
    return re.sub(r"(?<=[0-9])(?=[A-Za-z])", " ", text.strip())


def digits(value: float | None, *, figures: int = 3) -> str:
    """Return `value` with about `figures` significant figures and no exponent; "–" for None or NaN."""
    if value is None or value != value:
        return "–"
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = 0
    while magnitude < 10 ** (figures - 1) and decimals < figures + 3:
        magnitude *= 10
        decimals += 1
    if decimals == 0:
        return f"{value:,.0f}"
    return f"{value:.{decimals}f}"


def _scaled(value: float | None, steps: list[tuple[float, str]], figures: int = 3) -> str:
    if value is None or value != value:
        return "–"
    factor, unit = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{_short(value / factor, figures)} {unit}".rstrip()


def _short(value: float, figures: int = 3) -> str:
    text = digits(value, figures=figures)
    return text.rstrip("0").rstrip(".") if "." in text else text


def bytes_text(value: float | None, *, figures: int = 3) -> str:
    """Return bytes as ``"22.9 KB"``."""
    return _scaled(value, [(1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B")], figures)


def time_text(ns: float | None, *, figures: int = 3) -> str:
    """Return nanoseconds as ``"12.2 us"``."""
    return _scaled(ns, [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")], figures)


def rate_text(bps: float | None, *, figures: int = 3) -> str:
    """Return bit/s as ``"100 Gb/s"``."""
    return _scaled(bps, [(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "Kb/s"), (1, "b/s")], figures)


def seconds_text(seconds: float | None) -> str:
    """Return a wall-clock span as ``"3.1 s"`` or ``"2:05 min"``."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{_short(seconds)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"
    return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d} h"


def count_text(value: float | None, *, figures: int = 3) -> str:
    """Return a count as ``"6.1 M"``."""
    return _scaled(value, [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")], figures)


def share_text(value: float | None, *, figures: int = 3) -> str:
    """Return a share as ``"5.34 %"``."""
    return "–" if value is None else f"{_short(100 * value, figures)} %"


def figures_apart(write: Callable[..., str], values: Sequence[float], bounds: Sequence[float]) -> int:
    """Return with how many figures (3 to 17) no value is written like a bound that it is not equal to.

    `write` takes ``figures``, as the functions here do.
    """
    for figures in range(3, 17):
        alike = {_without_zeros(write(bound, figures=figures)): bound for bound in bounds}
        texts = ((value, _without_zeros(write(value, figures=figures))) for value in values)
        if all(alike.get(text, value) == value for value, text in texts):
            return figures
    return 17


def exact(write: Callable[..., str], value: float) -> str:
    """Return a number with all figures that it has in a file, at least three."""
    figures = len(Decimal(repr(float(value))).normalize().as_tuple().digits)
    return write(value, figures=max(3, figures))


def _without_zeros(text: str) -> str:
    """A number as text without the zeros at the end of its decimals, which do not tell it from another."""
    return re.sub(r"(\.\d*?)0+(?!\d)", r"\1", text).replace(". ", " ").rstrip(".")


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``"1-5"`` or ``"1,2,7"``."""
    found = parse_numbers(text, f"--seeds {text}", "seed")
    if max(found) >= 2**63:
        raise InputError(f"--seeds {text}: expected seeds from 0 to 2^63 - 1")
    return found


def parse_numbers(text: str, option: str, what: str) -> list[int]:
    """Return the numbers of ``"1-5"`` or ``"1,2,7"``, each once."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if not match:
            raise InputError(f'{option}: expected {what}s such as "1-5" or "1,2,7"')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= 10_000:
            raise InputError(f"{option}: {part.strip()} is not a range of at most 10000 {what}s")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))
