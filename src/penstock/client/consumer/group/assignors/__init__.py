"""Who gets which partition: what the leader of a classic group computes for everybody.

Pure functions of topics and subscriptions, so that any leader, ours or another client's, comes to the same result
where the strategy promises one. Read `subscription.py` first: the bytes that members send each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.consumer.group.assignors.cooperative_sticky import CooperativeStickyAssignor
from penstock.client.consumer.group.assignors.ranges import RangeAssignor
from penstock.client.consumer.group.assignors.roundrobin import RoundRobinAssignor
from penstock.client.consumer.group.assignors.sticky import StickyAssignor
from penstock.client.consumer.group.assignors.subscription import Assignor

DEFAULT_STRATEGY = ("range", "cooperative-sticky")

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}


def assignors_of(names: Sequence[str]) -> list[Assignor]:
    """The assignors in the order of preference; ValueError names what is wrong and what there is."""
    known = ", ".join(ASSIGNORS)
    if not names:
        raise ValueError(f"partition_assignment_strategy is empty; there are {known}")
    unknown = [name for name in names if name not in ASSIGNORS]
    if unknown:
        raise ValueError(f"partition_assignment_strategy: no assignor is called {unknown[0]!r}; there are {known}")
    return [ASSIGNORS[name] for name in dict.fromkeys(names)]
