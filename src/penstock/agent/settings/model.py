"""What an agent's file says, frozen. Sizes in bytes, times in milliseconds, paths absolute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.agent.routing.routing import Routing
    from penstock.agent.transforms.step import Step


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """`[output]`: how records reach the brokers."""

    acks: str = "all"
    compression: str = "lz4"
    linger_ms: int = 20
    memory_bytes: int = 64 << 20
    """The bound of everything that was read and is not yet acknowledged."""
    create_topics: bool = True
    flush_within_ms: int = 30_000
    """How long a stop waits for acknowledgements."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Producer settings by Kafka's names, and `client_config`. There may be passwords among them."""


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """`[spool]`: network inputs go on while brokers are away."""

    path: Path
    size_bytes: int = 1 << 30
    after_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class InputSettings:
    """`[inputs.NAME]`. Two with the same digest behave the same."""

    name: str
    kind: str
    own: Any
    """What the kind itself understood; its own dataclass."""
    routing: Routing
    steps: tuple[Step, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The whole file."""

    name: str
    path: Path
    """The file."""
    bootstrap: str
    state_dir: Path
    host: str
    admin: str | None
    """host:port of the admin endpoints; None for none."""
    output: OutputSettings
    spool: SpoolSettings | None
    inputs: Mapping[str, InputSettings]
    exactly_once: bool = False
    """Records and positions go to brokers in transactions."""
    machine_id: str | None = None
    """Which machine's positions they are; None: what the system says."""

    @property
    def client_id(self) -> str:
        return f"agent-{self.name}"
