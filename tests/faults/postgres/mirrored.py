"""A database and the lake that follows it: Postgres → agent → topics → Spark → Delta and Iceberg, all to be killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from penstock.blocking import Admin
from penstock.demo.processes import PENSTOCK, PYTHON, Actor
from penstock.spark.lake.audit import audit
from penstock.spark.lake.warehouse import NoSuchTable, Warehouse
from penstock.spark.pipeline.home import Home
from penstock.spark.values.ddl_grammar import names_in
from tests.faults.postgres.scene import Database
from tests.faults.postgres.server import programs
from tests.patience import TimedOut, wait_for

AGENT, DRIVER, POSTGRES = "agent", "driver", "postgres"
VICTIMS: Final = (AGENT, DRIVER, POSTGRES)

ACCOUNTS: Final = """
CREATE TABLE accounts (
    branch int, id bigint, owner text NOT NULL, balance numeric(20, 4), ratio float8, share real, open bool,
    seen timestamptz, at timestamp, born date, photo bytea, tags text[], scores int[], extra jsonb, mark uuid,
    rank smallint, note text, PRIMARY KEY (branch, id)
);
ALTER TABLE accounts ALTER COLUMN note SET STORAGE EXTERNAL, ALTER COLUMN photo SET STORAGE EXTERNAL,
    ALTER COLUMN tags SET STORAGE EXTERNAL, ALTER COLUMN scores SET STORAGE EXTERNAL
"""
COLUMNS: Final = (
    "branch INT, id BIGINT, owner STRING, balance DECIMAL(20, 4), ratio DOUBLE, share FLOAT, open BOOLEAN,"
    " seen TIMESTAMP, at TIMESTAMP_NTZ, born DATE, photo BINARY, tags ARRAY<STRING>, scores ARRAY<INT>, extra STRING,"
    " mark STRING, rank SMALLINT, note STRING"
)
PGBENCH: Final = "aid INT, bid INT, abalance INT, filler STRING"

AGENT_FILE: Final = """
name = "{name}"
bootstrap = "{bootstrap}"
state_dir = "state"
admin = "off"
exactly_once = true
machine_id = "this-one"
[output]
linger = "1ms"
[inputs.db]
type = "postgres"
dsn = "{dsn}"
tables = ["public.*"]
topic = "{name}.{{source.table}}"
slot = "{name}"
watch = "200ms"
"""
PIPELINE_FILE: Final = """
name = "{name}"
bootstrap = "{bootstrap}"
warehouse = "lake"
[spark]
master = "local[2,4]"
settings."spark.driver.memory" = "1g"
settings."spark.sql.shuffle.partitions" = "2"
settings."spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
TABLE: Final = """
[sources.{table}]
topic = "{name}.{table}"
format = "json"
cdc = "debezium"
schema = "{columns}"
start = "earliest"
dead_letters = "fail"
[sinks.{table}_delta]
from = "{table}"
table = "{table}_delta"
keys = {keys}
buckets = 4
trigger = "1 second"
[sinks.{table}_ice]
from = "{table}"
table = "{table}_ice"
table_format = "iceberg"
keys = {keys}
buckets = 4
trigger = "1 second"
"""


