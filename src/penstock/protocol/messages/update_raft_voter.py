"""UpdateRaftVoter (82), version 0: change the endpoints of a voter; Raft."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, message, nested, string, struct, uint16, uuid


@message(key=82, kind="request", versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    cluster_id: str | None = string(nullable=True)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: Uuid = uuid()
    listeners: list[Listener] = array("Listener")
    kraft_version_feature: KRaftVersionFeature = nested("KRaftVersionFeature")

    @struct()
    class Listener:
        name: str = string()
        host: str = string()
        port: int = uint16()

    @struct()
    class KRaftVersionFeature:
        min_supported_version: int = int16()
        max_supported_version: int = int16()


@message(key=82, kind="response", versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = nested("CurrentLeader", tag=0)

    @struct()
    class CurrentLeader:
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)
        host: str = string()
        port: int = int32()
