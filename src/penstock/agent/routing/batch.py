"""Events on their way through an agent: the lists of a portion, while transforms shorten and change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from penstock.agent.portion import Portion
from penstock.conditions.paths import MESSAGE, Fields, getter
from penstock.conditions.texts import decoded

OnError: TypeAlias = Literal["", "keep", "drop", "dead"]
"""What becomes of an event that failed. The empty one: dead letters if the input has them, else it is kept."""

Topics: TypeAlias = tuple[str, ...] | None
"""Where a route sent an event; None leaves it to the input's topic."""

WHY_CHARACTERS_MAX: Final = 300


class Aside(NamedTuple):
    """An event that failed. It takes no part in further steps."""

    value: bytes
    why: str
    on_error: OnError
    time_ms: int | None

    @property
    def step(self) -> str:
        """Which step it failed in; reasons begin with it."""
        return self.why.partition(":")[0]


class Batch:
    """The lists have one entry for each event that is still on its way; `rows` says which of the portion it is.

    What few events have is kept by row: marks, failures.
    """

    def __init__(self, portion: Portion, now_ms: int) -> None:
        self.portion, self.origin, self.now_ms = portion, portion.origin, now_ms
        self.values: list[bytes] = portion.values
        self.rows: Sequence[int] = range(len(portion.values))
        self.fields: list[Fields] | None = portion.fields
        self.faithful = portion.faithful
        """Whether each value is the JSON of its fields: then it need not be written again."""
        self.times_ms: Sequence[int | None] | None = portion.timestamps_ms
        self.topics: list[Topics] | None = None
        self.aside: dict[int, Aside] = {}
        self.filtered: dict[str, int] = {}
        """How many each step took out."""
        self.untimed = 0
        """Whose time could not be read."""
        self.failed = 0

    def __len__(self) -> int:
        return len(self.values)

    def own_fields(self) -> list[Fields]:
        """The fields, to be changed. A line that nobody understood has one: `message`."""
        self.faithful = False
        if self.fields is None:
            self.fields = [{MESSAGE: text} for text in decoded(self.values)]
        return self.fields

    def seen_fields(self) -> list[Fields]:
        """The fields, to be looked at only."""
        if self.fields is not None:
            return self.fields
        return [{MESSAGE: text} for text in decoded(self.values)]

    def column(self, path: str) -> list[Any]:
        """A field of each event."""
        if self.fields is not None:
            return list(map(getter(path), self.fields))
        return list(decoded(self.values)) if path == MESSAGE else [None] * len(self.values)

    def select(self, chosen: Sequence[bool]) -> None:
        """Goes on with the chosen ones only."""
        self.values = list(compress(self.values, chosen))
        self.rows = list(compress(self.rows, chosen))
        if self.fields is not None:
            self.fields = list(compress(self.fields, chosen))
        if self.times_ms is not None:
            self.times_ms = list(compress(self.times_ms, chosen))
        if self.topics is not None:
            self.topics = list(compress(self.topics, chosen))

    def filter(self, chosen: Sequence[bool], step: str) -> None:
        """As `select`; who is not chosen is taken out on purpose, by that step."""
        before = len(self)
        self.select(chosen)
        self.take_note(step, before - len(self))

    def take_note(self, step: str, filtered: int) -> None:
        if filtered:
            self.filtered[step] = self.filtered.get(step, 0) + filtered

    def set_aside(self, why: Mapping[int, str], on_error: OnError = "") -> None:
        """Events that failed, by their place in the lists, leave them."""
        if not why:
            return
        for place, words in why.items():
            time_ms = None if self.times_ms is None else self.times_ms[place]
            short = words if len(words) <= WHY_CHARACTERS_MAX else words[: WHY_CHARACTERS_MAX - 1] + "…"
            self.aside[self.rows[place]] = Aside(self.values[place], short, on_error, time_ms)
        self.failed += len(why)
        self.select([place not in why for place in range(len(self))])

    def only(self, place: int) -> Batch:
        """One event as a batch of its own, with its row."""
        one = Batch(self.portion, self.now_ms)
        one.rows, one.values, one.faithful = [self.rows[place]], [self.values[place]], self.faithful
        one.fields = None if self.fields is None else [self.fields[place]]
        one.times_ms = None if self.times_ms is None else [self.times_ms[place]]
        one.topics = None if self.topics is None else [self.topics[place]]
        return one

    def gather(self, parts: Sequence[Batch], why: Mapping[int, str]) -> None:
        """Becomes what its parts became, which `only` made; those that are named in `why` are set aside."""
        self.set_aside(why)
        left = [part for place, part in enumerate(parts) if place not in why]
        for part in left:
            self.aside.update(part.aside)
            self.failed += part.failed
            self.untimed += part.untimed
            for step, count in part.filtered.items():
                self.take_note(step, count)
        left = [part for part in left if part.values]
        self.rows = [part.rows[0] for part in left]
        self.values = [part.values[0] for part in left]
        self.faithful = all(part.faithful for part in left)
        if any(part.fields is not None for part in left):
            self.fields = [part.seen_fields()[0] for part in left]
        else:
            self.fields = None
        self.times_ms = [part.times_ms[0] if part.times_ms else None for part in left]
        self.topics = [part.topics[0] if part.topics else None for part in left]

    def each(self, act: Callable[[Fields], Any], step: str) -> None:
        """Calls `act` with the fields of every event; those that make it raise are set aside."""
        why: dict[int, str] = {}
        for place, fields in enumerate(self.own_fields()):
            try:
                act(fields)
            except Exception as error:  # whatever its content provokes, it is that event alone that failed
                why[place] = f"{step}: {told(error)}"
        self.set_aside(why)


def told(error: BaseException) -> str:
    """An exception in words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
