"""What every part has in hand, and the brokers in the two shapes in which they are measured."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psutil

from bench import brokers
from bench.brokers import APACHE, Running
from bench.cluster import make_cluster
from bench.cluster_runs import Contender
from bench.headline.calm import OF_COST, Calm
from bench.txn.producers import Done, Place, Shape, crowd
from penstock.bench.series import Results
from tests.compat.processes import wait_for

# Data that no round needs any more leaves the page cache soon.
_PROPERTIES = {"log.segment.delete.delay.ms": "100", "group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True)
class Settings:
    """The defaults are the run whose figures are published: under twenty minutes."""

    rounds: int = 3
    warmup_s: float = 40.0
    lead_s: float = 0.4
    sample_s: float = 2.5
    read_megabytes: int = 200
    idle_ids: int = 100_000
    idle_s: float = 8.0
    again_s_max: float = 60.0

    def quick(self) -> Settings:
        return Settings(
            rounds=1, warmup_s=3, lead_s=0.2, sample_s=0.5, read_megabytes=10, idle_ids=2_000, idle_s=2, again_s_max=0
        )


@dataclass(frozen=True)
class Subject:
    """A broker, or three, as the parts see them."""

    name: str
    address: str
    cpu_s: Callable[[], float]
    new_topic: Callable[[str, int], None]
    drop_topic: Callable[[str], None]

    @property
    def title(self) -> str:
        return brokers.TITLES[self.name]


@dataclass
class Stage:
    names: Sequence[str]
    settings: Settings
    results: Results
    say: Callable[[str], None]
    calm: Calm = field(init=False)
    load_cores_max: float = 0.0
    """The largest share of a core that the load itself took in a sample."""
    others: list[float] = field(default_factory=list)
    """The share of the processors' time that went to neither the load nor the broker under it, sample by sample."""
    _topics: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.calm = Calm(self.settings.again_s_max)

    def cost(self, group: str, name: str, unit: str, broker: str, value: float) -> None:
        self.results.add(group, name, unit, broker, value, higher_is_better=False)

    def rate(self, group: str, name: str, unit: str, broker: str, value: float) -> None:
        self.results.add(group, name, unit, broker, value)

    @contextmanager
    def topic(self, subject: Subject, partitions: int) -> Iterator[Place]:
        """A topic for a while, and where it is led."""
        name = f"txn-{next(self._topics)}"
        subject.new_topic(name, partitions)
        try:
            yield self.place(subject, name)
        finally:
            subject.drop_topic(name)

    @staticmethod
    def place(subject: Subject, topic: str) -> Place:
        """Where a topic is led, once every partition is."""

        def look() -> Place | None:
            found = Place.of(subject.address, topic)
            return found if all(found.leaders) else None

        return wait_for(f"{topic} to be led", look, timeout_s=60, pause_s=0.1)

    def sample(self, subject: Subject, place: Place, shape: Shape, producers: int) -> tuple[Done, float]:
        """What a crowd got done, and the CPU seconds of the brokers for it."""

        def run() -> tuple[Done, float, float]:
            with crowd(place, shape, producers) as made:
                busy_s, began = _busy_s(), time.perf_counter()
                done, spent = made.run(self.settings.sample_s, self.settings.lead_s, subject.cpu_s)
                took_s = time.perf_counter() - began
                busy = (_busy_s() - busy_s) / took_s
                # What was done before and after the part that counts is reckoned like it.
                ours = (spent + done.client_cpu_s) / done.seconds
                return done, spent, max(0.0, busy - ours) / (os.cpu_count() or 1)

        done, spent, others = self.calm.sampled(run, OF_COST)
        self.load_cores_max = max(self.load_cores_max, done.client_cpu_s / done.seconds)
        self.others.append(others)
        return done, spent

    def fill(self, place: Place, shape: Shape, producers: int, each: int) -> None:
        """`each` transactions of every producer."""
        with crowd(place, shape, producers) as made:
            made.run_count(each)

    def warm_up(self, subject: Subject, places: Sequence[tuple[Place, Shape, int]]) -> None:
        """Every path that is measured, in turn; Kafka's compiler needs the time, ours does not."""
        whole_s = self.settings.warmup_s if subject.name == APACHE else min(self.settings.warmup_s, 4.0)
        self.say(f"{subject.title} under mixed load for {whole_s:.0f} s")
        each_s = whole_s / len(places)
        for place, shape, producers in places:
            with crowd(place, shape, producers) as made:
                made.run(each_s * 0.9, each_s * 0.1)


def _busy_s() -> float:
    """Processor time that anybody on this machine has used."""
    told = psutil.cpu_times()
    return float(told.user + told.nice + told.system + told.irq + told.softirq)


def one_node(stack: ExitStack, names: Sequence[str]) -> list[Subject]:
    """Brokers side by side, each as its makers ship it for a single node."""
    started = stack.enter_context(brokers.running(names, _PROPERTIES))
    return [_subject(each, each.bootstrap) for each in started]


def three_nodes(stack: ExitStack, names: Sequence[str]) -> list[Subject]:
    """Clusters side by side, with three replicas of everything, two of which have to be in sync."""
    home = stack.enter_context(brokers.scratch())
    made = [Contender(name, stack.enter_context(make_cluster(name, home / name))) for name in names]
    return [_subject(each, each.cluster.brokers[0].address) for each in made]


def _subject(measured: Running | Contender, address: str) -> Subject:
    return Subject(measured.name, address, lambda: measured.usage().cpu_s, measured.new_topic, measured.drop_topic)
