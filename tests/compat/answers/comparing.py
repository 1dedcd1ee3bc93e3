"""What differs between two answers, field by field, when ids, times and the words of errors are left aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from typing import Any, NamedTuple

from penstock.protocol.schema import Field, schema_of
from tests.compat.answers.pairs import Pairs, kind_of

CLOSED = "the connection was closed"
SILENT = "there was no answer"
"""Stand for the answers of a broker that hung up, and of one that said nothing in time."""

_MASKED = frozenset({"throttle_time_ms", "error_message", "total_bytes", "usable_bytes", "finalized_features_epoch"})
# Where the metadata log stands is each broker's own affair.
_MASKED_OF = {"DescribeQuorumResponse": frozenset({"high_watermark", "log_end_offset", "leader_epoch"})}
_TIMES = frozenset(
    {
        "timestamp", "log_append_time_ms", "last_fetch_timestamp", "last_caught_up_timestamp", "last_timestamp",
        "issue_timestamp_ms", "issue_timestamp", "expiry_timestamp_ms", "expiry_timestamp", "max_timestamp_ms",
        "max_timestamp", "transaction_start_time_ms",
    }
)  # fmt: skip
_UNORDERED = frozenset({"subscribed_topic_names", "partitions"})
_NEAR_MS = 60 * 60 * 1_000
_BATCH_HEAD = 12
# What tells the elements of an unordered array apart.
_KEYS = (
    "api_key", "resource_type", "resource_name", "name", "topic", "topic_name",
    "topic_id", "group_id", "member_id", "key", "partition_index", "partition", "partition_id", "index", "node_id",
    "broker_id", "replica_id", "producer_id", "group", "log_dir", "user", "token_id", "pattern_type", "principal",
    "host", "operation", "permission_type", "transactional_id",
)  # fmt: skip


class Difference(NamedTuple):
    """One place where two answers differ. `path` has no indexes, `at` has those of the element."""

    path: str
    ours: Any
    theirs: Any
    at: tuple[Any, ...] = ()


class Comparison:
    """Compares answers. `now_ms` is about now: times near or after it that are near each other are the brokers' own,
    others were given by a client."""

    def __init__(self, pairs: Pairs, now_ms: int) -> None:
        self.pairs, self.now_ms = pairs, now_ms
        self._masked = _MASKED

    def differences(self, ours: Any, theirs: Any) -> list[Difference]:
        if isinstance(ours, str) or isinstance(theirs, str):
            return [] if ours == theirs else [Difference("", ours, theirs)]
        name = ours.__class__.__name__
        self._masked = _MASKED | _MASKED_OF.get(name, frozenset())
        return list(self._structs(ours, theirs, name, ()))

    def _structs(self, ours: Any, theirs: Any, path: str, at: tuple[Any, ...]) -> Iterator[Difference]:
        for field in schema_of(ours.__class__).fields:
            if field.name in self._masked:
                continue
            mine, other = getattr(ours, field.name), getattr(theirs, field.name)
            yield from self._values(field, mine, other, f"{path}.{field.name}", at)

    def _values(self, field: Field, ours: Any, theirs: Any, path: str, at: tuple[Any, ...]) -> Iterator[Difference]:
        kind = kind_of(field)
        if isinstance(ours, list) and isinstance(theirs, list):
            yield from self._arrays(field, ours, theirs, path, at)
        elif is_dataclass(ours) and is_dataclass(theirs):
            yield from self._structs(ours, theirs, path, at)
        elif field.kind == "records":
            mine, other = whole_batches(ours), whole_batches(theirs)
            if mine != other:
                yield Difference(path, mine, other, at)
        elif kind is not None:
            if not self.pairs.same(kind, ours, theirs):
                yield Difference(path, ours, theirs, at)
        elif isinstance(theirs, str) and ours == self.pairs.in_our_words(theirs):
            return
        elif ours != theirs and not (field.name in _TIMES and self._both_now(ours, theirs)):
            yield Difference(path, ours, theirs, at)

    def _arrays(
        self, field: Field, ours: list[Any], theirs: list[Any], path: str, at: tuple[Any, ...]
    ) -> Iterator[Difference]:
        if not any(is_dataclass(each) for each in (*ours, *theirs)):
            if kind_of(field) == "uuid":
                theirs = [self.pairs.ours("uuid", each) for each in theirs]
            if field.name in _UNORDERED:
                ours, theirs = sorted(ours), sorted(theirs)
            if ours != theirs:
                yield Difference(path, ours, theirs, at)
            return
        mine = sorted(_merged(ours, self._key), key=self._key)
        others = sorted(_merged(theirs, self._their_key), key=self._their_key)
        known = {self._key(each) for each in mine}, {self._their_key(each) for each in others}
        if len(mine) != len(others) or known[0] != known[1]:
            surplus = [each for each in mine if self._key(each) not in known[1]]
            lacking = [each for each in others if self._their_key(each) not in known[0]]
            yield Difference(f"{path}[]", surplus or len(mine), lacking or len(others), at)
            mine = [each for each in mine if self._key(each) in known[1]]
            others = [each for each in others if self._their_key(each) in known[0]]
        for one, other in zip(mine, others, strict=False):
            yield from self._structs(one, other, f"{path}[]", (*at, self._key(one)))

    def _key(self, struct: Any, *, theirs: bool = False) -> tuple[str, ...]:
        found = []
        declared = {field.name: field for field in schema_of(struct.__class__).fields}
        for name in _KEYS:
            if name in declared:
                value, kind = getattr(struct, name), kind_of(declared[name])
                if kind is not None:
                    value = self.pairs.known(kind, value, theirs=theirs)
                found.append(repr(value))
        return tuple(found)

    def _their_key(self, struct: Any) -> tuple[str, ...]:
        return self._key(struct, theirs=True)

    def _both_now(self, ours: Any, theirs: Any) -> bool:
        return abs(ours - theirs) < _NEAR_MS and min(ours, theirs) > self.now_ms - _NEAR_MS


def _merged(structs: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    """Entries of the same thing as one: Kafka tells of a topic's good and bad partitions apart."""
    found: dict[Any, Any] = {}
    for struct in structs:
        known = found.setdefault(key(struct), struct)
        arrays = [field.name for field in schema_of(struct.__class__).fields if field.kind == "array"]
        if known is not struct and len(arrays) == 1:
            (name,) = arrays
            found[key(struct)] = replace(known, **{name: getattr(known, name) + getattr(struct, name)})
        elif known is not struct:
            return structs
    return list(found.values())


def whole_batches(data: Any) -> bytes:
    """Record data without the batch at its end that was cut: a reader throws it away."""
    if data is None:
        return b""
    raw, position = bytes(data), 0
    while position + _BATCH_HEAD <= len(raw):
        size = int.from_bytes(raw[position + 8 : position + 12], "big") + _BATCH_HEAD
        if position + size > len(raw):
            break
        position += size
    return raw[:position]
