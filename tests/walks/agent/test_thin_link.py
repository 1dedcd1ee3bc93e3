"""A link that carries less in the timeout of a transaction than an agent would put into one: it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.agent.settings import read_agent
from penstock.testing import broker
from tests.faults.agent.tailing import append, numbered
from tests.patience import until
from tests.unit.client.producer.scene import CuttingProxy, cutting_proxy
from tests.walks.agent.scene import committed_values, running

TIMEOUT_MS = 2_000
LINK_BYTES_A_SECOND = 400_000
SLICE_S = 0.02
SWEEPS_OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}

AGENT_FILE = """
name = "thin"
bootstrap = "{bootstrap}"
state_dir = "state"
admin = "off"
exactly_once = true
machine_id = "this-one"
[output]
linger = "1ms"
compression = "none"
[inputs.app]
type = "tail"
paths = ["{paths}"]
topic = "thin"
read_bytes = 65536
"""


class ThinLink(CuttingProxy):
    """So many bytes a second to the broker, of all connections together. What was sent stays on its way."""

    def __init__(self) -> None:
        super().__init__(1)
        self._turn = asyncio.Lock()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: list[int]) -> None:
        towards_broker = writer.get_extra_info("peername") == self.target
        while data := await reader.read(int(LINK_BYTES_A_SECOND * SLICE_S)):
            if towards_broker:
                async with self._turn:
                    await asyncio.sleep(len(data) / LINK_BYTES_A_SECOND)  # the pace of the link
            writer.write(data)
            await writer.drain()
        raise EOFError


@pytest.mark.timeout(180)
async def test_a_backlog_comes_through_a_thin_link_and_each_line_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("penstock.agent.exactly.transactions", "penstock.agent.agent"):
        monkeypatch.setattr(f"{place}.TIMEOUT_MS", TIMEOUT_MS)
    log = tmp_path / "app.log"
    lines = [line + b" " + b"x" * 240 for line in numbered("line", 0, 6_000)]
    append(log, lines)
    async with cutting_proxy(ThinLink()) as link:
        with broker({"num.partitions": 1, **SWEEPS_OFTEN, **link.settings}) as node:
            file = tmp_path / "thin.toml"
            file.write_text(AGENT_FILE.format(bootstrap=node.bootstrap_servers, paths=log))
            async with running(read_agent(file)) as agent:
                transactions = agent.transactions
                assert transactions is not None
                await until(lambda: agent.status().inputs["app"].events_out == len(lines), timeout_s=60)
                assert transactions.commits > 3
            assert await committed_values(node.bootstrap_servers, "thin", len(lines)) == lines
