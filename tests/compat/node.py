"""A broker process on a data directory: started, waited for, stopped or killed, and started again.

`ApacheKafka` and `Penstock` differ in the commands alone, so every test can take either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.compat.processes import Child, free_ports, wait_for
from tests.compat.wire import all_led, answers_metadata


def single_node_properties(port: int, controller_port: int, log_dirs: str) -> dict[str, str]:
    """The server.properties of Kafka's distribution for a single node, on the loopback and with these ports.

    Its two lines for socket buffers are left out: they repeat Kafka's defaults, and Penstock has others.
    """
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


class Node(ABC):
    """One combined broker and controller in `home`.

    `home/data` is its log directory; `home/server.properties` and `home/server.log` lie beside it. A data directory
    that is there already is opened as it is; otherwise it is formatted.
    """

    def __init__(
        self,
        home: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        free = free_ports(2)
        self.port = port or free[0]
        self.controller_port = controller_port or free[1]
        self.home = home
        self.data_dir = home / "data"
        self.properties = single_node_properties(self.port, self.controller_port, str(self.data_dir))
        self.properties.update(properties or {})
        self.config = home / "server.properties"
        self._child: Child | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs the node in the foreground."""

    @abstractmethod
    def format_command(self) -> list[str]:
        """The command that formats the data directory."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._child is not None, "the node has not been started"
        return self._child.pid

    def format(self) -> None:
        """Formats the data directory unless it is formatted, and writes the properties."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.config.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.data_dir / "meta.properties").exists():
            formatting = Child(self.format_command(), self.home / "format.log")
            exit_code = formatting.wait(timeout_s=60)
            assert exit_code == 0, f"formatting failed:\n{formatting.tail()}"

    def launch(self) -> None:
        """Starts the process and returns at once."""
        assert self._child is None, "the node runs already"
        self._child = Child(self.command(), self.home / "server.log")

    def wait_until_serving(self, timeout_s: float = 90) -> None:
        child = self._child
        assert child is not None, "the node has not been started"

        def probe() -> bool:
            assert child.running(), f"{type(self).__name__} ended while starting:\n{child.tail()}"
            return answers_metadata("127.0.0.1", self.port)

        wait_for(f"{type(self).__name__} on port {self.port}", probe, timeout_s=timeout_s)

    def start(self) -> Self:
        """Formats if need be, starts, and waits until every partition of the data directory is led."""
        self.format()
        self.launch()
        try:
            self.wait_until_serving()
            wait_for("leaders of all partitions", lambda: all_led(self.bootstrap), timeout_s=60)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> int | None:
        """A clean shutdown. Returns the exit code, or None when the node was not running."""
        child, self._child = self._child, None
        return None if child is None else child.stop()

    def kill(self) -> None:
        """kill -9."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def log_text(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
