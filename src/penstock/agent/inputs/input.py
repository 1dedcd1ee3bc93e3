"""What every input is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from penstock.agent.portion import Origin, Portion

Done: TypeAlias = Callable[[], None]


@runtime_checkable
class StagedDone(Protocol):
    """The `Done` of an input whose positions go into the transaction with its records (`exactly_once`)."""

    def __call__(self) -> None: ...

    def stage(self) -> None:
        """Everything is in the transaction that is about to be committed."""

    def unstage(self) -> None:
        """It was aborted; the portion is sent again."""


class Channel(Protocol):
    """An input's way out. Everything happens on the agent's one event loop."""

    def origin(self, *, path: str = "", peer: str = "") -> Origin:
        """With the input's name and this host's."""

    async def put(self, portion: Portion, done: Done) -> None:
        """Waits for room, then takes the portion. This is the back-pressure: an input that awaits reads no more.

        `done` is called once, later and on the loop, when nothing of the portion can be lost any more: every record
        is acknowledged by the brokers (with `exactly_once`: committed), safe in the spool, filtered out on purpose or
        in dead letters. Portions may be done in another order than they were put. It is not called for what is under
        way when the agent stops.
        """

    def offer(self, portion: Portion, done: Done) -> bool:
        """Takes the portion if there is room now; False, and nothing happened, when there is none."""

    @property
    def roomy(self) -> bool:
        """Whether `offer` would take a small portion."""


@dataclass(slots=True)
class FileStatus:
    """One file that an input follows."""

    path: str
    size_bytes: int
    read_bytes: int
    """Position up to which it was read."""
    safe_bytes: int
    """Position up to which everything is acknowledged."""
    state: str = "open"
    """open, waiting, finished, or words about what is wrong with it."""


@dataclass(slots=True)
class SlotStatus:
    """The replication slot of a database, as it was at the last look."""

    name: str
    active: bool
    lag_bytes: int
    """Written to the database's log, and not yet acknowledged."""
    kept_bytes: int
    """What the database keeps of its log because of the slot: it fills the disk when nobody reads."""
    wal_status: str
    """reserved, extended, unreserved or lost."""


@dataclass(slots=True)
class InputStatus:
    """How an input is doing. Counters only rise."""

    kind: str
    words: str = ""
    """What it is doing or what is wrong, for people."""
    events: int = 0
    bytes: int = 0
    dropped: int = 0
    """Lost because the protocol cannot wait (UDP), never silently."""
    refused: int = 0
    """Told to come again: 429, or a connection too many."""
    malformed: int = 0
    truncated: int = 0
    missed: int = 0
    """Files, or rotations of them, that went away before all of them was read; told one by one."""
    connections: int = 0
    behind_bytes: int = 0
    """Of files: what is written and not yet safe."""
    files: int = 0
    tables_left_out: int = 0
    """Of a database: what a glob fits, and what cannot be followed without harm."""
    errors: int = 0
    last_error: str = ""
    details: list[FileStatus] = field(default_factory=list)
    """Filled only by `status(details=True)`: there may be ten thousand."""
    slot: SlotStatus | None = None
    """Of an input that follows a database."""


class Input(Protocol):
    """One source of events."""

    async def run(self) -> None:
        """Takes events in until `stop`, then returns. Raises for what it cannot get over by itself."""

    async def stop(self) -> None:
        """Takes in no more; returns when no further portion will be put. Afterwards `done`s still arrive."""

    async def close(self) -> None:
        """After the outlet is flushed: last checkpoints, files closed, done files moved."""

    def status(self, *, details: bool = False) -> InputStatus: ...
