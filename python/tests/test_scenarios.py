"""Scenarios written from Python and numbers read from text."""

import enum
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

import weftline
from weftline import _native, provenance, quantities, scenarios
from weftline.errors import InputError
from weftline.sweeps.store import content_key

SCENARIO = {
    "name": 'odd "name" \\ with\ttab',
    "seed": 3,
    "topology": {"kind": "star", "host_link": {"rate": "100Gbps", "delay": "1us"}},
    "switch": {"pfc": {"enabled": False}, "ecn": [{"rate": "100Gbps", "pmax": 0.2}]},
    "workload": [
        {"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "1MB"}]},
        {"kind": "poisson", "load": 0.5},
    ],
    "strange key": {"a.b": [1, 2.5, True]},
}


def test_a_dict_reads_back_from_its_toml():
    assert tomllib.loads(scenarios.to_toml(SCENARIO)) == SCENARIO


@pytest.mark.parametrize("value", ["del \x7f", "line\nbreak", "µs – ≤", 1e-9, 10**12, [], {}, [[1], ["a"]]])
def test_a_value_reads_back_from_its_toml(value):
    assert tomllib.loads(f"v = {scenarios.value_to_toml(value)}")["v"] == value


@pytest.mark.parametrize(
    "scenario, named",
    [
        ({"seed": None}, "seed: a scenario cannot hold None, expected "),
        ({"transport": {"mtu": None}}, "transport.mtu: a scenario cannot hold None, expected "),
        ({"workload": [{"load": 1}, {"load": Decimal(1)}]}, "workload.1.load: .* of type Decimal, expected "),
        ({"a": {"b": [1, {"c": b"x"}]}}, "a.b.1.c: a scenario cannot hold b'x' of type bytes, expected "),
    ],
)
def test_what_toml_cannot_hold_is_refused_with_its_place(scenario, named):
    with pytest.raises(InputError, match=f"^{named}"):
        scenarios.to_toml(scenario)
    with pytest.raises(InputError, match=f"^set: {named}"):
        scenarios.settings(scenario)


def test_a_member_of_an_enumeration_of_texts_is_its_value():
    class Kind(str, enum.Enum):  # noqa: UP042 - a StrEnum has this text anyway
        SIZE = "20KB"

    assert scenarios.to_toml({Kind.SIZE: Kind.SIZE}) == '20KB = "20KB"\n'
    assert scenarios.settings({Kind.SIZE: [Kind.SIZE]}) == [("20KB", '["20KB"]')]


def test_numbers_and_arrays_of_numpy_are_written_as_those_of_python():
    numpy = pytest.importorskip("numpy")
    whole, text = numpy.int64(3), numpy.str_("5KB")
    given = [numpy.float64(0.3), numpy.float32(0.5), whole, numpy.bool_(True), text, numpy.array(0.4)]
    assert [scenarios.value_to_toml(value) for value in given] == ["0.3", "0.5", "3", "true", '"5KB"', "0.4"]
    assert scenarios.value_to_toml(numpy.linspace(0.3, 0.6, 2)) == "[0.3, 0.6]"
    assert scenarios.value_to_toml(numpy.array([[1, 2], [3, 4]])) == "[[1, 2], [3, 4]]"
    scenario = {"topology": {"hosts": whole}, "workload": [{"load": numpy.float64(0.4), "size": text}]}
    expected = {"topology": {"hosts": 3}, "workload": [{"load": 0.4, "size": "5KB"}]}
    assert tomllib.loads(scenarios.to_toml(scenario)) == expected


@pytest.mark.parametrize("scenario", [None, [1], 5, b"fabric.toml"])
def test_what_is_neither_a_path_nor_a_dict_is_refused(scenario):
    with pytest.raises(InputError, match="scenario: expected the path of a TOML file or a dict, found"):
        scenarios.load(scenario)
    with pytest.raises(InputError, match="scenario: expected the path of a TOML file or a dict, found"):
        weftline.sweep(scenario, {"workload.0.load": [0.3]})


def test_a_set_keeps_equal_signs_of_the_value():
    assert scenarios.parse_set("measure.queues.ports = a=b") == ("measure.queues.ports", "a=b")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (22_900, "22.9 KB"), (1_000_000, "1 MB"), (2.1e6, "2.1 MB")],
)
def test_bytes_are_written_in_powers_of_ten(value, text):
    assert quantities.bytes_text(value) == text


def test_bytes_are_read_with_their_unit():
    assert quantities.parse_bytes("200KB") == 200_000
    # Every text of three digits is the whole number that it says, also 64.1 KB.
    for size in range(100, 1000):
        for text, unit in ((f"{size / 10}KB", 100), (f"{size / 100}MB", 10_000)):
            assert int(quantities.parse_bytes(text)) == size * unit
    assert quantities.parse_bytes("32MiB") == 32 * 2**20
    with pytest.raises(InputError, match=r"a size below 2\^64 B, found 1\.0e\+23 B"):
        quantities.parse_bytes("99999999999TB")
    for wrong in ("200", "KB", "1.2.3KB", "5 parsecs"):
        with pytest.raises(InputError):
            quantities.parse_bytes(wrong)


