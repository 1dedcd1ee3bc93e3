"""RemoveRaftVoter (81), version 0: remove a voter from the metadata quorum."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import int16, int32, message, string, uuid


@message(key=81, kind="request", versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()


@message(key=81, kind="response", versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, ignorable=True)
