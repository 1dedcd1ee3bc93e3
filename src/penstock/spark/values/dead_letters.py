"""Records that could not be decoded, and where the user wants them: nowhere, dropped, in a topic, in a table.

    fail          the query ends and says which record it was
    drop          they are counted by whoever read them, and gone
    topic:NAME    to a topic of the same cluster, at least once: key and value as they were, the origin and the error in
                  headers beside the record's own
    table:PATH    to a Delta table, each once (letter_table.py)

Letters are delivered before the rows beside them are given to Spark, so a letter may be there whose batch is played
again, and none is missing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from penstock.spark.errors import BadOption, SparkRoomError, Undecodable
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage
from penstock.spark.values.letters import ERROR_MOST, DeadLetter, Reader

if TYPE_CHECKING:
    from penstock.client.producer import Producer

__all__ = ["DeadLetter", "DeadLetters", "Reader", "headers_of", "producer_settings", "reader_now"]

Policy = Literal["fail", "drop", "topic", "table"]

HEADER_TOPIC: Final = "penstock.topic"
HEADER_PARTITION: Final = "penstock.partition"
HEADER_OFFSET: Final = "penstock.offset"
HEADER_TIMESTAMP: Final = "penstock.timestamp"
HEADER_ERROR: Final = "penstock.error"

_WAIT_MS: Final = "20000"
_REQUEST_BYTES_MOST: Final = str(1 << 27)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The choice, and doing it. Pickles. `settings` are client settings of the cluster that is read."""

    policy: Policy
    target: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage: Storage = FROM_ENVIRONMENT
    """How the table's files are reached."""

    @classmethod
    def of(
        cls, text: str, settings: Mapping[str, str] | None = None, storage: Storage = FROM_ENVIRONMENT
    ) -> DeadLetters:
        """From the option `deadLetters`."""
        policy, colon, target = text.strip().partition(":")
        policy, target = policy.strip().lower(), target.strip()
        if policy in ("fail", "drop") and not colon:
            return cls("fail" if policy == "fail" else "drop")
        if policy in ("topic", "table") and target:
            return cls("topic" if policy == "topic" else "table", target, dict(settings or {}), storage)
        raise BadOption(f"deadLetters={text} is unknown: fail, drop, topic:NAME or table:PATH")

    def deliver(self, letters: Sequence[DeadLetter], reader: Reader | None = None) -> None:
        """Returns when the letters are safe where they belong; raises `Undecodable` when the policy is to fail.

        `reader` is asked of Spark when it is not given.
        """
        if not letters:
            return
        match self.policy:
            case "fail":
                raise _undecodable(letters)
            case "topic":
                self._to_topic(letters)
            case "table":
                from penstock.spark.values.letter_table import LetterTable

                LetterTable(self.target, self.storage).append(letters, reader or reader_now(), datetime.now(UTC))

    def _to_topic(self, letters: Sequence[DeadLetter]) -> None:
        from penstock.client.errors import ClientError
        from penstock.spark.dialogue import for_process, producer_for

        settings = producer_settings(self.settings)
        producer = producer_for(settings)
        try:
            for_process().run(_sent(producer, self.target, letters))
        except ClientError as wrong:
            for_process().drop(producer)
            raise SparkRoomError(
                f"{len(letters)} dead letters could not be written to topic {self.target} at "
                f"{settings.get('bootstrap_servers', 'the default address')}: {wrong}; does the topic exist, and does "
                "it take records of that size?"
            ) from wrong


async def _sent(producer: Producer, topic: str, letters: Sequence[DeadLetter]) -> None:
    sent = [producer.send(topic, letter.value, key=letter.key, headers=headers_of(letter)) for letter in letters]
    await asyncio.gather(*(_delivered(one) for one in sent))


async def _delivered(sending: Any) -> None:
    await sending


def headers_of(letter: DeadLetter) -> list[tuple[str, bytes | None]]:
    """Where a letter came from and why, then the record's own headers.

    The record's time is a header too: letters with an old time of their own could be deleted as soon as they are there.
    """
    found: list[tuple[str, bytes | None]] = [
        (HEADER_TOPIC, letter.topic.encode()),
        (HEADER_PARTITION, str(letter.partition).encode()),
        (HEADER_OFFSET, str(letter.offset).encode()),
        (HEADER_ERROR, letter.error[:ERROR_MOST].encode("utf-8", "replace")),
    ]
    if letter.timestamp is not None:
        found.append((HEADER_TIMESTAMP, letter.timestamp.astimezone(UTC).isoformat().encode()))
    return found + list(letter.headers)


def producer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """What of a consumer's settings a producer has too, and what suits letters."""
    from penstock.client.settings import ProducerSettings

    known = {setting.name for setting in fields(ProducerSettings)}
    shared = {name.replace(".", "_"): value for name, value in settings.items() if name.replace(".", "_") in known}
    ours = {"acks": "all", "compression": "zstd", "max_block_ms": _WAIT_MS, "max_request_size": _REQUEST_BYTES_MOST}
    return shared | ours


def reader_now() -> Reader:
    """The query and batch of the task that runs in this worker."""
    if "pyspark" not in sys.modules:
        return Reader("", -1)
    from penstock.spark.running_query import running_query

    found = running_query()
    return Reader("", -1) if found is None else Reader(found.name, found.batch_id)


def _undecodable(letters: Sequence[DeadLetter]) -> Undecodable:
    first = min(letters, key=lambda letter: letter.offset)
    more = f" (and {len(letters) - 1} more beside it)" if len(letters) > 1 else ""
    return Undecodable(
        f"{first.topic}, partition {first.partition}, offset {first.offset}: {first.error}{more}. "
        "Put such records aside with option deadLetters=topic:NAME or table:PATH, or leave them out with drop"
    )
