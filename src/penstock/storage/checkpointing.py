"""What each offset checkpoint says of a log while the node runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.model.ids import Offset
from penstock.storage.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from penstock.storage.log import Log


def start_to_tell(log: Log) -> Offset | None:
    """The start, when no segment's name tells it."""
    return log.log_start if log.log_start > log.segments[0].base else None


OFFSET_TOLD: Final[dict[str, Callable[[Log], Offset | None]]] = {
    RECOVERY_POINTS: lambda log: log.recovery_checkpoint,
    LOG_STARTS: start_to_tell,
    HIGH_WATERMARKS: lambda log: log.committed,
    CLEANER_OFFSETS: lambda log: log.cleaned_to,
}
TELLS_OF_FUTURES: Final = frozenset({RECOVERY_POINTS})
"""Where a copy starts and what of it is committed is for the log to say that is copied."""


def line_of(log: Log, offset: Offset) -> str:
    topic, partition = log.name
    return f"{topic} {partition} {offset}"
