"""The server's side of a SASL connection: every state and frame, in both modes of framing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import ILLEGAL_SASL_STATE
from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.model.security import Principal
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.exchange import Accepted, CheckToken, Derive, Identity, Rejected, ServerStep, Token
from penstock.security.oauth.messages import BadToken, ClientFirst, GoodToken, OAuthServer
from penstock.security.plain import PlainServer, PlainUsers
from penstock.security.sasl_server import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    BareReply,
    Close,
    Effect,
    Fail,
    Frame,
    Limits,
    LoggedIn,
    Mechanisms,
    Moment,
    RefuseInKind,
    Reply,
    SaslServer,
    Serve,
    TellVersions,
    Work,
    session_lifetime_ms,
)

WALL = 1_700_000_000_000
PRODUCE = 0
ENABLED = ["OAUTHBEARER", "PLAIN", "TWO"]


def at(ms: float) -> Moment:
    return Moment(Millis(int(WALL + ms)), 5_000.0 + ms)


class TwoSteps:
    """A mechanism that takes a second token and some work; what it hears is who logs in."""

    def __init__(self) -> None:
        self.step = 0

    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep:
        self.step += 1
        if self.step == 1:
            return Token(b"more")
        return Derive("sha256", token, b"", 1)

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        assert isinstance(result, bytes)
        return Accepted(b"welcome", Identity(result.decode())) if result else Rejected("nobody", name="x")


def new(max_reauth_ms: int = 0, limits: Limits | None = None) -> SaslServer:
    users = PlainUsers({"alice": Secret("a"), "bob": Secret("b")})
    begin = {"PLAIN": lambda: PlainServer(users), "TWO": TwoSteps, "OAUTHBEARER": OAuthServer}
    return SaslServer(Mechanisms(begin, dict.fromkeys(begin, max_reauth_ms)), limits or Limits())


def handshake(mechanism: str, version: int = 1) -> Frame:
    return Frame(SASL_HANDSHAKE, version, body=SaslHandshakeRequest(mechanism=mechanism))


def authenticate(token: bytes, version: int = 2) -> Frame:
    return Frame(SASL_AUTHENTICATE, version, body=SaslAuthenticateRequest(auth_bytes=token))


VERSIONS = Frame(API_VERSIONS, 4)
SHAKEN = Reply(SaslHandshakeResponse(mechanisms=ENABLED))


def logged_in(max_reauth_ms: int = 0) -> SaslServer:
    server = new(max_reauth_ms)
    server.heard(handshake("PLAIN"), at(0))
    server.heard(authenticate(b"\0alice\0a"), at(0))
    assert server.complete
    return server


def failure(effects: list[Effect]) -> SaslAuthenticateResponse:
    (failed,) = effects
    assert isinstance(failed, Fail)
    assert failed.delay_ms == 100
    assert isinstance(failed.reply, SaslAuthenticateResponse)
    return failed.reply


def test_a_login_by_version_1() -> None:
    server = new()
    assert server.frame_bytes_max == 524_288
    assert server.heard(VERSIONS, at(0)) == [TellVersions(True)]
    assert server.heard(handshake("PLAIN"), at(1)) == [SHAKEN]
    assert not server.expects_bare
    assert server.heard(authenticate(b"\0alice\0a"), at(2)) == [
        Reply(SaslAuthenticateResponse(error_message=None)),
        LoggedIn(Principal("User", "alice"), Identity("alice"), "PLAIN", 0, again=False),
    ]
    assert server.principal == Principal("User", "alice")
    assert server.frame_bytes_max is None
    assert server.session_ends_ms == float("inf")


def test_a_login_by_version_0_has_bare_frames() -> None:
    server = new()
    assert server.heard(handshake("TWO", version=0), at(0)) == [SHAKEN]
    assert server.expects_bare
    assert server.heard_bare(b"hello", at(0)) == [BareReply(b"more")]
    assert server.heard_bare(b"alice", at(0)) == [Work(Derive("sha256", b"alice", b"", 1))]
    assert server.worked(b"alice", at(0)) == [
        BareReply(b"welcome"),
        LoggedIn(Principal("User", "alice"), Identity("alice"), "TWO", 0, again=False),
    ]
    assert not server.expects_bare


def test_a_failure_in_bare_frames_has_no_words() -> None:
    server = new()
    server.heard(handshake("PLAIN", version=0), at(0))
    (failed,) = server.heard_bare(b"\0alice\0wrong", at(0))
    assert failed == Fail(100, "Authentication failed: Invalid username or password", None, "alice")


def test_a_request_where_a_bare_token_is_expected_closes() -> None:
    server = new()
    server.heard(handshake("PLAIN", version=0), at(0))
    assert isinstance(server.heard(authenticate(b"\0alice\0a"), at(0))[0], Close)


def test_versions_may_be_asked_again_only_after_one_that_nobody_serves() -> None:
    server = new()
    unserved = Frame(API_VERSIONS, 99, supported=False)
    assert [server.heard(unserved, at(0)) for _ in range(3)] == [[TellVersions(False)]] * 3
    assert server.heard(VERSIONS, at(0)) == [TellVersions(True)]
    assert isinstance(server.heard(VERSIONS, at(0))[0], Close)
    again = new()
    assert isinstance([again.heard(unserved, at(0)) for _ in range(4)][-1][0], Close)


@pytest.mark.parametrize("key", [PRODUCE, 1, 3, SASL_AUTHENTICATE, 99, -1])
def test_nothing_else_is_heard_before_the_handshake(key: int) -> None:
    for asked_versions in (False, True):
        server = new()
        if asked_versions:
            server.heard(VERSIONS, at(0))
        assert isinstance(server.heard(Frame(key, 0), at(0))[0], Close)


@pytest.mark.parametrize("key", [PRODUCE, API_VERSIONS, SASL_HANDSHAKE, 99])
def test_another_request_within_a_login_is_refused_in_its_own_shape(key: int) -> None:
    server = new()
    server.heard(handshake("PLAIN"), at(0))
    (failed,) = server.heard(Frame(key, 0, body=SaslHandshakeRequest() if key == SASL_HANDSHAKE else None), at(0))
    assert isinstance(failed, Fail)
    assert (failed.delay_ms, failed.reply) == (100, RefuseInKind(ILLEGAL_SASL_STATE))


@pytest.mark.parametrize("mechanism", ["GSSAPI", "", "plain", "PLAIN\0", "x" * 10_000])
def test_a_mechanism_that_is_not_enabled_is_told_which_are(mechanism: str) -> None:
    (failed,) = new().heard(handshake(mechanism), at(0))
    assert failed == Fail(
        100, "a mechanism that is not enabled here", SaslHandshakeResponse(error_code=33, mechanisms=ENABLED)
    )


@pytest.mark.parametrize("key", [SASL_HANDSHAKE, SASL_AUTHENTICATE])
def test_what_cannot_be_read_closes(key: int) -> None:
    server = new()
    if key == SASL_AUTHENTICATE:
        server.heard(handshake("PLAIN"), at(0))
    assert isinstance(server.heard(Frame(key, 77, supported=False), at(0))[0], Close)


def test_failures_are_told_in_kafkas_words() -> None:
    server = new()
    server.heard(handshake("PLAIN"), at(0))
    told = failure(server.heard(authenticate(b"\0alice\0wrong"), at(0)))
    assert (told.error_code, told.error_message) == (58, "Authentication failed: Invalid username or password")
    server = new()
    server.heard(handshake("TWO"), at(0))
    server.heard(authenticate(b""), at(0))
    server.heard(authenticate(b""), at(0))
    told = failure(server.worked(b"", at(0)))
    general = "Authentication failed during authentication due to invalid credentials with SASL mechanism TWO"
    assert (told.error_code, told.error_message) == (58, general)


def test_a_refused_bearer_token_fails_after_the_client_has_heard_it() -> None:
    server = new()
    server.heard(handshake("OAUTHBEARER"), at(0))
    first = ClientFirst("e30.e30.e30").data
    assert server.heard(authenticate(first), at(0)) == [Work(CheckToken("e30.e30.e30"))]
    (challenge,) = server.worked(BadToken("expired"), at(0))
    invalid = '{"status":"invalid_token"}'
    assert challenge == Reply(SaslAuthenticateResponse(error_message=None, auth_bytes=invalid.encode()))
    told = failure(server.heard(authenticate(b"\x01"), at(0)))
    assert (told.error_code, told.error_message) == (58, invalid)


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_in_ms", "lifetime_ms"),
    [
        (0, None, None),
        (0, 500, 500),
        (1_000, None, 1_000),
        (1_000, 500, 500),
        (1_000, 5_000, 1_000),
        (0, -5, 0),
        (9, -5, 0),
    ],
)
def test_a_session_lasts_as_long_as_listener_and_credential_allow(
    max_reauth_ms: int, expires_in_ms: int | None, lifetime_ms: int | None
) -> None:
    ends = None if expires_in_ms is None else Millis(WALL + expires_in_ms)
    assert session_lifetime_ms(max_reauth_ms, ends, Millis(WALL)) == lifetime_ms


def test_a_client_is_told_how_long_its_session_lasts() -> None:
    server = new(max_reauth_ms=60_000)
    server.heard(handshake("OAUTHBEARER"), at(0))
    server.heard(authenticate(ClientFirst("e30.e30.e30").data), at(0))
    replied, logged = server.worked(GoodToken("alice", Millis(WALL + 40_000)), at(10_000))
    assert replied == Reply(SaslAuthenticateResponse(error_message=None, session_lifetime_ms=30_000))
    assert isinstance(logged, LoggedIn)
    assert logged.lifetime_ms == 30_000
    assert server.session_ends_ms == at(40_000).mono_ms


def test_requests_are_served_until_the_session_ends_and_not_after() -> None:
    server = logged_in(max_reauth_ms=1_000)
    fetch = Frame(1, 12)
    assert server.heard(fetch, at(999)) == [Serve()]
    assert server.heard(VERSIONS, at(1_000)) == [Serve()]
    assert server.heard(fetch, at(1_001)) == [Close("the session has ended", expired=True)]


def test_a_session_may_begin_again_even_after_its_end() -> None:
    server = logged_in(max_reauth_ms=1_000)
    assert server.heard(handshake("PLAIN"), at(50_000)) == [SHAKEN]
    assert server.frame_bytes_max == 524_288
    effects = server.heard(authenticate(b"\0alice\0a"), at(50_100))
    assert effects == [
        Reply(SaslAuthenticateResponse(error_message=None, session_lifetime_ms=1_000)),
        LoggedIn(Principal("User", "alice"), Identity("alice"), "PLAIN", 1_000, again=True),
    ]
    assert server.session_ends_ms == at(51_100).mono_ms


def test_a_session_begins_again_at_most_once_a_second() -> None:
    server = logged_in(max_reauth_ms=10_000)
    for second in range(3):
        assert server.heard(handshake("PLAIN"), at(second * 1_000)) == [SHAKEN]
        server.heard(authenticate(b"\0alice\0a"), at(second * 1_000 + 1))
        assert server.heard(handshake("PLAIN"), at(second * 1_000 + 999)) == [RefuseInKind(ILLEGAL_SASL_STATE)]


def test_a_handshake_too_early_after_the_end_closes() -> None:
    server = logged_in(max_reauth_ms=100)
    server.heard(handshake("PLAIN"), at(0))
    server.heard(authenticate(b"\0alice\0a"), at(0))
    assert server.heard(handshake("PLAIN"), at(500)) == [Close("the session has ended", expired=True)]


def test_without_an_end_nobody_logs_in_again() -> None:
    server = logged_in()
    assert server.heard(handshake("PLAIN"), at(99_999)) == [RefuseInKind(ILLEGAL_SASL_STATE)]
    assert server.heard(authenticate(b"x"), at(99_999)) == [RefuseInKind(ILLEGAL_SASL_STATE)]
    assert server.heard(Frame(PRODUCE, 9), at(99_999)) == [Serve()]


def test_nobody_becomes_another_by_logging_in_again() -> None:
    server = logged_in(max_reauth_ms=1_000)
    server.heard(handshake("PLAIN"), at(500))
    told = failure(server.heard(authenticate(b"\0bob\0b"), at(500)))
    assert told.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"


def test_the_mechanism_stays_the_same_which_is_said_at_the_first_token() -> None:
    server = logged_in(max_reauth_ms=1_000)
    assert server.heard(handshake("TWO"), at(500)) == [SHAKEN]
    told = failure(server.heard(authenticate(b"x"), at(500)))
    assert told.error_message == (
        "SASL mechanism 'TWO' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )


def test_a_failure_to_log_in_again_says_so() -> None:
    server = SaslServer(Mechanisms({"TWO": TwoSteps}, {"TWO": 1_000}), Limits())
    for moment, name in ((0, b"alice"), (2_000, b"")):
        server.heard(handshake("TWO"), at(moment))
        server.heard(authenticate(b""), at(moment))
        server.heard(authenticate(b""), at(moment))
        effects = server.worked(name, at(moment))
    general = "Authentication failed during re-authentication due to invalid credentials with SASL mechanism TWO"
    assert failure(effects).error_message == general


def test_no_request_is_served_while_a_session_begins_again() -> None:
    server = logged_in(max_reauth_ms=1_000)
    server.heard(handshake("PLAIN"), at(500))
    (failed,) = server.heard(Frame(PRODUCE, 9), at(500))
    assert isinstance(failed, Fail)
    assert failed.reply == RefuseInKind(ILLEGAL_SASL_STATE)


def test_cve_2022_34917_frames_before_the_login_are_bounded_in_size_and_number() -> None:
    endless = SaslServer(Mechanisms({"E": lambda: _Endless()}, {}), Limits(frame_bytes_max=1_000, frames_max=5))
    endless.heard(handshake("E"), at(0))
    assert endless.frame_bytes_max == 1_000
    effects = [endless.heard(authenticate(b""), at(0)) for _ in range(5)]
    assert [type(effect[0]) for effect in effects] == [Reply] * 4 + [Close]


class _Endless:
    def heard(self, token: bytes, wall_ms: Millis) -> ServerStep:
        return Token(b"")

    def worked(self, result: object, wall_ms: Millis) -> ServerStep:
        raise AssertionError


def test_nothing_that_prints_shows_a_password() -> None:
    frame = authenticate(b"\0alice\0swordfish")
    assert "swordfish" not in repr(frame)


_FRAMES = st.sampled_from(
    [
        *(VERSIONS, Frame(API_VERSIONS, 99, supported=False), Frame(PRODUCE, 9), Frame(1, 12)),
        *(handshake("PLAIN"), handshake("PLAIN", 0), handshake("TWO"), handshake("NO"), Frame(SASL_HANDSHAKE, 9)),
        *(authenticate(b"\0alice\0a"), authenticate(b"\0alice\0x"), authenticate(b"\0bob\0b")),
        Frame(SASL_AUTHENTICATE, 9),
    ]
)


@given(
    frames=st.lists(st.tuples(_FRAMES, st.integers(0, 2_000)), max_size=12), max_reauth_ms=st.sampled_from([0, 1_500])
)
def test_nobody_is_served_who_has_not_logged_in(frames: list[tuple[Frame, int]], max_reauth_ms: int) -> None:
    """Whatever comes in whatever order: requests are served only between a login and the end of its session."""
    server = new(max_reauth_ms)
    moments = itertools.accumulate(wait for _, wait in frames)
    session: tuple[Principal, float] | None = None
    for (frame, _), moment in zip(frames, moments, strict=True):
        now = at(moment)
        if server.expects_bare:
            effects: list[Any] = server.heard_bare(b"\0alice\0a", now)
        else:
            effects = server.heard(frame, now)
        if isinstance(effects[0], Work):
            effects = server.worked(b"alice", now)
        assert effects
        for effect in effects:
            if isinstance(effect, LoggedIn):
                assert session is None or session[0] == effect.principal
                session = (effect.principal, now.mono_ms + effect.lifetime_ms if max_reauth_ms else float("inf"))
            if isinstance(effect, Serve):
                assert session is not None
                assert now.mono_ms <= session[1]
        if isinstance(effects[-1], (Fail, Close)):
            return


def test_a_connection_that_failed_hears_nothing_more() -> None:
    server = new()
    server.heard(Frame(PRODUCE, 0), at(0))
    with pytest.raises(AssertionError):
        server.heard(VERSIONS, at(0))
