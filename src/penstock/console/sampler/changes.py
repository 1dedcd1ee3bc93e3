"""What happened between two pictures, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from penstock.console.sampler.picture import Picture

AT_ONCE_MAX: Final = 50
"""A broker that goes takes thousands of leaders along; so many are named, and the rest counted."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened; `kind` is for programs, `level` is info, warn or bad. `topics`, `group`: whose it is."""

    kind: str
    level: str
    text: str
    params: dict[str, Any] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    group: str | None = None


def occurrences(before: Picture, after: Picture) -> list[Occurrence]:
    """The worst first within each kind of thing; never more than can be read."""
    found = [*_cluster(before, after)]
    for kind in (_topics(before, after), _leaders(before, after), _in_sync(before, after), _groups(before, after)):
        shown = list(islice(kind, AT_ONCE_MAX))
        found += shown
        more = sum(1 for _ in kind)
        if more:
            found.append(Occurrence(shown[-1].kind, shown[-1].level, f"and {more} more like this", {"more": more}))
    return found


def _cluster(before: Picture, after: Picture) -> Iterator[Occurrence]:
    was, now = before.alive(), after.alive()
    for node in sorted(was - now):
        yield Occurrence("broker_down", "bad", f"broker {node} went away", {"broker": node})
    for node in sorted(now - was):
        yield Occurrence("broker_up", "info", f"broker {node} came", {"broker": node})
    if before.cluster.controller != after.cluster.controller:
        to = after.cluster.controller
        text = f"controller {to} leads the quorum now" if to >= 0 else "no controller leads the quorum"
        params = {"from": before.cluster.controller, "to": to}
        yield Occurrence("controller_moved", "info" if to >= 0 else "bad", text, params)


def _topics(before: Picture, after: Picture) -> Iterator[Occurrence]:
    for name in sorted(after.topics.keys() - before.topics.keys()):
        count = len(after.topics[name].partitions)
        text = f"topic {name} was created with {count} partition{'s' * (count != 1)}"
        yield Occurrence("topic_created", "info", text, {"topic": name, "partitions": count}, topics=(name,))
    for name in sorted(before.topics.keys() - after.topics.keys()):
        yield Occurrence("topic_deleted", "warn", f"topic {name} was deleted", {"topic": name}, topics=(name,))
    for name, topic in after.topics.items():
        earlier = before.topics.get(name)
        if earlier is not None and earlier is not topic and len(earlier.partitions) < len(topic.partitions):
            was, now = len(earlier.partitions), len(topic.partitions)
            params = {"topic": name, "from": was, "to": now}
            text = f"topic {name} has {now} partitions, after {was}"
            yield Occurrence("partitions_added", "info", text, params, topics=(name,))


def _leaders(before: Picture, after: Picture) -> Iterator[Occurrence]:
    if before.topics is after.topics:
        return
    for name, topic in after.topics.items():
        earlier = before.topics.get(name)
        if earlier is topic:
            continue
        for was, now in zip(earlier.partitions if earlier else (), topic.partitions, strict=False):
            if was.leader == now.leader:
                continue
            where = f"{name}-{now.partition}"
            params = {"partition": where, "from": was.leader, "to": now.leader}
            if now.leader < 0:
                yield Occurrence("leader_lost", "bad", f"{where} has no leader any more", params, topics=(name,))
            else:
                text = f"{where} is led by broker {now.leader}, after {was.leader if was.leader >= 0 else 'nobody'}"
                yield Occurrence("leader_moved", "info", text, params, topics=(name,))


def _in_sync(before: Picture, after: Picture) -> Iterator[Occurrence]:
    if before.topics is after.topics:
        return
    for name, topic in after.topics.items():
        earlier = before.topics.get(name)
        if earlier is topic:
            continue
        for was, now in zip(earlier.partitions if earlier else (), topic.partitions, strict=False):
            if len(was.isr) == len(now.isr):
                continue
            where, shrank = f"{name}-{now.partition}", len(now.isr) < len(was.isr)
            params = {"partition": where, "isr": now.isr, "replicas": now.replicas}
            text = f"{where} has {len(now.isr)} of {len(now.replicas)} replicas in sync, after {len(was.isr)}"
            kind, level = ("isr_shrank", "warn") if shrank else ("isr_grew", "info")
            yield Occurrence(kind, level, text, params, topics=(name,))


def _groups(before: Picture, after: Picture) -> Iterator[Occurrence]:
    if before.groups is after.groups:
        return
    if "groups" in before.at_ms:
        for name in sorted(after.groups.keys() - before.groups.keys()):
            yield Occurrence("group_appeared", "info", f"group {name} appeared", {"group": name}, group=name)
    for name in sorted(before.groups.keys() - after.groups.keys()):
        yield Occurrence("group_gone", "info", f"group {name} is gone", {"group": name}, group=name)
    for name, group in after.groups.items():
        earlier = before.groups.get(name)
        if earlier is not None and earlier.state != group.state:
            params = {"group": name, "from": earlier.state, "to": group.state}
            text = f"group {name} is {group.state}, after {earlier.state}"
            yield Occurrence("group_state", "info", text, params, group=name)
