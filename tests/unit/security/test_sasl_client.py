"""The client's side of a SASL connection, against the server's and against answers nobody should give."""

from __future__ import annotations

import pytest

from penstock.model.errors import SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION
from penstock.model.ids import Millis
from penstock.model.secret import Secret
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.exchange import ClientExchange, Derive, ServerExchange
from penstock.security.oauth.messages import BadToken, GoodToken, OAuthClient, OAuthServer
from penstock.security.plain import PlainClient, PlainServer, PlainUsers
from penstock.security.sasl_client import Effect, Failed, Ready, SaslClient, Send, Work
from penstock.security.sasl_server import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Fail,
    Frame,
    Limits,
    Mechanisms,
    Moment,
    Reply,
    SaslServer,
)
from penstock.security.sasl_server import Work as ServerWork
from penstock.security.scram.client import ScramClient
from penstock.security.scram.keys import SHA_256, SHA_512
from tests.unit.security.scram.exchanges import Known
from tests.unit.security.scram.exchanges import server as scram_server

NOW = Moment(Millis(1_700_000_000_000), 1_000.0)
KNOWN = Known()
KNOWN.add(SHA_256, "alice", "a")
KNOWN.add(SHA_512, "alice", "a")


def talk(client: SaslClient, server: SaslServer, exchange: ClientExchange, token_is_good: bool = True) -> Effect:
    """What the client comes to, everything carried between the two as it would be by a connection."""
    effect: Effect = client.begin(exchange)
    while True:
        match effect:
            case Send(request):
                answer = _answer(server, request, token_is_good)
                effect = client.replied(answer, NOW.mono_ms)
            case Work(job):
                effect = client.worked(job.run())
            case Ready() | Failed():
                return effect


def _answer(
    server: SaslServer, request: SaslHandshakeRequest | SaslAuthenticateRequest, token_is_good: bool
) -> SaslHandshakeResponse | SaslAuthenticateResponse:
    key, version = (SASL_HANDSHAKE, 1) if isinstance(request, SaslHandshakeRequest) else (SASL_AUTHENTICATE, 2)
    effects = server.heard(Frame(key, version, body=request), NOW)
    if isinstance(effects[0], ServerWork):
        job = effects[0].job
        verdict = GoodToken("alice", Millis(NOW.wall_ms + 10_000)) if token_is_good else BadToken("old")
        effects = server.worked(job.run() if isinstance(job, Derive) else verdict, NOW)
    answer = effects[0]
    if isinstance(answer, Reply):
        return answer.message
    assert isinstance(answer, Fail)
    assert isinstance(answer.reply, (SaslHandshakeResponse, SaslAuthenticateResponse))
    return answer.reply


def offering(name: str, max_reauth_ms: int = 0) -> SaslServer:
    def begin() -> ServerExchange:
        match name:
            case "PLAIN":
                return PlainServer(PlainUsers({"alice": Secret("a")}))
            case "OAUTHBEARER":
                return OAuthServer()
        return scram_server(SHA_256 if name == SHA_256.name else SHA_512, KNOWN)

    return SaslServer(Mechanisms({name: begin}, {name: max_reauth_ms}), Limits())


def exchange_of(name: str, password: str = "a") -> ClientExchange:
    match name:
        case "PLAIN":
            return PlainClient("alice", Secret(password))
        case "OAUTHBEARER":
            return OAuthClient(Secret("e30.e30.e30"))
    return ScramClient(SHA_256 if name == SHA_256.name else SHA_512, "alice", Secret(password), "nonce")


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_logs_in_and_again(name: str) -> None:
    client, server = SaslClient(name, share=0.5), offering(name, max_reauth_ms=1_000)
    ready = talk(client, server, exchange_of(name))
    assert ready == Ready(NOW.mono_ms + 900)
    assert not client.busy
    assert talk(client, server, exchange_of(name)) == ready


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_login_that_fails_is_told_why(name: str) -> None:
    failed = talk(SaslClient(name, 0.0), offering(name), exchange_of(name, "wrong"), token_is_good=False)
    assert isinstance(failed, Failed)
    assert failed.error == SASL_AUTHENTICATION_FAILED
    words = {"PLAIN": "Invalid username", "OAUTHBEARER": "invalid_token"}.get(name, f"SASL mechanism {name}")
    assert words in failed.why


@pytest.mark.parametrize(("share", "at"), [(0.0, 850), (0.5, 900), (0.999, 949.9)])
def test_clients_log_in_again_at_85_to_95_percent_of_the_lifetime(share: float, at: float) -> None:
    client = SaslClient("PLAIN", share)
    ready = talk(client, offering("PLAIN", max_reauth_ms=1_000), exchange_of("PLAIN"))
    assert isinstance(ready, Ready)
    assert ready.again_at_ms == pytest.approx(NOW.mono_ms + at)


def test_a_session_without_an_end_is_not_begun_again() -> None:
    assert talk(SaslClient("PLAIN", 0.5), offering("PLAIN"), exchange_of("PLAIN")) == Ready(None)


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are() -> None:
    failed = talk(SaslClient("SCRAM-SHA-256", 0.5), offering("PLAIN"), exchange_of("SCRAM-SHA-256"))
    assert failed == Failed(UNSUPPORTED_SASL_MECHANISM, "the broker does not offer SCRAM-SHA-256; it offers PLAIN")


def test_a_broker_without_a_reason_fails_all_the_same() -> None:
    client = SaslClient("PLAIN", 0.5)
    client.begin(exchange_of("PLAIN"))
    failed = client.replied(SaslHandshakeResponse(error_code=35), 0)
    assert failed == Failed(UNSUPPORTED_VERSION, "the broker refused the SASL handshake")
    client = SaslClient("PLAIN", 0.5)
    client.begin(exchange_of("PLAIN"))
    client.replied(SaslHandshakeResponse(), 0)
    failed = client.replied(SaslAuthenticateResponse(error_code=58, error_message=None), 0)
    assert failed == Failed(SASL_AUTHENTICATION_FAILED, "the broker did not say why")


def test_a_server_that_skips_its_proof_is_not_believed() -> None:
    client = SaslClient("SCRAM-SHA-256", 0.5)
    client.begin(exchange_of("SCRAM-SHA-256"))
    client.replied(SaslHandshakeResponse(), 0)
    failed = client.replied(SaslAuthenticateResponse(), 0)
    assert isinstance(failed, Failed)


def test_nothing_else_is_sent_while_a_login_is_under_way() -> None:
    client = SaslClient("PLAIN", 0.5)
    assert not client.busy
    client.begin(exchange_of("PLAIN"))
    assert client.busy
    with pytest.raises(AssertionError):
        client.begin(exchange_of("PLAIN"))


def test_nothing_that_prints_shows_a_password() -> None:
    client = SaslClient("PLAIN", 0.5)
    shown = [client.begin(exchange_of("PLAIN", "swordfish")), client.replied(SaslHandshakeResponse(), 0), client]
    assert "swordfish" not in repr(shown)
