"""What would be a silent gap is an error that says what to do; what can be mended is mended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.agent.agent import Agent
from penstock.agent.settings import read_agent
from penstock.testing import EmbeddedBroker
from tests.faults.postgres.scene import CUSTOMERS, Database, Mirror, agent_file
from tests.faults.postgres.server import PostgresServer, postgres_server
from tests.faults.postgres.test_kills import EXACTLY, ended, started
from tests.patience import until
from tests.walks.agent.scene import running


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = request.node.name.split("[")[0].removeprefix("test_")[:50]
    made = Database(postgres, name)
    made.do(CUSTOMERS)
    yield made
    with suppress(Exception):
        made.drop_slot(name)
    made.close()


async def failure(agent: Agent) -> str:
    """What the input says is wrong."""
    await until(lambda: agent.status().inputs["db"].state == "waiting", timeout_s=20)
    return agent.status().inputs["db"].status.last_error


async def follow_once(file: Path, database: Database, node: EmbeddedBroker) -> None:
    """A life that sends one row and ends in order."""
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    database.do("INSERT INTO customers (id, name) VALUES (1, 'one')")
    async with running(read_agent(file)):
        await mirror.equals(database, "customers")


async def test_a_slot_that_is_gone(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    await follow_once(file, database, node)
    database.drop_slot(database.name)
    async with running(read_agent(file)) as agent:
        assert "is gone, and with it the changes since" in await failure(agent)
    database.do("DELETE FROM customers")
    # What it says to do: another slot, and all is read anew.
    renamed = file.read_text().replace(f'slot = "{database.name}"', 'slot = "another_slot"')
    file.write_text(renamed)
    database.do("INSERT INTO customers (id, name) VALUES (2, 'two')")
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(file)):
        await mirror.until(lambda: len(mirror.records) >= 2)
        assert mirror.ops == ["r", "r"]
    database.drop_slot("another_slot")


async def test_a_slot_that_somebody_else_has_read(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    await follow_once(file, database, node)
    database.do("INSERT INTO customers (id, name) VALUES (2, 'two')")
    database.do("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", database.name)
    async with running(read_agent(file)) as agent:
        assert "was read by somebody else up to" in await failure(agent)


async def test_a_slot_of_another_plugin(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    database.do("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", database.name)
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
        assert "is another's (test_decoding" in await failure(agent)


async def test_a_publication_that_leaves_something_out(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    name = database.name
    database.do(f"CREATE PUBLICATION {name} FOR TABLE customers WITH (publish = 'insert')")
    async with running(read_agent(file)) as agent:
        assert "leaves some changes out: ALTER PUBLICATION" in await failure(agent)
    database.do(f"DROP PUBLICATION {name}; CREATE PUBLICATION {name} FOR TABLE customers WHERE (id > 5)")
    async with running(read_agent(file)) as agent:
        assert "only rows of public.customers that are (id > 5)" in await failure(agent)
    database.do(f"DROP PUBLICATION {name}; CREATE PUBLICATION {name}")
    await follow_once(file, database, node)
    assert database.do("SELECT tablename::text FROM pg_publication_tables WHERE pubname = %s", name) == [("customers",)]


async def test_columns_that_are_not_published_are_not_read_either(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do(f"CREATE PUBLICATION {database.name} FOR TABLE customers (id, name)")
    database.do("INSERT INTO customers (id, name, body) VALUES (1, 'one', 'secret')")
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))):
        await mirror.until(lambda: len(mirror.records) >= 1)
        database.do("INSERT INTO customers (id, name, body) VALUES (2, 'two', 'secret')")
        await mirror.until(lambda: len(mirror.records) >= 2)
    assert list(mirror.rows.values()) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


async def test_no_table_of_that_name_and_no_login(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    usual = file.read_text()
    file.write_text(usual.replace('tables = ["public.*"]', 'tables = ["public.custmers"]'))
    async with running(read_agent(file)) as agent:
        assert "no table is called public.custmers; there is public.customers" in await failure(agent)
    file.write_text(usual.replace("dbname=", "connect_timeout=2 dbname=not_"))
    async with running(read_agent(file)) as agent:
        assert "no login to Postgres: " in await failure(agent)
        assert "does not exist" in await failure(agent)


async def test_only_changes_when_nobody_wants_what_was_there(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do("INSERT INTO customers (id, name) VALUES (1, 'old')")
    file = agent_file(tmp_path, node.bootstrap_servers, database, more='snapshot = "never"\ntombstones = false')
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(file)) as agent:
        await until(lambda: "follows the log" in agent.status().inputs["db"].status.words)
        database.do("INSERT INTO customers (id, name) VALUES (2, 'new'); DELETE FROM customers WHERE id = 1")
        await mirror.until(lambda: len(mirror.records) >= 2)
    assert mirror.ops == ["c", "d"]


async def test_a_stop_while_the_slot_is_waited_for(database: Database, node: EmbeddedBroker, tmp_path: Path) -> None:
    """A slot begins behind all transactions that are open: that may take as long as they do."""
    other = database.server.connect(database.name)
    other.autocommit = False
    other.execute("INSERT INTO customers (id, name) VALUES (1, 'open')")
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%%' AND application_name = %s"
    async with running(read_agent(file)):
        await until(lambda: bool(database.do(waiting, f"penstock {database.name}")))
        await asyncio.sleep(0)
    other.commit()
    other.close()
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(read_agent(file)):
        await mirror.equals(database, "customers")


async def test_a_server_whose_log_tells_nothing_of_rows(node: EmbeddedBroker, tmp_path: Path) -> None:
    with postgres_server(wal_level="replica") as server:
        database = Database(server, "plain")
        database.do(CUSTOMERS)
        async with running(read_agent(agent_file(tmp_path, node.bootstrap_servers, database))) as agent:
            assert "set wal_level = logical" in await failure(agent)
        database.close()


async def test_another_server_with_the_same_names(
    database: Database, node: EmbeddedBroker, tmp_path: Path, postgres: PostgresServer
) -> None:
    file = agent_file(tmp_path, node.bootstrap_servers, database)
    await follow_once(file, database, node)
    with postgres_server() as server:
        other = Database(server, database.name)
        other.do(CUSTOMERS)
        other.do("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", database.name)
        file.write_text(file.read_text().replace(str(postgres.folder), str(server.folder)))
        async with running(read_agent(file)) as agent:
            assert "this is not the server whose log was read before" in await failure(agent)
        other.close()


async def test_a_server_that_was_taken_back_to_an_older_backup(node: EmbeddedBroker, tmp_path: Path) -> None:
    with postgres_server() as server:
        database = Database(server, "taken_back")
        database.do(CUSTOMERS)
        file = agent_file(tmp_path, node.bootstrap_servers, database)
        await follow_once(file, database, node)
        database.close()
        await asyncio.to_thread(server.back_up)
        database.again()
        database.do("INSERT INTO customers (id, name) VALUES (2, 'of a future that is not')")
        mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
        async with running(read_agent(file)):
            await mirror.equals(database, "customers")
        database.close()
        await asyncio.to_thread(server.restore)
        async with running(read_agent(file)) as agent:
            assert "was taken back to an older backup" in await failure(agent)


async def test_exactly_once_is_given_up_right_after_a_crash(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    """What is saved here is behind the topic of positions by a moment: the server still has what comes after it."""
    file = agent_file(tmp_path, node.bootstrap_servers, database, top=EXACTLY)
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers", committed=True)
    await follow_once(file, database, node)
    agent = started(file, "plant=uncopied")
    database.do("INSERT INTO customers (id, name) VALUES (2, 'two')")
    await mirror.equals(database, "customers")
    ((known,),) = database.do("SELECT now()")
    told = "SELECT 1 FROM pg_stat_replication WHERE application_name = %s AND reply_time > %s + interval '100 ms'"
    await until(lambda: bool(database.do(told, f"penstock {database.name}", known)), "another word of the agent")
    ended(agent, signal.SIGKILL)
    file.write_text(file.read_text().replace(EXACTLY, ""))
    async with running(read_agent(file)):
        database.do("INSERT INTO customers (id, name) VALUES (3, 'three')")
        await mirror.equals(database, "customers")
