"""The node under judgement, run through its public command line."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.compat.node import Node

# The script that pip put beside the interpreter.
PENSTOCK = str(Path(sys.executable).with_name("penstock"))


class Penstock(Node):
    """A Penstock node on Kafka's own server.properties."""

    def command(self) -> list[str]:
        return [PENSTOCK, "server", "start", "--config", str(self.config)]

    def format_command(self) -> list[str]:
        return [PENSTOCK, "server", "format", "--config", str(self.config)]
