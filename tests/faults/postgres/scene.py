"""A database, an agent that follows it, and somebody who keeps the last record of each key."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.client.consumer import Consumer
from penstock.kernels import ConsumerRecord
from penstock.model.ids import TopicPartition
from tests.faults.postgres.server import PostgresServer
from tests.patience import Patience

UNAVAILABLE = "__debezium_unavailable_value"

AGENT_FILE = """
name = "{name}"
bootstrap = "{bootstrap}"
state_dir = "{state}"
admin = "off"
{top}
[output]
linger = "1ms"
flush_within = "20s"
[inputs.db]
type = "postgres"
dsn = "{dsn}"
tables = ["public.*"]
topic = "{name}.{{source.table}}"
slot = "{name}"
watch = "200ms"
{more}
"""

CUSTOMERS = """
CREATE TABLE customers (
    id int PRIMARY KEY, name text NOT NULL, amount numeric(20, 4), seen timestamptz, tags text[], body text
);
ALTER TABLE customers ALTER COLUMN body SET STORAGE EXTERNAL
"""

Row = tuple[Any, ...]


class Database:
    """One of a server, with a writer of its own."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server, self.name = server, name
        self._connection = server.make_database(name)

    def do(self, sql: str, *given: Any) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, given or None)
            return cursor.fetchall() if cursor.description is not None else []

    @contextmanager
    def copy(self, sql: str) -> Iterator[Any]:
        with self._connection.cursor() as cursor, cursor.copy(sql) as copy:
            yield copy

    def again(self) -> None:
        """After the server was away."""
        self._connection.close()
        self._connection = self.server.connect(self.name)

    def close(self) -> None:
        self._connection.close()

    def drop_slot(self, slot: str) -> None:
        self.do("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", slot)

    def rows(self, table: str) -> dict[str, dict[str, Any]]:
        """By key, as JSON: what a mirror of it has to be."""
        found = self.do(f"SELECT to_jsonb(t) FROM {table} t")
        return {json.dumps(row["id"]): _plain(row) for (row,) in found}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Decimals as numbers and times to the second, however they are written."""
    plain = dict(row)
    if plain.get("amount") is not None:
        plain["amount"] = float(plain["amount"])
    if plain.get("seen") is not None:
        plain["seen"] = plain["seen"][:19]
    return plain


class Mirror:
    """What the last record of each key says. Values that the log does not have are those of the row before."""

    def __init__(self, bootstrap: str, topic: str, *, committed: bool = False) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._isolation = "read_committed" if committed else "read_uncommitted"
        self.rows: dict[str, dict[str, Any]] = {}
        self.records: list[ConsumerRecord] = []
        self.deletes = self.tombstones = 0

    async def until(self, so: Callable[[], bool], seconds: float = 30.0) -> None:
        """Reads on from the beginning of the topic until it is so."""
        patience = Patience(seconds)
        place = TopicPartition(self._topic, 0)
        async with Consumer(
            bootstrap_servers=self._bootstrap, offset_reset="earliest", isolation_level=self._isolation
        ) as consumer:
            consumer.assign([place])
            consumer.seek(place, self.records[-1].offset + 1 if self.records else 0)
            while not so():
                assert not patience.over(), self.told()
                for record in await consumer.poll(10_000, timeout_ms=50):
                    self.take(record)

    def told(self) -> str:
        last = [(record.key, record.value) for record in self.records[-3:]]
        return f"{len(self.records)} records, {len(self.rows)} rows, the last are {last}"

    def take(self, record: ConsumerRecord) -> None:
        self.records.append(record)
        assert record.key is not None, record
        key = json.dumps(json.loads(record.key)["id"])
        if record.value is None:
            self.tombstones += 1
            assert key not in self.rows, "a tombstone comes behind its delete"
            return
        event = json.loads(record.value)
        if event["op"] == "d":
            self.deletes += 1
            self.rows.pop(key, None)
            return
        before, after = self.rows.get(key, {}), event["after"]
        self.rows[key] = _plain(
            {name: before.get(name, value) if value == UNAVAILABLE else value for name, value in after.items()}
        )

    @property
    def ops(self) -> list[str]:
        return [json.loads(record.value)["op"] if record.value is not None else "-" for record in self.records]

    async def equals(self, database: Database, table: str, seconds: float = 30.0) -> None:
        """The table stands still meanwhile."""
        wanted = database.rows(table)
        try:
            await self.until(lambda: self.rows == wanted, seconds)
        except AssertionError as late:
            keys = [key for key in {*self.rows, *wanted} if self.rows.get(key) != wanted.get(key)]
            first = [(key, self.rows.get(key), wanted.get(key)) for key in keys[:3]]
            raise AssertionError(f"{len(keys)} rows differ, {str(first)[:600]}: {late}") from None


class Load:
    """Random transactions: rows come, change, move to other keys, go; some are rolled back."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database, self._chance = database, random.Random(seed)

    def transaction(self) -> None:
        chance, statements = self._chance, list(self._statements())
        end = "ROLLBACK" if chance.random() < 0.1 else "COMMIT"
        self._database.do("BEGIN")
        for sql, given in statements:
            self._database.do(sql, *given)
        self._database.do(end)

    def _statements(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        chance = self._chance
        for _ in range(chance.randint(1, 6)):
            id, other = chance.randint(1, 60), chance.randint(1, 60)
            match chance.choice(("put", "put", "put", "name", "drop", "move")):
                case "put":
                    body = None if chance.random() < 0.3 else chance.choice("xyz") * chance.choice((10, 9_000))
                    given = (id, f"name {chance.random()}", chance.randint(0, 10**6) / 100, [f"t,{id}", '"'], body)
                    yield (
                        "INSERT INTO customers (id, name, amount, seen, tags, body)"
                        " VALUES (%s, %s, %s, now(), %s, %s) ON CONFLICT (id) DO UPDATE SET name = excluded.name,"
                        " amount = excluded.amount, seen = excluded.seen, tags = excluded.tags, body = excluded.body",
                        given,
                    )
                case "name":
                    yield "UPDATE customers SET name = %s WHERE id = %s", (f"name {chance.random()}", id)
                case "drop":
                    yield "DELETE FROM customers WHERE id = %s", (id,)
                case "move":
                    yield (
                        "UPDATE customers SET id = %s WHERE id = %s AND NOT EXISTS"
                        " (SELECT FROM customers WHERE id = %s)",
                        (other, id, other),
                    )


def agent_file(
    folder: Path, bootstrap: str, database: Database, *, top: str = "", more: str = "", state: str = "state"
) -> Path:
    path = folder / f"{state}.toml"
    text = AGENT_FILE.format(
        name=database.name, bootstrap=bootstrap, state=folder / state, dsn=database.server.dsn(database.name),
        top=top, more=more,
    )  # fmt: skip
    path.write_text(text)
    return path


async def pause() -> None:
    """Lets an agent in this process work."""
    await asyncio.sleep(0)
