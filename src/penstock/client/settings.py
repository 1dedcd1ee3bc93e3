"""What can be set on a client: frozen values, each with its Kafka name, bounds and a sentence.

Keywords are in snake case. Kafka's own name with dots turned into underscores is always accepted; where that is long,
the shorter name here is the field and Kafka's stands for it (`idempotence` and `enable_idempotence`). A name that
does not exist or a value that cannot be is a `BadSetting` that says what was probably meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeAlias

from penstock.client.declaring import (
    INT32_MAX,
    addresses,
    any_text,
    flag,
    names,
    number,
    one_of,
    optional_text,
    secret,
    setting,
)
from penstock.client.errors import BadSetting
from penstock.client.security_settings import STANDS_FOR, SecuritySettings, hosts_of
from penstock.model.closest import closest
from penstock.model.secret import HIDDEN
from penstock.protocol.compression import CODECS

Partitioner: TypeAlias = Callable[[str, bytes | None, bytes | None, int], int]
"""(topic, key, value, number of partitions) -> partition."""

_JAVA_CLASSES = "org.apache.kafka.clients."
_ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}


def _acks(given: Any) -> int:
    acks = None if isinstance(given, bool) else _ACKS.get(str(given).lower())
    if acks is None:
        raise ValueError("0, 1 or 'all'")
    return acks


def _partitioner(given: Any) -> Any:
    if callable(given):
        return given
    return one_of("default", "sticky", "round_robin")(given)


def _level(given: Any) -> int | None:
    return None if given is None else int(number(-131_072, 22)(given))


def _offset_reset(given: Any) -> str:
    if isinstance(given, timedelta):
        if given < timedelta():
            raise ValueError("a time that is not negative")
        return f"by_duration:PT{given / timedelta(seconds=1):.6f}S"
    if isinstance(given, str) and given.lower().startswith("by_duration:"):
        return given
    return str(one_of("earliest", "latest", "none")(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSettings(SecuritySettings):
    """What every client has."""

    whose: ClassVar[str] = "a client"

    bootstrap_servers: tuple[str, ...] = setting(
        ("localhost:9092",), addresses, "Brokers to ask first, as host:port; the others are learned from them."
    )
    client_id: str = setting("penstock", any_text, "A name for broker logs, quotas and metrics.")
    request_timeout_ms: int = setting(30_000, number(1), "How long one request may take before it is tried again.")
    retry_backoff_ms: int = setting(100, number(0), "The wait before the first retry; it doubles with each.")
    retry_backoff_max_ms: int = setting(1_000, number(0), "The longest wait between two retries.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Settings from keywords, and from the file that `client_config` names; what both say is the keywords'.

        BadSetting names what is wrong and what is nearest.
        """
        keywords = cls.read(
            {name: value for name, value in given.items() if name != "bootstrap_servers" or value is not None}
        )
        values = keywords
        if keywords.get("client_config") is not None:
            values = {**cls.of_file(keywords["client_config"], keywords), **keywords}
        settings = cls(**values)
        settings.settle_security(keywords, values, hosts_of(settings.bootstrap_servers))
        settings.check(values)
        return settings

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every keyword by itself, as a value under the name of its field; whether they fit together is not asked."""
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
                shown = HIDDEN if found.metadata["check"] is secret else repr(value)
                raise BadSetting(f"{name}={shown}: expected {wrong}") from None
        return values

    @classmethod
    def of_file(cls, path: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """What a file says that this kind of client has. Java's tools pass over the rest, and so do we."""
        from penstock.client.config_file import read_client_config

        known = keyword_names(cls)
        properties = {name.replace(".", "_"): value for name, value in read_client_config(path).items()}
        ours = {
            name: value
            for name, value in properties.items()
            # Classes of Java's are not ours to load; ours have the same defaults.
            if name in known and not value.startswith(_JAVA_CLASSES)
        }
        try:
            values = cls.read(ours)
        except BadSetting as wrong:
            raise BadSetting(f"client_config={path!r}: {wrong.why}") from None
        replaced = {name for keyword in keywords for name in STANDS_FOR.get(keyword, ())}
        return {name: value for name, value in values.items() if name not in replaced}

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

    metadata_max_age_ms: int = setting(
        300_000, number(1), "Metadata is asked for again after this time even when nothing seems to have changed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(RecordSettings):
    """What a Producer has, with the defaults of Kafka's own."""

    whose: ClassVar[str] = "a producer"

    acks: int = setting(-1, _acks, "Who must have a record before it counts as sent: nobody 0, its leader 1, or all.")
    idempotence: bool = setting(
        True, flag, "No duplicates and no reordering through retries; needs acks=all.", "enable.idempotence"
    )
    compression: str = setting("none", one_of(*CODECS), "How batches are packed.", "compression.type")
    compression_level: int | None = setting(
        None,
        _level,
        "How hard the packing tries; None is the codec's default.",
        "compression.<codec>.level",
        ("compression_gzip_level", "compression_lz4_level", "compression_zstd_level"),
    )
    linger_ms: int = setting(5, number(0), "How long a batch that is not full waits for more records.")
    batch_size: int = setting(16_384, number(0), "Bytes of a full batch; 0 sends every record alone.")
    bulk_batch_size: int = setting(
        262_144, number(1), "Bytes of a full batch of send_batch and send_arrow, if larger than batch_size.", "-"
    )
    buffer_memory: int = setting(33_554_432, number(1, 1 << 46), "Bytes of records that may be under way.")
    max_block_ms: int = setting(60_000, number(0), "How long a send waits for metadata or for room in the buffer.")
    max_request_size: int = setting(1_048_576, number(1), "The largest record and the largest request, in bytes.")
    max_in_flight: int = setting(
        5,
        number(1),
        "Requests without an answer per broker. With 1 a partition has one batch under way, whoever leads it, and its "
        "records stay in order without idempotence too.",
        "max.in.flight.requests.per.connection",
    )
    delivery_timeout_ms: int = setting(
        120_000,
        number(1),
        "From a record's place in a batch to success or failure, retries included. Waiting for that place comes before "
        "(max_block_ms); close() waits for both.",
    )
    retries: int = setting(INT32_MAX, number(0), "How often a batch is sent again; delivery_timeout_ms bounds it too.")
    partitioner: str | Partitioner = setting(  # noqa: RUF009 - it makes a field, as above
        "default",
        _partitioner,
        "'default' (the key's murmur2 hash as Java does it, sticky without a key), 'sticky' (ignores keys), "
        "'round_robin', or a function of (topic, key, value, number of partitions).",
        "partitioner.class",
    )
    create_topics: bool = setting(
        True, flag, "Ask brokers to create a missing topic, as Kafka's producers do.", "allow.auto.create.topics"
    )
    transactional_id: str | None = setting(
        None,
        optional_text,
        "A lasting name under which this producer has transactions; whoever begins with it next fences this one. "
        "None sends without transactions.",
    )
    transaction_timeout_ms: int = setting(
        60_000,
        number(1),
        "The coordinator aborts a transaction that is open for longer. Brokers allow up to transaction.max.timeout.ms.",
    )

    def check(self, given: Mapping[str, Any]) -> None:
        if self.transactional_id is None and "transaction_timeout_ms" in given:
            raise BadSetting("transaction_timeout_ms needs a transactional_id")
        if self.idempotence:
            for name, wrong, needs in (
                ("acks", self.acks != -1, "acks='all'"),
                ("max_in_flight", self.max_in_flight > 5, "max_in_flight of at most 5"),
                ("retries", self.retries == 0, "retries of at least 1"),
            ):
                if wrong and "idempotence" in given:
                    raise BadSetting(f"idempotence needs {needs}")
                if wrong and self.transactional_id is not None:
                    raise BadSetting(f"transactions need {needs}")
                if wrong:
                    # As with Java's producer a setting that rules idempotence out, and was asked for, turns it off.
                    assert name in given, "the defaults go together"
                    object.__setattr__(self, "idempotence", False)
        elif self.transactional_id is not None:
            raise BadSetting("transactions need idempotence=True")
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

    group_id: str | None = setting(None, optional_text, "The group that shares the partitions; None reads alone.")
    group_instance_id: str | None = setting(
        None, optional_text, "A lasting name of this member: a restart within the session keeps its partitions."
    )
    group_protocol: str = setting(
        "classic", one_of("classic", "consumer"), "Who assigns: the group's leader, or the broker (KIP-848)."
    )
    group_remote_assignor: str | None = setting(
        None, optional_text, "The broker's assignor for group_protocol='consumer'; None is the broker's default."
    )
    assignors: tuple[str, ...] = setting(
        ("range", "cooperative-sticky"),
        names,
        "Assignors of the classic protocol, preferred first: range, roundrobin, sticky, cooperative-sticky.",
        "partition.assignment.strategy",
    )
    offset_reset: str = setting(
        "latest",
        _offset_reset,
        "Where to begin when nothing was committed: earliest, latest, none (raise) or by_duration:PT1H, "
        "which is also timedelta(hours=1).",
        "auto.offset.reset",
    )
    auto_commit: bool = setting(True, flag, "Commit what was polled by itself.", "enable.auto.commit")
    auto_commit_interval_ms: int = setting(5_000, number(0), "How often it does.")
    session_timeout_ms: int = setting(45_000, number(1), "A classic member unheard of for so long is taken for dead.")
    heartbeat_interval_ms: int = setting(3_000, number(1), "How often a classic member tells that it lives.")
    max_poll_interval_ms: int = setting(
        300_000, number(1), "An application that does not poll for so long leaves the group."
    )
    max_poll_records: int = setting(500, number(1), "The most records of one poll.")
    fetch_min_bytes: int = setting(1, number(0), "The broker answers a fetch when it has this much,")
    fetch_max_wait_ms: int = setting(500, number(0), "or after this time.")
    fetch_max_bytes: int = setting(52_428_800, number(0), "The most bytes of one fetch.")
    max_partition_fetch_bytes: int = setting(1_048_576, number(0), "The most bytes of one partition in a fetch.")
    isolation_level: str = setting(
        "read_uncommitted",
        one_of("read_uncommitted", "read_committed"),
        "Whether records of open and aborted transactions are shown.",
    )
    check_crcs: bool = setting(True, flag, "Check every batch against its checksum.")
    client_rack: str = setting("", any_text, "Read from a replica in this rack where the broker names one.")
    create_topics: bool = setting(
        True, flag, "Ask brokers to create a missing topic that was subscribed to.", "allow.auto.create.topics"
    )
    exclude_internal_topics: bool = setting(
        True,
        flag,
        "A pattern does not match the platform's own topics. Not with group_protocol='consumer': there the broker "
        "matches, those too.",
    )
    default_api_timeout_ms: int = setting(60_000, number(0), "How long commit(), position() and the like may take.")

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

    default_api_timeout_ms: int = setting(60_000, number(0), "How long a call may take, retries included.")


def kafka_name(setting: Field[Any]) -> str:
    """The property's name in Kafka; `-` when it is our own."""
    return setting.metadata["kafka"] or setting.name.replace("_", ".")


def keyword_names(cls: type[CommonSettings]) -> dict[str, Field[Any]]:
    """Every keyword that a client takes, ours and Kafka's, with its setting."""
    known: dict[str, Field[Any]] = {}
    for found in fields(cls):
        for name in (found.name, kafka_name(found).replace(".", "_"), *found.metadata["also"]):
            if name.isidentifier():
                known[name] = found
    return known
