"""What the client library raises. Every one says what happened, where, and whether trying again can help.

`ClientError` is the root: catch it to catch them all. `error` is the protocol's code when a broker named one. Words
of a broker are kept, because that is what one searches for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    MESSAGE_TOO_LARGE,
    OFFSET_OUT_OF_RANGE,
    PRODUCER_FENCED,
    REBALANCE_IN_PROGRESS,
    RECORD_LIST_TOO_LARGE,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_VERSION,
    ErrorCode,
    PenstockError,
    error_of,
)

if TYPE_CHECKING:
    from penstock.transport.dial import LinkError


class ClientError(PenstockError):
    """The root of what the client raises. `why` is the sentence, `where` the topic, partition, group or address."""

    def __init__(
        self, why: str, *, where: str = "", error: ErrorCode | None = None, retriable: bool | None = None
    ) -> None:
        super().__init__(why, where, error, retriable)
        self.why, self.where, self.error = why, where, error
        self.retriable = retriable if retriable is not None else error is not None and error.retriable

    def __str__(self) -> str:
        words = f"{self.where}: {self.why}" if self.where else self.why
        return f"{words} ({self.error.name})" if self.error is not None else words

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (type(self), self.why, self.where, self.error, self.retriable)


def _remade(kind: type[ClientError], why: str, where: str, error: ErrorCode | None, retriable: bool) -> ClientError:
    return kind(why, where=where, error=error, retriable=retriable)


class BrokerRefused(ClientError):
    """A broker understood the request and answered with an error code."""


class NotReachable(ClientError):
    """No broker could be reached, or the connection broke before the answer came."""


class TimedOutWaiting(ClientError, TimeoutError):
    """Something did not happen in time: an answer, metadata, room in the buffer, a delivery."""


class BufferFull(ClientError):
    """More records wait for room than `buffer_memory` allows: await deliveries, or `wait_for_room()`."""


class RecordTooLarge(ClientError):
    """A record is larger than `max_request_size`, `buffer_memory` or what the topic takes."""


class NoOffsetForPartition(ClientError):
    """Nothing was committed for the partition and `offset_reset` is "none"."""


class OffsetOutOfRange(ClientError):
    """The offset is not (or no longer) in the log and `offset_reset` is "none"."""


class CommitFailed(ClientError):
    """The partitions belong to somebody else by now: the group has rebalanced. The records will be read again."""


class MemberFenced(ClientError):
    """Another consumer took this one's place in the group (same `group_instance_id`)."""


class TransactionAbortable(ClientError):
    """The transaction cannot be committed. `await producer.abort()`, then begin again with everything that was in it.

    The producer stays usable. `producer.transaction()` has aborted already when it raises this.
    """


class TransactionFenced(ClientError):
    """This producer may write no more: another one with its `transactional_id` has begun, or its time was over.

    The open transaction is aborted, by whoever took its place or by the coordinator. Close the producer. If it was not
    replaced on purpose, make a new one and go on from the offsets that are committed.
    """


class UnknownTopic(ClientError):
    """The topic or partition does not exist and was not created."""


class NotAllowed(ClientError):
    """The broker's access rules forbid it."""


class AuthenticationFailed(ClientError):
    """The broker did not take the login, or did not prove itself. It is not tried again with the same credentials."""


class NotTrusted(AuthenticationFailed):
    """TLS found no connection that both sides could trust: certificates, host names, protocols."""


class Closed(ClientError):
    """The object was closed, or its event loop has ended."""


class BadSetting(ClientError):
    """A setting that does not exist or has a value it cannot have."""


_CLASS_OF: dict[ErrorCode, type[ClientError]] = {
    UNKNOWN_TOPIC_OR_PARTITION: UnknownTopic,
    UNKNOWN_TOPIC_ID: UnknownTopic,
    OFFSET_OUT_OF_RANGE: OffsetOutOfRange,
    MESSAGE_TOO_LARGE: RecordTooLarge,
    RECORD_LIST_TOO_LARGE: RecordTooLarge,
    REQUEST_TIMED_OUT: TimedOutWaiting,
    ILLEGAL_GENERATION: CommitFailed,
    UNKNOWN_MEMBER_ID: CommitFailed,
    REBALANCE_IN_PROGRESS: CommitFailed,
    STALE_MEMBER_EPOCH: CommitFailed,
    FENCED_MEMBER_EPOCH: CommitFailed,
    FENCED_INSTANCE_ID: MemberFenced,
    PRODUCER_FENCED: TransactionFenced,
    TRANSACTION_ABORTABLE: TransactionAbortable,
    UNRELEASED_INSTANCE_ID: MemberFenced,
    TOPIC_AUTHORIZATION_FAILED: NotAllowed,
    GROUP_AUTHORIZATION_FAILED: NotAllowed,
    CLUSTER_AUTHORIZATION_FAILED: NotAllowed,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAllowed,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED: NotAllowed,
    SASL_AUTHENTICATION_FAILED: AuthenticationFailed,
}

_WORDS = {
    PRODUCER_FENCED: "a producer with the same transactional id has begun after this one",
    TRANSACTION_ABORTABLE: "the transaction can only be aborted",
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the broker's access rules forbid it",
    UNKNOWN_TOPIC_OR_PARTITION: "it does not exist",
    UNKNOWN_TOPIC_ID: "it does not exist any more",
    TOPIC_AUTHORIZATION_FAILED: "the broker's access rules forbid it",
    GROUP_AUTHORIZATION_FAILED: "the broker's access rules forbid it",
    CLUSTER_AUTHORIZATION_FAILED: "the broker's access rules forbid it",
}


def refusal(code: int, why: str | None, where: str) -> ClientError:
    """The exception for an error code that a broker answered; `why` are the broker's words, if it had any."""
    error = error_of(code)
    return _CLASS_OF.get(error, BrokerRefused)(
        why or _WORDS.get(error, "the broker refused it"), where=where, error=error
    )


def login_refused(failure: object) -> bool:
    """Whether no broker will take us. One that TLS does not trust says nothing of the others."""
    return isinstance(failure, AuthenticationFailed) and not isinstance(failure, NotTrusted)


def link_failure(failure: LinkError) -> ClientError:
    """The exception for a request that got no answer."""
    from penstock.transport.dial import Foreign, LoginFailed, TimedOut, Unsupported, Untrusted

    where = f"{failure.host}:{failure.port}"
    if isinstance(failure, LoginFailed):
        return AuthenticationFailed(failure.why, where=where, error=failure.error, retriable=False)
    if isinstance(failure, Untrusted):
        return NotTrusted(failure.why, where=where, retriable=False)
    if isinstance(failure, TimedOut):
        return TimedOutWaiting(failure.why, where=where, retriable=True)
    if isinstance(failure, Unsupported):
        return BrokerRefused(failure.why, where=where, error=UNSUPPORTED_VERSION)
    return NotReachable(failure.why, where=where, retriable=not isinstance(failure, Foreign))
