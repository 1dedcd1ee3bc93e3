"""The machine of a transaction: its table, its two tables of reactions, and what it asks in which order."""

from __future__ import annotations

import pickle

import pytest

from penstock.client.cluster_view import GROUP as OF_GROUP
from penstock.client.cluster_view import TRANSACTION
from penstock.client.errors import (
    BrokerRefused,
    ClientError,
    NotAllowed,
    NotReachable,
    TimedOutWaiting,
    TransactionAbortable,
    TransactionFenced,
    refusal,
)
from penstock.client.producer.transactions import PreparedTransaction
from penstock.client.producer.transactions.effects import Adopt, Drain, FailAll, ForgetCoordinator, Release
from penstock.client.producer.transactions.machine import State
from penstock.client.producer.transactions.reactions import Api, Reaction, to_answers
from tests.unit.client.producer.transactions.life import (
    BUMPING,
    CLASSIC,
    EPOCH,
    P0,
    P1,
    PID,
    SOURCE,
    Life,
    asking,
    begun,
    in_state,
    job,
    opened,
    ready,
    reply_to,
)

LEVELS = pytest.mark.parametrize("level", [CLASSIC, BUMPING], ids=["classic", "bumping"])
SEVERED = NotReachable("the connection broke", retriable=True)

U, I, R, O, P, C, A, E, F = State  # noqa: E741 - one letter for each, as columns of the table


# -- states and calls

TABLE = {
    "initialise": {U: I, I: I, R: R, O: O, P: P, C: C, A: A, E: E, F: "raises"},
    "begin": {U: "raises", I: "raises", R: O, **dict.fromkeys((O, P, C, A, E, F), "raises")},
    "commit": {**dict.fromkeys((U, I, R, A, E, F), "raises"), O: C, P: C, C: C},
    "abort": {**dict.fromkeys((U, I, R, C, F), "raises"), O: A, P: A, A: A, E: A},
    "prepare": {**dict.fromkeys((U, I, R, C, A, E, F), "raises"), O: P, P: P},
    "add_offsets": {**dict.fromkeys((U, I, R, P, C, A, E, F), "raises"), O: O},
}


@pytest.mark.parametrize("call", TABLE)
@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
@LEVELS
def test_every_call_in_every_state(call: str, state: State, level: int) -> None:
    life = in_state(state, level)
    assert life.state is state
    arguments = [job()] if call == "add_offsets" else []
    expected = TABLE[call][state]
    if isinstance(expected, State):
        assert life.do(call, *arguments).state is expected
        return
    with pytest.raises(ClientError) as refused:
        life.do(call, *arguments)
    assert life.state is state
    if state in (State.ABORTABLE, State.FATAL):
        assert refused.value is life.machine.failure


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
@LEVELS
def test_a_batch_of_a_new_partition_goes_only_into_a_transaction(state: State, level: int) -> None:
    life = in_state(state, level)
    holds = state in (State.OPEN, State.PREPARED, State.COMMITTING)
    assert life.machine.admits(P1) is (holds and level == BUMPING)
    if state in (State.ABORTING, State.COMMITTING, State.OPEN):
        assert life.machine.admits(P0), "what is in the transaction may be sent again"


def test_words_say_what_to_do() -> None:
    with pytest.raises(ClientError, match=r"there is no transaction; begin\(\) one first"):
        ready(BUMPING).machine.check_open()
    with pytest.raises(TransactionAbortable, match=r"abort\(\), then begin again with everything"):
        in_state(State.ABORTABLE).machine.check_open()
    with pytest.raises(TransactionFenced, match="close this one, and make a new one"):
        in_state(State.FATAL).machine.check_open()


# -- the first table of reactions: answers of coordinators

ELSEWHERE, AGAIN, ABORTABLE, FATAL, UNINITIALIZED = (
    "elsewhere",
    "again",
    State.ABORTABLE,
    State.FATAL,
    State.UNINITIALIZED,
)
ALL, LATER = tuple(Api), tuple(api for api in Api if api is not Api.INIT)
CHANGES = (Api.ADD_PARTITIONS, Api.ADD_OFFSETS, Api.COMMIT_OFFSETS)

