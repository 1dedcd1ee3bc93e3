"""Values that each broker makes for itself: an id of ours stands for exactly one of theirs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from penstock.model.ids import ZERO_UUID
from penstock.protocol.schema import Field, schema_of

_BY_NAME = {
    "member_id": "member",
    "leader": "member",
    "session_id": "session",
    "producer_id": "producer",
    "v3_and_below_producer_id": "producer",
    "cluster_id": "cluster",
    "log_dir": "directory",
    "path": "directory",
    "port": "port",
    "token_id": "token",
    "hmac": "hmac",
}
# Values that mean the same to everybody.
_PLAIN: frozenset[Hashable] = frozenset({ZERO_UUID, "", b"", None, 0, -1})


def kind_of(field: Field) -> str | None:
    """Which bijection a field's values belong to; None for values that are the same on both sides."""
    if field.kind == "uuid" or (field.kind == "array" and field.of == "uuid"):
        return "uuid"
    if field.kind == "array":
        return "producer" if field.name == "producer_id_filters" else None
    return _BY_NAME.get(field.name)


class Pairs:
    """The bijections, one for each kind of value. A pair is made when two unknown values are first seen together."""

    def __init__(self) -> None:
        self._theirs: dict[tuple[str, Hashable], Hashable] = {}
        self._ours: dict[tuple[str, Hashable], Hashable] = {}
        self._words: list[tuple[str, str]] = []

    def bind(self, kind: str, ours: Hashable, theirs: Hashable) -> None:
        self._theirs[kind, ours] = theirs
        self._ours[kind, theirs] = ours

    def same(self, kind: str, ours: Hashable, theirs: Hashable) -> bool:
        if ours in _PLAIN or theirs in _PLAIN:
            return ours == theirs
        known_ours, known_theirs = self._theirs.get((kind, ours)), self._ours.get((kind, theirs))
        if known_ours is None and known_theirs is None:
            self.bind(kind, ours, theirs)
            return True
        return known_ours == theirs

    def ours(self, kind: str, theirs: Hashable) -> Hashable:
        """What we call a value of theirs; the value itself while it is unknown."""
        return self._ours.get((kind, theirs), theirs)

    def theirs(self, kind: str, ours: Hashable) -> Hashable:
        """What they call a value of ours; the value itself while it is unknown."""
        return self._theirs.get((kind, ours), ours)

    def known(self, kind: str, value: Hashable, *, theirs: bool) -> Hashable:
        """What we call a value of ours or theirs that both have spoken of; None for one that was made just now."""
        if value in _PLAIN:
            return value
        if theirs:
            return self._ours.get((kind, value))
        return value if (kind, value) in self._theirs else None

    def bind_words(self, ours: str, theirs: str) -> None:
        """Wherever a text of theirs has `theirs`, ours has `ours`."""
        self._words.append((theirs, ours))

    def in_our_words(self, text: str) -> str:
        for theirs, ours in self._words:
            text = text.replace(theirs, ours)
        return text

    def translated(self, message: Any) -> Any:
        """A request of ours as it has to be said to them."""
        if isinstance(message, list):
            return [self.translated(each) for each in message]
        if not is_dataclass(message) or isinstance(message, type):
            return message
        declared = {field.name: field for field in schema_of(message.__class__).fields}
        changes = {}
        for field in fields(message):
            if field.name not in declared:
                continue
            value, kind = getattr(message, field.name), kind_of(declared[field.name])
            if kind is None:
                changes[field.name] = self.translated(value)
            elif isinstance(value, list):
                changes[field.name] = [self._theirs.get((kind, each), each) for each in value]
            else:
                changes[field.name] = self._theirs.get((kind, value), value)
        return replace(message, **changes)
