"""What handlers are given and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a server. Times are seconds."""

    body_bytes_max: int = 16 << 20
    """Of one body, as it was sent and as it is inflated."""
    held_bytes_max: int = 64 << 20
    """Of all bodies that are being received or not yet let go."""
    head_bytes_max: int = 16 << 10
    connections_max: int = 512
    head_timeout_s: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body_grace_s: float = 10.0
    """A body may take this long and besides one second for each `body_bytes_per_s_min`."""
    body_bytes_per_s_min: int = 1_000
    idle_timeout_s: float = 60.0
    """Between requests, and for a peer that does not read its answer."""


@dataclass(slots=True)
class Request:
    """`path` is decoded, `query` has the last value of each name, `headers` have small names."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    peer: str
    body: bytes = b""
    _release: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def let_go(self) -> None:
        """The body is used up: its bytes count no more, although the answer is still to come."""
        self.body = b""
        if self._release is not None:
            self._release()
            self._release = None


@dataclass(slots=True)
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Sequence[tuple[str, str]] = ()
    close: bool = False
    """Whether the connection ends with this answer."""

    @staticmethod
    def json(value: Any, status: int = 200, headers: Sequence[tuple[str, str]] = (), close: bool = False) -> Response:
        return Response(status, msgspec.json.encode(value) + b"\n", "application/json", headers, close)

    @staticmethod
    def refusal(status: int, words: str, headers: Sequence[tuple[str, str]] = (), close: bool = False) -> Response:
        """`{"error": …}`: what happened and what to try."""
        return Response.json({"error": words}, status, headers, close)


def reason(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


@dataclass(slots=True)
class Counts:
    """What a server has seen. Counters only rise."""

    requests: int = 0
    protocol_errors: int = 0
    timeouts: int = 0
    failures: int = 0
    """Handlers that raised."""
    held_bytes: int = 0
    """Of bodies, now."""
    last_error: str = ""
    by_status: dict[int, int] = field(default_factory=dict)
