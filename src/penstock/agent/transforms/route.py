"""route: which topics an event goes to, by what it holds."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.agent.routing.batch import Batch, Topics
from penstock.agent.routing.reading import read_topic
from penstock.agent.routing.templates import Fill, Template
from penstock.agent.routing.topics import UNKNOWN, allowed_name
from penstock.agent.transforms.conditions import read_condition
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.conditions.meaning import Test, compile_condition
from penstock.conditions.nodes import Condition
from penstock.declared.fields import Table


@dataclass(frozen=True, slots=True)
class Rule:
    when: Condition | None
    """None: always."""
    topic: Template


@dataclass(frozen=True, slots=True)
class Route:
    """An event that meets no rule keeps the topic it had: that of its input, or of an earlier route."""

    title: str
    rules: tuple[Rule, ...]
    to_all: bool = False
    """Whether it goes to the topics of all rules that it meets, instead of the first one's."""

    def make(self, around: Surroundings) -> Run:
        tests = [None if rule.when is None else compile_condition(rule.when) for rule in self.rules]

        def run(batch: Batch) -> None:
            fills = [rule.topic.bind(batch.origin) for rule in self.rules]
            _Placing(self, around, batch, tests, fills).run()

        return run


class _Placing:
    """One batch while it is routed."""

    def __init__(
        self,
        route: Route,
        around: Surroundings,
        batch: Batch,
        tests: list[Test | None],
        fills: list[str | Fill | None],
    ) -> None:
        self._route, self._around, self._batch = route, around, batch
        self._rules = list(zip(tests, fills, route.rules, strict=True))
        self._why: dict[int, str] = {}

    def run(self) -> None:
        batch, to_all = self._batch, self._route.to_all
        topics: list[Topics] = batch.topics if batch.topics is not None else [None] * len(batch)
        for place, fields in enumerate(batch.seen_fields()):
            chosen: tuple[str, ...] = ()
            for test, fill, rule in self._rules:
                if test is None or test(fields):
                    text = fill(fields) if callable(fill) else fill
                    chosen += (self._name(place, text, rule.topic),)
                    if not to_all:
                        break
            if chosen:
                topics[place] = chosen
        batch.topics = topics
        batch.set_aside(self._why, "dead")

    def _name(self, place: int, text: str | None, template: Template) -> str:
        name = template.constant or (self._around.names.name(text) if text else "")
        if name:
            return name
        if self._around.has_dead_letters:
            why = self._around.names.why(text) if text else "a field of it is not there"
            self._why[place] = f"{self._route.title}: topic {template.text}: {why}"
        else:
            self._batch.failed += 1
        return allowed_name(template.filled(UNKNOWN))


def read_route(table: Table, title: str) -> Step | None:
    rules = []
    for index, inner in enumerate(table.table_list("route")):
        inner.title = f"route {index + 1}"
        topic = inner.required_text("topic", 'where such events go, such as { when = "…", topic = "errors" }')
        when = inner.text("when")
        condition = None if when is None else read_condition(inner, "when", when)
        template = read_topic(inner, "topic", topic) if topic else None
        inner.finish()
        if template is not None:
            rules.append(Rule(condition, template))
    if table.values.get("route") == []:
        table.wrong("route", 'route has no rules: write route = [{ when = "status >= 500", topic = "errors" }]')
    to_all = table.choice("to", ("first", "all"), "first") == "all"
    _warn_of_unreachable(table, rules, to_all)
    return Route(title, tuple(rules), to_all)


def _warn_of_unreachable(table: Table, rules: list[Rule], to_all: bool) -> None:
    ends = [index for index, rule in enumerate(rules) if rule.when is None]
    if not to_all and ends and ends[0] < len(rules) - 1:
        path = (*table.path, "route", ends[0] + 1)
        table.notes.warn(path, "nothing gets here: the rule before has no `when` and takes every event")
