"""Snapshots in sentences and tables of plain text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from penstock.agent.admin.snapshot import InputSnapshot, Snapshot
from penstock.agent.admin.verdicts import readiness
from penstock.agent.view.numbers import count, megabytes, rate
from penstock.agent.view.rates import Rate
from penstock.model.units import bytes_text, duration_text

HEADINGS: Final = ("INPUT", "TYPE", "EVENTS", "SENT", "BEHIND", "FROM", "DROPPED", "REFUSED", "FAILED", "FILTERED")
FILE_HEADINGS: Final = ("INPUT", "FILE", "SIZE", "READ", "SAFE", "STATE")


def source(each: InputSnapshot) -> str:
    """Where its events come from, in a word or two."""
    parts = [count(each.files, "file")] if each.files else []
    if each.connections:
        parts.append(count(each.connections, "connection"))
    return ", ".join(parts)


def input_sentence(name: str, each: InputSnapshot, now: Rate) -> str:
    """One input in one line."""
    if each.failing:
        return f"{name}: fails and is tried again: {each.last_error or each.words}"
    said = [f"{rate(now.events_per_s)} events/s ({megabytes(now.bytes_per_s)} MB/s)", f"{each.events:,} so far"]
    said += [f"{bytes_text(each.behind_bytes)} behind"] if each.behind_bytes else []
    said += [source(each)] if source(each) else []
    said += losses(each)
    said += [each.words] if each.words else []
    return f"{name}: {', '.join(said)}"


def losses(each: InputSnapshot) -> list[str]:
    """What did not simply arrive."""
    counted = (
        ("dropped", each.dropped),
        ("refused", each.refused),
        ("failed", each.failed),
        ("malformed", each.malformed),
        ("truncated", each.truncated),
        ("of the files missed", each.missed),
        ("filtered", each.filtered),
        ("to dead letters", each.dead),
        ("with a time that cannot be read", each.untimed),
        ("that no broker takes", each.unsendable),
    )
    return [f"{number:,} {word}" for word, number in counted if number]


def brokers_sentence(snapshot: Snapshot) -> str:
    if snapshot.brokers_up:
        return f"brokers answer at {snapshot.bootstrap}"
    return readiness(snapshot)[-1]


def summary(snapshot: Snapshot) -> str:
    """The last words of an agent that ends."""
    sent = sum(each.sent for each in snapshot.inputs.values())
    said = [f"{count(snapshot.events, 'event')} in ({bytes_text(snapshot.bytes)})", f"{sent:,} acknowledged"]
    total = InputSnapshot("")
    for each in snapshot.inputs.values():
        for name in (
            "dropped",
            "refused",
            "failed",
            "malformed",
            "truncated",
            "missed",
            "filtered",
            "dead",
            "untimed",
            "unsendable",
        ):
            setattr(total, name, getattr(total, name) + getattr(each, name))
    return f"{snapshot.name} ran {duration_text(snapshot.up_s * 1000)}: {', '.join([*said, *losses(total)])}"


def rows(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    """In the order of HEADINGS; None where an input has no such thing."""
    return [
        (
            name,
            each.kind,
            each.events,
            each.sent,
            bytes_text(each.behind_bytes) if each.files or each.behind_bytes else None,
            source(each) or None,
            each.dropped or None,
            each.refused or None,
            each.failed or None,
            each.filtered or None,
        )
        for name, each in snapshot.inputs.items()
    ]


def file_rows(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [
        (name, file.path, file.size_bytes, file.read_bytes, file.safe_bytes, file.state)
        for name, each in snapshot.inputs.items()
        for file in each.details
    ]


def description(snapshot: Snapshot) -> list[str]:
    """The lines above the table of inputs."""
    lines = [
        f"{snapshot.name}  ({snapshot.state} for {duration_text(snapshot.up_s * 1000)}, process {snapshot.pid})",
        *_pairs(
            ("file", snapshot.file),
            ("state", snapshot.state_dir),
            ("brokers", f"{snapshot.bootstrap} ({'answering' if snapshot.brokers_up else 'not answering'})"),
            ("admin", f"http://{snapshot.admin}" if snapshot.admin else "off"),
            ("memory", f"{bytes_text(snapshot.memory_bytes)} of {bytes_text(snapshot.memory_limit_bytes)}"),
            ("spool", f"{bytes_text(snapshot.spool_bytes)} of {bytes_text(snapshot.spool_limit_bytes)}")
            if snapshot.spool_limit_bytes
            else ("spool", ""),
            *_transactions(snapshot),
        ),
    ]
    lines += [f"  {'!':<9}{reason}" for reason in readiness(snapshot)]
    return lines


def _transactions(snapshot: Snapshot) -> Sequence[tuple[str, str]]:
    told = snapshot.transactions
    if told is None:
        return []
    last = f", the last one {duration_text(told.last_commit_age_s * 1000)} ago" if told.commits else ""
    ends = f"{told.commits:,} committed{last}, {told.aborts:,} aborted"
    return [("once", f"transactions of {told.id}: {ends}"), ("", f"positions are in {told.topic}-{told.partition}")]


def _pairs(*given: tuple[str, str]) -> Sequence[str]:
    return [f"  {name:<9}{value}" for name, value in given if value]


def words_of(snapshot: Snapshot) -> list[str]:
    """What inputs say of themselves. Those that fail are among the reasons already."""
    return [f"{name}: {each.words}" for name, each in snapshot.inputs.items() if each.words and not each.failing]
