"""What a coordinator is told about a request, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.model.ids import Millis


class Moment(NamedTuple):
    """Now, twice: `wall` is what records are stamped with, `tick` (monotonic ms) is what deadlines are counted in.

    Deadlines never use the wall clock: when somebody sets it, no session may end.
    """

    wall: Millis
    tick: int


class StateRecord(NamedTuple):
    """One record of an internal topic: versionless messages and the versions they are written in.

    `value` None is a tombstone. The key's version is its type number, by which readers know what it is.
    """

    key: Any
    value: Any | None
    value_version: int = 0


class Caller(NamedTuple):
    """Who asks. `token` names the request: a reply that is held back comes later as an `Answer` with it."""

    client_id: str
    client_host: str
    api_version: int
    token: object


class Answer(NamedTuple):
    """The reply to a request that was held back before. The message is that API's response."""

    token: object
    reply: Any


@dataclass(slots=True)
class Decision:
    """Records to write as one batch, and what may leave the node once they are committed.

    `reply` None means that the request is held back. `answers` end requests that were held back earlier.
    """

    records: list[StateRecord] = field(default_factory=list)
    reply: Any | None = None
    answers: list[Answer] = field(default_factory=list)
