"""Draws scenarios at random from the JSON Schema that weftline prints.

A scheme that is registered in a room is drawn because the schema names it: nothing here names a scheme. What
the schema leaves open (hosts, ports, links, files, lists) is drawn by the name of the key, in ``TEXTS`` and
``LISTS``; a key of that sort that neither knows keeps its default, and ``Drawing.left_out`` names it.

Most combinations of keys are refused, with the path of the key that is wrong. A refused key is drawn again,
then removed, then its whole table is, until the scenario is accepted.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

FILES = "../../crates/sim/tests/fingerprints/"
"""Where the files that scenarios name are, relative to ``trials/random``."""
UNITS = {"time": "|us|", "bytes": "KiB", "rate": "Gbps"}
"""A part of the schema's pattern of each kind of quantity."""
MAX_HOPS, MAX_SECONDS, MAX_MEMORY = 500_000, 0.3, 400_000_000
"""Limits on the estimates of what is run: packet-hops, seconds, bytes."""
LARGE_BYTES, LONG_SECONDS = 1e6, 1e-3
"""Defaults from here on are larger than a small run fills or lasts: often less is drawn."""
STALL_MEASURES = 2000
"""Measures of one kind after which a run without progress ends."""
REPAIRS, ATTEMPTS = 14, 5


class RefusedError(Exception):
    """No scenario came of a draw."""


@dataclass
class Network:
    """What other sections name of a topology."""

    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


class Drawing:
    """Draws scenarios. ``check`` returns what weftline reports on a text, or raises ``ValueError``."""

    def __init__(
        self,
        schema: dict,
        explain: Callable[[str], dict],
        check: Callable[[dict], dict],
        network: Callable[[dict], dict],
    ) -> None:
        self.schema, self.check, self.network_of = schema, check, network
        self.explain = explain
        self.left_out: set[str] = set()
        self.reasons: Counter[str] = Counter()
        self.repaired = 0
        self._keys: dict[tuple[str, str], dict[str, str | None] | None] = {}

    def scenario(self, seed: str) -> tuple[dict, dict]:
        """Return the scenario of this seed and what weftline's check reports on it."""
        for attempt in range(ATTEMPTS):
            draw = Draw(self, random.Random(f"{seed}/{attempt}"))
            try:
                return draw.scenario()
            except RefusedError as refused:
                self.reasons[str(refused)] += 1
        raise RefusedError(f"no scenario in {ATTEMPTS} attempts")

    def keys_of(self, kind: str, properties: dict) -> dict[str, str | None] | None:
        """Return the keys of a kind with their defaults, where the schema lists all kinds together."""
        asked = (kind, ",".join(properties))
        if asked not in self._keys:
            try:
                parameters = self.explain(kind).get("parameters", [])
            except ValueError:
                parameters = []
            keys = {parameter["key"]: parameter.get("default") for parameter in parameters}
            self._keys[asked] = keys if keys.keys() & properties.keys() else None
        return self._keys[asked]


