"""`python -m bench.headline` (make bench): measures, writes JSON and page, compares. See the package for the parts."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bench import brokers, earlier, machine
from bench.brokers import APACHE, EARLIER, PENSTOCK_NODE, TITLES, Running
from bench.headline import cluster, compare, curves, disk, latency, page, record, start, tools
from bench.headline.produce import Production
from bench.headline.progress import Progress
from bench.headline.settings import PARTS, QUICK, QUICK_SECONDS, SECONDS, Settings
from bench.headline.stage import Stage
from bench.places import DOCS, ROOT
from penstock.bench import report
from penstock.bench.series import Results
from tests.compat.apache import jars

LOOKS_MAX = 4
"""How often a figure is measured that seems to be slower."""
TOGETHER = ("produce", "tools", "latency", "curves", "disk")


def measure(stage: Stage, parts: Sequence[str]) -> list[str]:
    """The parts that share running brokers first, then those that start their own. Returns the parts that failed."""
    own = {
        "cluster": lambda: cluster.measure(stage, with_tools=jars.available()),
        "start": lambda: start.measure(stage),
        "partitions": lambda: start.measure_partitions(stage),
    }
    failed: list[str] = []
    shared = [part for part in parts if part in TOGETHER]
    if shared:
        stage.progress.enter("warm-up")
        with (
            _survived(stage, "brokers side by side", failed),
            brokers.running(stage.names, stage.properties) as started,
        ):
            _together(stage, shared, started, failed)
    for part in own:
        if part in parts:
            stage.progress.enter(part)
            with _survived(stage, part, failed):
                own[part]()
    return failed


def _together(stage: Stage, parts: Sequence[str], started: Sequence[Running], failed: list[str]) -> None:
    stage.started = started
    production = Production(stage, started)
    production.prepare()
    production.warm_up()
    measures: dict[str, Callable[[], None]] = {
        "produce": production.measure,
        "tools": lambda: tools.measure(stage, started),
        "latency": lambda: latency.measure(stage, started),
        "curves": lambda: curves.measure(stage, started),
        "disk": lambda: disk.measure(stage, started),
    }
    for part in parts:
        stage.progress.enter(part)
        with _survived(stage, part, failed):
            measures[part]()


@contextmanager
def _survived(stage: Stage, part: str, failed: list[str]) -> Iterator[None]:
    """A part that breaks costs its own figures, not those of the minutes before it."""
    try:
        yield
    except Exception as broken:
        traceback.print_exc()
        failed.append(part)
        stage.remarks.append(f"The part “{part}” failed: {broken}")
    stage.measured(part)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.headline", description="The headline benchmark.")
    parser.add_argument("--quick", action="store_true", help="two minutes to see that it works; nothing is published")
    parser.add_argument("--only", default=",".join(PARTS), help="some parts of " + ", ".join(PARTS) + "; not published")
    parser.add_argument("--brokers", help="which of apache, penstock, null (default: all that are there)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds of everything (default 3)")
    parser.add_argument("--warmup-s", type=float, help="load before the first figure of Kafka (default 60)")
    parser.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE", type=_assignment,
        help="set for both brokers (parts produce to disk); not published",
    )  # fmt: skip
    parser.add_argument("--kafka-partitions", action="store_true", help="10,000 partitions on Kafka too (90 s more)")
    parser.add_argument("--compare", action="store_true", help="exit 1 if a ratio to Kafka fell by 15 %%, beyond doubt")
    parser.add_argument(
        "--against", metavar="REVISION",
        help="measure that revision of this repository beside today's code, and no Kafka; not published",
    )  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="with --compare: this run replaces the last one")
    parser.add_argument("--render", action="store_true", help="write the page anew from the last JSON; measure nothing")
    return parser.parse_args(argv)


def _assignment(text: str) -> str:
    if not all(text.partition("=")) or " " in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return text


def settings_of(given: argparse.Namespace) -> Settings:
    chosen = replace(QUICK if given.quick else Settings(), kafka_partitions=given.kafka_partitions)
    if given.property:
        chosen = replace(chosen, properties=" ".join(given.property))
    if given.rounds is not None:
        chosen = replace(chosen, rounds=given.rounds, tool_rounds=given.rounds, latency_rounds=given.rounds)
    if given.warmup_s is not None:
        chosen = replace(chosen, warmup_s=given.warmup_s, cluster_warmup_s=given.warmup_s)
    return chosen


def parts_of(given: argparse.Namespace) -> list[str]:
    chosen = given.only.split(",")
    unknown = set(chosen) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return [part for part in PARTS if part in chosen and (part != "tools" or jars.available())]


def publish(data: dict[str, Any]) -> None:
    """The page, its plots and its JSON in docs/benchmarks."""
    for name, text in page.files(record.from_json(data), page.reasons()).items():
        (DOCS / name).write_text(text)
    record.write(record.PUBLISHED, data)
    print(f"written: {(DOCS / 'README.md').relative_to(ROOT)} with its plots and {record.PUBLISHED.relative_to(ROOT)}")


def summary(recorded: record.Recorded) -> str:
    """The targets for a terminal."""
    rows = [(each.word.strip("*"), each.target.figure, each.shown, each.needed) for each in recorded.verdicts]
    width = max(len(row[1]) for row in rows)
    return "\n".join(f"{met:12}  {figure:{width}}  {shown:>18}  {needed}" for met, figure, shown, needed in rows)


def main(argv: Sequence[str] | None = None) -> int:
    given = arguments(argv)
    before_at = record.last()
    if given.render or given.compare:
        if before_at is None:
            raise SystemExit("there is no run to go by yet; run `make bench` first")
        before = record.read(before_at)
        if given.render:
            publish(before)
            return 0
        if given.against is None and not compare.same_processor(before, machine.describe([])):
            given.against = before.get("revision") or earlier.revision_of(record.PUBLISHED)
            print(
                f"The last run was made on another kind of processor: its code ({given.against[:7]}) is measured anew."
            )
    if given.against is not None:
        given.against = earlier.resolved(given.against)
        earlier.prepare(given.against)
    data, failed = run(given)
    recorded = record.from_json(data)
    shortened = (
        given.quick
        or given.against
        or given.brokers
        or given.property
        or given.rounds is not None
        or given.warmup_s is not None
    )
    whole = given.only == ",".join(PARTS) and not shortened
    kept = whole and not failed and (given.keep or not given.compare)
    path = record.LAST if kept else record.ASIDE
    record.write(path, data)
    print(report.terminal(recorded.results, TITLES))
    print("\nTARGETS (figure, needed)\n" + summary(recorded))
    if not whole:
        print("\nThis was a part or a short look: Kafka may not be warm, and nothing is published.")
    print(f"\nwritten: {path.relative_to(ROOT)}; took {data['took_s']} s")
    if kept:
        publish(data)
    if failed:
        print(f"failed: {', '.join(failed)}; nothing is published", file=sys.stderr)
    if given.against is not None:
        title = f"revision {given.against[:7]} in the same run, as ratios above 1 where today's code is ahead"
        slower = told(title, looked_at_again(given, data, compare.beside))
    elif given.compare:
        slower = compared(given, before, data)
    else:
        slower = 0
    return 1 if failed else slower


def looked_at_again(
    given: argparse.Namespace, data: dict[str, Any], changes: Callable[[dict[str, Any]], list[compare.Change]]
) -> list[compare.Change]:
    """What changed, when every figure that seemed slower was measured until it is cleared or chance is ruled out."""
    found = changes(data)
    for look in range(2, LOOKS_MAX + 1):
        doubtful = [change for change in compare.suspected(found) if not (change.proven and change.enough)]
        parts = [part for part in PARTS if any(change.part == part for change in doubtful)]
        if not parts:
            break
        print(f"\nlook {look} of at most {LOOKS_MAX} at {', '.join(parts)}: {len(doubtful)} figures may be slower")
        again, _failed = run(argparse.Namespace(**{**vars(given), "only": ",".join(parts)}))
        data = compare.pooled(data, again)
        found = changes(data)
    return found


def run(given: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Measures; returns the run for the JSON and the parts that failed."""
    names, remarks = brokers.available_brokers()
    if given.brokers:
        names = [name for name in names if name in given.brokers.split(",")]
    if APACHE not in names:
        remarks = remarks or ["Apache Kafka was not measured in this run, so there are no ratios to it."]
    if given.against is not None:
        names, remarks = [EARLIER, PENSTOCK_NODE], [f"Penstock before is revision {given.against[:7]}."]
    parts = parts_of(given)
    paid = [*(["warm-up"] if any(part in TOGETHER for part in parts) else []), *parts]
    progress = Progress(paid, QUICK_SECONDS if given.quick else SECONDS)
    for remark in remarks:
        progress.say(remark)
    brokers.allow_many_files()
    rival = APACHE if given.against is None else EARLIER
    stage = Stage(names, settings_of(given), Results(ours=PENSTOCK_NODE, rival=rival), progress, remarks=remarks)
    try:
        failed = measure(stage, parts)
    finally:
        progress.close()
    if stage.calm.samples:
        stage.remarks.append(stage.calm.words())
    data = record.as_json(
        stage,
        machine=machine.describe(names),
        command="make bench",
        revision=earlier.current(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        took_s=progress.elapsed_s(),
    )
    return data, failed


def compared(given: argparse.Namespace, before: dict[str, Any], now: dict[str, Any]) -> int:
    """Prints what is not the same as in the run before, and returns the exit code."""
    for difference in compare.differences(before, now):
        print(f"not the same: {difference}")
    title = f"the run of {before['date']}, as ratios above 1 where Penstock is ahead"
    return told(title, looked_at_again(given, now, lambda data: compare.changes(before, data)))


def told(title: str, found: Sequence[compare.Change]) -> int:
    """Prints what changed and returns the exit code."""
    print(f"\nCOMPARED with {title}\n")
    print(compare.table(found))
    worse, doubtful = compare.slower(found), [change for change in compare.suspected(found) if not change.proven]
    print(f"\n{len(worse)} of {len(found)} figures slower by more than {compare.TOLERANCE:.0%}, chance ruled out")
    for change in worse:
        print(f"  {change.figure}: {change.before:.2f}× before, {change.now:.2f}× now")
    if doubtful:
        print(f"{len(doubtful)} more (?) look slower, no more often than chance makes them")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
