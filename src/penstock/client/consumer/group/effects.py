"""What a membership machine wants done. The session does it and tells the machine how it went.

At most one hook (`Revoke`, `Assign`) is under way at a time; requests go on meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.client.errors import ClientError
from penstock.model.ids import TopicPartition, Uuid


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Ask the coordinator; then `replied` or `unanswered` with this same effect.

    `aside` takes another connection: the broker answers a connection in order, and a JoinGroup may hold it for minutes.
    """

    request: Any
    timeout_ms: float
    aside: bool = False


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Connect to whoever coordinates the group; then `coordinator_found` or `coordinator_missing`."""


@dataclass(frozen=True, slots=True)
class LoseCoordinator:
    """Hang up and forget where the coordinator is. What was asked of it stays unanswered."""

    why: str


@dataclass(frozen=True, slots=True)
class LearnTopics:
    """Look these topics up; then `topics_learned` with those that exist, or `topics_missing`."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class LearnNames:
    """Look up which topics have these ids; then `names_learned` with those that are known."""

    ids: frozenset[Uuid]


@dataclass(frozen=True, slots=True)
class Revoke:
    """Tell the application, before the partitions are given up or because they are lost; then `hook_done`."""

    partitions: frozenset[TopicPartition]
    lost: bool


@dataclass(frozen=True, slots=True)
class Assign:
    """Tell the application what it got in addition, maybe nothing; then `hook_done`."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Say:
    """A line for the log."""

    words: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The membership is over and only the application can do something about it."""

    error: ClientError


@dataclass(frozen=True, slots=True)
class Ended:
    """The machine has left and wants nothing more."""


Effect: TypeAlias = (
    Send | FindCoordinator | LoseCoordinator | LearnTopics | LearnNames | Revoke | Assign | Say | Fail | Ended
)
Hook: TypeAlias = Revoke | Assign
