"""Congestion controllers written in Python: for trying an idea before it becomes a file in Rust.

The law runs in the interpreter, once per acknowledgement, so such a run is ten to a hundred times slower
than one with a built-in controller. The results do not depend on that: simulated time stands still while
Python computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class Controller:
    """Base of a congestion controller in Python; one object steers one flow.

    A subclass defines `on_ack` and sets `rate_bps`, `cwnd_bytes` or both. The transport reads them after
    each call: packets leave paced at `rate_bps`, and if `cwnd_bytes` is not None, only while fewer bytes are
    in flight.

    Attributes
    ----------
    flow : object
        What is fixed for the flow: `line_rate_bps`, `base_rtt_ns`, `window_bytes` (line rate times base RTT)
        and `mtu` (payload bytes of a full packet).
    rate_bps : float
        Pacing rate in bit/s; starts at the line rate. The transport keeps it between 1 bit/s and the line
        rate.
    cwnd_bytes : int or None
        Bytes in flight below which a packet may leave, so a window of ``cwnd_bytes / mtu`` packets, rounded
        up; None for a law that steers the rate alone.

    Notes
    -----
    `on_ack(ack)` gets `now_ns`, `acknowledged` (next byte that the receiver expects), `newly_acknowledged`
    (bytes that left the flight), `next_byte` (next byte to be sent), `marked` (ECN), `rtt_ns` and
    `payload` (of the packet that it answers), `negative` (a packet is missing), and `hops`.

    A class attribute ``needs_int = True`` asks for in-band telemetry: `hops` then has an entry per switch of
    the path with `time_ns`, `sent_bytes`, `queue_bytes` and `rate_bps`. Times and bytes wrap as in the
    packet; ``hop.since(earlier)`` is (ns, bytes) between two records of one hop, with the wraps undone.

    A method `on_timeout(now_ns)` is called when the retransmission timeout expires, if there is one.

    Examples
    --------
    >>> class HalveOnMark(weftline.Controller):
    ...     def on_ack(self, ack):
    ...         if ack.marked:
    ...             self.rate_bps /= 2
    ...         else:
    ...             self.rate_bps += 10e6
    >>> weftline.run("websearch.toml", controllers={"halve": HalveOnMark},
    ...              set={"transport.controller": {"kind": "python:halve"}})
    """

    def __init__(self, flow: Any) -> None:
        self.flow = flow
        self.rate_bps = flow.line_rate_bps
        self.cwnd_bytes = None

    def on_ack(self, ack: Any) -> None:
        """React to one acknowledgement by setting `rate_bps` or `cwnd_bytes`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack(self, ack)")
