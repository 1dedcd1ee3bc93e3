"""Debezium's events, without their schemas: what was before, what is after, where in the log that stands. Pure.

| in the log | records |
|---|---|
| a row that was there at the beginning | `r` |
| insert | `c` |
| update | `u`; where the key changed: `d` of the old key, its tombstone, `c` of the new one |
| delete | `d`, and a tombstone: a record of the same key without a value |
| truncate | `t`, without key and rows |

`before` is all of the row where the table's REPLICA IDENTITY is FULL; else it is the key, of a delete, or nothing. A
large value that did not change is `__debezium_unavailable_value`, unless the row before has it: of bytea as base64,
of arrays as a list of that text, or of its bytes where the array has numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from penstock.agent.inputs.postgres.log.changes import RowChange
from penstock.agent.inputs.postgres.log.wire import UNCHANGED, Absent, Relation, TypeName, Values
from penstock.agent.inputs.postgres.records.values import OIDS, Convert, converter, known_name, unavailable
from penstock.model.version import VERSION

OPERATIONS: Final = {"insert": "c", "update": "u", "delete": "d", "truncate": "t"}

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class RowEvent:
    """A record to be."""

    key: bytes | None
    fields: dict[str, Any]
    """The envelope; of a tombstone that of the delete before it, for topics are named by it."""
    time_ms: int
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table's columns and its key, as records have them."""

    schema: str
    table: str
    names: tuple[str, ...]
    converts: tuple[Convert, ...]
    unavailable: tuple[Any, ...]
    """What stands for a value of each column that the log does not have."""
    keys: tuple[int, ...]
    """Places of the columns that are the record's key; none: records have no key."""
    identity: tuple[int, ...]
    """Places of the columns that a delete tells of."""

    @staticmethod
    def of(relation: Relation, types: Mapping[int, TypeName], primary_key: Sequence[str] = ()) -> TableShape:
        """`primary_key` is for tables whose every column is their identity: the log does not say which are the key."""
        names = tuple(column.name for column in relation.columns)
        identity = tuple(place for place, column in enumerate(relation.columns) if column.identity)
        keys = identity
        if relation.identity == "f":
            keys = tuple(names.index(name) for name in primary_key if name in names)
        known = [_type_name(column.type_oid, types) for column in relation.columns]
        converts, left_out = tuple(map(converter, known)), tuple(map(unavailable, known))
        return TableShape(relation.schema, relation.table, names, converts, left_out, keys, identity)

    def row(self, values: Values) -> dict[str, Any]:
        return {
            name: None if value is None else left_out if value is UNCHANGED else convert(value)
            for name, value, convert, left_out in zip(self.names, values, self.converts, self.unavailable, strict=True)
        }

    def only_identity(self, values: Values) -> Values:
        return tuple(value if place in self.identity else None for place, value in enumerate(values))

    def key(self, values: Values) -> bytes | None:
        if not self.keys:
            return None
        return _encode({self.names[place]: self._part(values[place], place) for place in self.keys})

    def _part(self, value: str | Absent | None, place: int) -> Any:
        return self.converts[place](value) if isinstance(value, str) else None


def _type_name(oid: int, types: Mapping[int, TypeName]) -> str:
    named = types.get(oid)
    return OIDS.get(oid, "") if named is None else known_name(named.schema, named.name)


@dataclass(frozen=True, slots=True)
class Envelopes:
    """Of one input: what all of its events say of where they are from."""

    server: str
    """The input's name; Debezium's `topic.prefix`."""
    database: str
    tombstones: bool = True
    now_ms: Callable[[], int] = field(default=lambda: 0)

    def of_change(self, change: RowChange, shape: TableShape) -> Iterator[RowEvent]:
        """The records of one change, in order."""
        old = change.old
        new = _filled(change.new, old) if old is not None and change.whole else change.new
        key = shape.key(new) if new else shape.key(old) if old is not None else None
        match change.kind:
            case "insert":
                yield self._event(change, shape, "c", None, new, key)
            case "update":
                old_key = shape.key(old) if old is not None else key
                if old is not None and old_key != key:
                    yield from self._gone(change, shape, old, old_key)
                    yield self._event(change, shape, "c", None, new, key)
                else:
                    yield self._event(change, shape, "u", old if change.whole else None, new, key)
            case "delete":
                assert old is not None, "pgoutput tells which row"
                yield from self._gone(change, shape, old, key)
            case "truncate":
                yield self._event(change, shape, "t", None, (), None)

    def _gone(self, change: RowChange, shape: TableShape, old: Values, key: bytes | None) -> Iterator[RowEvent]:
        before = old if change.whole else shape.only_identity(old)
        yield self._event(change, shape, "d", before, (), key)
        if self.tombstones and key is not None:
            gone = self._event(change, shape, "d", before, (), key)
            yield RowEvent(key, gone.fields, gone.time_ms, tombstone=True)

    def of_row(self, shape: TableShape, values: Values, lsn: int, time_ms: int) -> RowEvent:
        """A row that was there when its table was read. The log that is sent after it begins at `lsn`."""
        source = self._source(shape, "true", lsn, None, time_ms)
        return RowEvent(shape.key(values), self._envelope("r", None, shape.row(values), source), time_ms)

    def _event(
        self, change: RowChange, shape: TableShape, op: str, before: Values | None, after: Values, key: bytes | None
    ) -> RowEvent:
        transaction = change.transaction
        time_ms = transaction.time_us // 1_000
        source = self._source(shape, "false", change.lsn, transaction.xid, time_ms)
        source["sequence"] = f'["{transaction.commit}","{change.lsn}"]'
        row_before = None if before is None else shape.row(before)
        envelope = self._envelope(op, row_before, shape.row(after) if after else None, source)
        return RowEvent(key, envelope, time_ms)

    def _envelope(
        self, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, source: dict[str, Any]
    ) -> dict[str, Any]:
        return {"before": before, "after": after, "source": source, "op": op, "ts_ms": self.now_ms()}

    def _source(self, shape: TableShape, snapshot: str, lsn: int, xid: int | None, time_ms: int) -> dict[str, Any]:
        return {
            "version": VERSION,
            "connector": "postgresql",
            "name": self.server,
            "ts_ms": time_ms,
            "snapshot": snapshot,
            "db": self.database,
            "schema": shape.schema,
            "table": shape.table,
            "txId": xid,
            "lsn": lsn,
        }


def _filled(new: Values, old: Values) -> Values:
    """With what the row before has of the values that did not change."""
    if UNCHANGED not in new:
        return new
    return tuple(was if value is UNCHANGED else value for value, was in zip(new, old, strict=True))
