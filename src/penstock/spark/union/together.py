"""A table and the end of its log, as one: every record once, also those that no commit has reached yet.

The table is pinned first, its offsets are those of that same version, and only then the ends of the log are looked up.
So the two halves meet exactly, whoever commits, compacts or produces meanwhile.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.client.spans import Span
from penstock.model.ids import TopicPartition
from penstock.spark.errors import BadOption, Missing
from penstock.spark.feed import ONE_ROW_A_RECORD, Feed
from penstock.spark.kafka_settings import CLIENT_CONFIG_VARIABLE
from penstock.spark.lake.store import KEYED_PROPERTY
from penstock.spark.naming import group_of
from penstock.spark.union.snapshot import identity_of, rows_of
from penstock.spark.union.tail import Standing, check_same_topics, never_fed, plan_tail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from penstock.spark.source.facts import Cluster
    from penstock.spark.source.losses import Seen
    from penstock.spark.source.options import SourceOptions
    from penstock.spark.union.fed_tables import FedTable

KEPT_SNAPSHOTS: Final = 8
"""DataFrames of table versions that are kept: between two commits only the tail is new."""

GROUP_PATIENCE_S: Final = 10.0
PINNING_TRIES: Final = 20

_tables_lock = threading.Lock()
"""Stores of one table share what they have read of it: one thread at a time."""


def table(
    spark: SparkSession,
    topic: str,
    *,
    path: str | None = None,
    catalog: str | None = None,
    table: str | None = None,
    bootstrap: str | None = None,
    warehouse: str | None = None,
    storage: Mapping[str, str] | None = None,
    catalog_settings: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table that a topic feeds, and all that the log has after it: every record once, as of this call.

    The table is the one at `path`, or `table` of `catalog`, or the one in `warehouse` (by default PENSTOCK_WAREHOUSE
    or ./lake) that says it is fed from `topic`. It must hold one row a record. `bootstrap` is where the topic is, if
    not where the table says. `storage` and `catalog_settings` say how an object store and a catalog are reached, as
    [storage] and [catalog] of a pipeline do. Records that cannot be decoded are left out, as they are in the table.

    The DataFrame stays what it is: call again for what came later.
    """
    from penstock.spark.union.fed_tables import find

    with _tables_lock:
        fed = find(
            topic,
            path=path,
            catalog=catalog,
            table=table,
            warehouse=warehouse,
            storage=storage,
            catalog_settings=catalog_settings,
        )
    return _Union(spark, fed, bootstrap or fed.feed.bootstrap).rows()


@dataclass(frozen=True, slots=True)
class _Pinned:
    """One version of the table: its rows, its columns, and where it stands in the log."""

    rows: DataFrame
    schema: StructType
    standing: Standing


