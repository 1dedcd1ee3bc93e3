"""What the machine of a driver asks for, and what it is answered. Pure.

| effect | answer |
|---|---|
| `ReadMark` | the id of the ledger that the query's checkpoint knows, or "" |
| `AskLedger` | the `LedgerTopic`; without an id when there is none and none is to be made |
| `WriteMark` | None |
| `ReadLedger` | the `Standing` of the query, or None; with `waits`, of all that was committed before the question |
| `BeginDriver` | its `ProducerEpoch`; None when it was named and another driver has begun since |
| `BeginPool` | a `ProducerEpoch` for each id, which nobody had before |
| `PutAway` | None; nothing of the query is in the ledger then |
| `Write` | the driver's `ProducerEpoch` after it; raises `Superseded` when another driver has begun since |
| `AskTime` | milliseconds of the driver's clock |
| `Describe` | `Described` by id; ids that nobody knows are left out |
| `End` | by id, whether it was acknowledged |
| `Witness` | `Seen` by id, from the records themselves |
| `ListOpen` | ids of open transactions |
| `Fence` | None: what is open under these ids is aborted, and whoever has them writes no more |
| `TopicIds` | the id of each topic that there is |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.client.producer.transactions.prepared import PreparedTransaction, ProducerEpoch
from penstock.spark.topic_sink.transactions.records import Listed, Standing


@dataclass(frozen=True, slots=True)
class ReadMark:
    pass


@dataclass(frozen=True, slots=True)
class AskLedger:
    make: bool
    """Whether to make one where there is none."""


@dataclass(frozen=True, slots=True)
class LedgerTopic:
    id: str
    record_bytes_max: int


@dataclass(frozen=True, slots=True)
class WriteMark:
    ledger_id: str


@dataclass(frozen=True, slots=True)
class ReadLedger:
    waits: bool = True
    """Whether for what is hidden behind open transactions, such as that of a driver that has died."""


@dataclass(frozen=True, slots=True)
class BeginDriver:
    named: ProducerEpoch | None = None
    """Whoever says who it is does not fence another driver."""


@dataclass(frozen=True, slots=True)
class BeginPool:
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    standing: Standing


@dataclass(frozen=True, slots=True)
class PutAway:
    standing: Standing


@dataclass(frozen=True, slots=True)
class AskTime:
    pass


@dataclass(frozen=True, slots=True)
class Describe:
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """How a coordinator says that a transaction stands. How old it is its task says: clocks of others are others."""

    producer: ProducerEpoch
    ongoing: bool


@dataclass(frozen=True, slots=True)
class End:
    transactions: tuple[PreparedTransaction, ...]
    commit: bool


@dataclass(frozen=True, slots=True)
class Witness:
    transactions: tuple[Listed, ...]
    topics: tuple[tuple[str, str], ...]
    """Names and ids as they were when they were written to."""


class Seen(Enum):
    """What readers of committed records see of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    UNREADABLE = "not there to be read any more"


@dataclass(frozen=True, slots=True)
class ListOpen:
    pattern: str


@dataclass(frozen=True, slots=True)
class Fence:
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicIds:
    topics: tuple[str, ...]


Effect = (
    ReadMark
    | AskLedger
    | WriteMark
    | ReadLedger
    | BeginDriver
    | BeginPool
    | Write
    | PutAway
    | AskTime
    | Describe
    | End
    | Witness
    | ListOpen
    | Fence
    | TopicIds
)
