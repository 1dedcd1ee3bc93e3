"""What Prometheus needs: a scrape configuration and rules for alerts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

DEFAULT_BROKER: Final = "127.0.0.1:9644"
DEFAULT_AGENT: Final = "127.0.0.1:9645"


class Alert(NamedTuple):
    name: str
    when: str
    """A query that has an answer when something is wrong."""
    minutes: int
    severity: str
    words: str


BROKERS: Final = (
    Alert("PenstockNodeDown", 'up{job="penstock"} == 0', 1, "critical", "Node {{ $labels.instance }} does not answer."),
    Alert(
        "PenstockNoController",
        "(sum(kafka_controller_kafkacontroller_activecontrollercount) or vector(0)) != 1",
        1,
        "critical",
        "{{ $value }} nodes say that they are the active controller; it should be one.",
    ),
    Alert(
        "PenstockMetadataStandsStill",
        "changes(kafka_server_brokermetadatametrics_last_applied_record_offset[2m]) == 0",
        1,
        "critical",
        "Node {{ $labels.instance }} has heard nothing from the controller for two minutes; it acts on old metadata.",
    ),
    Alert(
        "PenstockPartitionsOffline",
        "max(kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
        1,
        "critical",
        "{{ $value }} partitions have no leader; penstock doctor says why.",
    ),
    Alert(
        "PenstockLogDirectoryOffline",
        "kafka_server_replicamanager_offlinereplicacount > 0",
        1,
        "critical",
        "{{ $value }} replicas on {{ $labels.instance }} have no log directory; look at its disks.",
    ),
    Alert(
        "PenstockUnderMinIsr",
        "kafka_server_replicamanager_underminisrpartitioncount > 0",
        2,
        "critical",
        "{{ $value }} partitions led by {{ $labels.instance }} refuse writes with acks=all.",
    ),
    Alert(
        "PenstockUnderReplicated",
        "kafka_server_replicamanager_underreplicatedpartitions > 0",
        10,
        "warning",
        "{{ $value }} partitions led by {{ $labels.instance }} have replicas that are not in sync.",
    ),
    Alert(
        "PenstockFollowerStandsStill",
        "penstock_followers_still > 0",
        5,
        "critical",
        "{{ $value }} followers of {{ $labels.instance }} are behind and do not move, though their brokers run.",
    ),
    Alert(
        "PenstockDiskNearlyFull",
        "penstock_log_directory_free_bytes / penstock_log_directory_total_bytes < 0.1"
        " and penstock_log_directory_free_bytes < 50 * 2 ^ 30",
        2,
        "critical",
        "{{ $labels.directory }} of {{ $labels.instance }} has {{ $value | humanizePercentage }} free;"
        " a full disk takes its replicas offline.",
    ),
    Alert(
        "PenstockDiskFillsSoon",
        "predict_linear(penstock_log_directory_free_bytes[6h], 24 * 3600) < 0"
        " and penstock_log_directory_free_bytes / penstock_log_directory_total_bytes < 0.4",
        30,
        "warning",
        "{{ $labels.directory }} of {{ $labels.instance }} is full within a day if it goes on like this.",
    ),
    Alert(
        "PenstockBrokerFenced",
        "max(kafka_controller_kafkacontroller_fencedbrokercount) > 0",
        5,
        "warning",
        "{{ $value }} brokers are registered and do not serve.",
    ),
    Alert(
        "PenstockCertificateEnds",
        "penstock_certificate_not_after_seconds - time() < 14 * 24 * 3600",
        60,
        "warning",
        "The certificate of {{ $labels.listener }} of {{ $labels.instance }} ends in {{ $value | humanizeDuration }};"
        " penstock cert renew, or nobody connects any more.",
    ),
    Alert(
        "PenstockRequestsFail",
        "increase(kafka_network_requestmetrics_unexpected_total[10m]) > 0",
        0,
        "warning",
        "{{ $labels.request }} requests failed in the code of {{ $labels.instance }}; its log says where.",
    ),
)
AGENTS: Final = (
    Alert(
        "PenstockAgentDown",
        'up{job="penstock-agent"} == 0',
        2,
        "critical",
        "Agent {{ $labels.instance }} does not answer.",
    ),
    Alert(
        "PenstockAgentLoses",
        "increase(penstock_agent_dropped_total[10m]) + increase(penstock_agent_unsendable_total[10m]) > 0",
        0,
        "critical",
        "Input {{ $labels.input }} of {{ $labels.instance }} lost {{ $value }} events in ten minutes.",
    ),
    Alert(
        "PenstockAgentMissesFiles",
        "penstock_agent_missed_files_total > 0",
        0,
        "warning",
        "{{ $value }} files of input {{ $labels.input }} of {{ $labels.instance }} went away before all was read;"
        " its log says which, and how much at most that is.",
    ),
    Alert(
        "PenstockAgentNoBroker",
        "penstock_agent_broker_up == 0",
        2,
        "critical",
        "Agent {{ $labels.instance }} reaches no broker.",
    ),
    Alert(
        "PenstockAgentInputFails",
        "penstock_agent_failing == 1",
        2,
        "critical",
        "Input {{ $labels.input }} of {{ $labels.instance }} fails and is tried again.",
    ),
    Alert(
        "PenstockAgentSpoolFills",
        "penstock_agent_spool_limit_bytes > 0 and penstock_agent_spool_bytes / penstock_agent_spool_limit_bytes > 0.8",
        1,
        "warning",
        "The spool of {{ $labels.instance }} is more than 80 % full; then senders are refused.",
    ),
    Alert(
        "PenstockAgentBehind",
        "penstock_agent_behind_bytes > 1e9 and deriv(penstock_agent_behind_bytes[10m]) > 0",
        10,
        "warning",
        "Input {{ $labels.input }} of {{ $labels.instance }} falls behind its files.",
    ),
    Alert(
        "PenstockAgentCheckpointLate",
        "penstock_agent_checkpoint_age_seconds > 60",
        1,
        "warning",
        "Agent {{ $labels.instance }} cannot save its positions; is its disk full?",
    ),
    Alert(
        "PenstockAgentCommitsNothing",
        "penstock_agent_exactly_once == 1 and penstock_agent_last_commit_age_seconds > 60"
        " and on (instance) sum by (instance) (penstock_agent_waiting_bytes) > 0",
        2,
        "warning",
        "Agent {{ $labels.instance }} has lines to send and has committed no transaction for {{ $value }} s.",
    ),
)


class NodeAccess(NamedTuple):
    """How the admin ports of nodes are reached: what is empty is not asked for. Secrets are in files."""

    tls: bool = False
    ca_file: str = ""
    username: str = ""
    password_file: str = ""
    token_file: str = ""

    def lines(self) -> list[str]:
        said = []
        if self.tls or self.ca_file:
            said.append("    scheme: https")
        if self.ca_file:
            said += ["    tls_config:", f"      ca_file: {_quoted(self.ca_file)}"]
        if self.username:
            said += ["    basic_auth:", f"      username: {_quoted(self.username)}"]
            said += [f"      password_file: {_quoted(self.password_file)}"]
        if self.token_file:
            said += ["    authorization:", f"      credentials_file: {_quoted(self.token_file)}"]
        return said


def scrape_config(brokers: Sequence[str], agents: Sequence[str], access: NodeAccess) -> str:
    """A whole prometheus.yml; what was not given is on this machine."""
    if not brokers and not agents:
        brokers, agents = (DEFAULT_BROKER,), (DEFAULT_AGENT,)
    lines = [
        "global:",
        "  scrape_interval: 15s",
        "rule_files:",
        "  - penstock-alerts.yml  # penstock generate prometheus --alerts",
        "scrape_configs:",
    ]
    for job, targets, reached in (("penstock", brokers, access.lines()), ("penstock-agent", agents, [])):
        if targets:
            lines += [f"  - job_name: {job}", *reached, "    static_configs:", "      - targets:"]
            lines += [f"          - {_quoted(target)}" for target in targets]
    return "\n".join(lines) + "\n"


def alert_rules() -> str:
    lines = ["groups:"]
    for group, alerts in (("penstock", BROKERS), ("penstock-agent", AGENTS)):
        lines += [f"  - name: {group}", "    rules:"]
        for alert in alerts:
            lines += [
                f"      - alert: {alert.name}",
                f"        expr: {_quoted(alert.when)}",
                f"        for: {alert.minutes}m",
                f"        labels: {{severity: {alert.severity}}}",
                f"        annotations: {{summary: {_quoted(alert.words)}}}",
            ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Single quotes of YAML know one escape only: themselves, twice."""
    return "'" + text.replace("'", "''") + "'"
