"""Leave for batches that begin a transaction in their partition, from the transaction's coordinator.

Batches that go on with an open transaction need none. The others wait for an answer; what they are appended with
afterwards is a guard, because the transaction may be over by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.model.errors import NONE, ErrorCode
from penstock.replication.verifying import VerifyMode, is_busy, must_ask, producer_told
from penstock.server.partitions.hosted import Guard

if TYPE_CHECKING:
    from penstock.model.ports import Clock
    from penstock.server.doors import Verifier
    from penstock.server.partitions.hosted import Hosted

Place = tuple[str, int]


class Settings(Protocol):
    """The settings of this node, as of now."""

    def number(self, name: str) -> int: ...
    def flag(self, name: str) -> bool: ...


class Transactions:
    """What a node that serves transactions has and others have not."""

    __slots__ = ("_clock", "_settings", "_verifier")

    def __init__(self, settings: Settings, clock: Clock, verifier: Verifier) -> None:
        self._settings, self._clock, self._verifier = settings, clock, verifier

    @property
    def verifies(self) -> bool:
        """Whether classic clients' transactions are verified; may be switched off while the node runs."""
        return self._settings.flag("transaction.partition.verification.enable")

    def begin(
        self, hosted: Hosted, producer_id: int, producer_epoch: int, sequence: int, mode: VerifyMode
    ) -> tuple[Guard, bool]:
        """What a batch is appended with, and whether the coordinator has to agree first.

        Refused for a producer that was replaced, and where this node does not lead.
        """
        verifies = self.verifies
        if not must_ask(mode, enabled=verifies):
            return Guard(None, verifies), False
        now, bumps_epoch = self._clock.now_ms(), mode is VerifyMode.ADD
        entry = hosted.begin_verification(producer_id, producer_epoch, sequence, bumps_epoch=bumps_epoch, now=now)
        return Guard(entry, verifies), entry is not None

    def ask(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], mode: VerifyMode
    ) -> Awaitable[Mapping[Place, ErrorCode]]:
        """What the coordinator says, once and in its own words."""
        return self._verifier.verify(transactional_id, producer_id, producer_epoch, places, mode)

    async def agreed(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], mode: VerifyMode
    ) -> Mapping[Place, ErrorCode]:
        """What to tell the producer of each partition; NONE where its batch may be appended.

        While the producer's last transaction is still ending a partition cannot be added to the next one. That is soon
        over, sooner than the client would come back.
        """
        settings, clock = self._settings, self._clock
        began_ms = clock.monotonic_ms()
        backoff_ms = settings.number("add.partitions.to.txn.retry.backoff.ms")
        patience_ms = settings.number("add.partitions.to.txn.retry.backoff.max.ms")
        told: dict[Place, ErrorCode] = {}
        asked: Sequence[Place] = places
        while True:
            answers = await self.ask(transactional_id, producer_id, producer_epoch, asked, mode)
            told.update((place, producer_told(answers.get(place), mode)) for place in asked)
            asked = [place for place in asked if is_busy(answers.get(place, NONE), mode)]
            if not asked or clock.monotonic_ms() - began_ms + backoff_ms > patience_ms:
                return told
            await asyncio.sleep(backoff_ms / 1_000)
