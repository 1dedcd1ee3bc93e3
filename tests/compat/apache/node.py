"""One combined broker and controller of Apache Kafka, started from its jars."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.compat.apache import jars
from tests.compat.apache.tools import java_command
from tests.compat.node import Node

# What bin/kafka-server-start.sh of the distribution gives the JVM.
SHIPPED_JVM = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# Tests want a quick start and little memory; they measure nothing.
QUICK_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def new_cluster_id() -> str:
    """A cluster id as Kafka makes them: 22 characters of base64url, never with a leading dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class ApacheKafka(Node):
    """Apache Kafka as its distribution starts it, or with a JVM tuned for a quick start."""

    def __init__(
        self,
        home: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = QUICK_JVM,
    ) -> None:
        super().__init__(home, port=port, controller_port=controller_port, properties=properties)
        self._jvm = tuple(jvm)

    def command(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
        return ["java", *self._jvm, logging, "-cp", jars.broker_class_path(), "kafka.Kafka", str(self.config)]

    def format_command(self) -> list[str]:
        return java_command("kafka-storage", "format", "--standalone", "-t", new_cluster_id(), "-c", str(self.config))
