"""sample: only a part of the events goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xxhash

from penstock.agent.routing.batch import Batch
from penstock.agent.transforms.conditions import read_condition
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.conditions.meaning import compile_condition
from penstock.conditions.nodes import Condition
from penstock.conditions.paths import wrong_path
from penstock.conditions.texts import as_text, to_bytes
from penstock.declared.fields import Table, kind_of

_HASHES = 1 << 64


@dataclass(frozen=True, slots=True)
class Sample:
    title: str
    rate: float
    one_in: int = 0
    """Every so many-th one, counted exactly; 0 leaves it to the rate."""
    by: str | None = None
    """A field: events with the same value go on together or not at all, on every agent alike."""
    always: Condition | None = None
    """Who meets it goes on in any case."""

    def make(self, around: Surroundings) -> Run:
        always = None if self.always is None else compile_condition(self.always)
        chosen = self._chooser(around)

        def run(batch: Batch) -> None:
            picked = chosen(batch)
            if always is not None:
                picked = [yes or always(fields) for yes, fields in zip(picked, batch.seen_fields(), strict=True)]
            batch.filter(picked, self.title)

        return run

    def _chooser(self, around: Surroundings) -> Callable[[Batch], list[bool]]:
        rate, chance = self.rate, around.chance.random
        if self.by is not None:
            path, bound = self.by, int(rate * _HASHES)

            def by_value(batch: Batch) -> list[bool]:
                return [chance() < rate if value is None else _hash(value) < bound for value in batch.column(path)]

            return by_value
        if self.one_in:
            return _Every(self.one_in)
        return lambda batch: [chance() < rate for _ in range(len(batch))]


class _Every:
    """The first of every so many."""

    def __init__(self, one_in: int) -> None:
        self._one_in, self._count = one_in, 0

    def __call__(self, batch: Batch) -> list[bool]:
        begin, self._count = self._count, (self._count + len(batch)) % self._one_in
        return [(begin + place) % self._one_in == 0 for place in range(len(batch))]


def _hash(value: Any) -> int:
    return xxhash.xxh64_intdigest(to_bytes(as_text(value)))


def read_sample(table: Table, title: str) -> Step | None:
    amount = table.value("sample")
    by, always = table.text("by"), table.text("always")
    condition = None if always is None else read_condition(table, "always", always)
    if by is not None and wrong_path(by) is not None:
        table.wrong("by", wrong_path(by) or "")
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        table.wrong("sample", f"sample must be a part such as 0.1, or 10 for one in ten, not {kind_of(amount)}")
    elif 0 <= amount <= 1:
        return Sample(title, float(amount), 0, by, condition)
    elif isinstance(amount, int) and amount > 1:
        return Sample(title, 1 / amount, amount, by, condition)
    else:
        table.wrong("sample", f"sample = {amount} is neither a part from 0 to 1 nor a whole number such as 10")
    return None
