"""Brokers that go, hang, move and come back, and certificates that change: pages say so, and recover by themselves."""

from __future__ import annotations

import queue
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from penstock.blocking import Admin, Producer
from penstock.certificates.authority import Role, create_authority
from penstock.certificates.directory import CertificateDirectory, leaf_of
from penstock.certificates.issuing import issue_node, renew, write_issued
from penstock.certificates.rotating import begin_rotation, finish_rotation, switch_rotation
from penstock.client.admin import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.console import serving
from penstock.testing import EmbeddedBroker, EmbeddedCluster, broker, cluster
from tests.console.running import RunningConsole, parsed, running, settings_for
from tests.patience import wait_for, within

TOPIC = "orders"
TAB = "the-tab-that-stays-open"
PASSWORD = "right and long enough"


@dataclass
class Heard:
    """What a tab hears, in a thread; its stream is one connection from the beginning to the end."""

    events: queue.SimpleQueue[tuple[str, Any]]

    def until(self, what: str, fits: Callable[[str, Any], bool], seconds: float = 40) -> Any:
        def look() -> Any:
            try:
                name, data = self.events.get(timeout=0.05)
            except queue.Empty:
                return None
            return data if fits(name, data) else None

        return wait_for(what, look, timeout_s=seconds, pause_s=0)


@contextmanager
def hearing(console: RunningConsole, client: httpx.Client | None = None) -> Iterator[Heard]:
    heard, ended = Heard(queue.SimpleQueue()), threading.Event()
    query = {"tab": TAB}
    with (client or console.client).stream("GET", "api/v1/events", params=query, timeout=None) as reply:

        def listen() -> None:
            try:
                for each in parsed(reply.iter_lines()):
                    heard.events.put(each)
            except (httpx.HTTPError, httpx.StreamError, RuntimeError):
                pass  # the test is over
            finally:
                ended.set()

        thread = threading.Thread(target=listen, name="hearing")
        thread.start()
        try:
            heard.until("a stream", lambda name, _: name == "hello")
            yield heard
            assert not ended.is_set(), "the stream has held"
        finally:
            RunningConsole(console.address, client or console.client).client.post("api/v1/logout", json={})
            reply.close()
            _shut(reply)
            thread.join(within(30))


def _shut(reply: httpx.Response) -> None:
    """A read in another thread ends with its connection."""
    stream = reply.extensions.get("network_stream")
    if stream is not None:
        stream.close()


@pytest.fixture(scope="module")
def three() -> Iterator[EmbeddedCluster]:
    with cluster(nodes=3) as found:
        with Admin(**found.client_settings) as admin:
            admin.create_topic(TOPIC, 3, 3)
        found.wait_until_in_sync(TOPIC)
        yield found


@pytest.fixture(scope="module")
def console(three: EmbeddedCluster) -> Iterator[RunningConsole]:
    with running(settings_for(three.client_settings)) as found:
        found.wait("overview", lambda told: told["healthy"] is True)
        yield found


@pytest.fixture
def heard(console: RunningConsole) -> Iterator[Heard]:
    with hearing(console) as found:
        yield found


def tailed(console: RunningConsole, heard: Heard) -> None:
    console.send("POST", f"tabs/{TAB}/subscriptions", {"kind": "tail", "topic": TOPIC})
    heard.until("the tail", lambda name, _: name == "tail")


def shown_by_tail(three: EmbeddedCluster, heard: Heard, text: str) -> None:
    """Records in every partition, whoever leads it now, reach the tab."""
    with Producer(**three.client_settings) as producer:
        for partition in range(3):
            producer.send(TOPIC, f"{text} {partition}", partition=partition).result(within(60))
    missing = {f"{text} {partition}" for partition in range(3)}

    def take(name: str, data: Any) -> bool:
        if name == "tail":
            missing.difference_update(each["value"]["text"] for each in data["records"])
        return not missing

    heard.until(f"all records of {text}", take)


def well(console: RunningConsole) -> dict[str, Any]:
    found: dict[str, Any] = console.wait("overview", lambda told: told["healthy"] and not told["trouble"], seconds=60)
    return found


