"""Plans of PINT from Python and from the command line: queries, codes, predicted accuracy, layouts."""

from __future__ import annotations

import itertools
import json

import pytest

native = pytest.importorskip("weftline._native", reason="the native module is not built")
if not hasattr(native, "Plan"):
    pytest.skip("the native module is not built", allow_module_level=True)

from pint_files import PATHS, QUERIES, one_query, output_of, shown  # noqa: E402

from weftline import pint  # noqa: E402
from weftline.errors import InputError  # noqa: E402


def test_a_plan_is_printed_written_and_read_again(here, capsys):
    assert "0.9375" in output_of(capsys, "pint", "plan", "queries.toml", "--out", "plan.toml").out
    plan, again = pint.Plan.open("queries.toml"), pint.Plan.open("plan.toml")
    assert plan.version == again.version and plan.values == ["hop-latency", "utilisation"]
    facts = json.loads(output_of(capsys, "pint", "plan", "plan.toml", "--json").out)
    assert facts["version"] == f"{plan.version:08x}" and facts == plan.facts()
    changed = (here / "plan.toml").read_text().replace("seed = 5", "seed = 6")
    with pytest.raises(InputError, match="it was changed after planning"):
        pint.Plan(changed, name="plan.toml")


def test_wrong_queries_name_the_line_and_the_nearest_name(here, capsys):
    (here / "wrong.toml").write_text(QUERIES.replace("hop-latency", "hop-latancy"))
    error = output_of(capsys, "pint", "plan", "wrong.toml", status=2).err
    assert "wrong.toml:7" in error and 'did you mean "hop-latency"' in error
    (here / "narrow.toml").write_text(QUERIES.replace("bits = 16", "bits = 8", 1))
    error = output_of(capsys, "pint", "plan", "narrow.toml", status=2).err
    assert "do not fit a digest of 8 bits" in error and "frequencies" in error
    assert "absent.toml" in output_of(capsys, "pint", "plan", "absent.toml", status=2).err


def test_one_packet_is_encoded_hop_by_hop(here, capsys):
    plan = pint.Plan.open("queries.toml")
    hops = [{"hop-latency": 810, "utilisation": 100}, {"hop-latency": 90, "utilisation": 700}]
    digests = plan.encode(packet_id=7, hops=hops)
    arguments = [f"hop-latency={hop['hop-latency']},utilisation={hop['utilisation']}" for hop in hops]
    parts = [part for text in arguments for part in ("--hop", text)]
    found = json.loads(
        output_of(capsys, "pint", "encode", "queries.toml", "--packet", "7", *parts, "--json").out
    )
    assert found == {"packet_id": 7, "queries": plan.serves(7), "digests": digests, "loop_hop": None}
    assert all(digest < 2**16 for digest in digests)
    error = output_of(
        capsys, "pint", "encode", "queries.toml", "--packet", "7", "--hop", "latency=3", status=2
    ).err
    assert 'hop 1: "hop-latency" is missing' in error
    with pytest.raises(InputError, match="packet_id"):
        plan.encode(packet_id=-1, hops=hops)


def test_a_value_that_fragments_would_cut_is_refused(here, capsys):
    more = 'blocks = "fragments"\nvalue-bits = 2'
    one_query(here, value="switch-id", aggregation="path", more=more)
    plan = pint.Plan.open("one.toml")
    with pytest.raises(InputError, match="hop 2: switch-id: 5 has 3 bits, and query q writes 2"):
        plan.encode(packet_id=7, hops=[{"switch-id": 3}, {"switch-id": 5}])
    printed = shown(here, capsys, [(1, 2, 3)] * 300, "--topology", "line.gml")
    assert "q: the topology has switches up to 5: 5 has 3 bits" in printed.err


