"""Whom an identity provider knows, or a proxy names, comes in as that person of the cluster and nobody else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from penstock.blocking import Admin
from penstock.client.admin import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.console.settings import ConsoleRefused, ConsoleSettings, OidcSettings
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, cluster_address, running, settings_for
from tests.identity_provider import AUDIENCE, ISSUER, IdentityProvider, identity_provider
from tests.patience import within


class PeopleProvider(IdentityProvider):
    """Knows people too: gives a code for whoever is at the browser, and a token for the code."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.at_the_browser = "carla"
        self.codes: dict[str, tuple[str, str]] = {}

    def answer(self, path: str, authorization: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        base = f"http://127.0.0.1:{self.port}"
        if path == "/.well-known/openid-configuration":
            return 200, {"authorization_endpoint": f"{base}/authorize", "token_endpoint": f"{base}/token"}
        if form.get("grant_type") == "authorization_code":
            name, challenge = self.codes.pop(form["code"], ("", ""))
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != challenge:
                return 400, {"error": "invalid_grant"}
            return 200, {"access_token": self.token(name), "token_type": "Bearer"}
        return super().answer(path, authorization, form)

    def authorize(self, url: str) -> tuple[str, str]:
        """What a person's consent at this address gives a browser: where it goes back to, with state and code."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        code = f"code-{len(self.codes)}-{self.at_the_browser}"
        self.codes[code] = (self.at_the_browser, query["code_challenge"])
        return query["redirect_uri"], f"state={query['state']}&code={code}"


@pytest.fixture(scope="module")
def provider() -> Iterator[PeopleProvider]:
    with identity_provider(PeopleProvider) as found:
        assert isinstance(found, PeopleProvider)
        yield found


@pytest.fixture(scope="module")
def bearers(provider: PeopleProvider) -> Iterator[EmbeddedBroker]:
    """A node that takes access tokens, and delegation tokens by SCRAM."""
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.token.endpoint.url": provider.tokens_url,
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": provider.clients["alice"],
        "penstock.sasl.oauthbearer.allowed.urls": f"{provider.keys_url},{provider.tokens_url}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "delegation.token.secret.key": "the same on all nodes",
    }
    with broker(settings) as found:
        yield found


def at(node: EmbeddedBroker, provider: PeopleProvider) -> dict[str, Any]:
    return {"bootstrap_servers": node.bootstrap_servers, "token_provider": lambda: provider.token("console")}


@pytest.fixture(scope="module")
def console(bearers: EmbeddedBroker, provider: PeopleProvider) -> Iterator[RunningConsole]:
    oidc = OidcSettings(f"http://127.0.0.1:{provider.port}", "penstock-console")
    with running(settings_for(at(bearers, provider), login="oidc", oidc=oidc), ready_path="session") as found:
        yield found


def browser(console: RunningConsole) -> httpx.Client:
    return httpx.Client(base_url=console.address, timeout=within(30), headers={"x-penstock": "1"})


def test_whom_the_provider_knows_comes_in_as_that_person(console: RunningConsole, provider: PeopleProvider) -> None:
    with browser(console) as client:
        assert client.get("api/v1/session").json()["oidc"] == {"name": "single sign-on"}
        sent = client.get("api/v1/login/oidc", params={"next": "/topics?q=a"})
        assert sent.status_code == 302
        back, query = provider.authorize(sent.headers["location"])
        assert back == f"{console.address}api/v1/login/oidc/back"
        came = client.get(f"{back}?{query}")
        assert (came.status_code, came.headers["location"]) == (302, "/topics?q=a")
        assert client.get("api/v1/session").json()["person"]["principal"] == "User:carla"
        assert client.get("api/v1/topics").status_code == 200
        again = client.get(f"{back}?{query}")
        assert again.headers["location"] == "/login?error=wrong_login", "a way back is gone once"


def test_a_way_back_belongs_to_the_browser_that_was_sent(console: RunningConsole, provider: PeopleProvider) -> None:
    """Else somebody could have another log in as them."""
    with browser(console) as attacker, browser(console) as victim:
        sent = attacker.get("api/v1/login/oidc")
        back, query = provider.authorize(sent.headers["location"])
        came = victim.get(f"{back}?{query}")
        assert came.headers["location"] == "/login?error=wrong_login"
        assert victim.get("api/v1/session").json()["person"] is None


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_login_ends_here_and_nowhere_else(console: RunningConsole, provider: PeopleProvider, target: str) -> None:
    with browser(console) as client:
        sent = client.get("api/v1/login/oidc", params={"next": target})
        back, query = provider.authorize(sent.headers["location"])
        assert client.get(f"{back}?{query}").headers["location"] == "/"


def test_a_token_that_brokers_do_not_take_lets_nobody_in(console: RunningConsole, provider: PeopleProvider) -> None:
    with browser(console) as client:
        sent = client.get("api/v1/login/oidc")
        back, query = provider.authorize(sent.headers["location"])
        provider.lifetime_s = -100.0
        try:
            came = client.get(f"{back}?{query}")
        finally:
            provider.lifetime_s = 600.0
        assert came.headers["location"] == "/login?error=wrong_login"


def test_behind_tls_the_way_back_and_cookies_are_of_tls(bearers: EmbeddedBroker, provider: PeopleProvider) -> None:
    oidc = OidcSettings(f"http://127.0.0.1:{provider.port}", "penstock-console")
    settings = settings_for(at(bearers, provider), login="oidc", oidc=oidc, behind_tls=True)
    with running(settings, ready_path="session") as console, browser(console) as client:
        sent = client.get("api/v1/login/oidc")
        back, query = provider.authorize(sent.headers["location"])
        assert back == f"{console.address.replace('http:', 'https:')}api/v1/login/oidc/back"
        binding = sent.headers["set-cookie"]
        assert binding.startswith("__Host-penstock-login=")
        assert "Secure" in binding
        shown = {"cookie": binding.partition(";")[0]}
        came = client.get(f"api/v1/login/oidc/back?{query}", headers=shown)
        assert came.headers["location"] == "/"
        given = [each for each in came.headers.get_list("set-cookie") if each.startswith("__Host-penstock=")]
        assert len(given) == 1
        assert "Secure" in given[0]


def test_a_script_shows_an_access_token(console: RunningConsole, provider: PeopleProvider) -> None:
    shown = {"authorization": f"Bearer {provider.token('carla')}"}
    told = console.client.get("api/v1/session", headers=shown).json()
    assert told["person"]["principal"] == "User:carla"
    assert console.client.get("api/v1/topics", headers=shown).status_code == 200
    wrong = console.client.get("api/v1/topics", headers={"authorization": f"{shown['authorization']}x"})
    assert wrong.status_code == 401


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found, Admin(**found.client_settings) as admin:
        console = "console"
        admin.alter_scram_users([ScramPassword(console, "of the console itself")]).checked()
        rules = [
            Acl(f"User:{console}", "create_tokens", "user", "User:dora"),
            Acl(f"User:{console}", "create_tokens", "user", "User:admin"),
            Acl(f"User:{console}", "describe", "topic", "*"),
            Acl(f"User:{console}", "describe", "group", "*"),
            Acl(f"User:{console}", "describe", "cluster"),
            Acl("User:dora", "all", "topic", "*"),
            Acl("User:dora", "all", "cluster"),
        ]
        admin.create_acls(rules).checked()
        admin.create_topic("doras", 1, 1)
        yield found


def proxied(node: EmbeddedBroker, **more: Any) -> ConsoleSettings:
    own = {**node.client_settings, "username": "console", "password": "of the console itself"}
    return settings_for(own, login="proxy", proxy_header="X-User", **more)


def test_whom_a_proxy_names_comes_in_but_no_super_user(secured: EmbeddedBroker) -> None:
    with running(proxied(secured), ready_path="session") as console:

        def get(user: str | None) -> httpx.Response:
            return console.client.get("api/v1/topics", headers={"x-user": user} if user is not None else {})

        known = get("dora")
        assert (known.status_code, [row["name"] for row in known.json()["items"]]) == (200, ["doras"])
        who = console.client.get("api/v1/session", headers={"x-user": "dora"}).json()
        assert who["person"]["principal"] == "User:dora"
        assert get("admin").json()["error"]["code"] == "forbidden", "a super user, whom the console may make tokens for"
        assert get("emil").status_code in (400, 403), "nobody whom it may make tokens for"
        assert [get(name).status_code for name in (None, "", "a,b", "x" * 300)] == [401] * 4


def test_whoever_is_refused_leaves_no_token_behind(secured: EmbeddedBroker) -> None:
    """At every request of a page anew it would be one that lasts for half a day, and brokers keep them in memory."""
    with running(proxied(secured), ready_path="session") as console, Admin(**secured.client_settings) as admin:
        before = {token.token_id for token in admin.describe_tokens()}
        for _ in range(20):
            assert console.client.get("api/v1/topics", headers={"x-user": "admin"}).status_code == 403
        assert {token.token_id for token in admin.describe_tokens()} - before == set()


def test_a_header_that_comes_twice_names_nobody(secured: EmbeddedBroker) -> None:
    with running(proxied(secured), ready_path="session") as console:
        twice = console.client.get("api/v1/topics", headers=[("X-User", "dora"), ("x-user", "dora")])
        assert (twice.status_code, twice.json()["error"]["code"]) == (401, "not_logged_in")


def test_where_a_request_came_from_is_the_proxys_word(secured: EmbeddedBroker, tmp_path: Path) -> None:
    """Or everybody behind it would pay for what one of them guesses. What came before the proxy is anybody's word."""
    audit = tmp_path / "audit.log"
    with running(proxied(secured, audit_log=str(audit)), ready_path="session") as console:
        told = {"x-user": "dora", "x-forwarded-for": "10.9.9.9, 10.1.2.3, 127.0.0.1"}
        assert console.client.get("api/v1/topics", headers=told).status_code == 200
        told = {"x-user": "emil", "x-forwarded-for": "nowhere"}
        assert console.client.get("api/v1/topics", headers=told).status_code in (400, 403)
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["who"], line["from"], line["outcome"]) for line in lines] == [
        ("User:dora", "10.1.2.3", "done"),
        ("User:emil", "127.0.0.1", "failed"),
    ]


def test_only_the_proxy_is_believed(secured: EmbeddedBroker) -> None:
    with running(proxied(secured, proxy_from=("10.0.0.0/8",)), ready_path="session") as console:
        reply = console.client.get("api/v1/topics", headers={"x-user": "dora"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "not_logged_in")


def test_beyond_the_loopback_a_login_and_tls_are_needed() -> None:
    clusters = (cluster_address({"bootstrap_servers": "localhost:9092"}),)
    with pytest.raises(ConsoleRefused, match="logins would go over the network as they are"):
        ConsoleSettings(clusters, host="0.0.0.0", login="kafka")
    assert ConsoleSettings(clusters, host="0.0.0.0", login="kafka", behind_tls=True).login == "kafka"
    with pytest.raises(ConsoleRefused, match="oidc-issuer"):
        ConsoleSettings(clusters, login="oidc")
    with pytest.raises(ConsoleRefused, match="no address or network"):
        ConsoleSettings(clusters, login="proxy", proxy_from=("here",))
