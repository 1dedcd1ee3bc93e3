"""Which requests of a connection are served, state by state and key by key."""

from __future__ import annotations

import pytest

from penstock.protocol.registry import APIS
from penstock.server.reception.gate import TABLE, Gate, Hold, State, Verdict

LOGIN_KEYS = {17, 36}


def expected(state: State, key: int, *, has_logins: bool) -> Verdict:
    """The rule in other words than the table's."""
    if state in (State.CLOSING, State.CLOSED, State.TLS_HANDSHAKE):
        return Verdict.DROP
    if state is State.NEW:
        return Verdict.KEEP
    if not has_logins or (state is State.AUTHENTICATED and key not in LOGIN_KEYS):
        return Verdict.SERVE
    return Verdict.LOGIN


def test_every_state_has_its_row() -> None:
    assert set(TABLE) == set(State)


@pytest.mark.parametrize("has_logins", [False, True])
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("key", [*sorted(APIS), 999])
def test_the_gate(state: State, key: int, has_logins: bool) -> None:
    gate = Gate(has_logins=has_logins)
    gate.enter(state)
    assert gate.verdict(key) is expected(state, key, has_logins=has_logins)
    assert not gate.open or gate.verdict(key) is Verdict.SERVE


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("reason", [Hold.MUTED, Hold.WORKING, Hold.MUTED | Hold.WORKING])
def test_while_there_is_a_reason_to_hold_requests_they_are_kept_or_dropped(state: State, reason: Hold) -> None:
    gate = Gate(has_logins=True)
    gate.enter(state)
    gate.hold(reason)
    dropped = state in (State.CLOSING, State.CLOSED, State.TLS_HANDSHAKE)
    assert {gate.verdict(key) for key in APIS} == {Verdict.DROP if dropped else Verdict.KEEP}
    assert not gate.open


def test_requests_wait_until_the_last_reason_is_gone() -> None:
    gate = Gate()
    gate.enter(State.AUTHENTICATED)
    assert gate.open
    gate.hold(Hold.MUTED)
    gate.hold(Hold.WORKING)
    gate.release(Hold.MUTED)
    assert (gate.open, gate.verdict(0), gate.holds) == (False, Verdict.KEEP, Hold.WORKING)
    gate.release(Hold.WORKING)
    assert (gate.open, gate.verdict(0)) == (True, Verdict.SERVE)


def test_a_connection_that_is_gone_does_not_come_back() -> None:
    gate = Gate()
    gate.enter(State.CLOSED)
    with pytest.raises(AssertionError):
        gate.enter(State.AUTHENTICATED)


@pytest.mark.parametrize("state", [State.NEW, State.AUTHENTICATED, State.REAUTHENTICATING])
def test_a_connection_that_is_closing_does_not_open_again(state: State) -> None:
    gate = Gate(has_logins=True)
    gate.enter(State.CLOSING)
    gate.enter(state)
    assert gate.state is State.CLOSING
    gate.enter(State.CLOSED)
    assert gate.state is State.CLOSED
