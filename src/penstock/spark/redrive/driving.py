"""Sends letters: each chunk of them in one transaction with the marks that say so."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.errors import BrokerRefused, TransactionAbortable, TransactionFenced
from penstock.client.producer import Producer
from penstock.model.errors import OFFSET_OUT_OF_RANGE
from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption, Missing, SparkRoomError
from penstock.spark.naming import REDRIVE_TOPIC
from penstock.spark.redrive import marks_topic
from penstock.spark.redrive.chunks import CHUNK_LETTERS, Chunk, Letters
from penstock.spark.redrive.marks import Marks
from penstock.spark.redrive.records import Resent, broke_a_rule, resent
from penstock.spark.redrive.table import TableLetters
from penstock.spark.redrive.topic import TopicLetters
from penstock.spark.source.client_settings import admin_settings
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage
from penstock.spark.values.dead_letters import DeadLetters, producer_settings
from penstock.spark.values.letters import DeadLetter

RATE_PER_S: Final = 1_000.0
ERRORS_SHOWN: Final = 10
TRIES: Final = 3
PATIENCE_MS: Final = 30_000
ID_PREFIX: Final = "penstock-redrive-"
"""Of transactional ids: whoever redrives with ACLs allows it."""
TRANSACTION_TIMEOUT_MS: Final = 60_000
_ERROR_WORDS: Final = 120
_LOOK_EVERY_S: Final = 0.2


class Overtaken(SparkRoomError):
    """Another run is at the same letters."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to come back, from where and to where."""

    source: str
    letters: DeadLetters
    settings: Mapping[str, str] = field(repr=False)
    """A consumer's, by our names. There may be passwords among them."""
    wanted: Callable[[str], bool]
    origins: tuple[str, ...] = ()
    """The topics that are wanted, where they are named."""
    storage: Storage = FROM_ENVIRONMENT
    into: str | None = None
    limit: int | None = None
    rate_per_s: float = RATE_PER_S
    dry_run: bool = False
    rows_are_values: bool = False
    """Whether a row as JSON is what a record of this source is."""


