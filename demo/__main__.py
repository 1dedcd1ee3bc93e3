"""A million keyed records in and out of a node through a foreign client, with a kill -9 in between; all verified.

Exit code 1 when any check fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

from confluent_kafka import KafkaException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo import client
from demo.checks import PLANTS, Tally, Verdict, judge, planted
from demo.node import Node, NodeFailed


class Story:
    """What the demo does, step by step, told while it happens."""

    def __init__(self, console: Console, count: int, fault: str | None) -> None:
        self._console, self._count, self._fault = console, count, fault

    def run(self, node: Node) -> list[Verdict]:
        ready_s = node.start()
        self._step(
            f"a node is ready at [bold]{node.address}[/bold] after {ready_s:.2f} s, with no file and no format step"
        )
        client.create_topic(node.address)
        sent, produce_s = self._produce(node.address)
        self._step(
            f"{self._rate(sent, produce_s)} in: idempotent, acks=all, lz4; the node takes {node.memory_mb():.0f} MB"
        )
        node.kill()
        recover_s = node.start()
        self._step(f"killed with [bold]kill -9[/bold], recovered and ready again after {recover_s:.2f} s")
        read, consume_s = self._consume(node.address)
        self._step(f"{self._rate(read, consume_s)} out, on {os.cpu_count()} cores that client and node share")
        node.stop()
        return judge(sent, read)

    def _produce(self, address: str) -> tuple[Tally, float]:
        sent, began = Tally(), time.monotonic()
        with self._bar() as bar:
            task = bar.add_task("produce", total=self._count)
            client.produce(address, self._count, sent.sent, lambda done: bar.update(task, completed=done))
        return sent, time.monotonic() - began

    def _consume(self, address: str) -> tuple[Tally, float]:
        read, began = Tally(), time.monotonic()
        with self._bar() as bar:
            task = bar.add_task("consume", total=self._count)
            for record in planted(self._fault, client.consume(address), self._count // 2):
                read.read(record)
                if read.count % client.PROGRESS_EVERY == 0:
                    bar.update(task, completed=read.count)
            bar.update(task, completed=read.count)
        return read, time.monotonic() - began

    def _bar(self) -> Progress:
        columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        return Progress(*columns, console=self._console)

    def _step(self, words: str) -> None:
        self._console.print(f"  [green]•[/green] {words}", highlight=False, soft_wrap=True)

    @staticmethod
    def _rate(tally: Tally, seconds: float) -> str:
        return f"[bold]{tally.count / seconds:,.0f}[/bold] records/s"


def report(console: Console, verdicts: list[Verdict]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for verdict in verdicts:
        mark = "[bold green]ok[/bold green]" if verdict.good else "[bold red]FAIL[/bold red]"
        table.add_row(f"  {mark}", verdict.name, verdict.words)
    console.print()
    console.print(table, highlight=False)
    console.print()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--plant", choices=PLANTS, help="break one record on its way out, to see the checks fail")
    options = parser.parse_args(arguments)
    console = Console()
    console.print("\n[bold]Penstock[/bold]: a node, and librdkafka, which takes it for Apache Kafka\n", highlight=False)
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-") as data_dir, Node(data_dir) as node:
            verdicts = Story(console, options.records, options.plant).run(node)
    except (NodeFailed, client.ClientFailed, KafkaException) as failure:
        console.print(f"\n  [bold red]FAIL[/bold red] {failure}\n", highlight=False)
        return 1
    report(console, verdicts)
    if not all(verdict.good for verdict in verdicts):
        return 1
    console.print("  Next: [bold].venv/bin/penstock dev[/bold], and in another terminal", highlight=False)
    console.print("        [bold].venv/bin/penstock topic create clicks -p 6[/bold]\n", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
