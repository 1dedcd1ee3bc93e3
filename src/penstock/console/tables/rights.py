"""What somebody has to be allowed to READ, to be told anything of a table. Pure.

Kafka's ACLs cover topics and not files. A table holds what was in its topics, so whoever may read all of them may read
it. A table that does not say where its rows are from, or that is fed by a topic of another cluster, or of a name that
another topic has by now, is told only to those who may ALTER the cluster: they could give themselves any right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.client.admin.rights import Rights
from penstock.console.tables.seen import SeenTable


@dataclass(frozen=True, slots=True)
class TableRights:
    """What one person may see of tables, by the word of the cluster that feeds them."""

    all: bool = False
    """Nobody logs in, or this person may ALTER the cluster."""
    readable: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    """The topics of the cluster, with the ids that they have now."""

    @classmethod
    def of(cls, rights: Rights, ids: Mapping[str, str]) -> TableRights:
        readable = frozenset(name for name, allowed in rights.topics.items() if "read" in allowed)
        return cls("alter" in rights.cluster, readable, ids)

    def may_read(self, table: SeenTable) -> bool:
        if self.all:
            return True
        needed = topics_of(table, self.ids)
        return bool(needed) and needed <= self.readable


def topics_of(table: SeenTable, ids: Mapping[str, str]) -> frozenset[str]:
    """The topics that a table is made of; none where that is not known for sure."""
    if table.problem or table.feed is None or table.unexplained:
        return frozenset()
    named: dict[str, set[str]] = {name: {""} for name in table.feed.topics}
    for name, known in table.names.items():
        named.setdefault(name, set()).update(known)
    for key in table.committed:
        # Offsets that no commit tells of any more are of a topic that is known by its id or its name.
        if key.topic not in ids.values() and key.topic not in ids:
            return frozenset()
        named.setdefault(next((name for name, id in ids.items() if id == key.topic), key.topic), set()).add(key.topic)
    for name, kept in named.items():
        if name not in ids or kept - {"", name, ids[name]}:
            return frozenset()
    return frozenset(named)


def topics_told(table: SeenTable) -> list[str]:
    """The topics that a table names, whether or not they are there."""
    return sorted({*(table.feed.topics if table.feed else ()), *table.names})
