"""What is counted about the metadata log."""

from __future__ import annotations

from penstock.model.ids import Offset
from penstock.server.quorum.pace import QuorumPace


def test_a_commit_is_timed_from_its_append() -> None:
    pace = QuorumPace()
    pace.appended(2, Offset(2), 100.0)
    pace.appended(1, Offset(3), 110.0)
    pace.committed(Offset(2), 104.0)
    assert (pace.appended_records, pace.commits, pace.commit_ms) == (3, 1, 4.0)
    pace.committed(Offset(9), 120.0)
    assert (pace.commits, pace.commit_ms) == (2, 14.0)


def test_what_was_appended_before_a_fall_is_not_timed() -> None:
    pace = QuorumPace()
    pace.appended(1, Offset(1), 100.0)
    pace.resigned()
    pace.committed(Offset(1), 9_000.0)
    assert (pace.commits, pace.commit_ms) == (0, 0.0)
