"""Kafka's command line tools by the names of their scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.compat.apache import jars

MAINS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "log-compaction-tester": "org.apache.kafka.tools.LogCompactionTester",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}


@dataclass(frozen=True)
class Outcome:
    """What a tool left behind."""

    command: Sequence[str]
    returncode: int
    stdout: str
    stderr: str

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.stdout.splitlines() if line.strip()]

    def __str__(self) -> str:
        return f"{' '.join(self.command)}\nexit {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


class ToolFailed(AssertionError):
    """A tool that was expected to succeed did not."""


def java_command(name: str, *arguments: str, heap: str = "256m", compile_fully: bool = False) -> list[str]:
    """The command that runs a tool. `compile_fully` is for the perf tools: the others end before C2 pays."""
    compiler = [] if compile_fully else ["-XX:TieredStopAtLevel=1"]
    return [
        "java",
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        *compiler,
        "-Xshare:auto",
        f"-XX:SharedArchiveFile={jars.tool_archive()}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        jars.tool_class_path(),
        MAINS[name],
        *arguments,
    ]


def try_tool(
    name: str,
    *arguments: str | Path,
    stdin: str | None = None,
    timeout_s: float = 60,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Runs a tool to its end and returns whatever came out."""
    words = [str(argument) for argument in arguments]
    done = subprocess.run(
        java_command(name, *words), input=stdin, capture_output=True, text=True, timeout=timeout_s, env=environment
    )
    return Outcome([name, *words], done.returncode, done.stdout, done.stderr)


def run_tool(name: str, *arguments: str | Path, stdin: str | None = None, timeout_s: float = 60) -> Outcome:
    """Runs a tool that must succeed."""
    outcome = try_tool(name, *arguments, stdin=stdin, timeout_s=timeout_s)
    if outcome.returncode != 0:
        raise ToolFailed(str(outcome))
    return outcome


class Tools:
    """Kafka's tools with `--bootstrap-server` filled in. `run` must succeed, `fail` must not."""

    def __init__(self, bootstrap: str) -> None:
        self._address = ("--bootstrap-server", bootstrap)

    def run(self, name: str, *arguments: str | Path, stdin: str | None = None) -> Outcome:
        return run_tool(name, *self._place(name, arguments), stdin=stdin)

    def fail(self, name: str, *arguments: str | Path) -> Outcome:
        outcome = try_tool(name, *self._place(name, arguments))
        assert outcome.returncode != 0, f"expected a failure:\n{outcome}"
        return outcome

    def _place(self, name: str, arguments: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
        # kafka-cluster alone wants its action before its options.
        if name == "kafka-cluster":
            return (arguments[0], *self._address, *arguments[1:])
        return (*self._address, *arguments)
