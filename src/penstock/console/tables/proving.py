"""The audit of one table, by its own records: commits, ledger, offsets, files. Nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.spark.lake.findings import Audit
    from penstock.spark.lake.warehouse import TableName


def prove(found: TableName) -> dict[str, Any]:
    """Blocking, and as long as the table is large; for a thread. The store is this call's own."""
    from penstock.spark.lake.audit import gather
    from penstock.spark.lake.proof import judge

    return verdict(judge(gather(found.open())))


def verdict(audit: Audit) -> dict[str, Any]:
    """What a page shows of it. Pure."""
    serious = [finding for finding in audit.findings if finding.severity != "note"]
    what = f"{count('commit', audit.commits)}, {count('offset', audit.offsets)}, {count('row', audit.rows)}"
    if serious:
        sentence = f"{count('finding', len(serious))} in {what}"
    else:
        sentence = f"Nothing is missing and nothing is there twice: {what}"
    return {
        "sound": audit.clean,
        "sentence": sentence,
        "checks": [{"name": each.name, "outcome": each.outcome, "detail": each.detail} for each in audit.checks],
        "findings": [f"{each.severity}: {each.meaning}; {each.remedy}" for each in audit.findings[:_FINDINGS_SHOWN]],
        "more": max(len(audit.findings) - _FINDINGS_SHOWN, 0),
        "version": str(audit.version),
        "offsets": str(audit.offsets),
        "rows": str(audit.rows),
        "dead": str(audit.dead),
        "absent": str(audit.gaps),
    }


_FINDINGS_SHOWN = 100
