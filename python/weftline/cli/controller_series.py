"""What `measure.controllers` records of each scheme, beyond the rate and the window of a flow."""

from __future__ import annotations


def _of_flows(unit: str) -> str:
    return f"over time, {unit}, by flow" if unit else "over time, by flow"


_BYTES, _PACKETS, _SEGMENTS = _of_flows("bytes"), _of_flows("packets"), _of_flows("segments")
_NS, _RATE, _NUMBER = _of_flows("ns"), _of_flows("bit/s"), _of_flows("")

INTERNALS = {
    "u": (_NUMBER, "HPCC's and HPCC-PINT's estimate of the load of the busiest hop."),
    "r_ref_bps": (_RATE, "Reference rate of HPCC, HPCC-PINT and PowerTCP, updated once per round trip."),
    "power": (
        _NUMBER,
        "Moving average of power over a base RTT (PowerTCP, theta-PowerTCP), relative to that of a full link "
        "without a queue.",
    ),
    "least_rtt_ns": (_NS, "T of theta-PowerTCP: the minimum of the base RTT and the flow's RTTs."),
    "alpha": (
        _NUMBER,
        "Moving average of marks: of DCQCN's ticks with a mark, or of the share of packets or bytes that "
        "came with one (DCTCP).",
    ),
    "target_bps": (_RATE, "DCQCN's target rate."),
    "rtt_diff_ns": (_NS, "TIMELY's averaged change of the round-trip time."),
    "ssthresh_bytes": (
        _BYTES,
        "Slow-start threshold of a controller with a window; infinite until something sets it.",
    ),
    "ssthresh_packets": (_PACKETS, "Slow-start threshold of pFabric; infinite until something sets it."),
    "in_flight_bytes": (
        _BYTES,
        "Bytes that TCP takes to be in flight (pipe of RFC 6675); with MPTCP of all subflows.",
    ),
    "srtt_ns": (_NS, "Smoothed round-trip time of TCP, or of RDMA under a window controller; 0: none yet."),
    "rto_ns": (_NS, "Retransmission timeout of TCP."),
    "w_max_segments": (
        _SEGMENTS,
        "Window that Cubic and BIC return to: that of the last loss, or less by fast convergence; 0: none.",
    ),
    "k_seconds": (_of_flows("s"), "K of Cubic: time from the start of the epoch to its flat part."),
    "base_rtt_ns": (_NS, "Minimum round-trip time that Vegas has seen; 0: none yet."),
    "queued_segments": (_SEGMENTS, "Vegas' diff: segments that wait in queues by its estimate."),
    "mode": (
        _NUMBER,
        "State of BBR: 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT. Of BBR v3: 0 Startup, 1 Drain, "
        "2 ProbeBW_DOWN, 3 ProbeBW_CRUISE, 4 ProbeBW_REFILL, 5 ProbeBW_UP, 6 ProbeRTT.",
    ),
    "btlbw_bps": (_RATE, "BBR's estimate of the bandwidth of the path."),
    "rtprop_ns": (_NS, "BBR's estimate of the round-trip time without queues; 0: none yet."),
    "pacing_gain": (_NUMBER, "Factor of BBR, and of BBR v3, between bandwidth and pacing rate."),
    "max_bw_bps": (_RATE, "BBR v3's maximum bandwidth of the path."),
    "bw_shortterm_bps": (_RATE, "Bound that losses set to BBR v3's bandwidth for now; infinite: none."),
    "min_rtt_ns": (_NS, "Minimum round-trip time of BBR v3; 0: none yet."),
    "inflight_longterm_bytes": (_BYTES, "BBR v3's bound on the bytes in flight; infinite: none."),
    "inflight_shortterm_bytes": (_BYTES, "The same for now, since the last losses; infinite: none."),
    "target_ns": (_NS, "Swift's target of the delay at the last acknowledgement."),
    "window_packets": (_PACKETS, "Swift's window, which may be less than a packet."),
    "fabric_delay_ns": (_NS, "Swift's last delay without the time in hosts; only where hosts take time."),
    "fabric_window_packets": (_PACKETS, "Swift's window by that delay."),
    "host_delay_ns": (_NS, "Moving average of the time that packets wait in hosts (Swift)."),
    "host_window_packets": (_PACKETS, "Swift's window by that time."),
    "path_changes": (_NUMBER, "How often PLB has changed the path of the flow."),
    "congested_rounds": (_NUMBER, "PLB's congested rounds in a row."),
    **{
        f"subflow{number}_cwnd_bytes": (_BYTES, f"Window of subflow {number} of MPTCP, while it is up.")
        for number in range(32)
    },
    "subflows": (_NUMBER, "Subflows of an MPTCP connection that are up."),
    "reinjected_bytes": (_BYTES, "Data that MPTCP has sent on a second subflow."),
    "tokens": (_PACKETS, "Tokens of pHost that have not expired, one for a packet."),
    "packets_sent": (_PACKETS, "Data packets that a flow of pHost has sent, those sent again among them."),
    "packets_granted": (_PACKETS, "Packets of a message of Homa that may leave, unscheduled ones included."),
    "bytes_left": (_BYTES, "Payload of a message of Homa that has not left, or has to leave again."),
    "packets_to_repeat": (_PACKETS, "Packets of Homa and NDP that have to be sent again."),
    "packets_pulled": (_PACKETS, "Packets that pulls have released (NDP)."),
    "remaining_bytes": (
        _BYTES,
        "Bytes that the receiver is not known to have, the priority of pFabric's packets.",
    ),
    "unscheduled_packets": (_PACKETS, "Packets that Fastpass' arbiter has given no timeslot yet."),
    "missing_packets": (_PACKETS, "Packets that no acknowledgement has come for (Fastpass)."),
}
