"""The exchange with transactions in the data directory: Apache Kafka goes on with ours, and our node with Kafka's.

Those that were decided stay so, those that were prepared end as they were meant to, and those that were open can still
be ended, time out, or are fenced by the next producer with their id.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock import GroupMetadata, PreparedTransaction
from penstock.blocking import Admin, Producer
from penstock.coordinators.home import home_partition
from penstock.model.ids import TopicPartition
from tests.compat.apache.tools import Tools
from tests.compat.conftest import NodeFactory
from tests.compat.processes import wait_for
from tests.compat.test_own_transactions import BUMPING, CLASSIC, set_level
from tests.compat.test_transactions import settled
from tests.compat.wire import batches, create_topic

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

STATE_PARTITIONS = 16
HOMES = {
    "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
    "offsets.topic.num.partitions": str(STATE_PARTITIONS),
}
NEVER = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000"}
SOON = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "300"}
FATES = ("committed", "aborted", "open", "overdue", "fenced", "half-committed", "half-aborted")
KINDS = {CLASSIC: "classic", BUMPING: "bumping"}
# Names of topics, of transactional ids and of groups at once.
NAMES = [f"{fate}-{kind}" for kind in KINDS.values() for fate in FATES]
HALF = [name for name in NAMES if name.startswith("half")]
VISIBLE = [name for name in NAMES if name.split("-")[-2] in ("committed", "open")]
CONTROL = 0x20


def write(bootstrap: str, name: str) -> PreparedTransaction | None:
    """A topic of two partitions, and in it a transaction with offsets that has come as far as its name says."""
    create_topic(bootstrap, name, 2)
    overdue = name.startswith("overdue")
    timeout_ms = 1_000 if overdue else 900_000
    with Producer(bootstrap, transactional_id=name, transaction_timeout_ms=timeout_ms) as producer:
        producer.begin()
        for partition in (0, 1):
            producer.send(name, f"{name} {partition}", partition=partition)
        producer.flush()
        producer.send_offsets(GroupMetadata(name), {TopicPartition(name, 0): 1})
        if name.startswith(("committed", "half-committed")):
            producer.commit()
        elif name.startswith(("aborted", "half-aborted")):
            producer.abort()
        else:
            return producer.prepare()
    return None


def states(bootstrap: str) -> dict[str, str]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return {found.id: found.state for found in admin.list_transactions()}


def stable_ends(bootstrap: str, name: str) -> list[int]:
    tps = [TopicPartition(name, partition) for partition in (0, 1)]
    with Admin(bootstrap_servers=bootstrap) as admin:
        found = admin.offsets(dict.fromkeys(tps, "latest"), read_committed=True).checked()
    return [found[tp].offset for tp in tps]


def lose_the_last_batch(partition: Path, *, control: bool) -> None:
    """What a machine that lost its power may do to a batch that was not flushed."""
    (segment,) = partition.glob("*.log")
    data = segment.read_bytes()
    (*earlier, last) = batches(data)
    assert bool(last.attributes & CONTROL) == control, partition
    at = 0
    for _ in earlier:
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    segment.write_bytes(data[:at])
    assert at > 0


def as_if_killed(data: Path) -> None:
    """Takes away what a clean stop leaves for the next start."""
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    for snapshot in data.glob("*-*/*.snapshot"):
        snapshot.unlink()


def half_ended(data: Path) -> None:
    """The end is decided and written to the first partition; the second, the group and the coordinator lost it."""
    homes = [home_partition(name, STATE_PARTITIONS) for name in NAMES]
    for name in HALF:
        home = home_partition(name, STATE_PARTITIONS)
        assert homes.count(home) == 1, "a log that others write to has not the wanted batch at its end"
        lose_the_last_batch(data / f"__transaction_state-{home}", control=False)
        lose_the_last_batch(data / f"__consumer_offsets-{home}", control=True)
        lose_the_last_batch(data / f"{name}-1", control=True)


@pytest.mark.parametrize("ending", ["stopped", "killed"])
@pytest.mark.parametrize("from_apache", [False, True], ids=["ours-to-apache", "apache-to-ours"])
def test_transactions_end_as_they_must_on_the_other_node(
    make_node: NodeFactory, tmp_path: Path, from_apache: bool, ending: str
) -> None:
    first = make_node("first", apache=from_apache, properties=HOMES | NEVER)
    prepared: dict[str, PreparedTransaction | None] = {}
    for level, kind in KINDS.items():
        set_level(first.bootstrap, level)
        prepared |= {name: write(first.bootstrap, name) for name in NAMES if name.endswith(kind)}
    undecided = {name for name in NAMES if prepared[name] is not None}
    wait_for(
        "the ends to be written down",
        lambda: all(states(first.bootstrap)[name].startswith("Complete") for name in NAMES if name not in undecided),
        timeout_s=30,
    )
    assert {name for name, state in states(first.bootstrap).items() if state == "Ongoing"} == undecided
    data = tmp_path / "second" / "data"
    if ending == "stopped" or not from_apache:
        first.stop()
    else:
        first.kill()
    shutil.copytree(first.data_dir, data)
    if ending == "killed":
        # A killed broker that starts leads its partitions before the controller has it back. Apache Kafka then finds
        # no leader for the markers, takes the partitions for deleted and leaves them hanging (KAFKA-20734): so the
        # metadata it is given are those of a broker that went in peace.
        if not from_apache:
            as_if_killed(data)
        half_ended(data)

    second = make_node("second", apache=not from_apache, properties=HOMES | SOON).bootstrap
    wanted = {
        name: "Ongoing" if name in undecided else "CompleteCommit" if name in VISIBLE else "CompleteAbort"
        for name in NAMES
    } | {name: "CompleteAbort" for name in NAMES if name.startswith("overdue")}
    wait_for(f"{wanted}", lambda: states(second) == wanted, timeout_s=60)
    for name in NAMES:
        if wanted[name] == "Ongoing":
            assert stable_ends(second, name) == [0, 0]
    with Admin(bootstrap_servers=second) as admin:
        for name, each in prepared.items():
            if each is not None and name.startswith("open"):
                assert each.transaction_version == (BUMPING if name.endswith("bumping") else CLASSIC)
                admin.end_transaction(each, commit=True)
    for name in NAMES:  # the next producer of every id writes one record more, and fences what is still open
        with Producer(second, transactional_id=name) as producer, producer.transaction():
            producer.send(name, f"{name} again", partition=0)
        for partition in (0, 1):
            settled(second, name, partition)

    values = [f"{name} again" for name in NAMES] + [f"{name} {partition}" for name in VISIBLE for partition in (0, 1)]
    shown = Tools(second).run(
        "kafka-console-consumer", "--include", ".*-(classic|bumping)", "--from-beginning", "--timeout-ms", "20000",
        "--max-messages", str(len(values) + 1), "--isolation-level", "read_committed",
    )  # fmt: skip
    assert sorted(shown.lines()) == sorted(values)
    with Admin(bootstrap_servers=second) as admin:
        for name in NAMES:
            offsets = {tp: found.offset for tp, found in admin.group_offsets(name).items()}
            assert offsets == ({TopicPartition(name, 0): 1} if name in VISIBLE else {}), name
