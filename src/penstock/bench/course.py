"""The course of a run: warm-up, then rounds that go from contender to contender, and what comes out of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.bench.crew import Crew
from penstock.bench.jobs import Job, Moved
from penstock.bench.latency import quantiles
from penstock.bench.series import Results
from penstock.bench.settings import CLUSTER_RATE_PER_S, END_TO_END_RATE_PER_S, RAW, Settings
from penstock.bench.targets import Place, Target, describe, fsync_words, look, place
from penstock.client.admin import Admin
from penstock.client.settings import AdminSettings
from penstock.model.errors import PenstockError

BARE_SOCKETS = ("raw", "fill")
"""What these actions begin with."""

BUSY_SHARE = 0.9
"""A client that uses more of a core than this may be what sets the pace."""
LATE_SHARE = 1.05


@dataclass(frozen=True)
class Phase:
    """What goes on now, for whoever watches. `seconds` is how long it will take, 0 if nobody knows."""

    words: str
    seconds: float = 0.0


@dataclass
class Outcome:
    """All that a run found out."""

    kind: str
    settings: Settings
    targets: Sequence[Target]
    results: Results
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    """By the title of a target: what it says it is, and how its topic was."""
    thrown_away: dict[str, dict[str, float]] = field(default_factory=dict)
    """By the title of a target: seconds and records of the warm-up, which are in no figure."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many latencies the quantiles of a group were taken from, in all rounds and of all targets."""
    remarks: list[str] = field(default_factory=list)

    def remark(self, words: str) -> None:
        if words not in self.remarks:
            self.remarks.append(words)


