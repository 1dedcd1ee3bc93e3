"""Every key of a pipeline file: what it takes, what it is when left out, and what it says. Pure.

The reference page is printed from these rows. A test holds them to the keys that reading asks for, and each of them to
an error with its line and to an example in the guides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.spark.lake.following.versions import FAIL, REMOVALS
from penstock.spark.lake.keyed.envelopes import ENVELOPES
from penstock.spark.lake.keyed.settings import BUCKETS, BUCKETS_MOST, KEEP_DELETES_MS, KEYED_TRIGGER, OFFSET
from penstock.spark.pipeline.expectations import EXPECT, MOST, OR_DROP, OR_FAIL, Otherwise
from penstock.spark.pipeline.flow import AVAILABLE_NOW, CONTINUOUS, EARLIEST, LATEST, TABLE_TRIGGER, SparkPart
from penstock.spark.pipeline.reading import FORMATS, MODES, TABLE_FORMATS
from penstock.spark.pipeline.references import REFRESH_MS
from penstock.spark.pipeline.table_pattern import TABLES_MAX, TABLES_MOST
from penstock.spark.stores.settings import AZURE_NAMES, GCS_NAMES, S3_NAMES

TEXT: Final = "text"
TEXTS: Final = "list of texts"
TEXT_OR_TEXTS: Final = "text or list of texts"
FLAG: Final = "true or false"
TABLE: Final = "table"
INTERVAL: Final = "interval"
SQL: Final = "SQL"
FUNCTION: Final = "`module:function`"
SECRET: Final = "`env:NAME` or `file:PATH`"

_NEEDED: Final = "needed"
_NONE: Final = "none"
_DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Key:
    """`takes` and `default` are as the page shows them."""

    name: str
    takes: str
    default: str
    says: str


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the file. `where` is how it is written there, `guide` the page that shows it at work."""

    title: str
    where: str
    guide: str
    keys: tuple[Key, ...]


