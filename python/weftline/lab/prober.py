"""The process of a switch with hosts that sends the first probe of each round by every link upward.

Run as a file of its own, without the package, inside the switch's namespace. The task comes as one line of
JSON on standard input; after ``ready`` it sends until SIGTERM, and then prints what it sent and how late.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent import die_with_parent, first_line  # type: ignore[import-not-found]

FIRST = 7
"""Priority of control traffic in Linux: the first band of pfifo_fast."""
SHARE_NS = 1_000
"""Unit of the histogram: bucket k counts rounds that were up to 2^k of it late."""


def main() -> None:
    """Take the task, send, report."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    task = json.loads(first_line())
    frames = []
    for interface, frame in task["frames"]:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, FIRST)
        sock.setblocking(False)
        sock.bind((interface, 0))
        frames.append((sock, bytes.fromhex(frame)))
    print("ready", flush=True)
    due = time.monotonic_ns() + task["begins_ns"]
    sent, refused, skipped, late = 0, 0, 0, [0] * 40
    while not ended:
        wait = due - time.monotonic_ns()
        if wait > 0:
            # A signal ends the sleep only if its handler raises, so it is cut short.
            time.sleep(min(wait / 1e9, 0.1))
            continue
        late[min((-wait // SHARE_NS).bit_length(), len(late) - 1)] += 1
        for sock, frame in frames:
            try:
                sock.send(frame)
                sent += 1
            except OSError:
                # The link is down, or its queue is full.
                refused += 1
        due += task["interval_ns"]
        overdue = (time.monotonic_ns() - due) // task["interval_ns"]
        if overdue > 0:
            skipped += overdue
            due += overdue * task["interval_ns"]
    print(json.dumps({"sent": sent, "refused": refused, "skipped": skipped, "late": late}), flush=True)


if __name__ == "__main__":
    main()
