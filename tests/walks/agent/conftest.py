"""Tests of this folder may be coroutines; agents know the input `feed`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from penstock.agent.settings.kinds import KINDS
from penstock.testing import EmbeddedBroker, broker
from tests.walks.agent.feeding import FEEDS

TEST_TIMEOUT_S = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def main() -> None:
        async with asyncio.timeout(TEST_TIMEOUT_S):
            await pyfuncitem.obj(**given)

    asyncio.run(main())
    return True


@pytest.fixture(autouse=True)
def _feeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(KINDS, "feed", "tests.walks.agent.feeding")
    FEEDS.clear()
    yield
    FEEDS.clear()


@pytest.fixture
def node() -> Iterator[EmbeddedBroker]:
    with broker({"num.partitions": 1}) as running:
        yield running
