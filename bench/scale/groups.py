"""Groups: with offsets and nobody in them, and with one member each that sends heartbeats. And what one more costs."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from itertools import count

from bench.brokers import PENSTOCK_NODE, Running
from bench.group_load import (
    JOIN_GROUP,
    SESSION_MS,
    SYNC_GROUP,
    classic_heartbeat,
    commit_for_groups,
    consumer_heartbeat,
    find_coordinator,
)
from bench.scale.found import RESTART, START, Findings, cpu_ms, cpu_us
from bench.scale.members import members
from bench.scale.plan import Plan
from bench.scale.subject import PROBE, Subject, subject, take_steady
from tests.compat import wire

PART = "groups"
EMPTY, HELD = "without members", "one member each, a heartbeat every 3 s"
LIST_GROUPS = 16

HEARTBEAT = cpu_us("Heartbeat", 10.0)
CONSUMER_HEARTBEAT = cpu_us("ConsumerGroupHeartbeat", 10.0)
JOIN = cpu_us("one more group: its member joins and syncs", 150.0)
REBALANCE = cpu_us("rebalance of one group: its member joins again and syncs", 100.0)
LISTING = cpu_ms("ListGroups")
BEATS = 2_000
# Members come one by one here; as shipped a new group waits three seconds for more of them.
PROPERTIES = {"group.initial.rebalance.delay.ms": "0"}


def measure(plan: Plan, found: Findings, say: Callable[[str], None]) -> None:
    for size in plan.groups:
        say(f"{size} groups without members")
        with subject(PROPERTIES) as node:
            node.begin()
            commit_for_groups(Running(PENSTOCK_NODE, node.node), PROBE, max(size, 1))
            node.settle()
            _steady(plan, found, node, EMPTY, size)
            node.node.stop()
            found.add(PART, EMPTY, START, size, node.start_s())
            node.node.kill()
            found.add(PART, EMPTY, RESTART, size, node.start_s())
    for size in plan.groups:
        say(f"{size} groups of one member")
        with subject(PROPERTIES) as node:
            node.begin()
            commit_for_groups(Running(PENSTOCK_NODE, node.node), PROBE, 1)
            node.settle()
            with members(node.bootstrap, size):
                _steady(plan, found, node, HELD, size)


def _steady(plan: Plan, found: Findings, node: Subject, line: str, size: int) -> None:
    take_steady(found, node, PART, line, size, plan.idle_s, plan.latency_s, plan.rate_per_s)
    # Members' heartbeats go on beside the questions; what they take is taken off.
    meter = _Meter(node, node.idle_percent(min(plan.idle_s, 3.0)) / 100)
    with wire.connect(node.bootstrap) as connection:
        find_coordinator(connection, "more-0")
        numbers = count()
        found.add(PART, line, JOIN, size, meter.us_each(50, lambda: _join(connection, f"more-{next(numbers)}")))
        member = _join(connection, "again")
        found.add(PART, line, REBALANCE, size, meter.us_each(50, lambda: _join(connection, "again", member)))
        classic = classic_heartbeat(connection, "beating")
        found.add(PART, line, HEARTBEAT, size, meter.us_each(BEATS, lambda: connection.call(classic)))
        consumer = consumer_heartbeat(connection, "beating-too", PROBE)
        found.add(PART, line, CONSUMER_HEARTBEAT, size, meter.us_each(BEATS, lambda: connection.call(consumer)))
        listing = wire.request(LIST_GROUPS, 0, b"")
        found.add(PART, line, LISTING, size, meter.us_each(20, lambda: connection.call(listing)) / 1e3)


def _join(connection: wire.Connection, group: str, member: str = "") -> str:
    """A member joins, for the first time or again, and hands out the assignment; its id."""
    protocols = struct.pack(">i", 1) + wire.text("range") + wire.blob(bytes(10))
    body = wire.text(group) + struct.pack(">i", SESSION_MS) + wire.text(member) + wire.text("consumer") + protocols
    joined = connection.call(wire.request(JOIN_GROUP, 0, body))
    error, generation = joined.take("hi")
    if error:
        raise AssertionError(f"JoinGroup was refused with error {error}")
    joined.text()
    joined.text()
    member = joined.text() or ""
    body = wire.text(group) + struct.pack(">i", generation) + wire.text(member)
    alone = struct.pack(">i", 1) + wire.text(member) + wire.blob(b"")
    if error := connection.call(wire.request(SYNC_GROUP, 0, body + alone)).one("h"):
        raise AssertionError(f"SyncGroup was refused with error {error}")
    return member


class _Meter:
    """CPU of the node for one of several acts, without the share of a core that it uses anyhow."""

    def __init__(self, node: Subject, beside: float) -> None:
        self._node, self._beside = node, beside

    def us_each(self, repeats: int, act: Callable[[], object]) -> float:
        began = time.perf_counter()
        used_us = self._node.cpu_us_each(repeats, act)
        return used_us - self._beside * (time.perf_counter() - began) / repeats * 1e6