def test_numbers_beyond_the_codes_are_not_errors_of_the_plan(here, capsys):
    one_query(here, value="queue-bytes", aggregation="sum", more="largest = 10000")
    tried = ["pint", "accuracy", "one.toml", "--hops", "1,5", "--trials", "100"]
    one, five = json.loads(output_of(capsys, *tried, "--json").out)["queries"][0]["lengths"]
    # The law has a median of 28 KB at the first hop; codes end at 30 KB, of three hops.
    assert one["packets"] > 100 and one["at_ceiling"] > 100
    assert one["mean_relative_error"] < 0.1 and abs(one["bias"]) < 0.05
    assert five["at_ceiling"] > 950
    assert "more have the largest code and are left out" in output_of(capsys, *tried).out
    more = "largest = 2000\nquantiles = [0.1, 0.99]"
    one_query(here, value="hop-latency", aggregation="quantiles", more=more)
    found = json.loads(output_of(capsys, *tried, "--json").out)["queries"][0]["lengths"][0]["sizes"][-1]
    low, high = found["quantiles"]
    assert low["beyond_codes"] == 0 and low["mean_relative_error"] < 0.3
    assert high["beyond_codes"] == 1 and high["mean_relative_error"] is None
    assert "quantile 0.99 is beyond the largest code" in output_of(capsys, *tried).out


def test_a_product_multiplies(here, capsys):
    one_query(here, value="utilisation", aggregation="product", bits=16)
    found = json.loads(output_of(capsys, "pint", "accuracy", "one.toml", "--json").out)
    (length,) = found["queries"][0]["lengths"]
    assert length["mean_relative_error"] < 0.001
    one_query(here, value="utilisation", aggregation="product", bits=16, more='approximation = "exact"')
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert "one.toml:3: query.q: a product adds the logarithms of the hops' values" in error


def test_predicted_errors_of_quantiles_are_those_of_a_trial(here):
    more = "approximation = { epsilon = 0.0025 }"
    one_query(here, value="hop-latency", aggregation="quantiles", bits=12, more=more)
    plan = pint.Plan.open("one.toml")
    (length,) = pint.accuracy(plan, trials=1000, seed=2)["queries"][0]["lengths"]
    tried = {(size["packets"], q["quantile"]): q for size in length["sizes"] for q in size["quantiles"]}
    predicted = plan.facts()["queries"][0]["prediction"]
    assert predicted["sketch_k"] == 200
    for error in predicted["errors"]:
        if found := tried.get((error["packets"], error["quantile"])):
            assert error["sketch_rank_error"] == pytest.approx(0.0133, rel=0.01)
            assert found["mean_relative_error"] == pytest.approx(error["relative_error"], rel=0.25)


def test_what_the_command_line_cannot_mean_is_refused(here, capsys):
    twice = "hop-latency=1,utilisation=3,hop-latency=2"
    encode = ["pint", "encode", "queries.toml", "--packet", "7", "--hop", twice]
    assert f'--hop: "hop-latency" is given twice in "{twice}"' in output_of(capsys, *encode, status=2).err
    (here / "net.bin").write_bytes(b"\0\1")
    (here / "digests.csv").write_text("packet_id,digest,hops,plan_version\n")
    decode = ["pint", "decode", "digests.csv", "--plan", "queries.toml", "--topology", "net.bin"]
    error = output_of(capsys, *decode, status=2).err
    assert error.startswith("error: topology: expected a file that ends in .toml, ") and '"net.bin"' in error
    more = "approximation = { epsilon = 0.05, base = 1.1 }"
    one_query(here, value="hop-latency", aggregation="max", more=more)
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert "query.q.approximation: expected only one of epsilon, base and delta" in error


def test_accuracy_is_that_of_the_plan(here, capsys):
    found = json.loads(output_of(capsys, "pint", "accuracy", "queries.toml", "--trials", "50", "--json").out)
    latency, load = found["queries"]
    small, large = (size["quantiles"][0] for size in latency["lengths"][0]["sizes"])
    # 8 of the 16 bits are the load's on every packet, so the latency has the other 8 on every packet too.
    assert small["samples_per_hop"] == pytest.approx(1000 / 4, rel=0.05)
    assert large["mean_relative_error"] < small["mean_relative_error"] < 0.2
    assert load["lengths"][0]["mean_relative_error"] < 0.026
    assert found == pint.accuracy(pint.Plan.open("queries.toml"), trials=50)
    error = output_of(capsys, "pint", "accuracy", "queries.toml", "--hops", "13", status=2).err
    assert "hops: expected 1 to 12" in error


