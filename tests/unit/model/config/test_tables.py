"""The tables say what Apache Kafka 4.3.1 says; `kafka_4_3_1.tsv` was printed by Kafka's own definitions."""

from pathlib import Path

import pytest

from penstock.model.config import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    REQUIRED,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigType,
)
from penstock.model.config.broker import NEEDS_LISTENER_PREFIX, broker_definition, broker_synonyms, unknown_name
from penstock.model.config.validators import Range

TABLES = {
    "topic": TOPIC_CONFIGS,
    "broker": {name: row for name, row in BROKER_CONFIGS.items() if not name.startswith("penstock.")},
    "group": GROUP_CONFIGS,
    "client_metrics": CLIENT_METRICS_CONFIGS,
}


def bounds(row: ConfigDef) -> str:
    if not isinstance(row.validator, Range):
        return "-"
    most = "" if row.validator.most is None else f",{row.validator.most}"
    return f"[{row.validator.least},...{most}]"


def printed(kind: str, row: ConfigDef) -> tuple[str, ...]:
    default = "<required>" if row.default is REQUIRED else "<none>" if row.default is None else row.default_text
    return (
        kind,
        row.name,
        row.type.name,
        str(default),
        row.importance.value,
        row.update_mode.value if kind == "broker" else "-",
        bounds(row),
        "internal" if row.internal else "-",
    )


def test_every_property_is_as_kafka_reports_it() -> None:
    lines = (Path(__file__).parent / "kafka_4_3_1.tsv").read_text().splitlines()[1:]
    theirs = sorted(tuple(line.split("\t")) for line in lines)
    ours = sorted(printed(kind, row) for kind, table in TABLES.items() for row in table.values())
    assert ours == theirs


def test_the_counts_are_kafkas() -> None:
    assert {kind: len(table) for kind, table in TABLES.items()} == {
        "topic": 34,
        "broker": 360,
        "group": 17,
        "client_metrics": 3,
    }


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_default_passes_its_own_bounds_and_reads_back(table: dict[str, ConfigDef]) -> None:
    for row in table.values():
        if row.default_text is not None:
            assert row.parse(row.default_text) == row.default


def test_every_property_has_a_sentence() -> None:
    for table in TABLES.values():
        for row in table.values():
            assert row.doc[0].isupper() or row.doc.startswith(row.name), row.name
            assert row.doc.endswith("."), row.name


def test_every_synonym_exists() -> None:
    for table in (TOPIC_CONFIGS, GROUP_CONFIGS):
        for row in table.values():
            assert all(synonym.name in BROKER_CONFIGS for synonym in row.synonyms)


def test_the_retention_chain_goes_from_milliseconds_to_hours() -> None:
    assert broker_synonyms("log.retention.hours") == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert broker_synonyms("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert [tuple(one) for one in TOPIC_CONFIGS["retention.ms"].synonyms] == [
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ]


def test_a_listener_prefix_leads_to_the_property_behind_it() -> None:
    name = "listener.name.internal.scram-sha-256.sasl.jaas.config"
    assert broker_synonyms(name) == (name, "sasl.jaas.config")
    assert broker_definition(name) is BROKER_CONFIGS["sasl.jaas.config"]
    assert broker_definition("listener.name.internal.nonsense") is None


def test_store_settings_change_only_for_one_listener() -> None:
    assert len(NEEDS_LISTENER_PREFIX) == 10
    assert "ssl.keystore.key" in NEEDS_LISTENER_PREFIX


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.segment.byte", "did you mean log.segment.bytes?"),
        ("zookeeper.connect", "no ZooKeeper"),
        ("zookeeper.session.timeout.ms", "no ZooKeeper"),
        ("leader.replication.throttled.rate", "while the broker runs"),
        ("listener.name.x.nonsense", "is not a property"),
        ("x", "x is not a property"),
    ],
)
def test_an_unknown_name_gets_a_hint(name: str, said: str) -> None:
    assert said in (unknown_name(name) or "")


def test_plug_in_names_and_listener_prefixes_are_known() -> None:
    for name in ("super.users", "rsm.config.bucket", "listener.name.a.max.connections", "node.id"):
        assert unknown_name(name) is None


def test_types_have_the_codes_of_describe_configs() -> None:
    assert [kind.name for kind in ConfigType] == (
        ["UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]
    )
