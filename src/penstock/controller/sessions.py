"""Who has been heard of lately. Soft state of the active controller: a new one starts with everybody just heard of."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.ids import Offset

NOTHING_APPLIED = Offset(-1)

LOST_LINK_PART = 6
"""A broker whose connection broke has this part of a session to be heard of again: its process is likely gone."""


@dataclass(slots=True)
class Session:
    """A broker's heartbeats. `metadata_offset` is how far it has applied the metadata log.

    A session that is only `assumed` was taken over from an earlier controller: it gives the broker time to report, but
    does not stop a new process of the same id. One that was `dismissed` has been told to stop: whatever still arrives
    from it was sent before it knew. `lost_ms` is when the connection of its last heartbeat broke.
    """

    heard_ms: float
    lost_ms: float | None = None
    assumed: bool = False
    dismissed: bool = False
    metadata_offset: Offset = NOTHING_APPLIED
    shutdown_offset: Offset | None = None


class Sessions:
    """Heartbeat sessions by broker id."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, Session] = {}

    def reset(self, brokers: list[int], now: float) -> None:
        """Forgets everything; `brokers` get a whole session's time to report."""
        self._sessions = {broker: Session(now, assumed=True) for broker in brokers}

    def open(self, broker: int, now: float) -> None:
        """A broker has registered."""
        self._sessions[broker] = Session(now)

    def close(self, broker: int) -> None:
        self._sessions.pop(broker, None)

    def touch(self, broker: int, now: float, metadata_offset: Offset) -> Session:
        """A heartbeat arrived."""
        session = self._sessions.setdefault(broker, Session(now))
        session.heard_ms, session.assumed, session.metadata_offset = now, False, metadata_offset
        session.lost_ms = None
        return session

    def lose(self, broker: int, now: float) -> None:
        """The connection over which a broker reported is gone. A process that lives dials again at once."""
        session = self._sessions.get(broker)
        if session is not None and session.lost_ms is None:
            session.lost_ms = now

    def get(self, broker: int) -> Session | None:
        return self._sessions.get(broker)

    def alive(self, broker: int, now: float) -> bool:
        """Whether the broker has been heard of within its session timeout, or soon enough after its link broke."""
        return now < self._deadline(broker)

    def occupied(self, broker: int, now: float) -> bool:
        """Whether a process has reported as this broker lately, so that another one may not."""
        session = self._sessions.get(broker)
        return session is not None and not session.assumed and not session.dismissed and self.alive(broker, now)

    def silent_longest(self, brokers: list[int], now: float) -> int | None:
        """The broker among `brokers` whose session ran out first; None when all are alive."""
        silent = [broker for broker in brokers if not self.alive(broker, now)]
        return min(silent, key=lambda broker: (self._deadline(broker), broker)) if silent else None

    def next_deadline(self, brokers: list[int]) -> float | None:
        """When the next session of `brokers` runs out."""
        return min(map(self._deadline, brokers), default=None)

    def _deadline(self, broker: int) -> float:
        session = self._sessions.get(broker)
        if session is None:
            return float("-inf")
        deadline = session.heard_ms + self.timeout_ms
        return (
            deadline if session.lost_ms is None else min(deadline, session.lost_ms + self.timeout_ms / LOST_LINK_PART)
        )
