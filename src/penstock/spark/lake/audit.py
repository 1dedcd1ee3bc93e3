"""`penstock lake audit`: what a table's ledger, history, offsets and files say, gathered and judged.

`findings.py` has what is looked at and what is said, `proof.py` the proof.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyarrow import fs

from penstock.spark.lake.findings import Audit, Evidence
from penstock.spark.lake.ledger import Ledger
from penstock.spark.lake.places import opened, read_text
from penstock.spark.lake.proof import judge, unexplained
from penstock.spark.lake.store import FEED_PROPERTY, ROWS_PROPERTY, Commit, TableFile, TableStore
from penstock.spark.lake.upkeep import write_down
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

Recount = Callable[[Sequence[Commit]], Mapping[int, int]]
"""Of commits: by version, how many records the topics have in their offsets; versions that cannot be told are left out.
Whoever knows brokers has it (`penstock.spark.recount`)."""


def audit(store: TableStore, recount: Recount | None = None) -> Audit:
    """Looks at the table as it is now, and writes into its ledger what that lacks and the history still has.

    Topics are asked, by `recount`, only about offsets that no commit explains.
    """
    evidence = gather(store)
    if recount is not None and (commits := unexplained(evidence)):
        evidence = replace(evidence, present=recount(commits))
    found = judge(evidence)
    write_down(store)
    return found


def gather(store: TableStore) -> Evidence:
    store.refresh()
    files = store.files()
    version = store.version()
    return Evidence(
        table=store.location,
        format=store.format,
        version=version,
        # Others may commit while we look; what is newer than the version we look at is theirs.
        ledger=[entry for entry in Ledger(store.location, store.storage).entries() if entry.version <= version],
        history=list(store.commits()),
        committed=store.committed(),
        rows_in_files=sum(file.rows for file in files),
        files=len(files),
        added_rows=added_rows(store),
        missing_files=missing(files, store.storage),
        one_row_a_record=one_row_a_record(store),
    )


def one_row_a_record(store: TableStore) -> bool:
    properties = store.properties()
    feed = properties.get(FEED_PROPERTY)
    told = json.loads(feed).get("rows") if feed else None
    return "record" in (properties.get(ROWS_PROPERTY), told)


def missing(files: Sequence[TableFile], storage: Storage = FROM_ENVIRONMENT) -> list[str]:
    """Those that are gone, or cut."""
    found = []
    for file in files:
        system, path = opened(file.path, storage)
        info = system.get_file_info(path)
        if info.type != fs.FileType.File or info.size != file.size_bytes:
            found.append(file.path)
    return found


def added_rows(store: TableStore) -> dict[int, int]:
    """Version → rows of the files that it added, of the versions that the table still tells of."""
    if store.format == "delta":
        return _added_by_delta(store)
    from penstock.spark.lake.iceberg.store import IcebergStore

    assert isinstance(store, IcebergStore)
    return store.added_rows()


def _added_by_delta(store: TableStore) -> dict[int, int]:
    """From the log's own files: they say of every version which files it added, and with how many rows."""
    system, root = opened(store.location, store.storage)
    log = fs.FileSelector(f"{root}/_delta_log", allow_not_found=True)
    found: dict[int, int] = {}
    for each in system.get_file_info(log):
        number, dot, kind = each.base_name.partition(".")
        if dot and kind == "json" and number.isdigit() and int(number) <= store.version():
            rows = _rows_in(read_text(system, each.path))
            if rows is not None:
                found[int(number)] = rows
    return found


def _rows_in(log: str) -> int | None:
    """Rows that one version's actions add; None when a file does not say."""
    total = 0
    for line in log.splitlines():
        added = json.loads(line).get("add") if line.startswith('{"add"') else None
        if added is None:
            continue
        rows = json.loads(added.get("stats") or "{}").get("numRecords")
        if rows is None:
            return None
        total += int(rows)
    return total
