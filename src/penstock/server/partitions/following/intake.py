"""What a leader's answer does to a follower's log: cut it where histories part, append what is new, follow the ends.

Ask, do and tell of one partition run without interruption. A large answer is taken in by pieces, because a thousand
small batches take longer than one callback may hold the loop; each piece looks again whether it still may.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.kernels import HEADER_BYTES, BadBatch, read_header, scan_batches
from penstock.model.errors import CORRUPT_MESSAGE, Refused
from penstock.model.ids import Offset
from penstock.replication.following import Cut, Restart, taken, truncation_point

if TYPE_CHECKING:
    from penstock.kernels import BatchHeader
    from penstock.model.ids import Epoch, Millis
    from penstock.model.ports import Clock
    from penstock.protocol.replica_fetch import Told
    from penstock.replication.following import Following
    from penstock.server.partitions.hosted import Hosted
    from penstock.storage.log import Log

    Followed = Following[Hosted]

log = logging.getLogger("penstock.follower")

BATCHES_AT_ONCE: Final = 256
BYTES_AT_ONCE: Final = 1 << 20
"""What is appended before the clock is looked at again: two milliseconds of the smallest batches, or of large ones."""


class Piece:
    """Batches of one partition on their way into the log. `epoch` is the leader epoch that they were asked with."""

    __slots__ = ("batches", "end", "epoch", "following", "next", "target", "told")

    def __init__(self, following: Followed, target: Log, told: Told, batches: list[tuple[int, BatchHeader]]) -> None:
        self.following, self.target, self.told, self.batches = following, target, told, batches
        self.epoch: Epoch = following.epoch
        self.end = target.next
        self.next = 0

    @property
    def more(self) -> bool:
        return self.next < len(self.batches)

    def some(self) -> memoryview:
        """The next batches, as many as may go at once and at least one."""
        batches, first = self.batches, self.next
        start = batches[first][0]
        last = min(first + BATCHES_AT_ONCE, len(batches)) - 1
        while last > first and batches[last][0] - start >= BYTES_AT_ONCE:
            last -= 1
        self.next = last + 1
        position, header = batches[last]
        return self.told.records[start : position + header.size]

    @property
    def stale(self) -> bool:
        """Whether the partition got another leader, role or log, or somebody else went on with it."""
        following = self.following
        if following.held or following.epoch != self.epoch or following.hosted.log is not self.target:
            return True
        return bool(self.target.next != self.end)


class FollowerIntake:
    """Does to logs what answers ask for. Raises Refused for what must not land, StorageFailed when the disk fails."""

    def __init__(self, clock: Clock, count_bytes: Callable[[Followed, int], None]) -> None:
        self._clock, self._count_bytes = clock, count_bytes

    # -- cutting

    def diverged(self, following: Followed, epoch: int, end: int) -> None:
        """The leader's `epoch` ended at `end`; ours went on, or never was."""
        target = following.hosted.require_log()
        to = truncation_point(epoch, end, own_end_of=target.epochs.end_of, log_end=target.written)
        log.info(
            "%s: the leader's epoch %s ends at %s; cutting from %s to %s", following.name, epoch, end, target.next, to
        )
        self._cut(following.hosted, to)

    def mend(self, following: Followed, how: Restart | Cut) -> None:
        """Brings our end back into the leader's log."""
        hosted = following.hosted
        match how:
            case Restart(start):
                log.info("%s: the leader's log begins at %s; starting over there", following.name, start)
                self._restart(hosted, start)
            case Cut(to):
                log.warning("%s: the leader's log ends at %s; cutting ours to it", following.name, to)
                self._cut(hosted, to)

    def _cut(self, hosted: Hosted, to: Offset) -> None:
        target = hosted.require_log()
        if to < target.committed:
            log.warning(
                "%s: cutting to %s, below the high watermark %s: a leader was elected that did not have everything",
                hosted.name, to, target.committed,
            )  # fmt: skip
        target.truncate(to, now=self._clock.now_ms())
        hosted.cut()
        hosted.state.followed(target.committed, target.written)

    def _restart(self, hosted: Hosted, start: Offset) -> None:
        target = hosted.require_log()
        target.truncate_fully(start, now=self._clock.now_ms())
        hosted.cut()
        hosted.state.followed(target.committed, target.written)

    # -- appending

    def open(self, following: Followed, told: Told) -> Piece:
        """Looks at the batches of an answer that brings some. CORRUPT_MESSAGE when they are none."""
        hosted = following.hosted
        target = hosted.log or hosted.require_log()
        batches = _whole_batches(told.records)
        del batches[taken(batches, following.epoch) :]
        if not batches:
            raise Refused(CORRUPT_MESSAGE, "no whole batch of an epoch that was asked for")
        first = batches[0][1]
        if first.base_offset < target.next <= first.last_offset and not target.size_bytes:
            # The leader's first batch begins before its first offset. An empty log can begin there as well.
            self._restart(hosted, Offset(first.base_offset))
        return Piece(following, target, told, batches)

    def append(self, piece: Piece) -> None:
        """Appends some of the batches; with the last one the ends follow the leader's.

        CORRUPT_MESSAGE for a bad batch; then our log ends right before it, so that where we stand says what we miss.
        """
        if piece.more:
            first, now = piece.next, self._clock.now_ms()
            data = piece.some()
            try:
                piece.target.append_exact(data, now=now, verify=True)
            except Refused:
                self._append_sound(piece, piece.batches[first : piece.next], now)
                raise
            self._grew(piece, len(data), now)
        if not piece.more:
            self.follow_ends(piece.following, piece.told)

    def _append_sound(self, piece: Piece, batches: list[tuple[int, BatchHeader]], now: Millis) -> None:
        """Appends the batches one by one, up to the bad one among them."""
        for position, header in batches:
            try:
                piece.target.append_exact(piece.told.records[position : position + header.size], now=now, verify=True)
            except Refused:
                break
            self._grew(piece, header.size, now)
        self.follow_ends(piece.following, piece.told)

    def _grew(self, piece: Piece, size: int, now: Millis) -> None:
        piece.end = piece.target.next
        self._count_bytes(piece.following, size)
        piece.following.hosted.grew(now)

    def follow_ends(self, following: Followed, told: Told) -> bool:
        """High watermark and log start become the leader's, as far as our log goes. True when the start moved."""
        hosted = following.hosted
        target = hosted.log or hosted.require_log()
        following.leader_high_watermark = Offset(told.high_watermark)
        if hosted.state.followed(Offset(max(0, told.high_watermark)), target.written):
            hosted.committed()
        start = Offset(min(told.log_start, target.committed))
        return start > target.log_start and target.advance_start(start)


def _whole_batches(records: memoryview) -> list[tuple[int, BatchHeader]]:
    """The batches of an answer, up to bytes that are none; CORRUPT_MESSAGE when it begins with such."""
    try:
        return scan_batches(records)
    except BadBatch as broken:
        batches = _before_nonsense(records)
        if not batches:
            raise Refused(CORRUPT_MESSAGE, str(broken)) from broken
        return batches


def _before_nonsense(records: memoryview) -> list[tuple[int, BatchHeader]]:
    batches, position = [], 0
    while (header := read_header(records, position)).magic == 2 and header.size >= HEADER_BYTES:
        batches.append((position, header))
        position += header.size
    return batches
