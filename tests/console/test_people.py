"""Everybody sees and does what the cluster's ACLs let that very person, whoever else looks at the same time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.blocking import Admin, Producer
from penstock.client.admin import Acl, AclFilter
from penstock.client.admin.scram_users import ScramPassword
from penstock.console.people import sessions, tries
from penstock.console.settings import ConsoleRefused
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, parsed, running, settings_for
from tests.patience import wait_for, within

PASSWORD = "right and long enough"
BROWSER = {"x-penstock": "1"}
PEOPLE = {"anna": "anna-orders", "ben": "ben-orders"}
"""Two people, and the one topic and group that each may use."""


@pytest.fixture(autouse=True)
def _who_was_wrong_waits_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long is `test_tries`'s; here everybody comes from one address."""
    monkeypatch.setattr(tries, "ADDRESS_WAITS_S", 0.1)
    monkeypatch.setattr(tries, "NAME_WAITS_S", 0.1)


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(**node.client_settings) as found:
        for name, topic in PEOPLE.items():
            found.alter_scram_users([ScramPassword(name, PASSWORD)]).checked()
            found.create_topic(topic, 2, 1)
            rules = [
                *(Acl(f"User:{name}", each, "topic", topic) for each in ("read", "write", "describe_configs")),
                Acl(f"User:{name}", "read", "group", topic),
            ]
            found.create_acls(rules).checked()
            with Producer(**node.client_settings) as producer:
                for number in range(10):
                    producer.send(topic, f"secret of {name} {number}", partition=0)
            found.alter_group_offsets(topic, {TopicPartition(topic, 0): 4})
        found.alter_scram_users([ScramPassword("nobody", PASSWORD)]).checked()
        yield found


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, admin: Admin) -> Iterator[RunningConsole]:
    with running(settings_for(node.client_settings, login="kafka"), ready_path="session") as found:
        yield found


@contextmanager
def logged_in(console: RunningConsole, name: str, password: str = PASSWORD) -> Iterator[RunningConsole]:
    with httpx.Client(base_url=console.address, timeout=within(30), headers=BROWSER) as client:
        reply = client.post("api/v1/login", json={"user": name, "password": password})
        assert reply.status_code == 200, reply.text
        assert reply.json()["person"]["principal"] == f"User:{name}"
        yield RunningConsole(console.address, client)
        client.post("api/v1/logout", json={})


@pytest.fixture(scope="module")
def anna(console: RunningConsole) -> Iterator[RunningConsole]:
    with logged_in(console, "anna") as found:
        yield found


@pytest.fixture(scope="module")
def ben(console: RunningConsole) -> Iterator[RunningConsole]:
    with logged_in(console, "ben") as found:
        yield found


EVERY_READ = [
    "overview", "map", "brokers", "brokers/1", "brokers/1/config", "log", "topics", "topics/anna-orders",
    "topics/anna-orders/partitions", "topics/anna-orders/consumers", "topics/anna-orders/config",
    "topics/anna-orders/access", "topics/anna-orders/producers", "topics/anna-orders/records",
    "topics/anna-orders/records/0/0", "groups", "groups/anna-orders", "groups/anna-orders/explain?seconds=0",
    "transactions", "transactions/tx", "access",
    "access/explain?principal=a&operation=read&resource=topic&name=anna-orders",
]  # fmt: skip