ANSWERS = [
    (15, ALL, ELSEWHERE),
    (16, ALL, ELSEWHERE),
    (51, ALL, AGAIN),
    (14, ALL, AGAIN),
    (3, (Api.ADD_PARTITIONS, Api.COMMIT_OFFSETS), AGAIN),
    (7, (Api.INIT, Api.ADD_PARTITIONS, Api.ADD_OFFSETS, Api.END), AGAIN),
    (7, (Api.COMMIT_OFFSETS,), ELSEWHERE),
    (90, LATER, FATAL),
    (47, LATER, FATAL),
    (48, LATER, FATAL),
    (49, LATER, FATAL),
    (53, LATER, FATAL),
    (53, (Api.INIT,), UNINITIALIZED),
    (50, (Api.INIT,), UNINITIALIZED),
    (59, LATER, ABORTABLE),
    (120, LATER, ABORTABLE),
    (29, CHANGES, ABORTABLE),
    (30, CHANGES, ABORTABLE),
    (55, (Api.ADD_PARTITIONS,), ABORTABLE),
    (25, (Api.COMMIT_OFFSETS,), ABORTABLE),
    (22, (Api.COMMIT_OFFSETS,), ABORTABLE),
    (82, (Api.COMMIT_OFFSETS,), ABORTABLE),
    (-1, LATER, FATAL),
]
ROWS = [
    pytest.param(level, code, api, expected, id=f"{'bumping' if level else 'classic'}-{api.value}-{code}")
    for level in (CLASSIC, BUMPING)
    for code, apis, expected in ANSWERS
    for api in apis
    if level == CLASSIC or api not in (Api.ADD_PARTITIONS, Api.ADD_OFFSETS)
]


@pytest.mark.parametrize(("level", "code", "api", "expected"), ROWS)
def test_what_an_answer_of_a_coordinator_leads_to(level: int, code: int, api: Api, expected: object) -> None:
    life = asking(level, api)
    before, sent = life.state, life.asked
    assert sent.api is api
    life.answer(code)
    if expected in (ELSEWHERE, AGAIN):
        assert life.state is before
        assert life.idle, "after a pause"
        forgets = ForgetCoordinator(sent.kind, sent.name) in life.effects
        assert forgets is (expected == ELSEWHERE)
        life.later()
        assert (life.asked.api, life.asked.request) == (api, sent.request), "the same again"
        return
    assert life.state is expected
    assert life.machine.failure is not None
    kind = {ABORTABLE: TransactionAbortable, FATAL: TransactionFenced if code in (90, 47, 48, 49) else ClientError}
    assert isinstance(life.machine.failure, kind.get(expected, ClientError))  # type: ignore[call-overload]
    if code == 53:
        assert isinstance(life.machine.failure, NotAllowed)


@pytest.mark.parametrize("code", [120, 59])
@LEVELS
def test_an_abort_that_is_refused_is_the_end(level: int, code: int) -> None:
    life = begun(level).do("abort").do("quiet").answer(code)
    assert life.state is State.FATAL


@LEVELS
def test_who_initialises_in_vain_may_try_again(level: int) -> None:
    life = asking(level, Api.INIT).answer(53)
    assert isinstance(life.machine.failure, NotAllowed)
    assert life.do("initialise").answer().state is State.READY
    assert life.machine.failure is None


def test_the_worst_of_many_partitions_decides() -> None:
    assert to_answers(Api.ADD_PARTITIONS, [0, 0]) is None
    assert to_answers(Api.ADD_PARTITIONS, [0, 55, 3])[0] is Reaction.AGAIN  # type: ignore[index]
    assert to_answers(Api.ADD_PARTITIONS, [55, 3, 29])[0] is Reaction.ABORT  # type: ignore[index]
    assert to_answers(Api.ADD_PARTITIONS, [29, 90, 16])[0] is Reaction.FENCED  # type: ignore[index]
    assert to_answers(Api.ADD_PARTITIONS, [55])[0] is Reaction.ABORT  # type: ignore[index]


# -- the second table of reactions: batches that failed

