"""The page docs/benchmarks/txn.md: what was measured, the targets, and a plot of the commit rates."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from bench import brokers, machine
from bench.brokers import APACHE, PENSTOCK_NODE
from bench.txn import commits
from bench.txn.stage import Stage
from penstock.bench import report
from penstock.bench.plot import line_chart
from penstock.bench.series import Results, Series

RATE_WANTED, P99_WANTED = 1.5, 1 / 0.7
"""As ratios above 1 where Penstock is ahead: half as many transactions again, and 0.7 of the time."""
PLOTS = {"one node": "txn-one.svg", "three nodes": "txn-three.svg"}

INTRODUCTION = (
    "All figures are of one run. A ratio above 1 means that Penstock is ahead, whatever the figure.",
    "",
    "- **What is fsynced.** Nothing waits for a disk. As with Kafka's defaults, records, markers and the coordinator's",
    "  state are acknowledged when they are in the page cache of the leader (one node) or of all replicas in sync",
    "  (three nodes, three replicas of everything, acks=all). [Durability](durability.md) has what syncing costs.",
    "- **The load** is the same bytes for both brokers: the protocol of today's Java client (Produce 12, whose first",
    "  batch takes its partition into the transaction, and EndTxn 5), requests encoded once and patched, one thread, a",
    "  socket from each producer to each broker. It is a closed loop: every producer has one transaction under way, of",
    "  one record of 100 B in each of its partitions, and begins the next when EndTxn is answered. What a broker tells",
    "  to come again comes again after 20 ms.",
    "- *A commit* lasts from EndTxn until its answer, *a whole transaction* from its first produce until then. Markers",
    "  follow that answer, so a producer that goes on at once may meet its own last transaction still ending. Apache",
    "  Kafka then waits for `add.partitions.to.txn.retry.backoff.ms` (20 ms) before it looks again; Penstock begins",
    "  with 1 ms. It happens the more often the longer markers take.",
    "- Reading is librdkafka's, from the first record of a partition to its last; bytes are those of the log.",
    "- Rounds go from broker to broker in each cell. The brokers that are not measured are idle.",
)


def _bound(stage: Stage) -> str:
    return (
        f"The load shares the two cores with the brokers and took at most {stage.load_cores_max:.0%} of one of them "
        "in any sample. A Penstock node serves clients on one core, Kafka on as many as it gets: with 64 producers "
        "both are bound by the processor."
    )


def _others(stage: Stage) -> list[str]:
    """Rates mean little on a machine that has other work: a broker of many threads gets more of it then."""
    if not stage.others:
        return []
    middle, most = statistics.median(stage.others), max(stage.others)
    return [
        f"Others than the load and the broker under it had {middle:.0%} of the processors' time in the median sample "
        f"and {most:.0%} at most. Where that is much, processor time a transaction can be compared, and rates cannot."
    ]


def of(stage: Stage, command: str, remarks: Sequence[str]) -> report.Page:
    words = [
        *targets(stage.results),
        "",
        *(f"![{place}]({file})\n" for place, file in PLOTS.items() if _has(stage, place)),
    ]
    return report.Page(
        suite="txn",
        title="Transactions beside Apache Kafka",
        command=command,
        introduction=[*INTRODUCTION, "", *words],
        machine=machine.describe(list(stage.names)),
        parameters={name.replace("_", " "): value for name, value in asdict(stage.settings).items()},
        remarks=[*remarks, _bound(stage), *_others(stage), stage.calm.words()],
        titles=brokers.TITLES,
    )


def _has(stage: Stage, where: str) -> bool:
    return commits.group(where, commits.RATE) in stage.results.groups()


def plots(stage: Stage) -> dict[str, str]:
    """Commit rates by producers, a line for each broker and number of partitions, by file name."""
    return {file: _chart(stage.results, where) for where, file in PLOTS.items() if _has(stage, where)}


def _chart(results: Results, where: str) -> str:
    found = results.groups()[commits.group(where, commits.RATE)]
    lines: dict[str, list[tuple[float, float]]] = {}
    for broker in (PENSTOCK_NODE, APACHE):
        for series in found:
            partitions, _, producers = series.name.partition(", ")
            middle = series.median(broker)
            if middle:
                line = f"{brokers.TITLES[broker]}, {partitions}"
                lines.setdefault(line, []).append((float(producers.split()[0]), middle))
    return line_chart(
        f"Transactions a second, {where}",
        lines,
        x_label="producers",
        y_label="transactions/s",
        log_x=True,
        log_y=True,
    )


def targets(results: Results) -> list[str]:
    """Which of the cells hold what was aimed at."""
    lines = ["| target | met | cells below it |", "|---|--:|---|"]
    groups = results.groups()
    for where in PLOTS:
        for what, wanted, words in (
            (commits.RATE, RATE_WANTED, f"at least {RATE_WANTED}× Kafka's transactions a second"),
            (commits.COMMIT, P99_WANTED, "p99 of a commit at most 0.7× Kafka's"),
        ):
            found = groups.get(commits.group(where, what), [])
            if any(each.ratio() is not None for each in found):
                lines.append(_verdict(f"{where}: {words}", found, wanted))
    return lines if len(lines) > 2 else []


def _verdict(words: str, found: Sequence[Series], wanted: float) -> str:
    ratios: Mapping[str, float] = {each.name: ratio for each in found if (ratio := each.ratio()) is not None}
    below = [f"{name} ({ratio:.2f}×)" for name, ratio in ratios.items() if ratio < wanted]
    return f"| {words} | {len(ratios) - len(below)} of {len(ratios)} | {'; '.join(below) or 'none'} |"
