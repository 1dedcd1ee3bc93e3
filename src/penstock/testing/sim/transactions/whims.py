"""Messages of transactions come late, each for itself, or are lost with their connection.

A request that comes late is one that its sender has given up and sent again by another way. What that may do is the
heart of every protocol of transactions: late batches, late ends, markers of coordinators that were replaced. A reply
that comes late or never leaves its sender with what happened and nobody knows of.

Markers of the classic protocol are never late. Of two with equal epochs no partition can tell which transaction each is
meant for, so that one that is repeated might end the next transaction; Apache Kafka cannot either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.testing.sim.network import LOST
from penstock.testing.sim.plan import CLIENT_PORT

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.testing.sim.story import Story
    from penstock.testing.sim.wire import End

PRODUCE, INIT, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, MARKERS, COMMIT_OFFSETS = 0, 22, 24, 25, 26, 27, 28
RARELY = 0.3
WEIGHTS = {
    PRODUCE: RARELY, INIT: 1.0, ADD_PARTITIONS: 1.0, ADD_OFFSETS: 1.0, END_TXN: 1.0, MARKERS: 2.0, COMMIT_OFFSETS: 1.0,
}  # fmt: skip
LATE_S = (0.005, 0.05, 0.3, 1.2, 3.0)
LATE_MARKER_S = (0.1, 0.5, 1.2, 3.0)
LOST_RATE = 0.2
REPLACED_RATE = 0.7
HEAD_BYTES = 6
"""The size of a request and what is asked."""


class Whims:
    """Of the network, about each message."""

    def __init__(self, rate: float, *, late_markers: bool, story: Story, random: Random) -> None:
        self._rate, self._late_markers, self._story, self._random = rate, late_markers, story, random
        self.on_late_marker: Callable[[str], None] = lambda _sender: None
        self._asked: dict[End, int] = {}
        """By the end that will reply, what it was asked last."""

    def __call__(self, end: End, item: bytes) -> float:
        """For how long something is late that `end` has sent."""
        is_request = end.peer.port == CLIENT_PORT
        if is_request:
            api = int.from_bytes(item[4:HEAD_BYTES]) if len(item) >= HEAD_BYTES else -1
            if api not in WEIGHTS:
                return 0.0
            self._asked[end.peer] = api
        else:
            api = self._asked.pop(end, -1)
            if api < 0:
                return 0.0
        random = self._random
        if random.random() >= self._rate * WEIGHTS[api]:
            return 0.0
        what = "requests" if is_request else "replies"
        if random.random() < LOST_RATE:
            self._story.count(f"{what} of transactions lost")
            return LOST
        if api == MARKERS:
            return self._late_marker(end) if is_request and self._late_markers else 0.0
        self._story.count(f"{what} of transactions late")
        return random.choice(LATE_S)

    def _late_marker(self, end: End) -> float:
        """Most often its sender has been replaced when it arrives, and its transaction has ended long ago."""
        self._story.count("markers late")
        if self._random.random() < REPLACED_RATE:
            self.on_late_marker(end.host)
        return self._random.choice(LATE_MARKER_S)
