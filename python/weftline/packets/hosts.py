"""Which host an address is: by a table, or in the order in which addresses come."""

from __future__ import annotations

import csv
import ipaddress
from pathlib import Path
from typing import Any

from weftline.errors import InputError


class InOrder:
    """Gives hosts 0, 1, 2, ... to addresses as they come."""

    def __init__(self, hosts: int | None = None) -> None:
        self._hosts = hosts
        self.given: dict[str, int] = {}

    def host(self, address: str) -> int | None:
        """Return the host of an address.

        Raises
        ------
        InputError
            If there are more addresses than hosts.
        """
        found = self.given.setdefault(address, len(self.given))
        if self._hosts is not None and found >= self._hosts:
            raise InputError(
                f"{address} is address {found + 1} and there are {self._hosts} hosts: give a larger --hosts, "
                "or --map FILE.csv with lines address,host, which may name a network such as 10.1.0.0/16"
            )
        return found


class Table:
    """Addresses and networks of a CSV file with lines address,host; the longest network that fits counts."""

    def __init__(self, path: str | Path) -> None:
        self._networks: dict[int, dict[tuple[int, int], int]] = {4: {}, 6: {}}
        self._known: dict[str, int | None] = {}
        try:
            with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
                self._read(str(path), csv.reader(file))
        except csv.Error as error:
            raise InputError(f"{path}: {error}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        self._lengths = {
            version: sorted({length for length, _ in found}, reverse=True)
            for version, found in self._networks.items()
        }

    def _read(self, file: str, rows: Any) -> None:
        for row in rows:
            where = f"{file}:{rows.line_num}"
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#") or cells[:2] == ["address", "host"]:
                continue
            if len(cells) != 2:
                found = f"found {len(cells)} fields"
                raise InputError(f"{where}: expected an address and a host, such as 10.0.0.1,3, {found}")
            try:
                network = ipaddress.ip_network(cells[0])
            except ValueError as error:
                raise InputError(f"{where}: {error}") from None
            if not (cells[1].isdecimal() and cells[1].isascii() and int(cells[1]) < 1 << 32):
                raise InputError(f"{where}: expected the number of a host, found {cells[1]!r}")
            key = (network.prefixlen, int(network.network_address))
            held = self._networks[network.version].setdefault(key, int(cells[1]))
            if held != int(cells[1]):
                raise InputError(f"{where}: {network} is host {held} already")

    def host(self, address: str) -> int | None:
        """Return the host of an address, None where the table does not say."""
        if address not in self._known:
            self._known[address] = self._find(ipaddress.ip_address(address))
        return self._known[address]

    def _find(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int | None:
        number, bits = int(address), address.max_prefixlen
        for length in self._lengths[address.version]:
            network = number >> (bits - length) << (bits - length)
            if (length, network) in self._networks[address.version]:
                return self._networks[address.version][length, network]
        return None
