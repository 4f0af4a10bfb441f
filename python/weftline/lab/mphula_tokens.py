"""What the process of the switches' programs learns of MPTCP connections: which token names which of them.

A record of the programs has both keys of a connection, which the third packet of its first handshake carries.
The token of an end is the first 32 bits of a hash of its key (RFC 8684, section 3.1: SHA-256; RFC 6824 for
version 0: SHA-1); a subflow that joins names its receiver by it. With the tokens in their maps the programs
know which subflows belong together.

A file next to `switches.py`, which runs without the package.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Protocol

ENDS = 40
KEYS = struct.Struct("=40s2QII")
"""Addresses and ports, the initiator's key and the other's, version, unused."""
NUMBERS = 16
"""Of the subflows of a connection."""
CONNECTION = struct.Struct("=II")
"""Its subflows, and the number of the next one."""


class Maps(Protocol):
    """The maps of a switch, by name."""

    def get(self, name: str, key: bytes, size: int) -> bytes | None:
        """Return an entry; `size`: bytes of its value."""

    def put(self, name: str, key: bytes, value: bytes) -> None:
        """Set an entry."""


def token(key: int, version: int) -> int:
    """Return by what token the owner of a key is joined."""
    digest = hashlib.sha256 if version else hashlib.sha1
    return int.from_bytes(digest(key.to_bytes(8, "big")).digest()[:4], "big")


class Learner:
    """Fills the maps of one switch."""

    def __init__(self, maps: Maps) -> None:
        self.maps = maps

    def take(self, record: bytes) -> None:
        """Make the connection of two keys known, and the subflow that carried them."""
        ends, first, second, version, _ = KEYS.unpack(record)
        if self.maps.get("mphula_subflows", ends, 16) is not None:
            return
        tokens = [token(key, version) for key in (first, second)]
        connection = struct.pack("=Q", tokens[0] << 32 | tokens[1])
        known = self.maps.get("mphula_connections", connection, CONNECTION.size)
        subflows, number = CONNECTION.unpack(known) if known else (0, 0)
        self.maps.put("mphula_connections", connection, CONNECTION.pack(subflows + 1, (number + 1) % NUMBERS))
        for one in tokens:
            self.maps.put("mphula_tokens", struct.pack("=I", one), connection)
        self.maps.put("mphula_subflows", ends, connection + struct.pack("=II", number, 0))
