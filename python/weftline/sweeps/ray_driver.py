"""The process that is connected to Ray: what Ray prints, or how it ends, does not affect the sweep.

`python -m weftline.sweeps.ray_driver FD JOBS THREADS` is started by `ray_executor`, and talks to it over the
socket FD:

    in    ("file", digest, bytes)        a file that points name
          ("group", number, specs, memory_bytes)
    out   ("ready", slots, where)        connected
          ("slots", slots)               nodes came or went
          ("done", number, answer)       what `ray_nodes.work` returned, ``node`` as a name
          ("lost", number, why, again)   the group has no answer: its worker or node died, and it may be run
                                         again, or Ray cannot run it
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
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

from weftline.sweeps import ray_nodes
from weftline.sweeps.ray_nodes import Nodes, error_text

OBJECT_STORE_BYTES = 512 << 20
LOOK_SECONDS = 4.0
"""How often the head and the nodes are looked after."""
MAX_MISSED = 5
CONNECT_SECONDS = 60.0
FIRST_NODE_SECONDS = 60.0
"""How long a cluster without a fitting node is waited for at the beginning: pods may still be starting."""
NO_NODE_SECONDS = 300.0
"""How long one is waited for after all nodes died: an autoscaler may replace them."""


def main() -> int:
    """Serve one sweep; return the exit status."""
    parent, jobs, threads = Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    inbox: queue.Queue[Any] = queue.Queue()
    # Read by a thread, so that neither end waits for the other to read first.
    threading.Thread(target=receive, args=(parent, inbox), daemon=True).start()
    turn = threading.Lock()

    def send(message: tuple[Any, ...]) -> None:
        with turn:
            parent.send(message)

    try:
        import ray

        from weftline.sweeps.ray_worker import identity

        where = connect_in_time(ray, send, cores=jobs * threads)
        head = ray.get_runtime_context().gcs_address
        threading.Thread(target=watch, args=(head, send), daemon=True).start()
        ray.cloudpickle.register_pickle_by_value(ray_nodes)  # type: ignore[no-untyped-call]
        nodes, ours = Nodes(ray, threads=threads, options=environment()), identity()
        wait_for_a_node(nodes, threads)
        if refused := nodes.refused(ours, within=ray_nodes.LOOK_SECONDS):
            send(("failed", refused))
            return 1
        send(("ready", nodes.slots, where))
        threading.Thread(target=watch_nodes, args=(nodes, ours, send), daemon=True).start()
        serve(ray, send, inbox, nodes, threads=threads)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return 0
    except Exception as error:
        send(("failed", f"{type(error).__name__}: {error}"))
        return 1
    return 0


class UnusableRay(Exception):  # noqa: N818 - its name is shown
    """There is no Ray that could run anything."""


def connect_in_time(ray: Any, send: Callable[[tuple[Any, ...]], None], *, cores: int) -> str:
    """Do as `connect`; end this process when an address that was given does not answer as Ray does."""
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        return connect(ray, cores=cores)

    def give_up() -> None:
        send(
            (
                "failed",
                f"what listens at {address} (RAY_ADDRESS) is not the head of a Ray, or is out of order",
            )
        )
        os._exit(1)

    timer = threading.Timer(CONNECT_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        return connect(ray, cores=cores)
    finally:
        timer.cancel()


def connect(ray: Any, *, cores: int) -> str:
    """Join the cluster that there is, or start one with this many cores; return which it is."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    address = os.environ.get("RAY_ADDRESS")
    if address and "//" in address:
        raise UnusableRay(
            f"RAY_ADDRESS is {address}: expected HOST:PORT of the head, as `ray start` printed it; run this "
            "command on a node of the cluster, or give it to `ray job submit`"
        )
    if address and address not in ("auto", "local") and not answers(address):
        raise UnusableRay(f"no Ray answers at {address} (RAY_ADDRESS)")
    try:
        ray.init(address=address or "auto", **quiet)
        return f"the Ray cluster at {ray.get_runtime_context().gcs_address}"
    except ConnectionError:
        if address:
            raise
        ray.init(
            address="local",
            num_cpus=cores,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            **quiet,
        )
        return "a new Ray on this machine"


