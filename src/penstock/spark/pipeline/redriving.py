"""Dead letters of a source back to their topic, for whoever has a flow: a command, or a page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

from penstock.declared.mistakes import did_you_mean
from penstock.spark.errors import BadOption
from penstock.spark.pipeline.flow import Flow, Source
from penstock.spark.pipeline.wiring import source_options
from penstock.spark.redrive.driving import RATE_PER_S, Job, Redriven, nothing
from penstock.spark.redrive.driving import redrive as driven
from penstock.spark.source.options import SourceOptions
from penstock.spark.source.topics import searcher
from penstock.spark.values.dead_letters import DeadLetters


def redrive(
    flow: Flow,
    source: str,
    *,
    into: str | None = None,
    limit: int | None = None,
    rate_per_s: float = RATE_PER_S,
    dry_run: bool = False,
    watch: Callable[[Redriven], None] = nothing,
    stop: Event | None = None,
) -> Redriven:
    """Sends the letters of a source that were not sent yet, each once, to the topic they came from or `into` another.

    Blocks until all that was there is sent, `limit` letters are, or `stop` is set, and gives what was done; `watch` is
    told after each transaction. A run that is killed is gone on with by the next one. With `dry_run` it only counts.
    The pipeline may be running. Call it where no event loop runs.
    """
    stopping = Event() if stop is None else stop
    job = _job(flow, source, into, limit, rate_per_s, dry_run)
    return asyncio.run(driven(job, watch, stopping.is_set))


def _job(flow: Flow, name: str, into: str | None, limit: int | None, rate_per_s: float, dry_run: bool) -> Job:
    source = next((each for each in flow.sources if each.name == name), None)
    if source is None:
        raise BadOption(f"{flow.name} has no source {name!r}{did_you_mean(name, [each.name for each in flow.sources])}")
    if source.table is not None:
        raise BadOption(f"source {name} is a table, and its rows are no records that could be sent again")
    if limit is not None and limit < 1:
        raise BadOption(f"limit {limit} is no number of letters")
    if rate_per_s <= 0:
        raise BadOption(f"a rate of {rate_per_s:g} letters a second sends none")
    options = SourceOptions.of(source_options(flow, source), streaming=True)
    return Job(
        source=name,
        letters=DeadLetters.of(options.dead_letters, options.client_settings, options.letter_storage),
        settings=options.client_settings,
        wanted=_wanted(source, options),
        origins=options.topics.topics,
        storage=options.letter_storage,
        into=into,
        limit=limit,
        rate_per_s=rate_per_s,
        dry_run=dry_run,
        rows_are_values=source.format == "json" and not source.cdc,
    )


def _wanted(source: Source, options: SourceOptions) -> Callable[[str], bool]:
    """Several sources may have their letters in one place."""
    return searcher(options.topics.pattern) if source.pattern is not None else set(options.topics.topics).__contains__
