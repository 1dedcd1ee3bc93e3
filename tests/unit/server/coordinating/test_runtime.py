"""The runtime of coordinators, shown with a second kind of them: what leaves when, what is lost with a shard, epochs.

One broker on files in memory leads; its followers are toys that have what the test says they have.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock.server.coordinating
from penstock.kernels import read_header
from penstock.metadata.difference import delta_between
from penstock.metadata.image import ClusterImage
from penstock.model.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
    UNKNOWN_SERVER_ERROR,
)
from penstock.model.ids import Epoch, Millis, Offset
from penstock.protocol.batch import build_batch, read_records
from penstock.server.coordinating.home import Home
from penstock.server.coordinating.records import encode_batch
from penstock.server.coordinating.runtime import Runtime
from tests.unit.server.coordinating.desk import (
    Asker,
    Borrow,
    DeskKind,
    DeskShard,
    Inquire,
    Reply,
    Return,
    loan_record,
    refused,
    told,
)
from tests.walks.data_plane import batch_of
from tests.walks.houses import TOPIC, Street
from tests.walks.houses import walk as walk_in_street

ME, OTHER = 1, 2


class Desk:
    """The coordinator of the first house, on the one partition of its topic."""

    def __init__(self, street: Street, **said: Any) -> None:
        self.street, self.house = street, street[ME]
        self.kind = DeskKind(TOPIC, **said)
        self.runtime = Runtime(self.kind, self.house.me, self.house.partitions, street.clock, make_topic=_nobody)

    @property
    def home(self) -> Home[DeskShard]:
        return self.runtime._homes[0]

    @property
    def shard(self) -> DeskShard:
        shard = self.home.shard
        assert shard is not None
        return shard

    @property
    def epoch(self) -> int:
        return self.street.image.topics[next(iter(self.street.image.topics))].partitions[0].leader_epoch

    async def publish(self) -> None:
        """The house takes the image, roles first, as a node does; then the work that follows is done."""
        house, image = self.house, self.street.image.copy()
        before, house.image = house.image, image
        delta = delta_between(before, image)
        house.partitions.publish(image, delta)
        self.runtime.follow(image, delta)
        await house.partitions.taken_up()
        await self.rest()

    async def rest(self) -> None:
        await asyncio.sleep(0)
        while len(self.runtime._chores):
            await asyncio.sleep(0)

    async def led_by(self, node: int) -> None:
        """A leader in the next epoch: another one, or the same."""
        self.street.change(leader=node)
        await self.publish()

    async def replicated(self) -> None:
        """The followers have all that the log holds."""
        log = self.house.hosted().require_log()
        for node in (2, 3):
            await self.house.fetch(log.written, replica=node)

    def ask(self, request: Any, name: str = "tests") -> asyncio.Future[Reply]:
        thing: str = request.thing
        return _future(self.runtime.ask(thing, request, Asker(name), refused))

    def announcing(self) -> list[tuple[int, str, int]]:
        return told(self.kind.carried)


async def _nobody(_topic: str) -> bool:
    return False


def _future(outcome: Any) -> asyncio.Future[Any]:
    if isinstance(outcome, asyncio.Future):
        return outcome
    done = asyncio.get_running_loop().create_future()
    done.set_result(outcome)
    return done


def walk(steps: Callable[[Desk], Coroutine[Any, Any, None]], **said: Any) -> None:
    async def opened(street: Street) -> None:
        desk = Desk(street, **said)
        await street.create()
        # Replicas that have nothing yet are in sync with a log that holds nothing.
        desk.house.image = ClusterImage()
        desk.runtime.follow(street.image, delta_between(ClusterImage(), street.image))
        desk.house.image = street.image.copy()
        await desk.rest()
        try:
            await steps(desk)
        finally:
            desk.runtime.close()

    walk_in_street(opened)


# -- what leaves when


def test_reply_and_effect_leave_when_the_followers_have_what_they_stand_on() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        await desk.rest()
        assert not lent.done()
        assert desk.announcing() == []
        await desk.replicated()
        assert await lent == Reply(NONE, 1, "ann")
        assert desk.announcing() == [(desk.epoch, "book", 1)]

    walk(steps)


def test_effects_leave_in_the_order_in_which_they_were_decided() -> None:
    async def steps(desk: Desk) -> None:
        lent = [desk.ask(Borrow(thing, "ann")) for thing in ("book", "pen", "cup")]
        await desk.replicated()
        await asyncio.gather(*lent)
        assert [thing for _, thing, _ in desk.announcing()] == ["book", "pen", "cup"]

    walk(steps)


def test_an_effect_outlasts_the_patience_of_whoever_asked() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        assert (await lent).error == COORDINATOR_NOT_AVAILABLE
        assert desk.announcing() == []
        await desk.replicated()
        assert desk.announcing() == [(desk.epoch, "book", 1)]

    walk(steps, timeout_ms=1)


def test_what_only_reads_is_shown_when_it_is_committed_and_told_what_is() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        shown = desk.ask(Inquire("book"))
        assert not shown.done()
        await desk.replicated()
        assert await shown == Reply(NONE, 1, "ann", settled=False), "as it was when it was looked at"
        assert await desk.ask(Inquire("book")) == Reply(NONE, 1, "ann", settled=True)

    walk(steps)


def test_the_shard_says_what_can_be_served_while_the_log_cannot_be_written() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        await lent
        state, shard = desk.house.hosted().state, desk.shard
        state.min_isr, state.isr = 2, frozenset({desk.house.me})
        assert (await desk.ask(Inquire("book"))).borrower == "ann"
        assert (await desk.ask(Return("book", 1))).error == COORDINATOR_NOT_AVAILABLE
        assert (await desk.ask(Borrow("pen", "ann"))).error == COORDINATOR_NOT_AVAILABLE
        assert desk.shard is shard, "nothing was lost"

    walk(steps)


# -- who waits


def test_a_request_is_held_back_until_another_decision_answers_it() -> None:
    async def steps(desk: Desk) -> None:
        first, second = desk.ask(Borrow("book", "ann")), desk.ask(Borrow("book", "bob"))
        await desk.replicated()
        assert (await first).number == 1
        assert not second.done()
        returned = desk.ask(Return("book", 1))
        await desk.rest()
        assert not second.done(), "the loan to bob is not committed"
        await desk.replicated()
        assert (await returned).error == NONE
        assert await second == Reply(NONE, 2, "bob")
        assert desk.announcing() == [(desk.epoch, "book", 1), (desk.epoch, "book", 2)]

    walk(steps)


@pytest.mark.parametrize("careless", [False, True])
def test_whoever_waits_is_told_when_the_shard_goes_even_by_a_shard_that_forgets_them(careless: bool) -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        waiting = [desk.ask(Borrow("book", name)) for name in ("bob", "cid")]
        await desk.replicated()
        await desk.led_by(OTHER)
        assert [(await each).error for each in waiting] == [NOT_COORDINATOR] * 2
        assert (await desk.ask(Inquire("book"))).error == NOT_COORDINATOR

    walk(steps, careless=careless)


def test_whoever_waits_is_told_when_the_shard_breaks_even_if_it_breaks_again_on_its_way_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        waiting = desk.ask(Borrow("book", "bob"))
        broken: Any = desk.shard
        broken.apply = broken.unload = _fails
        assert (await desk.ask(Borrow("pen", "ann"))).error == UNKNOWN_SERVER_ERROR
        assert (await waiting).error == NOT_COORDINATOR
        await desk.rest()
        assert desk.shard is not broken
        assert desk.shard.loans["pen"].borrower == "ann", "it is in the log"

    walk(steps)
    assert "the loans of partition 0 are loaded again" in caplog.text


def _fails(*_: object) -> Any:
    raise ValueError("broken")


# -- what is lost with the shard


def test_an_effect_that_is_not_committed_is_lost_with_the_shard_and_decided_again_by_the_next_one() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        broken: Any = desk.shard
        broken.decide = _fails
        await desk.ask(Inquire("book"))
        await desk.rest()
        assert desk.shard is not broken
        assert desk.announcing() == []
        await desk.replicated()
        assert (await lent).number == 1, "the record came true, and so does the reply"
        assert desk.announcing() == [(desk.epoch, "book", 1)], "once: by the shard that read it in the log"

    walk(steps)


def test_an_effect_that_is_not_committed_does_not_leave_a_node_that_leads_no_longer() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        await desk.led_by(OTHER)
        assert (await lent).error == NOT_COORDINATOR
        await desk.led_by(ME)
        assert desk.announcing() == []
        await desk.replicated()
        assert desk.announcing() == [(desk.epoch, "book", 1)]

    walk(steps)


def test_what_was_announced_is_not_announced_again_by_the_next_shard() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        epoch = Epoch(desk.epoch)
        assert desk.runtime.tell(0, epoch, lambda shard, _now: shard.announced("book", 1))
        await desk.replicated()
        await desk.led_by(OTHER)
        await desk.led_by(ME)
        await desk.replicated()
        assert desk.announcing() == [(epoch, "book", 1)]

    walk(steps)


def test_what_becomes_of_an_effect_is_heard_only_in_its_epoch_and_while_the_log_can_be_written() -> None:
    async def steps(desk: Desk) -> None:
        def tell(epoch: int) -> bool:
            return desk.runtime.tell(0, Epoch(epoch), lambda shard, _now: shard.announced("book", 1))

        desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        state = desk.house.hosted().state
        in_sync, state.isr, state.min_isr = state.isr, frozenset({desk.house.me}), 2
        assert not tell(desk.epoch), "not now"
        state.isr = in_sync
        former = desk.epoch
        await desk.led_by(ME)
        assert not tell(former)
        assert not desk.shard.loans["book"].announced
        assert tell(desk.epoch)
        assert desk.shard.loans["book"].announced
        assert not desk.runtime.tell(7, Epoch(desk.epoch), lambda _shard, _now: _fails()), "nobody lives there"

    walk(steps)


# -- another epoch of the same leader


def test_a_leader_that_leads_on_keeps_its_shard_and_whoever_waits_in_it() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        waiting = desk.ask(Borrow("book", "bob"))
        await desk.replicated()
        shard, first = desk.shard, desk.epoch
        await desk.led_by(ME)
        assert desk.shard is shard
        assert shard.epochs == [first, first + 1]
        assert desk.home.epoch == first + 1
        assert not waiting.done()
        desk.ask(Return("book", 1))
        await desk.replicated()
        assert (await waiting).number == 2

    walk(steps)


def test_effects_of_a_former_epoch_are_void_and_decided_again_in_the_new_one() -> None:
    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        await desk.led_by(ME)
        assert desk.kind.given_up == [0]
        assert desk.announcing() == []
        await desk.replicated()
        assert (await lent).number == 1
        assert desk.announcing() == [(desk.epoch, "book", 1)], "once, and by the epoch of now"
        await desk.led_by(ME)
        assert desk.announcing()[1:] == [(desk.epoch, "book", 1)], "others know this desk by its epoch"

    walk(steps)


def test_what_the_new_epoch_itself_commits_is_let_out_in_the_new_epoch_alone() -> None:
    """The partition takes its role first; with fewer in sync its log may be committed before the desk hears of it."""

    async def steps(desk: Desk) -> None:
        lent = desk.ask(Borrow("book", "ann"))
        desk.street.change(leader=ME, isr=[ME])
        await desk.publish()
        assert (await lent).number == 1
        assert desk.announcing() == [(desk.epoch, "book", 1)]
        assert desk.epoch == 1

    walk(steps)


def test_a_change_of_the_partition_that_is_no_new_epoch_says_nothing_to_the_shard() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        epochs, carried = list(desk.shard.epochs), desk.announcing()
        desk.street.change(isr=[1, 2])
        await desk.publish()
        assert (desk.shard.epochs, desk.announcing(), desk.kind.given_up) == (epochs, carried, [])

    walk(steps)


def test_a_shard_that_is_loading_is_told_the_newest_epoch_and_lets_its_effects_out_in_no_other() -> None:
    async def steps(desk: Desk) -> None:
        for number in range(3):
            desk.ask(Borrow(f"thing-{number}", "ann"))
        await desk.replicated()
        desk.kind.carried.clear()
        await desk.led_by(OTHER)
        desk.street.change(leader=ME)
        house, image = desk.house, desk.street.image.copy()
        delta = delta_between(house.image, image)
        house.image = image
        house.partitions.publish(image, delta)
        desk.runtime.follow(image, delta)
        home = desk.home
        while home.shard is None or not home.shard.epochs:
            assert home._step(), "it is loading"
        assert home.is_loading, "it has begun to decide what has to leave"
        await desk.led_by(ME)
        await desk.replicated()
        assert home.shard.epochs == [desk.epoch - 1, desk.epoch]
        in_force = [number for epoch, _, number in desk.announcing() if epoch == desk.epoch]
        assert len(in_force) == 3
        assert len(set(desk.announcing())) == len(desk.announcing())

    walk(steps)


def test_a_shard_that_could_not_be_loaded_is_loaded_again_in_the_next_epoch(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        await desk.led_by(OTHER)
        reader, desk.kind.reader = desk.kind.reader, None  # type: ignore[assignment]
        await desk.led_by(ME)
        assert desk.home.failed
        assert (await desk.ask(Inquire("book"))).error == NOT_COORDINATOR
        desk.kind.reader = reader
        desk.street.change(isr=[1, 2])
        await desk.publish()
        assert (await desk.ask(Inquire("book"))).borrower == "ann"

    walk(steps)
    assert "partition 0 of the topic of loans cannot be replayed" in caplog.text


def test_who_asks_while_the_shard_is_loaded_is_told_to_wait() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        desk.home._loading, desk.home._hurried = itertools.repeat(None), True
        assert (await desk.ask(Inquire("book"))).error == COORDINATOR_LOAD_IN_PROGRESS

    walk(steps)


def test_of_those_who_ask_in_one_turn_of_the_loop_one_alone_has_a_slice_of_loading_done_for_it() -> None:
    """A request about fifty partitions that are being loaded would else hold everybody up for fifty slices."""

    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann"))
        await desk.replicated()
        taken = 0

        def loading() -> Iterator[None]:
            nonlocal taken
            while taken < 3:
                taken += 1
                yield

        desk.home._loading = loading()
        assert desk.runtime.may_hurry(), "somebody asks another partition first"
        assert (await desk.ask(Inquire("book"))).error == COORDINATOR_LOAD_IN_PROGRESS
        assert taken == 0
        await asyncio.sleep(0)
        assert (await desk.ask(Inquire("book"))).borrower == "ann"
        assert taken == 3

    walk(steps)


# -- time


def test_timers_fire_on_the_leader_alone() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann", for_ms=500))
        await desk.replicated()
        desk.street.clock.advance(499)
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 0
        await desk.led_by(OTHER)
        desk.street.clock.advance(10_000)
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 0
        await desk.led_by(ME)
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 0, "a loan that was read in the log has its whole time from now on"
        desk.street.clock.advance(500)
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 1
        assert desk.shard.loans["book"].borrower == ""

    walk(steps)


def test_a_timer_waits_for_a_log_that_can_be_written() -> None:
    async def steps(desk: Desk) -> None:
        desk.ask(Borrow("book", "ann", for_ms=500))
        await desk.replicated()
        state, shard = desk.house.hosted().state, desk.shard
        in_sync, state.isr, state.min_isr = state.isr, frozenset({desk.house.me}), 2
        desk.street.clock.advance(600)
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 0
        state.isr = in_sync
        desk.runtime._tick()
        await desk.rest()
        assert desk.kind.expired == 1
        assert desk.shard is shard

    walk(steps)


# -- transactions in the topic


def transactional(producer_id: int, thing: str, number: int) -> bytearray:
    plain = encode_batch([loan_record(thing, number, "tx", 9, announced=True)], Millis(1_700_000_000_000), 0)
    return bytearray(
        build_batch(read_records(plain), producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    )


def test_a_record_of_a_transaction_is_pending_after_a_load_until_its_marker_is_written() -> None:
    async def steps(desk: Desk) -> None:
        hosted = desk.house.hosted()
        batch = transactional(9, "book", 7)
        hosted.append(batch, read_header(batch), -1, desk.street.clock.now_ms())
        await desk.led_by(OTHER)
        await desk.led_by(ME)
        assert desk.shard.loans == {}
        assert list(desk.shard.pending) == [9]
        end = Offset(hosted.require_log().written)
        desk.runtime.marked(0, 9, committed=True, end=end)
        assert desk.shard.loans["book"].number == 7
        shown = desk.ask(Inquire("book"))
        assert not shown.done(), "the marker is not committed"
        await desk.replicated()
        assert (await shown).number == 7

    walk(steps)


# -- finding


def test_every_key_has_its_home_and_the_runtime_says_no_for_those_of_others() -> None:
    async def steps(desk: Desk) -> None:
        assert desk.runtime.home_of("book") == 0
        await desk.led_by(OTHER)
        assert (await desk.ask(Borrow("book", "ann"))).error == NOT_COORDINATOR
        assert list(desk.runtime) == []

    walk(steps)


def test_records_that_nobody_can_read_keep_the_shard_from_being_loaded(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(desk: Desk) -> None:
        hosted = desk.house.hosted()
        batch = bytearray(batch_of(b"\0\0rubbish", key=b"\0\0\0\x7f"))
        hosted.append(batch, read_header(batch), -1, desk.street.clock.now_ms())
        await desk.led_by(OTHER)
        await desk.led_by(ME)
        assert desk.home.failed

    walk(steps)
    assert "cannot be replayed" in caplog.text


# -- generic


GENERIC = ("runtime.py", "home.py", "kind.py", "loading.py", "promise.py", "records.py", "chores.py", "topic.py")
ITS_OWN = {"penstock.protocol.messages.create_topics"}  # what it asks itself, whoever it runs


@pytest.mark.parametrize("name", GENERIC)
def test_the_runtime_knows_no_kind_of_coordinator_and_no_api(name: str) -> None:
    tree = ast.parse((Path(penstock.server.coordinating.__file__).parent / name).read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = ("penstock.coordinators.groups", "penstock.protocol.messages", "penstock.protocol.disk", "reception")
    assert not [module for module in imported - ITS_OWN if any(each in module for each in foreign)]
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    words |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    words |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not [word for word in words if "group" in word.lower() or "offsets" in word.lower() or "api_key" in word]
