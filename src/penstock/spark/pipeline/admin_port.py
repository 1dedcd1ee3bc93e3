"""The admin port of a pipeline: `/metrics`, `/healthz`, `/readyz` and `/status`, by its supervisor.

A driver may come and go behind it. One question at a time is answered, and none may take long: whoever asks slowly is
hung up on.
"""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

from penstock.declared.fields import Table
from penstock.spark.errors import SparkRoomError
from penstock.spark.pipeline import home, metrics
from penstock.spark.pipeline.home import Home, State
from penstock.spark.pipeline.objectives import judge
from penstock.spark.pipeline.view import snapshot
from penstock.transport.prometheus import MEDIA_TYPE

ADMIN: Final = "admin"
ASKING_S: Final = 2.0
"""For a whole request."""
_ADDRESS: Final = re.compile(r"(?:[^\s:]*|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


class CannotListen(SparkRoomError):
    """The address of the admin port is taken, or is none of this machine's."""


def admin_of(file: Table) -> str | None:
    """`admin = "127.0.0.1:9646"`; None when there is to be no port."""
    given = file.text(ADMIN)
    if given is None or given == "off":
        return None
    found = _ADDRESS.fullmatch(given)
    if found is None or int(found[1]) > 65_535:
        file.wrong(ADMIN, f'admin = {given!r} is no address: write "127.0.0.1:9646", or "off" for none')
    return given


class AdminPort:
    """Serves what `place` says, on a thread of its own, until it is closed."""

    def __init__(self, place: Home, address: str) -> None:
        host, _, port = address.rpartition(":")

        class Asked(_Asked):
            home = place

        try:
            self._server = HTTPServer((host.strip("[]") or "0.0.0.0", int(port)), Asked)
        except OSError as failure:
            raise CannotListen(f'admin = "{address}": {failure.strerror or failure}') from None
        self.address = f"{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="penstock-admin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=ASKING_S)


def troubles(state: State, sinks: list[Any]) -> list[str]:
    """Why somebody must look at it; empty when it is well. Pure."""
    found = [] if state.state in home.ALIVE else [f"it is {state.state}{f': {state.words}' if state.words else ''}"]
    return found + [f"sink {sink.sink}: {sink.error}" for sink in sinks if sink.state == home.FAILED]


class _Asked(BaseHTTPRequestHandler):
    """One request. The class that serves it has the home."""

    home: Home
    timeout = ASKING_S
    server_version, sys_version = "penstock", ""

    def do_GET(self) -> None:
        state, progress = self.home.state(), self.home.progress()
        now_ms = time.time_ns() // 1_000_000
        if state is None:
            return self._say(503, {"status": "not ready", "reasons": ["it is starting"]})
        sinks = [] if progress is None else list(progress.sinks)
        match self.path.partition("?")[0]:
            case "/metrics":
                self._send(200, metrics.page(state, progress, now_ms).encode(), MEDIA_TYPE)
            case "/healthz":
                self._verdict("healthy", troubles(state, sinks))
            case "/readyz":
                missed = [judge(sink, sink.fresh_within_s, now_ms) for sink in sinks]
                late = [f"sink {each.sink}: {each.words}" for each in missed if not each.met]
                starting = [] if state.state == home.RUNNING else [f"it is {state.state}"]
                self._verdict("ready", [*troubles(state, sinks), *starting, *late])
            case "/status":
                self._say(200, snapshot(state, progress))
            case _:
                self._say(404, {"error": "there are /metrics, /healthz, /readyz and /status"})
        return None

    def do_HEAD(self) -> None:
        self.do_GET()

    def _verdict(self, word: str, reasons: list[str]) -> None:
        told = {"status": f"not {word}" if reasons else word, "reasons": reasons}
        self._say(503 if reasons else 200, told)

    def _say(self, status: int, data: Any) -> None:
        self._send(status, json.dumps(data).encode(), "application/json")

    def _send(self, status: int, body: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody wants a line a scrape."""
