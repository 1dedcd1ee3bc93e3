"""What the timers of groups are for. The class of a kind says which kind of group it belongs to.

They are strings because a key with one is hashed at every heartbeat, and the hash of a string costs nothing.
"""

from __future__ import annotations

from enum import StrEnum


class ClassicDeadline(StrEnum):
    """A join and a sync are the group's; only a session is a member's."""

    SESSION = "classic-session"
    JOIN = "classic-join"
    SYNC = "classic-sync"


class ConsumerDeadline(StrEnum):
    """All but the last are a member's, by Kafka's reasons for them."""

    SESSION = "consumer-session"
    """Nothing was heard of the member for too long."""
    REBALANCE = "consumer-rebalance"
    """It does not let go of partitions."""
    JOIN = "consumer-join"
    """A member of the classic protocol was told to rejoin and does not."""
    SYNC = "consumer-sync"
    """A member of the classic protocol has joined and does not ask for its assignment."""
    DOWNGRADED = "consumer-downgraded"
    """Due at once: when it comes up, the records that made the group a classic one have been applied."""


Deadline = ClassicDeadline | ConsumerDeadline
OF_MEMBERS = (ConsumerDeadline.SESSION, ConsumerDeadline.REBALANCE, ConsumerDeadline.JOIN, ConsumerDeadline.SYNC)
