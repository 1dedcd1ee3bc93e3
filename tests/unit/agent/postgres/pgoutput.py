"""The other side of the wire: messages as a Postgres writes them."""

from __future__ import annotations

import struct

from penstock.agent.inputs.postgres.log.wire import (
    EPOCH_US,
    UNCHANGED,
    Delete,
    Insert,
    Message,
    OriginName,
    Relation,
    TransactionBegin,
    TransactionCommit,
    Truncate,
    TypeName,
    Update,
    Values,
)


def written(message: Message) -> bytes:
    match message:
        case TransactionBegin(commit, time_us, xid):
            return b"B" + struct.pack(">QqI", commit, time_us - EPOCH_US, xid)
        case TransactionCommit(commit, end, time_us):
            return b"C" + struct.pack(">BQQq", 0, commit, end, time_us - EPOCH_US)
        case OriginName(commit, name):
            return b"O" + struct.pack(">Q", commit) + _text(name)
        case TypeName(oid, schema, name):
            return b"Y" + struct.pack(">I", oid) + _schema(schema) + _text(name)
        case Relation(oid, schema, table, identity, columns):
            head = b"R" + struct.pack(">I", oid) + _schema(schema) + _text(table) + identity.encode()
            return (
                head
                + struct.pack(">H", len(columns))
                + b"".join(
                    bytes((each.identity,)) + _text(each.name) + struct.pack(">Ii", each.type_oid, each.modifier)
                    for each in columns
                )
            )
        case Insert(relation, new):
            return b"I" + struct.pack(">I", relation) + b"N" + _row(new)
        case Update(relation, new, old, whole):
            before = b"" if old is None else (b"O" if whole else b"K") + _row(old)
            return b"U" + struct.pack(">I", relation) + before + b"N" + _row(new)
        case Delete(relation, old, whole):
            return b"D" + struct.pack(">I", relation) + (b"O" if whole else b"K") + _row(old)
        case Truncate(relations, cascade, restart):
            options = cascade | restart << 1
            return b"T" + struct.pack(f">IB{len(relations)}I", len(relations), options, *relations)


def _schema(name: str) -> bytes:
    return _text("" if name == "pg_catalog" else name)


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _row(values: Values) -> bytes:
    made = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            made.append(b"n")
        elif value is UNCHANGED:
            made.append(b"u")
        else:
            data = value.encode()
            made.append(b"t" + struct.pack(">I", len(data)) + data)
    return b"".join(made)