def _one_of(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


_RULES: Final = (
    Key(EXPECT, TABLE, _NONE, f"Rules by name, {MOST} at most; rows that break one are counted and kept."),
    Key(
        OR_DROP,
        TABLE,
        _NONE,
        "Rules by name; rows that break one are left out, and become dead letters where there is a place for them.",
    ),
    Key(
        OR_FAIL, TABLE, _NONE, "Rules by name; a row that breaks one fails the batch, of which nothing is written then."
    ),
)

_TOP: Final = (
    Key("name", TEXT, _NEEDED, "Names the pipeline, its groups and its checkpoints: letters, digits, `-`, `_`."),
    Key("bootstrap", TEXT, "the profile's", "Brokers to ask first, `HOST:PORT` with commas between; `-b` comes first."),
    Key("warehouse", TEXT, "`lake`", "The directory or address below which tables lie."),
    Key(
        "checkpoints",
        TEXT,
        "`<warehouse>/_checkpoints/<name>`",
        "Where Spark keeps how far each sink is; in an object store copies of it.",
    ),
    Key(
        "admin", TEXT, _NONE, "`HOST:PORT` that serves `/metrics`, `/healthz`, `/readyz` and `/status`; `off` for none."
    ),
    Key("spark", TABLE, _NONE, "On which Spark it runs."),
    Key(
        "kafka",
        TABLE,
        _NONE,
        "Settings of the client library by Kafka's names, for all sources and topics; `client.config` is the path of "
        "a `client.properties`.",
    ),
    Key("storage", TABLE, _NONE, "How an object store is reached."),
    Key("catalog", TABLE, _NONE, "The catalog that Iceberg tables are in."),
    Key("sources", TABLE, _NEEDED, "What is read: `[sources.NAME]`, one table each."),
    Key("references", TABLE, _NONE, "Tables that steps join: `[references.NAME]`."),
    Key("steps", "list of tables", _NONE, "What is made of it: `[[steps]]`, in any order."),
    Key("sinks", TABLE, _NEEDED, "Where rows go: `[sinks.NAME]`, each with a checkpoint of its own."),
)

_SPARK: Final = (
    Key(
        "master",
        TEXT,
        f"`{SparkPart().master}`",
        "`local[CORES,ATTEMPTS]`, or `spark://HOST:7077`; `--master` comes first.",
    ),
    Key("settings", TABLE, _NONE, "Spark's own settings by their names."),
    Key("python", TEXTS, _NONE, "Files that executors need, beside those that steps are in."),
)

_SOURCE: Final = (
    Key("topic", TEXT, "one of four", "The topic that is read."),
    Key("topics", TEXTS, "one of four", "Several topics."),
    Key("pattern", TEXT, "one of four", "All topics whose names match, also those that come later."),
    Key("table", TEXT, "one of four", "A table of the warehouse, or one by where it lies, as a stream of its rows."),
    Key("format", _one_of(FORMATS), "raw records", "How values are decoded into columns."),
    Key("schema", TEXT, "needed for json and csv", "Columns such as `id BIGINT, at TIMESTAMP`, or `infer`."),
    Key(
        "start",
        f"`{EARLIEST}`, `{LATEST}`, a time, `table:PATH`, offsets as JSON; of a table also a version",
        f"`{LATEST}`; of a table `{EARLIEST}`",
        "Where the first run begins; later ones go on.",
    ),
    Key(
        "dead_letters",
        "`fail`, `drop`, `topic:NAME`, `table:PATH`",
        "`fail`",
        "What becomes of records that cannot be decoded.",
    ),
    Key("watermark", TABLE, _NONE, "Up to when rows are expected: `{ column, delay }`."),
    Key("cdc", _one_of(ENVELOPES), "rows", "What is around the columns: the envelope of changes."),
    Key("table_format", _one_of(TABLE_FORMATS), "`delta`", "Of the table that is read."),
    Key("removals", _one_of(REMOVALS), f"`{FAIL}`", "What a version of the table does that takes rows away."),
    Key("changes", FLAG, "`false`", "Gives what became of each row of the table, in `_change` and `_version`."),
    Key("options", TABLE, _NONE, "Options of the source by their own names, such as `maxOffsetsPerTrigger`."),
    *_RULES,
)

_WATERMARK: Final = (
    Key("column", TEXT, _NEEDED, "The time of a row."),
    Key("delay", INTERVAL, _NEEDED, "How late a row may come and still count."),
)

_RULE: Final = (
    Key("rule", SQL, _NEEDED, "What is to hold; null is not true."),
    Key("otherwise", _one_of(Otherwise), "`keep`", f"What becomes of rows that break it; under `{EXPECT}` only."),
    Key(
        "within",
        "share such as `0.1 %`",
        _NONE,
        "How many rows of a batch may break it before the batch fails; on a sink that is a table.",
    ),
)

_REFERENCE: Final = (
    Key("table", TEXT, _NEEDED, "The table of the warehouse, or one by where it lies."),
    Key("table_format", _one_of(TABLE_FORMATS), "`delta`", "Its format."),
    Key(
        "refresh",
        INTERVAL,
        f"`{REFRESH_MS // _MINUTE_MS} minutes`",
        "How often it is looked at; when it has moved, the query begins again between two batches.",
    ),
    Key("options", TABLE, _NONE, "Options of the table by their own names."),
)

_STEP: Final = (
    Key("name", TEXT, _NEEDED, "What others read it by."),
    Key("sql", SQL, "one of two", "A query over sources, references and steps by their names."),
    Key("python", FUNCTION, "one of two", "A function of DataFrames, in a module beside the file."),
    Key("from", TEXT_OR_TEXTS, "needed with `python`", "What the function is given, in order."),
    *_RULES,
)

_SINK: Final = (
    Key("from", TEXT, _NEEDED, "The source or step whose rows it takes."),
    Key(
        "table",
        TEXT,
        "one of five",
        "A table of the warehouse, or one by where it lies; `orders_{column}` is one for each value of a column.",
    ),
    Key("topic", TEXT, "one of five", "A topic; rows become JSON, or are the column `value`."),
    Key("parquet", TEXT, "one of five", "A directory of Parquet files."),
    Key("console", FLAG, "one of five", "Prints rows of each batch."),
    Key("foreach_batch", FUNCTION, "one of five", "A function of each batch and its number."),
    Key(
        "trigger",
        f"interval, `{CONTINUOUS}`, `{AVAILABLE_NOW}`",
        f"`{TABLE_TRIGGER}` for tables and Parquet, `{KEYED_TRIGGER}` for tables by key, else `{CONTINUOUS}`",
        "How often a batch begins.",
    ),
    Key("mode", _one_of(MODES), "`append`", "Spark's output mode."),
    Key("together", TEXT, _NONE, "Sinks with the same word share one query: what they read is read and decoded once."),
    Key(
        "fresh_within",
        INTERVAL,
        _NONE,
        "How old the oldest record may be that it has not taken; `pipeline check` says whether it is kept.",
    ),
    Key("options", TABLE, _NONE, "Options of the sink by their own names."),
    Key("table_format", _one_of(TABLE_FORMATS), "`delta`", "Of a table."),
    Key(
        "partition_by",
        TEXTS,
        _NONE,
        "Columns that a table or a directory is split by; Iceberg takes `day(at)` and its like.",
    ),
    Key(
        "rows",
        "`record`, `any`",
        "`record` without a step before it",
        "Of a table: `record` is one row for each record, which the audit counts.",
    ),
    Key(
        "dead_letters",
        "`table:PATH`",
        _NONE,
        "Of a table: where rows go that do not fit it, or that break a rule of the sink.",
    ),
    Key("max_tables", f"1 to {TABLES_MOST}", f"{TABLES_MAX}", "Of many tables: how many there may be."),
    Key("key", TEXT, _NONE, "Of a topic: the column that becomes the key of its records."),
    Key(
        "exactly_once",
        FLAG,
        "`false`",
        "Of a topic: written in transactions, shown once to readers of committed records.",
    ),
    Key("keys", TEXTS, _NONE, "Of a table that follows changes: columns that tell one row from another."),
    Key("sequence_by", "column or SQL", f"`{OFFSET}`", "Which of two changes of a key is the later."),
    Key("delete_when", SQL, _NONE, "Rows for which it is true delete."),
    Key("ignore_when", SQL, _NONE, "Rows for which it is true change nothing."),
    Key(
        "keep_deletes",
        INTERVAL,
        f"`{KEEP_DELETES_MS // _DAY_MS} days`",
        "For so long a late change does not bring a deleted row back; with a `sequence_by` of its own.",
    ),
    Key("buckets", f"1 to {BUCKETS_MOST}", f"{BUCKETS}", "Files that the keys of a table are spread over."),
    *_RULES,
)

_STORAGE_SAYS: Final[Mapping[str, tuple[str, str]]] = {
    "endpoint": (TEXT, "Another server than the service's own: `https://…` or `http://…`."),
    "region": (TEXT, "The bucket's; `us-east-1` at an endpoint."),
    "access_key": (TEXT, "The name of the key; needs `secret_key`."),
    "secret_key": (SECRET, "The key itself."),
    "session_token": (SECRET, "Beside keys that end."),
    "role": (TEXT, "The ARN of a role that is assumed; for tables, not for checkpoints."),
    "anonymous": (FLAG, "Asks without a login."),
    "path_style": (FLAG, "The bucket stands in the path and not in the host's name."),
    "account": (TEXT, "Of Azure, where the address does not name it."),
    "account_key": (SECRET, "Its key."),
    "sas_token": (SECRET, "In place of a key."),
    "tenant_id": (TEXT, "Of a service principal, with `client_id` and `client_secret`."),
    "client_id": (TEXT, "Who it is."),
    "client_secret": (SECRET, "Its secret."),
}
_STORES: Final = (("S3", S3_NAMES), ("Google's", GCS_NAMES), ("Azure's", AZURE_NAMES))

_STORAGE: Final = tuple(
    Key(
        name,
        takes,
        "as the library finds it",
        f"{says} ({', '.join(word for word, names in _STORES if name in names)})",
    )
    for name, (takes, says) in _STORAGE_SAYS.items()
)

_CATALOG: Final = (
    Key(
        "uri",
        TEXT,
        _NEEDED,
        "`https://…` of a REST catalog, `sqlite:///FILE`, or `name=NAME` of pyiceberg's configuration.",
    ),
    Key("warehouse", TEXT, _NONE, "Which of the catalog's."),
    Key("prefix", TEXT, _NONE, "What stands before its paths."),
    Key("credential", SECRET, _NONE, "`ID:SECRET` of a client that fetches tokens."),
    Key("token", SECRET, _NONE, "A token, in place of a credential."),
    Key("scope", TEXT, _NONE, "What the login is for; needs `credential`."),
    Key("oauth2_server", TEXT, _NONE, "Where tokens are fetched, if not at the catalog."),
)

PARTS: Final = (
    Part("The file", "top", "pipelines.md", _TOP),
    Part("Spark", "[spark]", "pipelines.md#on-a-cluster", _SPARK),
    Part("Sources", "[sources.NAME]", "pipelines.md", _SOURCE),
    Part("A watermark", "watermark", "object-stores.md", _WATERMARK),
    Part("A rule in its long form", f"[… .{EXPECT}] NAME", "pipelines.md#rules-on-rows", _RULE),
    Part("References", "[references.NAME]", "pipelines.md#tables-as-sources", _REFERENCE),
    Part("Steps", "[[steps]]", "pipelines.md", _STEP),
    Part("Sinks", "[sinks.NAME]", "one-stream-many-tables.md", _SINK),
    Part("An object store", "[storage]", "object-stores.md", _STORAGE),
    Part("A catalog", "[catalog]", "object-stores.md", _CATALOG),
)
