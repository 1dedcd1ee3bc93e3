"""A transaction that is flushed and not ended: everything that any process needs to end it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple, Self

BUMPING_VERSION: Final = 2
"""From this `transaction.version` on, the end of a transaction raises the epoch."""


class ProducerEpoch(NamedTuple):
    """As whom brokers know a producer; the epoch rises whenever an older one is to be refused."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """What `producer.prepare()` gives and `admin.end_transaction()` takes, in this process or another.

    It can be pickled, and `dumps` and `loads` make text of it. The coordinator still aborts it when
    `transaction_timeout_ms` is over. `empty` tells that nothing was sent in it, so that there is nothing to end.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    transaction_version: int
    empty: bool = False

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Self:
        """What `dumps` made; ValueError when it is not."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"this is no prepared transaction: {wrong}") from None