class Draw:
    """The draw of one scenario."""

    def __init__(self, drawing: Drawing, rng: random.Random) -> None:
        self.drawing, self.rng = drawing, rng
        self.network = Network()
        self.document: dict = {}

    # The parts of a scenario.

    def scenario(self) -> tuple[dict, dict]:
        """Draw the topology, then what runs on it."""
        properties = self.drawing.schema["properties"]
        lone = {"kind": "all-to-all", "size": "1KB"}
        self.document = {"topology": self.value("topology", properties["topology"]), "workload": [lone]}
        self.accepted()
        self.look_at_network()
        self.document["seed"] = self.rng.choice([1, 2, self.rng.randrange(1 << 40)])
        for name, part in properties.items():
            if name not in self.document or name == "workload":
                chance = 1 if name in ("transport", "workload") else 0.1 if name == "compat" else 0.5
                section = part.get("type") in ("object", "array") or "$ref" in part
                if section and self.rng.random() < chance:
                    self.put(name, self.value(name, part))
        return self.document, self.affordable(self.accepted())

    def put(self, name: str, value: object) -> None:
        """Set a key of the scenario, unless nothing was drawn for it."""
        if value is not None and value != {}:
            self.document[name] = value

    def look_at_network(self) -> None:
        """Read the names of nodes and links."""
        found = self.drawing.network_of(self.document)
        names = [node["name"] for node in found["nodes"]]
        for node in found["nodes"]:
            (self.network.hosts if node["kind"] == "host" else self.network.switches).append(node["name"])
        self.network.links = [(names[link["a"]], names[link["b"]]) for link in found["links"]]

    def affordable(self, report: dict) -> dict:
        """Cut a scenario that would take too long short, by ``run.until``."""
        measured = [part for part in self.document.get("measure", {}).values() if isinstance(part, dict)]
        if measured and "stall" not in self.document.get("run", {}):
            # Measures continue during a timeout, which nothing can predict.
            shortest = min(_amount(str(part.get("every", "1us"))) for part in measured)
            self.document.setdefault("run", {})["stall"] = f"{int(shortest * 1e12) * STALL_MEASURES}ps"
            report = self.accepted()
        for share in (1, 3, 10):
            estimate = report["estimate"]
            if estimate["memory_bytes"] > MAX_MEMORY:
                raise RefusedError("needs too much memory")
            # A seed draws the same scenarios on every machine.
            seconds = estimate["seconds"] / estimate["machine_factor"]
            over = max(estimate["packet_hops"] / MAX_HOPS, seconds / MAX_SECONDS)
            if over <= 1:
                return report
            until = max(int(estimate["end_ns"] * 1000 / over / share), 1_000_000)
            self.document.setdefault("run", {})["until"] = f"{until}ps"
            report = self.accepted()
        raise RefusedError("would take too long")

    # Values.

    def value(self, path: str, schema: dict) -> object:
        """Draw a value; ``None``: nothing is known of it."""
        key = path.rpartition(".")[2]
        if "$ref" in schema:
            schema = self.drawing.schema["$defs"][schema["$ref"].rpartition("/")[2]]
        if key in LISTS and (schema.get("type") == "array" and "items" not in schema):
            return LISTS[key](self, path)
        if "anyOf" in schema:
            if any(one.get("type") == "string" for one in schema["anyOf"]):
                return self.ports(path)
            return self.value(path, self.rng.choice(schema["anyOf"]))
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self.table(path, schema)
        if kind == "array" and "items" in schema:
            return [self.value(path, schema["items"]) for _ in range(self.rng.choice([1, 1, 2]))]
        if kind == "boolean":
            return self.rng.random() < 0.5
        if kind in ("integer", "number"):
            return self.number(path, schema)
        if "pattern" in schema:
            return self.quantity(path, schema)
        if kind == ["string", "integer"] and key in TEXTS:
            return TEXTS[key](self, path, schema)
        self.drawing.left_out.add(re.sub(r"\.\d+", "", path))
        return None

    def table(self, path: str, schema: dict) -> dict:
        """Draw the keys of a table: few in some tables, many in others."""
        properties, found = schema["properties"], {}
        known: dict[str, str | None] | None = None
        kind = properties.get("kind", {})
        if "const" in kind:
            found["kind"] = kind["const"]
        elif "enum" in kind:
            found["kind"] = self.rng.choice(kind["enum"])
            known = self.drawing.keys_of(found["kind"], properties)
        boldness = self.rng.choice([0.03, 0.1, 0.2, 0.4, 0.7])
        for key, part in properties.items():
            if key == "kind" or f"{path}.{key}" in NEVER or (known is not None and key not in known):
                continue
            small = path == "topology" and part.get("type") == "integer"
            needed = key in schema.get("required", ()) or small or key in ALWAYS
            nested = "properties" in part or "anyOf" in part or "$ref" in part or "items" in part
            chance = 0.5 if _has_kinds(part, self.drawing.schema) else boldness + 0.15 if nested else boldness
            if needed or self.rng.random() < chance:
                if known is not None and "default" in part and known[key] is not None:
                    part = {**part, "default": known[key]}
                value = self.value(f"{path}.{key}", part)
                if value is not None and (value != {} or path == "measure"):
                    found[key] = value
        return found

    def number(self, path: str, schema: dict) -> int | float:
        """Draw near the default, and sometimes a bound."""
        low, high = schema["minimum"], schema["maximum"]
        whole = schema["type"] == "integer"
        if path.count(".") == 1 and path.startswith("topology"):
            return min(low + self.rng.choice([0, 0, 1, 1, 2, 2, 3, 4]), high)
        if self.rng.random() < 0.1:
            return low if self.rng.random() < 0.5 or high > 1000 else high
        default = schema.get("default", low)
        default = float(default) if not isinstance(default, bool) and _is_number(default) else low
        drawn = (default or 1) * 2 ** self.rng.uniform(-3, 3)
        if high <= 1 and self.rng.random() < 0.5:
            drawn = self.rng.uniform(low, high)
        drawn = min(max(drawn, low), high)
        return round(drawn) if whole else float(f"{drawn:.4g}")

    def quantity(self, path: str, schema: dict) -> str:
        """Draw a time, a size or a rate."""
        unit = next(name for name, part in UNITS.items() if part in schema["pattern"])
        default = str(schema.get("default", "auto"))
        small = self.rng.random() < 0.03
        if unit == "rate":
            if default == "auto" or path.startswith("topology"):
                return f"{self.rng.choice([1, 10, 25, 40, 100, 100, 400])}Gbps"
            return f"{max(int(_amount(default) * 2 ** self.rng.uniform(-3, 3)), 1)}bps"
        if unit == "bytes":
            amount = _amount(default) or 10 ** self.rng.uniform(3, 6)
            if amount >= LARGE_BYTES and self.rng.random() < 0.4:
                amount = 10 ** self.rng.uniform(3.5, 6)
            return f"{1 if small else max(int(amount * 2 ** self.rng.uniform(-3, 3)), 1)}B"
        amount = _amount(default)
        if not amount:
            amount = 0 if default != "auto" and self.rng.random() < 0.3 else 10 ** self.rng.uniform(-7, -4)
        if path.startswith("workload") and path.endswith("duration"):
            amount = 100e-6
        elif amount >= LONG_SECONDS and self.rng.random() < 0.4:
            amount = 10 ** self.rng.uniform(-6, -3)
        picoseconds = int(amount * 1e12 * 2 ** self.rng.uniform(-3, 3))
        return "1ns" if small and amount else f"{picoseconds}ps"

    # What only the key's name says.

    def host(self) -> int:
        return self.rng.randrange(max(len(self.network.hosts), 1))

    def hosts(self, path: str, schema: dict) -> str:
        """Draw hosts: all, a range or a few."""
        words = [str(schema["default"])] if "default" in schema else ["all"]
        low, high = sorted((self.host(), self.host()))
        some = ",".join(str(host) for host in sorted({self.host(), self.host(), self.host()}))
        return self.rng.choice([*words, "all", f"{low}-{high}", f"0-{high}", some])

    def ports(self, path: str = "") -> str | list[str]:
        """Draw a pattern of ports, or a list."""
        patterns = ["*"]
        if self.network.links:
            a, b = self.rng.choice(self.network.links)
            patterns += [
                f"{a}->{b}",
                f"{b}->{a}",
                f"{a}.*",
                b,
                f"{self.rng.choice(self.network.switches)}.p0",
            ]
        drawn = self.rng.choice(patterns)
        return drawn if self.rng.random() < 0.5 else sorted({drawn, self.rng.choice(patterns)})

    def file(self, path: str, schema: dict) -> str:
        """Draw one of the repository's small files."""
        if path.startswith("topology"):
            return FILES + self.rng.choice(["ring.net.toml", "ring.gml", "ring.graphml", "ring.txt"])
        return FILES + "ring.csv"

    def sizes(self, path: str, schema: dict) -> str:
        """Draw one of the names that the help text lists."""
        listed = re.search(r": ([^:]*), or a file", schema["description"])
        return self.rng.choice(listed[1].split(", "))

    def span(self, low: float, high: float) -> str:
        """Draw a time in seconds between these, as text."""
        return f"{int(low * 1e9 * (high / low) ** self.rng.random())}ns"

    def node_pair(self, path: str) -> list[str]:
        """Draw the two ends of a link."""
        pair = list(self.rng.choice(self.network.links)) if self.network.links else ["host0", "*"]
        return pair if self.rng.random() < 0.5 else pair[::-1]

    def listed_flows(self, path: str) -> list:
        """Draw flows of a workload, or the numbers of flows to measure."""
        if path.startswith("measure"):
            return self.rng.choice([["0-9"], [0], [0, 3]])
        flows: list[dict] = []
        for number in range(self.rng.randint(1, 6)):
            src = self.host()
            dst = self.rng.choice([host for host in range(max(len(self.network.hosts), 2)) if host != src])
            size = int(10 ** self.rng.uniform(0, 5.5))
            flow = {"src": src, "dst": dst, "size": f"{size}B"}
            before = [i for i, other in enumerate(flows) if src in (other["src"], other["dst"])]
            if before and self.rng.random() < 0.4:
                flow["after"] = self.rng.choice(before)
            elif self.rng.random() < 0.6:
                flow["start"] = self.span(1e-7, 1e-4)
            if self.rng.random() < 0.2:
                flow["deadline"] = self.span(1e-6, 1e-2)
            if self.rng.random() < 0.2:
                flow["group"] = f"g{number % 2}"
            flows.append(flow)
        return flows

    # Repair.

    def accepted(self) -> dict:
        """Check the document, and repair it until it is accepted."""
        tried: Counter[str] = Counter()
        for _ in range(REPAIRS):
            try:
                return self.drawing.check(self.document)
            except ValueError as error:
                problems = list(located(str(error)))
                if not problems:
                    raise RefusedError(f"no key is named: {without_numbers(str(error))}") from None
                for path, _ in problems:
                    self.drawing.repaired += 1
                    self.repair(path, tried)
        path, message = problems[0]
        raise RefusedError(f"{re.sub(r'[.][0-9]+', '', path)}: {without_numbers(message)}")

    def repair(self, path: str, tried: Counter[str]) -> None:
        """Draw again what is wrong, then remove it, then its table."""
        tried[path] += 1
        if not self.network.hosts and not path.startswith("topology"):
            # The topology has too few hosts.
            path = "topology"
        keys = path.split(".")
        cut = max(tried[path] - 2, 0)
        if keys[-1] == "kind" and len(keys) > 1:
            # A kind is drawn with its table.
            keys = keys[:-1]
        keys = keys[: max(len(keys) - cut, 1)]
        path = ".".join(keys)
        try:
            *above, last = keys
            table = self.document
            for key in above:
                table = table[int(key)] if isinstance(table, list) else table[key]
            # A preset may name keys of a table where the document has a list.
            place = int(last) if isinstance(table, list) else last
        except (KeyError, IndexError, ValueError, TypeError):
            return self.repair(path.rpartition(".")[0] or "transport", tried)
        there = place in table if isinstance(table, dict) else place < len(table)
        if isinstance(table, list) and not there:
            return self.repair(".".join(above), tried)
        schema = schema_at(self.drawing.schema, self.document, keys)
        again = tried[path] <= 1 or not there or path in ("topology", "workload")
        drawn = self.value(path, schema) if schema and again else None
        if path in ("workload", "topology") or (drawn is not None and drawn != {}):
            table[place] = drawn
        elif there:
            del table[place]
            if above == ["workload"] and not table:
                self.document["workload"] = self.value(
                    "workload", self.drawing.schema["properties"]["workload"]
                )
        return None


