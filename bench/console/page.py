"""The page docs/benchmarks/console.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import machine, places
from bench.console.found import Figure

PAGE = places.DOCS / "console.md"
COMMAND = "make bench SUITE=console KEEP=1"
WORDS = {
    "world": """\
## Beside a very large cluster

200 brokers, 10,000 topics with 40,000 partitions and three replicas each, 2,000 groups of which one reads 5,000 topics.
A process answers for all of them (`tests/console/large`), so the console, its client and its connections are real, and
the brokers are not. Nobody has to log in. Every log grows all the time; no partition moves meanwhile: a topic that
changes is decoded anew, one that does not costs next to nothing.""",
    "node": """\
## Beside a real node

One Penstock node with 2,500 topics of 4 partitions and 200 groups, on Kafka's `server.properties` for a single node. It
leads fifty times as many partitions as each of the 200 above, and answers twenty times as many groups.""",
}
INTRODUCTION = """\
# What the console costs

Processor time is the kernel's count for the process or thread, so other work on the machine is in it only as far as it
makes caches cold. Times of pages are medians of nine, by the wall clock, and suffer from whatever else runs. The
sampler's thread is bounded by its schedule: a part that costs more is looked at less often, so a slower or busier
machine has older figures and not more load; how old they were stands in the table. The loop's holds are those of a
beat of a millisecond, as far as the process worked while the beat was late.
"""


def text(parts: Mapping[str, Sequence[Figure]], remarks: Sequence[str]) -> str:
    facts = [f"- {name}: {value}" for name, value in machine.describe(["penstock"]).items()]
    lines = [INTRODUCTION, f"Made by `{COMMAND}` on this machine:", "", *facts, ""]
    lines += [line for remark in remarks for line in (f"> {remark}", "")]
    for name, figures in parts.items():
        lines += [WORDS[name], "", "| figure | found | wanted | met? |", "|---|--:|--:|---|"]
        lines += [f"| {each.name} | {each.value} | {each.wanted or '–'} | {_met(each)} |" for each in figures]
        lines.append("")
    return "\n".join(lines)


def _met(figure: Figure) -> str:
    return {None: "", True: "yes", False: "**no**"}[figure.met]


def keep(parts: Mapping[str, Sequence[Figure]], remarks: Sequence[str]) -> Path:
    PAGE.write_text(text(parts, remarks))
    return PAGE
