"""`python -m bench.txn` (make bench SUITE=txn): transactions beside Apache Kafka, under twenty minutes.

Parts: `one` and `three`, commits on one node and on three; `gigabyte` and `reading`, on one node; `idle`, a hundred
thousand transactional ids. `--parts` runs some of them and writes no page; `--quick` is a look at whether they work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench import brokers, places
from bench.brokers import APACHE, NULL, PENSTOCK_NODE
from bench.txn import commits, gigabyte, idle, page, reading
from bench.txn.stage import Settings, Stage, one_node, three_nodes
from penstock.bench import report
from penstock.bench.series import Results

PARTS = ("one", "gigabyte", "reading", "three", "idle")
ON_ONE = ("one", "gigabyte", "reading")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.txn", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short rounds; figures only to see that it works")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 3)")
    parser.add_argument("--brokers", help="which of apache, penstock (default: all that are there)")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    names, remarks = brokers.available_brokers()
    # The null broker knows no transactions.
    names = [name for name in names if name != NULL and (not given.brokers or name in given.brokers.split(","))]
    settings = Settings().quick() if given.quick else Settings()
    if given.rounds:
        settings = replace(settings, rounds=given.rounds)
    brokers.allow_many_files()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    stage = Stage(names, settings, Results(ours=PENSTOCK_NODE, rival=APACHE), say)
    measure(stage, parts)
    print(report.terminal(stage.results, brokers.TITLES))
    print("\n".join(["", *page.targets(stage.results)]))
    print(f"took {time.monotonic() - began:.0f} s")
    whole = set(parts) == set(PARTS) and not given.quick and not given.brokers
    written = write(stage, remarks, publish=whole and not given.no_page)
    print("written: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))


def measure(stage: Stage, parts: Sequence[str]) -> None:
    if any(part in parts for part in ON_ONE):
        with ExitStack() as stack:
            subjects = one_node(stack, stage.names)
            if "one" in parts:
                commits.measure(stage, subjects, "one node")
            if "gigabyte" in parts:
                gigabyte.measure(stage, subjects)
            if "reading" in parts:
                reading.measure(stage, subjects)
    if "three" in parts:
        with ExitStack() as stack:
            commits.measure(stage, three_nodes(stack, stage.names), "three nodes")
    if "idle" in parts:
        idle.measure(stage)


def write(stage: Stage, remarks: Sequence[str], *, publish: bool) -> list[Path]:
    written = places.write(page.of(stage, "make bench SUITE=txn", remarks), stage.results, publish=publish)
    if publish:
        for file, text in page.plots(stage).items():
            path = places.DOCS / file
            path.write_text(text)
            written.append(path)
    return written


if __name__ == "__main__":
    main()
