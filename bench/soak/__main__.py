"""`python -m bench.soak --minutes 30` (make bench SUITE=soak MINUTES=30): a long run, judged; exit 1 when it fails.

Takes about four minutes more than what is asked for: a start, the search for the most, a warm-up, and reading to the
end. The page in docs/benchmarks is written by runs of ten minutes and more.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence

from bench import places
from bench.soak import page, ramp, verdict
from bench.soak.look import Look
from bench.soak.looking import Observer
from bench.soak.mix import GROUPS, total_records_per_s
from bench.soak.stage import QUERY, Stage, staged

SHARE = 0.7
READY_S, READY_S_MOST, READY_BATCHES = 20.0, 120.0, 4
"""At a low rate until the query is at its pace, so that the JVM has compiled what it will use."""
WARM_S_MOST = 120.0
PUBLISHED_FROM_MINUTES = 10.0
LOOK_S = 1.0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long it counts (default 30)")
    parser.add_argument("--megabytes-per-s", type=float, help="the most, when it is known already")
    parser.add_argument("--share", type=float, default=SHARE, help=f"of the most (default {SHARE})")
    parser.add_argument("--page", action="store_true", help="write the page after a short run too")
    return parser.parse_args(argv)


class Progress:
    """Sentences, and on a terminal a line that is written over again and again."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._live = sys.stdout.isatty()

    def say(self, text: str) -> None:
        wipe = "\r\x1b[K" if self._live else ""
        print(f"{wipe}[{time.monotonic() - self._began:5.0f} s] {text}", flush=True)

    def look(self, left_s: float, before: Look, look: Look) -> None:
        if not self._live:
            return
        seconds = look.at_s - before.at_s
        print(
            f"\r\x1b[K{left_s:5.0f} s left  {(look.written - before.written) / seconds:9,.0f} records/s in"
            f"  {(look.read - before.read) / seconds:9,.0f} out  node {look.node_rss_mb:4.0f} MB"
            f" {(look.node_cpu_s - before.node_cpu_s) / seconds:4.2f} cores"
            f"  behind {max(look.group_lags.values()):,}, query {look.query_lag:,}  errors {look.errors}",
            end="",
            flush=True,
        )


def watch(stage: Stage, observer: Observer, seconds: float, progress: Progress) -> list[Look]:
    """A look a second for so long, or until somebody is gone."""
    looks = [observer.look()]
    until = looks[0].at_s + seconds
    while looks[-1].at_s < until:
        time.sleep(max(0.0, looks[0].at_s + len(looks) * LOOK_S - time.monotonic()))
        looks.append(observer.look())
        progress.look(until - looks[-1].at_s, looks[-2], looks[-1])
        if troubles := stage.troubles():
            for words in troubles:
                progress.say(words)
            break
    return looks


def warm_up(stage: Stage, observer: Observer, progress: Progress) -> None:
    until = time.monotonic() + READY_S_MOST
    watch(stage, observer, READY_S, progress)
    while stage.parties[QUERY].report["batch"] < READY_BATCHES and time.monotonic() < until:
        watch(stage, observer, LOOK_S, progress)


def soak(given: argparse.Namespace, progress: Progress) -> page.Found:
    say = progress.say
    seconds = given.minutes * 60
    warm_s = min(WARM_S_MOST, seconds / 4)
    say("starting a node, writers, groups, a probe and Spark")
    with staged() as stage:
        observer = Observer(stage)
        say("everybody is there; warming up")
        stage.load(ramp.FIRST_BYTES_PER_S / 2)
        warm_up(stage, observer, progress)
        steps: list[ramp.Step] = []
        most = (given.megabytes_per_s or 0) * 1e6
        if not most:
            most, steps = ramp.measure(stage, observer, say)
        rate = most * given.share
        say(f"the most is {most / 1e6:.1f} MB/s; {given.minutes:g} minutes at {rate / 1e6:.1f} MB/s,"
            f" {total_records_per_s(rate):,.0f} records/s, after {warm_s:.0f} s")  # fmt: skip
        stage.load(rate)
        looks = watch(stage, observer, warm_s + seconds, progress)
        say("reading to the end")
        deleted = looks[-1].segments_deleted
        stage.finish()
        return judged(given.minutes, warm_s, most, rate, steps, looks, stage, deleted)


def judged(
    minutes: float,
    warm_s: float,
    most: float,
    rate: float,
    steps: Sequence[ramp.Step],
    looks: Sequence[Look],
    stage: Stage,
    deleted: float,
) -> page.Found:
    began_s, ended_s = looks[0].at_s, looks[-1].at_s
    windows = verdict.windows(looks, stage.latencies_ms, began_s)
    measured = [window for window in windows if window.at_s - verdict.WINDOW_S >= warm_s - 1]
    blocks = verdict.blocks(stage.latencies_ms, began_s + warm_s, ended_s)
    errors = stage.errors()
    reports = [party.report for party in stage.parties.values()]
    breaks = sum(report.get("breaks", 0) for report in reports)
    query = stage.parties[QUERY].report
    return page.Found(
        minutes=minutes,
        warm_s=warm_s,
        bytes_per_s_most=most,
        bytes_per_s=rate,
        steps=steps,
        windows=windows,
        blocks_p99_ms=blocks,
        verdicts=verdict.verdicts(measured, blocks, errors, breaks),
        errors=errors,
        totals=stage.totals(),
        counts={
            **{
                f"read again after rebalances by `{group.name}`": stage.parties[f"group {group.name}"].report["again"]
                for group in GROUPS
            },
            "members that came and went": sum(report.get("visits", 0) for report in reports),
            "batches of the query": query.get("batch", -1) + 1,
            "files of the table at the end": query.get("files", 0),
            "segments deleted by retention": deleted,
        },
    )


def report(found: page.Found, say: Callable[[str], None]) -> None:
    print()
    for each in found.verdicts:
        print(f"{'held  ' if each.passed else 'FAILED'}  {each.claim}: {each.found}")
    print("\n".join(page.figures(found)))
    for words in found.errors[:20]:
        say(words)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    progress = Progress()
    # Asked to end it stops what it started, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = soak(given, progress)
    report(found, progress.say)
    written = page.write(found, publish=given.page or given.minutes >= PUBLISHED_FROM_MINUTES)
    progress.say("written: " + ", ".join(str(path.relative_to(places.ROOT)) for path in written))
    if not found.passed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
