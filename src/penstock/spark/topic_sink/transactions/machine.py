"""What a driver does so that a batch is in its topics exactly once: at its plan, its commit, its abort. Pure.

Each is a generator that yields an effect and is sent the answer; whoever runs it may stop at any of them and never come
back, or come back when another driver has gone on. That is what the simulation does.

| a driver or a task | what follows |
|---|---|
| dies before the decision is committed | the batch is played again; the next plan aborts what was written |
| dies after it | the batch is played again; the next plan ends the transactions, and what is written anew is aborted |
| is replaced, and wakes | its decision is refused (the driver's epoch); what it ends is what the decision says |
| finds the ledger without what its checkpoint knows is there | it writes nothing and says what to do |
| task attempt that lost, failed or wakes | no decision lists it; its epoch is fenced at the commit or the next plan |
| is away for longer than a transaction may take | the log says which ones were aborted: all of a decision, and it is
dropped and the batch written again; some of it, and the query stops with their names |
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.client.producer.transactions.prepared import BUMPING_VERSION, PreparedTransaction, ProducerEpoch
from penstock.spark.errors import CommitRefused, SparkRoomError
from penstock.spark.lake.ranges import TableRange
from penstock.spark.naming import DECISIONS_TOPIC
from penstock.spark.topic_sink.delivery import Landed
from penstock.spark.topic_sink.transactions.decided import Verdict, judge
from penstock.spark.topic_sink.transactions.effects import (
    AskLedger,
    AskTime,
    BeginDriver,
    BeginPool,
    Describe,
    Described,
    Effect,
    End,
    Fence,
    LedgerTopic,
    ListOpen,
    PutAway,
    ReadLedger,
    ReadMark,
    Seen,
    TopicIds,
    Witness,
    Write,
    WriteMark,
)
from penstock.spark.topic_sink.transactions.names import (
    MARK_FILE,
    driver_id,
    extra_prefix,
    pattern_of,
    pattern_of_runs,
    pool_id,
    pool_ids,
)
from penstock.spark.topic_sink.transactions.records import Decision, Listed, Standing

SLOTS_MAX: Final = 512
LEFT_LEAST_MS: Final = 30_000
"""What has to be left of a transaction's time when it is decided: its end may have to be asked for again and again."""


class Superseded(SparkRoomError):
    """Another driver of the same query has taken over."""


class Replaced(Superseded):
    """The ledger says so, and it will say so for as long as this process lives."""


class LedgerVanished(SparkRoomError):
    """The ledger has forgotten this query: what is in its topics, nobody can tell."""


class LedgerFull(SparkRoomError):
    """A decision would be larger than the ledger takes."""


class Untold(SparkRoomError):
    """Whether a transaction of a decision is committed is not to be seen yet."""


class NotInTime(SparkRoomError):
    """The transactions of a batch are over, or nearly, before it could be decided."""


class Torn(SparkRoomError):
    """A batch was decided, and some of its transactions were aborted before anybody could end them."""


@dataclass(frozen=True, slots=True)
class Handout:
    """What a plan gives to the tasks of a batch, and they to its commit."""

    query_id: str
    run: str
    driver: ProducerEpoch
    """After all that the plan has written."""
    pool: tuple[ProducerEpoch, ...]
    """By slot."""
    transaction_version: int
    timeout_ms: int
    record_bytes_max: int
    """What the ledger takes."""
    planned_ms: float
    """By the driver's clock; no transaction of the batch is older."""

    def slot(self, number: int) -> PreparedTransaction:
        """The transaction that the first attempt of a task has."""
        name = pool_id(self.query_id, self.run, number)
        return PreparedTransaction(name, *self.pool[number], self.transaction_version)


@dataclass(frozen=True, slots=True)
class TaskWrote:
    """What the attempt that counts of a task has written."""

    prepared: PreparedTransaction
    landed: tuple[Landed, ...]
    begun_ms: float
    """When it began its transaction, by its own clock."""
    took_ms: float
    """From then to its end, which is a duration and so everybody's."""