BATCHES = [
    (90, State.FATAL, TransactionFenced),
    (49, State.FATAL, TransactionFenced),
    (53, State.FATAL, NotAllowed),
    (31, State.FATAL, NotAllowed),
    (35, State.FATAL, BrokerRefused),
    (47, State.ABORTABLE, TransactionAbortable),
    (45, State.ABORTABLE, TransactionAbortable),
    (59, State.ABORTABLE, TransactionAbortable),
    (48, State.ABORTABLE, TransactionAbortable),
    (120, State.ABORTABLE, TransactionAbortable),
    (19, State.ABORTABLE, TransactionAbortable),
    (10, State.ABORTABLE, TransactionAbortable),
    (29, State.ABORTABLE, TransactionAbortable),
    (None, State.ABORTABLE, TransactionAbortable),
]


def failure_of(code: int | None) -> ClientError:
    return TimedOutWaiting("not delivered in time", retriable=True) if code is None else refusal(code, None, "out-0")


@pytest.mark.parametrize(("code", "state", "kind"), BATCHES)
@pytest.mark.parametrize("before", [State.OPEN, State.PREPARED, State.COMMITTING], ids=lambda state: state.name)
@LEVELS
def test_what_a_failed_batch_leads_to(
    level: int, before: State, code: int | None, state: State, kind: type[ClientError]
) -> None:
    life = in_state(before, level)
    failure = failure_of(code)
    life.do("batch_failed", failure)
    assert life.state is state
    assert isinstance(life.machine.failure, kind)
    if state is State.FATAL:
        assert FailAll(life.machine.failure) in life.effects
        return
    assert life.machine.failure.__cause__ is failure
    assert Drain(life.machine.failure) in life.effects, "nothing more of it is sent"
    life.do("abort").do("quiet").answer()
    if level == CLASSIC:
        assert (life.state, life.asked.api) == (State.INITIALIZING, Api.INIT)
        named = life.asked.request
        assert (named.producer_id, named.producer_epoch) == (PID, EPOCH)
        life.answer(producer_epoch=EPOCH + 1)
    assert life.state is State.READY
    assert life.machine.producer == (PID, EPOCH + 1)


@LEVELS
def test_what_fails_while_it_is_aborted_does_not_matter(level: int) -> None:
    life = in_state(State.ABORTING, level).do("batch_failed", failure_of(19))
    assert life.state is State.ABORTING
    life.do("quiet").answer()
    assert life.state in (State.READY, State.INITIALIZING)


# -- what is asked, and when


def test_classic_asks_for_partitions_before_they_are_written() -> None:
    life = opened(CLASSIC)
    assert not life.machine.admits(P0)
    assert not life.machine.admits(P1)
    life.do("tick")
    sent = life.asked
    assert (sent.api, sent.kind, sent.name, sent.newest) == (Api.ADD_PARTITIONS, TRANSACTION, "t", 3)
    assert [(topic.name, topic.partitions) for topic in sent.request.v3_and_below_topics] == [("out", [0, 1])]
    assert Release((P0, P1)) in life.answer().effects
    assert life.machine.admits(P0)
    life.do("commit")
    assert life.idle, "there are batches without an answer"
    life.do("quiet")
    assert (life.asked.api, life.asked.newest, life.asked.request.committed) == (Api.END, 4, True)
    life.answer()
    assert (life.state, life.machine.producer) == (State.READY, (PID, EPOCH))


def test_bumping_asks_nobody_before_the_end() -> None:
    life = opened(BUMPING)
    assert life.machine.admits(P0)
    life.do("commit").do("quiet")
    assert (life.asked.newest, life.asked.oldest) == (5, 5)
    life.answer()
    assert Adopt((PID, EPOCH + 1)) in life.effects  # type: ignore[arg-type]
    assert life.state is State.READY
    life.machine.take_outcome()


def test_an_epoch_that_is_used_up_goes_on_with_another_id() -> None:
    life = begun(BUMPING).do("commit").do("quiet").answer(producer_id=99, producer_epoch=0)
    assert life.machine.producer == (99, 0)


@pytest.mark.parametrize("end", ["commit", "abort"])
@LEVELS
def test_an_empty_transaction_is_ended_without_a_word(level: int, end: str) -> None:
    life = opened(level).do(end).do("quiet")
    assert life.idle
    assert life.state is State.READY
    life.machine.take_outcome()
    assert life.do("begin").state is State.OPEN


