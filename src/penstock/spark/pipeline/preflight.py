"""What brokers can tell before Spark is started: whether they are there, and whether the topics are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from penstock.declared.mistakes import did_you_mean
from penstock.spark.errors import Missing, SparkRoomError
from penstock.spark.pipeline.flow import Flow
from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP

ASK_WITHIN_MS = 10_000


class NoBroker(SparkRoomError):
    """Nobody answers where the brokers should be."""


class NoTopic(Missing):
    """A topic that a source reads is not there."""


def check_topics(flow: Flow) -> None:
    """Raises `NoTopic` for sources whose topics are not there, `NoBroker` when nobody can be asked."""
    if all(source.table is not None for source in flow.sources):
        return
    missing = missing_topics(flow, asyncio.run(_topics(flow)))
    if missing:
        raise NoTopic("\n".join(missing))


def missing_topics(flow: Flow, existing: Iterable[str]) -> list[str]:
    """A sentence for each topic that a source reads and that is not there. Pure."""
    there = sorted(existing)
    found = []
    for source in flow.sources:
        for topic in source.topics:
            if topic not in there:
                near = did_you_mean(topic, there)
                hint = near if "mean" in near else f"; `penstock topic create {topic}` makes it"
                place = f"{flow.path}:{source.line}"
                found.append(f"{place}: source {source.name} reads topic {topic!r}, which is not there{hint}")
    return found


async def _topics(flow: Flow) -> list[str]:
    from penstock.client.admin import Admin
    from penstock.client.errors import ClientError
    from penstock.spark.source.client_settings import admin_settings, client_settings
    from penstock.transport.dial import LinkError

    bootstrap = flow.bootstrap or DEFAULT_BOOTSTRAP
    settings = client_settings({**flow.kafka, "bootstrap.servers": bootstrap})
    try:
        async with Admin(**admin_settings(settings, ASK_WITHIN_MS)) as admin:
            return [topic.name for topic in await admin.topics(internal=True)]
    except (ClientError, LinkError, OSError) as failure:
        raise NoBroker(
            f"no broker answers at {bootstrap}: {failure}. Is one running there? "
            "`bootstrap` in the file, or -b, says where to look"
        ) from failure
