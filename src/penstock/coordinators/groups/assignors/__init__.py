"""Server-side assignors: who of a group's members shall read which partition.

Pure functions from members and partition counts to partitions by member. They know no group, no epoch and no time.
Every partition of every subscribed topic goes to exactly one of its subscribers; a member without any partition gets an
empty table. Equal input gives equal output, whatever order members come in.

Read `subscriber.py` first, then `uniform.py` and `range.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from penstock.coordinators.groups.assignors import range as by_range
from penstock.coordinators.groups.assignors import uniform
from penstock.coordinators.groups.assignors.subscriber import Subscriber, Target
from penstock.model.ids import Uuid

Assignor = Callable[[Sequence[Subscriber], Mapping[Uuid, int]], dict[str, Target]]

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": uniform.assign, "range": by_range.assign}

__all__ = ["ASSIGNORS", "Assignor", "Subscriber", "Target"]
