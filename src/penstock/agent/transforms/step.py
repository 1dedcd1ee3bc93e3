"""What every step is: settings that can be compared, and what they are made into."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from penstock.agent.routing.batch import Batch
from penstock.agent.routing.routing import Encode
from penstock.agent.routing.topics import TopicNames

Run: TypeAlias = Callable[[Batch], None]
"""Changes a batch. An event that it cannot take it sets aside; if it raises, it is tried with one event at a time."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a step may need besides its settings."""

    chance: random.Random
    names: TopicNames
    """The topics of this input, shared with its router: the bound is for both."""
    encode: Encode = "auto"
    has_dead_letters: bool = False


class Step(Protocol):
    """Frozen settings of one verb."""

    @property
    def title(self) -> str:
        """`step 2 (filter)`: how people are told of it."""

    def make(self, around: Surroundings) -> Run: ...
