"""Audit events that no topic takes: they wait within bounds, are counted beyond them, and hold nobody."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

from penstock.metadata.image import ClusterImage
from penstock.model.ports import Ports
from penstock.server.auditing.outlet import QUEUE, QUEUED_BYTES_MAX, WRITE, Line, Lost, Outlet
from penstock.server.auditing.stream import RATE, Audit
from penstock.server.auditing.topic import AuditTopic
from penstock.server.doors import AUDIT_CLIENT, Operation, ResourceType
from penstock.server.logs import Sparing
from penstock.server.loops.ports import SystemClock, ThreadOffload
from penstock.testing.memory_files import MemoryFiles
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.server.auditing.test_stream import asked
from tests.unit.server.served import on_loop, settings_with


async def nobody(*_: object) -> NoReturn:
    raise AssertionError("a cluster without brokers is asked for nothing")


@on_loop
async def test_what_finds_no_topic_waits_and_what_does_not_fit_is_counted() -> None:
    clock = SystemClock()
    ports = Ports(clock, MemoryFiles(), AsyncioNet(asyncio.get_running_loop()), ThreadOffload())
    topic = AuditTopic(settings_with(), ports, ClusterImage, nobody, None)
    audit = Audit(7, clock, None)
    audit.also_to(topic.outlet)
    fits = QUEUED_BYTES_MAX // 500
    for number in range(2 * fits):
        audit.login_failed(f"10.0.{number >> 8}.{number & 255}", "CLIENTS", None, "PLAIN", "b" * 255, "w" * 255)
    assert topic.outlet.drops[QUEUE] > 0
    assert sum(audit.events.values()) + topic.outlet.drops[QUEUE] == 2 * fits
    assert audit.drops == {RATE: 0, QUEUE: 0, WRITE: 0}
    # A stop does not wait for what may never come.
    await topic.close()
    ports.offload.close()


@on_loop
async def test_what_is_refused_for_good_is_counted_and_the_next_goes_on() -> None:
    refusals, taken = ["MESSAGE_TOO_LARGE"], []

    async def deliver(lines: list[Line]) -> None:
        if refusals:
            raise Lost(refusals.pop())
        taken.extend(lines)

    clock = SystemClock()
    outlet = Outlet("a topic", deliver, Sparing(logging.getLogger("penstock.audit")))
    outlet.put(Line(clock.now_ms(), b"one\n"))
    await until(lambda: outlet.drops[WRITE] == 1)
    outlet.put(Line(clock.now_ms(), b"two\n"))
    await outlet.close()
    assert [line.text for line in taken] == [b"two\n"]
    assert (outlet.delivered, outlet.drops) == (1, {QUEUE: 0, WRITE: 1})


@on_loop
async def test_a_node_that_may_not_write_is_told_of_once_for_a_connection() -> None:
    taken: list[Line] = []

    async def deliver(lines: list[Line]) -> None:
        taken.extend(lines)

    audit = Audit(7, SystemClock(), None)
    audit.also_to(Outlet("a topic", deliver, audit.sparing))
    for number in (1, 1, 2):
        ctx = asked(number)
        ctx.client_id = AUDIT_CLIENT
        audit.denied(ctx, Operation.WRITE, ResourceType.TOPIC, "__penstock_audit")
    audit.denied(asked(1), Operation.WRITE, ResourceType.TOPIC, "__penstock_audit")
    await audit.close()
    assert len(taken) == 3
