"""One console for several clusters: a person is in those that take the login, and the others are not in the way."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from penstock.blocking import Admin
from penstock.client.admin import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.console.people import door, logins
from penstock.console.settings import ConsoleSettings
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, cluster_address, running
from tests.patience import within

PASSWORD = "right and long enough"
HERS = "cluster-of-anna"
NOBODYS, GONE = "cluster-of-others", "cluster-that-is-away"
TAB = "the-tab-of-anna-0001"


@pytest.fixture(scope="module")
def hers() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found, Admin(**found.client_settings) as admin:
        admin.alter_scram_users([ScramPassword("anna", PASSWORD)]).checked()
        admin.create_acls([Acl("User:anna", "read", "topic", "annas")]).checked()
        admin.create_topic("annas", 1, 1)
        yield found


@pytest.fixture(scope="module")
def others() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


@pytest.fixture(scope="module")
def console(hers: EmbeddedBroker, others: EmbeddedBroker) -> Iterator[RunningConsole]:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # it never takes what it is asked
        away = {**others.client_settings, "bootstrap_servers": f"127.0.0.1:{taken.getsockname()[1]}"}
        clusters = (
            cluster_address(others.client_settings, NOBODYS),
            cluster_address(away, GONE),
            cluster_address(hers.client_settings, HERS),
        )
        with running(ConsoleSettings(clusters, port=0, every_ms=100, login="kafka"), ready_path="session") as found:
            yield found


@pytest.fixture(scope="module")
def anna(console: RunningConsole) -> Iterator[RunningConsole]:
    with httpx.Client(base_url=console.address, timeout=within(40), headers={"x-penstock": "1"}) as client:
        reply = client.post("api/v1/login", json={"user": "anna", "password": PASSWORD})
        assert reply.status_code == 200, reply.text
        assert [each["name"] for each in reply.json()["clusters"]] == [HERS]
        yield RunningConsole(console.address, client)


def test_what_names_no_cluster_is_asked_of_the_first_that_the_person_is_in(anna: RunningConsole) -> None:
    assert [row["name"] for row in anna.get("topics")["items"]] == ["annas"]
    assert anna.refusal("topics", cluster=NOBODYS) == (403, "forbidden")
    status, text = anna.refusal("topics", cluster="no-such-cluster")
    assert (status, text) == (400, "bad_request")


def test_a_stream_tells_of_no_cluster_that_the_person_is_not_in(anna: RunningConsole) -> None:
    """The one that is away has been in trouble all the time, and the others are looked at ten times a second."""
    with anna.events(TAB) as events:
        assert next(events)[0] == "hello"
        heard = [next(events) for _ in range(10)]
    assert {data["cluster"] for _, data in heard} == {HERS}


def test_a_wrong_password_is_told_with_who_could_not_be_asked(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "OTHERS_WITHIN_S", within(1.0))
    reply = console.client.post("api/v1/login", json={"user": "anna", "password": "wrong"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "wrong_login")
    assert GONE in reply.json()["error"]["message"]


def test_whom_a_proxy_names_is_in_a_cluster_once_it_is_back(
    hers: EmbeddedBroker, others: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a person cannot log in anew, so the cluster that was away is asked again by itself."""
    monkeypatch.setattr(door, "AWAY_AGAIN_S", 0.2)
    clusters = (cluster_address(hers.client_settings, HERS), cluster_address(others.client_settings, NOBODYS))
    settings = ConsoleSettings(clusters, port=0, every_ms=100, login="proxy", proxy_header="X-User")
    others.stop()
    try:
        with running(settings, ready_path="session") as console:
            console.client.headers["x-user"] = "anna"
            assert [row["name"] for row in console.get("topics")["items"]] == ["annas"]
            assert console.refusal("topics", cluster=NOBODYS) == (503, "unreachable")
            others.start()
            console.wait("topics", lambda told: told["items"] == [], cluster=NOBODYS)
            names = [each["name"] for each in console.get("session")["clusters"]]
            assert names == [HERS, NOBODYS]
    finally:
        if not others.running:
            others.start()
