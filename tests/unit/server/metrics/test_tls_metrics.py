"""When certificates end, and how handshakes go, by listener."""

from __future__ import annotations

import time
from pathlib import Path

from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.server.metrics.page import Sample
from penstock.server.metrics.tls_metrics import tls_samples
from tests.unit.server.reception.test_tls_listeners import client_tls, echo, secured
from tests.unit.server.served import World, on_loop, serving, until


def told(world: World) -> dict[tuple[str, str], float]:
    samples: list[Sample] = list(tls_samples(world.listeners.tls_doors()))
    return {(each.name, each.labels.get("cause", "")): each.value for each in samples}


@on_loop
async def test_a_listener_tells_of_its_certificate_and_its_handshakes(tmp_path: Path) -> None:
    async with serving({"Heartbeat": echo}, **secured(tmp_path)) as world:
        client = await world.client(tls=client_tls())
        await client.ask(HeartbeatRequest(), 4)
        await client.frame()
        plain = await world.stranger()
        await plain.ask(HeartbeatRequest(), 4)
        assert await plain.hung_up()
        await until(lambda: len(told(world)) == 3)
        found = told(world)
        assert found["penstock_tls_handshakes_total", ""] == 1
        assert found["penstock_tls_handshake_failures_total", "plaintext"] == 1
        assert found["penstock_certificate_not_after_seconds", ""] > time.time()
        assert {each.labels["listener"] for each in tls_samples(world.listeners.tls_doors())} == {"SSL"}


@on_loop
async def test_a_plaintext_listener_has_nothing_to_tell() -> None:
    async with serving({"Heartbeat": echo}) as world:
        assert list(tls_samples(world.listeners.tls_doors())) == []
