"""The table of rights is what brokers decide: each route is tried with exactly its rights, and without each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from penstock.blocking import Admin, Producer
from penstock.client.admin import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.console.routes.rights import RIGHTS, Right
from penstock.console.routes.table import TABLE
from penstock.model.ids import TopicPartition
from penstock.testing import broker
from tests.console.running import RunningConsole, running, settings_for
from tests.hanging_transactions import UNVERIFIED, hang
from tests.patience import within

PASSWORD = "right and long enough"
V3_NOT_SHOWN = {(403, 403), (404, 404)}
NOT_SHOWN = {(403, "forbidden"), (404, "unknown_topic"), (404, "unknown_group"), (404, "not_found"), *V3_NOT_SHOWN}
NOTHING_DONE = {"positions": [], "replayed": "0", "skipped": "0"}
ROUTES = [(method, path) for method, path, _ in TABLE]


@dataclass(frozen=True)
class Asked:
    """How a test asks a route about a topic and a group, both called `thing`."""

    path: str
    body: Callable[[str], dict[str, Any]] = field(default=lambda _: {})
    status: int = 200
    """What somebody who may is answered."""


RULE = {"principal": "User:nobody-at-all", "operation": "read", "resource": "topic", "name": "no-such-topic"}
ASKED: dict[tuple[str, str], Asked] = {
    ("GET", "/map"): Asked("map"),
    ("GET", "/brokers"): Asked("brokers"),
    ("GET", "/brokers/{id}"): Asked("brokers/1"),
    ("GET", "/brokers/{id}/config"): Asked("brokers/1/config"),
    ("PATCH", "/brokers/{id}/config"): Asked("brokers/1/config", lambda _: {"set": {"log.cleaner.threads": "2"}}),
    ("POST", "/topics"): Asked("topics", lambda thing: {"name": f"{thing}-new", "partitions": 1}),
    ("GET", "/topics/{name}"): Asked("topics/{}"),
    ("DELETE", "/topics/{name}"): Asked("topics/{}", lambda thing: {"confirm": thing}),
    ("GET", "/topics/{name}/partitions"): Asked("topics/{}/partitions"),
    ("GET", "/topics/{name}/consumers"): Asked("topics/{}/consumers"),
    ("GET", "/topics/{name}/config"): Asked("topics/{}/config"),
    ("PATCH", "/topics/{name}/config"): Asked("topics/{}/config", lambda _: {"set": {"retention.ms": "2h"}}),
    ("GET", "/topics/{name}/access"): Asked("topics/{}/access"),
    ("GET", "/topics/{name}/producers"): Asked("topics/{}/producers"),
    ("POST", "/topics/{name}/grow"): Asked("topics/{}/grow", lambda _: {"partitions": 2}),
    ("POST", "/topics/{name}/trim"): Asked("topics/{}/trim", lambda thing: {"before": {"0": "1"}, "confirm": thing}),
    ("POST", "/topics/{name}/elect"): Asked("topics/{}/elect"),
    ("GET", "/topics/{name}/records"): Asked("topics/{}/records"),
    ("POST", "/topics/{name}/records"): Asked("topics/{}/records", lambda _: {"value": "sent"}),
    ("GET", "/topics/{name}/records/{partition}/{offset}"): Asked("topics/{}/records/0/1"),
    ("POST", "/topics/{name}/read"): Asked("topics/{}/read"),
    ("POST", "/topics/{name}/records/{partition}/{offset}/send"): Asked("topics/{}/records/0/1/send"),
    ("POST", "/v3/clusters/{cluster_id}/topics/{name}/records"): Asked(
        "v3/clusters/{cluster_id}/topics/{}/records", lambda _: {"value": {"type": "STRING", "data": "sent"}}
    ),
    ("POST", "/groups/{name:path}/reset"): Asked("groups/{}/reset", lambda thing: {"offsets": {thing: {"0": "1"}}}),
    # Nothing was moved, which is told to those alone who might take it back.
    ("POST", "/groups/{name:path}/undo"): Asked("groups/{}/undo", lambda _: {"id": "none"}, 404),
    ("DELETE", "/groups/{name:path}/offsets"): Asked("groups/{}/offsets", lambda thing: {"topics": {thing: [0]}}),
    ("GET", "/groups/{name:path}/explain"): Asked("groups/{}/explain?seconds=0"),
    ("GET", "/groups/{name:path}"): Asked("groups/{}"),
    ("DELETE", "/groups/{name:path}"): Asked("groups/{}", lambda thing: {"confirm": thing}),
    ("POST", "/transactions/abort"): Asked(
        "transactions/abort", lambda thing: {"topic": thing, "partition": 0, "start_offset": "3"}
    ),
    ("GET", "/transactions/{id:path}"): Asked("transactions/{}"),
    ("GET", "/agents"): Asked("agents"),
    ("GET", "/follow"): Asked("follow?topic={}&partition=0&offset=1"),
    ("GET", "/access/explain"): Asked("access/explain?principal=a&operation=read&resource=topic&name={}"),
    ("POST", "/access/acls"): Asked("access/acls", lambda _: RULE),
    ("DELETE", "/access/acls"): Asked("access/acls", lambda _: RULE),
    ("POST", "/tabs/{tab}/subscriptions"): Asked(
        "tabs/{tab}/subscriptions", lambda thing: {"kind": "tail", "topic": thing}
    ),
    ("POST", "/conditions/check"): Asked(
        "conditions/check",
        lambda thing: {"where": "size > 0", "record": {"topic": thing, "partition": 0, "offset": "1"}},
    ),
}
"""Routes that are refused as a whole. Those of which parts are left out are asked by their own path, and those of
pipelines and tables, which go by what feeds one, in test_lakeside_people.py."""


def test_every_route_says_what_it_needs() -> None:
    assert set(ROUTES) == set(RIGHTS), "routes/rights.py says what each route needs"
    whole = {route for route, needs in RIGHTS.items() if needs.refuses == "whole"}
    assert whole == set(ASKED), "each of these is tried below"
    assert all(needs.rights for needs in RIGHTS.values() if needs.refuses != "nothing")


Cases = list[tuple[tuple[str, str], frozenset[Right]]]
"""A route, and the rights of somebody who tries it."""


def cases() -> Cases:
    found: Cases = []
    for route, needs in RIGHTS.items():
        if needs.refuses == "whole":
            everything = frozenset(needs.rights)
            found += [(route, everything), *((route, everything - {right}) for right in needs.rights)]
    return found


def named(case: tuple[tuple[str, str], frozenset[Right]]) -> str:
    (method, path), rights = case
    return f"{method} {path} with {' and '.join(sorted(map(str, rights))) or 'nothing'}"


@dataclass
class Scene:
    """People by their rights, each with things of their own."""

    console: RunningConsole
    people: dict[frozenset[Right], httpx.Client]
    names: dict[frozenset[Right], str]
    things: dict[tuple[tuple[str, str], frozenset[Right]], str]


def rules(name: str, rights: frozenset[Right]) -> list[Acl]:
    return [
        Acl(f"User:{name}", right.operation, right.resource)
        if right.resource == "cluster"
        else Acl(f"User:{name}", right.operation, right.resource, f"{name}-", "prefixed")
        for right in sorted(rights)
    ]


PARTLY = {
    frozenset({Right("describe", "topic")}),
    frozenset({Right("describe", "group")}),
    frozenset({Right("describe", "cluster")}),
}


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    sets = list(dict.fromkeys([rights for _, rights in cases()] + [*sorted(PARTLY, key=str), frozenset()]))
    names = {rights: f"person{number}" for number, rights in enumerate(sets)}
    things = {case: f"{names[case[1]]}-thing{number}" for number, case in enumerate(cases())}
    with broker(UNVERIFIED, secure=True) as node, Admin(**node.client_settings) as admin:
        admin.alter_scram_users([ScramPassword(name, PASSWORD) for name in names.values()]).checked()
        admin.create_acls([rule for rights in sets for rule in rules(names[rights], rights)]).checked()
        settings = settings_for(node.client_settings, login="kafka")
        with running(settings, ready_path="session") as console:
            with Producer(**node.client_settings) as producer:
                for thing in things.values():
                    admin.create_topic(thing, 1, 1)
                    for number in range(3):
                        producer.send(thing, f"bytes of {thing} {number}", partition=0)
                    admin.alter_group_offsets(thing, {TopicPartition(thing, 0): 1})
                producer.flush()
            for (route, _), thing in things.items():
                if route[1] == "/transactions/abort":
                    hang(node.bootstrap_servers, thing, settings=node.client_settings)
                if route[1].startswith("/transactions/{id"):
                    with Producer(transactional_id=thing, **node.client_settings) as producer, producer.transaction():
                        producer.send(thing, b"in a transaction")
            with closing(_person(console, "admin", node.client_settings["password"])) as boss:
                told = RunningConsole(console.address, boss)
                told.wait("topics", lambda told: told["total"] == len(things), seconds=60)
                told.wait("groups", lambda told: told["total"] == len(things), seconds=60)
            people = {rights: _person(console, name, PASSWORD) for rights, name in names.items()}
            yield Scene(console, people, names, things)
            for person in people.values():
                person.close()


def _person(console: RunningConsole, name: str, password: str) -> httpx.Client:
    client = httpx.Client(base_url=console.address, timeout=within(30), headers={"x-penstock": "1"})
    reply = client.post("api/v1/login", json={"user": name, "password": password})
    assert reply.status_code == 200, reply.text
    return client


def asked(client: httpx.Client, route: tuple[str, str], thing: str) -> httpx.Response:
    method, about = route[0], ASKED[route]
    named = about.path.replace("{tab}", tab_of(thing))
    if "{cluster_id}" in named:
        (cluster,) = client.get("api/v1/v3/clusters").json()["data"]
        named = named.replace("{cluster_id}", cluster["cluster_id"])
    path = f"api/v1/{named.format(thing)}"
    return client.request(method, path, json=None if method == "GET" else about.body(thing))


def tab_of(thing: str) -> str:
    return f"a-tab-that-asks-for-{thing}"


@pytest.mark.parametrize("case", cases(), ids=named)
def test_a_route_is_for_those_with_its_rights(scene: Scene, case: tuple[tuple[str, str], frozenset[Right]]) -> None:
    (route, rights), thing = case, scene.things[case]
    client, allowed = scene.people[rights], rights == frozenset(RIGHTS[route].rights)
    if "{tab}" in route[1]:
        with client.stream("GET", f"api/v1/events?tab={tab_of(thing)}") as stream:
            lines = stream.iter_lines()
            next(lines)
            reply = asked(client, route, thing)
    else:
        reply = asked(client, route, thing)
    if allowed:
        assert reply.status_code == ASKED[route].status, reply.text
        return
    if reply.status_code == 200:
        assert reply.json()["done"] == NOTHING_DONE, "of what one may not see nothing is chosen"
    else:
        told = reply.json()
        code = told["error"]["code"] if "error" in told else told["error_code"]
        assert (reply.status_code, code) in NOT_SHOWN, reply.text
    assert "bytes of" not in reply.text


@pytest.mark.parametrize("route", [route for route, needs in RIGHTS.items() if needs.refuses == "parts"], ids=str)
def test_what_a_person_may_not_see_is_left_out(scene: Scene, route: tuple[str, str]) -> None:
    """Everybody is answered; nobody is told a name of somebody else's things."""
    told = {
        rights: scene.people[rights].get(f"api/v1{route[1]}", params={"limit": 500, "internal": 1})
        for rights in (*PARTLY, frozenset())
    }
    assert [reply.status_code for reply in told.values()] == [200] * len(told), route
    for rights, reply in told.items():
        mine = scene.names[rights]
        theirs = [name for name in scene.names.values() if name != mine]
        # To whom the cluster may be described brokers list all groups, and all rules.
        if Right("describe", "cluster") not in rights:
            assert [name for name in theirs if f"{name}-" in reply.text] == []
        for right in RIGHTS[route].rights:
            if right not in rights and right.resource == "cluster":
                assert '"host":"127.0.0.1"' not in reply.text


def test_a_route_that_needs_a_login_says_so(scene: Scene) -> None:
    for route, needs in RIGHTS.items():
        path = (
            ASKED[route].path.format("thing", tab=tab_of("thing"), cluster_id="c")
            if route in ASKED
            else route[1].lstrip("/")
        )
        reply = scene.console.client.request(route[0], f"api/v1/{path}", json={} if route[0] != "GET" else None)
        assert (reply.status_code == 401) == needs.login or route == ("POST", "/login"), (route, reply.text)