@dataclass(frozen=True, slots=True)
class Redriven:
    """How far a run is. A dry run counts as `letters` what would be sent."""

    source: str
    place: str
    dry_run: bool = False
    letters: int = 0
    by_target: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    """Why they were letters, the most frequent ones first."""
    twins: int = 0
    """Letters that are there twice, and are sent once."""
    others: int = 0
    """Records among the letters that are none."""
    looked_at: int = 0
    total: int = 0
    done: bool = False
    """Whether no letter is left of those that were there at its beginning."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def nothing(_: Redriven) -> None:
    """For those who watch nothing."""


async def redrive(job: Job, watch: Callable[[Redriven], None], stopped: Callable[[], bool]) -> Redriven:
    """Ends when all that was there is sent, at the limit, or between two transactions when it is `stopped`."""
    async with Admin(**admin_settings(job.settings, PATIENCE_MS)) as admin:
        letters = await _letters(job, admin)
        there = await marks_topic.ensure(admin, make=not job.dry_run)
        if job.dry_run:
            marks = Marks(letters.place)
            if there:
                marks = await marks_topic.read(admin, job.settings, letters.place, waits=False)
            return await _Run(job, admin, letters, marks, None, watch, stopped).through()
        async with Producer(**_settings(job, letters)) as producer:
            marks = await marks_topic.read(admin, job.settings, letters.place, waits=True)
            return await _Run(job, admin, letters, marks, producer, watch, stopped).through()


async def _letters(job: Job, admin: Admin) -> Letters:
    match job.letters.policy:
        case "topic":
            if job.into == job.letters.target:
                raise BadOption(f"{job.into} has the dead letters themselves: name another topic")
            return await TopicLetters(admin, job.settings, job.letters.target, job.origins).opened()
        case "table":
            return TableLetters(job.letters.target, job.storage)
        case other:
            raise BadOption(
                f'source {job.source} says dead_letters = "{other}", so none were kept: "topic:NAME" or "table:PATH" '
                "keeps those that come from now on"
            )


def _settings(job: Job, letters: Letters) -> dict[str, Any]:
    name = ID_PREFIX + blake2b(letters.place.encode(), digest_size=8).hexdigest()
    mine = {"transactional_id": name, "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
    return {**producer_settings(job.settings), **mine}


class _Run:
    """One run: counts, pace, and the sending of chunks. Without a producer it only counts."""

    def __init__(
        self,
        job: Job,
        admin: Admin,
        letters: Letters,
        marks: Marks,
        producer: Producer | None,
        watch: Callable[[Redriven], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._job, self._admin, self._letters, self._marks = job, admin, letters, marks
        self._producer, self._watch, self._stopped = producer, watch, stopped
        self._told = Redriven(job.source, letters.place.partition("#")[0], job.dry_run)
        self._targets: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._partitions: dict[str, int] = {}
        self._begun_s = time.monotonic()

    async def through(self) -> Redriven:
        self._told = replace(self._told, total=await self._letters.total(self._marks))
        if self._job.into is not None:
            await self._partitions_of(self._job.into)
        finished = True
        async for chunk in self._letters.chunks(self._marks, self._job.wanted, self._most):
            await self._take(chunk)
            if self._most() <= 0 or self._stopped():
                finished = self._told.looked_at >= self._told.total
                break
            await self._pause()
        looked_at = self._told.total if finished else self._told.looked_at
        self._told = replace(self._told, done=finished, looked_at=looked_at)
        self._watch(self._told)
        return self._told

    def _most(self) -> int:
        """How many letters the next chunk may have: what a second may have, within the limit."""
        left = CHUNK_LETTERS if self._job.limit is None else self._job.limit - self._told.letters
        return min(left, CHUNK_LETTERS, max(1, int(self._job.rate_per_s)))

    async def _take(self, chunk: Chunk) -> None:
        if self._producer is not None:
            await self._send(self._producer, chunk)
        for each in chunk.letters:
            self._targets[self._job.into or each.topic] += 1
            self._errors[each.error[:_ERROR_WORDS]] += 1
        self._told = replace(
            self._told,
            letters=self._told.letters + len(chunk.letters),
            by_target=dict(sorted(self._targets.items())),
            errors=dict(self._errors.most_common(ERRORS_SHOWN)),
            twins=self._told.twins + chunk.twins,
            others=self._told.others + chunk.others,
            looked_at=self._told.looked_at + chunk.seen,
        )
        self._watch(self._told)

    async def _send(self, producer: Producer, chunk: Chunk) -> None:
        marks = self._letters.marks_of(self._marks, chunk)
        if not marks:
            return
        records = [await self._record(letter) for letter in chunk.letters]
        for left in reversed(range(TRIES)):
            try:
                await _sent(producer, records, marks)
                break
            except TransactionFenced as fenced:
                raise Overtaken(
                    f"another run has begun with the same letters ({self._told.place}) and goes on where this one is: "
                    f"{fenced}"
                ) from fenced
            except TransactionAbortable:
                # It was aborted, and whoever was overtaken learns so when it begins the next one.
                if not left:
                    raise
        for key, value in marks:
            self._marks.take_in(key, value)

    async def _record(self, letter: DeadLetter) -> Resent:
        whole = await self._whole(letter) if broke_a_rule(letter) else letter
        target = self._job.into or letter.topic
        return resent(whole, into=self._job.into, partitions=await self._partitions_of(target))

    async def _whole(self, letter: DeadLetter) -> DeadLetter:
        """The record of a letter that has only its row: from its topic, as long as it is there."""
        try:
            found = await self._admin.record_at(TopicPartition(letter.topic, letter.partition), letter.offset)
        except BrokerRefused as refused:
            if refused.error is not OFFSET_OUT_OF_RANGE:
                raise
            found = None
        time_ms = None if letter.timestamp is None else round(letter.timestamp.timestamp() * 1000)
        if found is not None and found.offset == letter.offset and time_ms in (None, found.timestamp):
            return replace(letter, key=found.key, value=found.value, headers=tuple(found.headers))
        if self._job.rows_are_values:
            return letter
        raise Missing(
            f"{letter.topic}-{letter.partition}@{letter.offset} broke a rule, its letter has the row as JSON, and the "
            "record itself is gone from its topic: it cannot be sent as it was. It stays among the letters"
        )

    async def _partitions_of(self, topic: str) -> int:
        if topic not in self._partitions:
            found = await self._admin.describe_topics([topic], offsets=False, configs=False)
            if topic not in found.done:
                raise Missing(f"there is no topic {topic} to send letters to: create it, or name another with --into")
            self._partitions[topic] = len(found.done[topic].partitions)
        return self._partitions[topic]

    async def _pause(self) -> None:
        """Until so many letters may have been sent. A dry run sends none."""
        if self._producer is None:
            return
        due_s = self._begun_s + self._told.letters / self._job.rate_per_s
        while (left_s := due_s - time.monotonic()) > 0 and not self._stopped():
            await asyncio.sleep(min(left_s, _LOOK_EVERY_S))


async def _sent(producer: Producer, records: Sequence[Resent], marks: Sequence[tuple[bytes, bytes]]) -> None:
    async with producer.transaction():
        for each in records:
            await producer.wait_for_room()
            producer.send(each.topic, each.value, key=each.key, partition=each.partition, headers=list(each.headers))
        for key, value in marks:
            producer.send(REDRIVE_TOPIC, value, key=key, partition=0)
