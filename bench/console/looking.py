"""A console as a child, and what browsers ask it for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx

TIMEOUT_S: Final = 120.0


class MeasuredConsole:
    """Asked over HTTP, and over its standard input for what it costs."""

    def __init__(self, child: subprocess.Popen[str], address: str) -> None:
        self._child = child
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=TIMEOUT_S)

    def get(self, path: str, **query: Any) -> Any:
        reply = self.client.get(f"api/v1/{path}", params=query)
        reply.raise_for_status()
        return reply.json()

    def wait(self, path: str, until: Any, seconds: float = TIMEOUT_S, **query: Any) -> None:
        deadline = time.monotonic() + seconds
        while True:
            reply = self.client.get(f"api/v1/{path}", params=query)
            if reply.status_code == 200 and until(reply.json()):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is not as it should be within {seconds:.0f} s")
            time.sleep(0.2)

    def costs(self) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write("costs\n")
        self._child.stdin.flush()
        told: dict[str, Any] = json.loads(self._child.stdout.readline())
        return told | {"at_s": time.monotonic()}

    def first_page_ms(self) -> float:
        """A browser that comes for the first time: the page, who it is, what it shows first."""
        with httpx.Client(base_url=self.address, timeout=TIMEOUT_S) as browser:
            began = time.perf_counter()
            for path in ("", "api/v1/session", "api/v1/overview"):
                browser.get(path).raise_for_status()
            return (time.perf_counter() - began) * 1_000

    def took_ms(self, path: str, **query: Any) -> float:
        began = time.perf_counter()
        self.get(path, **query)
        return (time.perf_counter() - began) * 1_000

    @contextmanager
    def looked_at(self, every_s: float = 5.0) -> Iterator[None]:
        """A tab with its event stream that shows the overview and the topics, as long as the block lasts."""
        over = threading.Event()

        def look() -> None:
            with self.client.stream("GET", "api/v1/events", params={"tab": "a-tab-of-the-suite"}):
                while not over.wait(every_s):
                    self.get("overview")
                    self.get("topics", sort="rate", desc="1")

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def console(bootstrap: str) -> Iterator[MeasuredConsole]:
    command = [sys.executable, "-m", "bench.console.measured", bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            found = MeasuredConsole(child, child.stdout.readline().strip())
            yield found
            found.client.close()
        finally:
            child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
