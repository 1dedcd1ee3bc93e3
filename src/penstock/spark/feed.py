"""Where a table's rows come from, as the table itself says it (property `penstock.feed`). Pure.

    {"bootstrap": "localhost:9092", "topics": ["orders"], "options": {"value.format": "json", …}, "start": "latest",
     "view": "orders", "steps": [{"name": "clean", "sql": "select …"}], "rows": "record", "query": "shop-orders"}

Whoever reads the log beside the table makes the same rows of it: the same options, the same steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.security.hiding import secret_in_clients
from penstock.spark.errors import BadOption

ONE_ROW_A_RECORD: Final = "record"

_PREFIXES: Final = ("value.", "kafka.")
_DECODING: Final = ("metadatacolumns", "includeheaders", "columns")
_BOOTSTRAP: Final = "kafka.bootstrap.servers"


@dataclass(frozen=True, slots=True)
class FeedStep:
    """A step between the topic and the table. `sql` is None for one that cannot be repeated from its text: Python's."""

    name: str
    sql: str | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """Topics, and what becomes of their records on the way to the table."""

    bootstrap: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """In place of topics."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of format("penstock"): those that decide which rows there are and what is in them. Never a password: whoever
    reads the table's metadata would read it, too."""
    start: Mapping[str, str] = field(default_factory=dict)
    """Of format("penstock"): those that say where reading began; none is the latest, as streams do."""
    view: str = ""
    """The name under which steps know the rows of the topics."""
    steps: tuple[FeedStep, ...] = ()
    rows: str = "any"
    query: str = ""
    """The name of the query that writes the table; `spark-<this>` is its group."""
    cdc: str = ""
    """The envelope that rows are taken out of before the steps."""

    @classmethod
    def of_source(
        cls,
        options: Mapping[str, str],
        *,
        view: str = "",
        steps: Sequence[FeedStep] = (),
        rows: str = ONE_ROW_A_RECORD,
        query: str = "",
        cdc: str = "",
    ) -> Feed:
        """From all the options of a stream of format("penstock")."""
        given = {name.lower(): value for name, value in options.items()}
        return cls(
            bootstrap=given.get(_BOOTSTRAP, ""),
            topics=tuple(name.strip() for name in given.get("subscribe", "").split(",") if name.strip()),
            pattern=given.get("subscribepattern", ""),
            options={name: value for name, value in given.items() if _decides(name)},
            start={name: value for name, value in given.items() if name.startswith("starting")},
            view=view,
            steps=tuple(steps),
            rows=rows,
            query=query,
            cdc=cdc,
        )

    @classmethod
    def of_property(cls, text: str) -> Feed:
        """From the table's property; `BadOption` when that is no feed."""
        try:
            given = json.loads(text)
            return cls(
                bootstrap=str(given.get("bootstrap", "")),
                topics=tuple(str(topic) for topic in given.get("topics", ())),
                pattern=str(given.get("pattern", "")),
                options=_texts(given.get("options", {})),
                start=_start_of(given.get("start", {})),
                view=str(given.get("view", "")),
                steps=tuple(_step_of(step) for step in given.get("steps", ())),
                rows=str(given.get("rows", "any")),
                query=str(given.get("query", "")),
                cdc=str(given.get("cdc", "")),
            )
        except (ValueError, TypeError, AttributeError, KeyError) as wrong:
            raise BadOption(f"the table's property penstock.feed is not understood ({wrong}): {text[:200]}") from None

    def to_property(self) -> str:
        """The inverse; what has its default is left out."""
        made: dict[str, Any] = {
            "bootstrap": self.bootstrap,
            "topics": list(self.topics),
            "pattern": self.pattern,
            "options": dict(self.options),
            "start": dict(self.start),
            "view": self.view,
            "steps": [{"name": step.name, "sql": step.sql} for step in self.steps],
            "rows": self.rows,
            "query": self.query,
            "cdc": self.cdc,
        }
        return json.dumps({name: value for name, value in made.items() if value}, sort_keys=True)

    def names(self, topic: str) -> bool:
        """Whether records of that topic are in the table."""
        if self.pattern:
            from penstock.spark.source.topics import searcher

            return searcher(self.pattern)(topic)
        return topic in self.topics

    @property
    def from_the_first(self) -> bool:
        """Whether every record of the log was to be read."""
        return {name.lower(): value.lower() for name, value in self.start.items()} == {"startingoffsets": "earliest"}


def _decides(name: str) -> bool:
    if name.startswith("kafka.") and secret_in_clients(name.removeprefix("kafka.")):
        return False
    return (name.startswith(_PREFIXES) and name != _BOOTSTRAP) or name in _DECODING


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in given.items()}


def _start_of(given: Any) -> dict[str, str]:
    return {"startingOffsets": given} if isinstance(given, str) else _texts(given)


def _step_of(given: Any) -> FeedStep:
    """A step may be its name alone."""
    if isinstance(given, str):
        return FeedStep(given)
    sql = given.get("sql")
    return FeedStep(str(given["name"]), None if sql is None else str(sql))
