"""Where our answers may differ from Apache Kafka's, each with the words on the limits page that say so.

A deviation excuses single differences, never whole answers, unless it says why the rest cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from penstock.model.errors import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION
from penstock.model.ids import OFFSETS_TOPIC
from penstock.protocol.registry import APIS
from penstock.server.partitions.fetching.reading import DIVERGENCE_SINCE
from penstock.server.reception.dispatch import SERVED
from tests.compat.answers.chance import about
from tests.compat.answers.comparing import Difference
from tests.compat.answers.duo import Exchange

LACKING = frozenset({"share.version", "streams.version"})
"""Features that come with share groups and streams groups."""

_TELL_OF_TOPICS = frozenset(
    {
        "ListOffsets", "DeleteRecords", "Fetch", "ElectLeaders", "OffsetCommit", "OffsetDelete", "AddPartitionsToTxn",
        "TxnOffsetCommit", "WriteTxnMarkers",
    }
)  # fmt: skip


class Deviation(NamedTuple):
    """`says` stands on the limits page, word for word."""

    name: str
    applies: Callable[[Exchange, Difference], bool]
    says: str


def of(*apis: str, path: str) -> Callable[[Exchange, Difference], bool]:
    """Differences of these APIs whose path ends like that."""
    return lambda exchange, difference: exchange.api in apis and difference.path.endswith(path)


def repeats(message: Any) -> bool:
    """Whether an array in a message names the same thing twice."""
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, list):
            keys = [about(each) for each in value]
            if len(keys) != len(set(keys)) or any(is_dataclass(each) and repeats(each) for each in value):
                return True
    return False


def lists_nothing(struct: Any) -> bool:
    """Whether an answer's entry has only empty arrays beside its name."""
    arrays = [getattr(struct, field.name) for field in fields(struct) if isinstance(getattr(struct, field.name), list)]
    return bool(arrays) and not any(arrays)


def _partitions(found: list[Any]) -> list[Any]:
    """The partitions among entries of a Fetch answer, be they of topics or of partitions."""
    return [each for entry in found for each in getattr(entry, "partitions", [entry])]


def _missing(exchange: Exchange, difference: Difference, path: str, known: Callable[[Any], bool]) -> bool:
    """Whether only they list something, and all of it is what we are known not to have."""
    return (
        exchange.api == "ApiVersions"
        and difference.path.endswith(path)
        and isinstance(difference.theirs, list)
        and isinstance(difference.ours, int)
        and not any(map(known, difference.theirs))
    )


def _one_goes_on(difference: Difference) -> bool:
    """Whether one answer has the same records as the other and then some."""
    ours, theirs = difference.ours, difference.theirs
    return difference.path.endswith(".records") and (ours.startswith(theirs) or theirs.startswith(ours))


