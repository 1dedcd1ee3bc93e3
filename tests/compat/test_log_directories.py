"""Several log directories, judged by Apache Kafka: moves, the directories in the metadata, the exchange."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.compat.apache.tools import Tools, run_tool
from tests.compat.conftest import NodeFactory
from tests.compat.processes import wait_for
from tests.compat.test_exchange import numbered_batch
from tests.compat.wire import connect, create_topic, produce, request, stored_batches, text

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

PARTITIONS = 4
NAMES = ("data", "more")
ALTER_REPLICA_LOG_DIRS = 34


def two_directories(home: Path) -> dict[str, str]:
    return {"log.dirs": f"{home}/data,{home}/more"}


def directories_of(home: Path, partition: int) -> list[str]:
    """The directories that hold a partition under its own name."""
    return [name for name in NAMES if (home / name / f"placed-{partition}").is_dir()]


def directory_of(home: Path, partition: int) -> str:
    (found,) = directories_of(home, partition)
    return found


def directory_ids(home: Path) -> dict[str, str]:
    pattern = re.compile(r"^directory\.id=(\S+)$", re.MULTILINE)
    found = {name: pattern.search((home / name / "meta.properties").read_text()) for name in NAMES}
    return {name: match[1] for name, match in found.items() if match is not None}


def assigned(home: Path) -> dict[int, str]:
    """The directory id of each partition in the metadata log, as Kafka's own decoder reads it."""
    logs = sorted((home / "data" / "__cluster_metadata-0").glob("*.log"))
    outcome = run_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, logs)))
    found: dict[int, str] = {}
    for match in re.finditer(r'\{"type":"PARTITION(?:_CHANGE)?_RECORD".*\}', str(outcome)):
        data = json.loads(match[0])["data"]
        if data.get("directories"):
            (found[data["partitionId"]],) = data["directories"]
    return found


def move(bootstrap: str, partition: int, directory: Path) -> None:
    """AlterReplicaLogDirs, spelled by hand: kafka-reassign-partitions wants to reassign as well."""
    one = (1).to_bytes(4, "big")
    body = one + text(str(directory)) + one + text("placed") + one + partition.to_bytes(4, "big")
    with connect(bootstrap) as connection:
        reply = connection.call(request(ALTER_REPLICA_LOG_DIRS, 1, body))
    assert (reply.take("ii"), reply.text(), reply.take("iih")) == ((0, 1), "placed", (1, partition, 0))


def described(tools: Tools) -> dict[str, set[str]]:
    """Partitions by log directory, as kafka-log-dirs tells them."""
    told = tools.run("kafka-log-dirs", "--describe", "--topic-list", "placed").lines()[-1]
    (broker,) = json.loads(told)["brokers"]
    return {each["logDir"]: {found["partition"] for found in each["partitions"]} for each in broker["logDirs"]}


@pytest.mark.parametrize("from_apache", [False, True], ids=["ours-to-apache", "apache-to-ours"])
def test_replicas_in_several_directories_move_and_are_exchanged(
    make_node: NodeFactory, tmp_path: Path, from_apache: bool
) -> None:
    home = tmp_path / "first"
    first = make_node("first", apache=from_apache, properties=two_directories(home))
    create_topic(first.bootstrap, "placed", PARTITIONS)
    with connect(first.bootstrap) as connection:
        for partition in range(PARTITIONS):
            for sequence in range(5):
                produce(connection, "placed", partition, numbered_batch(sequence))
    target = "more" if directory_of(home, 0) == "data" else "data"
    move(first.bootstrap, 0, home / target)
    wait_for("the old directory to go", lambda: directories_of(home, 0) == [target], timeout_s=30)
    assert described(Tools(first.bootstrap)) == {
        str(home / name): {f"placed-{each}" for each in range(PARTITIONS) if directory_of(home, each) == name}
        for name in NAMES
    }
    names = directory_ids(home)
    wait_for(
        "the controller to know every directory",
        lambda: assigned(home) == {each: names[directory_of(home, each)] for each in range(PARTITIONS)},
        timeout_s=30,
        pause_s=1,
    )
    first.stop()
    other = tmp_path / "second"
    for name in NAMES:
        shutil.copytree(home / name, other / name)
    second = make_node("second", apache=not from_apache, properties=two_directories(other))
    for partition in range(PARTITIONS):
        assert [each.base_offset for each in stored_batches(second.bootstrap, "placed", partition)] == list(range(5))
        assert directory_of(other, partition) == directory_of(home, partition)
    with connect(second.bootstrap) as connection:
        for partition in range(PARTITIONS):
            assert produce(connection, "placed", partition, numbered_batch(5)).base_offset == 5
    second.stop()
    assert assigned(other) == assigned(home)
