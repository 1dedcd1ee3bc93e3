"""Which hosted partitions ask for regular attention: the few that others look at, of the many that there may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.config.definition import LONG_MAX

if TYPE_CHECKING:
    from penstock.model.ids import PartitionKey
    from penstock.server.partitions.hosted import Hosted

Table = dict["PartitionKey", "Hosted"]


class Tables:
    """Kept by the partition driver as roles and settings change; read by those who do the looking."""

    __slots__ = ("compacted", "doomed", "flushed_by_time", "replicated")

    def __init__(self) -> None:
        self.replicated: Table = {}
        """The partitions that this node leads and others follow."""
        self.flushed_by_time: Table = {}
        """The partitions that have a `flush.ms`; few do, and only they are looked at every second."""
        self.compacted: Table = {}
        """The partitions that compaction looks at."""
        self.doomed: Table = {}
        """The partitions with files of deleted segments that are to be removed."""

    def note_role(self, hosted: Hosted) -> None:
        _keep(self.replicated, hosted, bool(hosted.state.followers))

    def note_settings(self, hosted: Hosted) -> None:
        _keep(self.flushed_by_time, hosted, hosted.settings.flush_ms < LONG_MAX)
        _keep(self.compacted, hosted, hosted.settings.compacts)

    def note_doomed(self, hosted: Hosted) -> None:
        self.doomed[hosted.key] = hosted

    def forget(self, hosted: Hosted) -> None:
        """The partition is not here any more."""
        for table in (self.replicated, self.flushed_by_time, self.compacted, self.doomed):
            table.pop(hosted.key, None)


def _keep(table: Table, hosted: Hosted, wanted: bool) -> None:
    if wanted:
        table[hosted.key] = hosted
    else:
        table.pop(hosted.key, None)
