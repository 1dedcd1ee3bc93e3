"""What the ledger says of a query: its last decision, and what must be known to go on after it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.client.producer.transactions.prepared import PreparedTransaction
from penstock.spark.errors import Missing
from penstock.spark.lake.ranges import RangeKey, TableRange
from penstock.spark.topic_sink.delivery import Landed

VERSION: Final = 1
HISTORY: Final = 1_000
"""Decisions of a query that are kept at most."""
HISTORY_BYTES: Final = 8 << 20
"""What they may have together: of large ones fewer are kept."""
_HISTORIES: Final = (HISTORY, 500, 100, 50, 10, 5, 1)
"""Each divides the one before it. So a key that is used in turn of fewer was used last by a decision that is as old as
that, and whatever is younger is still there."""
RUNS_KEPT: Final = 16
"""Transactions of drivers before these were over long ago."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A transaction of a decision, and what lies in it."""

    prepared: PreparedTransaction
    landed: tuple[Landed, ...]

    @property
    def id(self) -> str:
        return self.prepared.transactional_id

    def to_json(self) -> list[Any]:
        one = self.prepared
        whose = [one.transactional_id, one.producer_id, one.producer_epoch, one.transaction_version]
        return [*whose, [list(each) for each in self.landed]]

    @classmethod
    def of_json(cls, given: Sequence[Any]) -> Listed:
        name, producer_id, epoch, version, landed = given
        return cls(PreparedTransaction(name, producer_id, epoch, version), tuple(Landed(*each) for each in landed))


@dataclass(frozen=True, slots=True)
class Decision:
    """One batch: what it has read, and the transactions that hold what was made of it."""

    sequence: int
    batch: int
    ranges: tuple[TableRange, ...]
    transactions: tuple[Listed, ...]
    topics: Mapping[str, str] = field(default_factory=dict)
    """The ids of the topics that were written to."""
    ended: bool = False
    """Whether all of its transactions are known to be committed."""

    @property
    def rows(self) -> int:
        return sum(landed.rows for each in self.transactions for landed in each.landed)

    def to_json(self) -> dict[str, Any]:
        return {
            "sequence": self.sequence,
            "batch": self.batch,
            "ranges": [each.to_json() for each in self.ranges],
            "transactions": [each.to_json() for each in self.transactions],
            "topics": dict(self.topics),
            "ended": self.ended,
        }

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Decision:
        return cls(
            int(given["sequence"]),
            int(given["batch"]),
            tuple(TableRange.of_json(each) for each in given["ranges"]),
            tuple(Listed.of_json(each) for each in given["transactions"]),
            dict(given["topics"]),
            bool(given["ended"]),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a query stands: the one record of it that counts."""

    query_id: str
    run: str
    """The driver that is in charge."""
    slots: int
    """The size of its pool."""
    superseded: tuple[str, ...] = ()
    """Drivers before it, the last one first."""
    positions: Mapping[RangeKey, int] = field(default_factory=dict)
    """How far the input has been read by all decisions that are ended."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """The ids of the topics that were ever written to."""
    sequence: int = 0
    """How many decisions there were, with the last one."""
    decision: Decision | None = None
    """The last one; None before the first, and when it was dropped."""
    history: int = HISTORY
    """How many decisions are kept, with the last one; it only shrinks."""

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.run, *self.superseded)

    def led_by(self, run: str, slots: int) -> Standing:
        """Another driver takes over, or the same one has more tasks."""
        if run == self.run:
            return replace(self, slots=slots)
        others = tuple(each for each in self.runs if each != run)
        return replace(self, run=run, slots=slots, superseded=others[:RUNS_KEPT])

    def decided(self, decision: Decision) -> Standing:
        topics = {**self.topics, **decision.topics}
        fits = HISTORY_BYTES // len(packed(decision.to_json()))
        history = next((each for each in _HISTORIES if each <= min(self.history, fits)), 1)
        return replace(self, sequence=decision.sequence, decision=decision, topics=topics, history=history)

    @property
    def size_bytes(self) -> int:
        """Of its record."""
        return len(packed(self.to_json()))

    def expected_bytes(self, tasks: int) -> int:
        """Of its record when so many tasks have written, if each writes as those of the last decision did."""
        last = self.decision
        if last is None or not last.transactions:
            return self.size_bytes
        each = len(packed([listed.to_json() for listed in last.transactions])) / len(last.transactions)
        return self.size_bytes + int(each * max(0, tasks - len(last.transactions)))

    def ended(self) -> Standing:
        """All of the last decision is committed: its ranges have been read for good."""
        assert self.decision is not None, "something was decided"
        moved = {each.key: each.end for each in self.decision.ranges}
        return replace(self, decision=replace(self.decision, ended=True), positions={**self.positions, **moved})

    def dropped(self, before: Decision | None = None) -> Standing:
        """All of the last decision was aborted: it is as if it had never been."""
        return replace(self, sequence=self.sequence - 1, decision=before)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "query": self.query_id,
            "run": self.run,
            "slots": self.slots,
            "superseded": list(self.superseded),
            "positions": [[*key, offset] for key, offset in self.positions.items()],
            "topics": dict(self.topics),
            "sequence": self.sequence,
            "decision": None if self.decision is None else self.decision.to_json(),
            "history": self.history,
        }

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Standing:
        if given.get("version") != VERSION:
            raise Missing(
                f"the ledger of decisions has a record of version {given.get('version')!r}, and this release knows "
                f"{VERSION}: go on with the release that wrote it"
            )
        decision = given["decision"]
        return cls(
            given["query"],
            given["run"],
            int(given["slots"]),
            tuple(given["superseded"]),
            {RangeKey(topic, partition, ordinal): offset for topic, partition, ordinal, offset in given["positions"]},
            dict(given["topics"]),
            int(given["sequence"]),
            None if decision is None else Decision.of_json(decision),
            # Records of before it was counted have it whole.
            int(given.get("history", HISTORY)),
        )


def packed(value: Any) -> bytes:
    """As it is in the ledger."""
    return json.dumps(value, separators=(",", ":")).encode()
