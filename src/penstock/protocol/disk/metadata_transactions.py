"""Metadata-log records that bracket changes which must be seen together or not at all."""

from __future__ import annotations

from penstock.protocol.wire import message, string


@message(key=23, kind="metadata", versions="0", flexible="0+")
class BeginTransactionRecord:
    name: str | None = string(nullable=True, default=None, tag=0)


@message(key=24, kind="metadata", versions="0", flexible="0+")
class EndTransactionRecord:
    """Says nothing but its own presence."""


@message(key=25, kind="metadata", versions="0", flexible="0+")
class AbortTransactionRecord:
    reason: str | None = string(nullable=True, default=None, tag=0)
