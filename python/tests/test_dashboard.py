"""Each query of the Grafana dashboard finds data in a real Prometheus that scrapes a collector."""

import json
import shutil
import socket
import subprocess
import threading
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from test_collect_live import free_port, report, wait_for

import weftline
from weftline.live import OPTIONS

PACKAGING = Path(__file__).parents[2] / "packaging"
PANELS = json.loads((PACKAGING / "grafana-collect.json").read_text())["panels"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_the_configuration_file_has_only_options_that_exist():
    text = (PACKAGING / "collect.toml").read_text()
    assert set(tomllib.loads(text)) <= set(OPTIONS)
    # Those in comments too.
    lines = [line.removeprefix("# ") for line in text.splitlines()[1:]]
    assert {line.split(" = ")[0] for line in lines if " = " in line} <= set(OPTIONS)


def query(port: int, expression: str) -> list:
    parameters = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{parameters}", timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def test_every_query_of_the_dashboard_finds_data(tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (apt-get install prometheus)")
    port, own = free_port(), free_port()
    stop = threading.Event()

    def feed() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("127.0.0.1", port))
            number = 0
            while not stop.is_set():
                sender.send(report(number, number % 20, [1, 2 + number // 100 % 2, 4], queues=True))
                number += 1
                time.sleep(0.002)

    with weftline.collecting(listen=f"udp:{port}", prometheus=":0", interval_s=0.5) as collector:
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: weftline, static_configs: [{{targets: ['{collector.http}']}}]}}]\n"
        )
        arguments = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        running = subprocess.Popen(
            ["prometheus", *arguments, f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        feeder = threading.Thread(target=feed)
        feeder.start()
        empty = list(QUERIES)

        def all_found() -> bool:
            try:
                empty[:] = [each for each in empty if not query(own, each)]
            except (urllib.error.URLError, ConnectionError):
                return False
            return not empty

        try:
            wait_for(all_found, 60)
        except AssertionError:
            pytest.fail(f"no data for {empty}")
        finally:
            stop.set()
            feeder.join()
            running.terminate()
            running.wait()


def test_promtool_accepts_the_metrics():
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    port = free_port()
    with weftline.collecting(listen=f"udp:{port}", prometheus=":0", interval_s=0.2) as collector:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(report(1, 2, [1, 2, 3]), ("127.0.0.1", port))
        url = f"http://{collector.http}/metrics"

        def text() -> bytes:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read()

        wait_for(lambda: b"weftline_packets_total 1\n" in text())
        done = subprocess.run(["promtool", "check", "metrics"], input=text(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
