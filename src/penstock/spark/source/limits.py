"""How much one trigger takes: at most so many offsets, at least so many, and no waiting for ever. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.ids import TopicPartition


def share(backlogs: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """How many offsets each partition may take of `limit`: in proportion to its backlog, whole numbers, none lost.

    No partition that has a backlog starves: each takes one at least, even where the limit is less than there are
    partitions. Otherwise the shares add up to the limit exactly, or to all there is. Equal backlogs give equal answers
    whatever the order, so that a plan made again is the same.
    """
    waiting = {tp: size for tp, size in sorted(backlogs.items()) if size > 0}
    total = sum(waiting.values())
    if total <= limit:
        return waiting
    if limit <= len(waiting):
        return dict.fromkeys(waiting, 1)
    # Those whose part is less than one take one; the others share what is left, the largest remainders rounded up.
    shares: dict[TopicPartition, int] = {}
    for tp, size in sorted(waiting.items(), key=lambda item: (item[1], item[0])):
        if size * limit >= total:
            break
        shares[tp] = 1
        limit, total = limit - 1, total - size
    others = {tp: size for tp, size in waiting.items() if tp not in shares}
    whole = {tp: size * limit // total for tp, size in others.items()}
    by_remainder = sorted(others, key=lambda tp: (-(others[tp] * limit % total), tp))
    for tp in by_remainder[: limit - sum(whole.values())]:
        whole[tp] += 1
    return shares | whole


def cut(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], limit: int | None
) -> dict[TopicPartition, int]:
    """Ends that are no more than `limit` offsets in all after `begins`; None is no limit."""
    if limit is None:
        return dict(ends)
    shares = share({tp: end - begins[tp] for tp, end in ends.items()}, limit)
    return {tp: begins[tp] + shares[tp] if tp in shares else end for tp, end in ends.items()}


@dataclass(slots=True)
class Pace:
    """When a trigger is worth a batch: enough offsets have come, or the last batch is long ago. Times are monotonic."""

    least_offsets: int
    delay_max_ms: int
    last_ms: float | None = None
    """None until the first batch, which waits for nothing."""

    def worth(self, waiting: int, now_ms: float) -> bool:
        """Whether to make a batch now; if so, the time until the next counts from here."""
        due = self.last_ms is None or now_ms - self.last_ms >= self.delay_max_ms
        if not due and waiting < self.least_offsets:
            return False
        self.last_ms = now_ms
        return True
