"""What a coordinator is told about a request, and what it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.model.ids import Millis, Offset


class Moment(NamedTuple):
    """Now, twice: `wall` is what records are stamped with, `tick` (monotonic ms) is what deadlines are counted in.

    Deadlines never use the wall clock: when somebody sets it, no session may end. `committed` is the end of what is
    committed of the shard's log: what lies behind it a failover may still take back.
    """

    wall: Millis
    tick: int
    committed: Offset = Offset(0)


class StateRecord(NamedTuple):
    """One record of an internal topic: versionless messages and the versions they are written in.

    `value` None is a tombstone. The key's version is its type number, by which readers know what it is.
    """

    key: object
    value: object | None
    value_version: int = 0


MayDescribe = Callable[[str], bool]
"""Whether somebody may know of the topic of this name."""


def everything(_topic: str) -> bool:
    return True


class Caller(NamedTuple):
    """Who asks. `token` names the request: a reply that is held back comes later as an `Answer` with it."""

    client_id: str
    client_host: str
    api_version: int
    token: object
    may_describe: MayDescribe = everything


class Answer(NamedTuple):
    """The reply to a request that was held back before. The message is that API's response."""

    token: object
    reply: object


class Effect:
    """What has to happen outside the shard once it is committed: a marker to write, a broker to ask.

    Every coordinator has classes of its own. An effect is let out at most once, and is lost with the shard or with the
    leader epoch in which it was decided: `Shard.led` decides again what still has to happen. So whoever is asked may be
    asked again, by a later life of the shard or in a later epoch.
    """

    __slots__ = ()


class ProducerEpoch(NamedTuple):
    """A producer in one of its lives."""

    id: int
    epoch: int


@dataclass(slots=True)
class Decision:
    """Records to write as one batch, and what may leave the node once they are committed.

    `reply` None means that the request is held back. `answers` end requests that were held back earlier. `effects`
    leave the node as replies do, but nobody waits for them, so they are never given up for want of time. The records
    of a `producer` are part of its transaction: they are pending (`Shard.apply_pending`) until that ends.
    """

    records: list[StateRecord] = field(default_factory=list)
    reply: object | None = None
    answers: list[Answer] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    producer: ProducerEpoch | None = None
