"""A whole agent that was away while its logs were rotated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from penstock.testing import EmbeddedBroker
from tests.patience import until
from tests.walks.agent.scene import lines, running, settings_of, values_of

INPUTS = """
[inputs.live]
type = "tail"
paths = "logs/app.log"
topic = "live"
discover = "20ms"
rotate_wait = "100ms"
[inputs.daily]
type = "tail"
paths = "logs/app-2*.log"
topic = "daily"
discover = "20ms"
"""


async def test_lines_of_rotated_files_come_once_and_to_the_input_whose_they_are(
    tmp_path: Path, node: EmbeddedBroker
) -> None:
    log = tmp_path / "logs" / "app.log"
    log.parent.mkdir()
    log.write_bytes(b"".join(line + b"\n" for line in lines(0, 100)))
    settings = settings_of(tmp_path, node.bootstrap_servers, INPUTS)
    async with running(settings) as agent:
        await until(lambda: agent.status().inputs["live"].events_out == 100)
    for begin in (100, 200, 300):
        log.rename(log.with_name(f"app.log.{begin}"))
        log.write_bytes(b"".join(line + b"\n" for line in lines(begin, 100)))
    log.with_name("app-20261117.log").write_bytes(b"".join(line + b"\n" for line in lines(900, 100)))
    async with running(settings) as agent:
        await until(lambda: agent.status().inputs["live"].events_out == 300)
        await until(lambda: agent.status().inputs["daily"].events_out == 100)
        assert agent.status().inputs["live"].status.missed == 0
    assert Counter(await values_of(node.bootstrap_servers, "live", 400)) == Counter(lines(0, 400))
    assert await values_of(node.bootstrap_servers, "daily", 100) == lines(900, 100)