ALWAYS = ("duration", "flows", "file", "at", "link", "between", "match", "rate_of")
"""Keys without which their table is mostly refused."""

NEVER = ("run.memory", "run.threads", "workload.messages", "host.packet_time")
"""Keys that depend on the machine, or are chosen by what runs the scenario; `messages`, which leaves out the
rows that are checked; and `packet_time`, which estimates of time do not count."""

TEXTS: dict[str, Callable[[Draw, str, dict], object]] = {
    "hosts": Draw.hosts,
    "to": Draw.hosts,
    "clients": Draw.hosts,
    "servers": Draw.hosts,
    "receiver": lambda draw, path, schema: draw.rng.choice(["random", str(draw.host())]),
    "arbiter": lambda draw, path, schema: draw.rng.choice(["auto", str(draw.host())]),
    "sizes": Draw.sizes,
    "file": Draw.file,
    "queries": lambda draw, path, schema: FILES + "queries.toml",
    "rto": lambda draw, path, schema: draw.rng.choice(["auto", "none", draw.span(1e-4, 1e-2)]),
    "until": lambda draw, path, schema: draw.rng.choice(["flows-done", draw.span(1e-6, 1e-3)]),
    "match": lambda draw, path, schema: _first(draw.ports()),
    "switch": lambda draw, path, schema: draw.rng.choice(draw.network.switches or ["s0"]),
    "group": lambda draw, path, schema: draw.rng.choice(["a", "b"]),
}
"""How keys that hold a text are drawn."""

