"""Options of format("penstock-lake"). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.model.closest import closest
from penstock.spark.errors import BadOption
from penstock.spark.naming import LAKE_FORMAT, MIRROR_OPTION
from penstock.spark.stores.settings import CATALOG, STORAGE, as_options, check_catalog, check_storage, under

_NOT_USERS: Final = frozenset(
    {"checkpointlocation", "queryname", "numrows", "truncate", "expect", "batch", "fan", "apart", MIRROR_OPTION}
)
"""What Spark itself puts among a sink's options, and what pipelines do."""


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """One field an option; the comment names the option where it differs from the field with dots for underscores."""

    path: str = ""
    """The table's directory: a local path, or a URI that pyarrow opens. Iceberg may have catalog and table instead."""
    table_format: str = "delta"
    catalog: str = ""
    """Iceberg: a catalog's URI (sqlite:///…, http(s)://…) or name=… of pyiceberg's configuration."""
    table: str = ""
    """Iceberg: namespace.name."""
    partition_by: tuple[str, ...] = ()
    target_file_bytes: int = 128 << 20
    compression: str = "zstd"
    compact_every: int = 50
    """Commits between automatic compactions; 0 is never."""
    expire_after_days: float = 7.0
    """Age from which old snapshots and unused files go when the table is compacted; 0 is never."""
    schema_evolution: str = "add"
    rows: str = "any"
    """"record" promises one row a record: commits then carry what an audit needs to prove it."""
    dead_letters: str = "fail"
    """deadLetters: where rows go that cannot fit the table's columns: "fail" or "table:PATH"."""
    feed: str = ""
    """JSON: which topics feed the table and how they are decoded; kept as a table property for union reads."""
    version: int | None = None
    """Reads only: the version to read."""
    checkpoint: str = ""
    """checkpointLocation: Spark's own."""
    query_name: str = ""
    """queryName: Spark's own."""
    expect: str = ""
    """JSON of the rules that rows are held against (`judging.to_option`); pipelines set it."""
    mirror: str = ""
    """Where copies of the checkpoint are kept (`checkpoints`); pipelines say it."""
    storage: Mapping[str, str] = field(default_factory=dict, hash=False)
    """storage.*: how the table's files are reached; secrets are references, see `stores`."""
    catalog_settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    """catalog.*: how to log in to an Iceberg catalog; secrets are references."""
    batch: int = -1
    """Batch writes: which batch of the query at `checkpoint` it is; then its offsets are committed with it, once."""
    fan: str = ""
    """The name of one table of many, which may stand before the batch: an index has the offsets of all."""
    starting_version: str = "earliest"
    """startingVersion: streams only: `earliest` (all rows, then changes), `latest`, or the version after which."""
    max_files_per_trigger: int = 1000
    """maxFilesPerTrigger: streams only: about how many files the versions of a batch have; the first batch has all."""
    history_keep_days: float = 7.0
    """history.keep.days: streams only: how long the table is to keep what versions brought, for a stream that pauses;
    0 asks for nothing."""
    removals: str = "fail"
    """Streams only: what a version that takes rows away does."""
    changes: bool = False
    """Streams only: whether rows come with what became of them."""
    apart: str = ""
    """A batch that is known by its query, this word and its number alone, without offsets, such as one of letters."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LakeOptions:
        """Names are case-insensitive; an unknown one is an error that names the nearest."""
        given = {name.lower(): value.strip() for name, value in options.items() if value is not None}
        _refuse_unknown(given)
        made = cls(
            path=given.get("path", ""),
            table_format=_one_of(given, "table.format", ("delta", "iceberg"), "delta"),
            catalog=given.get("catalog", ""),
            table=given.get("table", ""),
            partition_by=tuple(part.strip() for part in given.get("partition.by", "").split(",") if part.strip()),
            target_file_bytes=_bytes(given, "target.file.bytes", 128 << 20, least=1 << 12),
            compression=_one_of(given, "compression", ("zstd", "snappy", "none"), "zstd"),
            compact_every=_whole(given, "compact.every", 50),
            expire_after_days=_number(given, "expire.after.days", 7.0),
            schema_evolution=_one_of(given, "schema.evolution", ("add", "none"), "add"),
            rows=_one_of(given, "rows", ("record", "any"), "any"),
            dead_letters=_dead_letters(given),
            feed=given.get("feed", ""),
            version=_whole(given, "version", 0) if "version" in given else None,
            checkpoint=given.get("checkpointlocation", ""),
            query_name=given.get("queryname", ""),
            expect=given.get("expect", ""),
            mirror=given.get(MIRROR_OPTION, ""),
            storage=under(given, STORAGE),
            catalog_settings=under(given, CATALOG),
            batch=_whole(given, "batch", 0) if "batch" in given else -1,
            fan=given.get("fan", ""),
            starting_version=given.get("startingversion", "earliest"),
            max_files_per_trigger=_whole(given, "maxfilespertrigger", 1000) or 1,
            history_keep_days=_number(given, "history.keep.days", 7.0),
            removals=_one_of(given, "removals", ("fail", "ignore"), "fail"),
            changes=_one_of(given, "changes", ("true", "false"), "false") == "true",
            apart=given.get("apart", ""),
        )
        made._check()
        return made

    @property
    def dead_letters_path(self) -> str:
        """The dead-letter table's path; "" when rows that do not fit fail the query."""
        return self.dead_letters.removeprefix("table:") if self.dead_letters != "fail" else ""

    @property
    def reached(self) -> dict[str, str]:
        """The options that say how the table is reached, for whoever opens it through Spark."""
        return as_options(self.storage, self.catalog_settings)

    def _check(self) -> None:
        check_storage(self.storage, self.path)
        check_catalog(self.catalog_settings)
        if self.table_format == "delta":
            if not self.path:
                raise BadOption(f"{LAKE_FORMAT} needs a path: .option('path', '/where/the/table/is') or .start(path)")
            first = next((f"{CATALOG}.{name}" for name in self.catalog_settings), "")
            for name, value in (("catalog", self.catalog), ("table", self.table), (first, first)):
                if value:
                    raise BadOption(f"option {name} is for Iceberg; a Delta table is found by its path alone")
        elif not (self.path or (self.catalog and self.table)):
            raise BadOption("an Iceberg table needs a path, or a catalog and a table (namespace.name)")


