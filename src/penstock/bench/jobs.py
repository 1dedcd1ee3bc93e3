"""What a client process is told to do, and what it tells: objects that are pickled between the two."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Job:
    """One measurement of one client. `action` is a key of `worker.ACTIONS`.

    `leaders` are the addresses of those who lead `partitions`, in the same order. `producer` and `consumer` are
    keywords of the client library.
    """

    action: str
    topic: str
    partitions: tuple[int, ...]
    leaders: tuple[str, ...]
    record_bytes: int
    batch_bytes: int
    acks: int
    compression: str
    seconds: float
    rate_per_s: float | None = None
    fill_bytes: int = 0
    rows: int = 0
    to_topic: str = ""
    producer: Mapping[str, Any] = field(default_factory=dict)
    consumer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moved:
    """What one client did. `value_bytes` counts values of records before they are packed."""

    seconds: float
    records: int
    value_bytes: int
    cpu_s: float = 0.0
    latencies_ms: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Failed:
    """Why a client could not do it."""

    why: Exception


Start: TypeAlias = Callable[[], None]
"""To be called when all is connected; returns when all clients are."""

Action: TypeAlias = Callable[[Job, Start], Moved]
