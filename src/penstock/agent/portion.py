"""What flows through an agent: portions come from inputs, parcels go to topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.conditions.paths import Fields

Headers: TypeAlias = Sequence[tuple[str, bytes]]

EVENT_OVERHEAD_BYTES: Final = 64
"""What an event costs in memory besides its bytes: the object and its place in lists."""

TRUNCATED: Final = "truncated"
LOSSY: Final = "lossy"
MALFORMED: Final = "malformed"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the events of a portion come from, the same for all of them. `{name}` in templates means these."""

    input: str
    host: str
    path: str = ""
    """The file as it was found; empty for what comes over the network."""
    peer: str = ""
    """The sender's address; empty for files."""


@dataclass(slots=True)
class Portion:
    """Events of one place that are handed on together, in order, and acknowledged together.

    The lists that are there have one entry for each event.
    """

    origin: Origin
    values: list[bytes]
    """Each event as it came, without its line break."""
    positions: Sequence[int] | None = None
    """Where each begins in its file, as far as the input knows."""
    fields: list[Fields] | None = None
    """What the input already understood of each (syslog, JSON over HTTP). None leaves them raw."""
    timestamps_ms: list[int] | None = None
    """The time of each event, if the input knows it; else the producer stamps them."""
    keys: list[bytes | None] | None = None
    """The key of each record, where the input knows it better than the file; `key` in the file comes before it."""
    nulls: frozenset[int] = frozenset()
    """By index: events whose records have no value at all. Of a compacted topic they delete the key."""
    faithful: bool = False
    """Whether each value is the JSON of its fields: then it need not be written again."""
    marks: dict[int, str] = field(default_factory=dict)
    """By index: TRUNCATED, LOSSY, MALFORMED; becomes the header `agent.mark` of that record."""
    size_bytes: int = 0
    """The memory it is charged with; counted from the values when it is 0."""

    def __post_init__(self) -> None:
        if not self.size_bytes:
            self.size_bytes = sum(map(len, self.values)) + EVENT_OVERHEAD_BYTES * len(self.values)


@dataclass(slots=True)
class Parcel:
    """Records of one topic, ready for `Producer.send_batch`. The lists that are there have one entry each."""

    topic: str
    values: list[bytes]
    keys: list[bytes | None] | None = None
    headers: list[Headers] | None = None
    timestamps_ms: list[int] | None = None
    nulls: frozenset[int] = frozenset()
    """By index: records without a value. What stands among the values for them is not sent."""

    def sent_values(self) -> Sequence[bytes | None]:
        """As the producer takes them."""
        if not self.nulls:
            return self.values
        return [None if row in self.nulls else value for row, value in enumerate(self.values)]


def places_in(rows: Sequence[int], nulls: frozenset[int]) -> frozenset[int]:
    """Which places of a list that holds only these rows have no value."""
    return frozenset(place for place, row in enumerate(rows) if row in nulls) if nulls else nulls
