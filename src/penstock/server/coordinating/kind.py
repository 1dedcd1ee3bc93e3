"""What the runtime has to be told of one kind of coordinator; everything else it knows of shards is their protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from penstock.coordinators.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.coordinators.decision import Effect
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.ids import Epoch
    from penstock.server.coordinating.records import RecordReader

S = TypeVar("S", bound=Shard)
S_co = TypeVar("S_co", bound=Shard, covariant=True)


class Kind(Protocol[S_co]):
    """One kind of coordinator on one node: its topic, its records, its settings, and who carries out its effects."""

    @property
    def name(self) -> str:
        """What it coordinates, in the plural. The logger of the same name says what goes wrong."""

    @property
    def topic(self) -> str: ...
    @property
    def place(self) -> str:
        """The topic as people speak of it."""

    @property
    def reader(self) -> RecordReader: ...
    def partition_of(self, key: str, partitions: int) -> int:
        """The partition that is home to `key` when the topic has so many."""

    def partitions_wanted(self) -> int:
        """How many partitions the topic gets when it is made."""

    def codec(self) -> int:
        """How batches are compressed, by number."""

    def commit_timeout_ms(self) -> int:
        """How long a reply may wait for what it stands on to be committed."""

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        """Told of every published image before any shard is."""

    def new_shard(self, image: ClusterImage) -> S_co: ...
    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        """Effects of the shard in partition `index`, as they come true. What becomes of them is told by `tell`."""

    def give_up(self, index: int) -> None:
        """The shard in partition `index` is gone, or led in another epoch: its effects must go no further."""
