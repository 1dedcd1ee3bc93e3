"""What is remembered of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A place that an input reads from, and how far it is safe."""

    key: str
    """Names it within its input."""
    path: str = ""
    position: int = 0
    """Everything before it is acknowledged."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the input needs to know it again; whatever JSON can hold."""
