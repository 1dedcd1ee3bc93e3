"""The checker finds what is planted, names it rightly, and is quiet about histories that are as they should be."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.cluster.history import Anomaly, History, Kind, Outcome, Read, Send, report, value_of

ACKED, REFUSED, UNKNOWN = Outcome.ACKED, Outcome.REFUSED, Outcome.UNKNOWN


def log_of(*values: str, consumer: str = "c", assignment: int = 0, partition: int = 0, base: int = 0) -> list[Read]:
    return [Read(consumer, assignment, partition, offset, value) for offset, value in enumerate(values, base)]


def healthy(seed: int = 1, *, partitions: int = 2, records: int = 200) -> History:
    """Two producers and two readers over some partitions; some sends fail, some of those are there all the same."""
    chance = random.Random(seed)
    history = History()
    logs: list[list[str]] = [[] for _ in range(partitions)]
    numbers = dict.fromkeys([(name, at) for name in "pq" for at in range(partitions)], 0)
    for _ in range(records):
        producer, partition = chance.choice("pq"), chance.randrange(partitions)
        number = numbers[producer, partition]
        numbers[producer, partition] += 1
        outcome = chance.choices((ACKED, UNKNOWN, REFUSED), (8, 1, 1))[0]
        written = outcome is ACKED or (outcome is UNKNOWN and chance.random() < 0.5)
        offset = len(logs[partition]) if outcome is ACKED else -1
        history.sends.append(Send(producer, partition, number, outcome, offset))
        if written:
            logs[partition].append(value_of(producer, number))
    for partition, values in enumerate(logs):
        history.reads += log_of(*values, consumer="whole", partition=partition)
        middle = len(values) // 2
        history.reads += log_of(*values[:middle], consumer="member", partition=partition)
        # A rebalance: it goes back to what was committed, which is no anomaly.
        again = max(0, middle - 7)
        history.reads += log_of(*values[again:], consumer="member", assignment=1, partition=partition, base=again)
    return history


def kinds(anomalies: list[Anomaly]) -> set[Kind]:
    return {anomaly.kind for anomaly in anomalies}


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_history_has_no_anomaly(seed: int) -> None:
    assert healthy(seed).check() == []


def without(history: History, value: str, partition: int) -> None:
    """As if the value had never reached the log: what lay behind it moves up."""
    at = next(read.offset for read in history.reads if (read.partition, read.value) == (partition, value))
    kept = [read for read in history.reads if (read.partition, read.value) != (partition, value)]
    history.reads = [
        read._replace(offset=read.offset - 1) if read.partition == partition and read.offset > at else read
        for read in kept
    ]
    history.sends = [
        send._replace(offset=send.offset - 1) if send.partition == partition and send.offset > at else send
        for send in history.sends
    ]


def acked(history: History, position: float = 0.5) -> Send:
    sends = [send for send in history.sends if send.outcome is ACKED and send.partition == 0]
    return sends[int(len(sends) * position)]


def lose(history: History) -> None:
    """An acknowledged write in the middle is gone, and everything else closed the ranks."""
    victim = acked(history)
    without(history, victim.value, 0)


def lose_the_tail(history: History) -> None:
    """The last acknowledged writes were truncated away; nothing was written behind them."""
    end = max(send.offset for send in history.sends if send.partition == 0)
    history.reads = [read for read in history.reads if read.partition != 0 or read.offset < end - 3]


def write_twice(history: History) -> None:
    victim = acked(history, 0.2)
    end = max(read.offset for read in history.reads if read.partition == 0) + 1
    history.reads.append(Read("whole", 0, 0, end, victim.value))


def swap(history: History) -> None:
    """Two neighbours of one producer changed places in the log before they were acknowledged."""
    mine = [send for send in history.sends if send[:2] == ("p", 0) and send.outcome is ACKED]
    first, second = mine[5], mine[6]
    to = {first.value: second.offset, second.value: first.offset}
    history.sends = [
        send._replace(offset=to[send.value]) if send.partition == 0 and send.value in to else send
        for send in history.sends
    ]
    by_offset = {first.offset: second.value, second.offset: first.value}
    history.reads = [
        read._replace(value=by_offset[read.offset]) if read.partition == 0 and read.offset in by_offset else read
        for read in history.reads
    ]


def diverge(history: History) -> None:
    """One reader saw another value at an offset: it read what was truncated later."""
    refused_at = acked(history).offset
    index = next(
        at
        for at, read in enumerate(history.reads)
        if read.consumer == "whole" and (read.partition, read.offset) == (0, refused_at)
    )
    history.sends.append(Send("r", 0, 0, UNKNOWN))
    history.reads[index] = history.reads[index]._replace(value="r:0")


def go_back(history: History) -> None:
    again = [read for read in history.reads if read.consumer == "whole" and read.partition == 0][-3:]
    history.reads += again


def skip(history: History) -> None:
    victim = acked(history).value
    history.reads = [read for read in history.reads if (read.consumer, read.value) != ("whole", victim)]


def read_refused(history: History) -> None:
    end = max(read.offset for read in history.reads if read.partition == 0) + 1
    history.sends.append(Send("r", 0, 0, REFUSED))
    history.reads.append(Read("whole", 0, 0, end, "r:0"))


def read_unsent(history: History) -> None:
    end = max(read.offset for read in history.reads if read.partition == 0) + 1
    history.reads.append(Read("whole", 0, 0, end, "nobody:0"))


def acknowledge_elsewhere(history: History) -> None:
    victim = acked(history)
    end = max(read.offset for read in history.reads if read.partition == 0) + 100
    history.sends = [send._replace(offset=end) if send == victim else send for send in history.sends]


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (lose, Kind.LOST_WRITE),
        (lose_the_tail, Kind.UNSEEN),
        (write_twice, Kind.DUPLICATE),
        (swap, Kind.NONMONOTONIC_SEND),
        (diverge, Kind.INCONSISTENT_OFFSET),
        (acknowledge_elsewhere, Kind.INCONSISTENT_OFFSET),
        (go_back, Kind.NONMONOTONIC_POLL),
        (skip, Kind.POLL_SKIP),
        (read_refused, Kind.ABORTED_READ),
        (read_unsent, Kind.PHANTOM),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_planted_is_found(plant: Callable[[History], None], kind: Kind, seed: int) -> None:
    history = healthy(seed)
    plant(history)
    found = history.check()
    assert kind in kinds(found), report(found)


def test_a_producer_that_tries_again_without_idempotence_may_write_twice_and_out_of_order() -> None:
    history = History(unordered=["p"])
    history.sends = [Send("p", 0, 0, ACKED, 0), Send("p", 0, 1, ACKED, 1)]
    history.reads = log_of("p:0", "p:1", "p:0")
    assert history.check() == []
    history.unordered = frozenset()
    assert kinds(history.check()) == {Kind.DUPLICATE, Kind.NONMONOTONIC_SEND}


def test_what_is_behind_the_last_read_is_lost_only_when_everything_was_read() -> None:
    history = History()
    history.sends = [Send("p", 0, 0, ACKED, 0), Send("p", 0, 1, ACKED, 1)]
    history.reads = log_of("p:0")
    assert history.check(all_read=False) == []
    assert kinds(history.check()) == {Kind.UNSEEN}


def test_gaps_where_nothing_was_written_are_no_skips() -> None:
    """Control records have offsets and are given to nobody."""
    history = History()
    history.sends = [Send("p", 0, 0, ACKED, 0), Send("p", 0, 1, ACKED, 5)]
    history.reads = [Read("c", 0, 0, 0, "p:0"), Read("c", 0, 0, 5, "p:1")]
    assert history.check() == []


def test_an_acknowledged_duplicate_may_lack_its_offset() -> None:
    history = History()
    history.sends = [Send("p", 0, 0, ACKED, -1)]
    history.reads = log_of("p:0")
    assert history.check() == []
    history.reads = []
    assert kinds(history.check()) == {Kind.UNSEEN}


def test_a_history_is_kept_in_a_file(tmp_path: Path) -> None:
    history = healthy()
    history.save(tmp_path / "history.jsonl")
    again = History.load(tmp_path / "history.jsonl")
    assert (again.sends, again.reads, again.unordered) == (history.sends, history.reads, history.unordered)


def test_a_report_names_each_kind_once_with_its_number() -> None:
    history = healthy()
    lose(history)
    write_twice(history)
    words = report(history.check())
    assert "lost write: 1" in words
    assert "duplicate: 1" in words
