"""What a driver has heard of its queries, on its way to groups and to the internal topic.

Whoever hears something posts it and goes on; a loop in a thread of its own does the telling. Only a query's last word
counts, so at most one waits for each query, however fast batches follow and however long a broker is away.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.client.blocking.loop_thread import LoopThread
from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition
from penstock.spark.progress.groups import Commit, commit_offsets
from penstock.spark.progress.login import login_of_the_process
from penstock.spark.progress.patience import PATIENCE_S, within
from penstock.spark.progress.records import (
    ERROR_CHARS_MAX,
    EXPECTED,
    ExpectationCount,
    ProgressRecord,
    expectations_in,
    our_offsets,
    query_of,
    record_of,
    summed,
)
from penstock.spark.progress.topic import Entry, InternalTopic
from penstock.spark.progress.warnings_once import forget, reason, warn_once
from penstock.spark.reasons import reason_in

QUERIES_MAX: Final = 1_000
RECORDS_EVERY_S: Final = 1.0
COMMIT_AGAIN_S: Final = 600.0
"""A broker forgets the offsets of a group that nobody commits to, by default after a week."""
AFTER_FAILURE_S: Final = 5.0
AFTER_TAKEN_S: Final = 60.0

Monotonic = Callable[[], float]


@dataclass(slots=True)
class Run:
    """One run of a query: what is known of it and what of that is still to be told."""

    owner: str
    home: str
    name: str
    query_id: str
    run_id: str
    news: str | None = None
    idle: bool = False
    ended: bool = False
    error: str = ""
    late_rows: int = 0
    """Of all its batches: news of one may be replaced by the next one's before anybody has looked."""
    expectations: tuple[ExpectationCount, ...] = ()
    """The same of rules."""
    offsets: dict[tuple[str, str, bool], dict[TopicPartition, int]] = field(default_factory=dict)
    """By who was asked, the name to publish under, and whether only committed records are read; sources may differ."""
    read: frozenset[str] = frozenset()
    uncommitted: bool = False
    commit_due_s: float = 0.0
    committed_s: float = 0.0
    record: ProgressRecord | None = None
    unpublished: bool = False
    publish_due_s: float = 0.0

    @property
    def bootstraps(self) -> list[str]:
        """Where its progress is told: at home if it has one, else wherever it reads."""
        return [self.home] if self.home else sorted(self.read)

    @property
    def over(self) -> bool:
        """Whether it has ended and all of it is told; its end may have come while something else was being told."""
        told = self.news is None and not self.uncommitted and not self.unpublished
        return self.ended and told and self.record is not None and not self.record.active

    def told(self, news: str, late_rows: int) -> None:
        """Spark's words about a batch, and how many rows came too late for it."""
        self.news = news
        self.late_rows += late_rows
        if EXPECTED in news:
            self.expectations = summed(self.expectations, expectations_in(json.loads(news)))

    def hear(self) -> None:
        """Takes the news in."""
        if self.news is None:
            return
        progress: dict[str, Any] = json.loads(self.news)
        self.news = None
        self.name = query_of(progress)
        self.offsets = {}
        ours = [here for here, _ in our_offsets(progress) if here.bootstrap]
        self.read = frozenset(here.bootstrap for here in ours)
        for here in ours:
            if not here.quiet:
                place = (here.bootstrap, here.query or self.name, here.committed)
                self.offsets.setdefault(place, {}).update(here.ends)
        self.uncommitted = bool(self.offsets)
        if self.bootstraps:
            self.record = replace(
                record_of(self.owner, progress), late_rows=self.late_rows, expectations=self.expectations
            )
            self.unpublished = True

    def end(self) -> None:
        """Takes its end in: the last word is told at once."""
        record = self.record or ProgressRecord(
            self.owner, self.name, self.query_id, self.run_id, -1, time.time_ns() // 1_000_000
        )
        found = reason_in(self.error)
        words = self.error if found is None else found.words
        self.record = replace(record, active=False, error=words[:ERROR_CHARS_MAX])
        self.unpublished = bool(self.bootstraps)
        self.commit_due_s = self.publish_due_s = 0.0


