"""Sending what was read: the loop behind `penstock produce`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.feeding import Feed, Parse
from penstock.cli.progress import Progress
from penstock.cli.suggesting import suggesting
from penstock.client.errors import ClientError
from penstock.client.producer import Producer
from penstock.client.settings import ProducerSettings
from penstock.model.errors import PenstockError
from penstock.model.units import count
from penstock.operations.records.reading import BadInput, InputRecord

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.operations.records.writing import Piece, Printable


@dataclass(frozen=True, slots=True)
class Job:
    """What to send where. `change` puts the command line's word over the input's, `report` prints a delivery."""

    topic: str | None
    parse: Parse
    change: Callable[[InputRecord], InputRecord]
    report: Piece | None
    create: bool
    keywords: dict[str, Any]
    connection: Connection


@dataclass(frozen=True, slots=True)
class _Delivered:
    """A record with where it went, to be printed like one that was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_type: int = 0
    leader_epoch: int = -1


async def run(job: Job) -> None:
    """Sends everything; the first failure ends it."""
    ProducerSettings.of(job.keywords)  # what is wrong with them is told before anybody is asked
    known: set[str] = set()
    if job.topic is not None:
        await _check(job, job.topic, known)
    if sys.stdin.isatty():
        click.echo("type records, one on each line; Ctrl-D ends", err=True)
    progress = Progress("sent", wanted=not sys.stdin.isatty())
    tally = _Tally(job.report, progress)
    try:
        async with Producer(**job.keywords) as producer:
            try:
                async for records in Feed(sys.stdin.fileno(), job.parse).lists():
                    for record in records:
                        await _send(job, producer, job.change(record), known, tally)
                    await producer.wait_for_room()
                    if tally.failure is not None:
                        break
            except BadInput as wrong:
                # What came before it was well-formed and is sent.
                tally.failed(PenstockError(f"the input is not as --format says: {wrong}"))
    finally:
        progress.close()
        click.echo(f"sent {count('record', tally.delivered)}", err=True)
    if tally.failure is not None:
        raise tally.failure


class _Tally:
    """What became of the records."""

    def __init__(self, report: Piece | None, progress: Progress) -> None:
        self._report, self._progress = report, progress
        self.delivered = 0
        self.failure: Exception | None = None

    def failed(self, failure: Exception) -> None:
        self.failure = self.failure or failure

    def done(self, record: InputRecord, topic: str, report: Any, failure: ClientError | None) -> None:
        if failure is not None:
            self.failed(failure)
            return
        self.delivered += 1
        self._progress.add(1, len(record.key or b"") + len(record.value or b""))
        if self._report is not None:
            where = (topic, report.partition, report.offset, report.timestamp)
            delivered: Printable = _Delivered(*where, record.key, record.value, record.headers)
            sys.stdout.buffer.write(self._report(delivered, self.delivered))
            sys.stdout.buffer.flush()


async def _send(job: Job, producer: Producer, record: InputRecord, known: set[str], tally: _Tally) -> None:
    topic = job.topic or record.topic
    if topic is None:
        raise click.UsageError("neither the command line nor the input names a topic")
    if topic not in known:
        await _check(job, topic, known)
    if tally.failure is not None:
        return
    try:
        producer.send(
            topic,
            record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp if record.timestamp is None or record.timestamp >= 0 else None,
            headers=record.headers,
            on_delivery=lambda report, failure: tally.done(record, topic, report, failure),
        )
    except ClientError as failure:
        tally.failed(failure)
    # Deliveries are told by the loop; without a turn now and then nothing would leave before the list is through.
    if tally.delivered % 64 == 0:
        await asyncio.sleep(0)


async def _check(job: Job, topic: str, known: set[str]) -> None:
    """A topic that is not there is told at once; a producer would wait for it."""
    known.add(topic)
    if not job.create:
        async with job.connection.admin() as admin:
            try:
                async with suggesting(admin, topics=[topic]):
                    await admin.describe_topic(topic, offsets=False, configs=False)
            except ClientError as failure:
                from penstock.client.errors import UnknownTopic

                if isinstance(failure, UnknownTopic):
                    failure.why += f" `penstock topic create {topic}` makes it, or --create"
                raise