@LEVELS
def test_offsets_go_to_the_groups_coordinator(level: int) -> None:
    offsets = job()
    life = opened(level).do("add_offsets", offsets)
    if level == CLASSIC:
        assert (life.asked.api, life.asked.kind, life.asked.request.group_id) == (Api.ADD_OFFSETS, TRANSACTION, "g")
        life.answer()
    sent = life.asked
    assert (sent.api, sent.kind, sent.name) == (Api.COMMIT_OFFSETS, OF_GROUP, "g")
    assert (sent.newest, sent.oldest) == ((4, 3) if level == CLASSIC else (5, 5))
    assert (sent.request.generation_id, sent.request.member_id) == (4, "member")
    life.do("commit").do("quiet")
    assert life.asked is sent, "one at a time"
    life.answer()
    assert offsets.done
    assert life.asked.api is Api.END
    second = job()
    life.answer().machine.take_outcome()
    life.do("begin").do("add_offsets", second)
    assert life.asked.api is (Api.ADD_OFFSETS if level == CLASSIC else Api.COMMIT_OFFSETS), "each transaction anew"


def test_only_offsets_that_are_missing_are_sent_again() -> None:
    offsets = job()
    offsets.offsets[SOURCE._replace(partition=1)] = offsets.offsets[SOURCE]
    life = opened(BUMPING).do("add_offsets", offsets)
    reply = reply_to(life.asked)
    reply.topics[0].partitions[1].error_code = 14
    life.do("replied", life.asked, reply).later()
    assert [partition.partition_index for partition in life.asked.request.topics[0].partitions] == [1]


@LEVELS
def test_an_abort_drops_offsets_that_are_not_there_yet(level: int) -> None:
    offsets = job()
    life = opened(level).do("add_offsets", offsets).do("abort").do("quiet")
    assert isinstance(offsets.failure, TransactionAbortable)
    assert life.answer().asked.api is Api.END
    assert life.asked.request.committed is False


def test_the_markers_of_before_are_waited_for_only_briefly() -> None:
    life = asking(CLASSIC, Api.ADD_PARTITIONS).answer(51)
    assert life.machine.deadline() == life.now + 20
    life = begun(CLASSIC)
    life.machine.admits(P1)
    assert life.do("tick").answer(51).machine.deadline() == life.now + 100, "only the first"


# -- no answer


def lost(life: Life, *, reached: bool = True) -> Life:
    return life.do("unanswered", life.asked, SEVERED, reached=reached)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_after_an_end_without_an_answer_the_classic_protocol_takes_a_new_epoch(end: str) -> None:
    life = lost(begun(CLASSIC).do(end).do("quiet")).later().answer()
    assert (life.state, life.asked.api) == (State.INITIALIZING, Api.INIT)
    assert (life.asked.request.producer_id, life.asked.request.producer_epoch, life.asked.oldest) == (PID, EPOCH, 3)
    life.machine.take_outcome()  # the end itself is known
    with pytest.raises(ClientError):
        life.do("begin")
    assert life.answer(producer_epoch=EPOCH + 1).do("begin").state is State.OPEN


def test_an_end_that_was_not_even_sent_leaves_no_doubt() -> None:
    life = lost(begun(CLASSIC).do("commit").do("quiet"), reached=False).later().answer()
    assert (life.state, life.machine.producer) == (State.READY, (PID, EPOCH))


def test_with_epochs_that_rise_by_themselves_an_end_may_be_repeated() -> None:
    life = lost(begun(BUMPING).do("commit").do("quiet")).later().answer()
    assert (life.state, life.machine.producer) == (State.READY, (PID, EPOCH + 1))


def test_after_offsets_without_an_answer_the_classic_protocol_takes_a_new_epoch() -> None:
    life = lost(asking(CLASSIC, Api.COMMIT_OFFSETS)).later().answer().do("commit").do("quiet").answer()
    assert (life.state, life.asked.api) == (State.INITIALIZING, Api.INIT)


@pytest.mark.parametrize("api", [Api.ADD_PARTITIONS, Api.ADD_OFFSETS])
def test_an_addition_without_an_answer_is_made_sure_of_before_an_abort(api: Api) -> None:
    life = lost(asking(CLASSIC, api)).do("abort").do("quiet").later()
    assert life.asked.api is api
    assert life.answer().asked.api is Api.END


