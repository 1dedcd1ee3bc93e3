"""AddRaftVoter (80), versions 0-1: add a voter to the metadata quorum.

Notes: 1 can answer before the change is committed.
"""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, boolean, int16, int32, message, string, struct, uint16, uuid


@message(key=80, kind="request", versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array("Listener")
    ack_when_committed: bool = boolean(since=1, default=True)

    @struct()
    class Listener:
        name: str = string()
        host: str = string()
        port: int = uint16()


@message(key=80, kind="response", versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, ignorable=True)
