"""What every part has in hand: settings, results, progress, the brokers that run, and topics that go when done with."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench import memory
from bench.brokers import NULL, TITLES, Running
from bench.headline.calm import Calm
from bench.headline.progress import Progress
from bench.headline.settings import Settings
from penstock.bench import raw
from penstock.bench.series import Results

LANES = 4
# Data that no round needs any more leaves the page cache soon, and no group waits for members that might still come.
_PROPERTIES = {"log.segment.delete.delay.ms": "100", "group.initial.rebalance.delay.ms": "0"}

Curve = dict[str, list[tuple[float, float]]]


@dataclass
class Stage:
    names: Sequence[str]
    settings: Settings
    results: Results
    progress: Progress
    curves: dict[str, Curve] = field(default_factory=dict)
    """Points of each plot, by line."""
    remarks: list[str] = field(default_factory=list)
    part_of: dict[tuple[str, str], str] = field(default_factory=dict)
    """Which part measured a figure, by its group and name."""
    started: Sequence[Running] = ()
    """The brokers side by side, of which one is measured while the others are idle."""
    calm: Calm = field(init=False)
    _topics: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.calm = Calm(self.settings.again_s_max)

    @property
    def properties(self) -> dict[str, str]:
        """What is set for the brokers side by side, the same for all."""
        given = self.settings.properties
        more = dict(each.split("=", 1) for each in given.split()) if given != "none" else {}
        return _PROPERTIES | more

    def title(self, name: str) -> str:
        return TITLES[name]

    def measured(self, part: str) -> None:
        """Whatever is new among the results is that part's."""
        for key in self.results.series:
            self.part_of.setdefault(key, part)

    @contextmanager
    def topic(self, broker: Running, partitions: int = LANES) -> Iterator[str]:
        """A topic for one sample, dropped afterwards so that the disk does not fill."""
        name = self.topic_name()
        broker.new_topic(name, partitions)
        try:
            yield name
        finally:
            broker.drop_topic(name)

    def make_ready(self, broker: Running, written_bytes: int) -> None:
        """Before a sample: nobody is busy with earlier ones, and there is memory for what this one will write.

        The null broker keeps nothing and shares nothing with the others, so its turn is when they clear away.
        """
        if broker.name != NULL:
            for each in self.started:
                each.settle()
            memory.refresh(written_bytes * 6 // 5, broker.node.home)

    def topic_name(self) -> str:
        return f"headline-{next(self._topics)}"

    def cost(self, group: str, name: str, unit: str, broker: str, value: float) -> None:
        """A figure that is better when it is lower."""
        self.results.add(group, name, unit, broker, value, higher_is_better=False)

    def rate(self, group: str, name: str, unit: str, broker: str, value: float) -> None:
        self.results.add(group, name, unit, broker, value)


def latency_figures(stage: Stage, group: str, broker: str, measured_ms: Sequence[float]) -> None:
    """p50, p99 and p99.9 of one sample."""
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        stage.cost(group, name, "ms", broker, raw.percentile(measured_ms, share))


@contextmanager
def pinned(started: Sequence[Running]) -> Iterator[None]:
    """Brokers on the last core, everything else of ours on the first; with one core there is nothing to choose."""
    cores = sorted(os.sched_getaffinity(0))
    for broker in started:
        broker.pin(cores[-1:])
    os.sched_setaffinity(0, cores[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for broker in started:
            broker.pin(cores)
