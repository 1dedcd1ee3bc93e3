import dataclasses

import pytest

from penstock.model.config import TOPIC_CONFIGS, TopicSettings, topic_defaults, validate_topic_configs
from penstock.model.errors import INVALID_CONFIG, Refused

TIERED = {"remote.log.storage.system.enable": True}


def refusal(configs: dict[str, str | None], broker: dict[str, object] | None = None, **more: dict[str, str]) -> str:
    with pytest.raises(Refused) as caught:
        validate_topic_configs(configs, broker, **more)
    assert caught.value.error is INVALID_CONFIG
    return caught.value.why


def test_a_topic_without_overrides_has_kafkas_defaults() -> None:
    settings = TopicSettings.of({}, {})
    assert (settings.retention_ms, settings.segment_bytes, settings.max_message_bytes) == (
        604_800_000,
        1 << 30,
        1048588,
    )
    assert (settings.compacts, settings.deletes) == (False, True)
    assert settings.min_cleanable_dirty_ratio == 0.5


def test_the_attributes_have_the_types_of_the_table() -> None:
    words = {
        "BOOLEAN": "bool",
        "STRING": "str",
        "INT": "int",
        "LONG": "int",
        "DOUBLE": "float",
        "LIST": "tuple[str, ...]",
    }
    annotated = {field.name: field.type for field in dataclasses.fields(TopicSettings)}
    assert annotated.pop("compacts") == annotated.pop("deletes") == "bool"
    hidden = {"cleanup.policy", "internal.segment.bytes"}
    table = {name.replace(".", "_"): words[row.type.name] for name, row in TOPIC_CONFIGS.items() if name not in hidden}
    assert annotated == table


def test_an_override_beats_the_broker_and_the_broker_beats_the_default() -> None:
    broker = {"log.segment.bytes": 2_000_000, "log.index.interval.bytes": 8_192}
    settings = TopicSettings.of({"segment.bytes": " 3000000 "}, broker)
    assert (settings.segment_bytes, settings.index_interval_bytes) == (3_000_000, 8_192)


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": 24}, 86_400_000),
        ({"log.retention.hours": 24, "log.retention.minutes": 2}, 120_000),
        ({"log.retention.hours": 24, "log.retention.minutes": 2, "log.retention.ms": 5}, 5),
        ({"log.retention.hours": -1}, -1),
        ({"log.retention.ms": -5}, -1),
        ({"log.retention.ms": None, "log.retention.hours": 1}, 3_600_000),
    ],
)
def test_the_finest_retention_that_is_given_wins(broker: dict[str, object], retention_ms: int) -> None:
    assert TopicSettings.of({}, broker).retention_ms == retention_ms


def test_roll_and_flush_times_have_chains_too() -> None:
    broker = {"log.roll.hours": 2, "log.roll.jitter.hours": 1, "log.flush.scheduler.interval.ms": 9}
    settings = TopicSettings.of({}, broker)
    assert (settings.segment_ms, settings.segment_jitter_ms, settings.flush_ms) == (7_200_000, 3_600_000, 9)


def test_a_policy_can_be_both_or_neither() -> None:
    both, neither = (
        TopicSettings.of({"cleanup.policy": "compact,delete"}, {}),
        TopicSettings.of({"cleanup.policy": ""}, {}),
    )
    assert (both.compacts, both.deletes, neither.compacts, neither.deletes) == (True, True, False, False)


def test_the_internal_segment_size_goes_below_the_public_bound() -> None:
    assert TopicSettings.of({"internal.segment.bytes": "1000"}, {}).segment_bytes == 1_000


def test_local_retention_follows_the_whole_retention() -> None:
    settings = TopicSettings.of({"retention.ms": "5", "local.retention.bytes": "7"}, {})
    assert (settings.local_retention_ms, settings.local_retention_bytes) == (5, 7)


def test_defaults_can_be_kept_and_used_again() -> None:
    defaults = topic_defaults({"log.segment.bytes": 2_000_000})
    assert TopicSettings.over(defaults, {"retention.ms": "5"}) == TopicSettings.of(
        {"retention.ms": "5"}, {"log.segment.bytes": 2_000_000}
    )
    assert defaults["cleanup.policy"] == ("delete",)


def test_unknown_names_and_nulls_are_refused() -> None:
    assert refusal({"nope": "1"}) == "Unknown topic config name: nope"
    assert "retention.ms" in refusal({"retention.ms": None})


def test_compaction_lags_must_fit_together_also_with_the_brokers() -> None:
    assert "(100) is greater than" in refusal({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"})
    refusal({"min.compaction.lag.ms": "100"}, {"log.cleaner.max.compaction.lag.ms": 50})
    validate_topic_configs({"min.compaction.lag.ms": "100"})


def test_tiering_needs_a_tiered_cluster_and_no_compaction() -> None:
    assert "remote.log.storage.system.enable" in refusal({"remote.storage.enable": "true"})
    validate_topic_configs({"remote.storage.enable": "true"}, TIERED)
    assert "compacted" in refusal({"remote.storage.enable": "true", "cleanup.policy": "compact"}, TIERED)


def test_local_retention_of_a_tiered_topic_stays_within_its_retention() -> None:
    validate_topic_configs({"retention.bytes": "100", "local.retention.bytes": "200"})
    tiered = {"remote.storage.enable": "true", "retention.bytes": "100"}
    assert "must not exceed retention.bytes, 100" in refusal({**tiered, "local.retention.bytes": "200"}, TIERED)
    assert "must not exceed" in refusal({**tiered, "local.retention.bytes": "-1"}, TIERED)
    frozen = {**tiered, "remote.log.copy.disable": "true", "local.retention.bytes": "50"}
    assert "must equal retention.bytes" in refusal(frozen, TIERED)


def test_turning_tiering_off_needs_a_word_about_the_remote_data() -> None:
    before = {"remote.storage.enable": "true"}
    assert "remote.log.delete.on.disable" in refusal({"remote.storage.enable": "false"}, TIERED, previous=before)
    validate_topic_configs({"remote.log.delete.on.disable": "true"}, TIERED, previous=before)