def plan(
    query_id: str, run: str, *, slots: int, transaction_version: int, timeout_ms: int
) -> Generator[Effect, Any, Handout]:
    """Before a batch: as if the driver had just started."""
    looked: Standing | None = yield ReadLedger(waits=False)
    _check_in_charge(query_id, run, looked)
    driver: ProducerEpoch = yield BeginDriver()
    # Now nobody else can write a first record that this would not find and the mark not tell of.
    marked: str = yield ReadMark()
    ledger: LedgerTopic = yield AskLedger(make=not marked)
    if marked and ledger.id != marked:
        raise _vanished(query_id)
    found: Standing | None = yield ReadLedger()
    _check_in_charge(query_id, run, found)
    if looked is not None and found is not None and found.run not in (run, looked.run):
        raise _superseded(query_id)
    if marked and found is None:
        raise _vanished(query_id)
    standing = found or Standing(query_id, run, 0)
    settled = yield from _settled(standing)
    wanted = min(max(slots, settled.slots), SLOTS_MAX)
    led = settled.led_by(run, wanted)
    _check_room(led.expected_bytes(wanted), ledger.record_bytes_max, wanted)
    if led != found:
        # Before anything is begun anew: nobody shall find a decision whose ids mean something else by now.
        driver = yield Write(led)
        if transaction_version < BUMPING_VERSION:
            # An epoch that stays has batches that are counted on, by a process that the commit is not.
            fresh: ProducerEpoch | None = yield BeginDriver(driver)
            if fresh is None:
                raise _superseded(query_id)
            driver = fresh
    if not marked:
        # After the record that it speaks of, and before anything can be decided.
        yield WriteMark(ledger.id)
    yield from _abort_leftovers(settled, run)
    ids = pool_ids(query_id, run, wanted)
    planned_ms: float = yield AskTime()
    begun: Mapping[str, ProducerEpoch] = yield BeginPool(ids)
    pool = tuple(begun[name] for name in ids)
    return Handout(query_id, run, driver, pool, transaction_version, timeout_ms, ledger.record_bytes_max, planned_ms)


def commit(
    handout: Handout, batch: int, ranges: Sequence[TableRange], tasks: Sequence[TaskWrote]
) -> Generator[Effect, Any, Standing]:
    """All tasks of a batch have written: decide, and end what was decided."""
    standing: Standing | None = yield ReadLedger()
    if standing is None:
        raise _vanished(handout.query_id)
    if standing.run != handout.run:
        raise _superseded(handout.query_id)
    if standing.decision is not None and not standing.decision.ended:
        raise _superseded(handout.query_id)
    written = tuple(Listed(each.prepared, each.landed) for each in tasks if not each.prepared.empty)
    if judge(standing, batch, ranges) is Verdict.REPLAY:
        yield from _abort(handout, tasks, len(tasks), kept=())
        return standing
    yield from _check_open(handout, [each for each in tasks if not each.prepared.empty])
    topics = yield from _check_topics(standing, written)
    decision = Decision(standing.sequence + 1, batch, tuple(ranges), written, topics)
    decided = standing.decided(decision)
    _check_room(decided.size_bytes, handout.record_bytes_max, len(written))
    if not written:
        decided = decided.ended()
    yield Write(decided)
    ended = yield from _settled(decided, standing.decision)
    grown = replace(ended, slots=min(max(ended.slots, len(tasks)), SLOTS_MAX))
    if grown != decided:
        yield Write(grown)
    if ended.decision is None or not ended.decision.ended or ended.sequence != decision.sequence:
        raise NotInTime(
            f"batch {batch} was decided and its transactions were aborted before they could be committed: their time "
            f"({handout.timeout_ms} ms) was over. Nothing of it is shown; start the query again and it is written anew"
        )
    yield from _abort(handout, tasks, len(tasks), kept=written)
    return ended


def abort(handout: Handout, tasks: Sequence[TaskWrote], count: int) -> Generator[Effect, Any, None]:
    """A batch of `count` tasks has failed, or its commit has: what nobody decided is aborted at once, so that readers
    need not wait for it. What was decided is left to the next plan."""
    # A decision that is still under way ends with this, one way or the other. It fences nobody else.
    driver: ProducerEpoch | None = yield BeginDriver(handout.driver)
    if driver is None:
        return
    standing: Standing | None = yield ReadLedger()
    if standing is None or standing.run != handout.run:
        return
    last = standing.decision
    kept = last.transactions if last is not None else ()
    yield from _abort(handout, tasks, count, kept=kept)


def settle() -> Generator[Effect, Any, Standing | None]:
    """Of a query that nobody goes on with, because its checkpoint is lost: what it has decided is carried out, what it
    has not is aborted, and whoever still runs it writes no more. Where it stands then; None when it never decided."""
    yield BeginDriver()
    found: Standing | None = yield ReadLedger()
    if found is None:
        return None
    settled = yield from _settled(found)
    if settled != found:
        yield Write(settled)
    yield from _abort_leftovers(settled, run="")
    return settled


def forget() -> Generator[Effect, Any, None]:
    """Of a query whose checkpoint is going to be removed: it is settled, and nothing of it stays in the ledger."""
    settled = yield from settle()
    if settled is not None:
        yield PutAway(settled)


