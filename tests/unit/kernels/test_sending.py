"""The straight way of a record: which batch takes it, what is given for it, and when the way is not straight."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from collections import deque
from types import ModuleType
from typing import Any

import pytest

NOW_NS = 1_700_000_000_123_999_999
NOW_MS = 1_700_000_000_123


class Scene:
    """A desk with the topic "t"; its first two partitions have open batches, the first is sticky."""

    def __init__(self, twin: ModuleType, limit_bytes: int = 1_000) -> None:
        self.twin = twin
        self.desk = twin.Desk()
        self.topic = twin.OpenTopic()
        self.topic.lanes = [self.lane(limit_bytes), self.lane(limit_bytes), self.lane(None)]
        self.topic.sticky = self.topic.lanes[0]
        self.topic.choose = None
        self.desk.topics = {"t": self.topic}
        self.desk.waiting = deque()
        self.desk.stamp_by(lambda: NOW_NS)

    def lane(self, limit_bytes: int | None) -> Any:
        lane = self.twin.OpenLane()
        lane.open = None
        if limit_bytes is not None:
            lane.open = self.twin.OpenBatch()
            lane.open.builder = self.twin.RecordsBuilder(limit_bytes)
            lane.open.callbacks = []
        return lane

    def send(self, value: Any = b"v", key: Any = None, partition: Any = None, **more: Any) -> Any:
        topic = more.get("topic", "t")
        rest = (more.get("timestamp"), more.get("headers", ()), more.get("callback"))
        return self.desk.hand_in(topic, value, key, partition, *rest)

    def counts(self) -> list[int]:
        return [lane.open.builder.count for lane in self.topic.lanes if lane.open is not None]


@pytest.fixture
def scene(client_twin: ModuleType) -> Scene:
    return Scene(client_twin)


def where(place: Any) -> tuple[Any, int, int]:
    return place._home, place._index, place._timestamp


def test_a_record_without_a_key_goes_to_the_sticky_batch_and_is_stamped(scene: Scene) -> None:
    first, second = scene.send(), scene.send(timestamp=5)
    batch = scene.topic.sticky.open
    assert where(first) == (batch, 0, NOW_MS)
    assert where(second) == (batch, 1, 5)
    assert (batch.builder.base_timestamp, batch.builder.count) == (NOW_MS, 2)


def test_the_bytes_are_those_that_the_builder_itself_writes(scene: Scene) -> None:
    rows = [(7, None, b"v", ()), (8, None, "ü", [("h", b"x"), ("n", None)]), (9, None, None, None)]
    expected = scene.twin.RecordsBuilder(1_000)
    for timestamp, key, value, headers in rows:
        assert scene.send(value, key, timestamp=timestamp, headers=headers) is not None
        expected.append(timestamp, key, value, headers)
    assert bytes(scene.topic.sticky.open.builder.payload()) == bytes(expected.payload())


def test_a_key_goes_where_its_hash_says(scene: Scene) -> None:
    twin = scene.twin
    for key in (b"a", "b", bytearray(b"c"), b"", *(b"key-%d" % number for number in range(20))):
        lane = scene.topic.lanes[twin.partition_of(key, 3)]
        place = scene.send(key=key)
        assert (place is None) == (lane.open is None)
        assert place is None or place._home is lane.open


def test_a_partition_that_is_named_is_taken(scene: Scene) -> None:
    place = scene.send(key=b"k", partition=1)
    assert place._home is scene.topic.lanes[1].open
    assert scene.counts() == [0, 1]


def test_a_callback_is_kept_with_its_record(scene: Scene) -> None:
    scene.send()
    scene.send(timestamp=9, callback=print)
    assert scene.topic.sticky.open.callbacks == [(1, 9, print)]


@pytest.mark.parametrize(
    "record",
    [
        {"topic": "another"},
        {"partition": 2},  # no open batch
        {"partition": 3},
        {"partition": -1},
        {"partition": 1 << 70},
    ],
)
def test_nothing_happens_when_the_way_is_not_straight(scene: Scene, record: dict[str, Any]) -> None:
    assert scene.send(callback=print, **record) is None
    assert scene.counts() == [0, 0]


def test_nobody_overtakes_those_who_wait(scene: Scene) -> None:
    scene.desk.waiting.append("somebody")
    assert scene.send() is None
    scene.desk.waiting.clear()
    assert scene.send() is not None


def test_a_partitioner_of_the_callers_own_is_not_passed_over(scene: Scene) -> None:
    scene.topic.choose = lambda key, value: scene.topic.lanes[1]
    assert scene.send() is None


def test_a_full_batch_takes_nothing_more(client_twin: ModuleType) -> None:
    scene = Scene(client_twin, limit_bytes=30)
    assert scene.send(b"x" * 10) is not None
    assert scene.send(b"x" * 10, callback=print) is None
    assert scene.counts() == [1, 0]
    assert not scene.topic.sticky.open.callbacks


def test_a_sealed_batch_takes_nothing(scene: Scene) -> None:
    scene.topic.sticky.open.builder = None
    assert scene.send() is None


def test_no_lanes_take_nothing(scene: Scene) -> None:
    scene.topic.lanes, scene.topic.sticky = [], None
    assert scene.send() is None
    assert scene.send(key=b"k") is None


@pytest.mark.parametrize("record", [{"value": 1}, {"key": 1}, {"partition": "0"}, {"topic": []}, {"timestamp": "now"}])
def test_what_cannot_be_sent_is_a_type_error_and_leaves_no_trace(scene: Scene, record: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        scene.send(callback=print, **record)
    assert scene.counts() == [0, 0]
    assert not scene.topic.sticky.open.callbacks


def test_a_timestamp_of_more_than_64_bits_is_refused(scene: Scene) -> None:
    with pytest.raises(OverflowError):
        scene.send(timestamp=1 << 63)
    assert scene.counts() == [0, 0]


def test_the_place_is_of_the_kind_that_was_asked_for(scene: Scene) -> None:
    class Delivery(scene.twin.Place):  # type: ignore[name-defined, misc]
        __slots__ = ()

    scene.desk.deliver_as(Delivery)
    assert scene.desk.kind is Delivery
    assert type(scene.send()) is Delivery
    assert where(Delivery(scene, 3, 4)) == (scene, 3, 4)
    with pytest.raises(TypeError):
        scene.desk.deliver_as(dict)


def test_the_collector_does_not_look_into_compiled_places(scene: Scene) -> None:
    class Delivery(scene.twin.Place):  # type: ignore[name-defined, misc]
        __slots__ = ()

    scene.desk.deliver_as(Delivery)
    assert gc.is_tracked(scene.send()) == (scene.twin.IMPLEMENTATION == "pure")
    assert gc.is_tracked(Delivery(scene, 0, 0))


def test_places_let_go_of_their_batch_and_of_their_kind(scene: Scene) -> None:
    class Delivery(scene.twin.Place):  # type: ignore[name-defined, misc]
        __slots__ = ()

    scene.desk.deliver_as(Delivery)
    batch = scene.topic.sticky.open
    before = sys.getrefcount(batch), sys.getrefcount(Delivery)
    places = [scene.send(b"") for _ in range(20)]
    assert sys.getrefcount(batch) == before[0] + 20
    assert not any(place is None for place in places)
    del places
    assert (sys.getrefcount(batch), sys.getrefcount(Delivery)) == before


def front_of(scene: Scene) -> Any:
    class Front(scene.twin.SendFront[Any, Any]):  # type: ignore[name-defined, misc]
        def _send_slowly(self, *record: Any) -> Any:
            return record

    return Front()


def test_a_front_sends_by_its_desk_and_slowly_without(scene: Scene) -> None:
    front = front_of(scene)
    assert front.send("t", b"v", key=b"k") == ("t", b"v", b"k", None, None, (), None)
    front._desk = scene.desk
    assert front.send("t", b"v", timestamp=3)._timestamp == 3
    slowly = front.send("t", partition=2, headers=[("h", None)], on_delivery=print)
    assert slowly == ("t", None, None, 2, None, [("h", None)], print)


def test_a_shared_front_holds_the_lock_while_it_appends_and_at_no_other_time(scene: Scene) -> None:
    front, lock, held = front_of(scene), threading.Lock(), []

    def now_ns() -> int:
        held.append(lock.locked())
        return NOW_NS

    scene.desk.stamp_by(now_ns)
    front._share(lock)
    front._desk = scene.desk
    front.send("t", b"v")
    with pytest.raises(TypeError):
        front.send("t", 1)
    assert front.send("other")[0] == "other"
    assert held == [True, True]
    assert not lock.locked()


WRONG = [
    ({"topic": b"t"}, "topic: expected text, got bytes"),
    ({"value": 5}, "value: expected bytes, text or None, got int"),
    ({"value": [1]}, "value: expected bytes, text or None, got list"),
    ({"key": 1.5}, "key: expected bytes, text or None, got float"),
    ({"partition": "0"}, "partition: expected a whole number or None, got str"),
    ({"timestamp": 1.5}, "timestamp: expected a whole number or None, got float"),
    ({"headers": 5}, "headers: expected a list of (name, value) pairs, got int"),
    ({"headers": {"ab": b"x"}}, "headers: expected a list of (name, value) pairs, got dict"),
    ({"headers": (pair for pair in [("h", b"x")])}, "headers: expected a list of (name, value) pairs, got generator"),
    ({"headers": [("h", b"x"), 1]}, "headers[1]: expected a (name, value) pair, got int"),
    ({"headers": [("h", b"x", 1)]}, "headers[0]: expected a (name, value) pair, got tuple"),
    ({"headers": [(b"h", b"x")]}, "headers[0]: expected text for its name, got bytes"),
    ({"headers": [("h", 5)]}, "headers[0]: expected bytes, text or None for its value, got int"),
]


@pytest.mark.parametrize(("record", "words"), WRONG)
def test_a_front_says_which_argument_is_wrong_and_what_it_takes(
    scene: Scene, record: dict[str, Any], words: str
) -> None:
    front = front_of(scene)
    front._send_slowly = scene.desk.hand_in if "topic" not in record else _ask_for
    front._desk = scene.desk
    with pytest.raises(TypeError) as wrong:
        front.send(**{"topic": "t", **record})
    assert str(wrong.value) == words
    assert scene.counts() == [0, 0]


def _ask_for(topic: Any, *_: Any) -> Any:
    raise TypeError(f"nobody knows {topic}")


@pytest.mark.parametrize("raised", [TypeError("of a partitioner"), ValueError("of a partitioner")])
def test_a_front_leaves_an_error_alone_that_no_argument_explains(scene: Scene, raised: Exception) -> None:
    front = front_of(scene)

    def fail(*_: Any) -> Any:
        raise raised

    front._send_slowly = fail
    with pytest.raises(type(raised)) as found:
        front.send("t", b"v", key="k", partition=0, timestamp=1, headers=[("h", None)])
    assert found.value is raised


def test_twins_have_the_same_signature(client_twin: ModuleType) -> None:
    parameters = inspect.signature(client_twin.SendFront.send).parameters
    names = ["self", "topic", "value", "key", "partition", "timestamp", "headers", "on_delivery"]
    assert list(parameters) == names
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in names[3:])
    assert inspect.getdoc(client_twin.SendFront.send)
