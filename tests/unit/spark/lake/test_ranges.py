"""Whether a batch may enter a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.lake.ranges import AlreadyThere, Apply, Conflict, RangeKey, TableRange, decide

P0, P1 = RangeKey("id", 0), RangeKey("id", 1)


def span(start: int, end: int, partition: int = 0, ordinal: int = 0) -> TableRange:
    return TableRange("orders", "id", partition, start, end, ordinal=ordinal)


def test_a_batch_that_begins_where_the_table_stands_enters() -> None:
    assert decide([span(5, 9), span(0, 3, 1)], {P0: 5}) == Apply()


def test_a_batch_that_is_there_is_a_replay() -> None:
    assert decide([span(5, 9), span(0, 3, 1)], {P0: 9, P1: 3}) == AlreadyThere()
    assert decide([span(5, 7)], {P0: 9}) == AlreadyThere()


def test_an_overlap_and_a_gap_are_named_with_both_offsets() -> None:
    decision = decide([span(5, 9), span(4, 6, 1)], {P0: 7, P1: 2})
    assert decision == Conflict(
        (
            "orders-0: the table is at 7, the batch has [5, 9): an overlap of 2 offsets",
            "orders-1: the table is at 2, the batch has [4, 6): a gap of 2 offsets",
        )
    )


def test_half_a_replay_is_none() -> None:
    assert isinstance(decide([span(5, 9), span(3, 4, 1)], {P0: 9, P1: 3}), Conflict)


def test_two_readers_of_one_topic_have_a_position_each() -> None:
    assert decide([span(5, 9), span(0, 3, ordinal=1)], {P0: 5, RangeKey("id", 0, 1): 0}) == Apply()


def test_a_topic_made_anew_is_another_one() -> None:
    assert decide([TableRange("orders", "new", 0, 0, 4)], {P0: 100}) == Apply()


def test_a_range_survives_its_json() -> None:
    for each in (span(5, 9), span(5, 9, ordinal=2), TableRange("t", "", 3, 1, 2, epoch=7)):
        assert TableRange.of_json(each.to_json()) == each


@dataclass
class Model:
    """A table as the store keeps it: rows and offsets change together, seen at a version."""

    committed: dict[RangeKey, int] = field(default_factory=dict)
    rows: list[tuple[int, int]] = field(default_factory=list)

    def commit(self, ranges: list[TableRange], seen: dict[RangeKey, int]) -> bool:
        """Refused when any of the same offsets moved since they were seen."""
        if any(seen.get(each.key) != self.committed.get(each.key) for each in ranges):
            return False
        for each in ranges:
            self.committed[each.key] = each.end
            self.rows += [(each.partition, offset) for offset in range(each.start, each.end)]
        return True


@dataclass
class Driver:
    """A query with a checkpoint: a batch that was planned is played until Spark's own log says it is done."""

    at: dict[int, int] = field(default_factory=dict)
    planned: list[TableRange] | None = None
    seen: dict[RangeKey, int] | None = None


@given(st.data())
def test_whoever_writes_in_whatever_order_no_record_is_doubled_or_skipped(data: st.DataObject) -> None:
    table = Model()
    drivers = [Driver() for _ in range(3)]
    for _ in range(data.draw(st.integers(5, 60), "steps")):
        driver = data.draw(st.sampled_from(drivers), "driver")
        step = data.draw(
            st.sampled_from(["plan", "look", "commit", "commit", "done", "crash", "lose", "adopt"]), "step"
        )
        if step == "plan" and driver.planned is None:
            sizes = data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=2), "sizes")
            starts = [driver.at.get(partition, 0) for partition in (0, 1)]
            driver.planned = [
                span(start, start + size, partition)
                for partition, (start, size) in enumerate(zip(starts, sizes, strict=True))
                if size
            ]
        elif step == "look" and driver.planned is not None:
            match decide(driver.planned, table.committed):
                case Apply():
                    driver.seen = dict(table.committed)
                case AlreadyThere():
                    driver.at |= {each.partition: each.end for each in driver.planned}
                    driver.planned = driver.seen = None
                case Conflict():
                    # The query fails; whoever runs it begins where the table stands, with a new checkpoint.
                    driver.planned = driver.seen = None
                    driver.at = {key.partition: end for key, end in table.committed.items()}
        elif step == "commit" and driver.planned is not None and driver.seen is not None:
            # The answer may be lost: the batch stays planned, and is looked at again.
            table.commit(driver.planned, driver.seen)
            driver.seen = None
        elif step == "done" and driver.planned is not None and driver.seen is None:
            if decide(driver.planned, table.committed) == AlreadyThere():
                driver.at |= {each.partition: each.end for each in driver.planned}
                driver.planned = None
        elif step == "crash":
            driver.seen = None
        elif step == "lose":
            driver.at, driver.planned, driver.seen = {}, None, None
        elif step == "adopt":
            driver.at = {key.partition: end for key, end in table.committed.items()}
            driver.planned = driver.seen = None
        for partition in (0, 1):
            offsets = [offset for where, offset in table.rows if where == partition]
            assert offsets == list(range(table.committed.get(RangeKey("id", partition), 0)))
