"""Metrics, telemetry and the windows of quotas."""

from __future__ import annotations

from penstock.model.config.definition import ConfigDef
from penstock.model.config.tables.words import (
    ACCEPTED,
    ACTED,
    ANY_LIST,
    CLASS,
    CLUSTER_WIDE,
    INT,
    LATER,
    LIST,
    LONG,
    LOW,
    STRING,
)
from penstock.model.config.validators import at_least

# A property reads best as one short paragraph, not as a column of arguments.
# fmt: off
METRICS: tuple[ConfigDef, ...] = (
    ConfigDef(
        "metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), ANY_LIST, LOW,
        "Java classes that receive metrics. Metrics are served over HTTP here.", ACCEPTED, update_mode=CLUSTER_WIDE),
    ConfigDef(
        "metrics.num.samples", INT, 2, at_least(1), LOW,
        "How many samples Kafka keeps for a metric. Metrics here are plain counters.", ACCEPTED),
    ConfigDef(
        "metrics.sample.window.ms", LONG, 30_000, at_least(1), LOW,
        "How long one sample of a Kafka metric lasts. Metrics here are plain counters.", ACCEPTED),
    ConfigDef(
        "metrics.recording.level", STRING, "INFO", None, LOW,
        "How detailed Kafka's metrics are.", ACCEPTED),
    ConfigDef(
        "kafka.metrics.reporters", LIST, (), ANY_LIST, LOW,
        "Java classes that receive Kafka's older metrics.", ACCEPTED),
    ConfigDef(
        "kafka.metrics.polling.interval.secs", INT, 10, at_least(1), LOW,
        "How often Kafka's older metrics reporters are polled.", ACCEPTED),
    ConfigDef(
        "telemetry.max.bytes", INT, 1_048_576, at_least(1), LOW,
        "The largest push of client metrics that is accepted.", LATER),
    ConfigDef(
        "quota.window.num", INT, 11, at_least(1), LOW,
        "How many samples client quotas keep. One less is how many seconds' worth may be used in one burst.", ACTED),
    ConfigDef(
        "quota.window.size.seconds", INT, 1, at_least(1), LOW,
        "How many seconds one sample of a client quota covers.", ACTED),
    ConfigDef(
        "controller.quota.window.num", INT, 11, at_least(1), LOW,
        "How many samples the quota on topic creations and deletions keeps.", ACTED),
    ConfigDef(
        "controller.quota.window.size.seconds", INT, 1, at_least(1), LOW,
        "How many seconds one sample of the quota on topic creations and deletions covers.", ACTED),
    ConfigDef(
        "client.quota.callback.class", CLASS, None, None, LOW,
        "The Java class that decides quotas. Java plug-ins cannot be loaded here.", ACCEPTED),
)
# fmt: on