class _Union:
    """One call of `table`."""

    def __init__(self, spark: SparkSession, fed: FedTable, bootstrap: str) -> None:
        if not bootstrap:
            raise BadOption(f"{fed.name} does not say which brokers feed it: give bootstrap='host:port'")
        self._spark, self._fed, self._bootstrap = spark, fed, bootstrap
        self._check()

    def _check(self) -> None:
        feed = self._fed.feed
        unknown = [step.name for step in feed.steps if step.sql is None]
        why = ""
        if KEYED_PROPERTY in self._fed.store.properties():
            why = "its rows change by key, and those of its log do not follow them as they are"
        elif feed.rows != ONE_ROW_A_RECORD:
            why = "it does not hold one row a record (its feed says rows=any), so the log's rows cannot follow its own"
        elif unknown:
            why = f"step {unknown[0]!r} between the topic and the table is not SQL and cannot be repeated here"
        elif feed.steps and not feed.view:
            why = "it is made of several sources"
        if why:
            raise BadOption(f"{self._fed.name} cannot be read together with its log: {why}. Read the table by itself")

    def rows(self) -> DataFrame:
        pinned = self._pinned()
        if any(key.ordinal for key in pinned.standing.committed):
            raise BadOption(
                f"{self._fed.name} cannot be read together with its log: one topic feeds it through several sources"
            )
        spans = self._spans(pinned.standing, None)
        if spans is None:
            # Positions of the query that writes the table are asked for first: then all that is before them is in
            # whatever version is pinned after.
            positions = self._positions()
            pinned = self._pinned()
            spans = self._spans(pinned.standing, positions)
        if not spans:
            return pinned.rows
        return pinned.rows.unionByName(self._tail(pinned.schema, spans))

    # The table, then the log.

    def _pinned(self) -> _Pinned:
        from pyspark.errors import AnalysisException

        with _tables_lock:
            try:
                return self._pin()
            except (AnalysisException, FileNotFoundError):
                # Files of a version may be cleaned away before Spark has looked at them; a newer one has its own.
                return self._pin()

    def _pin(self) -> _Pinned:
        from pyspark.sql.pandas.types import from_arrow_schema

        from penstock.spark.progress.listener import session_key

        store = self._fed.store
        for _ in range(PINNING_TRIES):
            version, committed = store.version(), store.committed()
            # A store may know of newer offsets than of files, and others in this process may move it on: all that was
            # looked at belongs together when nothing has moved from before to after.
            store.refresh()
            if store.version() != version:
                continue
            schema = from_arrow_schema(store.schema())
            key = (session_key(self._spark), identity_of(store))
            rows = _kept.get(key)
            if rows is None:
                rows = rows_of(self._spark, self._fed.options, store, schema)
            if store.version() == version:
                _keep(key, rows)
                return _Pinned(rows, schema, Standing(self._fed.name, committed))
        raise Missing(f"{self._fed.name} is committed to faster than it can be looked at: try again")

    def _spans(self, standing: Standing, positions: Mapping[TopicPartition, int] | None) -> Sequence[Span] | None:
        """What the log has after the table; None when only the query's positions can tell."""
        from penstock.spark.source.facts import Cluster

        cluster = Cluster(self._source_options())
        seen = cluster.look(strict=True)
        starts = cluster.log_starts(seen.ends)
        if standing.committed and not all(standing.knows(topic, each) for topic, each in seen.ids.items()):
            check_same_topics(standing, seen.ids, self._former_ids())
        unknown = never_fed(standing, seen, starts)
        begins = self._begins(unknown, cluster, seen, starts, positions) if unknown else {}
        if begins is None:
            return None
        # A table that was fed by reading everything may stand behind the first open transaction.
        reached = cluster.reaching(seen, {**begins, **standing.places(seen)})
        return plan_tail(standing, reached, starts, begins)

    def _begins(
        self,
        partitions: Sequence[TopicPartition],
        cluster: Cluster,
        seen: Seen,
        starts: Mapping[TopicPartition, int],
        positions: Mapping[TopicPartition, int] | None,
    ) -> Mapping[TopicPartition, int] | None:
        """Where the query that writes the table begins in partitions it has read nothing of; None to ask for positions.

        It began where its options say, and reads partitions that appear later from their start.
        """
        from penstock.spark.offsets import EARLIEST, LATEST
        from penstock.spark.source.batch import resolve_place
        from penstock.spark.source.options import SourceOptions

        if self._fed.feed.from_the_first:
            return {tp: starts[tp] for tp in partitions}
        started = SourceOptions.of({**self._topic_options(), **self._fed.feed.start}, streaming=True)
        wishes = resolve_place(started.start, seen, cluster)
        found = {tp: starts[tp] if wishes[tp] == EARLIEST else wishes[tp] for tp in partitions}
        moving = [tp for tp in partitions if wishes[tp] == LATEST]
        if moving and positions is None:
            return None
        for tp in moving:
            assert positions is not None
            found[tp] = positions.get(tp, starts[tp])
        return found

    def _positions(self) -> dict[TopicPartition, int]:
        """How far the query is that writes the table, as its group says."""
        from penstock.spark.dialogue import admin_for, for_process
        from penstock.spark.progress.patience import within
        from penstock.spark.progress.topic import common_settings

        group = group_of(self._fed.feed.query or self._last_query())
        admin = admin_for(common_settings(self._source_options().client_settings))
        found = for_process().run(within(admin.group_offsets(group), GROUP_PATIENCE_S))
        if not found:
            raise Missing(
                f"{self._fed.name} is fed from the latest records on, and nobody knows yet where that was: it has "
                f"nothing of some partitions, and group {group!r} has no offsets. Wait for the first batch of the "
                "query that writes it, and let it publish its progress (publishProgress)"
            )
        return {tp: committed.offset for tp, committed in found.items()}

    def _last_query(self) -> str:
        queries = [commit.query_id for commit in self._fed.store.commits() if commit.query_id]
        return queries[-1] if queries else ""

    def _former_ids(self) -> dict[str, set[str]]:
        """The ids that each topic has had, as the table's history tells."""
        former: dict[str, set[str]] = {}
        for commit in self._fed.store.commits():
            for each in commit.ranges:
                if each.topic_id:
                    former.setdefault(each.topic, set()).add(each.topic_id)
        return former

    # The log.

    def _tail(self, schema: StructType, spans: Sequence[Span]) -> DataFrame:
        from penstock.spark.source.data_source import TopicDataSource
        from penstock.spark.union.tail_source import read_spans

        options = self._tail_options(schema)
        columns = TopicDataSource(options).schema()
        assert not isinstance(columns, str), "the source answers with columns"
        rows = read_spans(self._spark, options, columns, spans)
        if not self._fed.feed.steps:
            return _aligned(rows, columns, schema)
        rows = _stepped(self._spark, self._fed.feed, rows)
        return _aligned(rows, rows.schema, schema)

    def _tail_options(self, schema: StructType) -> dict[str, str]:
        options = {**self._topic_options(), **self._fed.feed.options}
        names = {name.lower(): name for name in options}
        if "value.format" in names:
            # Bad values are the table's writer's to deliver; here they are just not rows.
            options["deadLetters"] = "drop"
            said = options.get(names.get("value.schema", ""), "")
            if said.strip().lower() == "infer":
                # The table has the columns that were inferred when it was made; the tail must not find others.
                options[names["value.schema"]] = _value_columns(schema)
                options.pop(names.get("value.schema.sample", ""), None)
        return options

    def _source_options(self) -> SourceOptions:
        from penstock.spark.source.options import SourceOptions

        kafka = {name: value for name, value in self._fed.feed.options.items() if name.lower().startswith("kafka.")}
        return SourceOptions.of({**self._topic_options(), **kafka}, streaming=False)

    def _topic_options(self) -> dict[str, str]:
        feed = self._fed.feed
        topics = {"subscribePattern": feed.pattern} if feed.pattern else {"subscribe": ",".join(feed.topics)}
        found = {**topics, "kafka.bootstrap.servers": self._bootstrap}
        # A table's metadata holds no passwords, so whoever reads the log beside it brings the login.
        client_config = os.environ.get(CLIENT_CONFIG_VARIABLE)
        return found if client_config is None else {**found, "kafka.client.config": client_config}


