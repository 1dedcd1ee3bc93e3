"""What can be set on format("penstock") to write, and which columns can be sent. Pure.

Names and rules are those of Spark's Kafka connector. A name that does not exist is an error that says what was
probably meant.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.client.errors import BadSetting
from penstock.client.settings import ProducerSettings
from penstock.spark.errors import BadOption
from penstock.spark.given import Given, nearest
from penstock.spark.kafka_settings import KafkaSettings
from penstock.spark.naming import MIRROR_OPTION

BYTES: Final = ("string", "binary")
HEADERS: Final = "array<struct<key:string,value:binary>>"
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": BYTES,
    "value": BYTES,
    "headers": (HEADERS,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""Columns that are sent, and the types they may have; others are left out, as by Spark's Kafka connector."""

_SPARKS_OWN: Final = ("checkpointlocation", "queryname", "outputmode")
_KAFKA: Final = "kafka."

_REFUSED: Final = {
    "key.serializer": "keys are sent as they are; encode them with column expressions",
    "value.serializer": "values are sent as they are; encode them with column expressions",
    "interceptor.classes": "interceptors are Java classes, and no Java writes the topic here",
    "transactional.id": "ids of transactions are made by the sink: set exactly.once=true, and allow the prefix "
    "penstock-spark- where there are ACLs",
}

_NOT_OURS: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "config.providers",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "security.providers",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "transaction.two.phase.commit.enable",
    }
)
"""Kafka's producer has them; here they have no meaning."""

_WRITING: Final = KafkaSettings(
    ProducerSettings, _REFUSED, _NOT_OURS, "", logging.getLogger("penstock.spark.topic_sink")
)


EXACTLY_ONCE: Final = "exactly.once"
TRANSACTION_TIMEOUT_MS: Final = 900_000
"""What brokers allow unless they are told otherwise: readers of committed records wait so long for a driver that never
comes back, and a batch that takes longer can never be committed."""
BATCH_OPTION: Final = "penstock.batch"
"""Says which batch of a query a DataFrame is: pipelines set it where Spark lets no sink of ours stand."""
_TIMEOUT: Final = "transaction.timeout.ms"
STAGES_ONCE: Final = "penstock.stages.once"
"""Says that the session has spark.stage.maxConsecutiveAttempts=1, which no process can ask for where it matters."""
_OURS: Final = frozenset({"topic", EXACTLY_ONCE, BATCH_OPTION, STAGES_ONCE, MIRROR_OPTION})


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options of one write, checked. Small and plain: it is pickled to every worker."""

    producer_settings: Mapping[str, str] = field(repr=False)
    """Settings of our producer by our names, `bootstrap_servers` among them. There may be passwords among them."""
    topic: str | None = None
    """Where all rows go; None leaves it to the column `topic`."""
    exactly_once: bool = False
    """Whether rows are written in transactions that end with their batch."""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    checkpoint: str = ""
    """Of the query, which Spark names by itself."""
    batch: int = -1
    """Of a batch that is written as a DataFrame of its own; -1 where Spark says which it is."""
    stages_once: bool = False
    """Whether the session lets no stage be begun again (spark.stage.maxConsecutiveAttempts=1)."""
    mirror: str = ""
    """Where copies of the checkpoint are kept (`checkpoints`); pipelines say it."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SinkOptions:
        given = Given(options)
        for name in given.values:
            if name == "path":
                raise BadOption("a topic has no path: call save() or start() without one and name the option topic")
            if name not in _OURS and name not in _SPARKS_OWN and not name.startswith(_KAFKA):
                known = ("topic", EXACTLY_ONCE, "kafka.bootstrap.servers")
                raise BadOption(f"there is no option {name!r} to write{nearest(name, known)}")
        topic = given.text("topic")
        if topic is not None and not topic.strip():
            raise BadOption("topic is empty: name a topic, or leave it out and have a column topic")
        exactly_once = given.flag(EXACTLY_ONCE, False)
        kafka = given.under(_KAFKA)
        timeout_ms = Given(kafka).count(_TIMEOUT, TRANSACTION_TIMEOUT_MS)
        if _TIMEOUT in kafka and not exactly_once:
            raise BadOption(f"kafka.{_TIMEOUT} is for transactions: set {EXACTLY_ONCE}=true as well, or leave it out")
        kafka.pop(_TIMEOUT, None)
        settings = producer_settings(kafka)
        if exactly_once:
            _check_transactional(settings)
        assert timeout_ms is not None, "it has a default"
        checkpoint, batch = given.text("checkpointlocation") or "", given.count(BATCH_OPTION, -1, least=0)
        assert batch is not None, "it has a default"
        stages_once = given.flag(STAGES_ONCE, False)
        mirror = given.text(MIRROR_OPTION) or ""
        return cls(settings, topic, exactly_once, timeout_ms, checkpoint, batch, stages_once, mirror)


def _check_transactional(settings: Mapping[str, str]) -> None:
    try:
        ProducerSettings.of({**settings, "transactional_id": "checked", "transaction_timeout_ms": 1})
    except BadSetting as wrong:
        raise BadOption(f"{EXACTLY_ONCE}=true: {wrong}") from None


def producer_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Producer settings, by our names, for options without their `kafka.`."""
    return _WRITING.of(given)


def check_columns(columns: Sequence[tuple[str, str]], options: SinkOptions) -> None:
    """Names and types (as Spark's `simpleString` has them) of what is to be written."""
    found = dict(columns)
    if "value" not in found:
        raise BadOption(f"a column 'value' is needed, string or binary; there are {', '.join(found) or 'none'}")
    if options.topic is None and "topic" not in found:
        raise BadOption("where shall rows go? Set the option topic, or have a column 'topic' of strings")
    for name, kinds in COLUMNS.items():
        if name in found and found[name] not in kinds and not (name == "topic" and options.topic is not None):
            raise BadOption(f"column {name!r} is {found[name]}, which cannot be sent: make it {' or '.join(kinds)}")
