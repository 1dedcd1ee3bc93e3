"""`quorum-state`: which epoch this node is in, whom it voted for and whom it takes for the leader. One line of JSON.

It reaches the platter before a vote reaches the wire. Version 1 belongs to dynamic voters (`kraft.version` 1),
version 0 to voters that are given in the configuration; both are read, the one that fits is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from penstock.model.errors import Corrupt
from penstock.model.ids import ZERO_UUID, Epoch, NodeId, uuid_parse, uuid_text
from penstock.quorum.state import QuorumState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.model.ports import Files

QUORUM_STATE: Final = "quorum-state"


def read_quorum_state(files: Files, directory: str) -> QuorumState | None:
    """None when this node has never taken part in an election."""
    path = f"{directory}/{QUORUM_STATE}"
    try:
        text = files.read(path)
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        if fields["data_version"] not in (0, 1):
            raise Corrupt(path, 0, f"version {fields['data_version']} of quorum-state is unknown; expected 0 or 1")
        return QuorumState(
            epoch=Epoch(max(fields["leaderEpoch"], 0)),
            leader=NodeId(fields["leaderId"]),
            voted=NodeId(fields["votedId"]),
            voted_directory=uuid_parse(fields["votedDirectoryId"]) if "votedDirectoryId" in fields else ZERO_UUID,
        )
    except (KeyError, TypeError, ValueError) as broken:
        raise Corrupt(path, 0, f"not a quorum-state: {broken}") from broken


def encode_quorum_state(state: QuorumState, *, static_voters: Sequence[int] | None = None) -> bytes:
    """The file's content; `static_voters` makes it version 0."""
    fields: dict[str, object]
    if static_voters is None:
        fields = {
            "leaderId": state.leader,
            "leaderEpoch": state.epoch,
            "votedId": state.voted,
            "votedDirectoryId": uuid_text(state.voted_directory),
            "data_version": 1,
        }
    else:
        fields = {
            "clusterId": "",
            "leaderId": state.leader,
            "leaderEpoch": state.epoch,
            "votedId": state.voted,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in static_voters],
            "data_version": 0,
        }
    return json.dumps(fields, separators=(",", ":")).encode()
