"""Which pipelines there are, how they are, and what is wanted of them, through the internal topic.

For drivers and commands: blocking, from any thread. Reading raises (whoever asks wants to know), telling does not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.spark.progress.patience import PATIENCE_S, within
from penstock.spark.progress.records import (
    FAILED,
    RUN,
    RUNNING,
    SILENT,
    STOP,
    STOPPED,
    PipelineRecord,
    ProgressRecord,
    control_key,
)
from penstock.spark.progress.topic import Entry, InternalTopic
from penstock.spark.progress.warnings_once import forget, reason, warn_once

__all__ = [
    "FAILED",
    "RUN",
    "RUNNING",
    "SILENT",
    "STOP",
    "STOPPED",
    "ControlFollower",
    "PipelineRecord",
    "PipelineStatus",
    "ProgressRecord",
    "ask",
    "follow_control",
    "merge",
    "statuses",
    "tell",
]

SILENT_AFTER_HEARTBEATS: Final = 3

READING_S: Final = 30.0
"""A week of progress may be a lot to read; whoever asks has more patience than a query."""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline and its queries. `state` is running, stopped, failed, or silent: it should run and is not heard of."""

    name: str
    state: str
    host: str
    pid: int
    started_ms: int
    heard_ms: int
    master: str
    digest: str
    file: str
    error: str
    restarts: int
    wanted: str
    queries: tuple[ProgressRecord, ...]
    fresh_within_s: Mapping[str, float] = field(default_factory=dict)
    """What is promised of queries, by their names."""

    @property
    def lag(self) -> int:
        return sum(query.lag for query in self.queries)

    @property
    def rows_per_s(self) -> float:
        return sum(query.processed_rows_per_s for query in self.queries if query.active)


def statuses(
    bootstrap: str, *, now_ms: int | None = None, settings: Mapping[str, Any] | None = None
) -> list[PipelineStatus]:
    """All pipelines that a cluster has heard of within a week, by name; raises ClientError when it cannot be asked."""
    from penstock.spark.dialogue import for_process

    async def read() -> list[Entry]:
        async with InternalTopic({"bootstrap_servers": bootstrap, **(settings or {})}) as topic:
            return (await topic.read())[0]

    entries = for_process().run(within(read(), READING_S))
    return merge(entries, _now_ms() if now_ms is None else now_ms)


def merge(entries: Iterable[Entry], now_ms: int) -> list[PipelineStatus]:
    """What the records of the topic, oldest first, add up to. Pure."""
    last = {entry.key: entry for entry in entries}
    pipelines: dict[str, PipelineRecord] = {}
    heard: dict[str, int] = {}
    wanted: dict[str, str] = {}
    queries: dict[str, list[ProgressRecord]] = {}
    for key, entry in last.items():
        kind, _, _ = key.partition("/")
        if entry.value is None:
            continue
        try:
            if kind == "pipeline":
                record = PipelineRecord.of_json(entry.value)
                pipelines[record.name] = record
                heard[record.name] = entry.timestamp_ms if entry.timestamp_ms >= 0 else record.at_ms
            elif kind == "progress":
                progress = ProgressRecord.of_json(entry.value)
                queries.setdefault(progress.owner, []).append(progress)
            elif kind == "control":
                wanted[key.removeprefix("control/")] = str(entry.value.get("want", ""))
        except (TypeError, ValueError):
            continue
    return [
        _status(pipelines[name], heard[name], wanted.get(name, ""), queries.get(name, ()), now_ms)
        for name in sorted(pipelines)
    ]


def _status(
    record: PipelineRecord, heard_ms: int, wanted: str, queries: Iterable[ProgressRecord], now_ms: int
) -> PipelineStatus:
    overdue = now_ms - heard_ms > SILENT_AFTER_HEARTBEATS * record.heartbeat_ms
    return PipelineStatus(
        name=record.name,
        state=SILENT if record.state == RUNNING and overdue else record.state,
        host=record.host,
        pid=record.pid,
        started_ms=record.started_ms,
        heard_ms=heard_ms,
        master=record.master,
        digest=record.digest,
        file=record.file,
        error=record.error,
        restarts=record.restarts,
        wanted=wanted,
        queries=tuple(sorted(queries, key=lambda query: query.query)),
        fresh_within_s=record.fresh_within_s,
    )


