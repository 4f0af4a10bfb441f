"""`weftline why`: causes that add up, links that limit a run, results that the scenario does not give."""

import json
import shutil

import pytest

native = pytest.importorskip("weftline._native")

import weftline  # noqa: E402
from weftline import columns  # noqa: E402
from weftline.cli.main import main  # noqa: E402
from weftline.cli.why import _lost_text, _pauses_text, _ranges_text, _timeouts_text  # noqa: E402
from weftline.measures import held_flows  # noqa: E402
from weftline.runs import Run  # noqa: E402

INCAST = """
name = "incast"
seed = 3
[topology]
kind = "star"
hosts = 5
[[workload]]
kind = "incast"
senders = 4
receiver = 0
size = "50KB"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("why")
    (folder / "incast.toml").write_text(INCAST)
    assert main(["run", str(folder / "incast.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


def test_the_causes_of_every_flow_add_up(run, capsys):
    assert main(["why", str(run), "--slowest", "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["flows"]) == 4
    for flow in answer["flows"]:
        assert sum(part["ps"] for part in flow["causes"]) == flow["fct_ps"]
        at = flow["start_ps"]
        for part in flow["intervals"]:
            assert part["from_ps"] == at < part["to_ps"]
            at = part["to_ps"]
        assert at == flow["start_ps"] + flow["fct_ps"]
    slowest = answer["flows"][0]
    assert slowest["worst_queue"]["link"] == answer["links"][0]["link"] == "s0->host0"
    assert slowest["flow"] not in {one["flow"] for one in slowest["worst_queue"]["shared"]}


def test_one_flow_as_text_and_the_links_of_a_run(run, capsys):
    assert main(["why", str(run), "--flow", "2"]) == 0
    text = capsys.readouterr().out
    assert (
        text.startswith("flow 2: 50 KB from host")
        and "completion time" in text
        and "worst queue: s0->host0" in text
    )
    assert main(["why", str(run)]) == 0
    text = capsys.readouterr().out
    assert "links that the 4 flows of the largest slowdown waited for" in text and "s0->host0" in text


def test_a_run_of_the_lab_cannot_be_asked(run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "lab")
    summary = json.loads((tmp_path / "lab" / "summary.json").read_text())
    (tmp_path / "lab" / "summary.json").write_text(
        json.dumps({**summary, "engine": "lab", "fingerprint": None})
    )
    native.write_digests(str(tmp_path / "lab"))
    assert main(["why", str(tmp_path / "lab")]) != 0
    text = capsys.readouterr().err
    assert "a run of the lab cannot be asked" in text and "scenario.toml" in text
    assert "fingerprint" not in text


SLOW = """
seed = 3
[topology]
kind = "star"
hosts = 3
host_link = { rate = "100Gbps", delay = "1us" }
[transport]
controller = { kind = "none" }
[[workload]]
kind = "flows"
flows = [{ src = 1, dst = 0, size = "1MB" }]
[[failures.event]]
"""


def why_text(tmp_path, capsys, event, *options):
    (tmp_path / "slow.toml").write_text(SLOW + event)
    folder = str(tmp_path / "run")
    assert main(["run", str(tmp_path / "slow.toml"), "--out", folder, "--quiet", "--force"]) == 0
    capsys.readouterr()
    assert main(["why", folder, *options]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_links_are_named_for_own_queues_and_for_lost_packets(tmp_path, capsys):
    slow = 'at = "0us"\nlink = ["host0", "s0"]\nchange = "rate"\nrate = "10Gbps"\n'
    assert "s0->host0 own queue 1 flow" in why_text(tmp_path, capsys, slow)
    down = 'at = "20us"\nlink = ["host0", "s0"]\nlasts = "100us"\n'
    text = why_text(tmp_path, capsys, down)
    assert "Not at a link: timeout" in text and "Packets were lost at: s0->host0 (" in text
    text = why_text(tmp_path, capsys, down, "--flow", "0")
    assert "– timeout" in text and "Packets were lost at: s0->host0 (" in text


def test_a_page_shows_the_chain(run, tmp_path, capsys):
    page = tmp_path / "why.html"
    assert main(["why", str(run), "--flow", "2", "--out", str(page)]) == 0
    text = page.read_text()
    assert 'class="chain"' in text and "queue of others" in text and "s0-&gt;host0" in text


UNFINISHED = """
seed = 3
[topology]
kind = "star"
hosts = 4
[run]
until = "50us"
[transport]
controller = { kind = "none" }
[[workload]]
kind = "flows"
flows = [{ src = 1, dst = 0, size = "10KB" }, { src = 2, dst = 3, size = "10MB" }]
"""


def test_flows_that_had_not_finished_are_counted(tmp_path, capsys):
    (tmp_path / "short.toml").write_text(UNFINISHED)
    folder = str(tmp_path / "run")
    assert main(["run", str(tmp_path / "short.toml"), "--out", folder, "--quiet"]) == 0
    left_out = "1 of 2 flows had not finished when the run ended and are left out"
    fewer = "1 flow had finished, fewer than the 2 that --slowest asks for"

    def text(*options):
        capsys.readouterr()
        assert main(["why", folder, *options]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert left_out in text() and fewer not in text()
    assert left_out in text("--slowest", "2") and fewer in text("--slowest", "2")
    answer = json.loads(text("--slowest", "2", "--json"))
    assert (answer["left_out"], answer["finished"], answer["unfinished"]) == (0, 1, 1)
    answer = json.loads(text("--group", "flows", "--json"))
    assert (answer["finished"], answer["unfinished"]) == (1, 1)
    page = tmp_path / "why.html"
    text("--slowest", "2", "--out", str(page))
    assert left_out in " ".join(page.read_text().split())
    assert "finished" not in json.loads(text("--flow", "0", "--json"))


JOB = """
[topology]
kind = "rail"
nodes = 2
gpus = 2
spines = 1
[[workload]]
kind = "collective"
operation = "all-reduce"
algorithm = "hierarchical"
scale_up_rate = "900Gbps"
bytes = "4KB"
"""


def test_numbers_of_messages_within_a_domain_are_not_among_those_of_flows(tmp_path, capsys):
    (tmp_path / "job.toml").write_text(JOB)
    folder = str(tmp_path / "run")
    assert main(["run", str(tmp_path / "job.toml"), "--out", folder, "--quiet"]) == 0
    found = Run.read(folder).flows.to_dicts()
    first, last = (of(row["flow_id"] for row in found) for of in (min, max))
    assert first > 0 and last - first + 1 == len(found)
    assert main(["why", folder, "--flow", "0"]) == 2
    assert f"flow 0: the run has no such flow; its flows are {first} to {last}\n" in capsys.readouterr().err


def test_ranges_of_numbers():
    assert _ranges_text([3, 0, 1, 7]).startswith("0 to 1, 3, 7; messages within")
    assert _ranges_text(range(4)) == "0 to 3"
    assert _ranges_text(range(0, 20, 2)).startswith("0, 2, 4, 6, ..., 18;")


def test_what_cannot_be_answered_is_refused(run, tmp_path, capsys):
    assert main(["why", str(run), "--flow", "99"]) == 2
    assert "its flows are 0 to 3" in capsys.readouterr().err
    assert main(["why", str(run), "--group", "storage"]) == 2
    assert "no such group" in capsys.readouterr().err
    for link, hint in [
        ("s0->host9", 'the network has no link "s0->host9": did you mean "s0->host0"?'),
        ("a->b", 'the network has no link "a->b": links are written like "host0->s0"'),
        ("s0", 'the network has no link "s0"'),
        ("s0->host1", 'flows waited at the link "s0->host1": they waited at s0->host0'),
    ]:
        assert main(["why", str(run), "--link", link]) == 2
        assert hint in " ".join(capsys.readouterr().err.split())
    assert main(["why", str(tmp_path)]) == 2
    text = (run / "scenario.toml").read_text().replace("seed = 3", "seed = 4").replace("50KB", "60KB")
    stored = json.loads((run / "summary.json").read_text())["fingerprint"]
    with pytest.raises(native.InputError, match="other results than those that are stored"):
        native.Scenario(text, "scenario.toml", str(run)).why(stored)


def test_timeouts_and_switches_without_a_route_are_named():
    flow = {
        "timeouts": [{"until": "until the receiver asked", "ps": 1_000_000_000}],
        "lost": [
            {"at": "leaf0", "packets": 40, "answers": 0, "no_route_to": "host1", "since_ps": 5_000_000_000},
            {"at": "leaf0->spine0", "packets": 2, "answers": 0},
        ],
    }
    assert _timeouts_text([flow, flow]) == "Timeouts: 2 ms until the receiver asked."
    assert _lost_text([flow]) == (
        "Packets were lost at: leaf0, which had no route to host1 from 5 ms on (40), leaf0->spine0 (2)."
    )
    assert _timeouts_text([{"timeouts": []}]) == ""


def test_the_ports_that_pauses_go_back_to_are_named_with_their_times():
    flow = {
        "pauses": [
            {"link": "host0->leaf0", "queue_at": "leaf1->host3", "ps": 3_000_000},
            {"link": "host0->leaf0", "queue_at": None, "ps": 1_000_000},
            {"link": "leaf0->spine0", "queue_at": "leaf1->host3", "ps": 2_000_000},
        ]
    }
    assert _pauses_text([flow]) == (
        "Pauses go back to the queue at: leaf1->host3 (5 us), no known queue (1 us)."
    )
    assert _pauses_text([{"pauses": []}]) == ""


def test_lost_answers_are_named_as_such():
    lost = [
        {"at": "leaf0->spine0", "packets": 127, "answers": 127},
        {"at": "spine0->leaf0", "packets": 24, "answers": 5},
    ]
    assert _lost_text([{"lost": lost}]) == (
        "Packets were lost at: leaf0->spine0 (127 acknowledgements or other answers), "
        "spine0->leaf0 (24, of which 5 were acknowledgements or other answers)."
    )


def held_flow(number, waits, used=(), **more):
    return {
        "flow": number,
        "fct_ps": 1_000_000_000,
        "waits": [{"link": link, "cause": cause, "ps": ps} for link, cause, ps in waits],
        "used": [{"link": link, "share": share} for link, share in used],
        **more,
    }


def test_the_busiest_link_is_named_where_flows_wait_for_their_own_control():
    paced = [(None, "pacing", 600_000_000), ("host0->s0", "NIC shared", 10_000_000)]
    flow = held_flow(0, paced, [("host0->s0", 0.5), ("s0->s1", 0.95), ("s1->host2", 0.6)])
    of = held_flows.held([flow, flow])
    assert (of["control_ps"], of["at_links_ps"], of["outweighs"]) == (1_200_000_000, 20_000_000, True)
    assert [(one["link"], one["flows"], one["used"]) for one in of["links"]] == [("s0->s1", 2, 0.95)]
    text = held_flows.text([flow, flow])
    assert text.startswith("These 2 flows waited 1 % of their time for links, and 60 % for other reasons")
    assert text.endswith(
        "The busiest link of their paths, to which their senders adapt, was: s0->s1 (used 95 %, 2 flows)."
    )
    idle = held_flow(0, paced, [("s0->s1", 0.04), ("s1->host2", 0.03)])
    assert "s0->s1, the busiest, was used 4 %): its own control is the limit" in held_flows.text([idle])
    lossy = held_flow(0, paced, [("s0->s1", 0.04)], lost=[{"at": "s0->s1", "packets": 3}])
    assert held_flows.text([lossy]).endswith(
        "its own control is the limit, which lost packets slow down if it reacts to them."
    )
    answers = [{"at": "s1->s0", "packets": 3, "answers": 3}]
    assert held_flows.text([lossy | {"lost": answers}]).endswith("the limit, and not a link.")
    queued = held_flow(0, [("s0->s1", "own queue", 2_000_000), (None, "window", 1_000_000)])
    assert held_flows.text([queued]) == ""


def test_flows_on_idle_paths_do_not_adapt_to_a_link_although_another_flow_does():
    waits = [(None, "window", 900_000_000)]
    idle = [held_flow(number, waits, [(f"s0->host{number}", 0.004)]) for number in (1, 2, 3)]
    full = held_flow(4, [(None, "window", 500_000_000)], [("s0->host4", 0.93), ("host0->s0", 0.01)])
    assert held_flows.text([*idle, full]).endswith(
        "No link of the paths of 3 of them was busy while they ran (s0->host1, the busiest, was used 0.4 %): "
        "their own control is the limit, and not a link. The busiest link of the path of 1 of them, to which "
        "its sender adapts, was: s0->host4 (used 93 %)."
    )
    # Flows that are held for a short time compared with the others do not have a sentence.
    short = held_flow(5, [(None, "window", 1_000_000)], [("s0->host5", 0.95)])
    assert held_flows.text([*idle, short]).endswith("and not a link.")
    # A path with room is neither idle nor full.
    room = held_flow(6, waits, [("s0->host6", 0.6)])
    assert held_flows.text([full, room]).endswith(
        "The busiest link of the path of 1 of them was: s0->host6 (used 60 %); no link was full, so its own "
        "control, or the rate of an application, may limit it. The busiest link of the path of 1 of them, to "
        "which its sender adapts, was: s0->host4 (used 93 %)."
    )


def test_a_sender_adapts_to_no_link_with_room():
    """An application of 0.5 Gb/s on a link of 10 that others use for 73 %."""
    slow = held_flow(0, [(None, "pacing", 900_000_000)], [("host0->s0", 0.05), ("s0->host3", 0.78)])
    assert held_flows.text([slow]).endswith(
        "The busiest link of its path was: s0->host3 (used 78 %); no link was full, so its own control, or "
        "the rate of an application, may limit it."
    )


def test_a_sender_whose_application_has_a_rate_does_not_adapt_to_a_link():
    paced = held_flow(0, [(None, "pacing", 900_000_000)], [("s0->host1", 0.94)], application=True)
    assert held_flows.text([paced]).endswith(
        "The busiest link of its path was: s0->host1 (used 94 %); the rate of an application (app_rate, "
        "app_read_rate) may limit it, as well as a link."
    )


def test_flows_whose_transport_has_a_rate_of_the_application_are_marked(tmp_path):
    tcp = {"kind": "tcp", "app_rate": "5Gbps"}
    flows = [{"src": 0, "dst": 1, "size": "100KB"}]
    run = weftline.run(
        {
            "topology": {"kind": "star", "hosts": 4},
            "workload": [
                {"kind": "flows", "flows": flows, "transport": tcp},
                {"kind": "flows", "flows": flows},
            ],
        },
        out=tmp_path / "r",
    )
    answer = [{"flow": 0}, {"flow": 1}]
    held_flows.mark_applications(run, answer)
    kinds = dict(zip(*columns.read(run.flows, ("flow_id", "transport")).values(), strict=True))
    assert [one.get("application", False) for one in answer] == [kinds[n] == "tcp" for n in (0, 1)]


def test_of_links_in_a_row_that_are_as_busy_the_one_with_the_queue_is_named():
    waits = [
        ("s0->s1", "own queue", 30_000_000),
        ("s1->s2", "own queue", 1_000),
        (None, "pacing", 500_000_000),
    ]
    flow = held_flow(0, waits, [("host0->s0", 0.5), ("s0->s1", 0.95), ("s1->s2", 0.96)])
    assert [one["link"] for one in held_flows.held([flow])["links"]] == ["s0->s1"]


def test_a_nic_that_sends_packets_again_waits_for_the_port_that_trimmed_them():
    flow = held_flow(
        0,
        [("host4->leaf1", "NIC shared", 500_000_000), (None, "retransmission", 300_000_000)],
        [("host4->leaf1", 0.99), ("leaf1->spine0", 0.97), ("leaf0->host0", 0.4)],
        nic_again_ps=450_000_000,
        trimmed=[{"at": "leaf1->spine0", "packets": 34_000}],
    )
    of = held_flows.held([flow])
    assert (of["again_ps"], of["at_links_ps"], of["outweighs"]) == (750_000_000, 50_000_000, True)
    assert [one["link"] for one in of["links"]] == ["leaf1->spine0"]
    assert held_flows.text([flow]).endswith("Packets were trimmed at: leaf1->spine0 (34,000).")


PACED = """
[topology]
kind = "dumbbell"
left = 2
right = 2
[[workload]]
kind = "bulk"
hosts = "0-1"
to = "2-3"
size = "2MB"
"""


def test_a_run_of_paced_flows_names_their_shared_link_first(tmp_path, capsys):
    (tmp_path / "paced.toml").write_text(PACED)
    assert main(["run", str(tmp_path / "paced.toml"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["why", str(tmp_path / "run")]) == 0
    lead, _, rest = capsys.readouterr().out.partition("\n\n")
    lead = " ".join(lead.split())
    assert lead.startswith("These 2 slowest flows waited ")
    assert "to which their senders adapt, was: s0->s1 (used 9" in lead
    assert rest.startswith("links that the 2 flows")
