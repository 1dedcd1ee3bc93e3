"""What other engines write into a Delta log, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def log_entry(path: Path, *actions: dict[str, Any]) -> None:
    """A commit of another engine's, as it stands in the Delta log."""
    log = path / "_delta_log"
    version = max(int(each.stem) for each in log.glob("*.json")) + 1
    told = {"commitInfo": {"timestamp": 1, "operation": "ALTER TABLE"}}
    (log / f"{version:020d}.json").write_text("\n".join(json.dumps(each) for each in (told, *actions)))


def protocol(*features: str, reader: int = 3) -> dict[str, Any]:
    named = {"readerFeatures": list(features), "writerFeatures": list(features)} if reader == 3 else {}
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": 7 if reader == 3 else 5, **named}}
