"""The lanes of one topic and how a record finds its own."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from penstock.client.errors import BadSetting
from penstock.client.producer.lane import Batch, Lane
from penstock.client.settings import Partitioner
from penstock.kernels import Columns, OpenTopic, partition_keys, partition_of, partition_rows


class TopicLanes(OpenTopic):
    """`lanes` has one for each partition that is known. `sticky` takes records without a key, for a while."""

    __slots__ = ("_one_at_a_time", "_random", "_robin", "_sticky_bytes", "_turns", "name", "spreads")

    lanes: list[Lane]
    sticky: Lane | None
    choose: Callable[[Any, Any], Lane] | None
    """(key, value) -> lane; None means by the key's hash, sticky without one, which the kernel does by itself."""

    def __init__(
        self, name: str, partitioner: str | Partitioner, chance: random.Random, *, one_at_a_time: bool = False
    ) -> None:
        self.name, self._one_at_a_time = name, one_at_a_time
        self.lanes = []
        self.sticky = None
        self._random = chance
        self._robin = chance.randrange(1 << 16)
        self._sticky_bytes = 0
        self._turns: list[Lane] = []
        self.spreads = partitioner
        """How lanes are chosen; a function of the user or a word."""
        self.choose = None
        if partitioner == "round_robin":
            self.choose = self._round_robin
        elif partitioner == "sticky":
            self.choose = self._always_sticky
        elif callable(partitioner):
            self.choose = self._custom

    def learn(self, leaders: Sequence[int | None]) -> list[Lane]:
        """Who leads each partition; answers the lanes that another broker leads now. Partitions are only ever added."""
        for index in range(len(self.lanes), len(leaders)):
            self.lanes.append(Lane(self.name, index, one_at_a_time=self._one_at_a_time))
        moved = []
        for lane, leader in zip(self.lanes, leaders, strict=False):
            if leader not in (None, lane.leader):
                moved.append(lane)
            lane.leader = leader
        if self.lanes and (self.sticky is None or self.sticky.leader is None):
            self.restick()
        return moved

    @property
    def idle(self) -> bool:
        """Whether no lane has anything to send or waits for an answer."""
        return not any(lane.open or lane.queue or lane.flying or lane.resting for lane in self.lanes)

    def restick(self) -> None:
        """Another partition for records without a key.

        Each that has a leader gets its turn, in an order of chance, before any gets its second. Kafka's clients throw
        the dice anew for every turn, which is as even in the end and not after the first few.
        """
        while self._turns and self._turns[-1].leader is None:
            self._turns.pop()
        if not self._turns:
            led = [lane for lane in self.lanes if lane.leader is not None] or self.lanes
            self._turns = self._random.sample(led, len(led))
            if self._turns[-1] is self.sticky:
                self._turns.reverse()
        self.sticky = self._turns.pop()
        self._sticky_bytes = 0

    def left(self, batch: Batch, enough: int) -> None:
        """A batch takes no more records. After `enough` bytes the next records without a key go elsewhere."""
        if batch.lane is self.sticky and not batch.counted:
            batch.counted = True
            self._sticky_bytes += batch.size
            if self._sticky_bytes >= enough:
                self.restick()

    def lane_of(self, key: Any, value: Any) -> Lane:
        if self.choose is not None:
            return self.choose(key, value)
        if key is None:
            assert self.sticky is not None
            return self.sticky
        return self.lanes[partition_of(key, len(self.lanes))]

    def rows_of_keys(self, keys: Any, values: Any, rows: int) -> array[int]:
        """The partition of each row of a bulk send, -1 for sticky."""
        if self.choose is None:
            return partition_keys(keys, len(self.lanes)) if keys is not None else array("i", [-1]) * rows
        return self._chosen_rows(keys, values, rows)

    def rows_of_columns(self, columns: Columns, keys: Any, values: Any) -> array[int]:
        if self.choose is None:
            return partition_rows(columns, len(self.lanes))
        return self._chosen_rows(keys, values, columns.rows)

    def _chosen_rows(self, keys: Any, values: Any, rows: int) -> array[int]:
        assert self.choose is not None
        if self.spreads == "sticky":
            return array("i", [-1]) * rows
        choose = self.choose
        return array(
            "i",
            [
                choose(None if keys is None else keys[row], values[row] if values else None).partition
                for row in range(rows)
            ],
        )

    def _always_sticky(self, key: Any, value: Any) -> Lane:
        assert self.sticky is not None
        return self.sticky

    def _round_robin(self, key: Any, value: Any) -> Lane:
        self._robin += 1
        return self.lanes[self._robin % len(self.lanes)]

    def _custom(self, key: Any, value: Any) -> Lane:
        assert callable(self.spreads)
        chosen = self.spreads(self.name, key, value, len(self.lanes))
        if not isinstance(chosen, int) or not 0 <= chosen < len(self.lanes):
            raise BadSetting(f"the partitioner chose {chosen!r}; {self.name} has partitions 0 to {len(self.lanes) - 1}")
        return self.lanes[chosen]
