"""What of a cluster one person may see. Pure: names come from what brokers told that very person."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.console.sampler.changes import Occurrence


@dataclass(frozen=True, slots=True)
class Vision:
    """Names of topics and groups, None for all of them; `cluster` is whether brokers and their disks may be seen."""

    topics: frozenset[str] | None = None
    groups: frozenset[str] | None = None
    cluster: bool = True

    def topic(self, name: str) -> bool:
        return self.topics is None or name in self.topics

    def group(self, name: str) -> bool:
        return self.groups is None or name in self.groups

    def occurrence(self, what: Occurrence) -> bool:
        """What concerns neither a topic nor a group concerns the cluster."""
        if what.topic is None and what.group is None:
            return self.cluster
        return (what.topic is None or self.topic(what.topic)) and (what.group is None or self.group(what.group))


ALL = Vision()
