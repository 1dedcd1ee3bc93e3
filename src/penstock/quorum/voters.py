"""Who votes, and the control records in which the log says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.model.ids import NodeId
from penstock.protocol.codec import encode
from penstock.protocol.control import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE
from penstock.protocol.disk.raft_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from penstock.quorum.state import ReplicaKey

ControlEntry = tuple[int, bytes]
"""(control record type, value)."""


class VoterEndpoint(NamedTuple):
    """Where a voter's controller listens, under which listener name."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A member of the quorum; the last two are the levels of kraft.version it supports."""

    key: ReplicaKey
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_version_min: int = 0
    kraft_version_max: int = 1


class VoterSet:
    """The voters by node id. A value: changing it makes another."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        self._voters: dict[NodeId, Voter] = {voter.key.id: voter for voter in sorted(voters, key=lambda each: each.key)}

    @classmethod
    def of_record(cls, record: VotersRecord) -> VoterSet:
        """The voters that a control record names."""
        return cls(
            Voter(
                ReplicaKey(NodeId(each.voter_id), each.voter_directory_id),
                tuple(VoterEndpoint(point.name, point.host, point.port) for point in each.endpoints),
                each.kraft_version_feature.min_supported_version,
                each.kraft_version_feature.max_supported_version,
            )
            for each in record.voters
        )

    def to_record(self) -> VotersRecord:
        """The control record that names these voters."""
        return VotersRecord(
            voters=[
                VotersRecord.Voter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory,
                    endpoints=[
                        VotersRecord.Endpoint(name=name, host=host, port=port) for name, host, port in voter.endpoints
                    ],
                    kraft_version_feature=VotersRecord.KRaftVersionFeature(
                        min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
                    ),
                )
                for voter in self
            ]
        )

    def get(self, node: NodeId) -> Voter | None:
        return self._voters.get(node)

    def has(self, replica: ReplicaKey) -> bool:
        """Whether this replica votes: the node does, and with this disk."""
        voter = self._voters.get(replica.id)
        return voter is not None and voter.key.matches(replica)

    def with_voter(self, voter: Voter) -> VoterSet:
        """The same voters, with this one in place of the one that has its id."""
        return VoterSet({**self._voters, voter.key.id: voter}.values())

    def without_voter(self, node: NodeId) -> VoterSet:
        return VoterSet(voter for voter in self if voter.key.id != node)

    @property
    def ids(self) -> list[NodeId]:
        return list(self._voters)

    @property
    def majority(self) -> int:
        return len(self._voters) // 2 + 1

    def others(self, me: NodeId) -> list[Voter]:
        return [voter for voter in self if voter.key.id != me]

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __len__(self) -> int:
        return len(self._voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(self._voters.values()))

    def __repr__(self) -> str:
        return f"VoterSet({list(self)!r})"


def leader_change(leader: NodeId, voters: VoterSet, granted: Iterable[NodeId]) -> ControlEntry:
    """The first record of an epoch. Version 0: without directory ids."""
    message = LeaderChangeMessage(
        leader_id=leader,
        voters=[LeaderChangeMessage.Voter(voter_id=node) for node in voters.ids],
        granting_voters=[LeaderChangeMessage.Voter(voter_id=node) for node in sorted(granted)],
    )
    return LEADER_CHANGE, encode(message, 0)


def voters_record(voters: VoterSet) -> ControlEntry:
    """The record that changes who votes."""
    return KRAFT_VOTERS, encode(voters.to_record(), 0)


def quorum_records(kraft_version: int, voters: VoterSet) -> list[ControlEntry]:
    """The records that carry the quorum's own state: which protocol it speaks and who votes."""
    return [
        (KRAFT_VERSION, encode(KRaftVersionRecord(kraft_version=kraft_version), 0)),
        voters_record(voters),
    ]
