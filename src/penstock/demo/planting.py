"""Faults that are planted on purpose, to see that the checks find them. Each is real: data is damaged, not a report.

lost       a line is counted and never written, as if it had been lost before anybody saw it (the writer does it)
doubled    a line is sent to its topic once more, as an agent without memory would
gap        a row is deleted from the table, as if a batch had skipped it
"""

from __future__ import annotations

import asyncio

from penstock.demo.plan import TABLE, TOPIC
from penstock.demo.stage import Stage


async def plant(stage: Stage, *, drained: bool) -> None:
    """Called twice: when all lines are in the topic, and when all of it is in the table."""
    match stage.plan.plant:
        case "doubled" if not drained:
            await _send_again(stage)
        case "gap" if drained:
            await asyncio.to_thread(_delete_row, stage)


async def _send_again(stage: Stage) -> None:
    """A whole line that can be decoded: the first of the current file."""
    from penstock.client.producer import Producer

    newest = next(path for path in (stage.folder / "web").glob("access.log*") if path.suffix != ".gz")
    with newest.open("rb") as log:
        line = next(each.rstrip(b"\n") for each in log if b' HTTP/1.1" 200 ' in each and each[:1].isdigit())
    async with Producer(**stage.reach) as producer:
        await producer.send(TOPIC, line, partition=0)


def _delete_row(stage: Stage) -> None:
    from deltalake import DeltaTable

    count = stage.count()
    assert count is not None, "all lines are written"
    broken = set(count.broken)
    line = next(number for number in range(count.lines // 2, count.lines) if number not in broken)
    DeltaTable(str(stage.warehouse / TABLE)).delete(f"line = {line}")
