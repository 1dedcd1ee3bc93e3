"""From topic to topic by several ways: what each is asked, and what comes of their rounds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bench.brokers import PENSTOCK_NODE
from penstock.bench.series import Results

RIVAL: Final = "connector"
AT_LEAST_ONCE: Final = "at least once"
IN_TRANSACTIONS: Final = "in transactions"
ROWS: Final = "topic to topic, 1 KB"
ROWS_A_CORE: Final = "topic to topic, 1 KB, rows per CPU-second"
COST: Final = "what transactions cost, beside at least once (target: 15 %)"


@dataclass(frozen=True)
class Way:
    """One of those that take turns. `by` is Spark's name of the format."""

    contender: str
    name: str
    by: str
    exactly_once: bool = False

    @property
    def sink(self) -> dict[str, str]:
        return {"exactly.once": "true"} if self.exactly_once else {}

    @property
    def topic(self) -> str:
        return f"{self.contender}-{self.name}".replace(" ", "-")


WAYS: Final = (
    Way(PENSTOCK_NODE, AT_LEAST_ONCE, "penstock"),
    Way(PENSTOCK_NODE, IN_TRANSACTIONS, "penstock", exactly_once=True),
    # Spark's connector has no transactions: its at least once stands beside both of ours.
    Way(RIVAL, AT_LEAST_ONCE, "kafka"),
)


def note_round(results: Results, records: int, found: Mapping[Way, Mapping[str, float]]) -> None:
    """The figures of one round, in which every way had its turn."""
    for way, took in found.items():
        for name in _rows_of(way):
            results.add(ROWS, name, "rows/s", way.contender, records / took["seconds"])
            results.add(ROWS_A_CORE, name, "rows/CPU-s", way.contender, records / took["cpu_s"])
    plain, transactional = found[WAYS[0]], found[WAYS[1]]
    for name, key in (("of the time", "seconds"), ("of the CPU time", "cpu_s")):
        cost = 100 * (transactional[key] / plain[key] - 1)
        results.add(COST, name, "%", PENSTOCK_NODE, cost, higher_is_better=False)


def _rows_of(way: Way) -> Iterator[str]:
    yield way.name
    if way.contender == RIVAL:
        yield IN_TRANSACTIONS