def test_accuracy_is_tried_on_the_paths_of_a_topology(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    ring = "".join(f"edge [ source {n} target {(n + 1) % 8} ]\n" for n in range(8))
    (here / "ring.gml").write_text(
        "graph [\n" + "".join(f"node [ id {n} ]\n" for n in range(8)) + ring + "]\n"
    )
    tried = ["pint", "accuracy", "paths.toml", "--topology", "ring.gml", "--trials", "300", "--json"]
    means = []
    for known in (["--ids-only"], [], ["--ends"], ["--shortest", "--ends"]):
        found = json.loads(output_of(capsys, *tried, *known).out)
        (length,) = found["queries"][0]["lengths"]
        assert (length["hops"], length["wrong"], length["given_up"]) == (3, 0, 0)
        means.append(length["mean_packets"])
    # Between two switches two links apart, a ring has one way: nothing is left to find out.
    assert means[0] > means[1] > means[2] == means[3] == 0
    line = output_of(capsys, "pint", "accuracy", "paths.toml", "--topology", "line.gml", "--hops", "2,3").out
    assert line.count("0 wrong") == 2

    assert "neither ends nor shortest" in output_of(capsys, *tried, "--ids-only", "--ends", status=2).err

    error = output_of(capsys, *tried[:-3], "--hops", "5,4,3", status=0)
    assert error.out.count("hops") == 3
    error = output_of(capsys, *tried[:3], "--topology", "line.gml", "--hops", "5", status=2).err
    assert "no shortest path of the topology has 5 switches; the longest has 3" in error
    error = output_of(capsys, *tried[:3], "--ends", status=2).err
    assert "needs --topology" in error
    error = output_of(capsys, *tried[:3], "--topology", "none.gml", status=2).err
    assert "none.gml" in error


class Draws:
    """The random numbers of `pint.accuracy`: splitmix64."""

    GOLDEN, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def __init__(self, seed):
        self.state = self._mix(seed)

    def _mix(self, x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & self.WORD
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & self.WORD
        return x ^ (x >> 31)

    def word(self):
        self.state = (self.state + self.GOLDEN) & self.WORD
        return self._mix(self.state)


def test_accuracy_names_its_decoder_and_is_that_of_a_collector_where_links_are_known(here):
    """Packets that are drawn as `pint.accuracy` draws them, given to a collector."""
    switches, trials, seed = 12, 25, 3
    (here / "paths.toml").write_text(
        PATHS.replace("ids = 3", "ids = 12").replace("maximal = 5", "maximal = 12")
    )
    nodes = "".join(f"node [ id {n} ]\n" for n in range(switches))
    edges = "".join(f"edge [ source {n} target {n + 1} ]\n" for n in range(switches - 1))
    (here / "chain.gml").write_text(f"graph [\n{nodes}{edges}]\n")
    plan = pint.Plan.open("paths.toml")
    tried = {"hops": [switches], "trials": trials, "seed": seed, "topology": "chain.gml"}
    known, pairs, linked = (
        pint.accuracy(plan, **tried, ids_only=ids_only, decoder=decoder)["queries"][0]["lengths"][0]
        for ids_only, decoder in ((True, None), (True, "collector"), (False, None))
    )
    assert [found["decoder"] for found in (known, pairs, linked)] == ["peeling", "collector", "collector"]
    assert [found["wrong"] for found in (known, pairs, linked)] == [0, 0, 0]

    def packets_of_a_collector(ids_only):
        draws, counts = Draws(seed), []
        for _ in range(trials):
            path = list(range(switches, 2 * switches))  # the nodes after the hosts, one a switch
            if draws.word() >> 63:  # which of the two ends comes first
                path.reverse()
            for _ in path[1:]:
                draws.word()  # a draw for each step back
            collector, packets, events = pint.Collector(plan, topology="chain.gml", ids_only=ids_only), 0, []
            while not events:
                packets += 1
                packet = draws.word()
                digest = plan.encode(packet_id=packet, hops=[{"switch-id": hop} for hop in path])[-1]
                assert collector.take(packet_id=packet, digest=digest, hops=switches, flow_id=1) is None
                events = collector.drain()["events"]
            counts.append(packets)
        return sum(counts) / trials

    assert linked["mean_packets"] == pytest.approx(packets_of_a_collector(False), rel=1e-12)
    assert pairs["mean_packets"] == pytest.approx(packets_of_a_collector(True), rel=1e-12)
    assert pairs["mean_packets"] < known["mean_packets"]
    assert pint.accuracy(plan, **tried, ids_only=True, decoder="peeling")["queries"][0]["lengths"] == [known]
    assert pint.accuracy(plan, **tried, decoder="collector")["queries"][0]["lengths"] == [linked]
    assert pint.accuracy(plan, hops=[3], trials=2)["queries"][0]["lengths"][0]["decoder"] == "peeling"


def test_a_collector_is_tried_on_random_paths_without_a_topology(here):
    """Paths that are drawn as `pint.accuracy` draws them, given to a collector that knows the ids."""
    hops, ids, trials, seed = 5, 40, 20, 7
    (here / "paths.toml").write_text(PATHS.replace("ids = 3", f"ids = {ids}"))
    links = [*itertools.combinations(range(ids), 2), (ids, 0), (ids + 1, 0)]
    lines = [f"{ids + 2} {ids} {len(links)}", " ".join(map(str, range(ids)))]
    (here / "pairs.txt").write_text("\n".join([*lines, *(f"{a} {b} 100Gbps 1us 0" for a, b in links)]) + "\n")
    plan = pint.Plan.open("paths.toml")
    (found,) = pint.accuracy(plan, hops=[hops], trials=trials, seed=seed, decoder="collector")["queries"]
    draws, counts = Draws(seed), []
    for _ in range(trials):
        path = []
        while len(path) < hops:
            if (number := draws.word() * ids >> 64) not in path:
                path.append(number)
        collector, packets, events = pint.Collector(plan, topology="pairs.txt"), 0, []
        while not events:
            packets += 1
            packet = draws.word()
            digest = plan.encode(packet_id=packet, hops=[{"switch-id": hop} for hop in path])[-1]
            collector.take(packet_id=packet, digest=digest, hops=hops, flow_id=1)
            events = collector.drain()["events"]
        counts.append(packets)
    (length,) = found["lengths"]
    assert length["decoder"] == "collector" and length["wrong"] == 0
    assert length["mean_packets"] == pytest.approx(sum(counts) / trials, rel=1e-12)


def test_a_choice_of_decoder_is_checked(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    tried = ["pint", "accuracy", "paths.toml", "--trials", "2"]
    error = output_of(capsys, *tried, "--decoder", "colector", status=2).err
    assert 'unknown decoder "colector": did you mean "collector"? (known: peeling, collector)' in error
    error = output_of(capsys, *tried, "--topology", "line.gml", "--decoder", "peeling", status=2).err
    assert "decoder peeling: it uses no links of a topology" in error
    error = output_of(capsys, *tried, "--hops", "5", "--decoder", "collector", status=2).err
    assert "expected as many ids in the query as hops, found 3 ids and 5 hops" in error
    assert "collector decoder" in output_of(capsys, *tried, "--hops", "3", "--decoder", "collector").out


def test_a_layout_says_how_many_stages_are_needed(here, capsys):
    assert "8 of 12 stages" in output_of(capsys, "pint", "layout", "queries.toml").out
    assert (
        "load does not fit"
        in output_of(capsys, "pint", "layout", "queries.toml", "--stages", "4", status=1).out
    )
    layout = json.loads(
        output_of(capsys, "pint", "layout", "queries.toml", "--stages", "4", "--json", status=1).out
    )
    assert layout["needed"] == 8 and layout["misfits"] == ["load"]


def test_vectors_are_written(here, capsys):
    output_of(capsys, "pint", "vectors", "--out", "vectors")
    functions = json.loads((here / "vectors" / "functions.json").read_text())
    assert functions == pint.vectors()["functions"]
    assert ["0x0", "0x0"] in functions["mix"]["cases"]
