"""What a Postgres input counts, and how it goes, in words."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.agent.inputs.postgres.portions import Gathered
from penstock.agent.inputs.postgres.server.catalog import SlotNow
from penstock.model.units import bytes_text, count


@dataclass(slots=True)
class PostgresCounts:
    """Of one input; counters only rise."""

    events: int = 0
    bytes: int = 0
    tables: int = 0
    left_out: int = 0
    """Tables that fit a glob and have no replica identity."""
    reading: str = ""
    """Which table is read, and how far; empty when the log is."""
    following: bool = False
    slot: SlotNow | None = None
    """As it was at the last look."""

    def take(self, gathered: Gathered) -> None:
        self.events += len(gathered)
        self.bytes += gathered.bytes

    def words(self, slot: str) -> str:
        if self.reading:
            said = f"reads {self.reading}"
        elif self.following:
            said = "follows the log"
        else:
            said = "begins"
        if self.left_out:
            said += f"; {count('table', self.left_out)} {'is' if self.left_out == 1 else 'are'} left out"
        if self.slot is None:
            return said
        now = self.slot
        kept = f"{bytes_text(now.kept_bytes)} of its log kept for it"
        return f"{said}; slot {slot} is {bytes_text(now.lag_bytes)} behind, {kept} ({now.wal_status or 'no log yet'})"
