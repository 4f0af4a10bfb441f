"""A collector that continues from a checkpoint: the summary states what is older, and other files stay."""

import socket
import struct
import time

import pytest

import weftline
from weftline.cli.collect import _summary


def _collected(tmp_path, first, **options):
    """Collect four reports without a packet, of node 7."""
    with weftline.collecting(listen="udp:127.0.0.1:0", interval_s=0.2, **options) as collector:
        port = int(collector.inputs[0].rsplit(":", 1)[1])
        before = collector.status()["packets"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for sequence in range(first, first + 4):
                head = struct.pack("!II", 2 << 28 | sequence, 7)
                values = struct.pack("!HHHHI", 0x2000, 0, 0, 0, 1000)
                report = head + bytes([0x10, 3, 1, 0]) + values
                sender.sendto(report, ("127.0.0.1", port))
        end = time.monotonic() + 20
        while collector.status()["packets"] < before + 4:
            assert time.monotonic() < end
            time.sleep(0.02)
    return collector.found.summary


def test_a_continued_collector_states_what_came_before_its_checkpoint(tmp_path):
    checkpoint = tmp_path / "site.1"
    (tmp_path / "site.new").write_text("of another collector")
    first = _collected(tmp_path, 0, checkpoint=checkpoint)
    assert first["packets_before"] == 0 and "before the checkpoint" not in _summary(first)
    second = _collected(tmp_path, 4, checkpoint=checkpoint, out=tmp_path / "out")
    assert (second["counts"]["packets"], second["packets_before"]) == (8, 4)
    assert "4 of the packets came before the checkpoint" in _summary(second)
    assert (tmp_path / "site.new").read_text() == "of another collector"


def test_a_folder_is_of_one_collector_at_a_time_and_of_no_run(tmp_path):
    with weftline.collecting(listen="udp:0", out=tmp_path / "out"):
        with pytest.raises(weftline.InputError, match="out: another collector writes there"):
            weftline.collecting(listen="udp:0", out=tmp_path / "out")
        with weftline.collecting(listen="udp:0", out=tmp_path / "other"):
            pass
    with weftline.collecting(listen="udp:0", out=tmp_path / "out"):
        pass
    run = tmp_path / "run"
    run.mkdir()
    for name in ("scenario.toml", "flows.parquet"):
        (run / name).touch()
    with pytest.raises(weftline.InputError, match="run: holds the results of a run"):
        weftline.collecting(listen="udp:0", out=run)
    assert len(list(run.iterdir())) == 2
