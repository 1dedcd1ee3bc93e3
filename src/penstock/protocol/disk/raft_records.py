"""What the metadata quorum writes about itself: control records of its log and snapshots, and the quorum-state file."""

from __future__ import annotations

from penstock.model.ids import Uuid
from penstock.protocol.wire import array, int16, int32, int64, message, nested, string, struct, uint16, uuid


@message(kind="data", versions="0-1", flexible="0+")
class LeaderChangeMessage:
    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array("Voter")
    granting_voters: list[Voter] = array("Voter")

    @struct()
    class Voter:
        voter_id: int = int32()
        voter_directory_id: Uuid = uuid(since=1)


@message(kind="data", versions="0", flexible="0+")
class VotersRecord:
    version: int = int16()
    voters: list[Voter] = array("Voter")

    @struct()
    class Voter:
        voter_id: int = int32()
        voter_directory_id: Uuid = uuid()
        endpoints: list[VotersRecord.Endpoint] = array("Endpoint")
        kraft_version_feature: VotersRecord.KRaftVersionFeature = nested("KRaftVersionFeature")

    @struct()
    class Endpoint:
        name: str = string()
        host: str = string()
        port: int = uint16()

    @struct()
    class KRaftVersionFeature:
        min_supported_version: int = int16()
        max_supported_version: int = int16()


@message(kind="data", versions="0", flexible="0+")
class KRaftVersionRecord:
    version: int = int16()
    kraft_version: int = int16()


@message(kind="data", versions="0", flexible="0+")
class SnapshotHeaderRecord:
    version: int = int16()
    last_contained_log_timestamp: int = int64()


@message(kind="data", versions="0", flexible="0+")
class SnapshotFooterRecord:
    version: int = int16()


@message(kind="data", versions="0-1", flexible="0+")
class QuorumStateData:
    cluster_id: str = string(until=0)
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    voted_id: int = int32(default=-1)
    voted_directory_id: Uuid = uuid(since=1)
    applied_offset: int = int64(until=0)
    current_voters: list[Voter] | None = array("Voter", until=0, nullable=True)

    @struct(versions="0")
    class Voter:
        voter_id: int = int32()
