"""Who looks: at the cluster, the writer, the agent, the pipeline and the table, each at its own pace.

A look that fails is no news: a node is away, a file is not there yet. What must not fail is waited for by the story.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from penstock.agent import presence
from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.demo.plan import INPUT, PIPELINE, TABLE, TOPIC
from penstock.demo.sight import UP, PartitionSight, Sight
from penstock.demo.stage import Stage
from penstock.model.errors import PenstockError
from penstock.spark.naming import group_of
from penstock.transport.dial import LinkError

if TYPE_CHECKING:
    from penstock.spark.lake.store import TableStore

CLUSTER_EVERY_S: Final = 0.1
"""The time of a failover is measured by these looks."""
ENDS_EVERY: Final = 5
"""So many looks at leaders for one at the ends of the partitions."""
SLOW_EVERY_S: Final = 0.3
SUMS_GROUP: Final = group_of(f"{PIPELINE}-minutes")
ASK_MS: Final = 2_000
STATUS_TIMEOUT_S: Final = 1.0

_AWAY: Final = (ClientError, LinkError, OSError, TimeoutError)


async def watch(stage: Stage, sight: Sight) -> None:
    """Until it is cancelled."""
    async with asyncio.TaskGroup() as looking:
        looking.create_task(_watch_cluster(stage, sight))
        looking.create_task(_watch_rest(stage, sight))
        looking.create_task(_watch_table(stage, sight))


async def _watch_cluster(stage: Stage, sight: Sight) -> None:
    settings: dict[str, Any] = {"default_api_timeout_ms": ASK_MS, "request_timeout_ms": ASK_MS}
    async with Admin(**stage.reach, **settings) as admin:
        looks = 0
        while True:
            with suppress(*_AWAY):
                await _look_at_cluster(admin, sight, offsets=looks % ENDS_EVERY == 0)
                if looks % ENDS_EVERY == 0:
                    await _look_at_sums(admin, sight)
            looks += 1
            await asyncio.sleep(CLUSTER_EVERY_S)


async def _look_at_cluster(admin: Admin, sight: Sight, *, offsets: bool) -> None:
    topic = await admin.describe_topic(TOPIC, offsets=offsets, configs=False)
    before = {each.partition: each.end for each in sight.partitions}
    sight.partitions = [
        PartitionSight(
            each.partition,
            each.leader,
            tuple(sorted(each.isr)),
            tuple(sorted(each.replicas)),
            max(each.end, before.get(each.partition, -1)),
        )
        for each in topic.partitions
    ]


async def _look_at_sums(admin: Admin, sight: Sight) -> None:
    """By the group that shows how far the query is."""
    for place, committed in (await admin.group_offsets(SUMS_GROUP)).items():
        if place.topic == TOPIC:
            sight.pipeline.summed[place.partition] = committed.offset


async def _watch_rest(stage: Stage, sight: Sight) -> None:
    while True:
        _look_at_log(stage, sight)
        _look_at_pipeline(stage, sight)
        await asyncio.to_thread(_look_at_agent, stage, sight)
        await asyncio.sleep(SLOW_EVERY_S)


def _look_at_log(stage: Stage, sight: Sight) -> None:
    count = stage.count()
    if count is None:
        return
    log = sight.log
    log.lines, log.bytes, log.broken, log.rotations = count.lines, count.bytes, count.broken_count, count.rotations
    log.clock = count.log_time[11:16]
    log.rate.saw(time.monotonic(), count.lines)
    if not log.moments or log.moments[-1][0] < count.at_ms:
        log.moments.append((count.at_ms, count.lines))


def _look_at_agent(stage: Stage, sight: Sight) -> None:
    found = presence.find(stage.agent_state)
    if found is None or not found.admin:
        return
    with suppress(OSError, ValueError, KeyError):
        with urllib.request.urlopen(f"http://{found.admin}/status", timeout=STATUS_TIMEOUT_S) as reply:
            status = json.load(reply)
        agent, told = sight.agent, status["inputs"][INPUT]
        if agent.pid != status["pid"]:
            agent.pid, agent.before = status["pid"], agent.sent
        agent.state, agent.sent = UP, agent.before + int(told["sent"])
        agent.behind_bytes, agent.files = int(told["behind_bytes"]), int(told["files"])
        agent.rate.saw(time.monotonic(), agent.sent)


def _look_at_pipeline(stage: Stage, sight: Sight) -> None:
    state, progress = stage.home.state(), stage.home.progress()
    if state is None:
        return
    pipeline = sight.pipeline
    pipeline.state, pipeline.restarts, pipeline.driver_pid = state.state, state.restarts, state.driver_pid
    for sink in () if progress is None else progress.sinks:
        pipeline.error = sink.error or pipeline.error


async def _watch_table(stage: Stage, sight: Sight) -> None:
    look = _table_looker(stage, sight)
    while True:
        with suppress(PenstockError, OSError):
            await asyncio.to_thread(look)
        await asyncio.sleep(SLOW_EVERY_S)


def _table_looker(stage: Stage, sight: Sight) -> Callable[[], None]:
    """Reads each commit once."""
    opened: list[TableStore] = []

    def look() -> None:
        from penstock.spark.lake.warehouse import Warehouse

        if not opened:
            if not (stage.warehouse / TABLE / "_delta_log").is_dir():
                return
            opened.append(Warehouse(str(stage.warehouse)).find(TABLE).open())
        (store,) = opened
        store.refresh()
        table = sight.table
        if store.version() == table.version:
            table.rate.saw(time.monotonic(), table.rows)
            return
        for commit in store.commits(after=table.version):
            table.rows += commit.rows
            table.dead += commit.dead
            if commit.ranges:
                table.commits += 1
                table.last_commit_ms = commit.time_ms
            for each in commit.ranges:
                table.stands[each.partition] = max(each.end, table.stands.get(each.partition, 0))
        table.version = store.version()
        table.rate.saw(time.monotonic(), table.rows)

    return look
