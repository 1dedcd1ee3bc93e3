"""A password that is changed while clients run: their sessions end, and they are told instead of trying for ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.admin import ScramPassword
from penstock.client.errors import AuthenticationFailed
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within

SESSION_MS = 2_000


@pytest.fixture
def secured() -> Iterator[EmbeddedBroker]:
    with broker({"connections.max.reauth.ms": SESSION_MS}, secure=True) as running:
        yield running


async def change_password(settings: dict[str, Any]) -> None:
    """The broker ends the sessions of whoever gets another password, so this one may not hear that it worked."""
    with contextlib.suppress(AuthenticationFailed):
        async with Admin(**settings) as admin:
            (await admin.alter_scram_users([ScramPassword("admin", "another")])).checked()


async def send_on(producer: Producer) -> None:
    while True:
        await producer.send("orders", b"v")


async def poll_on(consumer: Consumer) -> None:
    while True:
        await consumer.poll(timeout_ms=100)


@pytest.mark.parametrize("group_id", [None, "readers"])
def test_clients_that_run_are_told(secured: EmbeddedBroker, group_id: str | None) -> None:
    async def main() -> None:
        settings = secured.client_settings
        async with (
            Producer(**settings) as producer,
            Consumer("orders", group_id=group_id, **settings) as consumer,
            asyncio.timeout(within(30)),
        ):
            await producer.send("orders", b"first")
            await consumer.poll(timeout_ms=2_000)
            await change_password(settings)
            with pytest.raises(AuthenticationFailed):
                await send_on(producer)
            with pytest.raises(AuthenticationFailed):
                await poll_on(consumer)

    asyncio.run(main())


def test_clients_with_the_new_password_go_on(secured: EmbeddedBroker) -> None:
    async def main() -> None:
        settings = secured.client_settings
        await change_password(settings)
        async with Producer(**{**settings, "password": "another"}) as producer:
            assert (await producer.send("orders", b"v")).offset == 0

    asyncio.run(main())