_kept: OrderedDict[tuple[str, str], DataFrame] = OrderedDict()


def _keep(key: tuple[str, str], rows: DataFrame) -> None:
    """Looking at the files of a version is not repeated."""
    _kept[key] = rows
    _kept.move_to_end(key)
    while len(_kept) > KEPT_SNAPSHOTS:
        _kept.popitem(last=False)


def _stepped(spark: SparkSession, feed: Feed, rows: DataFrame) -> DataFrame:
    """The steps between the topic and the table, in one statement: its names hide the user's and go with it."""
    source = f"penstock_tail_{uuid.uuid4().hex}"
    parts = [(feed.view, f"SELECT * FROM {source}"), *((step.name, step.sql or "") for step in feed.steps)]
    named = ",\n".join(f"`{name}` AS (\n{sql.strip().rstrip(';')}\n)" for name, sql in parts)
    rows.createOrReplaceTempView(source)
    try:
        return spark.sql(f"WITH {named}\nSELECT * FROM `{feed.steps[-1].name}`")
    finally:
        spark.catalog.dropTempView(source)


def _aligned(rows: DataFrame, have: StructType, wanted: StructType) -> DataFrame:
    """The columns of the table: what the log's rows do not have is null, what only they have is left out."""
    columns = aligned_columns(have, wanted)
    return rows if columns is None else rows.selectExpr(*columns)


def aligned_columns(have: StructType, wanted: StructType) -> list[str] | None:
    """SQL for each column that is wanted, of those that rows have; None when they are the same. Pure."""
    kinds = {field.name: field.dataType.simpleString() for field in have.fields}
    if kinds == {field.name: field.dataType.simpleString() for field in wanted.fields}:
        return None
    by_letters = {name.lower(): name for name in kinds}
    columns = []
    for field in wanted.fields:
        kind = field.dataType.simpleString()
        name = field.name if field.name in kinds else by_letters.get(field.name.lower())
        if name is None:
            value = f"CAST(NULL AS {kind})"
        elif kinds[name] == kind:
            value = _quoted(name)
        else:
            value = f"TRY_CAST({_quoted(name)} AS {kind})"
        columns.append(f"{value} AS {_quoted(field.name)}")
    return columns


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _value_columns(schema: StructType) -> str:
    from penstock.spark.source.schemas import value_fields
    from penstock.spark.values.ddl import ddl_of

    return ddl_of(value_fields(schema))