def release(query_id: str, run: str) -> Generator[Effect, Any, None]:
    """The query of this driver has ended, or a batch has of which no task said what it wrote: nothing that this run
    gave to tasks stays open. Nothing is fenced of a run that was replaced; that was the next one's to do."""
    standing: Standing | None = yield ReadLedger()
    if standing is None or standing.run != run:
        return
    if standing.decision is not None and not standing.decision.ended:
        # It may be listed: the next plan ends it.
        return
    opened: Sequence[str] = yield ListOpen(pattern_of_runs(query_id, (run,)))
    yield Fence(tuple(sorted({*opened, *pool_ids(query_id, run, standing.slots)})))


def _settled(standing: Standing, before: Decision | None = None) -> Generator[Effect, Any, Standing]:
    """The last decision carried out: committed as it says, or dropped when the log says that all of it was aborted.

    `before` is the decision that counts again when it is dropped."""
    decision = standing.decision
    if decision is None or decision.ended:
        return standing
    told: Mapping[str, bool] = yield End(tuple(each.prepared for each in decision.transactions), commit=True)
    unsure = tuple(each for each in decision.transactions if not told[each.id])
    if not unsure:
        return standing.ended()
    seen: Mapping[str, Seen] = yield Witness(unsure, tuple(sorted(decision.topics.items())))
    aborted = [each for each in unsure if seen[each.id] is Seen.ABORTED]
    unknown = [each for each in unsure if seen[each.id] in (Seen.OPEN, Seen.UNREADABLE)]
    if unknown:
        raise _unknown(decision, unknown, seen)
    if not aborted:
        return standing.ended()
    if len(aborted) < len(decision.transactions):
        raise _torn(decision, aborted)
    return standing.dropped(before)


def _abort_leftovers(standing: Standing, run: str) -> Generator[Effect, Any, None]:
    """What drivers before us, or we ourselves, gave to tasks and nobody decided. Ids of the pool that we go on to use
    are begun anew anyway."""
    runs = tuple(dict.fromkeys((run, *standing.runs)))
    opened: Sequence[str] = yield ListOpen(pattern_of_runs(standing.query_id, runs))
    leftovers = set(opened)
    if standing.run != run:
        # Their tasks may still be about to write under epochs that are good as long as nobody fences them.
        leftovers |= set(pool_ids(standing.query_id, standing.run, standing.slots))
    if leftovers:
        yield Fence(tuple(sorted(leftovers)))


def _check_in_charge(query_id: str, run: str, standing: Standing | None) -> None:
    if standing is not None and run in standing.superseded:
        raise Replaced(str(_superseded(query_id)))


def _check_room(size_bytes: int, most_bytes: int, tasks: int) -> None:
    if size_bytes > most_bytes:
        raise LedgerFull(
            f"a decision about {tasks} tasks takes {size_bytes:,} bytes, with every partition that they write to, and "
            f"{DECISIONS_TOPIC} takes records of {most_bytes:,}: let fewer tasks write (coalesce, or "
            "spark.sql.shuffle.partitions), or to fewer partitions; a ledger that takes less than 8 MiB is raised by "
            f"`penstock topic alter {DECISIONS_TOPIC} -c max.message.bytes=16777216`"
        )


def left_ms(handout: Handout, task: TaskWrote, now_ms: float) -> float:
    """What is left of the time of a transaction, by the driver's clock; rather less than the coordinator gives it.

    A task on another host has another clock. But its transaction began after the plan, and so long before its end."""
    begun_ms = min(max(task.begun_ms, handout.planned_ms), now_ms - task.took_ms)
    return handout.timeout_ms - (now_ms - begun_ms)


def _check_open(handout: Handout, written: Sequence[TaskWrote]) -> Generator[Effect, Any, None]:
    """Whether every transaction is as its task has left it, with time enough to end it."""
    if not written:
        return
    found: Mapping[str, Described] = yield Describe(tuple(each.prepared.transactional_id for each in written))
    now_ms: float = yield AskTime()
    least_ms = min(LEFT_LEAST_MS, handout.timeout_ms / 4)
    for each in written:
        name = each.prepared.transactional_id
        told = found.get(name)
        wanted = ProducerEpoch(each.prepared.producer_id, each.prepared.producer_epoch)
        over = told is None or not told.ongoing or told.producer != wanted
        left = left_ms(handout, each, now_ms)
        if over or left < least_ms:
            how = "is over" if over else f"has {max(left, 0) / 1000:.0f} s left"
            raise NotInTime(
                f"transaction {name} {how} of the {handout.timeout_ms / 1000:.0f} s that it may take, so the batch "
                "is not committed and will be written again. Make batches smaller (maxOffsetsPerTrigger), or set "
                "kafka.transaction.timeout.ms higher, up to the brokers' transaction.max.timeout.ms"
            )


