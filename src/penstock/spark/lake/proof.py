"""Proving from a table's own records that nothing of its topics was skipped or doubled. Pure.

What could be proven and what could not is said too: a silent audit is worth nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from penstock.model.units import count
from penstock.spark.lake.findings import (
    BROKEN,
    ERROR,
    NOTE,
    PROVEN,
    UNKNOWN,
    WARNING,
    Audit,
    Check,
    Evidence,
    Finding,
    PartitionTold,
)
from penstock.spark.lake.ranges import RangeKey, TableRange
from penstock.spark.lake.store import BATCHES, LOST, MERGE, OTHER, OVERWRITE, Commit

_CHANGES: Final = "inserted + updated + deleted + superseded + ignored"


def judge(evidence: Evidence) -> Audit:
    """Pure."""
    commits = list(_merged(evidence))
    batches = [commit for commit in commits if commit.kind in BATCHES]
    findings: list[Finding] = [
        *_ledger_findings(evidence),
        *_tiling_findings(commits),
        *_position_findings(evidence, batches),
        *_added_findings(evidence, batches),
        *_record_findings(evidence, batches),
        *_row_findings(evidence, commits),
        *_file_findings(evidence),
    ]
    return Audit(
        table=evidence.table,
        format=evidence.format,
        version=evidence.version,
        commits=len(batches),
        offsets=sum(given.count for commit in batches for given in commit.ranges),
        rows=sum(commit.rows for commit in batches),
        dead=sum(commit.dead for commit in batches),
        gaps=sum(commit.gaps for commit in batches),
        rows_in_files=evidence.rows_in_files,
        files=evidence.files,
        partitions=tuple(_partitions(evidence, batches)),
        checks=tuple(_checks(evidence, commits, findings)),
        findings=tuple(findings),
    )


def _merged(evidence: Evidence) -> Iterator[Commit]:
    """One commit a version: what the history tells where it still does, else the ledger."""
    found = {commit.version: commit for commit in evidence.ledger}
    for commit in evidence.history:
        found[commit.version] = commit
    return (found[version] for version in sorted(found))


def _ledger_findings(evidence: Evidence) -> Iterator[Finding]:
    ledger = {commit.version: commit for commit in evidence.ledger}
    newest = max(ledger, default=-1)
    for commit in evidence.history:
        entry = ledger.get(commit.version)
        if entry is None and commit.kind != OTHER:
            late = commit.version > newest
            yield Finding(
                NOTE if late else WARNING,
                "ledger",
                f"the ledger lacked version {commit.version} ({commit.kind} of {commit.rows} rows), which the table's "
                f"history still has; it is written down now",
                "nothing: a driver that ends between commit and ledger leaves this"
                if late
                else "find out who deleted files under _penstock/ledger",
                version=commit.version,
            )
        elif entry is not None and entry.kind != LOST and _told(entry) != _told(commit):
            yield Finding(
                ERROR,
                "ledger",
                f"the ledger and the table's history disagree about version {commit.version}: "
                f"{_told_text(entry)} against {_told_text(commit)}",
                "compare both: `penstock lake snapshots` shows the history; one of them was changed by hand",
                version=commit.version,
            )


def _told(commit: Commit) -> tuple[Any, ...]:
    return (
        commit.kind,
        commit.query_id,
        commit.batch_id,
        commit.ranges,
        commit.rows,
        commit.dead,
        commit.dropped,
        commit.gaps,
        commit.merged,
    )


def _told_text(commit: Commit) -> str:
    ranges, rows = count("range", len(commit.ranges)), count("row", commit.rows)
    return f"{commit.kind}, {ranges}, {rows}, {commit.dead} dead, {commit.gaps} absent"


def _tiling_findings(commits: Sequence[Commit]) -> Iterator[Finding]:
    """Every range begins where the last of its partition ended."""
    ends: dict[RangeKey, int] = {}
    lost: list[int] = []
    for commit in commits:
        if commit.kind == LOST:
            lost.append(commit.version)
        if commit.kind not in BATCHES:
            continue
        for given in commit.ranges:
            expected = ends.get(given.key, given.start)
            if given.start != expected:
                yield _untiled(given, expected, commit.version, lost)
            ends[given.key] = max(given.end, expected)


def _untiled(given: TableRange, expected: int, version: int, lost: Sequence[int]) -> Finding:
    where = _where(given)
    if given.start > expected:
        told = f" (the commits of versions {_some(lost)} are lost; they may have had them)" if lost else ""
        return Finding(
            ERROR,
            "gap",
            f"{where}: offsets [{expected}, {given.start}) are in no commit: {given.start - expected} offsets were "
            f"skipped before version {version}{told}",
            f"read them again from the topic and append them: startingOffsets and endingOffsets of "
            f"{expected} and {given.start} for that partition",
            given.topic,
            given.partition,
            expected,
            given.start,
            version,
        )
    end = min(expected, given.end)
    return Finding(
        ERROR,
        "overlap",
        f"{where}: offsets [{given.start}, {end}) are in version {version} and in one before it: "
        f"{end - given.start} offsets are in the table twice",
        f"delete the rows that version {version} added for those offsets, or rebuild the table from the topic",
        given.topic,
        given.partition,
        given.start,
        end,
        version,
    )


def _where(given: TableRange) -> str:
    return f"{given.topic}-{given.partition}" + (f" (source {given.ordinal + 1})" if given.ordinal else "")


def _some(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions[:5])) + (" …" if len(versions) > 5 else "")


def _position_findings(evidence: Evidence, batches: Sequence[Commit]) -> Iterator[Finding]:
    """Where the table says it stands is where its last commit ended."""
    last = {given.key: (given, commit.version) for commit in batches for given in commit.ranges}
    for key in sorted(last.keys() | evidence.committed.keys()):
        stored = evidence.committed.get(key)
        if key not in last:
            yield Finding(
                WARNING,
                "position",
                f"the table has offset {stored} for {key.topic}-{key.partition}, and no commit says how it came there",
                "its commits are older than the ledger, or the ledger was deleted: nothing about it can be proven",
                key.topic,
                key.partition,
                end=stored,
            )
            continue
        given, version = last[key]
        if stored != given.end:
            yield Finding(
                ERROR,
                "position",
                f"{_where(given)}: the table stands at {stored}, but its last commit (version {version}) ended at "
                f"{given.end}",
                "a commit is missing from ledger and history, or the position was changed by hand: the next batch "
                "begins where the table stands",
                given.topic,
                given.partition,
                given.end,
                stored,
                version,
            )


def _added_findings(evidence: Evidence, batches: Sequence[Commit]) -> Iterator[Finding]:
    for commit in batches:
        added = evidence.added_rows.get(commit.version)
        if added is not None and added != commit.rows_in_its_files:
            yield Finding(
                ERROR,
                "added",
                f"version {commit.version} says it added {commit.rows_in_its_files} rows, its files have {added}",
                "compare the files of that version with its offsets; rebuild what differs from the topic",
                version=commit.version,
            )


def unexplained(evidence: Evidence) -> list[Commit]:
    """Commits of one row a record whose rows, dead letters and absent records are fewer than their offsets.

    A row is lost, or a task's report of what was absent was: only the topic can tell.
    """
    if not evidence.one_row_a_record:
        return []
    commits = [commit for commit in _merged(evidence) if commit.kind in BATCHES]
    return [commit for commit in commits if _accounted(commit) < _offsets(commit)]


def _offsets(commit: Commit) -> int:
    return sum(given.count for given in commit.ranges)


def _accounted(commit: Commit) -> int:
    return commit.records + commit.gaps


def _record_findings(evidence: Evidence, batches: Sequence[Commit]) -> Iterator[Finding]:
    """One row a record: every offset is a row, a dead letter, or was never there."""
    if not evidence.one_row_a_record:
        return
    for commit in batches:
        if commit.ranges and _accounted(commit) != _offsets(commit):
            yield _unaccounted(commit, evidence.present.get(commit.version))


def _unaccounted(commit: Commit, present: int | None) -> Finding:
    """`present` is how many records the topic has in those offsets now; None when it could not be asked."""
    landed, offsets = commit.records, _offsets(commit)
    if present == landed:
        return Finding(
            NOTE,
            "records",
            f"version {commit.version} does not say why {offsets - _accounted(commit)} of its offsets have no row; the "
            f"topic has {count('record', present)} there, and each is a row or a dead letter",
            "nothing: what tasks found absent did not reach the commit; __penstock_spark was not reachable, or the "
            "sink may not read it",
            version=commit.version,
        )
    if present is not None and present < landed:
        return Finding(
            WARNING,
            "records",
            f"version {commit.version} does not say why {offsets - _accounted(commit)} of its offsets have no row, and "
            f"the topic was compacted since: it has {count('record', present)} there, the table {landed}",
            "nothing can be proven of that version; compare its rows with the topic by hand if it matters",
            version=commit.version,
        )
    told = "" if present is None else f"; the topic has {count('record', present)} there"
    return Finding(
        ERROR,
        "records",
        f"version {commit.version} covers {offsets} offsets ({', '.join(map(_range_text, commit.ranges))}), "
        f"but {commit.records - commit.dead - commit.dropped} {_made(commit)} + {commit.dead} dead letters + "
        + (f"{commit.dropped} dropped + " if commit.dropped else "")
        + f"{commit.gaps} absent records are {_accounted(commit)}{told}",
        "a step between topic and table dropped or multiplied rows: such a flow is `rows=any`; if it was meant "
        "to keep them, rebuild the table"
        + ("" if present is not None else ". If the topic is still there, -b says where: it knows what was absent"),
        version=commit.version,
    )


def _made(commit: Commit) -> str:
    """What records become in the table."""
    return "changes" if commit.kind == MERGE else "rows"


def _range_text(given: TableRange) -> str:
    return f"{_where(given)} [{given.start}, {given.end})"


def _row_findings(evidence: Evidence, commits: Sequence[Commit]) -> Iterator[Finding]:
    """What the files hold is what the commits put there."""
    expected = _rows_expected(evidence, commits)
    if expected is None or evidence.rows_in_files is None or expected == evidence.rows_in_files:
        return
    more = evidence.rows_in_files - expected
    strangers = [commit.version for commit in commits if commit.kind == OTHER]
    told = f"; versions {_some(strangers)} were not written by a sink" if strangers else ""
    yield Finding(
        ERROR,
        "rows",
        f"the table has {evidence.rows_in_files} rows, its commits put {expected} there: "
        + (f"{more} too many" if more > 0 else f"{-more} are missing")
        + told,
        "`penstock lake snapshots` shows who changed it; go back to the version before, or rebuild from the topic",
    )


def _rows_expected(evidence: Evidence, commits: Sequence[Commit]) -> int | None:
    """Rows since the table was last overwritten; None when its beginning is not known."""
    overwritten = [position for position, commit in enumerate(commits) if commit.kind == OVERWRITE]
    since = commits[overwritten[-1] :] if overwritten else commits
    if any(commit.kind == LOST for commit in since) or (not overwritten and not _from_the_start(evidence, commits)):
        return None
    return sum(commit.rows_more for commit in since if commit.kind in BATCHES)


def _from_the_start(evidence: Evidence, commits: Sequence[Commit]) -> bool:
    """Delta makes a table with version 0, Iceberg's first snapshot has number 1."""
    return not commits or commits[0].version <= (0 if evidence.format == "delta" else 1)