@pytest.mark.parametrize(
    ("value", "text"), [(1.2345, "1.23"), (12.345, "12.3"), (0.0123, "0.0123"), (12345, "12,345")]
)
def test_numbers_have_three_significant_figures(value, text):
    assert quantities.digits(value) == text


@pytest.mark.parametrize("named", ["job.0.et", "job"])
def test_chakra_files_of_all_ranks_and_process_groups_are_part_of_a_runs_key(tmp_path, named):
    folder = str(tmp_path)
    resolved = f'[[workload]]\nkind = "job-file"\nfile = "{named}"\ngroups = "groups.json"\n'
    source = scenarios.Source(text=resolved, file="s.toml", base_dir=folder)

    def key(**content):
        for name, text in {"job.0.et": "a", "job.1.et": "b", "groups.json": "{}", **content}.items():
            (tmp_path / name).write_text(text)
        return content_key(resolved, source), provenance.of(resolved, source)

    found = [key(), key(**{"job.0.et": "c"}), key(**{"job.1.et": "c"}), key(**{"groups.json": "[]"})]
    assert [len(set(part)) for part in zip(*found, strict=True)] == [4, 4] and key() == found[0]


@pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
def test_a_stored_job_of_several_files_runs_again_from_any_folder(tmp_path, monkeypatch):
    for name in ("job.0.et", "job.1.et"):
        (tmp_path / name).write_bytes(b"\x07\x0a\x050.0.4\x06\x08\x01\x18\x04\x38\x05")
    (tmp_path / "groups.json").write_text('{"1": [0, 1]}')
    scenario = tmp_path / "s.toml"
    job = '[[workload]]\nkind = "job-file"\nfile = "job"\ngroups = "groups.json"\n'
    scenario.write_text(f'[topology]\nkind = "star"\nhosts = 2\n{job}')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    first = weftline.run(scenario, out="first")
    again = weftline.run("first/scenario.toml", out="again")
    assert again.summary["fingerprint"] == first.summary["fingerprint"]
    assert (first.out / "scenario.toml").read_text() == (again.out / "scenario.toml").read_text()


@pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_a_trace_in_parquet_is_read_or_its_compression_is_named(tmp_path, compression):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    flow = arrow.table({"src": [0], "dst": [1], "size_bytes": [5000], "start_ns": [0]})
    parquet.write_table(flow, tmp_path / "t.parquet", compression=compression)
    scenario = {
        "topology": {"kind": "star", "hosts": 2, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "workload": [{"kind": "trace", "file": str(tmp_path / "t.parquet")}],
    }
    if compression in ("lz4", "brotli"):
        with pytest.raises(InputError, match=r"compression .* is not read, expected none, snappy"):
            weftline.Scenario(scenario)
    else:
        assert weftline.Scenario(scenario).check()


def test_the_fastest_network_of_the_uec_needs_the_buffer_that_its_row_names():
    page = Path(__file__).parents[2] / "docs" / "scenario.md"
    row = next(line for line in page.read_text("utf-8").splitlines() if "| `uec-8192-200g`" in line)
    job = {"kind": "incast", "senders": 16, "size": "2MB"}

    def load(rate, **switch):
        return weftline.Scenario(
            {"topology": {"preset": f"uec-8192-{rate}"}, "switch": switch, "workload": [job]}
        )

    load("200g")
    load("400g")
    with pytest.raises(InputError, match="headroom"):
        load("800g")
    assert '`preset = "uec-port-800g"`' in row and '`buffer = "64MiB"`' in row
    load("800g", preset="uec-port-800g")
    load("800g", buffer="64MiB")


def test_a_file_named_like_a_built_in_table_of_sizes_is_not_of_the_run(tmp_path):
    (tmp_path / "websearch").write_text("1000 0\n2000 1\n")
    text = '[topology]\nkind = "star"\n[[workload]]\nkind = "poisson"\nsizes = "websearch"\ncount = 5\n'
    assert scenarios.files_by_key(text, str(tmp_path)) == {}
    (tmp_path / "mine.toml").write_text(text)
    run = weftline.run(tmp_path / "mine.toml", out=tmp_path / "run")
    assert run.scenario["workload"][0]["sizes"] == "websearch" and run.summary["provenance"]["files"] == {}
    again = weftline.run(tmp_path / "run" / "scenario.toml", out=tmp_path / "again")
    assert again.summary["fingerprint"] == run.summary["fingerprint"]