def _check_topics(standing: Standing, written: Sequence[Listed]) -> Generator[Effect, Any, dict[str, str]]:
    """The ids of the topics that were written to; a topic that was made anew is another topic."""
    names = tuple(sorted({landed.topic for each in written for landed in each.landed}))
    if not names:
        return {}
    found: dict[str, str] = yield TopicIds(names)
    for name in names:
        known = standing.topics.get(name, found.get(name))
        if found.get(name) is None or known != found[name]:
            raise CommitRefused(
                f"topic {name} was deleted, or deleted and made anew, since this query wrote to it: what it wrote "
                "before is gone. Nothing of this batch is shown. To fill the new topic, start with a new checkpoint"
            )
    return {name: found[name] for name in names}


def _abort(
    handout: Handout, tasks: Sequence[TaskWrote], count: int, *, kept: Sequence[Listed]
) -> Generator[Effect, Any, None]:
    """What tasks of this handout may have written and no decision lists. Named by its epoch, so that it is only that.

    Of `count` tasks those in `tasks` have said what they wrote; an attempt that wrote nothing needs no end."""
    # Ids of the pool come again with every batch: only with its epoch is it the transaction that is meant.
    spared = {_epoch(each.prepared) for each in kept}
    spared |= {_epoch(each.prepared) for each in tasks if each.prepared.empty}
    handed = [handout.slot(number) for number in range(min(count, len(handout.pool)))]
    losing = {_epoch(each): each for each in (*handed, *(each.prepared for each in tasks))}
    ending = tuple(each for epoch, each in losing.items() if epoch not in spared)
    if ending:
        yield End(ending, commit=False)
    opened: Sequence[str] = yield ListOpen(pattern_of(extra_prefix(handout.query_id, handout.run, handout.driver)))
    strays = tuple(sorted(set(opened) - {each.id for each in kept}))
    if strays:
        yield Fence(strays)


def _epoch(prepared: PreparedTransaction) -> tuple[str, int, int]:
    return prepared.transactional_id, prepared.producer_id, prepared.producer_epoch


def _superseded(query_id: str) -> Superseded:
    return Superseded(
        f"another driver of this query has taken over (it has written as {driver_id(query_id)} since): nothing more is "
        "written here. If it is the other one that should stop, stop that, and start this one as a new process"
    )


def _vanished(query_id: str) -> LedgerVanished:
    return LedgerVanished(
        f"the topic {DECISIONS_TOPIC} has forgotten query {query_id}: it was deleted or made anew, or its record was "
        "removed, or this is another cluster. Which batches are in the output topics cannot be told any more, so "
        "nothing is written. Stop whatever removes it; then begin with a new checkpoint, at the offsets that you "
        "choose with startingOffsets after a look at the output topics. Or, when you are sure that the last batch is "
        f"not there, remove {MARK_FILE} from the checkpoint, and the query goes on after its last committed batch"
    )


def _torn(decision: Decision, aborted: Sequence[Listed]) -> Torn:
    gone = ", ".join(f"{each.id} ({_places(each)})" for each in aborted)
    read = ", ".join(f"{each.topic}-{each.partition} [{each.start}, {each.end})" for each in decision.ranges)
    return Torn(
        f"batch {decision.batch} is there in part: it was decided, and the driver was then away for longer than its "
        f"transactions may take, so brokers aborted {gone}; the other {len(decision.transactions) - len(aborted)} "
        f"are committed. What it has read is {read or 'nothing of a topic'}. Begin with a new checkpoint: at the start "
        "of these offsets, and rows of the committed part are there twice; or after them, and the aborted part is "
        "missing; or write everything to another topic"
    )


def _unknown(decision: Decision, unknown: Sequence[Listed], seen: Mapping[str, Seen]) -> SparkRoomError:
    told = "; ".join(f"{each.id} ({_places(each)}) is {seen[each.id].value}" for each in unknown)
    words = f"batch {decision.batch} was decided, and whether all of it is committed cannot be told: {told}. "
    if all(seen[each.id] is Seen.OPEN for each in unknown):
        return Untold(
            words + "Another transaction is open before it, or its coordinator does not answer: `penstock cluster "
            "health` and `penstock txn find-hanging` tell; then start again"
        )
    return Torn(
        words + "Its records went by retention or compaction, or the topic was made anew: look at the topic, and begin "
        "with a new checkpoint before or after the offsets that the batch has read"
    )


def _places(listed: Listed) -> str:
    return ", ".join(f"{each.topic}-{each.partition} [{each.first}, {each.last}]" for each in listed.landed)
