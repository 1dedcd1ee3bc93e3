"""The admin port with a login: who gets what, how slowly failures are told, and how many may wait."""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import AsyncIterator

import pytest

from penstock.model.secret import Secret
from penstock.security.failures import FailureDelays
from penstock.security.http_login import Attempt, HttpLogins
from penstock.server.metrics import admin_guard
from penstock.server.metrics.admin_guard import AdminGuard
from penstock.server.metrics.http_admin import AdminServer
from penstock.server.metrics.page import Metrics
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.server.metrics.test_http_admin import answer
from tests.unit.server.served import on_loop

RIGHT = "Basic " + b64encode(b"prometheus:pa55").decode()
WRONG = "Basic " + b64encode(b"prometheus:guess").decode()


class World:
    def __init__(self, delay_ms: int = 1) -> None:
        loop = asyncio.get_running_loop()
        self.failures: list[tuple[str, Attempt]] = []
        self.guard = AdminGuard(
            HttpLogins("prometheus", Secret("pa55"), Secret("t0ken")),
            FailureDelays(delay_ms, delay_ms),
            lambda: loop.time() * 1_000,
            lambda host, attempt: self.failures.append((host, attempt)),
        )
        self.server = AdminServer(loop, Metrics(), health=lambda: ["a disk hangs"], readiness=list, guard=self.guard)

    async def get(self, path: str, *logins: str) -> tuple[int, str, bytes]:
        lines = [f"GET {path} HTTP/1.1", "Host: node", *(f"authorization: {login}" for login in logins)]
        return await answer(self.server, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


@contextlib.asynccontextmanager
async def guarded(delay_ms: int = 1) -> AsyncIterator[World]:
    world = World(delay_ms)
    await world.server.open(AsyncioNet(asyncio.get_running_loop()), "127.0.0.1", 0)
    try:
        yield world
    finally:
        world.server.close()
        await until(lambda: not world.server._connections)


@on_loop
async def test_pages_are_for_those_who_log_in_by_either_way() -> None:
    async with guarded() as world:
        for path in ("/metrics", "/readyz"):
            status, head, body = await world.get(path)
            assert (status, body) == (401, b"log in first\n")
            assert 'WWW-Authenticate: Basic realm="penstock", charset="UTF-8"' in head
            assert 'WWW-Authenticate: Bearer realm="penstock"' in head
            for login in (RIGHT, "Bearer t0ken"):
                assert (await world.get(path, login))[0] == 200
        assert world.failures == []


@on_loop
async def test_health_is_told_to_all_and_its_reasons_to_those_who_log_in() -> None:
    async with guarded() as world:
        status, _, body = await world.get("/healthz")
        assert (status, json.loads(body)) == (503, {"status": "not healthy"})
        status, _, body = await world.get("/healthz", RIGHT)
        assert (status, json.loads(body)) == (503, {"status": "not healthy", "reasons": ["a disk hangs"]})
        assert (await world.get("/healthz", WRONG))[0] == 401


@on_loop
async def test_a_wrong_login_is_counted_told_and_answered_late() -> None:
    async with guarded(delay_ms=200) as world:
        before = asyncio.get_running_loop().time()
        status, head, body = await world.get("/metrics", WRONG)
        assert asyncio.get_running_loop().time() - before >= 0.199
        assert (status, body) == (401, b"wrong login\n")
        assert "WWW-Authenticate: Basic" in head
        assert world.failures == [("127.0.0.1", Attempt("basic", "prometheus", "wrong user name or password"))]
        assert world.guard.failed == {"basic": 1, "bearer": 0}
        assert (await world.get("/metrics", "Bearer t0ken"))[0] == 200


@on_loop
async def test_two_logins_in_one_request_are_none() -> None:
    async with guarded() as world:
        assert (await world.get("/metrics", WRONG, RIGHT))[0] == 400


@on_loop
async def test_many_who_guess_at_once_are_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_guard, "FAILURES_WAITING_MAX", 3)
    async with guarded(delay_ms=1_000) as world:
        guesses = [asyncio.create_task(world.get("/metrics", WRONG)) for _ in range(3)]
        await until(lambda: len(world.failures) == 3)
        assert (await world.get("/metrics", RIGHT))[0] == 429
        # Whoever asks whether the node lives is answered all the same.
        assert (await world.get("/healthz"))[0] == 503
        assert [(await guess)[0] for guess in guesses] == [401] * 3
        assert (await world.get("/metrics", RIGHT))[0] == 200