def environment() -> dict[str, Any]:
    """Return the options of tasks that make their workers use the schemes of another crate."""
    from weftline import own_schemes

    engine = os.environ.get(own_schemes.VARIABLE)
    return {"runtime_env": {"env_vars": {own_schemes.VARIABLE: engine}}} if engine else {}


def wait_for_a_node(nodes: Nodes, threads: int) -> None:
    """Return when there is a node that can run something; raise if there is none for a while."""
    until = time.monotonic() + FIRST_NODE_SECONDS
    nodes.refresh()
    while not nodes.slots:
        if time.monotonic() > until:
            raise UnusableRay(f"no node of the cluster has {threads} core{'s' if threads > 1 else ''}")
        time.sleep(1.0)
        nodes.refresh()


def answers(address: str) -> bool:
    """Return whether something listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def watch(head: str, send: Callable[[tuple[Any, ...]], None]) -> None:
    """End this process when the head has not answered for a while: Ray itself would wait over a minute."""
    missed = 0
    while missed < MAX_MISSED:
        time.sleep(LOOK_SECONDS)
        missed = 0 if answers(head) else missed + 1
    send(("failed", f"its head at {head} does not answer any more"))
    os._exit(1)


def watch_nodes(nodes: Nodes, ours: Mapping[str, str], send: Callable[[tuple[Any, ...]], None]) -> None:
    """Report nodes that come and go; end this process when none is left or one would compute other bits."""
    reported, since = nodes.slots, time.monotonic()
    while True:
        time.sleep(LOOK_SECONDS)
        try:
            nodes.refresh()
        except Exception:
            continue  # `watch` decides whether the head is there
        if nodes.slots != reported:
            reported = nodes.slots
            send(("slots", reported))
        since = time.monotonic() if reported else since
        why = nodes.refused(ours, within=0.0)
        if time.monotonic() - since > NO_NODE_SECONDS:
            why = f"the cluster has had no node with enough cores for {NO_NODE_SECONDS:.0f} s"
        if why:
            send(("failed", why))
            os._exit(1)


def receive(parent: Connection, inbox: queue.Queue[Any]) -> None:
    """Put every message into `inbox`, and None when the other end is closed."""
    try:
        while True:
            inbox.put(parent.recv())
    except (EOFError, OSError):
        inbox.put(None)


def serve(
    ray: Any, send: Callable[[tuple[Any, ...]], None], inbox: queue.Queue[Any], nodes: Nodes, *, threads: int
) -> None:
    """Take groups and give answers until the other end is closed."""
    # Ray runs nothing again by itself: `ray_executor` does, and reports it.
    asked = {"num_cpus": threads, "max_retries": 0, "scheduling_strategy": "SPREAD", **environment()}
    task = ray.remote(ray_nodes.work)
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
                within = {"memory": min(memory, nodes.memory_bytes)} if memory else {}
                running[task.options(**asked, **within).remote(specs, held)] = number
        done, _ = ray.wait(list(running), num_returns=1, timeout=0.1) if running else ([], [])
        for reference in done:
            number = running.pop(reference)
            try:
                answer = ray.get(reference)
            except ray.exceptions.RayError as error:
                final = (
                    ray.exceptions.RayTaskError,
                    ray.exceptions.RuntimeEnvSetupError,
                    ray.exceptions.TaskUnschedulableError,
                )
                print(f"group {number} lost: {error}", flush=True)
                send(("lost", number, error_text(error), not isinstance(error, final)))
                continue
            answer["node"] = nodes.name(answer["node"])
            seconds = sum(result["seconds"] for result in answer["results"])
            print(
                f"group {number}: {len(answer['results'])} runs in {seconds:.3f} s on {answer['node']}",
                flush=True,
            )
            send(("done", number, answer))


def _next(inbox: queue.Queue[Any], *, wait: bool) -> tuple[Any, ...] | None:
    """Return the next message, an empty one if there is none yet."""
    try:
        return inbox.get(timeout=0.2) if wait else inbox.get_nowait()
    except queue.Empty:
        return ()


if __name__ == "__main__":
    sys.exit(main())
