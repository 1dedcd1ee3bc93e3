"""A live Postgres is a table of the lake, row for row, whatever is killed between the two."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import EmbeddedBroker
from tests.faults.counts import SOAKING, rounds
from tests.faults.postgres.mirrored import AGENT, DRIVER, VICTIMS, Accounts, Mirrored
from tests.faults.postgres.scene import Database
from tests.faults.postgres.server import PostgresServer

SEED = int(os.environ.get("PENSTOCK_SEED", "1"))


@pytest.fixture
def mirrored(postgres: PostgresServer, node: EmbeddedBroker, tmp_path: Path) -> Iterator[Mirrored]:
    database = Database(postgres, "mirrored")
    made = Mirrored(tmp_path, node.bootstrap_servers, database, pgbench=SOAKING)
    try:
        made.begin()
        yield made
    finally:
        made.end()
        database.drop_slot(database.name)
        database.close()


@pytest.mark.timeout(7_200 if SOAKING else 300)
def test_the_tables_of_the_lake_are_those_of_the_database(mirrored: Mirrored) -> None:
    chance, load = random.Random(SEED), Accounts(mirrored.database, SEED)
    mirrored.work(load, 60)
    mirrored.settle()
    few = (AGENT, DRIVER)
    for number in rounds(len(few), 60):
        victim = chance.choice(VICTIMS) if SOAKING else few[number]
        print(f"{number}: {victim}", flush=True)
        mirrored.work(load, 40)
        mirrored.strike(victim)
        mirrored.work(load, 20)
    mirrored.settle()
    assert mirrored.audited() == []
    assert mirrored.database.do("SELECT count(*) > 20 FROM accounts") == [(True,)]