class Publishing:
    """All runs of a process. `post` is for any thread and never waits; everything else happens on its loop."""

    def __init__(self, monotonic: Monotonic = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._thread: LoopThread | None = None
        self._wake: asyncio.Event | None = None
        self._busy = False
        self._topics: dict[str, InternalTopic] = {}
        self._logins: dict[str, Mapping[str, str]] = {}
        self.dropped = 0

    def log_in(self, bootstrap: str, login: Mapping[str, str]) -> None:
        """How a cluster is reached from now on, unless it is in touch already."""
        self._logins[bootstrap] = login

    def post(self, run_id: str, change: Callable[[Run], None], make: Callable[[], Run] | None = None) -> None:
        """Changes what is known of a run; a run that nobody made is passed over."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                if make is None:
                    return
                run = self._runs[run_id] = make()
                while len(self._runs) > QUERIES_MAX:
                    del self._runs[next(iter(self._runs))]
                    self.dropped += 1
            change(run)
            self._busy = True
            if self._thread is None:
                self._thread = LoopThread("penstock-progress")
                self._thread.begin(self._work())
            elif self._wake is not None:
                self._thread.loop.call_soon_threadsafe(self._wake.set)

    def flush(self, limit_s: float = PATIENCE_S) -> bool:
        """Waits until everything is told, or until `limit_s` is over; answers whether it is."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            with self._lock:
                if not self._busy:
                    return True
                for run in self._runs.values():
                    run.publish_due_s = 0.0
                if self._thread is not None and self._wake is not None:
                    self._thread.loop.call_soon_threadsafe(self._wake.set)
            time.sleep(0.01)
        return False

    def close(self, limit_s: float = PATIENCE_S) -> None:
        """Tells what is left, for as long as that, and ends."""
        self.flush(limit_s)
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            with suppress(ClientError, TimeoutError, OSError):  # it is given up in any case
                thread.call(within(self._hang_up(), limit_s))
            thread.stop()

    async def _hang_up(self) -> None:
        for topic in self._topics.values():
            await topic.close()
        self._topics.clear()

    async def _work(self) -> None:
        self._wake = asyncio.Event()
        while True:
            self._wake.clear()
            due_s = await self._round()
            wait_s = None if due_s is None else max(0.0, due_s - self._monotonic())
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _round(self) -> float | None:
        """Tells what is due; answers when the next is, None when nothing waits."""
        with self._lock:
            runs = list(self._runs.values())
            for run in runs:
                self._take_in(run)
        for run in runs:
            await self._tell(run)
        with self._lock:
            for run in [run for run in self._runs.values() if run.over]:
                del self._runs[run.run_id]
            waiting = [
                due_s
                for run in self._runs.values()
                for due_s, open_ in ((run.commit_due_s, run.uncommitted), (run.publish_due_s, run.unpublished))
                if open_
            ]
            self._busy = bool(waiting) or any(run.news is not None or run.ended for run in self._runs.values())
        return min(waiting, default=None)

    def _take_in(self, run: Run) -> None:
        try:
            run.hear()
        except (ValueError, KeyError, TypeError, AttributeError) as strange:
            run.news = None
            warn_once("progress", words=f"the progress of query {run.name!r} is not understood: {strange!r}")
        if run.ended and (run.record is None or run.record.active):
            run.end()
        if run.idle:
            run.idle = False
            if run.offsets and self._monotonic() - run.committed_s >= COMMIT_AGAIN_S:
                run.uncommitted, run.commit_due_s = True, 0.0

    async def _tell(self, run: Run) -> None:
        now_s = self._monotonic()
        if run.uncommitted and run.commit_due_s <= now_s:
            await self._commit(run)
        if run.unpublished and run.publish_due_s <= now_s:
            await self._publish(run)

    async def _commit(self, run: Run) -> None:
        run.uncommitted = False
        worst = Commit.DONE
        for (bootstrap, name, committed), offsets in list(run.offsets.items()):
            # A task of the next batch may have told already where that one begins.
            admin = self._topic(bootstrap).admin
            outcome = await commit_offsets(admin, name, offsets, read_committed=committed, forward_only=True)
            worst = worst if outcome is Commit.DONE else outcome
        run.committed_s = self._monotonic()
        if worst is Commit.DONE or run.ended:
            return
        run.commit_due_s = run.committed_s + (AFTER_TAKEN_S if worst is Commit.TAKEN else AFTER_FAILURE_S)
        run.uncommitted = True

    async def _publish(self, run: Run) -> None:
        assert run.record is not None
        run.unpublished = False
        entry = Entry(run.record.key, run.record.to_json())
        run.publish_due_s = self._monotonic() + RECORDS_EVERY_S
        for bootstrap in run.bootstraps:
            try:
                await within(self._topic(bootstrap).append([entry]))
                forget("records", bootstrap)
            except (ClientError, TimeoutError, OSError) as failure:
                run.publish_due_s = self._monotonic() + AFTER_FAILURE_S
                run.unpublished = not run.ended
                warn_once(
                    "records",
                    bootstrap,
                    words=f"the progress of query {run.name!r} could not be told to {bootstrap}: "
                    f"{reason(failure)}. The query goes on; `penstock pipeline status` shows an older state. "
                    "Is the broker up, may this user write the topic __penstock_spark?",
                )

    def _topic(self, bootstrap: str) -> InternalTopic:
        found = self._topics.get(bootstrap)
        if found is None:
            login = self._logins.get(bootstrap) or login_of_the_process(bootstrap)
            found = self._topics[bootstrap] = InternalTopic({"bootstrap_servers": bootstrap, **login})
        return found
