"""What an agent counts and tells: plain integers that only rise, read when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.agent.inputs.input import InputStatus


@dataclass(slots=True)
class Counts:
    """What became of the events of one input."""

    events_in: int = 0
    """Taken from the input."""
    events_out: int = 0
    """Acknowledged by the brokers; one event may become several records."""
    bytes_out: int = 0
    filtered: int = 0
    """Left out on purpose: filter, sample."""
    failed: int = 0
    """Not understood by a transform; they go on as they are, or to dead letters."""
    dead: int = 0
    """Sent to the dead-letter topic, whoever sent them there."""
    untimed: int = 0
    """Events whose own time could not be read; they have that of sending."""
    unsendable: int = 0
    """Records that no broker will ever take and for which there is no dead-letter topic: dropped and told."""
    retried: int = 0
    """Records that were handed to the producer again."""
    spooled: int = 0
    """Records that went through the spool."""


@dataclass(slots=True, kw_only=True)
class InputReport(Counts):
    """One input: how it is doing and what became of its events."""

    status: InputStatus
    state: str = "starting"
    """starting, running, waiting (to be started again), finished, stopped."""
    restarts: int = 0
    waiting_bytes: int = 0
    """Taken in and not yet safe."""


@dataclass(slots=True)
class OutletStatus:
    """The way to the brokers."""

    bootstrap: str = ""
    memory_used_bytes: int = 0
    memory_limit_bytes: int = 0
    in_flight_bytes: int = 0
    """Handed to the producer and not yet acknowledged."""
    spool_bytes: int = 0
    spool_limit_bytes: int = 0
    """0 when there is no spool."""
    spooling: bool = False
    """Whether events go through the spool now."""
    brokers_reachable: bool = False
    silent_ms: int = 0
    """How long something has been waiting without any acknowledgement; 0 when nothing waits."""
    last_error: str = ""
    last_error_at_ms: int = 0
    """Wall time of the last error, 0 when there was none."""


@dataclass(slots=True)
class TransactionsStatus:
    """Of an agent with `exactly_once`."""

    id: str
    """The transactional id."""
    topic: str
    """Where its positions are."""
    partition: int
    commits: int = 0
    aborts: int = 0
    """Transactions of which nothing will be seen; what was in them is sent again."""
    last_commit_age_s: float = 0.0
    """0 when there was none yet."""


@dataclass(slots=True)
class AgentStatus:
    """All of it. `since_ms` is wall time."""

    name: str
    since_ms: int
    inputs: dict[str, InputReport] = field(default_factory=dict)
    outlet: OutletStatus = field(default_factory=OutletStatus)
    reloads: int = 0
    stopping: bool = False
    checkpoints_failing_ms: int = 0
    """For how long positions could not be saved; 0 when all is well."""
    transactions: TransactionsStatus | None = None
