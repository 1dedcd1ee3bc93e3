"""A table of a real Postgres, through an agent, in a topic: what whoever reads it has at the end is the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.agent.settings import read_agent
from penstock.testing import EmbeddedBroker
from tests.faults.postgres.scene import CUSTOMERS, Database, Mirror, agent_file
from tests.faults.postgres.server import PostgresServer
from tests.patience import until
from tests.walks.agent.scene import running


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = request.node.name.split("[")[0].removeprefix("test_")[:50]
    made = Database(postgres, name)
    yield made
    with suppress(Exception):
        made.drop_slot(name)
    made.close()


async def test_rows_that_were_there_and_all_that_becomes_of_them(
    database: Database, node: EmbeddedBroker, tmp_path: Path
) -> None:
    database.do(CUSTOMERS)
    database.do(
        "INSERT INTO customers SELECT n, 'name ' || n, n / 7.0, now(), ARRAY['a,b', NULL, '\"'], repeat('x', 9000)"
        " FROM generate_series(1, 3000) n"
    )
    settings = read_agent(agent_file(tmp_path, node.bootstrap_servers, database))
    mirror = Mirror(node.bootstrap_servers, f"{database.name}.customers")
    async with running(settings) as agent:
        await mirror.until(lambda: len(mirror.records) >= 3_000)
        assert mirror.ops == ["r"] * 3_000
        await mirror.equals(database, "customers")
        database.do("UPDATE customers SET name = 'other' WHERE id % 100 = 0")
        database.do("UPDATE customers SET id = id + 10000 WHERE id = 7")
        database.do("UPDATE customers SET amount = NULL, body = NULL WHERE id = 8")
        database.do("DELETE FROM customers WHERE id BETWEEN 10 AND 19")
        database.do("INSERT INTO customers (id, name) VALUES (9, 'taken') ON CONFLICT DO NOTHING")
        database.do("ALTER TABLE customers ADD COLUMN note text DEFAULT 'none'")
        database.do("INSERT INTO customers (id, name, note) VALUES (20000, 'new', 'with a note')")
        database.do("UPDATE customers SET name = 'noted'")
        database.do("ALTER TABLE customers DROP COLUMN tags")
        database.do("UPDATE customers SET name = 'last'")
        await mirror.equals(database, "customers")
        moved = [
            json.loads(record.value) for record in mirror.records if record.key == b'{"id":10007}' and record.value
        ]
        assert moved[0]["op"] == "c"
        assert moved[0]["after"]["body"] == "x" * 9_000, "the log does not have it, the table has"
        assert (mirror.deletes, mirror.tombstones) == (11, 11)
        status = agent.status().inputs["db"].status
        assert status.slot is not None
        assert (status.slot.name, status.slot.wal_status) == (database.name, "reserved")
        await until(lambda: _confirmed(database) >= _end(database))
    assert mirror.ops.count("r") == 3_000


def _confirmed(database: Database) -> int:
    ((lsn,),) = database.do(
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s", database.name
    )
    return int(lsn)


def _end(database: Database) -> int:
    ((lsn,),) = database.do("SELECT pg_current_wal_flush_lsn() - '0/0'")
    return int(lsn)
