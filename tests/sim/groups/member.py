"""What the world asks of a member, whatever protocol it speaks."""

from __future__ import annotations

from typing import Any, Protocol

from penstock.model.ids import TopicPartition


class Member(Protocol):
    """A consumer in the world. It acts through `world.send` and `world.claim` alone and asks for time by `wake_at`.

    `name` is its place: a process that comes back after a crash has the same one. All times are on its own clock.
    """

    name: str

    @property
    def wake_at(self) -> int | None:
        """When it wants `on_time`; None when only a reply can move it."""

    def on_time(self, now: int) -> None:
        """Its clock shows `now`."""

    def on_reply(self, request: Any, reply: Any, now: int) -> None:
        """The reply to one of its requests. A reply that was lost never comes: it must watch the time itself."""

    def owned(self) -> frozenset[TopicPartition]:
        """What it believes to own."""

    def crash(self) -> None:
        """It forgets everything and starts anew when it is next given time."""

    def leave(self) -> None:
        """It leaves the group in good order and comes back later as if it were new."""

    def settled(self) -> bool:
        """Whether it is in the group and has nothing to do but to go on."""