def tell(bootstrap: str, record: PipelineRecord | ProgressRecord, settings: Mapping[str, Any] | None = None) -> bool:
    """A pipeline's word about itself, or a query's. Never raises, takes two seconds at most, warns once."""
    try:
        _append(bootstrap, Entry(record.key, record.to_json()), settings or {})
    except Exception as failure:  # a pipeline does not fail because nobody hears of it
        warn_once(
            "tell",
            bootstrap,
            words=f"the state of {record.key} could not be told to {bootstrap}: {reason(failure)}. It goes "
            "on; `penstock pipeline list` elsewhere shows an older state. Is the broker up, may this user write the "
            "topic __penstock_spark?",
        )
        return False
    forget("tell", bootstrap)
    return True


def ask(bootstrap: str, name: str, want: str, settings: Mapping[str, Any] | None = None) -> None:
    """Asks a pipeline, wherever it runs, to stop (or to run on); raises ClientError when that cannot be told."""
    if want not in (STOP, RUN):
        raise ValueError(f"{want!r} cannot be wanted of a pipeline: {STOP!r} or {RUN!r}")
    _append(bootstrap, Entry(control_key(name), {"want": want, "at_ms": _now_ms()}), settings or {})


def _append(bootstrap: str, entry: Entry, settings: Mapping[str, Any]) -> None:
    from penstock.spark.dialogue import for_process

    async def append() -> None:
        async with InternalTopic({"bootstrap_servers": bootstrap, **settings}) as topic:
            await topic.append([entry])

    for_process().run(within(append()))


def follow_control(bootstrap: str, name: str, settings: Mapping[str, Any] | None = None) -> ControlFollower:
    """For a runner that begins now: what is wanted of its pipeline from here on. What was wanted before is over."""
    return ControlFollower(bootstrap, name, settings)


class ControlFollower:
    """What is wanted of one pipeline; `check` it every second or so, from one thread at a time."""

    def __init__(self, bootstrap: str, name: str, settings: Mapping[str, Any] | None = None) -> None:
        self._settings = {"bootstrap_servers": bootstrap, **(settings or {})}
        self._name, self._since_ms = name, _now_ms()
        self._next: int | None = None
        # By the broker's log rather than by anybody's clock, unless it cannot be asked yet.
        self.check()

    def check(self) -> str | None:
        """The newest wish since the last check, "stop" or "run"; None when there is none or nobody can be asked.

        Takes a millisecond or two when nothing is new, and two seconds at most.
        """
        from penstock.spark.dialogue import admin_for, for_process

        try:
            admin = admin_for(self._settings)
            return for_process().run(within(self._look(InternalTopic(self._settings, admin=admin)), PATIENCE_S))
        except Exception as failure:  # whoever cannot be asked may be back for the next check
            warn_once(
                "control",
                self._name,
                words=f"whether pipeline {self._name!r} is wanted to stop cannot be learned from "
                f"{self._settings['bootstrap_servers']}: {reason(failure)}. It goes on; stop it on its own "
                "machine.",
            )
            return None

    async def _look(self, topic: InternalTopic) -> str | None:
        key = control_key(self._name)
        if self._next is None and _now_ms() - self._since_ms < PATIENCE_S * 1000:
            self._next = await topic.end()
            return None
        since_ms = self._since_ms if self._next is None else None
        entries, self._next = await topic.read(self._next, since_ms=since_ms, prefix=key)
        wishes = [entry.value for entry in entries if entry.key == key and entry.value is not None]
        want = wishes[-1].get("want") if wishes else None
        return want if want in (STOP, RUN) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