NEEDS_PYICEBERG: Final = "Iceberg tables need pyiceberg: pip install 'penstock[spark,iceberg]'"
"""Said by whoever finds it missing first: a check of a file, or the opening of a table."""

NAMES: Final = (
    "path",
    "table.format",
    "catalog",
    "table",
    "partition.by",
    "target.file.bytes",
    "compression",
    "compact.every",
    "expire.after.days",
    "schema.evolution",
    "rows",
    "deadLetters",
    "feed",
    "version",
    "startingVersion",
    "maxFilesPerTrigger",
    "history.keep.days",
    "removals",
    "changes",
)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in given:
        if name in known or name in _NOT_USERS or name.startswith((f"{STORAGE}.", f"{CATALOG}.")):
            continue
        near = closest(name, NAMES, least=0.6)
        hint = f"; did you mean {near}?" if near is not None else f"; there are {', '.join(NAMES)}"
        raise BadOption(f"{LAKE_FORMAT} has no option {name}{hint}")


def _one_of(given: Mapping[str, str], name: str, choices: tuple[str, ...], otherwise: str) -> str:
    value = given.get(name.lower(), otherwise).lower()
    if value not in choices:
        raise BadOption(f"option {name} is {value!r}: it is one of {', '.join(choices)}")
    return value


def _number(given: Mapping[str, str], name: str, otherwise: float) -> float:
    text = given.get(name, str(otherwise))
    try:
        value = float(text)
    except ValueError:
        raise BadOption(f"option {name} is {text!r}: a number is wanted") from None
    if not 0 <= value < 1e9:
        raise BadOption(f"option {name} is {text}: a number from 0 up is wanted")
    return value


def _whole(given: Mapping[str, str], name: str, otherwise: int) -> int:
    text = given.get(name, str(otherwise))
    if not text.isdigit():
        raise BadOption(f"option {name} is {text!r}: a whole number from 0 up is wanted")
    return int(text)


_UNITS: Final = {"k": 10, "m": 20, "g": 30}


def _bytes(given: Mapping[str, str], name: str, otherwise: int, *, least: int) -> int:
    """A number of bytes, or one with a unit as Spark writes them: 64m, 1g."""
    text = given.get(name, str(otherwise)).lower().removesuffix("b")
    shift = _UNITS.get(text[-1:], 0)
    digits = text[:-1] if shift else text
    if not digits.isdigit() or int(digits) << shift < least:
        raise BadOption(f"option {name} is {given.get(name)!r}: bytes are wanted, {least} or more, such as 128m")
    return int(digits) << shift


def _dead_letters(given: Mapping[str, str]) -> str:
    value = given.get("deadletters", "fail")
    if value.lower() == "fail":
        return "fail"
    if value.startswith("table:") and len(value) > len("table:"):
        return value
    raise BadOption(
        f"option deadLetters is {value!r}: it is fail, or table:PATH for a Delta table of rows that do not fit"
    )
