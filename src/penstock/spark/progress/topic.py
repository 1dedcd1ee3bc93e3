"""The internal topic `__penstock_spark`: one partition of JSON, compacted by key and kept for a week.

Everything here is asyncio and belongs to one loop; limits of time are the caller's to set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from penstock.client.admin import Admin
from penstock.client.consumer import Consumer
from penstock.client.errors import BrokerRefused, UnknownTopic
from penstock.client.producer import Producer
from penstock.client.settings import CommonSettings
from penstock.model.errors import TOPIC_ALREADY_EXISTS
from penstock.model.ids import TopicPartition
from penstock.spark.naming import INTERNAL_TOPIC

HOME: Final = TopicPartition(INTERNAL_TOPIC, 0)

CONFIGS: Final = {
    "cleanup.policy": "compact,delete",
    "retention.ms": str(7 * 24 * 3_600_000),
    # The broker's clock alone decides what is new: those who write are on many machines.
    "message.timestamp.type": "LogAppendTime",
    # Only closed segments are compacted, and whoever asks for the state of things reads all of it.
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}

_COMMON: Final = frozenset(setting.name for setting in fields(CommonSettings))


@dataclass(frozen=True, slots=True)
class Entry:
    """One record. `value` is None when the key was taken back."""

    key: str
    value: Mapping[str, Any] | None
    offset: int = -1
    timestamp_ms: int = -1


class InternalTopic:
    """The topic of one cluster. Connections are opened when needed and kept until `close`."""

    def __init__(self, settings: Mapping[str, Any], *, admin: Admin | None = None) -> None:
        """`settings` may be any client's: what every client has is taken, above all `bootstrap_servers`."""
        self._settings = common_settings(settings)
        self._admin, self._lent = admin, admin is not None
        self._producer: Producer | None = None
        self._made = False

    async def __aenter__(self) -> InternalTopic:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(**self._settings)
        return self._admin

    async def ensure(self) -> None:
        """Makes the topic unless it is there."""
        if self._made:
            return
        try:
            await self.admin.describe_topic(INTERNAL_TOPIC, offsets=False, configs=False)
        except UnknownTopic:
            try:
                await self.admin.create_topic(INTERNAL_TOPIC, 1, configs=CONFIGS)
            except BrokerRefused as refused:
                if refused.error is not TOPIC_ALREADY_EXISTS:
                    raise
        self._made = True

    async def append(self, entries: Iterable[Entry]) -> None:
        """Returns when all of them are acknowledged by all replicas in sync; raises ClientError when not."""
        await self.ensure()
        if self._producer is None:
            # The last word by key counts, so a doubled record does no harm and no producer id is needed.
            self._producer = Producer(
                **self._settings, acks="all", idempotence=False, linger_ms=0, create_topics=False, max_block_ms=1_500
            )
        try:
            under_way = [
                self._producer.send(INTERNAL_TOPIC, _bytes_of(entry.value), key=entry.key.encode(), partition=0)
                for entry in entries
            ]
            for delivery in under_way:
                await delivery
        except Exception:
            # It may have been deleted: the next time looks again.
            self._made = False
            raise

    async def end(self) -> int:
        """Where the next record goes; 0 when there is no topic."""
        return max(0, await self._offset("latest"))

    async def _offset(self, when: str | int) -> int:
        """-1 when there is no topic, or no record that late."""
        found = await self.admin.offsets({HOME: when})
        if isinstance(found.failed.get(HOME), UnknownTopic):
            return -1
        return found.checked()[HOME].offset

    async def read(
        self, start: int | None = None, *, since_ms: int | None = None, prefix: str = ""
    ) -> tuple[list[Entry], int]:
        """Records in order, and where the next read may begin.

        From an offset, from a time, or all there is; `prefix` picks keys. What is no JSON object is passed over: the
        topic is open to anybody who may write it.
        """
        end = await self.end()
        if since_ms is not None and end > 0:
            start = await self._offset(since_ms)
            if start < 0:
                return [], end
        if end == 0 or (start is not None and start >= end):
            return [], end
        return await self._poll(start, end, prefix.encode()), end

    async def _poll(self, start: int | None, end: int, prefix: bytes) -> list[Entry]:
        found: list[Entry] = []
        settings = {**self._settings, "offset_reset": "earliest", "create_topics": False, "fetch_max_wait_ms": 100}
        async with Consumer(**settings) as consumer:
            consumer.assign([HOME])
            position = start or 0
            consumer.seek(HOME, position)
            while position < end:
                records = await consumer.poll(10_000, timeout_ms=200)
                for record in records:
                    key = record.key or b""
                    if record.offset < end and key.startswith(prefix):
                        entry = _entry_of(key, record.value, record.offset, record.timestamp)
                        if entry is not None:
                            found.append(entry)
                position = records[-1].offset + 1 if records else await consumer.position(HOME)
        return found

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.close(timeout_ms=1_000)
            self._producer = None
        if self._admin is not None and not self._lent:
            await self._admin.close()
            self._admin = None


def common_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What every kind of client takes of the settings of one kind."""
    plain = {name.replace(".", "_"): value for name, value in settings.items()}
    return {name: value for name, value in plain.items() if name in _COMMON}


def _bytes_of(value: Mapping[str, Any] | None) -> bytes | None:
    return None if value is None else json.dumps(value, separators=(",", ":")).encode()


def _entry_of(key: bytes, value: bytes | None, offset: int, timestamp_ms: int) -> Entry | None:
    try:
        decoded = None if value is None else json.loads(value)
        text = key.decode()
    except ValueError:
        return None
    if decoded is not None and not isinstance(decoded, dict):
        return None
    return Entry(text, decoded, offset, timestamp_ms)
