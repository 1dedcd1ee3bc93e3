"""A controller with its log in a list: decide, append, apply, as a driver does."""

from __future__ import annotations

from random import Random
from typing import Any

from penstock.controller.batches import plan_batches
from penstock.controller.controller import Controller
from penstock.controller.decision import ControllerSettings, Decision
from penstock.metadata.features import SUPPORTED
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import frame_record, unframe_record
from penstock.model.config import BrokerSettings
from penstock.model.ids import Epoch, Offset, Uuid
from penstock.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from penstock.protocol.messages.broker_registration import BrokerRegistrationRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def uuid_of(number: int) -> Uuid:
    return Uuid((number + 1000).to_bytes(16, "big"))


def broker_settings(**properties: str) -> BrokerSettings:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerSettings.load(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            **given,
        }
    )


class Desk:
    """An active controller of a bootstrapped cluster."""

    def __init__(self, seed: int = 0, **properties: str) -> None:
        settings = ControllerSettings.of(broker_settings(**properties), CLUSTER)
        self.now = 0.0
        self.log: list[Any] = []
        self.controller = Controller(ClusterImage(), Random(seed), settings)
        self.do(self.controller.activate(self.now))

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def do(self, decision: Decision) -> list[Any]:
        """Appends and applies what was decided, through the bytes of the log; the records as they were written."""
        written = []
        for batch in plan_batches(decision, self.image.metadata_version):
            for record, version in batch:
                read = unframe_record(frame_record(record, version))
                self.controller.apply(read, Offset(len(self.log)), Epoch(1))
                self.log.append(read)
                written.append(read)
        return written

    def decide(self, request: Any, version: int = 99, **said: Any) -> Decision:
        return self.controller.decide(
            request, now=self.now, next_offset=Offset(len(self.log)), api_version=version, **said
        )

    def ask(self, request: Any, version: int = 99, **said: Any) -> Any:
        """Decides and does; the reply."""
        decision = self.decide(request, version, **said)
        self.do(decision)
        return decision.reply

    def register(self, number: int, *, life: int = 0, previous: int = -1, **said: Any) -> Any:
        return self.ask(registration(number, life=life, previous=previous, **said))

    def heartbeat(self, number: int, **said: Any) -> BrokerHeartbeatResponse:
        broker = self.image.brokers[number]
        said.setdefault("current_metadata_offset", len(self.log) - 1)
        reply = self.ask(BrokerHeartbeatRequest(broker_id=number, broker_epoch=broker.epoch, **said))
        assert isinstance(reply, BrokerHeartbeatResponse)
        return reply

    def join(self, *numbers: int, **said: Any) -> None:
        for number in numbers:
            self.register(number, **said)
            self.heartbeat(number)

    def create(self, name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> None:
        reply = self.ask(creation(topic(name, partitions, replicas, **configs)))
        assert isinstance(reply, CreateTopicsResponse)
        assert [result.error_code for result in reply.topics] == [0], reply


def registration(number: int, *, life: int = 0, previous: int = -1, **said: Any) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        **{
            "broker_id": number,
            "cluster_id": CLUSTER,
            "incarnation_id": uuid_of(number + 100 * life),
            "listeners": [BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"host-{number}", port=9092)],
            "features": [
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min, max_supported_version=levels.max
                )
                for name, levels in SUPPORTED.items()
            ],
            "rack": None,
            "log_dirs": [uuid_of(5000 + number)],
            "previous_broker_epoch": previous,
            **said,
        }
    )


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def assigned(name: str, assignments: dict[int, list[int]]) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments.items()
        ],
    )


def creation(*topics: CreateTopicsRequest.CreatableTopic, **said: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **said)
