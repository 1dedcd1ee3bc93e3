"""The admin port answers scrapers, probes and `penstock agent status`."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket

import pytest

from penstock.agent.admin.port import AdminPort, CannotListen
from penstock.agent.admin.snapshot import InputSnapshot, Snapshot, decode
from penstock.agent.inputs.input import FileStatus
from tests.patience import within

WELL = Snapshot("web-1", state="running", bootstrap="b:9092", brokers_up=True)


def ask(snapshot: Snapshot, *requests: tuple[str, str]) -> list[tuple[int, str, bytes]]:
    """(status, media type, body) of each request."""

    def look(details: bool) -> Snapshot:
        file = [FileStatus("/f", 1, 1, 1)] if details else []
        snapshot.inputs = {"in": InputSnapshot("tail", details=file)}
        return snapshot

    def fetch(address: str) -> list[tuple[int, str, bytes]]:
        found = []
        for method, target in requests:
            link = http.client.HTTPConnection(address, timeout=within(10))
            link.request(method, target)
            reply = link.getresponse()
            found.append((reply.status, reply.getheader("content-type", ""), reply.read()))
            link.close()
        return found

    async def main() -> list[tuple[int, str, bytes]]:
        port = AdminPort(look)
        await port.open("127.0.0.1:0")
        try:
            return await asyncio.to_thread(fetch, port.address)
        finally:
            await port.close()

    return asyncio.run(main())


def test_metrics_with_and_without_files() -> None:
    (few, many) = ask(WELL, ("GET", "/metrics"), ("GET", "/metrics?files=1"))
    assert few[:2] == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"file_size" not in few[2]
    assert b'file_size_bytes{input="in",path="/f"} 1' in many[2]


def test_status_is_the_whole_picture() -> None:
    [(status, kind, body)] = ask(WELL, ("GET", "/status?files=1"))
    assert (status, kind) == (200, "application/json")
    assert decode(body).inputs["in"].details == [FileStatus("/f", 1, 1, 1)]
    assert json.loads(body)["reasons"] == []


def test_an_agent_without_brokers_is_healthy_but_not_ready() -> None:
    healthy, ready = ask(Snapshot("a", state="running", bootstrap="b:1"), ("GET", "/healthz"), ("GET", "/readyz"))
    assert (healthy[0], json.loads(healthy[2])) == (200, {"status": "healthy", "reasons": []})
    assert ready[0] == 503
    assert json.loads(ready[2]) == {"status": "not ready", "reasons": ["no broker answers at b:1"]}


def test_other_paths_and_verbs_are_told_what_there_is() -> None:
    nowhere, post = ask(WELL, ("GET", "/"), ("POST", "/status"))
    assert (nowhere[0], b"/healthz" in nowhere[2]) == (404, True)
    assert post[0] == 405


def test_an_address_that_is_taken_says_what_to_try() -> None:
    async def main() -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(CannotListen, match=r'admin = "127.*in use; another process listens there'),
        ):
            await AdminPort(lambda _: WELL).open(f"127.0.0.1:{taken.getsockname()[1]}")

    asyncio.run(main())
