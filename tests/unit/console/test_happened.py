from __future__ import annotations

from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.happened import REMEMBERED, SHOWN, TEXT_SHOWN, TOGETHER_MS, Happened


def sent(records: int, topic: str = "orders", by: str = "User:ann") -> Occurrence:
    params = {"by": by, "action": "send_records", "topic": topic, "records": records}
    return Occurrence("changed", "info", f"{by}: {records} records sent to {topic}", params, (topic,))


def test_what_happens_is_told_and_kept_newest_first() -> None:
    log = Happened(most=2)
    for number in range(3):
        (entry,) = log.tell(Occurrence("topic_created", "info", f"{number}"), number)
        assert (entry.id, entry.at_ms) == (number + 1, number)
    assert [each.what.text for each in log.newest()] == ["2", "1"]


def test_records_that_are_sent_without_end_are_told_once_and_then_in_sums() -> None:
    """Ten a second over HTTP once pushed everything else out of the log within minutes."""
    log = Happened()
    log.tell(Occurrence("broker_down", "bad", "broker 1 went away"), 0)
    told = [entry for at_ms in range(0, 10 * 60_000, 100) for entry in log.tell(sent(2), at_ms)]
    assert [entry.what.text for entry in told[:2]] == [
        "User:ann: 2 records sent to orders",
        "User:ann: 198 records sent to orders, in 99 requests",
    ]
    assert len(told) == 10 * 60_000 // TOGETHER_MS
    assert sum(entry.what.params["records"] for entry in told) == 2 * 5_900
    assert [entry.what.params["records"] for entry in log.due(10 * 60_000)] == [200]
    assert log.due(11 * 60_000) == []
    assert log.newest()[-1].what.kind == "broker_down"
    # After a pause it is told at once again.
    assert [entry.what.text for entry in log.tell(sent(1), 12 * 60_000)] == ["User:ann: 1 records sent to orders"]


def test_what_others_do_and_other_topics_are_told_apart() -> None:
    log = Happened()
    told = [log.tell(what, 0) for what in (sent(1), sent(1, "bills"), sent(1, by="User:bob"), sent(1))]
    assert [len(entries) for entries in told] == [1, 1, 1, 0]
    assert len(log.due(TOGETHER_MS)) == 1


def test_memory_is_bounded_whatever_is_reset() -> None:
    log = Happened()
    positions = [{"topic": "t", "partition": number} for number in range(40_000)]
    plan = {f"t-{number}": "0" for number in range(SHOWN + 5)}
    log.tell(
        Occurrence("changed", "info", "x" * 10_000, {"positions": positions, "plan": plan, "by": "ann"}, ("t",)), 0
    )
    (entry,) = log.newest()
    assert entry.what.params["positions"] == positions[:SHOWN]
    assert entry.what.params["positions_more"] == 40_000 - SHOWN
    assert (len(entry.what.params["plan"]), entry.what.params["plan_more"]) == (SHOWN, 5)
    assert (entry.what.params["by"], len(entry.what.text)) == ("ann", TEXT_SHOWN + 1)
    for number in range(2 * REMEMBERED):
        log.tell(Occurrence("topic_created", "info", str(number)), number)
    assert len(log.newest()) == REMEMBERED