LISTS: dict[str, Callable[[Draw, str], object]] = {
    "between": Draw.node_pair,
    "link": Draw.node_pair,
    "flows": Draw.listed_flows,
    "hosts_by_hop": lambda draw, path: [draw.rng.randint(0, 3) for _ in range(draw.rng.randint(1, 4))],
    "groups": lambda draw, path: [
        {"hosts": draw.rng.randint(1, 3), "delay": draw.span(1e-7, 1e-4)}
        for _ in range(draw.rng.randint(1, 3))
    ],
}
"""How keys that hold a list are drawn."""


def schema_at(schema: dict, document: dict, keys: list[str]) -> dict | None:
    """Return the schema of a key, in the alternatives that the document has chosen."""
    here, value = schema, document
    for key in keys:
        if "$ref" in here:
            here = schema["$defs"][here["$ref"].rpartition("/")[2]]
        if "anyOf" in here:
            kind = value.get("kind") if isinstance(value, dict) else None
            fits = [
                one
                for one in here["anyOf"]
                if one.get("type") == ("array" if isinstance(value, list) else "object")
                and one.get("properties", {}).get("kind", {}).get("const") in (kind, None)
            ]
            here = fits[0] if fits else here["anyOf"][0]
        if "items" in here:
            here = here["items"]
            value = value[int(key)] if isinstance(value, list) and int(key) < len(value) else None
            continue
        here = here.get("properties", {}).get(key)
        if here is None:
            return None
        value = value.get(key) if isinstance(value, dict) else None
    return here


