"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.coordinators.groups.deadlines import ClassicDeadline

# A protocol's name and the member's metadata for it, in the order of the member's preference.
Protocols = Sequence[tuple[str, bytes]]


class ClassicMember:
    """Who it is, what it can do, and which of its requests are held back.

    `join_token` and `sync_token` name a request that waits for its answer, None when none does. A member is `is_new`
    until its first generation: it does not know its id yet, so it cannot send heartbeats and may be dropped while
    it waits. The assignment is empty until a leader gives one.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "join_token",
        "join_version",
        "protocols",
        "rebalance_timeout_ms",
        "session_key",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(
        self,
        group_id: str,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.join_token: object | None = None
        self.join_version = 0
        self.sync_token: object | None = None
        # Made once: a heartbeat puts its deadline off under this key.
        self.session_key = (ClassicDeadline.SESSION, group_id, member_id)

    @property
    def excused(self) -> bool:
        """Whether it need not send heartbeats: it waits for us, not we for it."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def metadata(self, protocol: str) -> bytes:
        """What it said for `protocol`, which it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.id} does not support the chosen protocol {protocol}")

    def vote(self, candidates: set[str]) -> str:
        """The protocol it likes best among those that everybody supports."""
        return next(name for name, _ in self.protocols if name in candidates)