@pytest.mark.parametrize("path", EVERY_READ)
def test_who_is_not_logged_in_is_told_nothing(console: RunningConsole, path: str) -> None:
    reply = console.client.get(f"api/v1/{path}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "not_logged_in")
    assert "anna" not in reply.text


def test_before_a_login_only_the_names_of_clusters_are_told(console: RunningConsole, node: EmbeddedBroker) -> None:
    told = console.get("session")
    assert (told["login"], told["needs_login"], told["person"]) == ("kafka", True, None)
    assert [(each["name"], each["bootstrap"], each["id"]) for each in told["clusters"]] == [("local", None, None)]
    assert console.client.get("api/v1/events", params={"tab": "x" * 20}).status_code == 401


@pytest.mark.parametrize("path", EVERY_READ)
def test_nothing_of_anna_is_shown_to_ben(anna: RunningConsole, ben: RunningConsole, path: str) -> None:
    """They look at the same pictures at the same time. What Ben is told has none of her names, offsets or bytes."""
    anna.client.get(f"api/v1/{path}")
    told = ben.client.get(f"api/v1/{path}")
    if "anna-orders" not in path:
        assert "anna" not in told.text
        return
    # What there is and what there is not are refused in the same words.
    absent = ben.client.get(f"api/v1/{path.replace('anna-orders', 'no-such-thing')}")
    assert told.status_code == absent.status_code
    assert told.status_code in (403, 404) or path.startswith("access/explain")
    assert told.text.replace("anna-orders", "no-such-thing") == absent.text


def test_each_sees_what_is_theirs(anna: RunningConsole, ben: RunningConsole) -> None:
    for person, name in ((anna, "anna"), (ben, "ben")):
        topic = PEOPLE[name]
        told = person.wait("topics", lambda told: len(told["items"]) == 1 and told["items"][0]["records"] == "10")
        assert [row["name"] for row in told["items"]] == [topic]
        groups = person.wait("groups", lambda told: [row["lag"] for row in told["items"]] == ["6"])
        assert [row["group"] for row in groups["items"]] == [topic]
        records = person.get(f"topics/{topic}/records")["records"]
        assert [each["value"]["text"] for each in records] == [f"secret of {name} {number}" for number in range(10)]
        assert person.get("overview")["healthy"] is None
        assert person.refusal("map") == (403, "forbidden")
        assert person.get(f"groups/{topic}")["lag"] == "6"


def test_what_a_topic_is_kept_for_needs_its_right_and_sizes_that_of_the_cluster(
    console: RunningConsole, anna: RunningConsole, admin: Admin
) -> None:
    """Brokers tell configurations to DESCRIBE_CONFIGS, and what is in their directories to DESCRIBE of the cluster."""
    told = anna.wait("topics", lambda told: told["items"] and told["items"][0]["retention_ms"] is not None)["items"][0]
    assert (told["retention_ms"], told["compacted"], told["bytes"]) == ("604800000", False, None)
    assert anna.get("overview")["cluster"]["bytes"] is None
    assert [each["bytes"] for each in anna.get("topics/anna-orders/partitions")["partitions"]] == [None, None]
    rule = Acl("User:nobody", "describe", "topic", "anna-orders")
    admin.create_acls([rule]).checked()
    with logged_in(console, "nobody") as person:
        told = person.wait("topics", lambda told: len(told["items"]) == 1)["items"][0]
        assert (told["retention_ms"], told["compacted"], told["bytes"]) == (None, None, None)
        admin.create_acls([Acl("User:nobody", "describe", "cluster")]).checked()
        person.wait("topics", lambda told: int(told["items"][0]["bytes"] or 0) > 0)
    admin.delete_acls([AclFilter(principal="User:nobody")]).checked()


def test_what_somebody_may_not_do_is_not_done(anna: RunningConsole, ben: RunningConsole, admin: Admin) -> None:
    before = admin.describe_topic("anna-orders")
    refused = [
        ben.refusal("topics/anna-orders/records", "POST", {"value": "forged"}),
        ben.refusal("topics/anna-orders/config", "PATCH", {"set": {"retention.ms": "1h"}}),
        ben.refusal("topics/anna-orders/grow", "POST", {"partitions": 5}),
        ben.refusal("topics/anna-orders/trim", "POST", {"before": {"0": "5"}}),
        ben.refusal("topics/anna-orders/elect", "POST", {}),
        ben.refusal("topics/anna-orders", "DELETE", {"confirm": "anna-orders"}),
        ben.refusal("groups/anna-orders/reset", "POST", {"to": "earliest"}),
        ben.refusal("groups/anna-orders", "DELETE", {"confirm": "anna-orders"}),
        ben.refusal("groups/anna-orders/offsets", "DELETE", {"topics": {"anna-orders": []}}),
        ben.refusal("brokers/1/config", "PATCH", {"set": {"log.cleaner.threads": "2"}}),
        ben.refusal("access/acls", "POST", {"principal": "User:ben", "operation": "all", "resource": "cluster"}),
        ben.refusal("topics", "POST", {"name": "bens-own"}),
        # She may write to it, and not delete it.
        anna.refusal("topics/anna-orders", "DELETE", {"confirm": "anna-orders"}),
        anna.refusal("topics/anna-orders/config", "PATCH", {"set": {"retention.ms": "1h"}}),
    ]
    assert {status for status, _ in refused} <= {403, 404}, refused
    assert admin.describe_topic("anna-orders") == before
    assert "bens-own" not in [topic.name for topic in admin.topics()]
    sent = anna.send("POST", "topics/anna-orders/records", {"value": "her own", "partition": 1})
    assert sent["results"] == [{"partition": 1, "offset": "0", "timestamp": sent["results"][0]["timestamp"]}]


def heard(person: RunningConsole, tab: str, last: str) -> list[tuple[str, Any]]:
    """All that a tab hears until somebody has sent the last record."""
    found = []
    with person.client.stream("GET", "api/v1/events", params={"tab": tab}) as reply:
        for name, data in parsed(reply.iter_lines()):
            found.append((name, data))
            if name == "hello":
                topic = next(
                    topic for topic in PEOPLE.values() if person.client.get(f"api/v1/topics/{topic}").is_success
                )
                person.send("POST", f"tabs/{tab}/subscriptions", {"kind": "tail", "topic": topic})
            elif name == "tail" and not data["records"]:
                person.send("POST", f"topics/{topic}/records", {"value": last})
            elif name == "tail":
                return found
    raise AssertionError("the stream ended early")


def test_streams_tell_each_their_own(anna: RunningConsole, ben: RunningConsole) -> None:
    mine = json.dumps(heard(anna, "the-tab-of-anna-0001", "tail of anna"))
    his = json.dumps(heard(ben, "the-tab-of-ben-00001", "tail of ben"))
    assert "tail of anna" in mine
    assert "ben" not in mine.replace("ben-orders", "", 0)
    assert "anna" not in his
    other = {"kind": "tail", "topic": "anna-orders"}
    with ben.events("the-tab-of-ben-00002") as events:
        next(events)
        assert ben.refusal("tabs/the-tab-of-ben-00002/subscriptions", "POST", other)[0] in (403, 404)
        assert ben.refusal("tabs/the-tab-of-ben-00002/subscriptions", "POST", {**other, "kind": "search"})[0] in (
            403,
            404,
        )
        assert anna.refusal("tabs/the-tab-of-ben-00002/subscriptions", "POST", other) == (409, "conflict")
        assert anna.refusal("events", tab="the-tab-of-ben-00002") == (403, "forbidden")


def test_what_is_taken_away_is_gone_within_seconds(console: RunningConsole, admin: Admin, node: EmbeddedBroker) -> None:
    admin.create_topic("lent", 1, 1)
    rule = Acl("User:nobody", "read", "topic", "lent")
    admin.create_acls([rule]).checked()
    with logged_in(console, "nobody") as person:
        person.wait("topics", lambda told: [row["name"] for row in told["items"]] == ["lent"])
        assert person.get("topics/lent/records")["records"] == []
        admin.delete_acls([AclFilter(principal="User:nobody")]).checked()
        wait_for(
            "a record to be out of reach",
            lambda: person.client.get("api/v1/topics/lent/records").status_code in (403, 404),
            timeout_s=10,
        )
        person.wait("topics", lambda told: told["items"] == [], seconds=15)
        assert person.refusal("topics/lent/consumers") == (404, "unknown_topic")


def test_a_stream_is_cut_when_a_right_is_taken_away(
    console: RunningConsole, admin: Admin, node: EmbeddedBroker, ben: RunningConsole
) -> None:
    """The tail says so and ends; nothing that comes later is told, and nothing of what happens to the topic either."""
    tab = "the-tab-of-nobody-0001"
    admin.create_topic("watched", 1, 1)
    admin.create_acls([Acl("User:nobody", "read", "topic", "watched")]).checked()
    with logged_in(console, "nobody") as person, person.events(tab) as events:
        next(events)
        person.send("POST", f"tabs/{tab}/subscriptions", {"kind": "tail", "topic": "watched"})
        tails = (data for event, data in events if event == "tail")
        next(tails)
        with Producer(**node.client_settings) as producer:
            producer.send("watched", b"may be seen").result()
            shown = next(data for data in tails if data["records"])
            assert shown["records"][0]["value"]["text"] == "may be seen"
            admin.delete_acls([AclFilter(principal="User:nobody")]).checked()
            began = time.monotonic()
            wait_for(
                "the topic to be out of sight",
                lambda: person.client.get("api/v1/topics/watched/consumers").status_code == 404,
                timeout_s=10,
            )
            producer.send("watched", b"may not be seen").result()
        admin.grow_topic("watched", 2)
        told = []
        for event, data in events:
            told.append((event, data))
            if event == "tail" and data["error"] is not None:
                break
        assert told[-1][1]["error"]["code"] in ("forbidden", "unknown_topic")
        assert time.monotonic() - began < within(15)
        ben.client.get("api/v1/topics")
        console.wait("session", lambda told: True)
        later = [next(events) for _ in range(5)]
        assert "may not be seen" not in json.dumps(told + later)
        assert not [data for event, data in told + later if event == "event" and "watched" in json.dumps(data)]


def test_a_script_shows_who_it_is_with_every_request(console: RunningConsole, admin: Admin) -> None:
    with httpx.Client(base_url=console.address, timeout=within(30), auth=("anna", PASSWORD)) as client:
        before = len(admin.describe_tokens(["User:anna"]))
        for _ in range(5):
            assert [row["name"] for row in client.get("api/v1/topics").json()["items"]] == ["anna-orders"]
        assert client.get("api/v1/topics/ben-orders/records").status_code in (403, 404)
        sent = client.post("api/v1/topics/anna-orders/records", json={"value": "of a script", "partition": 1})
        assert sent.status_code == 200, sent.text
        assert len(admin.describe_tokens(["User:anna"])) <= before + 1, "a login is kept for a while"
        assert "set-cookie" not in sent.headers
        for auth in (("anna", "wrong"), ("anna", ""), ("", "")):
            reply = client.get("api/v1/topics", auth=auth)
            assert reply.status_code == 401
            assert "www-authenticate" not in reply.headers, "a browser that asked for one would send it ever after"


def test_a_script_shows_a_token_that_it_was_lent(console: RunningConsole, node: EmbeddedBroker, admin: Admin) -> None:
    own = {**node.client_settings, "username": "anna", "password": PASSWORD}
    with Admin(**own) as anna_herself:
        lent = anna_herself.create_token()
    shown = {"authorization": f"Bearer {lent.token_id}.{lent.password}"}
    told = console.client.get("api/v1/session", headers=shown).json()
    assert told["person"]["principal"] == "User:anna"
    told = console.client.get("api/v1/topics", headers=shown).json()
    assert [row["name"] for row in told["items"]] == ["anna-orders"]
    assert lent.token_id in [token.token_id for token in admin.describe_tokens(["User:anna"])], (
        "it is not the console's"
    )
    for wrong in (f"{lent.token_id}.{'x' * 40}", 'a" password="b.c', f"{lent.token_id}.", "neither"):
        reply = console.client.get("api/v1/topics", headers={"authorization": f"Bearer {wrong}"})
        assert reply.status_code == 401, wrong


def test_who_came_in_and_who_looked_is_written_down(node: EmbeddedBroker, admin: Admin, tmp_path: Path) -> None:
    audit = tmp_path / "made" / "audit.log"
    settings = settings_for(node.client_settings, login="kafka", audit_log=str(audit))
    with running(settings, ready_path="session") as console:
        console.client.post("api/v1/login", json={"user": "anna", "password": "wrong"})
        with logged_in(console, "anna") as anna:
            anna.get("topics/anna-orders/records", **{"from": "oldest"})
            anna.refusal("topics/ben-orders/records")
            with anna.events(TAB) as events:
                next(events)
                search = {"kind": "search", "topic": "anna-orders", "where": "size > 0"}
                anna.send("POST", f"tabs/{TAB}/subscriptions", search)
            anna.get("topics")
    assert audit.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert PASSWORD not in audit.read_text()
    assert [(line["action"], line["outcome"], line["who"], line.get("topic")) for line in lines] == [
        ("login", "failed", "User:anna", None),
        ("login", "done", "User:anna", None),
        ("view_records", "asked", "User:anna", "anna-orders"),
        ("view_records", "asked", "User:anna", "ben-orders"),
        ("view_records", "failed", "User:anna", "ben-orders"),
        ("view_records", "asked", "User:anna", "anna-orders"),
        ("logout", "done", "User:anna", None),
    ]
    assert (lines[2]["position"], lines[5]["where"], lines[0]["from"]) == ("oldest", "size > 0", "127.0.0.1")


def test_what_cannot_be_written_down_is_not_done(node: EmbeddedBroker, admin: Admin) -> None:
    settings = settings_for(node.client_settings, audit_log="/dev/full")
    with running(settings) as console:
        assert console.refusal("topics", "POST", {"name": "unaccounted"}) == (503, "no_audit")
        assert console.refusal("topics/anna-orders/records") == (503, "no_audit")
    assert "unaccounted" not in [topic.name for topic in admin.topics()]
    with pytest.raises(ConsoleRefused, match="--audit-log"), running(settings_for({}, audit_log="/dev/null/audit")):
        raise AssertionError("it does not start")


def test_a_console_stops_though_brokers_are_silent(node: EmbeddedBroker, admin: Admin) -> None:
    """Twenty logins, each of which has a connection to close and a token to end, wait for it all at once."""
    with running(settings_for(node.client_settings, login="kafka"), ready_path="session") as console:
        for _ in range(20):
            reply = httpx.post(
                f"{console.address}api/v1/login", json={"user": "anna", "password": PASSWORD}, headers=BROWSER
            )
            assert reply.status_code == 200
            shown = {"cookie": reply.headers["set-cookie"].partition(";")[0]}
            assert console.client.get("api/v1/topics", headers=shown).status_code == 200
        node.pause()
        began = time.monotonic()
    took_s = time.monotonic() - began
    node.resume()
    assert took_s < within(20)


TAB = "the-tab-of-somebody-1"


def test_logging_out_ends_everything(console: RunningConsole, admin: Admin) -> None:
    with httpx.Client(base_url=console.address, timeout=within(30), headers=BROWSER) as client:
        reply = client.post("api/v1/login", json={"user": "anna", "password": PASSWORD})
        cookie = reply.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/"))
        assert PASSWORD not in reply.text
        owned = admin.describe_tokens(["User:anna"])
        name, value = next(iter(client.cookies.items()))
        person = RunningConsole(console.address, client)
        with person.events("a-tab-that-is-logged-out") as events:
            next(events)
            assert client.post("api/v1/logout", json={}).status_code == 200
            assert next(data for event, data in events if event == "bye")["code"] == "logged_out"
        client.cookies.set(name, value)
        assert client.get("api/v1/topics").status_code == 401
        assert len(admin.describe_tokens(["User:anna"])) == len(owned) - 1, "its token has ended too"


def test_a_login_that_nobody_uses_ends_by_itself(
    node: EmbeddedBroker, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when nobody else logs in: its stream is cut, and its place is free for the next one at once."""
    tab = "a-tab-that-was-left-open"
    with (
        running(settings_for(node.client_settings, login="kafka"), ready_path="session") as console,
        logged_in(console, "anna") as person,
        person.events(tab) as events,
    ):
        next(events)
        monkeypatch.setattr(sessions, "IDLE_S", 0.0)
        assert next(data for event, data in events if event == "bye")["code"] == "logged_out"
        monkeypatch.undo()
        with logged_in(console, "ben") as other, other.events(tab) as others:
            assert next(others)[0] == "hello"


def test_a_browser_that_is_logged_in_cannot_be_made_to_act(anna: RunningConsole) -> None:
    other = httpx.Client(base_url=anna.address, cookies=anna.client.cookies)
    with other:
        reply = other.post("api/v1/topics/anna-orders/records", json={"value": "forged"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "csrf")


def test_a_login_needs_its_password_and_guessing_shuts_nobody_out(console: RunningConsole) -> None:
    with httpx.Client(base_url=console.address, timeout=within(30), headers=BROWSER) as client:
        for _ in range(6):
            reply = client.post("api/v1/login", json={"user": "anna", "password": "wrong"})
            assert (reply.status_code, reply.json()["error"]["code"]) == (401, "wrong_login")
        assert not client.cookies
    with logged_in(console, "anna") as found:
        assert found.client.get("api/v1/topics").status_code == 200
