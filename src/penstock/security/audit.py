"""What is told to those who watch over a cluster: who tried or changed what, from where, and what came of it.

An event is one JSON object on one line. It names things and never holds what is in them: no payload, password, token or
value of a config. Names that strangers choose are cut at a length. Fields that an event has nothing to say about are
left out.

| field | in events of | what it says |
|---|---|---|
| `time`, `type`, `result`, `node` | all | when (RFC 3339, UTC), what kind, what came of it, the node's id |
| `principal`, `address`, `listener`, `client_id` | all, as far as known | who, and from where |
| `api`, `resource` | authorization, change | the request, and what it is about: `type` and `name` |
| `operation`, `rule`, `acl` | authorization | what was asked for, which rule decided, and by which ACL |
| `mechanism`, `name`, `reason` | login | how, as whom, and why it failed |
| `details`, `error` | change | names of what was set, and the error of one that was refused |
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from penstock.security.authorizer import Verdict

NAME_CHARACTERS_MAX: Final = 255
WORDS_CHARACTERS_MAX: Final = 512
DETAILS_MAX: Final = 64

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Kind(Enum):
    AUTHORIZATION = "authorization"
    LOGIN = "login"
    CHANGE = "change"


class Result(Enum):
    ALLOWED = "allowed"
    DENIED = "denied"
    FAILED = "failed"
    """A login."""
    DONE = "done"
    REFUSED = "refused"
    """A change, for another reason than a lack of rights; or nobody knows what became of it."""


class Resource(NamedTuple):
    """What an event is about: `TOPIC`, `GROUP`, `USER` and so on, and its name."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line. Text that is empty says nothing."""

    kind: Kind
    result: Result
    at_ms: int
    node_id: int
    principal: str = ""
    address: str = ""
    listener: str = ""
    client_id: str = ""
    api: str = ""
    operation: str = ""
    resource: Resource | None = None
    rule: str = ""
    acl: str = ""
    mechanism: str = ""
    name: str = ""
    reason: str = ""
    error: str = ""
    details: tuple[str, ...] = ()

    def line(self) -> bytes:
        """JSON in ASCII with its end of line: whatever a name holds, it begins no other line."""
        told = {name: value for name, value in self._fields() if value not in ("", None, [])}
        return json.dumps(told, separators=(",", ":")).encode() + b"\n"

    def _fields(self) -> tuple[tuple[str, object], ...]:
        return (
            ("time", rfc3339(self.at_ms)),
            ("type", self.kind.value),
            ("result", self.result.value),
            ("node", self.node_id),
            ("principal", _cut(self.principal)),
            ("address", _cut(self.address)),
            ("listener", self.listener),
            ("client_id", _cut(self.client_id)),
            ("api", self.api),
            ("operation", self.operation),
            ("resource", _resource(self.resource)),
            ("rule", self.rule),
            ("acl", _cut(self.acl, WORDS_CHARACTERS_MAX)),
            ("mechanism", self.mechanism),
            ("name", _cut(self.name)),
            ("reason", _cut(self.reason, WORDS_CHARACTERS_MAX)),
            ("error", self.error),
            ("details", [_cut(each, WORDS_CHARACTERS_MAX) for each in self.details[:DETAILS_MAX]]),
        )


def rule_of(verdict: Verdict | None) -> tuple[str, str]:
    """(rule, ACL) of a decision as an event tells them; without a verdict nobody was asked."""
    if verdict is None:
        return "NO_AUTHORIZER", ""
    return verdict.rule.name, "" if verdict.entry is None else str(verdict.entry)


def rfc3339(at_ms: int) -> str:
    at = _EPOCH + timedelta(milliseconds=at_ms)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03}Z"


def _resource(resource: Resource | None) -> dict[str, str] | None:
    return None if resource is None else {"type": resource.type, "name": _cut(resource.name)}


def _cut(text: str, characters_max: int = NAME_CHARACTERS_MAX) -> str:
    return text if len(text) <= characters_max else f"{text[:characters_max]}…"


class Allowances:
    """How many events each one may cause: `per_second` in the long run, `burst` at once.

    The table is bounded. Whoever was longest unheard of makes room, and starts again with a whole burst.
    """

    __slots__ = ("_burst", "_left", "_most", "_per_second")

    def __init__(self, per_second: float = 100.0, burst: float = 500.0, most: int = 1_024) -> None:
        self._per_second, self._burst, self._most = per_second, burst, most
        self._left: dict[str, tuple[float, float]] = {}  # what is left, and since when

    def __len__(self) -> int:
        return len(self._left)

    def take(self, who: str, now: float) -> bool:
        """Whether one more may be told of `who`. `now` is monotonic time in milliseconds."""
        left, since = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second / 1_000)
        if len(self._left) >= self._most:
            del self._left[next(iter(self._left))]
        self._left[who] = (left - 1 if left >= 1 else left, now)
        return left >= 1