def _file_findings(evidence: Evidence) -> Iterator[Finding]:
    for path in evidence.missing_files:
        yield Finding(
            ERROR,
            "files",
            f"{path} is part of the table and is not there, or not whole",
            "bring it back from a backup, or rebuild its rows from the topic: reading the table fails",
        )


def _partitions(evidence: Evidence, batches: Sequence[Commit]) -> Iterator[PartitionTold]:
    ranges: dict[RangeKey, list[TableRange]] = defaultdict(list)
    for commit in batches:
        for given in commit.ranges:
            ranges[given.key].append(given)
    for key, of_key in sorted(ranges.items(), key=lambda item: (item[1][0].topic, item[0])):
        first = of_key[0]
        yield PartitionTold(
            first.topic,
            first.topic_id,
            first.partition,
            first.ordinal,
            min(each.start for each in of_key),
            max(each.end for each in of_key),
            evidence.committed.get(key),
            len(of_key),
        )


def _checks(evidence: Evidence, commits: Sequence[Commit], findings: Sequence[Finding]) -> Iterator[Check]:
    broken = {finding.check for finding in findings if finding.severity == ERROR}
    vague = {finding.check for finding in findings if finding.severity == WARNING}
    lost = sum(commit.kind == LOST for commit in commits)
    batches = sum(commit.kind in BATCHES for commit in commits)

    def outcome(*checks: str, known: bool = True) -> str:
        if broken & set(checks):
            return BROKEN
        return PROVEN if known and not vague & set(checks) else UNKNOWN

    beginning = "" if _from_the_start(evidence, commits) else f"; known from version {commits[0].version} on"
    yield Check(
        "ranges tile",
        outcome("gap", "overlap"),
        f"{count('commit', batches)}, no offset skipped or doubled"
        + (f"; {count('commit', lost)} lost" if lost else "")
        + beginning,
    )
    yield Check("positions", outcome("position"), _standing(len(evidence.committed)))
    entries = count("entry", len(evidence.ledger))
    yield Check("ledger", outcome("ledger"), f"{entries}, {len(evidence.history)} in the history")
    yield Check("rows added", outcome("added"), _telling(len(evidence.added_rows)))
    if evidence.one_row_a_record:
        merges = any(commit.kind == MERGE for commit in commits)
        yield Check(
            "one change a record" if merges else "one row a record",
            outcome("records"),
            f"{_CHANGES if merges else 'rows'} + dead letters + absent records = offsets",
        )
    expected = _rows_expected(evidence, commits)
    known = expected is not None and evidence.rows_in_files is not None
    yield Check(
        "rows in the table",
        outcome("rows", known=known),
        f"{evidence.rows_in_files} in {count('file', evidence.files)}, {expected} by commits"
        if known
        else "the commits from its beginning on are not all known",
    )
    yield Check("files", outcome("files"), f"{evidence.files} {'is' if evidence.files == 1 else 'are'} there, whole")


def _standing(partitions: int) -> str:
    return "1 partition stands where it ended" if partitions == 1 else f"{partitions} partitions stand where they ended"


def _telling(versions: int) -> str:
    return "1 version still tells what it added" if versions == 1 else f"{versions} versions still tell what they added"
