"""Configuration: Kafka 4.3's properties as data, and the pure machinery that reads, checks, merges and prints them.

May import: `penstock.model.errors`, `penstock.model.ids`, and of the standard library what has no clock, file, socket
or thread. Text comes in, values go out; opening the file is the caller's business.

Invariants: names, types, defaults, bounds and update modes are Kafka 4.3.1's, one row each (a test holds the list);
text means what it means to Kafka; every property says honestly whether Penstock acts on it; no secret is ever printed.

Read `definition.py` first (what a property is), then `topic.py`, `values.py` and `settings.py` (what the broker
reads), `dynamic.py` (what DescribeConfigs tells) and `incremental.py`. The rows are in `tables/`; the reference page is
printed by `reference.py`, which is not imported here.
"""

from penstock.model.config.broker import BROKER_CONFIGS, broker_definition, unknown_name
from penstock.model.config.definition import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Effect,
    Importance,
    Synonym,
    UpdateMode,
    value_text,
)
from penstock.model.config.dynamic import (
    ConfigDescriber,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    describe_broker,
    describe_topic,
    validate_broker_configs,
)
from penstock.model.config.endpoints import Endpoint
from penstock.model.config.files import parse_properties, parse_toml, write_properties
from penstock.model.config.groups import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    group_values,
    validate_client_metrics_configs,
    validate_group_configs,
)
from penstock.model.config.incremental import AlterOp, ResourceKind, apply_incremental, check_resource_name
from penstock.model.config.settings import BadSettings, BrokerSettings
from penstock.model.config.topic import TOPIC_CONFIGS, TopicSettings, topic_defaults, validate_topic_configs
from penstock.model.config.values import Voter

__all__ = [
    "BROKER_CONFIGS",
    "CLIENT_METRICS_CONFIGS",
    "GROUP_CONFIGS",
    "REQUIRED",
    "TOPIC_CONFIGS",
    "AlterOp",
    "BadSettings",
    "BrokerSettings",
    "ConfigDef",
    "ConfigDescriber",
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConfigValue",
    "Effect",
    "Endpoint",
    "Importance",
    "ResourceKind",
    "Synonym",
    "TopicSettings",
    "UpdateMode",
    "Voter",
    "apply_incremental",
    "broker_definition",
    "check_resource_name",
    "describe_broker",
    "describe_topic",
    "group_values",
    "parse_properties",
    "parse_toml",
    "topic_defaults",
    "unknown_name",
    "validate_broker_configs",
    "validate_client_metrics_configs",
    "validate_group_configs",
    "validate_topic_configs",
    "value_text",
    "write_properties",
]
