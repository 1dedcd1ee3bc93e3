"""Tables of every kind: types, keys, identities, partitions, names; tables that come later or are emptied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.agent.settings import read_agent
from penstock.client.consumer import Consumer
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.faults.postgres.scene import Database, agent_file
from tests.faults.postgres.server import PostgresServer
from tests.patience import Patience, until
from tests.walks.agent.scene import running

Event = tuple[Any, Any]
"""Key and value, as JSON says."""


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = request.node.name.split("[")[0].removeprefix("test_")[:50]
    made = Database(postgres, name)
    yield made
    with suppress(Exception):
        made.drop_slot(name)
    made.close()


class Topic:
    """What is in a topic, from its beginning."""

    def __init__(self, node: EmbeddedBroker, name: str) -> None:
        self._bootstrap, self._name = node.bootstrap_servers, name

    async def events(self, count: int) -> list[Event]:
        place, patience, found = TopicPartition(self._name, 0), Patience(20), list[Event]()
        async with Consumer(bootstrap_servers=self._bootstrap, offset_reset="earliest") as consumer:
            consumer.assign([place])
            while len(found) < count:
                assert not patience.over(), found
                for record in await consumer.poll(1_000, timeout_ms=50):
                    value = None if record.value is None else json.loads(record.value)
                    found.append((None if record.key is None else json.loads(record.key), value))
        assert len(found) == count, found
        return found


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (key, "tombstone") if value is None else (key, value["op"], value["before"], value["after"])
        for key, value in events
    ]


TYPES = {
    "a": ("bool", "true", True),
    "b": ("int2", "-7", -7),
    "c": ("bigint", "9223372036854775807", 2**63 - 1),
    "d": ("numeric(30, 10)", "12345678901234567890.0123456789", "12345678901234567890.0123456789"),
    "e": ("float8", "0.1", 0.1),
    "f": ("real", "'NaN'", "NaN"),
    "g": ("text", "E'line\\nbreak\\ttab \\\\ \"quoted\" é'", 'line\nbreak\ttab \\ "quoted" é'),
    "h": ("char(5)", "'ab'", "ab   "),
    "i": ("bytea", "'\\xdeadbeef'", "3q2+7w=="),
    "j": ("date", "'2024-02-29'", "2024-02-29"),
    "k": ("time", "'01:02:03.5'", "01:02:03.5"),
    "l": ("timestamp", "'2024-02-29 01:02:03.000004'", "2024-02-29T01:02:03.000004"),
    "m": ("timestamptz", "'2024-02-29 01:02:03+02'", "2024-02-28T23:02:03Z"),
    "n": ("interval", "'1 day 2 hours'", "P1DT2H"),
    "o": ("uuid", "'00000000-0000-0000-0000-00000000000a'", "00000000-0000-0000-0000-00000000000a"),
    "p": ("jsonb", "'{\"x\": [1, null]}'", '{"x": [1, null]}'),
    "q": ("int[]", "'{{1,2},{3,NULL}}'", [[1, 2], [3, None]]),
    "r": ("text[]", "ARRAY['a,b', NULL, '', 'NULL', '\"']", ["a,b", None, "", "NULL", '"']),
    "s": ("mood", "'sad'", "sad"),
    "t": ("mood[]", "'{sad,glad}'", ["sad", "glad"]),
    "u": ("positive", "5", 5),
    "v": ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    "w": ("timestamptz", "'infinity'", "infinity"),
    "x": ("int4range", "'[1,5)'", "[1,5)"),
    "y": ("point", "'(1,2)'", "(1,2)"),
    "z": ("text", "NULL", None),
}


async def test_a_value_is_the_same_by_reading_and_by_the_log(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    database.do("CREATE DOMAIN positive AS int CHECK (value > 0)")
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items())
    database.do(f"CREATE TABLE kinds (id int PRIMARY KEY, {columns}, twice int GENERATED ALWAYS AS (b * 2) STORED)")
    values = ", ".join(value for _, value, _ in TYPES.values())
    names = ", ".join(TYPES)
    database.do(f"INSERT INTO kinds (id, {names}) VALUES (1, {values})")
    topic = Topic(node, f"{database.name}.kinds")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))):
        await topic.events(1)
        database.do(f"INSERT INTO kinds (id, {names}) VALUES (2, {values})")
        read, logged = await topic.events(2)
    expected = {name: value for name, (_, _, value) in TYPES.items()}
    assert read[1]["after"] == {"id": 1, **expected}
    assert logged[1]["after"] == {"id": 2, **expected}


async def test_keys_and_identities_of_every_kind(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    database.do('CREATE TABLE "Two Keys" ("Part ""A""" text, b int, c text, PRIMARY KEY ("Part ""A""", b))')
    database.do("""INSERT INTO "Two Keys" SELECT 'k' || n % 3, n, 'x' FROM generate_series(1, 40) n""")
    database.do("CREATE TABLE whole (id int PRIMARY KEY, c text); ALTER TABLE whole REPLICA IDENTITY FULL")
    database.do("CREATE TABLE bare (c text); ALTER TABLE bare REPLICA IDENTITY FULL; INSERT INTO bare VALUES ('r')")
    database.do("CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL UNIQUE)")
    database.do("ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code_key")
    database.do("INSERT INTO by_index VALUES (1, 'one')")
    more = '[[inputs.db.transforms]]\nadd = { "where" = "{source.schema}" }'
    file = agent_file(tmp_path, node.bootstrap_servers, database, more=more)
    keys, whole, bare, by_index = (
        Topic(node, f"{database.name}.{name}") for name in ("Two_Keys", "whole", "bare", "by_index")
    )
    async with running(read_agent(file)):
        rows = await keys.events(40)
        assert sorted(event["after"]["b"] for _, event in rows) == list(range(1, 41))
        assert {'Part "A"': "k1", "b": 1} in [key for key, _ in rows]
        assert {event["where"] for _, event in rows} == {"public"}
        database.do("""DELETE FROM "Two Keys" WHERE b = 3""")
        assert told((await keys.events(42))[40:]) == [
            ({'Part "A"': "k0", "b": 3}, "d", {'Part "A"': "k0", "b": 3, "c": None}, None),
            ({'Part "A"': "k0", "b": 3}, "tombstone"),
        ]
        database.do("INSERT INTO whole VALUES (1, 'a'); UPDATE whole SET c = 'b'; UPDATE whole SET id = 2")
        assert told(await whole.events(5)) == [
            ({"id": 1}, "c", None, {"id": 1, "c": "a"}),
            ({"id": 1}, "u", {"id": 1, "c": "a"}, {"id": 1, "c": "b"}),
            ({"id": 1}, "d", {"id": 1, "c": "b"}, None),
            ({"id": 1}, "tombstone"),
            ({"id": 2}, "c", None, {"id": 2, "c": "b"}),
        ]
        database.do("UPDATE bare SET c = 's'; DELETE FROM bare")
        assert told(await bare.events(3)) == [
            (None, "r", None, {"c": "r"}),
            (None, "u", {"c": "r"}, {"c": "s"}),
            (None, "d", {"c": "s"}, None),
        ]
        database.do("UPDATE by_index SET id = 5; DELETE FROM by_index")
        assert told(await by_index.events(4)) == [
            ({"code": "one"}, "r", None, {"id": 1, "code": "one"}),
            ({"code": "one"}, "u", None, {"id": 5, "code": "one"}),
            ({"code": "one"}, "d", {"id": None, "code": "one"}, None),
            ({"code": "one"}, "tombstone"),
        ]


