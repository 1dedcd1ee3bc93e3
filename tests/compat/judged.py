"""The node under judgement, run through its public command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.compat.node import Node

# The script that pip put beside the interpreter.
PENSTOCK = str(Path(sys.executable).with_name("penstock"))


class Penstock(Node):
    """A Penstock node on Kafka's own server.properties, with its admin port where nobody else has one."""

    def __init__(self, home: Path, *, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(home, properties={"penstock.admin.listener": "127.0.0.1:0", **(properties or {})})

    def command(self) -> list[str]:
        return [PENSTOCK, "server", "start", "--config", str(self.config)]

    def format_command(self) -> list[str]:
        return [PENSTOCK, "server", "format", "--config", str(self.config)]