def test_a_broker_is_killed_and_comes_back(three: EmbeddedCluster, console: RunningConsole, heard: Heard) -> None:
    tailed(console, heard)
    gone = three.leader_of(TOPIC, 0)
    three.kill(gone)
    told = console.wait("overview", lambda told: told["healthy"] is False, seconds=60)
    assert told["reasons"]
    assert told["sentence"].startswith("Unhealthy")
    assert not told["trouble"], "the others answer"
    heard.until("the event", lambda name, data: name == "event" and data["kind"] == "broker_down")
    rows = console.wait("brokers", lambda told: sum(row["alive"] for row in told["items"]) == 2, seconds=60)["items"]
    assert [row["id"] for row in rows if not row["alive"]] == [gone]
    shown_by_tail(three, heard, "without one")
    three.start(gone)
    three.wait_until_in_sync(TOPIC)
    heard.until("the event", lambda name, data: name == "event" and data["kind"] == "broker_up")
    assert len(well(console)["brokers"]) == 3
    shown_by_tail(three, heard, "with all")


def test_a_broker_that_hangs_holds_up_no_page(three: EmbeddedCluster, console: RunningConsole, heard: Heard) -> None:
    """As SIGSTOP has it: connections stay open, and nothing answers."""
    tailed(console, heard)
    slow = three.leader_of(TOPIC, 1)
    with three.nodes[slow].paused():
        told = console.wait("overview", lambda told: told["healthy"] is False, seconds=60)
        assert told["as_of_ms"] is not None
        assert told["age_ms"] < within(60_000)
        # What only that broker can tell is told late or not at all, with words; nothing waits for ever.
        for path in ("topics", "groups", "map", "log"):
            assert console.client.get(f"api/v1/{path}").status_code == 200, path
        assert console.client.get(f"api/v1/topics/{TOPIC}/partitions").status_code in (200, 503, 504)
        shown_by_tail(three, heard, "beside one that hangs")
    three.wait_until_in_sync(TOPIC)
    well(console)
    shown_by_tail(three, heard, "after it")


def test_the_controller_moves(three: EmbeddedCluster, console: RunningConsole, heard: Heard) -> None:
    was = three.controller
    three.kill(was)
    now = three.controller
    assert now != was
    console.wait("map", lambda told: told["quorum"] and told["quorum"]["leader"] not in (was, -1), seconds=60)
    told = heard.until("the event", lambda name, data: name == "event" and data["kind"] == "controller_moved")
    assert told["params"]["from"] in (was, -1)
    three.start(was)
    three.wait_until_in_sync()
    well(console)


def test_a_cluster_that_is_away_is_told_with_how_old_all_is(
    three: EmbeddedCluster, console: RunningConsole, heard: Heard
) -> None:
    tailed(console, heard)
    for node_id in three.nodes:
        three.kill(node_id)
    trouble = heard.until("the trouble", lambda name, data: name == "trouble" and data["trouble"])["trouble"]
    assert trouble["code"] == "unreachable"
    told = console.wait("overview", lambda told: told["trouble"] is not None)
    assert told["healthy"] is False
    assert told["sentence"].startswith("The cluster cannot be reached")
    assert told["trouble"]["since_ms"] == trouble["since_ms"]
    older = console.wait("overview", lambda later: later["age_ms"] > told["age_ms"])
    assert older["as_of_ms"] == told["as_of_ms"], "what is shown is what was seen last, and says when"
    assert [row["name"] for row in console.get("topics")["items"]] == [TOPIC]
    assert console.refusal(f"topics/{TOPIC}")[0] in (503, 504)
    three.start(*three.nodes)
    heard.until("the end of it", lambda name, data: name == "trouble" and data["trouble"] is None)
    three.wait_until_in_sync()
    well(console)
    assert console.client.get(f"api/v1/topics/{TOPIC}").status_code == 200
    shown_by_tail(three, heard, "after all were away")


