"""What of a cluster one person may see. Pure: names come from what brokers told that very person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.console.sampler.changes import Occurrence

ANYBODY: Final = "anybody"
"""Who asks where nobody logs in."""


@dataclass(frozen=True, slots=True)
class Vision:
    """Names of topics and groups, None for all of them; `cluster` is whether brokers and their disks may be seen.

    `configs` has the topics whose configuration may be seen; who may see the cluster sees what all topics are kept for.
    """

    topics: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    cluster: bool = True
    configs: frozenset[str] = frozenset()

    def topic(self, name: str) -> bool:
        return self.topics is None or name in self.topics

    def group(self, name: str) -> bool:
        return self.groups is None or name in self.groups

    def config(self, topic: str) -> bool:
        return self.topic(topic) and (self.cluster or topic in self.configs)

    def occurrence(self, what: Occurrence) -> bool:
        """What concerns neither a topic nor a group concerns the cluster."""
        if not what.topics and what.group is None:
            return self.cluster
        return all(map(self.topic, what.topics)) and (what.group is None or self.group(what.group))


ALL = Vision()
NOTHING = Vision(frozenset(), frozenset(), cluster=False)
