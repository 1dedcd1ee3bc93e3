"""What can be set on a client: frozen values, each with its Kafka name, bounds and a sentence.

Keywords are in snake case. Kafka's own name with dots turned into underscores is always accepted; where that is long,
the shorter name here is the field and Kafka's stands for it (`idempotence` and `enable_idempotence`). A name that
does not exist or a value that cannot be is a `BadSetting` that says what was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeAlias

from penstock.client.errors import BadSetting
from penstock.model.closest import closest
from penstock.protocol.compression import CODECS

INT32_MAX = 0x7FFFFFFF

Partitioner: TypeAlias = Callable[[str, bytes | None, bytes | None, int], int]
"""(topic, key, value, number of partitions) -> partition."""

Check: TypeAlias = Callable[[Any], Any]
"""Turns what was given into the value, or raises ValueError with what was expected."""


def _setting(default: Any, check: Check, says: str, kafka: str = "", also: Sequence[str] = ()) -> Any:
    metadata = {"check": check, "says": says, "kafka": kafka, "also": tuple(also)}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def _number(low: float, high: float = INT32_MAX) -> Check:
    def check(given: Any) -> int:
        if isinstance(given, str) and given.strip().lstrip("-").isdigit():
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return given

    return check


def _flag(given: Any) -> bool:
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    if not isinstance(given, bool):
        raise ValueError("True or False")
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError("text that is not empty")
    return given


def _optional_text(given: Any) -> str | None:
    return None if given is None else _text(given)


def _any_text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError("text")
    return given


def _one_of(*choices: str) -> Check:
    def check(given: Any) -> str:
        if not isinstance(given, str) or given.lower() not in choices:
            raise ValueError(" or ".join(repr(choice) for choice in choices))
        return given.lower()

    return check


def _addresses(given: Any) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ValueError("'host:port,host:port' or a list of 'host:port'")
    found = tuple(part.strip() for part in parts if part.strip())
    if not found:
        raise ValueError("at least one address")
    return found


_ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}


def _acks(given: Any) -> int:
    acks = None if isinstance(given, bool) else _ACKS.get(str(given).lower())
    if acks is None:
        raise ValueError("0, 1 or 'all'")
    return acks


def _partitioner(given: Any) -> Any:
    if callable(given):
        return given
    return _one_of("default", "sticky", "round_robin")(given)


def _level(given: Any) -> int | None:
    return None if given is None else int(_number(-131_072, 22)(given))


def _offset_reset(given: Any) -> str:
    if isinstance(given, timedelta):
        if given < timedelta():
            raise ValueError("a time that is not negative")
        return f"by_duration:PT{given / timedelta(seconds=1):.6f}S"
    if isinstance(given, str) and given.lower().startswith("by_duration:"):
        return given
    return str(_one_of("earliest", "latest", "none")(given))


def _names(given: Any) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(part, str) and part for part in parts):
        raise ValueError("a list of names")
    return tuple(part.strip() for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSettings:
    """What every client has."""

    whose: ClassVar[str] = "a client"

    bootstrap_servers: tuple[str, ...] = _setting(
        ("localhost:9092",), _addresses, "Brokers to ask first, as host:port; the others are learned from them."
    )
    client_id: str = _setting("penstock", _any_text, "A name for broker logs, quotas and metrics.")
    request_timeout_ms: int = _setting(30_000, _number(1), "How long one request may take before it is tried again.")
    retry_backoff_ms: int = _setting(100, _number(0), "The wait before the first retry; it doubles with each.")
    retry_backoff_max_ms: int = _setting(1_000, _number(0), "The longest wait between two retries.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Settings from keywords; BadSetting names what is wrong and what is nearest."""
        known = keyword_names(cls)
        values: dict[str, Any] = {}
        for name, value in given.items():
            found = known.get(name)
            if found is None:
                raise BadSetting(cls._unknown(name, known))
            if found.name in values:
                raise BadSetting(f"{name!r} is another name of {found.name!r}; both were given")
            try:
                values[found.name] = found.metadata["check"](value)
            except ValueError as wrong:
                raise BadSetting(f"{name}={value!r}: expected {wrong}") from None
        settings = cls(**values)
        settings.check(values)
        return settings

    @classmethod
    def _unknown(cls, name: str, known: Mapping[str, object]) -> str:
        """What to say about a name that is none here: whose it is, or what is nearest."""
        plain = name.replace(".", "_").replace("-", "_")
        if plain in known:
            return f"there is no setting {name!r}; as a keyword it is {plain}"
        kinds: list[type[CommonSettings]] = [ProducerSettings, ConsumerSettings, AdminSettings]
        if owners := [kind.whose for kind in kinds if plain in keyword_names(kind)]:
            return f"{name!r} is a setting of {' and '.join(owners)}, and this is {cls.whose}"
        near = closest(plain, known, least=0.5)
        return f"there is no setting {name!r}" + ("" if near is None else f"; did you mean {near!r}?")

    def check(self, given: Mapping[str, Any]) -> None:
        """What hangs together must fit together; BadSetting when it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings(CommonSettings):
    """What those have who send or read records, and so keep metadata; an Admin asks for it whenever it needs some."""

    metadata_max_age_ms: int = _setting(
        300_000, _number(1), "Metadata is asked for again after this time even when nothing seems to have changed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(RecordSettings):
    """What a Producer has, with the defaults of Kafka's own."""

    whose: ClassVar[str] = "a producer"

    acks: int = _setting(-1, _acks, "Who must have a record before it counts as sent: nobody 0, its leader 1, or all.")
    idempotence: bool = _setting(
        True, _flag, "No duplicates and no reordering through retries; needs acks=all.", "enable.idempotence"
    )
    compression: str = _setting("none", _one_of(*CODECS), "How batches are packed.", "compression.type")
    compression_level: int | None = _setting(
        None,
        _level,
        "How hard the packing tries; None is the codec's default.",
        "compression.<codec>.level",
        ("compression_gzip_level", "compression_lz4_level", "compression_zstd_level"),
    )
    linger_ms: int = _setting(5, _number(0), "How long a batch that is not full waits for more records.")
    batch_size: int = _setting(16_384, _number(0), "Bytes of a full batch; 0 sends every record alone.")
    bulk_batch_size: int = _setting(
        262_144, _number(1), "Bytes of a full batch of send_batch and send_arrow, if larger than batch_size.", "-"
    )
    buffer_memory: int = _setting(33_554_432, _number(1, 1 << 46), "Bytes of records that may be under way.")
    max_block_ms: int = _setting(60_000, _number(0), "How long a send waits for metadata or for room in the buffer.")
    max_request_size: int = _setting(1_048_576, _number(1), "The largest record and the largest request, in bytes.")
    max_in_flight: int = _setting(
        5, _number(1), "Requests without an answer per broker.", "max.in.flight.requests.per.connection"
    )
    delivery_timeout_ms: int = _setting(
        120_000,
        _number(1),
        "From a record's place in a batch to success or failure, retries included. Waiting for that place comes before "
        "(max_block_ms); close() waits for both.",
    )
    retries: int = _setting(
        INT32_MAX, _number(0), "How often a batch is sent again; delivery_timeout_ms bounds it too."
    )
    partitioner: str | Partitioner = _setting(  # noqa: RUF009 - it makes a field, as above
        "default",
        _partitioner,
        "'default' (the key's murmur2 hash as Java does it, sticky without a key), 'sticky' (ignores keys), "
        "'round_robin', or a function of (topic, key, value, number of partitions).",
        "partitioner.class",
    )
    create_topics: bool = _setting(
        True, _flag, "Ask brokers to create a missing topic, as Kafka's producers do.", "allow.auto.create.topics"
    )

    def check(self, given: Mapping[str, Any]) -> None:
        if self.idempotence:
            for name, wrong, needs in (
                ("acks", self.acks != -1, "acks='all'"),
                ("max_in_flight", self.max_in_flight > 5, "max_in_flight of at most 5"),
                ("retries", self.retries == 0, "retries of at least 1"),
            ):
                if wrong and "idempotence" in given:
                    raise BadSetting(f"idempotence needs {needs}")
                if wrong:
                    # As with Java's producer a setting that rules idempotence out, and was asked for, turns it off.
                    assert name in given, "the defaults go together"
                    object.__setattr__(self, "idempotence", False)
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            if "delivery_timeout_ms" in given:
                raise BadSetting("delivery_timeout_ms must be at least linger_ms + request_timeout_ms")
            object.__setattr__(self, "delivery_timeout_ms", self.linger_ms + self.request_timeout_ms)
        if self.compression == "gzip" and self.compression_level is not None and not -1 <= self.compression_level <= 9:
            raise BadSetting("compression_level: gzip knows -1 and 1 to 9")
        if self.compression == "lz4" and self.compression_level is not None and not 1 <= self.compression_level <= 17:
            raise BadSetting("compression_level: lz4 knows 1 to 17")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(RecordSettings):
    """What a Consumer has, with the defaults of Kafka's own."""

    whose: ClassVar[str] = "a consumer"

    group_id: str | None = _setting(None, _optional_text, "The group that shares the partitions; None reads alone.")
    group_instance_id: str | None = _setting(
        None, _optional_text, "A lasting name of this member: a restart within the session keeps its partitions."
    )
    group_protocol: str = _setting(
        "classic", _one_of("classic", "consumer"), "Who assigns: the group's leader, or the broker (KIP-848)."
    )
    group_remote_assignor: str | None = _setting(
        None, _optional_text, "The broker's assignor for group_protocol='consumer'; None is the broker's default."
    )
    assignors: tuple[str, ...] = _setting(
        ("range", "cooperative-sticky"),
        _names,
        "Assignors of the classic protocol, preferred first: range, roundrobin, sticky, cooperative-sticky.",
        "partition.assignment.strategy",
    )
    offset_reset: str = _setting(
        "latest",
        _offset_reset,
        "Where to begin when nothing was committed: earliest, latest, none (raise) or by_duration:PT1H, "
        "which is also timedelta(hours=1).",
        "auto.offset.reset",
    )
    auto_commit: bool = _setting(True, _flag, "Commit what was polled by itself.", "enable.auto.commit")
    auto_commit_interval_ms: int = _setting(5_000, _number(0), "How often it does.")
    session_timeout_ms: int = _setting(45_000, _number(1), "A classic member unheard of for so long is taken for dead.")
    heartbeat_interval_ms: int = _setting(3_000, _number(1), "How often a classic member tells that it lives.")
    max_poll_interval_ms: int = _setting(
        300_000, _number(1), "An application that does not poll for so long leaves the group."
    )
    max_poll_records: int = _setting(500, _number(1), "The most records of one poll.")
    fetch_min_bytes: int = _setting(1, _number(0), "The broker answers a fetch when it has this much,")
    fetch_max_wait_ms: int = _setting(500, _number(0), "or after this time.")
    fetch_max_bytes: int = _setting(52_428_800, _number(0), "The most bytes of one fetch.")
    max_partition_fetch_bytes: int = _setting(1_048_576, _number(0), "The most bytes of one partition in a fetch.")
    isolation_level: str = _setting(
        "read_uncommitted",
        _one_of("read_uncommitted", "read_committed"),
        "Whether records of open and aborted transactions are shown.",
    )
    check_crcs: bool = _setting(True, _flag, "Check every batch against its checksum.")
    client_rack: str = _setting("", _any_text, "Read from a replica in this rack where the broker names one.")
    create_topics: bool = _setting(
        True, _flag, "Ask brokers to create a missing topic that was subscribed to.", "allow.auto.create.topics"
    )
    exclude_internal_topics: bool = _setting(
        True,
        _flag,
        "A pattern does not match the platform's own topics. Not with group_protocol='consumer': there the broker "
        "matches, those too.",
    )
    default_api_timeout_ms: int = _setting(60_000, _number(0), "How long commit(), position() and the like may take.")

    def check(self, given: Mapping[str, Any]) -> None:
        if self.group_protocol == "consumer":
            for name in ("assignors", "session_timeout_ms", "heartbeat_interval_ms"):
                if name in given:
                    raise BadSetting(f"{name} is the broker's to set when group_protocol='consumer'")
            if "exclude_internal_topics" in given:
                words = "the broker matches patterns when group_protocol='consumer', and internal topics like any other"
                raise BadSetting(f"exclude_internal_topics: {words}; write a pattern that leaves them out, as '[^_].*'")
        elif "group_remote_assignor" in given:
            raise BadSetting("group_remote_assignor needs group_protocol='consumer'")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise BadSetting("heartbeat_interval_ms must be less than session_timeout_ms; a third is usual")
        if self.group_id is None:
            for name in ("group_instance_id",):
                if getattr(self, name) is not None:
                    raise BadSetting(f"{name} needs a group_id")
            if given.get("auto_commit"):
                raise BadSetting("auto_commit needs a group_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings(CommonSettings):
    """What an Admin has."""

    whose: ClassVar[str] = "an admin"

    default_api_timeout_ms: int = _setting(60_000, _number(0), "How long a call may take, retries included.")


def kafka_name(setting: Field[Any]) -> str:
    """The property's name in Kafka; `-` when it is our own."""
    return setting.metadata["kafka"] or setting.name.replace("_", ".")


def keyword_names(cls: type[CommonSettings]) -> dict[str, Field[Any]]:
    """Every keyword that a client takes, ours and Kafka's, with its setting."""
    known: dict[str, Field[Any]] = {}
    for setting in fields(cls):
        for name in (setting.name, kafka_name(setting).replace(".", "_"), *setting.metadata["also"]):
            if name.isidentifier():
                known[name] = setting
    return known
