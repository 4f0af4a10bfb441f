"""Wrong input of fairness scenarios: an error before anything runs, with file, line and key."""

import pytest

from weftline.cli.main import main

SCENARIO = """\
name = "fair"
[topology]
kind = "dumbbell"
groups = GROUPS
host_link = { rate = "1Gbps" }
bottleneck_link = { rate = "100Mbps", delay = "10ms" }
[switch]
pfc = { enabled = false }
[[switch.port]]
match = "s0->s1"
queue = QUEUE
[transport]
kind = "tcp"
controller = { kind = "CONTROLLER" }
[[workload]]
kind = "bulk"
HOSTS
[run]
until = "1s"
"""
RIGHT = {
    "GROUPS": '[{ hosts = 2, delay = "1ms" }, { hosts = 1, delay = "2ms" }]',
    "QUEUE": '{ kind = "cebinae", packets = 100 }',
    "CONTROLLER": "newreno",
    "HOSTS": 'hosts = "0-2"\nto = "3-5"',
}


def check(tmp_path, capsys, **changes):
    """Check a scenario with some of it replaced; the exit status and all output."""
    text = SCENARIO
    for key, value in {**RIGHT, **changes}.items():
        text = text.replace(key, value)
    path = tmp_path / "s.toml"
    path.write_text(text)
    status = main(["check", str(path)])
    output = capsys.readouterr()
    return status, output.out + output.err


def test_what_is_right_is_taken_without_a_warning(tmp_path, capsys):
    status, output = check(tmp_path, capsys)
    assert status == 0 and "warnings  none" in output


@pytest.mark.parametrize("key", ["tax", "port_slack", "flow_slack"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "0 is not in (0, 1]"),
        ("1.5", "expected a number from 0 to 1, found 1.5"),
        ("-0.01", "expected a number from 0 to 1, found -0.01"),
    ],
)
def test_thresholds_are_above_0_and_at_most_1(tmp_path, capsys, key, value, expected):
    queue = f'{{ kind = "cebinae", packets = 100, {key} = {value} }}'
    status, output = check(tmp_path, capsys, QUEUE=queue)
    assert status == 2 and f"s.toml:11: switch.port.0.queue.{key}: {expected}" in output


def test_a_threshold_of_1_is_taken(tmp_path, capsys):
    queue = '{ kind = "cebinae", packets = 100, tax = 1, port_slack = 1, flow_slack = 1 }'
    assert check(tmp_path, capsys, QUEUE=queue)[0] == 0


def test_a_round_is_longer_than_the_deadline_of_control(tmp_path, capsys):
    queue = '{ kind = "cebinae", packets = 100, round = "1ms", deadline = "2ms" }'
    status, output = check(tmp_path, capsys, QUEUE=queue)
    assert status == 2
    assert "switch.port.0.queue.round: 1ms is shorter than control needs, 2ms (deadline) and 1ns" in output
    assert "set a longer round, or a shorter deadline" in output


def test_a_buffer_that_cannot_drain_in_a_round_is_a_warning(tmp_path, capsys):
    queue = '{ kind = "cebinae", packets = 1000, round = "60ms" }'
    status, output = check(tmp_path, capsys, QUEUE=queue)
    assert status == 0
    assert "cannot drain in a round of 60ms: it needs 120ms" in output
    assert "set a longer round or a smaller buffer" in output


def test_an_unknown_controller_is_reported_with_the_nearest(tmp_path, capsys):
    status, output = check(tmp_path, capsys, CONTROLLER="cubbic")
    assert status == 2
    assert (
        's.toml:14: transport.controller.kind: unknown controller "cubbic": did you mean "cubic"?' in output
    )


@pytest.mark.parametrize("name", ["FqCodelQueueDisc", "fqcodel", "FIFO"])
def test_a_misspelt_discipline_is_an_error_and_never_a_silent_default(tmp_path, capsys, name):
    status, output = check(tmp_path, capsys, QUEUE=f'{{ kind = "{name}" }}')
    assert status == 2
    assert f's.toml:11: switch.port.0.queue.kind: unknown queue "{name}"' in output and "fq-codel" in output


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"GROUPS": '[{ hosts = 0, delay = "1ms" }]'},
            "s.toml:4: topology.groups: group 0: hosts: expected 1 to 1000000, found 0",
        ),
        ({"HOSTS": 'hosts = ""\nto = "3"'}, "s.toml:17: workload.0.hosts"),
        ({"HOSTS": 'hosts = "0-2"\nto = "3-4"'}, "2 receivers for 3 senders: expected equal numbers"),
        ({"HOSTS": 'hosts = "0-2"\nto = "6-8"'}, "s.toml:18: workload.0.to"),
        ({"HOSTS": "flows_per_pair = 0"}, "s.toml:17: workload.0.flows_per_pair"),
    ],
)
def test_groups_without_flows_are_reported(tmp_path, capsys, changes, expected):
    status, output = check(tmp_path, capsys, **changes)
    assert status == 2 and expected in output


def test_a_sender_that_the_hash_does_not_know_is_still_a_number(tmp_path, capsys):
    status, output = check(tmp_path, capsys, QUEUE='{ kind = "fq-codel", ns3_senders = -1 }')
    assert status == 2 and "switch.port.0.queue.ns3_senders: expected" in output


def test_each_of_several_warnings_has_its_line(tmp_path, capsys):
    path = tmp_path / "s.toml"
    cut = "".join(f'[[failures.event]]\nat = "{at}"\nlink = ["host3", "s0"]\n' for at in ("0us", "1us"))
    path.write_text(f'[topology]\nkind = "star"\nhosts = 4\n[[workload]]\nkind = "permutation"\n{cut}')
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = lines[lines.index("warnings:") + 1 :]
    begins = [line for line in listed if line.startswith("  failures: ")]
    assert len(begins) >= 2 and any("no path leads" in line for line in begins)
