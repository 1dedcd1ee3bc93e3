"""One broker for the tests of the Admin, and a way to run work with one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import pytest

from penstock.client.admin import Admin
from penstock.testing import EmbeddedBroker, broker

Administer: TypeAlias = Callable[[Callable[[Admin], Awaitable[Any]]], Any]


# Of the module: the folder is no package to pytest, so a broker of it would live to the end of the session, also beside
# tests that plant bugs into the classes it is made of.
@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def administer(shared: EmbeddedBroker) -> Administer:
    def run(work: Callable[[Admin], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with Admin(bootstrap_servers=shared.bootstrap_servers, retry_backoff_ms=5) as admin:
                return await work(admin)

        return asyncio.run(main())

    return run
