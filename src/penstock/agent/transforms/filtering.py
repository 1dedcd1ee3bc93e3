"""filter: which events go on."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.agent.routing.batch import Batch
from penstock.agent.transforms.conditions import read_condition
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.conditions.meaning import compile_condition
from penstock.conditions.nodes import Condition
from penstock.declared.fields import Table


@dataclass(frozen=True, slots=True)
class Filter:
    title: str
    condition: Condition
    dropping: bool = False
    """Whether those that meet the condition are taken out, instead of all others."""

    def make(self, around: Surroundings) -> Run:
        test, dropping, title = compile_condition(self.condition), self.dropping, self.title

        def run(batch: Batch) -> None:
            met = map(test, batch.seen_fields())
            batch.filter([not yes for yes in met] if dropping else list(met), title)

        return run


def read_filter(table: Table, title: str) -> Step | None:
    text = table.text("filter")
    action = table.choice("action", ("keep", "drop"), "keep")
    condition = None if text is None else read_condition(table, "filter", text)
    return None if condition is None else Filter(title, condition, action == "drop")
