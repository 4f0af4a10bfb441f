"""Tests of `weftline.quantities`: text that scenarios and options may have."""

from __future__ import annotations

import pytest

from weftline import quantities
from weftline.errors import InputError


def test_quantities_are_read_as_in_a_scenario():
    for text in ("1_000us", "1000 us", "1000\u00b5s", "1000\u03bcs", "1ms", "0.001s"):
        assert quantities.parse_time_ns(text) == 1e6
    for text in ("1_000Kbps", "1000kbps", "1Mbps"):
        assert quantities.parse_rate(text) == 1e6
    assert quantities.parse_bytes("1_0.5kB") == 10_500
    for text in ("_1us", "1_us", "1__0us", "1._5us", "1", "us", "1e3us", "-1us"):
        with pytest.raises(InputError, match="expected a time with its unit"):
            quantities.parse_time_ns(text)
