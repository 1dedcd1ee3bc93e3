"""Which requests are served."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from penstock.protocol.messages.heartbeat import HeartbeatResponse
from penstock.protocol.registry import APIS
from penstock.server.reception.dispatch import SERVED, Dispatch


def test_what_is_advertised_is_what_is_served_with_two_exceptions() -> None:
    told = {key: (first, last) for key, first, last in Dispatch().advertised()}
    assert sorted(told) == sorted(api.key for api in APIS.values() if api.name in SERVED)
    assert told[0] == (0, 13)
    assert told[22] == (0, 5)
    others = {key: versions for key, versions in told.items() if key not in (0, 22)}
    assert others == {key: (APIS[key].min, APIS[key].max) for key in others}


def test_an_unstable_version_is_there_when_asked_for() -> None:
    assert (22, 0, 6) in Dispatch(unstable=True).advertised()


@pytest.mark.parametrize(("key", "version"), [(0, 2), (0, 14), (22, 6), (71, 0), (3, -1), (9999, 0)])
def test_what_is_not_served_has_no_route(key: int, version: int) -> None:
    assert Dispatch().route(key, version) is None


def test_a_handler_is_imported_at_its_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("penstock.server.handlers.heartbeat")
    module.handle = lambda _ctx, _request: HeartbeatResponse()  # type: ignore[attr-defined]
    dispatch = Dispatch(("Heartbeat",))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    route = dispatch.route(12, 4)
    assert route is not None
    assert route.handle is module.handle
    assert dispatch.route(12, 4) is route
    assert str(route) == "Heartbeat v4"


def test_an_override_reaches_routes_that_were_used_before() -> None:
    def handle(_ctx: Any, _request: Any) -> HeartbeatResponse:
        return HeartbeatResponse()

    dispatch = Dispatch(("Heartbeat",), handlers={"Heartbeat": handle})
    old = dispatch.route(12, 3)
    assert old is not None
    dispatch.override("Heartbeat", lambda inner: lambda ctx, request: (inner(ctx, request), "wrapped"))
    new = dispatch.route(12, 4)
    assert new is not None
    expected = (HeartbeatResponse(), "wrapped")
    assert (old.handle(None, None), new.handle(None, None)) == (expected, expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "version"), [(0, 3), (0, 8), (0, 9), (0, 12), (1, 4), (1, 12), (12, 1), (12, 4), (3, 12)]
)
def test_the_pause_is_written_into_a_reply_that_was_made_whole(key: int, version: int) -> None:
    dispatch = Dispatch(handlers={APIS[key].name: lambda _ctx, _request: HeartbeatResponse()})
    route = dispatch.route(key, version)
    assert route is not None
    assert route.has_throttle_time
    frame = b"".join(bytes(part) for part in route.encode(5, route.make_response()))  # type: ignore[arg-type]
    told = b"".join(bytes(part) for part in route.encode(5, route.make_response(throttle_time_ms=77)))  # type: ignore[arg-type]
    assert route.throttled(frame, 77) == told


def test_a_version_without_a_place_for_the_pause_stays_as_it_is() -> None:
    route = Dispatch(handlers={"Heartbeat": lambda _ctx, _request: HeartbeatResponse()}).route(12, 0)
    assert route is not None
    frame = b"".join(bytes(part) for part in route.encode(5, route.make_response()))  # type: ignore[arg-type]
    assert route.throttled(frame, 77) == frame
