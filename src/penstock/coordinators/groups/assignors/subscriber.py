"""What an assignor is told of a member, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.model.ids import Uuid

# Partitions by topic id; topics without partitions are left out.
Target = Mapping[Uuid, frozenset[int]]


class Subscriber(NamedTuple):
    """A member as assignors see it. `topics` exist, every one; `owned` is its former target."""

    id: str
    instance_id: str | None
    topics: frozenset[Uuid]
    owned: Target
