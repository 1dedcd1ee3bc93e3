"""Random well-formed requests of every API and version: each is answered, and none breaks anything inside."""

from __future__ import annotations

import pytest

from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.transport.dial import Severed
from tests.compat.answers.asking import routes
from tests.compat.answers.drawing import Drawing
from tests.compat.answers.learning import learn
from tests.compat.answers.settings import PROPERTIES
from tests.compat.answers.world import STEADY, World
from tests.walks.data_plane import Client, Machine, walk

REQUESTS = 800


@pytest.mark.parametrize("seed", range(3))
def test_no_request_breaks_its_handler(seed: int) -> None:
    async def steps(machine: Machine, client: Client) -> None:
        world = World(directory="/data", cluster_id="another cluster")
        for name, partitions in STEADY.items():
            await client.create(name, partitions)
        await client.ask(FindCoordinatorRequest(key="g-committed"), 2)
        drawing, known = Drawing(seed, world), routes()
        for _ in range(REQUESTS):
            found = (await client.ask(MetadataRequest(topics=None), 12)).topics
            world.ids = {topic.name: topic.topic_id for topic in found}
            api, version = drawing.random.choice(known)
            request = drawing.request(api, version)
            try:
                learn(world, api.name, request, await client.ask(request, version))
            except Severed:
                client = await machine.dial()
            metrics = machine.node.broker.dispatch.metrics[api.key]
            assert metrics.unexpected == 0, f"{api.name} v{version}: {request!r}"

    walk(steps, **PROPERTIES)
