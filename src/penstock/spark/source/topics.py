"""Which partitions a query reads: named topics, topics that match a pattern, or partitions one by one. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from penstock.model.ids import TopicPartition
from penstock.model.patterns import NotRe2, compile_re2
from penstock.spark.errors import BadOption
from penstock.spark.given import Given
from penstock.spark.source.starts import partitions_by_topic

CHOICES: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Exactly one of the three is filled."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that were named; a pattern names none."""
        return self.names or tuple(sorted({tp.topic for tp in self.assigned}))

    def matching(self, existing: Iterable[str]) -> list[str]:
        """The topics, of those that exist, that the pattern matches, anywhere in their name."""
        matches = searcher(self.pattern)
        return sorted(name for name in existing if matches(name))

    def partitions_of(self, topic: str, existing: Iterable[int]) -> list[TopicPartition]:
        """The partitions to read of a topic that has the `existing` ones."""
        if self.assigned:
            there = set(existing)
            return [tp for tp in self.assigned if tp.topic == topic and tp.partition in there]
        return [TopicPartition(topic, partition) for partition in sorted(existing)]

    def __str__(self) -> str:
        if self.pattern:
            return f"subscribePattern {self.pattern!r}"
        if self.assigned:
            return f"assign {', '.join(map(str, self.assigned))}"
        return f"subscribe {', '.join(self.names)}"


def choice_of(given: Given) -> TopicChoice:
    """One of subscribe, subscribePattern and assign; errors otherwise."""
    chosen = [name for name in CHOICES if name in given]
    if not chosen:
        raise BadOption(
            f"say what to read with one of {', '.join(CHOICES)}; for example .option('subscribe', 'orders,payments')"
        )
    if len(chosen) > 1:
        raise BadOption(f"only one of {', '.join(CHOICES)} can be given; found {', '.join(chosen)}")
    name = chosen[0]
    text = (given.text(name) or "").strip()
    if name == "subscribePattern":
        if not text:
            raise BadOption("subscribePattern is empty; a pattern such as orders-.* was expected")
        searcher(text)
        return TopicChoice(pattern=text)
    if name == "assign":
        assigned = partitions_by_topic(name, text)
        if not assigned:
            raise BadOption('assign names no partition; expected JSON such as {"topicA": [0, 1], "topicB": [2]}')
        return TopicChoice(assigned=assigned)
    names = given.names(name)
    if not names:
        raise BadOption("subscribe names no topic; expected names with commas between, as in orders,payments")
    return TopicChoice(names=tuple(sorted(set(names))))


@functools.lru_cache(maxsize=64)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name has the pattern in it somewhere.

    Java's patterns are wanted. re2 takes most of them in linear time; look-arounds and back-references, which it has
    not, are left to `re`.
    """
    try:
        linear = compile_re2(pattern)
        return lambda name: linear.search(name) is not None
    except NotRe2:
        pass
    try:
        compiled = re.compile(pattern)
    except re.error as wrong:
        raise BadOption(f"subscribePattern={pattern!r} is no regular expression: {wrong}") from None
    return lambda name: compiled.search(name) is not None
