"""Groups whose ids are new every time, for years: what a node keeps to be quick about them stays small."""

from __future__ import annotations

from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.patience import until
from tests.walks.data_plane import Client, Machine, walk

GROUP, SET, DELETE = 32, 0, 1
TIMEOUT = "consumer.session.timeout.ms"


async def configure(client: Client, group: str, value: str | None) -> None:
    made = IncrementalAlterConfigsRequest
    config = made.AlterableConfig(name=TIMEOUT, value=value, config_operation=DELETE if value is None else SET)
    resource = made.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=[config])
    reply = await client.ask(made(resources=[resource]))
    assert reply.responses[0].error_code == 0, reply


def test_groups_that_come_and_go_for_ever_leave_nothing_behind() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["first"]))
        groups = machine.node.broker.groups
        homes = {groups.home_of(f"group-{number}") for number in range(20_000)}
        values = {id(groups.kind.values_of(f"group-{number}")) for number in range(20_000)}
        assert len(homes) > 1
        assert len(groups._places) <= 1_000
        assert len(values) == len(groups.kind._group_values) == 1, "those without configs of their own share the values"

    walk(steps)


def test_a_group_with_a_config_of_its_own_has_values_of_its_own_until_it_is_taken_away() -> None:
    async def steps(machine: Machine, client: Client) -> None:
        await client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["first"]))
        groups = machine.node.broker.groups
        usual = groups.kind.values_of("patient")[TIMEOUT]
        await configure(client, "patient", "50000")
        await until(lambda: groups.kind.values_of("patient")[TIMEOUT] == 50_000)
        assert groups.kind.values_of("another")[TIMEOUT] == usual != 50_000
        await configure(client, "patient", None)
        await until(lambda: groups.kind.values_of("patient")[TIMEOUT] == usual)

    walk(steps)
