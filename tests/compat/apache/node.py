"""One combined broker and controller of Apache Kafka, started from its jars."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.compat.apache import jars
from tests.compat.apache.tools import run_tool
from tests.compat.processes import Child, free_ports, wait_for
from tests.compat.wire import answers_metadata

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


def single_node_properties(port: int, controller_port: int, log_dirs: str) -> dict[str, str]:
    """The server.properties of Kafka's distribution for a single node, on the loopback and with these ports."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "num.network.threads": "3",
        "num.io.threads": "8",
        "socket.send.buffer.bytes": "102400",
        "socket.receive.buffer.bytes": "102400",
        "socket.request.max.bytes": "104857600",
        "log.dirs": log_dirs,
        "num.partitions": "1",
        "num.recovery.threads.per.data.dir": "2",
        "offsets.topic.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.retention.hours": "168",
        "log.segment.bytes": "1073741824",
        "log.retention.check.interval.ms": "300000",
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path


class ApacheKafka:
    """A node in `home`: `home/data` is its log directory, `home/server.properties` and `home/server.log` lie beside it.

    A data directory that is there already is opened as it is; otherwise it is formatted.
    """

    def __init__(
        self,
        home: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = QUICK_JVM,
    ) -> None:
        free = free_ports(2)
        self.port = port or free[0]
        self.controller_port = controller_port or free[1]
        self.home = home
        self.data_dir = home / "data"
        self.properties = single_node_properties(self.port, self.controller_port, str(self.data_dir))
        self.properties.update(properties or {})
        self.config = home / "server.properties"
        self._jvm = tuple(jvm)
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._child is not None, "the node has not been started"
        return self._child.pid

    def format(self) -> None:
        """Formats the data directory as kafka-storage does for a single node, unless it is formatted."""
        write_properties(self.config, self.properties)
        if not (self.data_dir / "meta.properties").exists():
            run_tool("kafka-storage", "format", "--standalone", "-t", new_cluster_id(), "-c", self.config)

    def command(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
        return ["java", *self._jvm, logging, "-cp", jars.broker_class_path(), "kafka.Kafka", str(self.config)]

    def launch(self) -> None:
        """Starts the process and returns at once."""
        assert self._child is None, "the node runs already"
        self._child = Child(self.command(), self.home / "server.log")

    def wait_until_serving(self, timeout_s: float = 90) -> None:
        child = self._child
        assert child is not None, "the node has not been started"

        def probe() -> bool:
            assert child.running(), f"Apache Kafka ended while starting:\n{child.tail()}"
            return answers_metadata("127.0.0.1", self.port)

        wait_for(f"Apache Kafka on port {self.port}", probe, timeout_s=timeout_s)

    def start(self) -> ApacheKafka:
        self.format()
        self.launch()
        try:
            self.wait_until_serving()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """A clean shutdown."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def kill(self) -> None:
        """kill -9."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def log_text(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    def __enter__(self) -> ApacheKafka:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
