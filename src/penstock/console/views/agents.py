"""Agents as their page shows them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from penstock.agent.admin.snapshot import InputSnapshot, Snapshot
from penstock.agent.admin.verdicts import readiness
from penstock.agent.view.rates import Rate
from penstock.console.agents.asking import AskedAgent
from penstock.console.agents.positions import KnownAgent

FILES_SHOWN: Final = 500


def agent_rows(asked: Sequence[AskedAgent], known: Sequence[KnownAgent]) -> list[dict[str, Any]]:
    """Those that were asked, then those that are only known by what they have written down."""
    answering = {each.snapshot.name for each in asked if each.snapshot is not None and each.snapshot.transactions}
    return [
        *(_asked_row(each) for each in asked),
        *(_known_row(each) for each in known if each.name not in answering),
    ]


def _asked_row(asked: AskedAgent) -> dict[str, Any]:
    found = asked.snapshot
    if found is None:
        return {**_EMPTY, "name": asked.address, "address": asked.address, "state": "silent", "error": asked.silent}
    reasons = [asked.silent] if asked.silent else readiness(found)
    return {
        "name": found.name,
        "address": asked.address,
        "state": "silent" if asked.silent else "warning" if reasons else found.state,
        "inputs": [_input(name, each, asked.rates.get(name)) for name, each in found.inputs.items()],
        "behind": str(sum(each.behind_bytes for each in found.inputs.values())),
        "spool": str(found.spool_bytes),
        "files": _files(found),
        "seen_ms": asked.at_ms or None,
        "error": "; ".join(reasons) or found.last_error or None,
        "bootstrap": found.bootstrap,
        "version": found.version,
        "exactly_once": found.transactions is not None,
        "command": f"curl -s {asked.address}/status?files=1",
    }


def _input(name: str, each: InputSnapshot, rate: Rate | None) -> dict[str, Any]:
    return {
        "name": name,
        "type": each.kind,
        "state": each.state,
        "events": str(each.events),
        "rate": None if rate is None else rate.events_per_s,
        "behind": str(each.behind_bytes),
        "dropped": str(each.dropped + each.unsendable),
        "dead": str(each.dead),
        "waiting": str(each.waiting_bytes),
        "spooled": str(each.spooled),
        "topic": None,
        "error": each.last_error or (each.words if each.failing else None) or None,
    }


def _files(found: Snapshot) -> list[dict[str, Any]]:
    """Those that are furthest behind first."""
    files = [
        {
            "path": file.path,
            "input": name,
            "position": str(file.safe_bytes),
            "size": str(file.size_bytes),
            "behind": str(max(file.size_bytes - file.safe_bytes, 0)),
            "state": file.state,
        }
        for name, each in found.inputs.items()
        for file in each.details
    ]
    files.sort(key=lambda file: (-int(file["behind"]), file["path"]))
    return files[:FILES_SHOWN]


def _known_row(known: KnownAgent) -> dict[str, Any]:
    files = [
        {"path": path, "input": input, "position": str(position), "size": None, "behind": None}
        for (input, _), (path, position) in sorted(known.files.items())
    ]
    return {
        **_EMPTY,
        "name": known.name,
        "machine": known.machine,
        "state": "positions",
        "files": files[:FILES_SHOWN],
        "seen_ms": known.seen_ms or None,
        "exactly_once": True,
    }


_EMPTY: Final[dict[str, Any]] = {"address": None, "inputs": [], "behind": None, "spool": None, "files": []}
