"""What the machine of a transaction wants done. The driver does it and tells the machine how it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.client.errors import ClientError
from penstock.client.producer.transactions.prepared import ProducerEpoch
from penstock.client.producer.transactions.reactions import Api


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """Ask whoever coordinates; then `replied` or `unanswered` with this same effect.

    `kind` and `name` say of what: a transactional id or a group. `oldest` and `newest` are versions.
    """

    api: Api
    request: Any
    kind: int
    name: str
    newest: int
    oldest: int = 0


@dataclass(frozen=True, slots=True)
class ForgetCoordinator:
    """The broker that was asked is not, or no longer, the one."""

    kind: int
    name: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Batches are sent as this producer from now on; sequence numbers of a new one begin at 0."""

    producer: ProducerEpoch


@dataclass(frozen=True, slots=True)
class Release:
    """Batches of these partitions may be sent."""

    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Nothing more comes: send what is left, or, when `failure` says why, give up what is not with a broker.

    Then `quiet`, when every batch has its answer.
    """

    failure: ClientError | None = None


@dataclass(frozen=True, slots=True)
class FailAll:
    """Nothing will be sent any more."""

    failure: ClientError


Effect: TypeAlias = Send | ForgetCoordinator | Adopt | Release | Drain | FailAll