def located(message: str) -> list[tuple[str, str]]:
    """Return (path of the key, what is wrong) of each line of an error."""
    found = re.findall(r"^[^\s:]+(?::\d+)?: ([a-z_0-9]+(?:\.[a-z_0-9]+)*): (.*)$", message, re.M)
    return [(path, text) for path, text in found if not path.isdigit()]


def without_numbers(message: str) -> str:
    """Return a message as the name of its kind: without what differs from case to case."""
    return re.sub(r"\"[^\"]*\"", '"..."', re.sub(r"\d+(?:[._]\d+)*(?:e-?\d+)?", "N", message))[:200]


def _has_kinds(part: dict, schema: dict) -> bool:
    """Whether a key is a table with a kind to choose."""
    if "$ref" in part:
        return False
    return any("kind" in one.get("properties", ()) for one in part.get("anyOf", [part]))


def _first(drawn: str | list[str]) -> str:
    return drawn if isinstance(drawn, str) else drawn[0]


def _is_number(value: object) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


_FACTORS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_FACTORS |= {"B": 1, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_FACTORS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_FACTORS |= {"bps": 1, "Kbps": 1e3, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "Tbps": 1e12}


def _amount(text: str) -> float:
    """Return a quantity in seconds, bytes or bit/s; 0 for a word."""
    found = re.fullmatch(r"\s*([0-9][0-9._]*)\s*(\w+)\s*", text)
    return float(found[1].replace("_", "")) * _FACTORS[found[2]] if found else 0
