"""A congestion controller written in Python: halve on a mark, else grow by a fixed step.

Run it with ``python examples/python_controller.py``; it ends with the same facts as ``weftline run``.
"""

import weftline
from weftline.measures import run_facts

SCENARIO = {
    "name": "python-controller",
    "topology": {"kind": "star", "hosts": 5, "host_link": {"rate": "100Gbps", "delay": "1us"}},
    "switch": {"ecn": {"kmin": "100KB", "kmax": "100KB", "pmax": 1.0}},
    "transport": {"kind": "rdma", "controller": {"kind": "python:halve"}},
    "workload": [{"kind": "incast", "hosts": "0-3", "receiver": "4", "size": "1MB"}],
}


class HalveOnMark(weftline.Controller):
    """Halves its rate once per round trip in which a packet was marked; else adds 1 Gb/s to it."""

    def __init__(self, flow):
        super().__init__(flow)
        self.round_ends = 0
        self.marked = False

    def on_ack(self, ack):
        self.marked |= ack.marked
        if ack.acknowledged < self.round_ends:
            return
        self.rate_bps = self.rate_bps / 2 if self.marked else self.rate_bps + 1e9
        self.rate_bps = min(max(self.rate_bps, 1e8), self.flow.line_rate_bps)
        self.round_ends = ack.next_byte
        self.marked = False


if __name__ == "__main__":
    run = weftline.run(SCENARIO, controllers={"halve": HalveOnMark}, force=True)
    print(run_facts.facts_table(run).text())
