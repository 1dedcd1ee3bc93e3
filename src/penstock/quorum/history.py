"""What the log has said of the quorum itself: which protocol it speaks and who votes, from which offset on.

The newest word counts as soon as it is in the log, committed or not, and no longer counts when it is cut off again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from penstock.model.ids import Offset
from penstock.protocol.codec import decode
from penstock.protocol.control import KRAFT_VERSION, KRAFT_VOTERS
from penstock.protocol.disk.raft_records import KRaftVersionRecord, VotersRecord
from penstock.quorum.voters import VoterSet


class LoggedEntry(NamedTuple):
    """One control record of the log: where it is, what kind it is, and its value."""

    offset: Offset
    kind: int
    value: bytes


@dataclass(frozen=True, slots=True)
class QuorumVersion:
    """What holds once the log has everything before `offset`. Offset 0: told by the formatted directory or settings."""

    offset: Offset
    kraft_version: int
    voters: VoterSet


class VoterHistory:
    """Every `QuorumVersion` that may still be needed, the oldest first; never empty."""

    __slots__ = ("_versions",)

    def __init__(self, first: QuorumVersion) -> None:
        self._versions = [first]

    @classmethod
    def of(cls, voters: VoterSet, kraft_version: int = 1) -> VoterHistory:
        return cls(QuorumVersion(Offset(0), kraft_version, voters))

    @property
    def newest(self) -> QuorumVersion:
        return self._versions[-1]

    @property
    def in_log(self) -> bool:
        """Whether a record, or a snapshot of records, names the voters."""
        return self.newest.offset > 0

    def at(self, end: Offset) -> QuorumVersion:
        """What holds for a reader of everything before `end`."""
        return next((each for each in reversed(self._versions) if each.offset <= end), self._versions[0])

    def since(self, end: Offset) -> list[QuorumVersion]:
        """What holds at `end`, and everything that the log says after it."""
        return [self.at(end), *(each for each in self._versions if each.offset > end)]

    def add(self, version: QuorumVersion) -> None:
        assert version.offset >= self.newest.offset, "the log is read in order"
        if version.offset == self.newest.offset:
            self._versions.pop()
        self._versions.append(version)

    def read(self, entries: Iterable[LoggedEntry]) -> bool:
        """Takes in what control records say of the quorum; whether they said anything."""
        said = False
        for offset, kind, value in entries:
            newest, end = self.newest, Offset(offset + 1)
            if kind == KRAFT_VERSION:
                level = decode(KRaftVersionRecord, 0, value)[0].kraft_version
                self.add(QuorumVersion(end, level, newest.voters))
            elif kind == KRAFT_VOTERS:
                voters = VoterSet.of_record(decode(VotersRecord, 0, value)[0])
                self.add(QuorumVersion(end, newest.kraft_version, voters))
            else:
                continue
            said = True
        return said

    def cut(self, end: Offset) -> bool:
        """The log was cut at `end`: whatever was said there or later was never said. Whether that took something."""
        before = len(self._versions)
        while len(self._versions) > 1 and self.newest.offset > end:
            self._versions.pop()
        return len(self._versions) != before

    def start_over(self, version: QuorumVersion) -> None:
        """A snapshot takes the place of the log."""
        self._versions = [version]

    def forget_before(self, start: Offset) -> None:
        """The log begins at `start` now and is never cut below it."""
        while len(self._versions) > 1 and self._versions[1].offset <= start:
            self._versions.pop(0)
