"""A headless Chromium for tests, steered over its own pipe (Chrome DevTools Protocol): no package, no port.

Messages are JSON, each ended by a zero byte; the browser reads them from descriptor 3 and writes to 4.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from weftline.cli import doctor


class Chromium:
    """One browser with one tab."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        # The browser reads from 3 and writes to 4; ours may be those very numbers, so first to others.
        def place() -> None:
            read, write = (fcntl.fcntl(end, fcntl.F_DUPFD, 5) for end in (to_browser, from_browser))
            os.dup2(read, 3)
            os.dup2(write, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
        self._process = subprocess.Popen(
            [program, *flags, "--remote-debugging-pipe", f"--user-data-dir={self._home.name}", "about:blank"],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict] = {}
        self._news = threading.Condition()
        self.events: list[dict] = []
        self._session: str | None = None
        threading.Thread(target=self._listen, daemon=True).start()
        tabs = self.call("Target.getTargets")["targetInfos"]
        tab = next(tab["targetId"] for tab in tabs if tab["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _listen(self) -> None:
        with contextlib.suppress(OSError), os.fdopen(self._read, "rb") as stream:
            rest = b""
            while chunk := stream.read1(1 << 16):
                *whole, rest = (rest + chunk).split(b"\0")
                with self._news:
                    for message in map(json.loads, whole):
                        if "id" in message:
                            self._answers[message["id"]] = message
                        else:
                            self.events.append(message)
                    self._news.notify_all()

    def call(self, method: str, **parameters) -> dict:
        """Ask the browser for something and return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        with self._news:
            if not self._news.wait_for(lambda: number in self._answers, timeout=60):
                raise TimeoutError(f"{method}: no answer from Chromium")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def evaluate(self, expression: str):
        """Return the value of a JavaScript expression in the page, waiting for a promise."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:600])
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 30):
        """Wait until an expression is true, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Between two pages there is no document to look at.
            with contextlib.suppress(RuntimeError):
                if value := self.evaluate(expression):
                    return value
            time.sleep(0.05)
        raise TimeoutError(f"never true: {expression}")

    def open(self, page: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> float:
        """Open a file and wait until its figures are drawn; return the seconds that took."""
        self.size(width, height)
        self.theme(dark)
        self.events.clear()
        begin = time.monotonic()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.until(
            "document.readyState === 'complete' && "
            "(!document.querySelector('.plot') || Number(document.documentElement.dataset.drawn) > 0)"
        )
        return time.monotonic() - begin

    def size(self, width: int, height: int = 900) -> None:
        """Make the window so large."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, dark: bool) -> None:
        """Prefer dark or light colours."""
        value = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def point(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key]
            )

    def picture(self, path: Path) -> Path:
        """Save what the whole page looks like."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and requests to anywhere but files."""
        output = []
        for event in self.events:
            method, found = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                output.append(json.dumps(found["exceptionDetails"])[:400])
            elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning"):
                output.append(json.dumps(found["args"])[:400])
            elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
                output.append(found["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = found["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:")):
                    output.append(f"request to {url}")
        return output

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(OSError):
            os.close(self._write)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._home.cleanup()


def program() -> str:
    """Return the path of the browser."""
    found = doctor.browser()
    if found is None:
        raise FileNotFoundError(missing())
    return found


def missing() -> str:
    """Return why there is no browser to test with, empty if there is one. Under CI there must be one."""
    if os.name != "posix":
        return "the browser is steered over POSIX pipes"
    return "" if doctor.browser() else "no Chromium: apt install chromium, or set WEFTLINE_CHROMIUM"