class Mirrored:
    """`begin` it, strike, `settle`, `end` it."""

    def __init__(self, folder: Path, bootstrap: str, database: Database, *, pgbench: bool) -> None:
        self.folder, self.bootstrap, self.database = folder, bootstrap, database
        self._tables = {"accounts": (COLUMNS, ["branch", "id"])}
        if pgbench:
            self._tables["pgbench_accounts"] = (PGBENCH, ["aid"])
        root = str(Path(__file__).parents[3])
        command = [*PYTHON[:1], "-m", "tests.faults.agent.run_agent", "agent.toml"]
        self.agent = Actor("agent", command, folder, {"PYTHONPATH": root})
        command = [*PENSTOCK, "pipeline", "run", "pipeline.toml", "--quiet", "--stop-within", "15"]
        self.pipeline = Actor("pipeline", command, folder, {"XDG_STATE_HOME": str(folder / "home")})
        self._home = Home(database.name, folder / "home" / "penstock" / "pipelines")

    # -- life

    def begin(self) -> None:
        database, name = self.database, self.database.name
        database.do(ACCOUNTS)
        if len(self._tables) > 1:
            self._pgbench("-i", "-q")
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            for table in self._tables:
                admin.create_topic(f"{name}.{table}", 2)
        places = {"name": name, "bootstrap": self.bootstrap, "dsn": database.server.dsn(name)}
        (self.folder / "agent.toml").write_text(AGENT_FILE.format(**places))
        tables = [
            TABLE.format(name=name, table=table, columns=columns, keys=keys)
            for table, (columns, keys) in self._tables.items()
        ]
        (self.folder / "pipeline.toml").write_text("".join([PIPELINE_FILE.format(**places), *tables]))
        self.pipeline.start()
        self.agent.start()

    def end(self) -> None:
        self.pipeline.ask_to_end()
        for each in (self.agent, self.pipeline):
            each.end(20)

    def _pgbench(self, *arguments: str) -> None:
        command = [str(programs() / "pgbench"), "-n", "-h", str(self.database.server.folder), "-U", "penstock"]
        subprocess.run([*command, *arguments, self.database.name], check=True, capture_output=True)

    # -- load and blows

    def work(self, load: Accounts, transactions: int) -> None:
        for _ in range(transactions):
            load.transaction()
        if len(self._tables) > 1:
            self._pgbench("-c", "2", "-t", str(10 * transactions))

    def strike(self, victim: str) -> None:
        match victim:
            case "agent":
                self.agent.kill_and_start()
            case "driver":
                driver = self._driver_pid()
                os.kill(driver, signal.SIGKILL)
                wait_for("another driver", lambda: self._driver_pid() != driver, timeout_s=90)
            case "postgres":
                self.database.server.kill()
                self.database.server.start()
                self.database.again()

    def _driver_pid(self) -> int:
        state = self._home.state()
        assert state is not None, "the pipeline was started"
        assert state.alive, f"the pipeline runs:\n{self.pipeline.last_words()}"
        return state.driver_pid

    # -- the proof

    def ends(self) -> list[tuple[str, str]]:
        """Each table, and one of the lake that has to be as it is."""
        return [(table, f"{table}_{end}") for table in self._tables for end in ("delta", "ice")]

    def settle(self) -> None:
        """The database stands still meanwhile."""
        for table, end in self.ends():
            try:
                wait_for(f"{end} to be {table}", lambda t=table, e=end: self._same(t, e), timeout_s=120, pause_s=0.3)
            except TimedOut as late:
                words = f"{self.pipeline.last_words()}\n{self.agent.last_words()}"
                raise TimedOut(f"{late}\n{self.differences(table, end)}\n{words}") from None

    def _same(self, table: str, end: str) -> bool:
        assert self.pipeline.alive, self.pipeline.last_words()
        assert self.agent.alive, self.agent.last_words()
        with suppress(NoSuchTable):  # a table that is not there yet
            return self.differences(table, end) == ([], [])
        return False

    def differences(self, table: str, end: str) -> tuple[list[Any], list[Any]]:
        """Rows that only Postgres has, and rows that only the lake has: `except` says so, both ways."""
        names = list(names_in(self._tables[table][0]))
        rows = self._lake_rows(end, names)
        do = self.database.do
        do(f"DROP TABLE IF EXISTS pg_temp.there; CREATE TEMP TABLE there (LIKE {table})")
        with self.database.copy(f"COPY there ({', '.join(names)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        assert do("SELECT count(*) FROM there") == [(len(rows),)]
        listed = ", ".join(names)
        here, there = f"SELECT {listed} FROM {table}", f"SELECT {listed} FROM there"
        lost, added = do(f"{here} EXCEPT ALL {there}"), do(f"{there} EXCEPT ALL {here}")
        return [str(row)[:300] for row in lost[:3]], [str(row)[:300] for row in added[:3]]

    def _lake_rows(self, end: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
        from penstock.spark.lake.query import dataset_of

        found = Warehouse(str(self.folder / "lake")).find(end).open()
        table = dataset_of(found).to_table(columns=list(names))
        return list(zip(*(table[name].to_pylist() for name in names), strict=True))

    def audited(self) -> list[str]:
        results = [(end, audit(Warehouse(str(self.folder / "lake")).find(end).open())) for _, end in self.ends()]
        return [f"{end}: {result}" for end, result in results if not result.clean]


class Accounts:
    """Random transactions with values of every kind: rows come, change, move to other keys, go; some are taken back."""

    def __init__(self, database: Database, seed: int) -> None:
        self._database, self._chance = database, random.Random(seed)

    def transaction(self) -> None:
        self._database.do("BEGIN")
        for _ in range(self._chance.randint(1, 5)):
            self._statement()
        self._database.do("ROLLBACK" if self._chance.random() < 0.1 else "COMMIT")

    def _statement(self) -> None:
        chance, do = self._chance, self._database.do
        key = (chance.randint(1, 4), chance.randint(1, 40) + (1 << 40))
        match chance.choice(("put", "put", "put", "change", "large", "drop", "move")):
            case "put":
                row = (*key, *self._values())
                names = "branch, id, owner, balance, ratio, share, open, seen, at, born, photo, tags, scores, extra,"
                names += " mark, rank, note"
                do(
                    f"INSERT INTO accounts ({names}) VALUES ({', '.join(['%s'] * len(row))}) ON CONFLICT (branch, id)"
                    " DO UPDATE SET owner = excluded.owner, balance = excluded.balance, seen = excluded.seen,"
                    " tags = excluded.tags, photo = excluded.photo, extra = excluded.extra",
                    *row,
                )
            case "change":
                # Large values stay as they are: the log does not have them.
                do("UPDATE accounts SET owner = %s WHERE branch = %s AND id = %s", f"é {chance.random()}", *key)
            case "large":
                note, photo = chance.choice("xyz") * 9_000, chance.randbytes(8_000)
                tags, scores = [chance.choice("pq") * 500] * 10, [chance.randint(-9, 9)] * 3_000
                do(
                    "UPDATE accounts SET note = %s, photo = %s, tags = %s, scores = %s WHERE branch = %s AND id = %s",
                    note, photo, tags, scores, *key,
                )  # fmt: skip
            case "drop":
                do("DELETE FROM accounts WHERE branch = %s AND id = %s", *key)
            case "move":
                do(
                    "UPDATE accounts SET branch = 5 - branch WHERE branch = %s AND id = %s AND NOT EXISTS"
                    " (SELECT FROM accounts WHERE branch = 5 - %s AND id = %s)",
                    *key, *key,
                )  # fmt: skip

    def _values(self) -> tuple[Any, ...]:
        chance = self._chance

        def some(value: Any) -> Any:
            return None if chance.random() < 0.15 else value

        day = f"20{chance.randint(10, 30)}-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}"
        minute = f"{day} 0{chance.randint(0, 9)}:59"
        return (
            f"name {chance.random()} \"'\\\n\t,",
            some(f"{chance.randint(-(10**15), 10**15)}.{chance.randint(0, 9999):04}"),
            some(chance.uniform(-1e9, 1e9)),
            some(chance.randint(-(10**6), 10**6) / 8),
            some(chance.random() < 0.5),
            some(f"{minute}:01.{chance.randint(0, 999_999):06}+0{chance.randint(0, 9)}"),
            some(f"{minute}:02"),
            some(day),
            some(chance.randbytes(chance.randint(0, 20))),
            some([chance.choice(("a,b", '"', "", "NULL", "{}", "é\\")) for _ in range(chance.randint(0, 3))]),
            some([chance.randint(-9, 9) for _ in range(chance.randint(0, 3))]),
            some(json.dumps({"n": [1, None, "é"], "m": chance.randint(0, 9)})),
            some(f"00000000-0000-0000-0000-{chance.randint(0, 10**12 - 1):012}"),
            some(chance.randint(-(2**15), 2**15 - 1)),
            some(chance.choice("uvw") * chance.choice((10, 9_000))),
        )
