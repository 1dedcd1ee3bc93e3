"""Which connection a broker reports over: only the loss of its newest says something."""

from __future__ import annotations

from collections.abc import Callable

from penstock.server.controller.links import HeartbeatLinks


class Line:
    """A connection as far as heartbeats see it."""

    software = ("", "")
    fetch_session = None

    def __init__(self, number: int) -> None:
        self.number = number
        self.callbacks: list[Callable[[], None]] = []

    def when_closed(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def mute(self, duration_ms: float) -> None:
        """Nobody throttles here."""

    def close(self) -> None:
        for callback in self.callbacks:
            callback()


def test_a_lost_connection_names_the_broker_that_reported_over_it_once() -> None:
    lost: list[tuple[int, int]] = []
    links, line = HeartbeatLinks(lambda *who: lost.append(who)), Line(7)
    for _ in range(3):
        links.heard(line, 1, 40)
    assert len(line.callbacks) == 1
    line.close()
    assert lost == [(1, 40)]


def test_a_connection_that_was_replaced_says_nothing() -> None:
    lost: list[tuple[int, int]] = []
    links, old, new = HeartbeatLinks(lambda *who: lost.append(who)), Line(7), Line(8)
    links.heard(old, 1, 40)
    links.heard(new, 1, 41)
    old.close()
    assert lost == []
    new.close()
    assert lost == [(1, 41)]
