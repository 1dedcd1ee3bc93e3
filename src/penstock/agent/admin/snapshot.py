"""One picture of a running agent, as plain data. `/status` is this as JSON, and readers make it from that again.

Counters only rise while the agent lives. A reader of another version ignores what it does not know and finds defaults
for what is not there.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.agent.counting import TransactionsStatus
from penstock.agent.inputs.input import FileStatus, SlotStatus
from penstock.model.version import VERSION

if TYPE_CHECKING:
    from penstock.agent.counting import AgentStatus, InputReport
    from penstock.agent.settings.model import AgentSettings

STARTING, RUNNING, STOPPING = "starting", "running", "stopping"


@dataclass(slots=True)
class InputSnapshot:
    """One input: what came in, what became of it."""

    kind: str
    state: str = "starting"
    """starting, running, waiting (failed, and to be started again), finished, stopped."""
    words: str = ""
    events: int = 0
    bytes: int = 0
    sent: int = 0
    """Records that the brokers have acknowledged."""
    filtered: int = 0
    failed: int = 0
    """Could not be understood; went on as they were, or to dead letters."""
    dead: int = 0
    untimed: int = 0
    """Their own time could not be read; they have that of sending."""
    unsendable: int = 0
    """No broker will ever take them, and there is no topic for dead letters: dropped and told."""
    retried: int = 0
    spooled: int = 0
    waiting_bytes: int = 0
    """Taken in and not yet safe."""
    restarts: int = 0
    dropped: int = 0
    refused: int = 0
    malformed: int = 0
    truncated: int = 0
    missed: int = 0
    """Files, or rotations of them, that went away before all of them was read."""
    connections: int = 0
    files: int = 0
    behind_bytes: int = 0
    tables_left_out: int = 0
    errors: int = 0
    last_error: str = ""
    details: list[FileStatus] = field(default_factory=list)
    slot: SlotStatus | None = None
    """Of an input that follows a database."""

    @property
    def failing(self) -> bool:
        """It ended with an error and is tried again."""
        return self.state == "waiting"


@dataclass(slots=True)
class Snapshot:
    """The whole agent."""

    name: str
    state: str = STARTING
    version: str = ""
    pid: int = 0
    file: str = ""
    state_dir: str = ""
    bootstrap: str = ""
    admin: str = ""
    up_s: float = 0.0
    inputs: dict[str, InputSnapshot] = field(default_factory=dict)
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    in_flight_bytes: int = 0
    """Handed to the producer and not yet acknowledged."""
    spool_bytes: int = 0
    spool_limit_bytes: int = 0
    """0: there is no spool."""
    spooling: bool = False
    brokers_up: bool = False
    silent_s: float = 0.0
    """How long something has waited without any acknowledgement; 0 when nothing waits."""
    reloads: int = 0
    checkpoint_age_s: float = 0.0
    """How long positions to be saved could not be; 0 when the last try went well."""
    last_error: str = ""
    transactions: TransactionsStatus | None = None
    """Of an agent with `exactly_once`."""

    @property
    def events(self) -> int:
        return sum(each.events for each in self.inputs.values())

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.inputs.values())

    def data(self) -> dict[str, Any]:
        """For JSON and YAML. Files are told only if they were asked for."""
        found = asdict(self)
        for each in found["inputs"].values():
            if not each["details"]:
                del each["details"]
        return found


def picture(
    status: AgentStatus, settings: AgentSettings, *, up_s: float, admin: str = "", ready: bool = True
) -> Snapshot:
    """Of an agent in this process."""
    outlet = status.outlet
    return Snapshot(
        name=status.name,
        state=STOPPING if status.stopping else RUNNING if ready else STARTING,
        version=VERSION,
        pid=os.getpid(),
        file=str(settings.path),
        state_dir=str(settings.state_dir),
        bootstrap=outlet.bootstrap or settings.bootstrap,
        admin=admin,
        up_s=up_s,
        inputs={name: _input(report) for name, report in status.inputs.items()},
        memory_bytes=outlet.memory_used_bytes,
        memory_limit_bytes=outlet.memory_limit_bytes,
        in_flight_bytes=outlet.in_flight_bytes,
        spool_bytes=outlet.spool_bytes,
        spool_limit_bytes=outlet.spool_limit_bytes,
        spooling=outlet.spooling,
        brokers_up=outlet.brokers_reachable,
        silent_s=outlet.silent_ms / 1000,
        reloads=status.reloads,
        checkpoint_age_s=status.checkpoints_failing_ms / 1000,
        last_error=outlet.last_error,
        transactions=status.transactions,
    )


def _input(report: InputReport) -> InputSnapshot:
    status = report.status
    return InputSnapshot(
        kind=status.kind,
        state=report.state,
        words=status.words,
        events=status.events,
        bytes=status.bytes,
        sent=report.events_out,
        filtered=report.filtered,
        failed=report.failed,
        dead=report.dead,
        untimed=report.untimed,
        unsendable=report.unsendable,
        retried=report.retried,
        spooled=report.spooled,
        waiting_bytes=report.waiting_bytes,
        restarts=report.restarts,
        dropped=status.dropped,
        refused=status.refused,
        malformed=status.malformed,
        truncated=status.truncated,
        missed=status.missed,
        connections=status.connections,
        files=status.files,
        behind_bytes=status.behind_bytes,
        tables_left_out=status.tables_left_out,
        errors=status.errors,
        last_error=status.last_error,
        details=status.details,
        slot=status.slot,
    )


def decode(body: bytes) -> Snapshot:
    """What `/status` said. ValueError when it is none of ours."""
    import msgspec

    return msgspec.json.decode(body, type=Snapshot)
