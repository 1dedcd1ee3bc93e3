"""Why something is not answered: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from typing import Any, Final

from penstock.client.errors import (
    AuthenticationFailed,
    BadSetting,
    BrokerRefused,
    ClientError,
    NotAllowed,
    NotReachable,
    NotTrusted,
    TimedOutWaiting,
    UnknownTopic,
)
from penstock.model.errors import GROUP_ID_NOT_FOUND, TOPIC_ALREADY_EXISTS, PenstockError
from penstock.operations.records.matching import BadCondition


class Declined(PenstockError):
    """A request that is not served; whoever asked is told all of it."""

    def __init__(self, status: int, code: str, message: str, attempt: str = "", **params: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.attempt, self.params = status, code, message, attempt, params

    def told(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "attempt": self.attempt, "params": self.params}


def bad_request(message: str, attempt: str = "", **params: Any) -> Declined:
    return Declined(400, "bad_request", message, attempt, **params)


_ATTEMPTS: Final = {
    "unreachable": "look at `penstock doctor`; the console tries again by itself",
    "not_trusted": "look at the certificates and host names of brokers: `penstock doctor`",
    "forbidden": "whoever manages the cluster's ACLs can allow it: `penstock acl allow`",
    "unknown_topic": "look at `penstock topic list`",
    "unknown_group": "look at `penstock group list`",
}


def declined(failure: Exception) -> Declined:
    """What a failure of the client or of a plan is to whoever asked."""
    if isinstance(failure, Declined):
        return failure
    if isinstance(failure, BadCondition):
        return Declined(
            400, "bad_condition", failure.words, failure.attempt or "see the guide of conditions", at=failure.at
        )
    status, code = _kind(failure)
    return Declined(status, code, str(failure) or type(failure).__name__, _ATTEMPTS.get(code, ""))


def _kind(failure: Exception) -> tuple[int, str]:
    match failure:
        case UnknownTopic():
            return 404, "unknown_topic"
        case NotAllowed():
            return 403, "forbidden"
        case NotTrusted():
            return 503, "not_trusted"
        case AuthenticationFailed():
            return 401, "not_logged_in"
        case NotReachable():
            return 503, "unreachable"
        case TimedOutWaiting():
            return 504, "timed_out"
        case BadSetting():
            return 400, "bad_request"
        case BrokerRefused() if failure.error is GROUP_ID_NOT_FOUND:
            return 404, "unknown_group"
        case BrokerRefused() if failure.error is TOPIC_ALREADY_EXISTS:
            return 409, "conflict"
        case ClientError():
            return (503, "unreachable") if failure.retriable else (400, "bad_request")
        case PenstockError() | ValueError():
            return 400, "bad_request"
    return 500, "failed"
