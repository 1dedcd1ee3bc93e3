from __future__ import annotations

import json

import pytest

from penstock.model.errors import Corrupt
from penstock.model.ids import Epoch, NodeId, Uuid
from penstock.quorum.state import QuorumState
from penstock.server.quorum.state_file import encode_quorum_state, read_quorum_state
from penstock.testing.memory_files import MemoryFiles

DIRECTORY = Uuid(bytes(range(16)))
STATES = [
    QuorumState(),
    QuorumState(Epoch(2), NodeId(1)),
    QuorumState(Epoch(7), voted=NodeId(3), voted_directory=DIRECTORY),
]


def written(text: bytes) -> MemoryFiles:
    files = MemoryFiles()
    files.makedirs("/log")
    files.write_atomic("/log/quorum-state", text)
    return files


@pytest.mark.parametrize("state", STATES)
def test_a_state_is_read_back_as_it_was_written(state: QuorumState) -> None:
    assert read_quorum_state(written(encode_quorum_state(state)), "/log") == state


def test_the_line_is_kafkas() -> None:
    text = b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert encode_quorum_state(QuorumState(Epoch(2), NodeId(1))) == text


def test_static_voters_make_version_0() -> None:
    text = encode_quorum_state(QuorumState(Epoch(2), NodeId(1)), static_voters=[1, 2])
    assert json.loads(text) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 2,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 2}],
        "data_version": 0,
    }
    assert read_quorum_state(written(text), "/log") == QuorumState(Epoch(2), NodeId(1))


def test_no_file_means_that_nobody_voted_here() -> None:
    files = MemoryFiles()
    files.makedirs("/log")
    assert read_quorum_state(files, "/log") is None


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"data_version":2}', b'{"leaderEpoch":"x","data_version":1}'])
def test_a_broken_file_is_not_taken_for_a_state(text: bytes) -> None:
    with pytest.raises(Corrupt):
        read_quorum_state(written(text), "/log")
