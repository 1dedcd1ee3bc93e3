"""The admin port, spoken to by hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

import penstock.server.metrics.http_admin as http_admin
from penstock.server.metrics.http_admin import AdminServer
from penstock.server.metrics.page import Metrics
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.unit.server.served import on_loop


@contextlib.asynccontextmanager
async def admin(reasons: list[str] | None = None, metrics: Metrics | None = None) -> AsyncIterator[AdminServer]:
    loop = asyncio.get_running_loop()
    told = reasons if reasons is not None else []
    server = AdminServer(loop, metrics or Metrics(), health=list, readiness=lambda: told)
    await server.open(AsyncioNet(loop), "127.0.0.1", 0)
    try:
        yield server
    finally:
        server.close()
        await until(lambda: not server._connections)


async def answer(server: AdminServer, request: bytes) -> tuple[int, str, bytes]:
    """(status, head, body) of what comes back until the node closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    async with asyncio.timeout(within(10)):
        raw = await reader.read()
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]) if head else 0, head.decode(), body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: node\r\nAccept: */*\r\n\r\n".encode()


@on_loop
async def test_metrics_are_a_page_of_text() -> None:
    metrics = Metrics()
    metrics.register("answers", lambda: [("answers_total", {}, 42, "counter", "Answers given")])
    async with admin(metrics=metrics) as server:
        status, head, body = await answer(server, get("/metrics?x=1"))
        assert status == 200
        assert "text/plain; version=0.0.4" in head
        assert f"Content-Length: {len(body)}" in head
        assert body == b"# HELP answers_total Answers given\n# TYPE answers_total counter\nanswers_total 42\n"


@on_loop
async def test_readiness_has_reasons() -> None:
    reasons = ["2 logs are being recovered"]
    async with admin(reasons) as server:
        status, _, body = await answer(server, get("/readyz"))
        assert (status, json.loads(body)) == (503, {"status": "not ready", "reasons": reasons})
        reasons.clear()
        status, _, body = await answer(server, get("/readyz"))
        assert (status, json.loads(body)) == (200, {"status": "ready", "reasons": []})
        assert (await answer(server, get("/healthz")))[0] == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/nowhere"), 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"HEAD /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"\xff" * 20 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9_000 + b"\r\n\r\n", 431),
    ],
)
@on_loop
async def test_odd_requests_get_a_plain_answer(request_bytes: bytes, status: int) -> None:
    async with admin() as server:
        got, _, body = await answer(server, request_bytes)
        assert got == status
        assert (body == b"") == request_bytes.startswith(b"HEAD")


@on_loop
async def test_a_request_may_come_in_pieces() -> None:
    async with admin() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for byte in get("/healthz"):
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()


@on_loop
async def test_a_page_that_fails_says_so_and_the_port_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> list[str]:
        raise ZeroDivisionError("no idea")

    loop = asyncio.get_running_loop()
    server = AdminServer(loop, Metrics(), health=broken, readiness=list)
    await server.open(AsyncioNet(loop), "127.0.0.1", 0)
    assert (await answer(server, get("/healthz")))[0] == 500
    assert (await answer(server, get("/readyz")))[0] == 200
    server.close()
    assert "ZeroDivisionError" in caplog.text


@on_loop
async def test_a_client_that_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_admin, "PATIENCE_S", 0.02)
    async with admin() as server:
        assert await answer(server, b"GET /metr") == (0, "", b"")


@on_loop
async def test_more_connections_than_a_few_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_admin, "CONNECTIONS_MAX", 2)
    async with admin() as server:
        waiting = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        await until(lambda: len(server._connections) == 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        for _, other in [*waiting, (reader, writer)]:
            other.close()
