"""Who asks for the offsets of a group all the time, as whoever takes over its partitions does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.client.consumer import Consumer
from penstock.client.errors import ClientError
from penstock.coordinators.home import home_partition
from penstock.model.ids import OFFSETS_TOPIC
from penstock.testing.sim.replicas import partitions_of
from penstock.testing.sim.topics import LEDGER
from penstock.testing.sim.trouble import image_of
from penstock.testing.sim.workload import COMMON, Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.testing.sim.plan import Plan
    from penstock.testing.sim.workload import Workload
    from penstock.testing.sim.world import World

COPIERS = "copiers"
"""The group of the copiers."""

MIXED = "mixed"
"""A group without members, whose offsets are committed in transactions and without."""

EVERY_S = 0.15


class Asker:
    """Of one group. It may commit offsets too, without a transaction."""

    def __init__(
        self, world: World, plan: Plan, workload: Workload, group: str, next_position: Callable[[], int] | None
    ) -> None:
        """`next_position` gives what is committed next; None for who commits nothing."""
        self._world, self._plan, self._workload, self._group = world, plan, workload, group
        self._next_position = next_position
        self.client = Client(world, f"asker-{group}")
        self.misread: Callable[[tuple[str, str, int], int | None, float, float], str | None] = lambda *_arguments: None
        """What is wrong with an offset that was shown between two moments."""

    def start(self) -> None:
        self.client.run(self._work())

    async def _work(self) -> None:
        random, scheduler = self.client.random, self._world.scheduler
        places = [(LEDGER, number) for number in range(self._plan.partitions)]
        settings: dict[str, Any] = {
            "group_id": self._group, "auto_commit": False, "isolation_level": "read_committed", **COMMON,
            **self._plan.login,
        }  # fmt: skip
        consumer = Consumer(clock=self.client.clock, bootstrap_servers=self._plan.bootstrap, **settings)
        consumer.assign(places)
        while not self._workload.stopping:
            await asyncio.sleep(random.expovariate(1 / EVERY_S))
            try:
                if self._next_position is not None and random.random() < 0.5:
                    await consumer.commit({random.choice(places): self._next_position()})
                    continue
                asked_s, led_by = scheduler.now, self._led_by()
                told = await consumer.committed(*places)
            except ClientError as trouble:
                self._world.story.tell(self.client.name, str(trouble))
                continue
            self._world.story.count("stable offsets asked for")
            if led_by is None or led_by != self._led_by():
                continue  # whoever was replaced and does not know it says what it knew
            for place, shown in told.items():
                offset = None if shown is None else shown.offset
                wrong = self.misread((self._group, *place), offset, asked_s, scheduler.now)
                if wrong is not None:
                    self._world.story.violated(f"{self.client.name}: {wrong}")
        await consumer.close(timeout_ms=1_000)

    def _led_by(self) -> tuple[int, int] | None:
        """Who coordinates the group, and in which epoch, when nobody else believes to."""
        count = int(self._plan.properties["offsets.topic.num.partitions"])
        place = OFFSETS_TOPIC, home_partition(self._group, count)
        partition = image_of(self._world, place)
        if partition is None:
            return None
        leading = [
            (machine.node_id, hosted.state.epoch)
            for machine in self._world.machines
            if machine.node is not None
            for hosted in partitions_of(machine.node) or ()
            if hosted.name == place and hosted.state.leading
        ]
        return leading[0] if leading == [(partition.leader, partition.leader_epoch)] else None
