"""What the metrics page tells of replication."""

from __future__ import annotations

from penstock.server.node_metrics import partition_samples, replication_samples
from tests.walks.houses import Street, walk

MANAGER = "kafka_server_replicamanager_"


def counts(street: Street, node: int) -> dict[str, float]:
    house = street[node]
    samples = [*partition_samples(house.partitions), *replication_samples(house.partitions, house.isr)]
    return {sample.name.removeprefix(MANAGER): sample.value for sample in samples if not sample.labels}


def test_a_leader_counts_what_lacks_replicas_and_a_follower_does_not() -> None:
    async def steps(street: Street) -> None:
        await street.create(4, min_insync_replicas="2")
        for partition, isr in enumerate(([1, 2, 3], [1, 2], [1])):
            street.change(partition, isr=isr)
        await street.publish()
        told = counts(street, 1)
        assert (told["leadercount"], told["partitioncount"]) == (4, 4)
        assert (told["underreplicatedpartitions"], told["underminisrpartitioncount"]) == (2, 1)
        assert told["atminisrpartitioncount"] == 1
        following = counts(street, 2)
        assert (following["leadercount"], following["underreplicatedpartitions"]) == (0, 0)

    walk(steps)


def test_changes_of_in_sync_sets_and_the_latest_follower_are_told() -> None:
    async def steps(street: Street) -> None:
        await street.create(isr=(1, 3))
        leader = street[1]
        leader.fetch(0, replica=2)
        leader.fetch(0, replica=3)
        await street.until(lambda: leader.isr.expands == 1)
        for _ in range(3):
            await leader.produce(acks=1)
        leader.fetch(3, replica=3)
        told = counts(street, 1)
        assert (told["isrexpands_total"], told["isrshrinks_total"], told["failedisrupdates_total"]) == (1, 0, 0)
        assert told["penstock_replica_lag_offsets_max"] == 3

    walk(steps)
