"""Tables of which Postgres could not tell a row by its key: the application that owns them never notices the agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from penstock.agent.settings import read_agent
from penstock.testing import EmbeddedBroker
from tests.faults.postgres.scene import CUSTOMERS, Database, Mirror, agent_file
from tests.faults.postgres.server import PostgresServer
from tests.faults.postgres.test_kills import EXACTLY
from tests.faults.postgres.test_refusals import failure
from tests.faults.postgres.test_shapes import Topic, told
from tests.patience import until
from tests.walks.agent.scene import running

BARE = {
    "bare": "CREATE TABLE bare (id int, what text)",
    "nothing": "CREATE TABLE nothing (id int PRIMARY KEY, what text); ALTER TABLE nothing REPLICA IDENTITY NOTHING",
    "late_key": "CREATE TABLE late_key (id int PRIMARY KEY DEFERRABLE, what text)",
    "lost_index": "CREATE TABLE lost_index (id int NOT NULL UNIQUE, what text);"
    " ALTER TABLE lost_index REPLICA IDENTITY USING INDEX lost_index_id_key;"
    " ALTER TABLE lost_index DROP CONSTRAINT lost_index_id_key",
    "parts": "CREATE TABLE parts (id int, what text) PARTITION BY RANGE (id); ALTER TABLE parts REPLICA IDENTITY FULL;"
    " CREATE TABLE part PARTITION OF parts DEFAULT",
    "child": "CREATE TABLE parent (id int PRIMARY KEY, what text); CREATE TABLE child () INHERITS (parent)",
}
"""Ways to be without an identity, by the table that is."""


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = re.sub("[^a-z]+", "_", request.node.name.removeprefix("test_")).strip("_")[:50]
    made = Database(postgres, name)
    made.do(CUSTOMERS)
    made.do("INSERT INTO customers (id, name) VALUES (1, 'one')")
    yield made
    with suppress(Exception):
        made.drop_slot(name)
    made.close()


def changes_in(database: Database, table: str) -> None:
    """What an application does; Postgres refuses it where it could not tell others of it."""
    database.do(f"INSERT INTO {table} (id, what) VALUES (1, 'a')")
    database.do(f"UPDATE {table} SET what = 'b'")
    database.do(f"DELETE FROM {table}")


async def test_globs_leave_tables_without_an_identity_out(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    for made in BARE.values():
        database.do(made)
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        await mirror.equals(database, "customers")
        for table in BARE:
            changes_in(database, table)
        status = agent.status().inputs["db"].status
        assert status.tables_left_out == len(BARE)
        assert f"{len(BARE)} tables are left out" in status.words
        assert "public.bare" in status.last_error
        assert "ALTER TABLE public.part REPLICA IDENTITY FULL" in status.last_error
        database.do("INSERT INTO bare VALUES (7, 'before')")
        database.do("ALTER TABLE bare REPLICA IDENTITY FULL")
        bare = Topic(node, f"{database.name}.bare")
        await bare.events(1)
        database.do("UPDATE bare SET what = 'after'")
        assert told(await bare.events(2)) == [
            (None, "r", None, {"id": 7, "what": "before"}),
            (None, "u", {"id": 7, "what": "before"}, {"id": 7, "what": "after"}),
        ]
        await until(lambda: agent.status().inputs["db"].status.tables_left_out == len(BARE) - 1)


async def test_rows_of_heirs_are_told_of_once_and_under_their_own_name(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do("CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1)")
    database.do("CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent); INSERT INTO child VALUES (2)")
    parent, child = (Topic(node, f"{database.name}.{name}") for name in ("parent", "child"))
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))):
        assert told(await child.events(1)) == [({"id": 2}, "r", None, {"id": 2})]
        database.do("UPDATE child SET id = id; INSERT INTO parent VALUES (3)")
        assert told((await child.events(2))[1:]) == [({"id": 2}, "u", None, {"id": 2})]
        assert [key for key, _ in await parent.events(2)] == [{"id": 1}, {"id": 3}]


async def test_a_table_that_comes_without_a_key_and_one_that_loses_its_own(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do("CREATE TABLE other (id int PRIMARY KEY)")
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        await mirror.equals(database, "customers")
        status = agent.status
        database.do(BARE["bare"])
        await until(lambda: status().inputs["db"].status.tables_left_out == 1)
        changes_in(database, "bare")
        database.do("ALTER TABLE customers DROP CONSTRAINT customers_pkey")
        await until(lambda: status().inputs["db"].status.tables_left_out == 2)
        database.do("UPDATE customers SET name = 'unseen'")
        database.do("INSERT INTO customers (id, name) VALUES (2, 'unseen too')")
        database.do("ALTER TABLE customers ADD PRIMARY KEY (id)")
        # What happened meanwhile is not in the log: the table is read anew.
        await mirror.equals(database, "customers")
        database.do("UPDATE customers SET name = 'seen' WHERE id = 2")
        await mirror.equals(database, "customers")
        assert mirror.ops == ["r", "r", "r", "u"]
        assert status().inputs["db"].restarts == 0
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))):
        database.do("UPDATE customers SET name = 'later'")
        await mirror.equals(database, "customers")
    assert mirror.ops == ["r", "r", "r", "u", "u", "u"], "another life knows that it was read"


@pytest.mark.parametrize("top", ["", EXACTLY], ids=["at-least", "exactly"])
async def test_all_that_are_left_lose_their_keys(
    database: Database, node: EmbeddedBroker, tmp_path: Path, top: str
) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database, top=top)
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(file)) as agent:
        await mirror.equals(database, "customers")
        database.do("ALTER TABLE customers DROP CONSTRAINT customers_pkey")
        assert "no table is left to be followed. public.customers left out: " in await failure(agent)
        database.do("UPDATE customers SET name = 'unseen'")
    database.do("ALTER TABLE customers ADD PRIMARY KEY (id)")
    async with running(read_agent(file)):
        await mirror.equals(database, "customers")
    assert mirror.ops == ["r", "r"]


async def test_a_table_that_is_named_is_refused_and_works(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do(BARE["bare"])
    # As an agent of before left it.
    database.do(f"CREATE PUBLICATION {database.name} FOR TABLE customers, bare")
    with pytest.raises(psycopg.Error, match="replica identity"):
        changes_in(database, "bare")
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    file.write_text(file.read_text().replace('["public.*"]', '["public.customers", "public.bare"]'))
    async with running(read_agent(file)) as agent:
        words = await failure(agent)
        assert "public.bare" in words
        assert "ALTER TABLE public.bare REPLICA IDENTITY FULL" in words
        changes_in(database, "bare")


async def test_a_publication_of_all_tables_is_told_of(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    database.do(BARE["bare"])
    database.do(f"CREATE PUBLICATION {database.name} FOR ALL TABLES WITH (publish_via_partition_root = true)")
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        await mirror.equals(database, "customers")
        told = agent.status().inputs["db"].status.last_error
        assert f"publication {database.name} has them all the same" in told
        database.do("INSERT INTO bare VALUES (1, 'not sent')")
        database.do("INSERT INTO customers (id, name) VALUES (2, 'two')")
        await mirror.equals(database, "customers")
        assert agent.status().inputs["db"].status.events == 2
