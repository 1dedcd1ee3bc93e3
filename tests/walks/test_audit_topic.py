"""The topic of audit events in a cluster whose ACLs decide: what comes there, from which nodes, and who may not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Consumer, Producer
from penstock.client.admin import Acl
from penstock.client.errors import ClientError
from penstock.model.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
from penstock.model.ids import AUDIT_TOPIC
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.server.internal_topics import plain_topic
from penstock.server.loops.ports import SystemClock
from penstock.server.peers import Address, NetPeers
from penstock.transport.net import AsyncioNet
from tests.patience import until, within
from tests.walks.test_authorized_nodes import ALICE, AuthorizedCluster
from tests.walks.three_nodes import Cluster, walk, walk_in

Told = dict[str, Any]


class AuditedCluster(AuthorizedCluster):
    def changed(self, node_id: int, properties: dict[str, str]) -> dict[str, str]:
        return {
            **super().changed(node_id, properties),
            "penstock.audit.topic.enable": "true",
            # Also what is allowed: the writing of audit records must not be among it.
            "penstock.audit.allowed": "true",
        }


async def told(settings: dict[str, Any], enough: Callable[[list[Told]], bool]) -> list[Told]:
    """The events in the topic from its beginning, as soon as they are enough."""
    found: list[Told] = []
    options: dict[str, Any] = {"offset_reset": "earliest", **settings}
    async with asyncio.timeout(within(40)), Consumer(AUDIT_TOPIC, **options) as consumer:
        async for record in consumer:
            found.append(json.loads(record.value or b""))
            if enough(found):
                break
    return found


async def write(settings: dict[str, Any], topic: str, value: bytes, partition: int = 0) -> ClientError | None:
    """What a producer is told, if it is refused."""
    async with asyncio.timeout(within(20)), Producer(idempotence=False, **settings) as producer:
        try:
            await producer.send(topic, value, partition=partition)
        except ClientError as refusal:
            return refusal
    return None


def denied(found: list[Told], topic: str, api: str = "Produce") -> list[Told]:
    return [
        each
        for each in found
        if (each["type"], each["result"], each.get("api")) == ("authorization", "denied", api)
        and each["resource"]["name"] == topic
    ]


async def deny_everywhere(cluster: AuditedCluster, admin: Admin, topic: str) -> None:
    """Has alice refused by each node that runs: each leads a partition."""
    nodes = sorted(cluster.nodes)
    await admin.create_topic(topic, assignment={at: [node] for at, node in enumerate(nodes)})
    await until(lambda: cluster.in_sync(topic, 1), timeout_s=30)
    for partition in range(len(nodes)):
        refusal = await write(cluster.alice, topic, b"not mine", partition)
        assert isinstance(refusal, ClientError)


def from_all(cluster: AuditedCluster, topic: str) -> Callable[[list[Told]], bool]:
    return lambda found: {each["node"] for each in denied(found, topic)} >= set(cluster.nodes)


def test_denials_come_to_the_topic_from_every_node_and_go_on_after_it_was_deleted_and_its_leader_crashed(
    tmp_path: Path,
) -> None:
    async def steps(cluster: AuditedCluster) -> None:
        async with Admin(**cluster.admin) as admin:
            (await admin.create_acls([Acl(ALICE, "describe", "topic", "*")])).checked()
            await until(lambda: cluster.knows(1), "every broker knows the ACL")
            await deny_everywhere(cluster, admin, "first")
            found = await told(cluster.admin, from_all(cluster, "first"))
            event = denied(found, "first")[0]
            assert event["principal"] == ALICE
            assert (event["address"], event["listener"]) == ("127.0.0.1", "INTERNAL")
            assert (event["operation"], event["resource"]) == ("WRITE", {"type": "TOPIC", "name": "first"})
            assert event["rule"] == "NO_FITTING_ACL"
            await until(lambda: cluster.in_sync(AUDIT_TOPIC, 3), timeout_s=30)

            await admin.delete_topic(AUDIT_TOPIC)
            await deny_everywhere(cluster, admin, "second")
            found = await told(cluster.admin, from_all(cluster, "second"))
            assert denied(found, "first") == []
            await until(lambda: cluster.in_sync(AUDIT_TOPIC, 3), timeout_s=30)

            gone = leader(cluster)
            cluster.crash(gone)
            await until(lambda: cluster.controller not in (0, gone), "no other controller", timeout_s=30)
            await until(lambda: leader(cluster) not in (-1, gone), "no other leader", timeout_s=30)
            await deny_everywhere(cluster, admin, "third")
            found = await told(cluster.admin, from_all(cluster, "third"))
            assert {each["node"] for each in denied(found, "second")} == {1, 2, 3}
            # Nodes' own writes are told neither as allowed nor as denied.
            writes = [each for each in found if each.get("operation") == "WRITE"]
            assert [each for each in writes if each["resource"]["name"] == AUDIT_TOPIC] == []
            assert all(outlet.drops == {"queue": 0, "write": 0} for outlet in outlets(cluster))

    walk_in(lambda: AuditedCluster(tmp_path), steps)


def leader(cluster: Cluster) -> int:
    found = next(iter(cluster.nodes.values())).broker.services.metadata.image.topic(AUDIT_TOPIC)
    return -1 if found is None else int(found.partitions[0].leader)


def outlets(cluster: Cluster) -> list[Any]:
    return [outlet for node in cluster.nodes.values() for outlet in node._to_audit_topic]


def test_rights_to_everything_open_the_topic_neither_for_reading_nor_for_writing(tmp_path: Path) -> None:
    rights = [Acl(ALICE, operation, "topic", "*") for operation in ("read", "write", "describe")]

    async def steps(cluster: AuditedCluster) -> None:
        async with Admin(**cluster.admin) as admin:
            (await admin.create_acls(rights)).checked()
            await until(lambda: cluster.knows(3), "every broker knows the ACLs")
            await admin.create_topic("orders", partitions=1, replication=3)
            await told(cluster.admin, lambda found: bool(found))
            assert await write(cluster.alice, "orders", b"mine") is None
            # Nobody passes for a node by its client id.
            for client_id in ("shop", AUDIT_TOPIC):
                refusal = await write({**cluster.alice, "client_id": client_id}, AUDIT_TOPIC, b"a lie")
                assert getattr(refusal, "error", None) is TOPIC_AUTHORIZATION_FAILED
            with pytest.raises(ClientError) as unread:
                await told(cluster.alice, lambda _found: True)
            assert getattr(unread.value, "error", None) is TOPIC_AUTHORIZATION_FAILED
            # Who may do everything still does not write what nodes say.
            refusal = await write(cluster.admin, AUDIT_TOPIC, b"a lie")
            assert getattr(refusal, "error", None) is INVALID_TOPIC_EXCEPTION
            found = await told(
                cluster.admin,
                lambda found: len(denied(found, AUDIT_TOPIC)) >= 2 and bool(denied(found, AUDIT_TOPIC, "Fetch")),
            )
            assert {each["rule"] for each in denied(found, AUDIT_TOPIC)} == {"NOT_NAMED"}

    walk_in(lambda: AuditedCluster(tmp_path), steps)


def test_a_node_that_is_only_a_controller_writes_to_the_brokers() -> None:
    roles = {1: "controller", 2: "broker", 3: "broker"}

    async def steps(cluster: Cluster) -> None:
        peers = NetPeers(AsyncioNet(asyncio.get_running_loop()), SystemClock(), client_id="judge")
        # What is asked of the controller itself is told by it, and not by a broker.
        request = CreateTopicsRequest(topics=[plain_topic("orders", 1, 1)], timeout_ms=10_000)
        controller = Address("127.0.0.1", cluster.controller_ports[1])
        await peers.ask(controller, request, 7, purpose="test", timeout_ms=within(20_000))
        found = await told(
            {"bootstrap_servers": cluster.bootstrap}, lambda found: found[-1]["resource"]["name"] == "orders"
        )
        assert (found[-1]["node"], found[-1]["api"], found[-1]["result"]) == (1, "CreateTopics", "done")
        peers.close()

    walk(steps, roles=roles, penstock_audit_topic_enable="true", penstock_audit_topic_replication_factor="2")
