"""Key of every control record, and the value of a transaction's end marker."""

from __future__ import annotations

from penstock.protocol.wire import int16, int32, message


@message(kind="data", versions="0", flexible="none")
class ControlRecordTypeSchema:
    type: int = int16()


@message(kind="data", versions="0", flexible="none")
class EndTxnMarker:
    coordinator_epoch: int = int32()
