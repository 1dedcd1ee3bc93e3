"""`/metrics`: a snapshot in the words of Prometheus. Pure.

Labels are names of inputs, so there are few; files, of which there may be ten thousand, are told only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from penstock.agent.admin.snapshot import InputSnapshot, Snapshot
from penstock.agent.inputs.input import FileStatus, SlotStatus
from penstock.transport.prometheus import COUNTER, GAUGE, head_lines, labels_text, sample_line

PREFIX: Final = "penstock_agent_"


class OfAgent(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[Snapshot], float]


class OfInput(NamedTuple):
    name: str
    kind: str
    help: str
    value: Callable[[InputSnapshot], float]


class OfSlot(NamedTuple):
    name: str
    help: str
    value: Callable[[SlotStatus], float]


class OfFile(NamedTuple):
    name: str
    help: str
    value: Callable[[FileStatus], float]


AGENT: Final = (
    OfAgent("up_seconds", GAUGE, "How long the agent runs.", lambda s: s.up_s),
    OfAgent("broker_up", GAUGE, "1 while brokers answer.", lambda s: s.brokers_up),
    OfAgent("memory_bytes", GAUGE, "Read and not yet acknowledged.", lambda s: s.memory_bytes),
    OfAgent("memory_limit_bytes", GAUGE, "The bound of it; then inputs wait.", lambda s: s.memory_limit_bytes),
    OfAgent("in_flight_bytes", GAUGE, "On its way to brokers.", lambda s: s.in_flight_bytes),
    OfAgent("spool_bytes", GAUGE, "In the spool on disk.", lambda s: s.spool_bytes),
    OfAgent("spool_limit_bytes", GAUGE, "The cap of it; 0 without a spool.", lambda s: s.spool_limit_bytes),
    OfAgent("spooling", GAUGE, "1 while events go through the spool.", lambda s: s.spooling),
    OfAgent("silent_seconds", GAUGE, "How long what waits had no acknowledgement.", lambda s: s.silent_s),
    OfAgent("reloads_total", COUNTER, "Reloads since the start.", lambda s: s.reloads),
    OfAgent(
        "checkpoint_age_seconds",
        GAUGE,
        "How long positions could not be saved; 0 when all is well.",
        lambda s: s.checkpoint_age_s,
    ),
    OfAgent("exactly_once", GAUGE, "1 when it sends in transactions.", lambda s: s.transactions is not None),
    OfAgent(
        "transactions_committed_total",
        COUNTER,
        "Transactions of lines and positions that were committed.",
        lambda s: s.transactions.commits if s.transactions else 0,
    ),
    OfAgent(
        "transactions_aborted_total",
        COUNTER,
        "Transactions that were given up; what was in them is sent again.",
        lambda s: s.transactions.aborts if s.transactions else 0,
    ),
    OfAgent(
        "last_commit_age_seconds",
        GAUGE,
        "How long ago the last transaction was committed; 0 before the first.",
        lambda s: s.transactions.last_commit_age_s if s.transactions else 0,
    ),
)
INPUT: Final = (
    OfInput("events_total", COUNTER, "Events taken in.", lambda i: i.events),
    OfInput("bytes_total", COUNTER, "Bytes taken in.", lambda i: i.bytes),
    OfInput("sent_total", COUNTER, "Records that brokers have acknowledged.", lambda i: i.sent),
    OfInput("filtered_total", COUNTER, "Events left out on purpose.", lambda i: i.filtered),
    OfInput("failed_total", COUNTER, "Events that could not be understood.", lambda i: i.failed),
    OfInput("dead_letters_total", COUNTER, "Events sent to dead letters.", lambda i: i.dead),
    OfInput("untimed_total", COUNTER, "Events whose own time could not be read.", lambda i: i.untimed),
    OfInput("unsendable_total", COUNTER, "Records that no broker takes, dropped.", lambda i: i.unsendable),
    OfInput("dropped_total", COUNTER, "Events lost because their protocol cannot wait.", lambda i: i.dropped),
    OfInput("refused_total", COUNTER, "Senders told to come again.", lambda i: i.refused),
    OfInput("malformed_total", COUNTER, "Events that were no such thing.", lambda i: i.malformed),
    OfInput("truncated_total", COUNTER, "Events cut because they were too long.", lambda i: i.truncated),
    OfInput("missed_files_total", COUNTER, "Files that went away before all was read.", lambda i: i.missed),
    OfInput("retried_total", COUNTER, "Records sent again.", lambda i: i.retried),
    OfInput("spooled_total", COUNTER, "Records that went through the spool.", lambda i: i.spooled),
    OfInput("restarts_total", COUNTER, "How often the input failed and was started again.", lambda i: i.restarts),
    OfInput("waiting_bytes", GAUGE, "Taken in and not yet safe.", lambda i: i.waiting_bytes),
    OfInput("errors_total", COUNTER, "What went wrong in the input itself.", lambda i: i.errors),
    OfInput("failing", GAUGE, "1 while the input fails and is tried again.", lambda i: i.failing),
    OfInput("behind_bytes", GAUGE, "Written to its files and not yet safe.", lambda i: i.behind_bytes),
    OfInput("files", GAUGE, "Files that it follows.", lambda i: i.files),
    OfInput("connections", GAUGE, "Connections that stand.", lambda i: i.connections),
    OfInput("tables_left_out", GAUGE, "Tables that fit, and have no replica identity.", lambda i: i.tables_left_out),
)
SLOT: Final = (
    OfSlot("slot_lag_bytes", "Written to a database's log and not yet acknowledged.", lambda s: s.lag_bytes),
    OfSlot("slot_kept_bytes", "What a database keeps of its log because of its slot.", lambda s: s.kept_bytes),
    OfSlot("slot_active", "1 while somebody reads from the slot.", lambda s: s.active),
    OfSlot(
        "slot_at_risk",
        "1 when the database may remove what the slot still needs, or has (wal_status unreserved or lost).",
        lambda s: s.wal_status in ("unreserved", "lost"),
    ),
)
FILE: Final = (
    OfFile("file_size_bytes", "Size of a file.", lambda f: f.size_bytes),
    OfFile("file_read_bytes", "Position up to which it was read.", lambda f: f.read_bytes),
    OfFile("file_safe_bytes", "Position up to which everything is acknowledged.", lambda f: f.safe_bytes),
)


def names(*, files: bool = False) -> list[str]:
    """Of every metric, in the order of the page; the guide lists them."""
    every: list[str] = [each.name for group in (AGENT, INPUT, SLOT) for each in group]
    return [f"{PREFIX}{name}" for name in [*every, "info", *((each.name for each in FILE) if files else ())]]


def page(snapshot: Snapshot, *, files: bool = False) -> str:
    """`files` adds those of every file; the snapshot must have them."""
    lines: list[str] = []
    for agent in AGENT:
        lines += [*_head(agent.name, agent.kind, agent.help), _line(agent.name, {}, agent.value(snapshot))]
    for each in INPUT:
        lines += _head(each.name, each.kind, each.help)
        lines += (
            _line(each.name, {"input": name, "type": told.kind}, each.value(told))
            for name, told in snapshot.inputs.items()
        )
    for of_slot in SLOT:
        lines += _head(of_slot.name, GAUGE, of_slot.help)
        lines += (
            _line(of_slot.name, {"input": name, "slot": told.slot.name}, of_slot.value(told.slot))
            for name, told in snapshot.inputs.items()
            if told.slot is not None
        )
    lines += _head("info", GAUGE, "Always 1; its labels say which agent this is.")
    lines.append(_line("info", {"name": snapshot.name, "version": snapshot.version}, 1))
    if files:
        lines += _files(snapshot)
    return "\n".join(lines) + "\n"


def _files(snapshot: Snapshot) -> Iterable[str]:
    for metric in FILE:
        yield from _head(metric.name, GAUGE, metric.help)
        for name, each in snapshot.inputs.items():
            for file in each.details:
                yield _line(metric.name, {"input": name, "path": file.path}, metric.value(file))


def _head(name: str, kind: str, words: str) -> list[str]:
    return head_lines(PREFIX + name, kind, words)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    whole = int(value)
    return sample_line(PREFIX + name, labels_text(labels), whole if value == whole else value)
