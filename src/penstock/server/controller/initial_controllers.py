"""The voters that a new cluster starts with, as `penstock server format --initial-controllers` names them.

Every controller of a new cluster is formatted with the same list, so that all know each other, by directory, before
the first of them runs: `ID@HOST:PORT:DIRECTORY_ID`, as Kafka's own tool has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.metadata.features import KRAFT_VERSION, SUPPORTED
from penstock.model.config.validators import Voters, voter_parts
from penstock.model.errors import PenstockError
from penstock.model.ids import NodeId, Uuid, usable_uuid, uuid_parse, uuid_text
from penstock.protocol.disk.raft_records import VotersRecord


class BadControllers(PenstockError):
    """The list of initial controllers cannot be used; the message says which entry and why."""


class InitialController(NamedTuple):
    """One entry of the list."""

    node_id: NodeId
    host: str
    port: int
    directory_id: Uuid

    def __str__(self) -> str:
        return f"{self.node_id}@{self.host}:{self.port}:{uuid_text(self.directory_id)}"


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """`1@host:9093:DIRECTORY_ID,…` as entries; `BadControllers` when one of them is not like that."""
    found = tuple(_parse(entry.strip()) for entry in text.split(",") if entry.strip())
    if not found:
        raise BadControllers("the list of initial controllers is empty")
    for what, values in (
        ("node id", [each.node_id for each in found]),
        ("directory id", [each.directory_id for each in found]),
        ("address", [(each.host, each.port) for each in found]),
    ):
        if len(set(values)) < len(values):
            raise BadControllers(f"two initial controllers have the same {what}")
    return found


def _parse(entry: str) -> InitialController:
    address, _, directory = entry.rpartition(":")
    problem = Voters().problem((address,))
    if problem is not None:
        raise BadControllers(f"{entry!r} is not ID@HOST:PORT:DIRECTORY_ID: {problem}")
    node_id, host, port = voter_parts(address)
    try:
        directory_id = uuid_parse(directory)
    except ValueError as broken:
        raise BadControllers(f"{entry!r} is not ID@HOST:PORT:DIRECTORY_ID: {broken}") from None
    if not usable_uuid(directory_id):
        raise BadControllers(f"{entry!r}: the directory id is one of the reserved ones")
    return InitialController(NodeId(node_id), host, port, directory_id)


def voters_of(controllers: Sequence[InitialController], listener: str) -> VotersRecord:
    """The voter set that these controllers make; `listener` is the name of the controllers' listener."""
    return VotersRecord(
        voters=[
            voter_entry(each.node_id, each.directory_id, [(listener, each.host, each.port)])
            for each in sorted(controllers)
        ]
    )


def voter_entry(node_id: NodeId, directory_id: Uuid, endpoints: Iterable[tuple[str, str, int]]) -> VotersRecord.Voter:
    """One voter, with the range of kraft.version that this release supports."""
    supported = SUPPORTED[KRAFT_VERSION]
    return VotersRecord.Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[VotersRecord.Endpoint(name=name, host=host, port=port) for name, host, port in endpoints],
        kraft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=supported.min, max_supported_version=supported.max
        ),
    )
