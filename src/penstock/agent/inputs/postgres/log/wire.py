"""Messages of the output plugin pgoutput, as bytes. Pure.

Versions 1 and 2 of its protocol write these messages alike; transactions are never asked for before they are committed
(`streaming`), and values never in binary. Text is UTF-8, because the connection says so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

EPOCH_US: Final = 946_684_800_000_000
"""Postgres counts microseconds from the year 2000, others from 1970."""


class BrokenMessage(ValueError):
    """Bytes that are no message of pgoutput, or of one that was not asked for."""


class Absent(Enum):
    """What stands for a value that is not in the log."""

    UNCHANGED = "unchanged"
    """A large value that its update did not touch (TOAST)."""


UNCHANGED: Final = Absent.UNCHANGED
Value: TypeAlias = str | Absent | None
Values: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class TransactionBegin:
    commit: int
    """Where the transaction commits."""
    time_us: int
    """When, since 1970."""
    xid: int


@dataclass(frozen=True, slots=True)
class TransactionCommit:
    commit: int
    end: int
    """Behind the commit: from here on the next transaction is written."""
    time_us: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    modifier: int
    identity: bool
    """Whether it is among those that tell rows apart."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it was when the changes that follow were made."""

    oid: int
    schema: str
    table: str
    identity: str
    """d: the primary key, i: an index, f: all columns, n: nothing."""
    columns: tuple[RelationColumn, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of a type that is not Postgres's own; of a domain, that of what it is made of."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    new: Values


@dataclass(frozen=True, slots=True)
class Update:
    relation: int
    new: Values
    old: Values | None = None
    whole: bool = False
    """Whether `old` is the row; else only its key, of which some column changed."""


@dataclass(frozen=True, slots=True)
class Delete:
    relation: int
    old: Values
    whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class OriginName:
    """The transaction came from another server by replication."""

    commit: int
    name: str


Message: TypeAlias = (
    TransactionBegin | TransactionCommit | Relation | TypeName | Insert | Update | Delete | Truncate | OriginName
)

_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_COLUMN: Final = struct.Struct(">Ii")
_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")


class MessageBytes:
    """The rest of a message. Whatever is missing raises what `read` turns into a BrokenMessage."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 1

    def unpack(self, shape: struct.Struct) -> tuple[int, ...]:
        found = shape.unpack_from(self.data, self.at)
        self.at += shape.size
        return found

    def one(self, shape: struct.Struct) -> int:
        return self.unpack(shape)[0]

    def byte(self) -> int:
        found = self.data[self.at]
        self.at += 1
        return found

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        found = self.data[self.at : end].decode()
        self.at = end + 1
        return found

    def values(self) -> Values:
        """A row. This is where the time goes, so it is one loop without calls of ours."""
        data, at = self.data, self.at
        count = int.from_bytes(data[at : at + 2], "big")
        at += 2
        found: list[Value] = []
        for _ in range(count):
            kind = data[at]
            at += 1
            if kind == 0x74:  # t
                (length,) = _U32.unpack_from(data, at)
                at += 4
                if at + length > len(data):
                    raise ValueError(f"a value of {length} bytes ends behind the message")
                found.append(data[at : at + length].decode())
                at += length
            elif kind == 0x6E:  # n
                found.append(None)
            elif kind == 0x75:  # u
                found.append(UNCHANGED)
            else:
                raise ValueError(f"a value of the kind {chr(kind)!r} was not asked for")
        self.at = at
        return tuple(found)


def read(data: bytes) -> Message:
    """One message; BrokenMessage for anything else."""
    if not data:
        raise BrokenMessage("an empty message came out of the log")
    kind = data[:1]
    read_rest = _KINDS.get(kind)
    if read_rest is None:
        raise BrokenMessage(f"a message of the kind {kind!r} came out of the log; it was not asked for")
    reader = MessageBytes(data)
    try:
        message = read_rest(reader)
    except (ValueError, IndexError, struct.error) as wrong:
        raise BrokenMessage(f"a message of the kind {kind!r} cannot be read: {wrong}") from wrong
    if reader.at != len(data):
        raise BrokenMessage(f"a message of the kind {kind!r} has {len(data) - reader.at} bytes too many")
    return message


def _begin(reader: MessageBytes) -> TransactionBegin:
    commit, time_us, xid = reader.unpack(_BEGIN)
    return TransactionBegin(commit, time_us + EPOCH_US, xid)


def _commit(reader: MessageBytes) -> TransactionCommit:
    _, commit, end, time_us = reader.unpack(_COMMIT)
    return TransactionCommit(commit, end, time_us + EPOCH_US)


def _origin(reader: MessageBytes) -> OriginName:
    return OriginName(reader.one(_U64), reader.text())


def _relation(reader: MessageBytes) -> Relation:
    oid, schema, table, identity = reader.one(_U32), reader.text(), reader.text(), chr(reader.byte())
    columns = tuple(_relation_column(reader) for _ in range(reader.one(_U16)))
    # Postgres's own schema is written as an empty name.
    return Relation(oid, schema or "pg_catalog", table, identity, columns)


def _relation_column(reader: MessageBytes) -> RelationColumn:
    flags, name = reader.byte(), reader.text()
    type_oid, modifier = reader.unpack(_COLUMN)
    return RelationColumn(name, type_oid, modifier, bool(flags & 1))


def _type(reader: MessageBytes) -> TypeName:
    return TypeName(reader.one(_U32), reader.text() or "pg_catalog", reader.text())


def _insert(reader: MessageBytes) -> Insert:
    relation = reader.one(_U32)
    _expect(reader, b"N")
    return Insert(relation, reader.values())


def _update(reader: MessageBytes) -> Update:
    relation = reader.one(_U32)
    part = _expect(reader, b"KON")
    if part == b"N":
        return Update(relation, reader.values())
    old = reader.values()
    _expect(reader, b"N")
    return Update(relation, reader.values(), old, whole=part == b"O")


def _delete(reader: MessageBytes) -> Delete:
    relation = reader.one(_U32)
    part = _expect(reader, b"KO")
    return Delete(relation, reader.values(), whole=part == b"O")


def _truncate(reader: MessageBytes) -> Truncate:
    count, options = reader.one(_U32), reader.byte()
    return Truncate(tuple(reader.one(_U32) for _ in range(count)), bool(options & 1), bool(options & 2))


def _expect(reader: MessageBytes, kinds: bytes) -> bytes:
    found = bytes((reader.byte(),))
    if found not in kinds:
        raise ValueError(f"there is {found!r} where one of {kinds!r} belongs")
    return found


_KINDS: Final[dict[bytes, Callable[[MessageBytes], Message]]] = {
    b"B": _begin,
    b"C": _commit,
    b"O": _origin,
    b"R": _relation,
    b"Y": _type,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
}
