"""Where the records of an input go, as its file says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from penstock.agent.routing.templates import Template

Encode: TypeAlias = Literal["raw", "json", "auto"]

HEADER_NAMES: Final = ("host", "path", "input", "peer", "offset")
MARK_HEADER: Final = "agent.mark"
ERROR_HEADER: Final = "agent.error"


@dataclass(frozen=True, slots=True)
class Routing:
    """Topic, key, time, headers and form of an input's records."""

    topic: Template
    key: Template | None = None
    """A field is the template of that one field."""
    timestamp: str | None = None
    """A field that holds the event's time in a form that can be told by looking at it."""
    headers: tuple[str, ...] | None = None
    """Of `HEADER_NAMES`; None is host and path for files, host and peer for the network."""
    encode: Encode = "auto"
    dead_letters: Template | None = None
    """Only names of the origin in it: what is dead has no fields."""
