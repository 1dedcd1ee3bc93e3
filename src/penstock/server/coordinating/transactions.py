"""Transactions as a kind of coordinator: `__transaction_state`, its records, its settings, and its markers.

A node that coordinates no transaction loads none of their code: shards, markers and records are imported when the first
of them is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.metadata.readiness import waits_for, why
from penstock.model.ids import TRANSACTIONS_TOPIC, NodeId
from penstock.server.coordinating.records import Classes, RecordReader
from penstock.server.coordinating.runtime import Runtime

if TYPE_CHECKING:
    from penstock.coordinators.decision import Effect
    from penstock.coordinators.transactions.requests import Partition
    from penstock.coordinators.transactions.settings import TransactionSettings
    from penstock.coordinators.transactions.shard import TransactionShard
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.errors import ErrorCode
    from penstock.model.ids import Epoch
    from penstock.model.ports import Clock
    from penstock.server.coordinating.markers import MarkerSender, WriteHere
    from penstock.server.coordinating.verifying import TransactionVerifier
    from penstock.server.doors import VerifyMode
    from penstock.server.live_settings import LiveSettings
    from penstock.server.partitions.partition_driver import PartitionDriver
    from penstock.server.peers import Peers

log = logging.getLogger("penstock.transactions")

UNCOMPRESSED: Final = 0
_STATE: Final = 0
"""The one type of records in the topic."""


def _classes_of(number: int) -> Classes | None:
    if number != _STATE:
        return None
    from penstock.protocol.disk.transaction_records import TransactionLogKey, TransactionLogValue

    return TransactionLogKey, TransactionLogValue


TRANSACTION_READER: Final = RecordReader(_classes_of, skips_unknown_versions=True)


class TransactionKind:
    """The kind of coordinator that looks after transactional ids."""

    name: Final = "transactions"
    topic: Final = TRANSACTIONS_TOPIC
    place: Final = "the transaction state topic"
    reader: Final = TRANSACTION_READER

    def __init__(
        self,
        settings: LiveSettings,
        next_producer_id: Callable[[], int | None],
        make_markers: Callable[[], MarkerSender],
    ) -> None:
        """`next_producer_id` gives one at once, or none; `make_markers` is called when the first transaction ends."""
        self._settings, self._next_producer_id, self._make_markers = settings, next_producer_id, make_markers
        self._transaction_settings: TransactionSettings | None = None
        self.markers: MarkerSender | None = None
        self._waits_for: NodeId | None = None

    def partition_of(self, key: str, partitions: int) -> int:
        from penstock.coordinators.home import home_partition

        return home_partition(key, partitions)

    def partitions_wanted(self) -> int:
        return self._settings.number("transaction.state.log.num.partitions")

    def codec(self) -> int:
        return UNCOMPRESSED

    def commit_timeout_ms(self) -> int:
        return self._settings.number("request.timeout.ms")

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.brokers:
            self._say_who_is_waited_for(image)
        if self.markers is not None:
            self.markers.follow(image, delta)

    def _say_who_is_waited_for(self, image: ClusterImage) -> None:
        """Once, when it changes: clients are told no more than that they may try again."""
        before, self._waits_for = self._waits_for, waits_for(image)
        if self._waits_for == before:
            return
        if self._waits_for is None:
            log.info("every broker knows transactions now")
        else:
            log.warning("%s", why(self._waits_for))

    def settings(self) -> TransactionSettings:
        if self._transaction_settings is None:
            from penstock.coordinators.transactions.settings import TransactionSettings

            self._transaction_settings = TransactionSettings(self._settings.number, self._settings.flag)
        return self._transaction_settings

    def new_shard(self, image: ClusterImage) -> TransactionShard:
        from penstock.coordinators.transactions.shard import TransactionShard

        return TransactionShard(self.settings(), image, next_producer_id=self._next_producer_id)

    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        if self.markers is None:
            self.markers = self._make_markers()
        self.markers.carry_out(index, epoch, effects)

    def give_up(self, index: int) -> None:
        if self.markers is not None:
            self.markers.give_up(index)


class Transactions(Runtime["TransactionShard"]):
    """The runtime of transactions, with whoever writes their markers and whoever asks other coordinators.

    Both doors of transactions: that of clients and brokers who ask this coordinator, and that of leaders here who need
    an answer of whichever coordinator it takes (`verify`).
    """

    kind: TransactionKind

    def __init__(
        self,
        settings: LiveSettings,
        me: NodeId,
        partitions: PartitionDriver,
        clock: Clock,
        peers: Peers,
        *,
        make_topic: Callable[[str], Awaitable[bool]],
        next_producer_id: Callable[[], int | None],
        write_markers: WriteHere,
    ) -> None:
        """`write_markers` writes those of partitions that this node leads."""
        kind = TransactionKind(settings, next_producer_id, self._make_markers)
        super().__init__(kind, me, partitions, clock, make_topic=make_topic)
        self._settings, self._peers, self._write_markers = settings, peers, write_markers
        self.verifier: TransactionVerifier | None = None
        """None until a leader here has asked for the first time."""

    @property
    def settings(self) -> TransactionSettings:
        return self.kind.settings()

    @property
    def markers(self) -> MarkerSender | None:
        """None until the first transaction has ended here."""
        return self.kind.markers

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[Partition],
        mode: VerifyMode,
    ) -> Awaitable[Mapping[Partition, ErrorCode]]:
        if self.verifier is None:
            self.verifier = self._make_verifier()
        return self.verifier.verify(transactional_id, producer_id, producer_epoch, partitions, mode)

    def close(self) -> None:
        super().close()
        if self.markers is not None:
            self.markers.close()
        if self.verifier is not None:
            self.verifier.close()

    def _make_markers(self) -> MarkerSender:
        from penstock.server.coordinating.markers import MarkerSender

        return MarkerSender(
            self._me, self._peers,
            image=self.image,
            address_of=self._partitions.address_of,
            write_here=self._write_markers,
            tell=self.tell,
            timeout_ms=self._timeout_ms,
        )  # fmt: skip

    def _make_verifier(self) -> TransactionVerifier:
        from penstock.server.coordinating.verifying import TransactionVerifier

        return TransactionVerifier(
            self._me, self, self._peers, self._clock,
            image=self.image,
            address_of=self._partitions.address_of,
            timeout_ms=self._timeout_ms,
        )  # fmt: skip

    def _timeout_ms(self) -> int:
        return self._settings.number("request.timeout.ms")
