"""The process that is connected to Ray: what Ray prints, or how it ends, does not affect the sweep.

`python -m weftline.sweeps.ray_driver FD` is started by `ray_executor`, and talks to it over the socket FD:

    in    ("file", digest, bytes)        a file that points name
          ("group", number, specs, memory_bytes)
    out   ("ready", slots, where)        connected
          ("done", number, answer)       what `ray_worker.run_group` returned
          ("lost", number, why)          the group has no answer: its worker or node died too often
          ("failed", why)                nothing works

It ends when the other end does.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

RETRIES = 8
"""How often a group whose worker or node died is run again."""
OBJECT_STORE_BYTES = 512 << 20
LOOK_SECONDS = 4.0
"""How often the head is looked after."""
MAX_MISSED = 5


def main() -> int:
    """Serve one sweep; return the exit status."""
    parent = Connection(int(sys.argv[1]))
    inbox: queue.Queue = queue.Queue()
    # Read by a thread, so that neither end waits for the other to read first.
    threading.Thread(target=receive, args=(parent, inbox), daemon=True).start()
    turn = threading.Lock()

    def send(message: tuple) -> None:
        with turn:
            parent.send(message)

    try:
        import ray

        slots, where = connect(ray, jobs=int(sys.argv[2]), threads=int(sys.argv[3]))
        send(("ready", slots, where))
        head = ray.get_runtime_context().gcs_address
        threading.Thread(target=watch, args=(head, send), daemon=True).start()
        serve(ray, send, inbox, threads=int(sys.argv[3]))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return 0
    except Exception as error:
        send(("failed", f"{type(error).__name__}: {error}"))
        return 1
    return 0


def connect(ray: Any, *, jobs: int, threads: int) -> tuple[int, str]:
    """Join the cluster that there is, or start one; return how many runs it takes at a time, and which."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    address = os.environ.get("RAY_ADDRESS")
    if address and "//" not in address and not answers(address):
        raise RuntimeError(f"no Ray answers at {address} (RAY_ADDRESS)")
    try:
        ray.init(address=address or "auto", **quiet)
        where = f"the Ray cluster at {address or ray.get_runtime_context().gcs_address}"
    except ConnectionError:
        if address:
            raise
        ray.init(
            address="local",
            num_cpus=jobs * threads,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            **quiet,
        )
        where = "a new Ray on this machine"
    cores = sum(int(node["Resources"].get("CPU", 0)) // threads for node in ray.nodes() if node["Alive"])
    if not cores:
        raise RuntimeError(f"no node of the cluster has {threads} cores")
    return cores, where


def answers(address: str) -> bool:
    """Return whether something listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return True
    except (OSError, ValueError):
        return False


def watch(head: str, send: Callable[[tuple], None]) -> None:
    """End this process when the head has not answered for a while: Ray itself would wait over a minute."""
    missed = 0
    while missed < MAX_MISSED:
        time.sleep(LOOK_SECONDS)
        missed = 0 if answers(head) else missed + 1
    send(("failed", f"its head at {head} does not answer any more"))
    os._exit(1)


def receive(parent: Connection, inbox: queue.Queue) -> None:
    """Put every message into `inbox`, and None when the other end is closed."""
    try:
        while True:
            inbox.put(parent.recv())
    except (EOFError, OSError):
        inbox.put(None)


def serve(ray: Any, send: Callable[[tuple], None], inbox: queue.Queue, *, threads: int) -> None:
    """Take groups and give answers until the other end is closed."""
    from weftline import own_schemes
    from weftline.sweeps.ray_worker import run_group

    task = ray.remote(run_group)
    asked = {"num_cpus": threads, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
    if engine := os.environ.get(own_schemes.VARIABLE):
        asked["runtime_env"] = {"env_vars": {own_schemes.VARIABLE: engine}}
    files: dict[str, Any] = {}
    running: dict[Any, int] = {}
    while True:
        while (message := _next(inbox, wait=not running)) != ():
            if message is None:
                return
            what, *rest = message
            if what == "file":
                digest, data = rest
                files[digest] = ray.put(data)
            else:
                number, specs, memory = rest
                named = [*(spec["files"] for spec in specs), *(spec["controllers"] for spec in specs)]
                needed = {digest for digests in named for digest in digests.values()}
                held = {digest: files[digest] for digest in needed}
                within = {"memory": min(memory, _largest(ray))} if memory else {}
                running[task.options(**asked, **within).remote(specs, held, ray.get)] = number
        done, _ = ray.wait(list(running), num_returns=1, timeout=0.1) if running else ([], [])
        for reference in done:
            number = running.pop(reference)
            try:
                send(("done", number, ray.get(reference)))
            except (BrokenPipeError, ConnectionResetError):
                raise
            except ray.exceptions.RayError as error:
                send(("lost", number, _error_text(error)))


def _next(inbox: queue.Queue, *, wait: bool) -> tuple | None:
    """Return the next message, an empty one if there is none yet."""
    try:
        return inbox.get(timeout=0.2) if wait else inbox.get_nowait()
    except queue.Empty:
        return ()


def _largest(ray: Any) -> int:
    """Return what the roomiest node has in memory: a task that wants more would wait for ever."""
    return int(max((node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]), default=0))


def _error_text(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[-1] if lines else 'no more is known'}"


if __name__ == "__main__":
    sys.exit(main())