async def test_partitions_are_their_table(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    database.do("CREATE TABLE parts (id int PRIMARY KEY, c text) PARTITION BY RANGE (id)")
    for part in range(3):
        database.do(f"CREATE TABLE parts_{part} PARTITION OF parts FOR VALUES FROM ({part * 10}) TO ({part * 10 + 10})")
    database.do("INSERT INTO parts SELECT n, 'x' FROM generate_series(0, 29) n")
    topic = Topic(node, f"{database.name}.parts")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))):
        await topic.events(30)
        database.do("UPDATE parts SET id = 25 + 4 - 29 + 5 WHERE id = 5")
        database.do("DELETE FROM parts WHERE id = 29")
        database.do("UPDATE parts SET id = 29 WHERE id = 3")
        # A row that changes its partition is deleted there and inserted here.
        assert told((await topic.events(36))[30:]) == [
            ({"id": 5}, "u", None, {"id": 5, "c": "x"}),
            ({"id": 29}, "d", {"id": 29, "c": None}, None),
            ({"id": 29}, "tombstone"),
            ({"id": 3}, "d", {"id": 3, "c": None}, None),
            ({"id": 3}, "tombstone"),
            ({"id": 29}, "c", None, {"id": 29, "c": "x"}),
        ]


async def test_tables_that_come_later_and_one_that_is_emptied(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do("CREATE TABLE first (id int PRIMARY KEY); INSERT INTO first VALUES (1), (2)")
    first, later = Topic(node, f"{database.name}.first"), Topic(node, f"{database.name}.later")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        await first.events(2)
        database.do("CREATE TABLE later (id int PRIMARY KEY, c text);INSERT INTO later VALUES (1, 'before'), (2, NULL)")
        assert [event["op"] for _, event in await later.events(2)] == ["r", "r"]
        database.do("UPDATE later SET c = 'after' WHERE id = 1; INSERT INTO first VALUES (3)")
        assert told((await later.events(3))[2:]) == [({"id": 1}, "u", None, {"id": 1, "c": "after"})]
        assert told((await first.events(3))[2:]) == [({"id": 3}, "c", None, {"id": 3})]
        database.do("TRUNCATE first")
        assert told((await first.events(4))[3:]) == [(None, "t", None, None)]
        # Made anew it is another table, with rows of its own.
        database.do("DROP TABLE later; CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (7)")
        assert told((await later.events(4))[3:]) == [({"id": 7}, "r", None, {"id": 7})]
        await until(lambda: "follows the log" in agent.status().inputs["db"].status.words)
        assert agent.status().inputs["db"].restarts == 0


async def test_a_table_is_seen_as_it_is_whatever_was_read_before_it(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    """Values come as texts, but not what the catalog says after them."""
    database.do(
        "CREATE TABLE a (id int PRIMARY KEY, b bool, o oid, n name, t text[], x text); INSERT INTO a VALUES (1)"
    )
    database.do("ALTER TABLE a ALTER COLUMN x SET STORAGE EXTERNAL; UPDATE a SET x = repeat('x', 9000)")
    database.do("CREATE TABLE b (id int PRIMARY KEY, c text); INSERT INTO b VALUES (1, 'one')")
    a, b = Topic(node, f"{database.name}.a"), Topic(node, f"{database.name}.b")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        assert told(await b.events(1)) == [({"id": 1}, "r", None, {"id": 1, "c": "one"})]
        # The large value is asked of the table.
        database.do("UPDATE a SET id = 2")
        assert (await a.events(4))[3][1]["after"]["x"] == "x" * 9_000
        database.do("CREATE TABLE c (id int PRIMARY KEY); INSERT INTO c VALUES (1)")
        await Topic(node, f"{database.name}.c").events(1)
        database.do("UPDATE a SET o = 7")
        assert len(await a.events(5)) == 5
        assert agent.status().inputs["db"].restarts == 0
