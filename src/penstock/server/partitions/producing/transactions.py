"""Leave for batches that begin a transaction in their partition, from the transaction's coordinator.

Batches that go on with an open transaction need none. The others wait for an answer; what they are appended with
afterwards is a guard, because the transaction may be over by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import NONE, ErrorCode
from penstock.replication.verifying import VerifyMode, is_busy, must_ask, producer_told
from penstock.server.partitions.hosted import Guard

if TYPE_CHECKING:
    from penstock.model.ids import Millis
    from penstock.model.ports import Clock
    from penstock.server.doors import Verifier
    from penstock.server.partitions.hosted import Hosted

Place = tuple[str, int]

_PAUSE_FIRST_MS: Final = 1


class Settings(Protocol):
    """The settings of this node, as of now."""

    def number(self, name: str) -> int: ...
    def flag(self, name: str) -> bool: ...


class Opening:
    """Leave for the batches of one request."""

    __slots__ = ("_bumps_epoch", "_guard", "_must_ask", "_now", "_verifies")

    def __init__(self, verifies: bool, mode: VerifyMode, now: Millis) -> None:
        self._verifies, self._now = verifies, now
        self._must_ask, self._bumps_epoch = must_ask(mode, enabled=verifies), mode is VerifyMode.ADD
        self._guard = Guard(None, verifies)

    def begin(self, hosted: Hosted, producer_id: int, producer_epoch: int, sequence: int) -> tuple[Guard, bool]:
        """See `Transactions.begin`."""
        if not self._must_ask:
            return self._guard, False
        entry = hosted.begin_verification(
            producer_id, producer_epoch, sequence, bumps_epoch=self._bumps_epoch, now=self._now
        )
        return (self._guard, False) if entry is None else (Guard(entry, self._verifies), True)


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
        return self.opening(mode).begin(hosted, producer_id, producer_epoch, sequence)

    def ask(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], mode: VerifyMode
    ) -> Awaitable[Mapping[Place, ErrorCode]]:
        """What the coordinator says, once and in its own words."""
        return self._verifier.verify(transactional_id, producer_id, producer_epoch, places, mode)

    def opening(self, mode: VerifyMode) -> Opening:
        """The same for all batches of one request."""
        return Opening(self.verifies, mode, self._clock.now_ms())

    async def agreed(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], mode: VerifyMode
    ) -> Mapping[Place, ErrorCode]:
        """What to tell the producer of each partition; NONE where its batch may be appended.

        While the producer's last transaction is still ending a partition cannot be added to the next one. That is soon
        over, sooner than the client would come back: nearly always within a few milliseconds, so the first pauses are
        short.
        """
        settings, clock = self._settings, self._clock
        began_ms = clock.monotonic_ms()
        longest_ms = settings.number("add.partitions.to.txn.retry.backoff.ms")
        patience_ms = settings.number("add.partitions.to.txn.retry.backoff.max.ms")
        told: dict[Place, ErrorCode] = {}
        asked, pause_ms = places, min(_PAUSE_FIRST_MS, longest_ms)
        while True:
            answers = await self.ask(transactional_id, producer_id, producer_epoch, asked, mode)
            refused = [place for place in asked if answers.get(place) is not NONE]
            told.update(dict.fromkeys(asked, NONE))
            told.update((place, producer_told(answers.get(place), mode)) for place in refused)
            asked = [place for place in refused if is_busy(answers.get(place, NONE), mode)]
            if not asked or clock.monotonic_ms() - began_ms + pause_ms > patience_ms:
                return told
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(2 * pause_ms, longest_ms)