def _trouble(name: str, data: Any) -> str:
    return str(data["trouble"]["code"]) if name == "trouble" and data["trouble"] else ""


# Certificates.


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found, Admin(**found.client_settings) as admin:
        admin.alter_scram_users([ScramPassword("anna", PASSWORD)]).checked()
        admin.create_topic(TOPIC, 1, 1)
        admin.create_acls([Acl("User:anna", "read", "topic", TOPIC)]).checked()
        yield found


def rotate(secured: EmbeddedBroker) -> None:
    """Another authority and another certificate of the node; who trusts the former alone trusts it no more."""
    directory, now = CertificateDirectory(secured.client_files.trusted.parent), datetime.now(UTC)
    begin_rotation(directory.open(Role.CLUSTER), now=now)
    switch_rotation(directory.open(Role.CLUSTER))
    path = directory.node(1)
    write_issued(renew(directory.open(Role.CLUSTER), leaf_of(path), now=now), path, replace=True)
    finish_rotation(directory.open(Role.CLUSTER), directory.issued(Role.CLUSTER))
    directory.publish()


def test_a_cluster_with_another_certificate_is_seen_again_once_it_is_trusted(
    secured: EmbeddedBroker, tmp_path: Path
) -> None:
    trusted = tmp_path / "ca.pem"
    shutil.copy(secured.client_files.trusted, trusted)
    settings = settings_for({**secured.client_settings, "cafile": str(trusted)}, login="kafka")
    with (
        running(settings, ready_path="session") as console,
        httpx.Client(base_url=console.address, timeout=within(40), headers={"x-penstock": "1"}) as client,
    ):
        reply = client.post("api/v1/login", json={"user": "anna", "password": PASSWORD})
        assert reply.status_code == 200, reply.text
        anna = RunningConsole(console.address, client)
        anna.wait("topics", lambda told: [row["name"] for row in told["items"]] == [TOPIC])
        with hearing(console, client) as heard:
            secured.stop()
            rotate(secured)
            secured.start()
            heard.until("the trouble", lambda name, data: _trouble(name, data) == "not_trusted")

            def refused() -> httpx.Response | None:
                reply = client.get("api/v1/topics")
                return None if reply.is_success else reply

            told = wait_for("a refusal, once what was told before is too old", refused, timeout_s=20)
            assert (told.status_code, told.json()["error"]["code"]) == (503, "not_trusted"), told.text
            assert anna.client.get("api/v1/session").json()["person"], "nobody is logged out by it"
            shutil.copy(secured.client_files.trusted, trusted)
            heard.until("the end of it", lambda name, data: name == "trouble" and data["trouble"] is None, 60)
            anna.wait("topics", lambda told: [row["name"] for row in told["items"]] == [TOPIC], seconds=60)


def test_a_console_shows_its_new_certificate_without_a_restart(
    three: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CERTIFICATE_EVERY_S", 0.05)
    authority = create_authority(tmp_path / "ca", Role.CLUSTER, "of-the-console", now=datetime.now(UTC))
    path = tmp_path / "console.pem"

    def issue() -> None:
        issued = issue_node(authority, 1, ["127.0.0.1", "localhost"], now=datetime.now(UTC))
        write_issued(issued, path, replace=path.exists())

    issue()
    trust = ssl.create_default_context(cadata=authority.trusted_pem.decode())
    settings = settings_for(three.client_settings, certfile=str(path), keyfile=str(path))
    with running(settings, ready_path="session", trust=trust) as console:
        where = urlsplit(console.address)
        place = (str(where.hostname), int(where.port or 0))
        shown = ssl.get_server_certificate(place)
        with hearing(console):
            issue()
            wait_for(
                "the new certificate",
                lambda: ssl.get_server_certificate(place) != shown,
                timeout_s=20,
            )
        path.write_text("no certificate at all")
        assert console.client.get("api/v1/session").status_code == 200
        with httpx.Client(verify=trust, base_url=console.address) as another:
            assert another.get("api/v1/session").status_code == 200, "what cannot be used leaves the one there was"