def _only_told_by_one(difference: Difference) -> bool:
    """Whether an answer speaks of partitions that the other leaves for the next one, and none of them is in trouble."""
    told = [each for side in (difference.ours, difference.theirs) if isinstance(side, list) for each in side]
    return difference.path.endswith("[]") and all(each.error_code == 0 for each in _partitions(told))


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "what is not served",
        lambda exchange, difference: _missing(
            exchange, difference, ".api_keys[]", lambda each: APIS[each.api_key].name in SERVED
        ),
        "No share groups or streams groups.",
    ),
    Deviation(
        "features that are not there",
        lambda exchange, difference: (
            _missing(exchange, difference, "_features[]", lambda each: each.name not in LACKING)
            or (
                exchange.api == "UpdateFeatures"
                and any(each.feature in LACKING for each in exchange.request.feature_updates)
            )
        ),
        "Their features are finalized at level 0",
    ),
    Deviation(
        "named twice",
        lambda exchange, difference: repeats(exchange.request),
        "Whatever a request names twice is answered twice",
    ),
    Deviation(
        "a topic without partitions",
        lambda exchange, difference: (
            exchange.api in _TELL_OF_TOPICS
            and difference.path.endswith("[]")
            and isinstance(difference.ours, list | int)
            and all(map(lists_nothing, difference.ours if isinstance(difference.ours, list) else ()))
            and all(map(lists_nothing, difference.theirs if isinstance(difference.theirs, list) else ()))
        ),
        "A topic that a request names without partitions",
    ),
    Deviation(
        "the log start of a refused produce",
        lambda exchange, difference: (
            exchange.api == "Produce" and difference.path.endswith(".log_start_offset") and difference.ours == -1
        ),
        "a batch that is refused is not told where the log starts",
    ),
    Deviation(
        "the time of a duplicate",
        lambda exchange, difference: (
            exchange.api == "Produce" and difference.path.endswith(".log_append_time_ms") and difference.ours == -1
        ),
        "a batch that was appended before is told its offset and no time",
    ),
    Deviation(
        "no aborted transactions",
        lambda exchange, difference: (
            difference.path.endswith(".aborted_transactions") and not difference.ours and not difference.theirs
        ),
        "where there are no aborted transactions",
    ),
    Deviation(
        "the turns of a session",
        lambda exchange, difference: (
            exchange.api == "Fetch"
            and exchange.request.session_epoch > 0
            and (_one_goes_on(difference) or _only_told_by_one(difference))
        ),
        "which partitions of a fetch session come first when not all of them fit",
    ),
    Deviation(
        "a topic that went during a session",
        lambda exchange, difference: (
            exchange.api == "Fetch"
            and exchange.request.session_epoch > 0
            and (difference.ours, difference.theirs) == (UNKNOWN_TOPIC_ID.code, UNKNOWN_TOPIC_OR_PARTITION.code)
        ),
        "a topic that is deleted during a session by ids is told as UNKNOWN_TOPIC_ID at once",
    ),
    Deviation(
        "a divergence told before",
        lambda exchange, difference: (
            exchange.api == "Fetch"
            and exchange.request.session_epoch > 0
            and isinstance(difference.theirs, list)
            and all(each.diverging_epoch.end_offset >= 0 for each in _partitions(difference.theirs))
        ),
        "a divergence is told once in a session",
    ),
    Deviation(
        "a divergence that the version cannot tell",
        lambda exchange, _: (
            exchange.api == "Fetch"
            and exchange.version < DIVERGENCE_SINCE
            and exchange.theirs.error_code == UNSUPPORTED_VERSION.code
        ),
        "one that the version of the request cannot tell is UNSUPPORTED_VERSION of its partition",
    ),
    Deviation(
        "the epoch of a record that is gone",
        lambda exchange, difference: (
            exchange.api == "ListOffsets" and difference.path.endswith(".leader_epoch") and difference.ours == -1
        ),
        "the largest timestamp of a log is told without a leader epoch once DeleteRecords has passed it",
    ),
    Deviation(
        "the size of the offsets topic",
        lambda exchange, difference: (
            exchange.api == "DescribeLogDirs"
            and difference.path.endswith(".partition_size")
            and (repr(OFFSETS_TOPIC),) in difference.at
        ),
        "what coordinators write has Kafka's format and not its very bytes",
    ),
    Deviation(
        "the name of who may not join",
        lambda exchange, difference: (
            exchange.api == "JoinGroup"
            and difference.path.endswith(".member_id")
            and exchange.ours.error_code != 0
            and (difference.ours, difference.theirs) == (exchange.request.member_id, "")
        ),
        "a join of a consumer group that is refused is told the member id that it came with",
    ),
    Deviation(
        "our own configs",
        lambda exchange, difference: (
            exchange.api == "DescribeConfigs"
            and difference.path.endswith(".configs[]")
            and isinstance(difference.ours, list)
            and isinstance(difference.theirs, int)
            and all(each.name.startswith("penstock.") for each in difference.ours)
        ),
        "Properties that begin with `penstock.`",
    ),
    Deviation(
        "words about configs",
        of("DescribeConfigs", path=".documentation"),
        "The words of errors and of what a config is for are our own",
    ),
    Deviation(
        "words about records",
        of("Produce", path=".batch_index_error_message"),
        "The words of errors and of what a config is for are our own",
    ),
)
