"""What can be set on format("penstock") to read: names, defaults and rules of Spark's Kafka connector, and ours. Pure.

Names are case-insensitive. A name that does not exist is an error that says what was probably meant.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.spark.errors import BadOption
from penstock.spark.given import Given, nearest
from penstock.spark.offsets import EARLIEST, LATEST
from penstock.spark.source import starts
from penstock.spark.source.client_settings import READ_COMMITTED, admin_settings, client_settings
from penstock.spark.source.starts import Place
from penstock.spark.source.topics import TopicChoice, choice_of
from penstock.spark.stores.settings import CATALOG, STORAGE, check_catalog, check_storage, under
from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

_log = logging.getLogger("penstock.spark.source")

RAW_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"
METADATA_COLUMNS: Final = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers", "_tombstone")
"""What typed rows may have beside the columns of their value."""

PATIENCE_MS: Final = 30_000
"""How long planning waits for brokers that nobody reaches, unless kafka.default.api.timeout.ms says otherwise."""

TASKS_VARIABLE: Final = "PENSTOCK_SPARK_TASKS"
"""How many tasks run at once. Planners have no session to ask; what a session has in `sparkContext.environment` when it
registers the format, or as spark.executorEnv.PENSTOCK_SPARK_TASKS, is in their environment."""

BOTH: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxTasks",
    "includeHeaders",
    "columns",
    "metadataColumns",
    "deadLetters",
    "queryName",
    "publishProgress",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
)
STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
BATCH_ONLY: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
NAMES: Final = (*BOTH, *STREAM_ONLY, *BATCH_ONLY)

_KAFKA: Final = "kafka."
_VALUE: Final = "value."


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of one read, checked. Small and plain: it is pickled to every worker."""

    topics: TopicChoice
    start: Place
    end: Place
    client_settings: Mapping[str, str] = field(repr=False)
    """Settings of our consumer by our names, `bootstrap_servers` among them. There may be passwords among them."""
    fail_on_data_loss: bool = True
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_tasks: int = 1
    include_headers: bool = False
    columns: tuple[str, ...] = RAW_COLUMNS
    """Of raw rows, in the order they are given."""
    values: Mapping[str, str] = field(default_factory=dict)
    """value.* as it was given, by lower-case name with its `value.`; empty for raw rows."""
    metadata_columns: tuple[str, ...] = ()
    """Of typed rows: they follow the columns of the value in this order, unless a user's schema orders them."""
    dead_letters: str = "fail"
    query_name: str | None = None
    publish_progress: bool = True
    retries: int = 3
    retry_interval_ms: int = 1_000
    metadata_ttl_ms: int = 0
    """How long the list of topics and partitions is taken for granted; 0 asks on every trigger."""
    patience_ms: int = PATIENCE_MS
    storage: Mapping[str, str] = field(default_factory=dict)
    """storage.*: how tables of dead letters, and tables where reading begins, are reached; secrets are references."""
    catalog_settings: Mapping[str, str] = field(default_factory=dict)
    """catalog.*: how to log in to the catalog of a table where reading begins."""
    letter_storage: Storage = FROM_ENVIRONMENT
    """`storage` with what its references stand for on the driver: tasks may run where nobody knows."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
        """Checks everything that can be checked without a broker; None is for those who do not know yet which it is."""
        given = Given(options)
        _refuse_unknown(given)
        settings = client_settings(given.under(_KAFKA))
        patience_ms = int(settings.get("default_api_timeout_ms", PATIENCE_MS))
        poll_timeout_ms = given.count("kafkaConsumer.pollTimeoutMs")
        if poll_timeout_ms is not None:
            settings.setdefault("default_api_timeout_ms", str(poll_timeout_ms))
        if streaming is not None:
            _check_kind(given, streaming)
        smallest, largest = _trigger_limits(given)
        if "groupIdPrefix" in given:
            _log.warning("groupIdPrefix is not used: progress is published to the group spark-<query>, see queryName")
        headers = given.flag("includeHeaders", False)
        values = {_VALUE + name: value for name, value in given.under(_VALUE).items()}
        typed = _check_typed(given, values)
        storage, catalog = under(given.values, STORAGE), under(given.values, CATALOG)
        check_storage(storage)
        check_catalog(catalog)
        return cls(
            topics=choice_of(given),
            start=_start(given, streaming),
            end=_end(given),
            client_settings=settings,
            fail_on_data_loss=given.flag("failOnDataLoss", True),
            max_offsets_per_trigger=largest,
            min_offsets_per_trigger=smallest,
            max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", "15m"),
            min_partitions=given.count("minPartitions"),
            max_records_per_partition=given.count("maxRecordsPerPartition"),
            max_tasks=given.count("maxTasks") or default_tasks(),
            include_headers=headers,
            columns=_columns(given, headers),
            values=values,
            metadata_columns=_metadata_columns(given) if typed else (),
            dead_letters=given.text("deadLetters") or "fail",
            query_name=given.text("queryName") or None,
            publish_progress=given.flag("publishProgress", True),
            retries=given.count("fetchOffset.numRetries", 3, least=0) or 0,
            retry_interval_ms=given.count("fetchOffset.retryIntervalMs", 1_000, least=0) or 0,
            metadata_ttl_ms=_metadata_ttl_ms(given),
            patience_ms=patience_ms,
            storage=storage,
            catalog_settings=catalog,
        )

    @property
    def bootstrap(self) -> str:
        return self.client_settings["bootstrap_servers"]

    @property
    def read_committed(self) -> bool:
        """Whether open and aborted transactions are left out, and reads end where the first open one begins."""
        return self.client_settings["isolation_level"].lower() == READ_COMMITTED

    @property
    def typed(self) -> bool:
        """Whether rows are the columns of a decoded value, rather than raw records."""
        return "value.format" in self.values

    @property
    def admin_settings(self) -> dict[str, str]:
        """Settings of an Admin for the same cluster."""
        return admin_settings(self.client_settings, self.patience_ms)


def default_tasks() -> int:
    """Tasks of a batch when maxTasks is not given: what the session says its cluster can run at once, if it does say
    (TASKS_VARIABLE, see there), else the cores of the machine that plans."""
    told = os.environ.get(TASKS_VARIABLE, "")
    return int(told) if told.isdigit() and int(told) else os.cpu_count() or 1


def _refuse_unknown(given: Given) -> None:
    known = {name.lower() for name in NAMES}
    for name in given.values:
        if name in known or name.startswith((_KAFKA, _VALUE, f"{STORAGE}.", f"{CATALOG}.")):
            continue
        if name == "path":
            raise BadOption("a topic has no path: call load() without one and name topics with subscribe")
        raise BadOption(f"there is no option {name!r}{nearest(name, (*NAMES, 'kafka.bootstrap.servers'))}")


def _check_kind(given: Given, streaming: bool) -> None:
    if streaming:
        for name in BATCH_ONLY:
            if name in given:
                raise BadOption(f"{name} is for batch reads: a stream has no end; use trigger(availableNow=True)")
        return
    for name in STREAM_ONLY:
        if name in given:
            _log.warning("%s is not used by a batch read, which has no triggers", name)


def _trigger_limits(given: Given) -> tuple[int | None, int | None]:
    smallest, largest = given.count("minOffsetsPerTrigger"), given.count("maxOffsetsPerTrigger")
    if smallest is not None and largest is not None and smallest > largest:
        raise BadOption(f"minOffsetsPerTrigger ({smallest}) is more than maxOffsetsPerTrigger ({largest})")
    return smallest, largest


def _start(given: Given, streaming: bool | None) -> Place:
    default = LATEST if streaming else EARLIEST
    strategy = given.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    unmatched = LATEST if strategy == "latest" else None
    if (text := given.text("startingTimestamp")) is not None:
        place = starts.by_time("startingTimestamp", text, unmatched=unmatched)
    elif (text := given.text("startingOffsetsByTimestamp")) is not None:
        place = starts.by_times("startingOffsetsByTimestamp", text, otherwise=default, unmatched=unmatched)
    elif (text := given.text("startingOffsets")) is not None:
        place = starts.by_word_or_json("startingOffsets", text, otherwise=default)
    else:
        return Place("startingOffsets", otherwise=default)
    if streaming is False:
        if place.otherwise == LATEST and place.option == "startingOffsets":
            raise BadOption(
                "startingOffsets=latest leaves a batch read nothing to read; use earliest, offsets or a time"
            )
        for tp, offset in place.offsets.items():
            if offset == LATEST:
                raise BadOption(
                    f"startingOffsets: {tp} cannot begin at -1 (latest) in a batch read; nothing would be read"
                )
    return place


def _end(given: Given) -> Place:
    if (text := given.text("endingTimestamp")) is not None:
        return starts.by_time("endingTimestamp", text, unmatched=LATEST)
    if (text := given.text("endingOffsetsByTimestamp")) is not None:
        return starts.by_times("endingOffsetsByTimestamp", text, otherwise=LATEST, unmatched=LATEST)
    text = given.text("endingOffsets")
    if text is None:
        return Place("endingOffsets")
    place = starts.by_word_or_json("endingOffsets", text, otherwise=LATEST)
    if place.table:
        raise BadOption("endingOffsets cannot be a table: a batch read ends at latest, offsets or a time")
    if place.otherwise == EARLIEST:
        raise BadOption("endingOffsets=earliest leaves nothing to read; use latest, offsets or a time")
    for tp, offset in place.offsets.items():
        if offset == EARLIEST:
            raise BadOption(f"endingOffsets: {tp} cannot end at -2 (earliest); nothing would be read")
    return place


def _columns(given: Given, headers: bool) -> tuple[str, ...]:
    every = (*RAW_COLUMNS, HEADERS) if headers else RAW_COLUMNS
    names = given.names("columns")
    if names is None:
        return every
    known = {name.lower(): name for name in (*RAW_COLUMNS, HEADERS)}
    chosen = []
    for name in names:
        if name.lower() not in known:
            raise BadOption(f"columns: there is no column {name!r}; there are {', '.join(known.values())}")
        if name.lower() == HEADERS and not headers:
            raise BadOption("columns names headers, which need includeHeaders=true")
        chosen.append(known[name.lower()])
    if not chosen or len(set(chosen)) < len(chosen):
        raise BadOption(f"columns={given.text('columns')!r}: expected names with commas between, each once")
    return tuple(chosen)


def _check_typed(given: Given, values: Mapping[str, str]) -> bool:
    typed = "value.format" in values
    if not typed:
        if values:
            raise BadOption(f"{next(iter(values))} needs value.format: json, csv, text, regex, avro or raw")
        for name in ("metadataColumns", "deadLetters"):
            if name in given:
                raise BadOption(f"{name} is for typed rows; say value.format, or leave it out to read raw records")
        return False
    for name in ("columns", "includeHeaders"):
        if name in given:
            raise BadOption(
                f"{name} is for raw rows; with value.format use metadataColumns, as in _key,_offset,_headers"
            )
    return True


def _metadata_columns(given: Given) -> tuple[str, ...]:
    names = given.names("metadataColumns") or ()
    for name in names:
        if name not in METADATA_COLUMNS:
            hint = nearest(name, METADATA_COLUMNS)
            raise BadOption(f"metadataColumns: there is no {name!r}{hint}; there are {', '.join(METADATA_COLUMNS)}")
    if len(set(names)) < len(names):
        raise BadOption(f"metadataColumns={given.text('metadataColumns')!r} names a column twice")
    return names


def _metadata_ttl_ms(given: Given) -> int:
    ttl_ms = given.count("partition.metadata.cache.ttl.ms", -1, least=-1)
    if ttl_ms == 0:
        raise BadOption("partition.metadata.cache.ttl.ms=0: expected -1 (ask on every trigger) or a number of ms")
    return max(ttl_ms or 0, 0)
