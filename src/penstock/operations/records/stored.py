"""What a record has to have to be printed or held against a condition; those of every consumer do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Stored(Protocol):
    """A record as a consumer gives it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