def test_an_addition_that_was_not_made_leaves_nothing_to_abort() -> None:
    life = lost(asking(CLASSIC, Api.ADD_PARTITIONS)).do("abort").do("quiet").later().answer(29)
    assert (life.state, life.asked.api) == (State.INITIALIZING, Api.INIT), "and a late copy of it must not come true"


def test_a_new_epoch_is_refused_to_whoever_was_replaced_and_the_commit_stays_one() -> None:
    life = lost(begun(CLASSIC).do("commit").do("quiet")).later().answer().answer(90)
    assert life.state is State.FATAL
    life.do("commit").machine.take_outcome()
    with pytest.raises(TransactionFenced):
        life.do("begin")


def test_a_broker_that_is_too_old_is_no_use() -> None:
    old = refusal(35, "EndTxn 5 is needed", "broker")
    life = begun(BUMPING).do("commit").do("quiet")
    life.do("unanswered", life.asked, old, reached=False).later()
    assert life.do("unanswered", life.asked, old, reached=False).state is State.FATAL


def test_a_coordinator_that_has_become_too_old_is_looked_for_once_more() -> None:
    """Its node went back to a release without transactions, and somebody else coordinates by now."""
    old = refusal(35, "the broker does not serve EndTxn", "broker")
    life = begun(CLASSIC).do("commit").do("quiet")
    life.do("unanswered", life.asked, old, reached=False)
    assert any(isinstance(effect, ForgetCoordinator) for effect in life.effects)
    life.later().answer()
    life.machine.take_outcome()
    assert life.state is State.READY


# -- levels


def test_the_first_transaction_of_the_other_kind_has_a_new_epoch() -> None:
    life = begun(CLASSIC)
    life.machine.levels(BUMPING)
    life.machine.admits(P1)
    assert life.do("tick").asked.api is Api.ADD_PARTITIONS, "it goes on as it began"
    life.answer().do("commit").do("quiet")
    assert life.asked.newest == 4
    assert life.answer().asked.api is Api.INIT
    assert life.answer(producer_epoch=EPOCH + 1).state is State.READY
    assert life.machine.bumping


def test_a_level_that_falls_counts_from_the_next_transaction_on() -> None:
    life = begun(BUMPING)
    life.machine.levels(CLASSIC)
    life.do("commit").do("quiet")
    assert life.asked.newest == 5
    life.answer().machine.take_outcome()
    assert (life.state, life.machine.bumping) == (State.READY, False)
    life.do("begin")
    assert not life.machine.admits(P0)


# -- calls that were given up, and transactions that others end


@pytest.mark.parametrize(("call", "other"), [("commit", "abort"), ("abort", "commit")])
@LEVELS
def test_a_call_that_was_given_up_is_made_again_and_no_other(level: int, call: str, other: str) -> None:
    life = begun(level).do(call)
    for refused in (other, "begin", "prepare"):
        with pytest.raises(ClientError, match=rf"{call}\(\) was not waited for"):
            life.do(refused)
    life.do("quiet").answer()
    with pytest.raises(ClientError, match="to learn how it ended"):
        life.do("begin")
    life.do(call).machine.take_outcome()
    with pytest.raises(ClientError, match="there is no transaction"):
        life.do(call)
    assert life.do("begin").state is State.OPEN


@LEVELS
def test_what_is_prepared_names_everything_that_its_end_needs(level: int) -> None:
    life = begun(level).do("prepare")
    assert life.machine.prepared is None, "there are batches without an answer"
    life.do("quiet")
    prepared = life.machine.prepared
    assert prepared == PreparedTransaction("t", PID, EPOCH, level)
    assert PreparedTransaction.loads(prepared.dumps()) == prepared == pickle.loads(pickle.dumps(prepared))
    assert life.idle
    assert life.do("commit").asked.api is Api.END, "it is flushed already"


def test_a_prepared_transaction_without_anything_in_it_says_so() -> None:
    life = opened(BUMPING).do("prepare").do("quiet")
    assert life.machine.prepared is not None
    assert life.machine.prepared.empty


@pytest.mark.parametrize("text", ['{"transactional_id": "t"}', "[]", "7", "nothing", '{"other": 1}'])
def test_what_is_no_prepared_transaction_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"this is no prepared transaction"):
        PreparedTransaction.loads(text)
