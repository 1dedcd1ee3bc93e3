"""What an audit looks at and what it says, as data and as text. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from penstock.model.units import count
from penstock.spark.lake.ranges import RangeKey
from penstock.spark.lake.store import Commit

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"

PROVEN: Final = "proven"
BROKEN: Final = "broken"
UNKNOWN: Final = "cannot be told"

_SHOWN: Final = 20
"""Findings of one kind in the text; all of them are in JSON."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a table's records say. Commits are oldest first."""

    table: str
    format: str
    version: int
    ledger: Sequence[Commit]
    history: Sequence[Commit]
    committed: Mapping[RangeKey, int]
    rows_in_files: int | None
    """Of the newest version, by the statistics of its files; None when files alone do not tell."""
    files: int = 0
    added_rows: Mapping[int, int] = field(default_factory=dict)
    """Version → rows of the files that it added, as far as the format still tells."""
    missing_files: Sequence[str] = ()
    """Files of the newest version that are not there, or not of the size that the table says."""
    one_row_a_record: bool = False
    present: Mapping[int, int] = field(default_factory=dict)
    """Version → records that the topics have now in the offsets of a commit which does not explain all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be."""

    severity: str
    check: str
    meaning: str
    remedy: str
    topic: str = ""
    partition: int | None = None
    start: int | None = None
    end: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Something the audit set out to prove."""

    name: str
    outcome: str
    detail: str


@dataclass(frozen=True, slots=True)
class PartitionTold:
    """What a table has of one partition of a topic."""

    topic: str
    topic_id: str
    partition: int
    ordinal: int
    start: int
    end: int
    stored: int | None
    ranges: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found. Clean: no errors, no warnings."""

    table: str
    format: str
    version: int
    commits: int
    offsets: int
    rows: int
    dead: int
    gaps: int
    rows_in_files: int | None
    files: int
    partitions: tuple[PartitionTold, ...]
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        return all(finding.severity == NOTE for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"clean": self.clean, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _lines(found: Audit) -> Iterator[str]:
    word = "clean" if found.clean else "NOT CLEAN"
    yield f"{found.table}  ({found.format}, version {found.version}): {word}"
    for each in found.partitions:
        ordinal = f" (source {each.ordinal + 1})" if each.ordinal else ""
        # A topic that was deleted and made anew left offsets of both: only the ids tell them apart.
        twins = any(other.topic == each.topic and other.topic_id != each.topic_id for other in found.partitions)
        known = f" (id {each.topic_id})" if twins else ""
        ranges = count("range", each.ranges)
        yield f"  {each.topic}-{each.partition}{known}{ordinal}  [{each.start}, {each.end}) in {ranges}"
    width = max(len(check.name) for check in found.checks)
    for check in found.checks:
        yield f"  {check.name.ljust(width)}  {check.outcome}: {check.detail}"
    shown: dict[str, int] = defaultdict(int)
    for finding in found.findings:
        shown[finding.check] += 1
        if shown[finding.check] <= _SHOWN:
            yield f"{finding.severity}: {finding.meaning}"
            yield f"  what to do: {finding.remedy}"
    for check_name, findings in shown.items():
        if findings > _SHOWN:
            yield f"… and {findings - _SHOWN} more of {check_name}: --format json has them all"
