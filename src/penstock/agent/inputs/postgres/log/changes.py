"""Messages in, changes out: each with its table as it was then, its transaction and its place. Pure.

What an earlier life has sent already is passed over by its place, so a log that is read again from an earlier place
gives every change once. A transaction is between its begin and its commit; messages outside of one are of no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from penstock.agent.inputs.postgres.log.lsn import LogPosition
from penstock.agent.inputs.postgres.log.wire import (
    BrokenMessage,
    Delete,
    Insert,
    OriginName,
    Relation,
    TransactionBegin,
    TransactionCommit,
    Truncate,
    TypeName,
    Update,
    Values,
    read,
)

Kind: TypeAlias = Literal["insert", "update", "delete", "truncate"]


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    commit: int
    time_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class RowChange:
    """What happened to one row, or with `truncate` to all rows of a table."""

    kind: Kind
    relation: Relation
    transaction: LoggedTransaction
    lsn: int
    number: int
    """In its transaction, from 1 on; a truncation of several tables has one number for all."""
    new: Values = ()
    old: Values | None = None
    whole: bool = False
    """Whether `old` is all of the row, not only its key."""


@dataclass(frozen=True, slots=True)
class LogRead:
    """What a message gave. `position` is behind it, when it may be stopped at here."""

    changes: tuple[RowChange, ...] = ()
    position: LogPosition | None = None
    relation: Relation | None = None
    """A table that is new, or not what it was."""


@dataclass(frozen=True, slots=True)
class RowMessage:
    """One row's message, whatever its kind."""

    kind: Kind
    relation: int
    new: Values
    old: Values | None
    whole: bool


NOTHING: Final = LogRead()


class LogReader:
    """Of one connection: tables and types are told anew on each."""

    def __init__(self, after: LogPosition) -> None:
        self._after = after
        self._restart = after.restart
        self._transaction: LoggedTransaction | None = None
        self._number = 0
        self._relations: dict[int, Relation] = {}
        self.types: dict[int, TypeName] = {}
        """Types that are not Postgres's own, and domains, by their number."""

    @property
    def between(self) -> bool:
        """No transaction is open: the log is whole up to where it was read."""
        return self._transaction is None

    def feed(self, data: bytes, lsn: int) -> LogRead:
        """The next message. `lsn` is where what it tells of was written."""
        match read(data):
            case Insert() as message:
                return self._change(RowMessage("insert", message.relation, message.new, None, False), lsn)
            case Update() as message:
                return self._change(
                    RowMessage("update", message.relation, message.new, message.old, message.whole), lsn
                )
            case Delete() as message:
                return self._change(RowMessage("delete", message.relation, (), message.old, message.whole), lsn)
            case Truncate() as message:
                return self._truncate(message, lsn)
            case TransactionBegin() as message:
                if self._transaction is not None:
                    raise BrokenMessage("a transaction begins inside of another")
                self._transaction, self._number = LoggedTransaction(message.commit, message.time_us, message.xid), 0
            case TransactionCommit() as message:
                return self._commit(message)
            case Relation() as message:
                known, self._relations[message.oid] = self._relations.get(message.oid), message
                return NOTHING if known == message else LogRead(relation=message)
            case TypeName() as message:
                self.types[message.oid] = message
            case OriginName():
                pass
        return NOTHING

    def _change(self, row: RowMessage, lsn: int) -> LogRead:
        transaction = self._counted()
        if self._after.has(transaction.commit, self._number):
            return NOTHING
        relation = self._relation(row.relation)
        for values in (row.new, row.old):
            if values and len(values) != len(relation.columns):
                raise BrokenMessage(
                    f"{len(values)} values of {relation.name}, which has {len(relation.columns)} columns"
                )
        change = RowChange(row.kind, relation, transaction, lsn, self._number, row.new, row.old, row.whole)
        return LogRead((change,), self._position(transaction))

    def _truncate(self, message: Truncate, lsn: int) -> LogRead:
        transaction = self._counted()
        if self._after.has(transaction.commit, self._number):
            return NOTHING
        relations = [self._relation(oid) for oid in message.relations]
        changes = tuple(RowChange("truncate", relation, transaction, lsn, self._number) for relation in relations)
        return LogRead(changes, self._position(transaction))

    def _counted(self) -> LoggedTransaction:
        if self._transaction is None:
            raise BrokenMessage("a change is outside of a transaction")
        self._number += 1
        return self._transaction

    def _relation(self, oid: int) -> Relation:
        relation = self._relations.get(oid)
        if relation is None:
            raise BrokenMessage(f"a change is of table {oid}, which was not told of")
        return relation

    def _position(self, transaction: LoggedTransaction) -> LogPosition:
        return LogPosition(transaction.commit, self._number, self._restart)

    def _commit(self, message: TransactionCommit) -> LogRead:
        transaction, self._transaction = self._transaction, None
        if transaction is None or transaction.commit != message.commit:
            raise BrokenMessage("a commit is not of the transaction that is open")
        self._restart = max(self._restart, message.end)
        if transaction.commit < self._after.commit:
            return NOTHING
        number = max(self._number, self._after.changes if transaction.commit == self._after.commit else 0)
        return LogRead(position=LogPosition(transaction.commit, number, self._restart))

    def idle(self, end: int) -> LogPosition | None:
        """The server has nothing more up to `end`; a position that says so, unless a transaction is open."""
        if self._transaction is not None or end <= self._restart:
            return None
        self._restart = end
        return LogPosition(end, 0, end)
