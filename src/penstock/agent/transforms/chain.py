"""All steps of one input, and then its router."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import reduce

from penstock.agent.portion import Portion
from penstock.agent.routing.batch import Batch, told
from penstock.agent.routing.router import Router, Sorted
from penstock.agent.routing.routing import Routing
from penstock.agent.transforms.masking.mask import Mask
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.declared.fields import Notes, Table

__all__ = ["Chain", "Sorted"]


class Chain:
    """Turns portions of one input into parcels. Without steps and with one topic it hands the lists on as they are."""

    @staticmethod
    def read(
        own: Iterable[Table], shared: Iterable[Table], notes: Notes, routing: Routing | None = None
    ) -> tuple[Step, ...]:
        """The steps of an input and then those of all inputs; see `reading.read_steps`."""
        from penstock.agent.transforms.reading import read_steps

        return read_steps(own, shared, notes, routing)

    def __init__(
        self, steps: Sequence[Step], routing: Routing, *, input: str, host: str, chance: random.Random
    ) -> None:
        self.input, self.host = input, host
        # A failed event leaves the steps early; what they would have hidden must not go on because of that.
        hides = [step.line_hider() for step in steps if isinstance(step, Mask)]
        self._router = Router(routing, lambda line: reduce(lambda text, hide: hide(text), hides, line))
        around = Surroundings(chance, self._router.names, routing.encode, self._router.has_dead_letters)
        self._runs: list[tuple[str, Run]] = [(step.title, step.make(around)) for step in steps]

    def apply(self, portion: Portion, now_ms: int) -> Sorted:
        """What becomes of a portion. Its fields are taken over, its other lists are left as they are."""
        if not self._runs and self._router.passes_through(portion):
            return self._router.pass_through(portion)
        batch = Batch(portion, now_ms)
        for title, run in self._runs:
            if not batch.values:
                break
            try:
                run(batch)
            except Exception:  # a mistake of ours; it must cost the events that provoke it and no other
                _run_one_by_one(batch, title, run)
        try:
            return self._router.sort(batch)
        except Exception as error:  # as above
            return self._router.sort(_given_up(portion, now_ms, error))


def _run_one_by_one(batch: Batch, title: str, run: Run) -> None:
    """Runs a step that raised with each event alone. Those that raise again are set aside."""
    parts = [batch.only(place) for place in range(len(batch))]
    why: dict[int, str] = {}
    for place, part in enumerate(parts):
        try:
            run(part)
        except Exception as error:
            why[place] = f"{title}: {told(error)}"
    batch.gather(parts, why)


def _given_up(portion: Portion, now_ms: int, error: Exception) -> Batch:
    """All events of a portion as they came, failed: rather those that were filtered come back than that one is lost."""
    batch = Batch(portion, now_ms)
    batch.fields = None
    batch.set_aside(dict.fromkeys(range(len(batch)), f"routing: {told(error)}"))
    return batch
