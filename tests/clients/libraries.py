"""The clients under test by the names of their packages."""

from __future__ import annotations

from tests.clients.aio import AioKafka
from tests.clients.confluent import ConfluentKafka
from tests.clients.interface import Client
from tests.clients.kafka_python import KafkaPython
from tests.clients.own import OwnClient

CLIENTS: dict[str, type[Client]] = {
    "confluent-kafka": ConfluentKafka,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
    "penstock": OwnClient,
}