class Course:
    """One run. `watch` is told what goes on, `warn` what a user should know at once."""

    def __init__(
        self,
        kind: str,
        targets: Sequence[Target],
        settings: Settings,
        crew: Crew,
        watch: Callable[[Phase], None],
        warn: Callable[[str], None],
    ) -> None:
        rival = targets[1].title if len(targets) > 1 else None
        settings = _settled(kind, settings)
        self.outcome = Outcome(kind, settings, targets, Results(ours=targets[0].title, rival=rival))
        self._kind, self._targets, self._settings = kind, targets, settings
        self._crew, self._watch, self._warn = crew, watch, warn
        self._admins: dict[str, Admin] = {}

    async def run(self) -> Outcome:
        async with AsyncExitStack() as stack:
            for target in self._targets:
                self._watch(Phase(f"asking {target.title}"))
                self._admins[target.title] = await stack.enter_async_context(target.open_admin())
                self.outcome.facts[target.title] = await describe(self._admins[target.title])
            await {
                "produce": self._produce,
                "consume": self._consume,
                "e2e": self._end_to_end,
                "cluster": self._cluster,
                "spark": self._spark,
            }[self._kind](stack)
        return self.outcome

    # --- what is measured ---

    async def _produce(self, _stack: AsyncExitStack) -> None:
        rate = self._settings.rate_per_s
        measure = self._producing(self._kind, self._settings)
        await self._rounds([(f"produce at {rate:,.0f} records/s" if rate else "produce", measure)])

    async def _cluster(self, _stack: AsyncExitStack) -> None:
        brokers = {target.title: int(self.outcome.facts[target.title]["brokers"]) for target in self._targets}
        for title, count in brokers.items():
            if count < 2:
                raise PenstockError(
                    f"{title} has one broker, so nothing is replicated: `penstock bench produce` measures it,"
                    " and `penstock dev --nodes 3` starts three"
                )
        settings = self._settings
        settings = replace(settings, replicas=settings.replicas or min(3, *brokers.values()))
        many, one = replace(settings, rate_per_s=None), replace(settings, rate_per_s=None, partitions=1, clients=1)
        await self._rounds(
            [
                ("produce, connections to all leaders", self._producing("cluster", many)),
                ("produce, one connection, five in flight", self._producing("cluster", one)),
                (f"produce at {settings.rate_per_s:,.0f} records/s", self._producing("cluster", settings)),
            ]
        )

    def _producing(self, kind: str, settings: Settings) -> _Measure:
        action = f"{settings.client} produce" + ("" if settings.rate_per_s is None else " at a rate")

        async def measure(target: Target, seconds: float) -> list[Moved]:
            admin = self._admins[target.title]
            async with place(admin, settings, kind, self._warn) as where:
                await self._note(target, where)
                job = self._job(settings, action, target, where, seconds)
                return await self._crew.run([job] * settings.clients)

        return measure

    async def _consume(self, stack: AsyncExitStack) -> None:
        places = {target.title: await self._filled(stack, target) for target in self._targets}

        async def measure(target: Target, seconds: float) -> list[Moved]:
            where = places[target.title]
            job = self._job(self._settings, f"{self._settings.client} consume", target, where, seconds)
            return await self._crew.run([_share(job, index, self._settings) for index in range(self._settings.clients)])

        await self._rounds([("consume", measure)])

    async def _end_to_end(self, _stack: AsyncExitStack) -> None:
        settings = self._settings

        async def measure(target: Target, seconds: float) -> list[Moved]:
            async with place(self._admins[target.title], settings, "e2e", self._warn) as where:
                await self._note(target, where)
                job = self._job(settings, "own end to end", target, where, seconds)
                return await self._crew.run([_share(job, index, settings) for index in range(settings.clients)])

        await self._rounds([(f"producer to consumer at {settings.rate_per_s:,.0f} records/s", measure)])

    async def _spark(self, stack: AsyncExitStack) -> None:
        places = {target.title: await self._filled(stack, target) for target in self._targets}

        def job(action: str, target: Target) -> Job:
            where = places[target.title]
            return replace(self._job(self._settings, action, target, where, 0.0), rows=where.records)

        async def read(target: Target, _seconds: float) -> list[Moved]:
            return await self._crew.run([job("spark read", target)])

        async def write(target: Target, _seconds: float) -> list[Moved]:
            made = replace(self._settings, topic=None)
            async with place(self._admins[target.title], made, "spark-written", self._warn) as where:
                return await self._crew.run([replace(job("spark write", target), to_topic=where.topic)])

        await self._rounds([("Spark, topic to noop", read), ("Spark, topic to topic", write)])

    # --- how ---

    async def _rounds(self, cases: Sequence[tuple[str, _Measure]]) -> None:
        settings = self._settings
        if settings.warm_up_s > 0:
            for target in self._targets:
                for _, measure in cases:
                    seconds = settings.warm_up_s / len(cases)
                    self._watch(Phase(f"warming up {target.title}", seconds))
                    self._throw_away(target, await measure(target, seconds))
        for number in range(1, settings.rounds + 1):
            for group, measure in cases:
                for target in self._targets:
                    self._watch(
                        Phase(f"round {number} of {settings.rounds}: {target.title}, {group}", settings.seconds)
                    )
                    self._add(group, target, await measure(target, settings.seconds))

    def _throw_away(self, target: Target, moved: Sequence[Moved]) -> None:
        thrown = self.outcome.thrown_away.setdefault(target.title, {"seconds": 0.0, "records": 0})
        thrown["seconds"] += max(each.seconds for each in moved)
        thrown["records"] += sum(each.records for each in moved)

    def _add(self, group: str, target: Target, moved: Sequence[Moved]) -> None:
        results = self.outcome.results
        seconds = max(each.seconds for each in moved)
        records = sum(each.records for each in moved)
        latencies = array("d")
        for each in moved:
            latencies.extend(each.latencies_ms)
        if latencies:
            for name, value in quantiles(latencies).items():
                results.add(group, name, "ms", target.title, value, higher_is_better=False)
            self.outcome.counts[group] = self.outcome.counts.get(group, 0) + len(latencies)
            if seconds > self._settings.seconds * LATE_SHARE + 0.25:
                self.outcome.remark(
                    f"{target.title} did not keep up in {group!r}: {records / seconds:,.0f} records/s were reached, and"
                    " latency says how far it fell behind."
                )
        else:
            rows = "rows" if self._kind == "spark" else "records"
            results.add(group, rows, f"{rows}/s", target.title, records / seconds)
            megabytes = sum(each.value_bytes for each in moved) / 1e6
            results.add(group, "values", "MB/s", target.title, megabytes / seconds)
            self._look_at_client(moved)

    def _look_at_client(self, moved: Sequence[Moved]) -> None:
        if self._kind != "spark" and all(each.cpu_s > BUSY_SHARE * each.seconds for each in moved):
            self.outcome.remark(
                "The client used nearly all of a core: it, and not the broker, may have set the pace. More --clients on"
                " free cores, or --client raw, ask more of the broker."
            )

    def _job(self, settings: Settings, action: str, target: Target, where: Place, seconds: float) -> Job:
        if action.startswith(BARE_SOCKETS) and not _is_plain(target):
            raise PenstockError(
                f"{action!r} speaks through bare sockets, without TLS or a login: name a plaintext listener of "
                f"{target.title}, or measure by --client own"
            )
        return Job(
            action,
            where.topic,
            where.partitions,
            where.leaders,
            record_bytes=settings.record_bytes,
            batch_bytes=settings.batch_bytes,
            acks=settings.acks_code,
            compression=settings.compression,
            seconds=seconds,
            rate_per_s=settings.rate_of_a_client,
            producer=self._producer_keywords(settings, target),
            consumer={"create_topics": False, **target.consumer},
        )

    @staticmethod
    def _producer_keywords(settings: Settings, target: Target) -> dict[str, Any]:
        """What was given with -X comes first. At a rate nothing lingers: that would be measured, not the broker."""
        wanted: dict[str, Any] = {
            "acks": settings.acks,
            "compression": settings.compression,
            "batch_size": settings.batch_bytes,
            "bulk_batch_size": settings.batch_bytes,
            # A topic that was taken away must not come back.
            "create_topics": False,
        }
        if settings.rate_per_s is not None:
            wanted["linger_ms"] = 0
        return {**wanted, **target.producer}

    async def _filled(self, stack: AsyncExitStack, target: Target) -> Place:
        admin = self._admins[target.title]
        where = await stack.enter_async_context(place(admin, self._settings, self._kind, self._warn))
        await self._note(target, where)
        if where.records:
            return where
        self._watch(Phase(f"filling {where.topic} at {target.title}"))
        job = self._job(self._settings, "fill" if _is_plain(target) else "own fill", target, where, 0.0)
        (moved,) = await self._crew.run([replace(job, acks=-1, fill_bytes=self._settings.topic_bytes)])
        self.outcome.facts[target.title]["filled with"] = f"{moved.value_bytes / 1e6:,.0f} MB of values"
        return await look(admin, where.topic)

    async def _note(self, target: Target, where: Place) -> None:
        facts = self.outcome.facts[target.title]
        if "topic" not in facts:
            made = "made for the run" if self._settings.topic is None else where.topic
            facts["topic"] = f"{made}, {len(where.partitions)} partitions, {where.replicas} replicas"
            facts["disk"] = await fsync_words(self._admins[target.title], where.topic)


def _is_plain(target: Target) -> bool:
    """Whether bare sockets will do."""
    return AdminSettings.of(target.admin).security_protocol == "PLAINTEXT"


_Measure = Callable[[Target, float], Any]


def _settled(kind: str, settings: Settings) -> Settings:
    """With the rate and acknowledgements that this kind of run has if nobody says otherwise."""
    if kind == "cluster":
        return replace(settings, acks="all", rate_per_s=settings.rate_per_s or CLUSTER_RATE_PER_S)
    if kind == "e2e":
        return replace(settings, rate_per_s=settings.rate_per_s or END_TO_END_RATE_PER_S)
    return settings


def _share(job: Job, index: int, settings: Settings) -> Job:
    """The partitions of one client. The raw reader has one, and may share it; others divide them."""
    if job.action == f"{RAW} consume":
        chosen = [index % len(job.partitions)]
    else:
        chosen = list(range(index, len(job.partitions), settings.clients))
    if not chosen:
        raise PenstockError(
            f"{settings.clients} clients cannot share the {len(job.partitions)} partitions of {job.topic}"
        )
    return replace(
        job,
        partitions=tuple(job.partitions[at] for at in chosen),
        leaders=tuple(job.leaders[at] for at in chosen),
    )
