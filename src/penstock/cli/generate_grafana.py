"""A dashboard for Grafana: what an operator looks at, in rows from the cluster down to agents. Pure.

Every query takes the nodes that are chosen at the top of the page; what is told of topics and groups takes those that
are chosen too. `generate prometheus` prints the scrape configuration whose jobs these queries expect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

WIDTH: Final = 24
DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_REQUESTS: Final = "kafka_network_requestmetrics_"
_TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
_MANAGER: Final = "kafka_server_replicamanager_"
_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_RAFT: Final = "kafka_server_raftmetrics_"
_NODE: Final = 'instance=~"$instance"'
_TOPIC: Final = f'{_NODE},topic=~"$topic"'
_P99: Final = 'quantile="0.99",request=~"Produce|Metadata|OffsetCommit|ListOffsets"'
_GROUP: Final = f'{_NODE},consumergroup=~"$group",topic=~"$topic"'


class Panel(NamedTuple):
    """One picture: each query with what its lines are called. `bad` is the least number that is drawn in red."""

    title: str
    words: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    bad: float | None = None


class Row(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


def number(title: str, words: str, query: str, bad: float | None = None) -> Panel:
    return Panel(title, words, "short", ((query, ""),), "stat", bad)


def lines(title: str, words: str, unit: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, words, unit, queries)


ROWS: Final = (
    Row(
        "Cluster",
        (
            number("Nodes that answer", "Nodes whose metrics are read.", 'sum(up{job="penstock"})'),
            number("Active controllers", "It should be one.", f"sum({_CONTROLLER}activecontrollercount)"),
            number("Brokers", "Brokers that serve.", "max(kafka_brokers)"),
            number("Topics", "Topics of the cluster.", f"max({_CONTROLLER}globaltopiccount)"),
            number("Partitions", "Partitions of the cluster.", f"max({_CONTROLLER}globalpartitioncount)"),
            number("Offline partitions", "Nobody leads them.", f"max({_CONTROLLER}offlinepartitionscount)", 1),
            number("Under min ISR", "They refuse acks=all.", f"sum({_MANAGER}underminisrpartitioncount)", 1),
            number("Under-replicated", "Not all in sync.", f"sum({_MANAGER}underreplicatedpartitions)", 1),
            number("Followers that stand still", "Behind, and not moving.", "sum(penstock_followers_still)", 1),
            number("Fenced brokers", "Registered, not serving.", f"max({_CONTROLLER}fencedbrokercount)", 1),
            number("Offline replicas", "Without a log directory.", f"sum({_MANAGER}offlinereplicacount)", 1),
            number(
                "Unclean elections",
                "Leaders that may lack committed records, today.",
                "sum(increase(kafka_controller_controllerstats_uncleanleaderelections_total[24h]))",
                1,
            ),
        ),
    ),
    Row(
        "Traffic",
        (
            lines(
                "Bytes in by topic",
                "What producers write.",
                "Bps",
                (f"sum by (topic) (rate({_TRAFFIC}bytesin_total{{{_TOPIC}}}[$__rate_interval]))", "{{topic}}"),
            ),
            lines(
                "Bytes out by topic",
                "What consumers read; followers are not among them.",
                "Bps",
                (f"sum by (topic) (rate({_TRAFFIC}bytesout_total{{{_TOPIC}}}[$__rate_interval]))", "{{topic}}"),
            ),
            lines(
                "Records in by topic",
                "Records a second.",
                "short",
                (f"sum by (topic) (rate({_TRAFFIC}messagesin_total{{{_TOPIC}}}[$__rate_interval]))", "{{topic}}"),
            ),
            lines(
                "Refused",
                "Batches and fetched partitions that were refused, a second.",
                "short",
                (f"sum(rate({_TRAFFIC}failedproducerequests_total{{{_TOPIC}}}[$__rate_interval]))", "produced"),
                (f"sum(rate({_TRAFFIC}failedfetchrequests_total{{{_TOPIC}}}[$__rate_interval]))", "fetched"),
            ),
            lines(
                "Requests",
                "Requests a second by API.",
                "reqps",
                (f"sum by (request) (rate({_REQUESTS}requests_total{{{_NODE}}}[$__rate_interval]))", "{{request}}"),
            ),
            lines(
                "Time of requests, p99",
                "From the last byte of a request to its reply; fetches and joins wait on purpose.",
                "ms",
                (
                    f"max by (request) ({_REQUESTS}totaltimems{{{_NODE},{_P99}}})",
                    "{{request}}",
                ),
            ),
        ),
    ),
    Row(
        "Topics and replicas",
        (
            lines(
                "Size on disk by topic",
                "All replicas together.",
                "bytes",
                (f"sum by (topic) (kafka_log_log_size{{{_TOPIC}}})", "{{topic}}"),
            ),
            lines(
                "Growth by topic",
                "Records a second, from the high watermarks.",
                "short",
                (
                    f"sum by (topic) (rate(kafka_topic_partition_current_offset{{{_TOPIC}}}[$__rate_interval]))",
                    "{{topic}}",
                ),
            ),
            lines(
                "Replicas that are not in sync",
                "By topic.",
                "short",
                (
                    f"sum by (topic) (kafka_topic_partition_replicas{{{_TOPIC}}}"
                    f" - kafka_topic_partition_in_sync_replica{{{_TOPIC}}}) > 0",
                    "{{topic}}",
                ),
            ),
            lines(
                "Replication",
                "Bytes from leaders to followers.",
                "Bps",
                (f"rate({_TRAFFIC}replicationbytesin_total{{{_NODE}}}[$__rate_interval])", "into {{instance}}"),
                (f"rate({_TRAFFIC}replicationbytesout_total{{{_NODE}}}[$__rate_interval])", "out of {{instance}}"),
            ),
            lines(
                "How far followers are behind",
                "Records that the latest one lacks, as leaders see it.",
                "short",
                (f"penstock_replica_lag_offsets_max{{{_NODE}}}", "{{instance}}"),
            ),
            lines(
                "Changes of in-sync sets",
                "A second.",
                "short",
                (f"sum(rate({_MANAGER}isrshrinks_total{{{_NODE}}}[$__rate_interval]))", "shrink"),
                (f"sum(rate({_MANAGER}isrexpands_total{{{_NODE}}}[$__rate_interval]))", "expand"),
            ),
        ),
    ),
    Row(
        "Groups",
        (
            lines(
                "Lag",
                "Records between what a group has committed and the end of its topics.",
                "short",
                (f"sum by (consumergroup, topic) (kafka_consumergroup_lag{{{_GROUP}}})", "{{consumergroup}} {{topic}}"),
            ),
            lines(
                "Pace",
                "Records a second that groups commit.",
                "short",
                (
                    f"sum by (consumergroup, topic) (deriv(kafka_consumergroup_current_offset{{{_GROUP}}}[5m]))",
                    "{{consumergroup}} {{topic}}",
                ),
            ),
            lines(
                "Members",
                "By group.",
                "short",
                (
                    f'sum by (consumergroup) (kafka_consumergroup_members{{{_NODE},consumergroup=~"$group"}})',
                    "{{consumergroup}}",
                ),
            ),
            lines(
                "Commits",
                "Offsets committed a second.",
                "short",
                (
                    f"rate(kafka_server_group_coordinator_metrics_offset_commit_count_total{{{_NODE}}}[$__rate_interval])",
                    "{{instance}}",
                ),
            ),
            lines(
                "Rebalances",
                "Generations and epochs begun, a second.",
                "short",
                (
                    "sum by (protocol) (rate("
                    f"kafka_server_group_coordinator_metrics_group_rebalance_count_total{{{_NODE}}}[$__rate_interval]))",
                    "{{protocol}}",
                ),
            ),
            lines(
                "Not told",
                "Partitions, topics, groups and lags that have no series: too many, or not known.",
                "short",
                (f"sum by (of) (penstock_metrics_left_out{{{_NODE}}}) > 0", "{{of}}"),
            ),
        ),
    ),
    Row(
        "Disks",
        (
            lines(
                "Free",
                "Share of each log directory's volume.",
                "percentunit",
                (
                    f"penstock_log_directory_free_bytes{{{_NODE}}} / penstock_log_directory_total_bytes{{{_NODE}}}",
                    "{{instance}} {{directory}}",
                ),
            ),
            lines(
                "Free bytes",
                "What is left.",
                "bytes",
                (f"penstock_log_directory_free_bytes{{{_NODE}}}", "{{instance}} {{directory}}"),
            ),
            lines(
                "Reads and writes",
                "Bytes between processes and disks.",
                "Bps",
                (
                    f"rate(kafka_server_kafkaserver_linux_disk_read_bytes{{{_NODE}}}[$__rate_interval])",
                    "read {{instance}}",
                ),
                (
                    f"rate(kafka_server_kafkaserver_linux_disk_write_bytes{{{_NODE}}}[$__rate_interval])",
                    "written {{instance}}",
                ),
            ),
            lines(
                "Syncs",
                "Files synced a second.",
                "short",
                (f"rate(penstock_flush_syncs_total{{{_NODE}}}[$__rate_interval])", "{{instance}}"),
            ),
            lines(
                "Retention",
                "Segments deleted a second.",
                "short",
                (f"rate(penstock_segments_deleted_total{{{_NODE}}}[$__rate_interval])", "{{instance}}"),
            ),
            lines(
                "Compaction",
                "Bytes looked at and kept.",
                "Bps",
                (f"rate(penstock_compaction_read_bytes_total{{{_NODE}}}[$__rate_interval])", "read {{instance}}"),
                (f"rate(penstock_compaction_kept_bytes_total{{{_NODE}}}[$__rate_interval])", "kept {{instance}}"),
            ),
        ),
    ),
    Row(
        "Quorum",
        (
            lines(
                "Who leads",
                "As each node sees it; -1 for nobody.",
                "short",
                (f"{_RAFT}current_leader{{{_NODE}}}", "{{instance}}"),
            ),
            lines(
                "Epoch", "It rises with every election.", "short", (f"{_RAFT}current_epoch{{{_NODE}}}", "{{instance}}")
            ),
            lines(
                "Metadata that is not applied yet",
                "Records between what is committed and what each node acts on.",
                "short",
                (
                    f"scalar(max({_RAFT}high_watermark))"
                    f" - kafka_server_brokermetadatametrics_last_applied_record_offset{{{_NODE}}} - 1",
                    "{{instance}}",
                ),
            ),
            lines(
                "Time to commit",
                "From append to commit, on the leader.",
                "ms",
                (f"max({_RAFT}commit_latency_avg)", "commit"),
            ),
            lines(
                "Records",
                "Metadata records a second.",
                "short",
                (f"{_RAFT}append_records_rate{{{_NODE}}}", "appended {{instance}}"),
                (f"{_RAFT}fetch_records_rate{{{_NODE}}}", "fetched {{instance}}"),
            ),
            lines(
                "Between controllers",
                "Bytes a second.",
                "Bps",
                (
                    f"rate(kafka_server_raftchannelmetrics_incoming_byte_total{{{_NODE}}}[$__rate_interval])",
                    "into {{instance}}",
                ),
            ),
        ),
    ),
    Row(
        "Nodes",
        (
            lines(
                "Processor",
                "Cores in use.",
                "short",
                (f'rate(process_cpu_seconds_total{{{_NODE},job="penstock"}}[$__rate_interval])', "{{instance}}"),
            ),
            lines(
                "Event loop, p99",
                "How late it runs; over 20 ms means an overloaded core.",
                "ms",
                (f'penstock_loop_lag_ms{{{_NODE},quantile="0.99"}}', "{{instance}}"),
            ),
            lines(
                "Memory",
                "Of the process; the page cache is the system's.",
                "bytes",
                (f'process_resident_memory_bytes{{{_NODE},job="penstock"}}', "{{instance}}"),
            ),
            lines(
                "Connections",
                "By listener.",
                "short",
                (
                    f"sum by (instance, listener) (kafka_server_socket_server_metrics_connection_count{{{_NODE}}})",
                    "{{instance}} {{listener}}",
                ),
            ),
            lines(
                "Open files",
                "Share of how many may be open.",
                "percentunit",
                (
                    f'process_open_fds{{{_NODE},job="penstock"}} / process_max_fds{{{_NODE},job="penstock"}}',
                    "{{instance}}",
                ),
            ),
            lines(
                "Failures in our code",
                "Requests; it should stay 0.",
                "short",
                (
                    f"sum by (request) (increase({_REQUESTS}unexpected_total{{{_NODE}}}[$__rate_interval])) > 0",
                    "{{request}}",
                ),
            ),
        ),
    ),
    Row(
        "Agents",
        (
            lines(
                "Events",
                "Taken in, a second.",
                "short",
                (
                    "sum by (instance, input) (rate(penstock_agent_events_total[$__rate_interval]))",
                    "{{instance}} {{input}}",
                ),
            ),
            lines(
                "Sent",
                "Records that brokers have acknowledged, a second.",
                "short",
                (
                    "sum by (instance, input) (rate(penstock_agent_sent_total[$__rate_interval]))",
                    "{{instance}} {{input}}",
                ),
            ),
            lines(
                "Behind",
                "Bytes in files that are not safe yet.",
                "bytes",
                ("penstock_agent_behind_bytes", "{{instance}} {{input}}"),
            ),
            lines(
                "Spool",
                "Share of its cap; full, it refuses senders.",
                "percentunit",
                ("penstock_agent_spool_bytes / (penstock_agent_spool_limit_bytes > 0)", "{{instance}}"),
            ),
            lines(
                "Lost or put aside",
                "Events a second.",
                "short",
                ("sum by (input) (rate(penstock_agent_dropped_total[$__rate_interval]))", "lost {{input}}"),
                (
                    "sum by (input) (rate(penstock_agent_dead_letters_total[$__rate_interval]))",
                    "dead letters {{input}}",
                ),
            ),
            lines("Brokers in reach", "1 while they answer.", "short", ("penstock_agent_broker_up", "{{instance}}")),
        ),
    ),
    Row(
        "Agents that send exactly once",
        (
            lines(
                "Committed",
                "Transactions a second.",
                "short",
                ("rate(penstock_agent_transactions_committed_total[$__rate_interval])", "{{instance}}"),
            ),
            lines(
                "Aborted",
                "Transactions a second; what was in them is sent again.",
                "short",
                ("rate(penstock_agent_transactions_aborted_total[$__rate_interval])", "{{instance}}"),
            ),
            lines(
                "Last commit",
                "Seconds ago; it grows where nothing is to be sent, too.",
                "s",
                ("penstock_agent_last_commit_age_seconds", "{{instance}}"),
            ),
        ),
    ),
)


def dashboard(title: str) -> str:
    """The whole JSON, to be imported as it is; the first question is which Prometheus to ask."""
    return json.dumps(
        {
            "title": title,
            "uid": "penstock",
            "tags": ["penstock", "kafka"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": _variables()},
            "panels": list(_panels()),
        },
        indent=2,
    )


def _variables() -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    chosen = (
        ("instance", "Node", "label_values(kafka_server_raftmetrics_current_epoch, instance)"),
        ("topic", "Topic", "label_values(kafka_topic_partitions, topic)"),
        ("group", "Group", "label_values(kafka_consumergroup_members, consumergroup)"),
    )
    return [source, *(_variable(*each) for each in chosen)]


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels() -> Iterator[dict[str, Any]]:
    """Rows one below the other, their panels from left to right."""
    top = ids = 0
    for row in ROWS:
        ids += 1
        yield {
            "id": ids,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": _at(0, top, WIDTH, 1),
        }
        top += 1
        left = 0
        for panel in row.panels:
            ids += 1
            width, height = (4, 4) if panel.kind == "stat" else (8, 8)
            yield _panel(panel, ids, _at(left, top, width, height))
            left += width
            if left == WIDTH:
                left, top = 0, top + height
        assert not left, "a row of panels is full"


def _at(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.bad is not None:
        steps.append({"color": "red", "value": panel.bad})
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind == "timeseries":
        defaults |= {"color": {"mode": "palette-classic"}, "custom": {"fillOpacity": 5, "showPoints": "never"}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.words,
        "datasource": DATA_SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "expr": query,
                "legendFormat": legend or "__auto",
                "datasource": DATA_SOURCE,
            }
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }
