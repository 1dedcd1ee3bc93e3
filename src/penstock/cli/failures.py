"""What went wrong, as a sentence for people and an exit code for scripts."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from penstock.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    VOTER_NOT_FOUND,
    ErrorCode,
    PenstockError,
    Refused,
)

if TYPE_CHECKING:
    from penstock.client.errors import ClientError
    from penstock.transport.dial import Unreachable

OK, FAILED, USAGE, NOT_FOUND, NOT_ALLOWED, UNREACHABLE, UNHEALTHY = 0, 1, 2, 3, 4, 5, 10
FENCED = 11
"""An agent whose place another has taken. Whoever starts agents again must leave this one alone."""
INTERRUPTED = 130
"""What shells expect of a command that Ctrl-C ended."""

TRACEBACK_VARIABLE = "PENSTOCK_TRACEBACK"

EXTRAS = {
    "deltalake": "spark",
    "duckdb": "spark",
    "fastavro": "avro",
    "psutil": "bench",
    "py4j": "spark",
    "pyarrow": "spark",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
    "sqlalchemy": "iceberg",
}
"""What a command may find missing, and the extra that brings it."""

_PLAIN = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
_NOT_FOUND = {
    BROKER_ID_NOT_REGISTERED,
    GROUP_ID_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    TRANSACTIONAL_ID_NOT_FOUND,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    VOTER_NOT_FOUND,
}
_NOT_ALLOWED = {
    TOPIC_AUTHORIZATION_FAILED,
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
}


def explain(failure: Exception) -> tuple[int, str]:
    """(exit code, what to say). Anything unforeseen is called our bug, with the way to its traceback."""
    if isinstance(failure, Refused):
        return _refusal_code(failure), _refusal(failure)
    # The transport is imported only when something failed: it is there already if a broker was asked.
    from penstock.client.errors import ClientError
    from penstock.transport.dial import LinkError, Unreachable, Unsupported

    if isinstance(failure, ClientError):
        return _client(failure)
    if isinstance(failure, Unreachable):
        return UNREACHABLE, _unreachable(failure)
    if isinstance(failure, LinkError):
        return FAILED if isinstance(failure, Unsupported) else UNREACHABLE, str(failure)
    from penstock.cli.profiles import NoSuchProfile

    if isinstance(failure, NoSuchProfile):
        return NOT_FOUND, str(failure)
    if isinstance(failure, PenstockError):
        from penstock.agent.errors import AgentFenced

        if isinstance(failure, AgentFenced):
            return FENCED, str(failure)
        return FAILED, "\n  ".join(str(failure).splitlines())
    if isinstance(failure, OSError):
        return FAILED, _system(failure)
    if isinstance(failure, ModuleNotFoundError) and (missing := _missing(failure)):
        return FAILED, missing
    bug = f"{type(failure).__name__}: {failure}"
    return FAILED, f"this is a bug in penstock: {bug}\nRun it again with {TRACEBACK_VARIABLE}=1 to see where."


def _missing(failure: ModuleNotFoundError) -> str:
    """The sentence about a library that an extra brings; none about a module of ours, which would be our bug."""
    library = (failure.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    return f"{library} is not installed: pip install 'penstock[{extra}]'" if extra else ""


def _client(failure: ClientError) -> tuple[int, str]:
    """What the client library raised: by what a broker said if one said something, else by what kept us from it."""
    from penstock.client.errors import (
        AuthenticationFailed,
        BadSetting,
        NotAllowed,
        NotReachable,
        NotTrusted,
        TimedOutWaiting,
        UnknownTopic,
    )
    from penstock.transport.dial import Unreachable

    if isinstance(failure.__cause__, Unreachable):
        return UNREACHABLE, _unreachable(failure.__cause__)
    if isinstance(failure, BadSetting):
        return USAGE, str(failure)
    if isinstance(failure, UnknownTopic):
        return NOT_FOUND, str(failure)
    if isinstance(failure, AuthenticationFailed):
        return UNREACHABLE if isinstance(failure, NotTrusted) else NOT_ALLOWED, str(failure)
    if isinstance(failure, NotAllowed):
        return NOT_ALLOWED, str(failure)
    if failure.error in _NOT_FOUND | _NOT_ALLOWED:
        return _code(failure.error), str(failure)
    return UNREACHABLE if isinstance(failure, (NotReachable, TimedOutWaiting)) else FAILED, str(failure)


def _refusal_code(refusal: Refused) -> int:
    return _code(refusal.error)


def _code(error: ErrorCode | None) -> int:
    if error in _NOT_FOUND:
        return NOT_FOUND
    return NOT_ALLOWED if error in _NOT_ALLOWED else FAILED


def _refusal(refusal: Refused) -> str:
    """The broker's sentence first; its code stays, because that is what one searches for."""
    return f"{refusal.why} ({refusal.error.name})" if refusal.why else refusal.error.name


def _unreachable(failure: Unreachable) -> str:
    cause = failure.__cause__
    why = failure.why
    if isinstance(cause, OSError) and cause.errno in _PLAIN:
        # asyncio words a refused connection as a tuple of its address; the system's own word is enough.
        why = os.strerror(cause.errno).lower()
    where = f"{failure.host}:{failure.port}"
    return f"no broker answers at {where}: {why}. Is one running there? `penstock dev` starts one."


def _system(failure: OSError) -> str:
    """`[Errno 98]` helps nobody, nor does asyncio's second telling of the address."""
    words = failure.strerror or str(failure)
    if failure.filename is not None:
        words = f"{failure.filename}: {words}"
    return re.sub(r" \(while attempting to bind on address .*\)$", "", words)
