"""Records into batches, and the memory they may take."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.client.errors import BufferFull, RecordTooLarge
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.bulk import Bulk, ListRows
from penstock.client.producer.delivery import BulkDelivery, Delivery
from penstock.client.producer.lane import Batch
from penstock.client.producer.parked import Parked
from penstock.client.settings import ProducerSettings
from penstock.model.ids import Millis


class Clock:
    def __init__(self) -> None:
        self.at_ms = 1_000.0

    def now_ms(self) -> Millis:
        return Millis(int(self.at_ms))

    def monotonic_ms(self) -> float:
        return self.at_ms


class Scene:
    """An accumulator with a known topic and no sender."""

    def __init__(self, partitions: int = 1, **settings: Any) -> None:
        self.clock = Clock()
        self.nudges = 0
        self.inside = Accumulator(ProducerSettings.of(settings), self.clock, self._nudge, random.Random(1))
        self.inside.know("t", [1] * partitions)

    def _nudge(self) -> None:
        self.nudges += 1

    def send(self, value: bytes = b"v", partition: int | None = None, key: bytes | None = None) -> Delivery | None:
        return self.inside.append("t", value, key, partition, None, (), None)

    def park(self, value: bytes) -> Parked:
        parked = Parked("t", value, None, None, 1, (), None, self.clock.at_ms + 100)
        parked.delivery = Delivery(parked, 0, 1)
        self.inside.park(parked)
        return parked

    def deliver(self, batch: Batch) -> None:
        """As the sender does when the answer is there."""
        batch.lane.close_open()
        batch.lane.drop(batch)
        batch.settle(0, -1, None)
        self.inside.pending.pop(batch)
        self.inside.release(batch)
        self.inside.serve_waiting()


def test_records_share_a_batch_until_it_is_full() -> None:
    scene = Scene(batch_size=300)
    deliveries = [scene.send(bytes(100)) for _ in range(3)]
    places = [one.place for one in deliveries if one is not None]
    assert [index for _, index in places] == [0, 1, 0]
    assert places[0][0] is places[1][0] is not places[2][0]
    assert list(scene.inside.ready) == [scene.inside.topics["t"].lanes[0]]


def test_a_batch_waits_for_more_as_long_as_it_may_linger() -> None:
    scene = Scene(linger_ms=5)
    scene.send()
    assert scene.inside.next_wake_ms() == 1_005
    scene.inside.mark_due(1_004)
    assert not scene.inside.ready
    scene.inside.mark_due(1_005)
    assert scene.inside.ready


def test_only_the_first_record_of_a_batch_wakes_the_sender() -> None:
    scene = Scene()
    for _ in range(50):
        scene.send()
    assert scene.nudges == 1


def test_without_linger_a_batch_is_ready_at_once() -> None:
    scene = Scene(linger_ms=0)
    scene.send()
    assert scene.inside.ready


def test_a_record_larger_than_a_request_is_refused() -> None:
    with pytest.raises(RecordTooLarge, match="max_request_size"):
        Scene(max_request_size=1_000).send(bytes(1_000))


def test_a_record_larger_than_a_batch_gets_one_of_its_own() -> None:
    scene = Scene(batch_size=100)
    scene.send()
    big = scene.send(bytes(5_000))
    assert big is not None
    batch, index = big.place
    assert index == 0
    assert batch.charge >= 5_000


def test_a_full_buffer_takes_nothing_until_a_batch_is_through() -> None:
    scene = Scene(buffer_memory=200, batch_size=100)
    first, second = scene.send(bytes(70), 0), scene.send(bytes(70), 0)
    assert first is not None
    assert second is not None
    assert scene.send(bytes(70)) is None
    parked = scene.park(bytes(70))
    assert scene.send() is None  # behind the one that waits
    scene.deliver(first.place[0])
    assert parked.delivery is not None
    assert parked.delivery.place[0] is not parked
    assert not scene.inside.waiting
    assert scene.inside.waiting_bytes == 0


def test_those_who_wait_for_room_are_woken_when_there_is_room_for_many() -> None:
    scene = Scene(buffer_memory=3_200, batch_size=100)
    batches = [one.place[0] for one in (scene.send(bytes(70), 0) for _ in range(32)) if one is not None]
    assert not scene.inside.roomy
    woken: list[bool] = []
    scene.inside.room_wakers.append(lambda: woken.append(True))
    scene.deliver(batches[0])
    assert not woken
    scene.deliver(batches[1])
    assert scene.inside.roomy
    assert woken == [True]


def test_a_full_buffer_lets_nothing_linger() -> None:
    scene = Scene(2, buffer_memory=200, batch_size=100)
    scene.send(b"v", 0)
    scene.send(b"v", 1)
    assert scene.send(bytes(99), 1) is None
    assert len(scene.inside.ready) == 2


def test_as_much_may_wait_as_the_buffer_holds_and_no_more() -> None:
    scene = Scene(buffer_memory=1_000, batch_size=1_000)
    scene.send(bytes(800))
    for _ in range(2):
        scene.park(bytes(400))
    with pytest.raises(BufferFull, match="wait_for_room"):
        scene.park(bytes(400))


def test_who_waits_too_long_is_taken_out() -> None:
    scene = Scene(buffer_memory=1_000, batch_size=1_000)
    scene.send(bytes(800))
    parked = scene.park(bytes(400))
    assert scene.inside.overdue(1_099) == []
    assert scene.inside.overdue(1_100) == [parked]
    assert scene.inside.waiting_bytes == 0


def test_a_value_of_a_wrong_type_leaves_no_empty_batch() -> None:
    scene = Scene()
    with pytest.raises(TypeError):
        scene.send(17)  # type: ignore[arg-type]
    assert scene.inside.topics["t"].lanes[0].open is None
    assert scene.inside.free_bytes == scene.inside.settings.buffer_memory


def bulk(scene: Scene, values: list[Any], keys: list[Any] | None = None) -> tuple[bool, BulkDelivery]:
    delivery = BulkDelivery("t")
    return Bulk("t", ListRows(values, keys, None, None, 1), None).fill(scene.inside, delivery), delivery


def test_many_rows_go_into_large_batches() -> None:
    scene = Scene(batch_size=1_000, bulk_batch_size=10_000)
    done, _ = bulk(scene, [bytes(100)] * 200)
    assert done
    assert [batch.builder.count for batch in scene.inside.pending if batch.builder is not None] == [91, 91, 18]


def test_rows_follow_their_keys() -> None:
    scene = Scene(4)
    keys = [b"%d" % number for number in range(100)]
    bulk(scene, keys, keys)
    held = scene.inside.topics["t"]
    expected = [sum(held.lane_of(key, None) is lane for key in keys) for lane in held.lanes]
    assert [0 if lane.open is None else lane.open.builder.count for lane in held.lanes] == expected  # type: ignore[union-attr]


def test_rows_that_find_no_room_go_on_later() -> None:
    scene = Scene(buffer_memory=20_000, bulk_batch_size=10_000, batch_size=1_000)
    done, delivery = bulk(scene, [bytes(100)] * 400)
    assert not done
    assert not delivery.placed


def test_a_row_that_cannot_be_sent_fails_the_rest_and_not_what_went_before() -> None:
    scene = Scene()
    done, delivery = bulk(scene, [b"a", b"b", "c", 4, b"e"])
    assert done
    assert "cannot be sent" in str(delivery.failure)
    (batch,) = scene.inside.pending
    assert batch.builder is not None
    assert batch.builder.count == 3


def test_a_failure_that_was_raised_holds_no_delivery() -> None:
    scene = Scene()
    delivery = scene.send()
    assert delivery is not None
    batch = delivery.place[0]
    batch.settle(-1, -1, BufferFull("no room", where="t"))
    for _ in range(2):
        with pytest.raises(BufferFull, match="t: no room"):
            delivery.outcome()
    assert isinstance(delivery.exception(), BufferFull)
    assert batch.failure is not None
    assert batch.failure.__traceback__ is None
    assert batch.failure is not delivery.exception()


def test_lanes_have_one_batch_out_when_one_request_is_allowed() -> None:
    assert [lane.one_at_a_time for lane in Scene(2, max_in_flight=1).inside.topics["t"].lanes] == [True, True]
    assert [lane.one_at_a_time for lane in Scene(2).inside.topics["t"].lanes] == [False, False]
