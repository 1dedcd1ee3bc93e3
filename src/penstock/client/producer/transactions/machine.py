"""The life of a transactional producer, pure: calls and answers in, requests and orders to the sender out.

The machine is level-triggered: an event changes what is known, then `_advance` asks for whatever is missing, one
request at a time, in this order: a producer id, partitions and offsets into the transaction, its end.

| | UNINITIALIZED | INITIALIZING | READY | OPEN | PREPARED | COMMITTING | ABORTING | ABORTABLE | FATAL |
|---|---|---|---|---|---|---|---|---|---|
| `initialise` | INITIALIZING | | | | | | | | raises |
| `adopt` | READY | raises | raises | raises | raises | raises | raises | raises | raises |
| `begin` | raises | raises | OPEN | raises | raises | raises | raises | raises | raises |
| a batch wants to go | | | | yes¹ | yes¹ | yes¹ | if its partition is in | if its partition is in | no |
| `commit` | raises | raises² | raises² | COMMITTING | COMMITTING | goes on | raises | raises | raises |
| `abort` | raises | raises² | raises² | ABORTING | ABORTING | raises | goes on | ABORTING | raises |
| `prepare` | raises | raises | raises | PREPARED | goes on | raises | raises | raises | raises |
| `add_offsets` | raises | raises | raises | asked for | raises | raises | raises | raises | raises |
| `quiet` | | | | | may be told | EndTxn³ | EndTxn³ | | |
| InitProducerId is answered | | READY | | | | | | | |
| EndTxn is answered | | | | | | READY⁴ | READY⁴ | | |
| a batch failed, or an answer allows only an abort | | UNINITIALIZED | | ABORTABLE | ABORTABLE | ABORTABLE | ⁵ | | |
| fenced, or a failure for good | FATAL | FATAL⁶ | FATAL | FATAL | FATAL | FATAL | FATAL | FATAL | |

1 Classic: when the coordinator has added its partition; with `transaction.version` 2 at once.
2 Except that the outcome of the same call was not told yet because its caller gave up waiting.
3 When anything was added (classic) or tried (version 2); else the transaction has ended without anybody being asked.
4 INITIALIZING when a new epoch is needed first: in the classic protocol after a lost batch and after a request without
an answer (a late copy of it would end, fill or begin the next transaction), and before the first of version 2.
5 A refusal of the abort itself is FATAL; the rest does not matter any more.
6 Without a producer id of its own yet: UNINITIALIZED, for nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from penstock.client.cluster_view import GROUP, TRANSACTION
from penstock.client.errors import ClientError, TransactionAbortable, TransactionFenced, refusal
from penstock.client.producer.transactions.effects import (
    Adopt,
    Drain,
    Effect,
    FailAll,
    ForgetCoordinator,
    Release,
    Send,
)
from penstock.client.producer.transactions.messages import (
    ADD_OFFSETS_NEWEST,
    ADD_PARTITIONS_NEWEST,
    COMMIT_JOINING,
    COMMIT_MEMBER_SINCE,
    COMMIT_NEWEST,
    END_BUMPING,
    END_NEWEST,
    INIT_NAMING_SINCE,
    INIT_NEWEST,
    add_offsets,
    add_partitions,
    added,
    commit_offsets,
    committed,
    end,
    initialise,
)
from penstock.client.producer.transactions.prepared import BUMPING_VERSION, PreparedTransaction, ProducerEpoch
from penstock.client.producer.transactions.reactions import Api, Reaction, to_answer, to_answers, to_failed_batch
from penstock.client.retry import Backoff
from penstock.model.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_TRANSACTION_TIMEOUT,
    UNSUPPORTED_VERSION,
    ErrorCode,
    error_of,
)
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.client.consumer.offsets import GroupMetadata, OffsetAndMetadata

FIRST_ADD_PAUSE_MS: Final = 20
"""The markers of the transaction before are on their way; a usual pause would cost more than they do."""


class State(Enum):
    """Where a transactional producer is."""

    UNINITIALIZED = auto()  # has no producer id
    INITIALIZING = auto()
    READY = auto()
    OPEN = auto()  # records may be sent
    PREPARED = auto()  # all of it is with brokers, or about to be, and somebody will end it
    COMMITTING = auto()
    ABORTING = auto()
    ABORTABLE = auto()  # something of it is lost
    FATAL = auto()


HOLDS_RECORDS: Final = frozenset({State.OPEN, State.PREPARED, State.COMMITTING})
_ENDING: Final = {State.COMMITTING: "commit", State.ABORTING: "abort"}


@dataclass(slots=True, eq=False)
class OffsetsJob:
    """Offsets of a group on their way into the transaction; `offsets` is what is not there yet."""

    group: GroupMetadata
    offsets: dict[TopicPartition, OffsetAndMetadata]
    failure: ClientError | None = None

    @property
    def done(self) -> bool:
        return not self.offsets


class TransactionMachine:
    """Every event returns the effects to carry out, in order; a call that cannot be now raises `ClientError`."""

    def __init__(self, transactional_id: str, timeout_ms: int, backoff: Backoff) -> None:
        self.transactional_id, self._timeout_ms, self._backoff = transactional_id, timeout_ms, backoff
        self.state = State.UNINITIALIZED
        self.producer: ProducerEpoch | None = None
        self.bumping = False
        """Whether the transactions of now raise the epoch as they end (`transaction.version` 2)."""
        self.failure: ClientError | None = None
        self.asked: Send | None = None
        self._level = 0
        self._retry_at = 0.0
        self._failures = 0
        self._met_too_old = False  # by the last coordinator that was looked for
        self._effects: list[Effect] = []
        # A commit or abort whose outcome the application does not know yet, and whether it has succeeded.
        self._call = ""
        self._succeeded = False
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._added: set[tuple[str, int]] = set()
        self._wanted: dict[tuple[str, int], None] = {}
        self._groups: set[str] = set()
        self._jobs: list[OffsetsJob] = []
        self._begun = False  # the coordinator knows of it, or may
        self._quiet = False
        self._unsure: Send | None = None  # asked for an addition, and nobody knows whether it was made
        self._bump = False

    @property
    def where(self) -> str:
        return f"transactional id {self.transactional_id!r}"

    @property
    def ending(self) -> bool:
        """Whether a commit or abort is under way."""
        return self.state in _ENDING

    @property
    def prepared(self) -> PreparedTransaction | None:
        """The transaction for whoever ends it, once all of it is with brokers."""
        if self.state is not State.PREPARED or not self._quiet or self._jobs:
            return None
        assert self.producer is not None, "a transaction has a producer id"
        version = BUMPING_VERSION if self.bumping else 0
        return PreparedTransaction(self.transactional_id, *self.producer, version, empty=not self._begun)

    # Calls of the application.

    def initialise(self, now: float) -> list[Effect]:
        """Get a producer id, which fences whoever had it before and aborts what that one left open."""
        if self.state is State.FATAL:
            raise self._over()
        if self.state is State.UNINITIALIZED:
            self.state, self.failure = State.INITIALIZING, None
        return self._flush(now)

    def adopt(self, producer: ProducerEpoch, transaction_version: int, now: float) -> list[Effect]:
        """Go on with a producer id that another process was given for us: nobody is asked, and nobody is fenced."""
        self._check(State.UNINITIALIZED, "adopt")
        self._level, self.bumping = transaction_version, transaction_version >= BUMPING_VERSION
        self.state = State.READY
        self._adopt(producer)
        return self._flush(now)

    def begin(self, now: float) -> list[Effect]:
        self._check(State.READY, "begin")
        self._forget_transaction()
        self.state = State.OPEN
        return self._flush(now)

    def add_offsets(self, job: OffsetsJob, now: float) -> list[Effect]:
        """Takes a group's offsets into the transaction; the job is done when they are there, or has a failure."""
        self._check(State.OPEN, "send_offsets")
        self._jobs.append(job)
        return self._flush(now)

    def prepare(self, now: float) -> list[Effect]:
        """Flush and hold on. The coordinator's clock goes on."""
        if self.state is not State.PREPARED:
            self._check(State.OPEN, "prepare")
            self.state = State.PREPARED
            self._emit(Drain())
        return self._flush(now)

    def commit(self, now: float) -> list[Effect]:
        if self.state is State.COMMITTING or self._untold("commit"):
            return []
        if self.state is not State.PREPARED:
            self._check(State.OPEN, "commit")
        return self._end(State.COMMITTING, None, now)

    def abort(self, now: float) -> list[Effect]:
        if self.state is State.ABORTING or self._untold("abort"):
            return []
        if self.state not in (State.PREPARED, State.ABORTABLE):
            self._check(State.OPEN, "abort")
        why = TransactionAbortable("the transaction was aborted before this was sent", where=self.where)
        for job in self._jobs:
            job.failure = why
        self._jobs.clear()
        return self._end(State.ABORTING, why, now)

    def _end(self, state: State, why: ClientError | None, now: float) -> list[Effect]:
        quiet = self._quiet and self.state is State.PREPARED
        self.state, self._call, self._succeeded, self._quiet = state, _ENDING[state], False, quiet
        if not quiet:
            self._emit(Drain(why))
        return self._flush(now)

    def take_outcome(self) -> None:
        """The application learns how its commit or abort ended; raises if it did not do what it says."""
        assert not self.ending, "it has ended"
        self._call = ""
        if not self._succeeded:
            raise self._over()

    def check_open(self) -> None:
        """Whether records may be sent; ClientError says why not."""
        self._check(State.OPEN, "send")

    def _untold(self, call: str) -> bool:
        return self._call == call and self._succeeded

    def _check(self, wanted: State, call: str) -> None:
        if self.state in (State.ABORTABLE, State.FATAL):
            raise self._over()
        if self._call and (self.ending or self._succeeded):
            raise ClientError(
                f"{call}(): a {self._call}() was not waited for; call it again to learn how it ended", where=self.where
            )
        if self.state is not wanted:
            raise ClientError(f"{call}() cannot be now: {_WORDS[self.state]}", where=self.where)

    def _over(self) -> ClientError:
        assert self.failure is not None, "what ended it is known"
        return self.failure

    # Batches.

    def admits(self, partition: tuple[str, int]) -> bool:
        """Whether a batch of a partition may be sent now. If not, `tick` asks for it and `Release` names it."""
        if partition in self._added:
            return self.state is not State.FATAL
        if self.state not in HOLDS_RECORDS:
            return False
        if not self.bumping:
            self._wanted[partition] = None
            return False
        self._added.add(partition)
        self._begun = True
        return True

    def batch_failed(self, failure: ClientError, now: float) -> list[Effect]:
        """Records of the transaction were not delivered, and will not be."""
        reaction = to_failed_batch(failure)
        if self.state in HOLDS_RECORDS or self.state in (State.ABORTABLE, State.ABORTING):
            self._react(reaction, failure, None, now)
        return self._flush(now)

    def sequences_lost(self) -> None:
        """Batches were given up after they had been sent: the numbers that they had will never be filled."""
        self._bump = True

    def quiet(self, now: float) -> list[Effect]:
        """After `Drain`: every batch has its answer, and none will come."""
        self._quiet = True
        return self._flush(now)

    # Answers.

    def levels(self, transaction_version: int) -> None:
        """What `transaction.version` the cluster is at; it counts from the next transaction on."""
        self._level = transaction_version

    def replied(self, sent: Send, reply: Any, now: float) -> list[Effect]:
        self._answered(sent)
        self._met_too_old = False
        match sent.api:
            case Api.INIT:
                self._initialised(sent, reply, now)
            case Api.ADD_PARTITIONS:
                self._partitions_added(sent, dict(added(reply)), now)
            case Api.ADD_OFFSETS:
                self._group_added(sent, reply.error_code, now)
            case Api.COMMIT_OFFSETS:
                self._offsets_committed(sent, dict(committed(reply)), now)
            case Api.END:
                self._ended(sent, reply, now)
        return self._flush(now)

    def unanswered(self, sent: Send, failure: ClientError, now: float, *, reached: bool) -> list[Effect]:
        """No reply. Unless `reached` is False, nobody knows whether the request took effect."""
        self._answered(sent)
        if reached:
            self._doubt(sent)
        if failure.error is UNSUPPORTED_VERSION and not self._met_too_old:
            # It may be another release since it was found to coordinate, and somebody else coordinates by now.
            self._met_too_old = True
            self._react(Reaction.ELSEWHERE, failure, sent, now)
        elif failure.error is not None and not failure.retriable:
            self._react(to_answer(sent.api, failure.error), failure, sent, now)
        else:
            self._react(Reaction.ELSEWHERE if failure.retriable else Reaction.FATAL, failure, sent, now)
        return self._flush(now)

    def tick(self, now: float) -> list[Effect]:
        """Call at `deadline()`, and after batches were not admitted."""
        return self._flush(now)

    def deadline(self) -> float | None:
        """When `tick` has something to do, if nothing happens before."""
        return self._retry_at if self.asked is None and self._retry_at else None

    # Inside: asking.

    def _flush(self, now: float) -> list[Effect]:
        if self.asked is None and now >= self._retry_at:
            self._retry_at = 0.0
            self.asked = self._next_request()
            if self.asked is not None:
                self._emit(self.asked)
        effects, self._effects = self._effects, []
        return effects

    def _next_request(self) -> Send | None:
        state = self.state
        if state in HOLDS_RECORDS:
            if self._wanted:
                return self._add_partitions()
            if self._jobs:
                return self._add_offsets(self._jobs[0])
        if state in _ENDING and self._quiet:
            if self._unsure is not None:
                # Whether there is anything to abort hangs on it.
                return self._unsure
            if self._begun:
                return self._end_request(commits=state is State.COMMITTING)
            self._finish()
        if self.state is State.INITIALIZING:
            return self._init_request()
        return None

    def _init_request(self) -> Send:
        request = initialise(self.transactional_id, self._timeout_ms, self.producer)
        return self._of_transaction(Api.INIT, request, INIT_NEWEST, INIT_NAMING_SINCE if self.producer else 0)

    def _add_partitions(self) -> Send:
        request = add_partitions(self.transactional_id, self._named(), self._wanted)
        return self._of_transaction(Api.ADD_PARTITIONS, request, ADD_PARTITIONS_NEWEST)

    def _add_offsets(self, job: OffsetsJob) -> Send:
        group = job.group
        producer = self._named()
        if not self.bumping and group.group_id not in self._groups:
            request = add_offsets(self.transactional_id, producer, group.group_id)
            return self._of_transaction(Api.ADD_OFFSETS, request, ADD_OFFSETS_NEWEST)
        if self.bumping:
            self._begun = True
        newest = COMMIT_JOINING if self.bumping else COMMIT_NEWEST
        oldest = COMMIT_JOINING if self.bumping else COMMIT_MEMBER_SINCE if group.member_id else 0
        commit = commit_offsets(self.transactional_id, producer, group, job.offsets)
        return Send(Api.COMMIT_OFFSETS, commit, GROUP, group.group_id, newest, oldest)

    def _end_request(self, *, commits: bool) -> Send:
        request = end(self.transactional_id, self._named(), commits=commits)
        newest, oldest = (END_BUMPING, END_BUMPING) if self.bumping else (END_NEWEST, 0)
        return self._of_transaction(Api.END, request, newest, oldest)

    def _of_transaction(self, api: Api, request: Any, newest: int, oldest: int = 0) -> Send:
        return Send(api, request, TRANSACTION, self.transactional_id, newest, oldest)

    def _named(self) -> ProducerEpoch:
        assert self.producer is not None, "a transaction has a producer id"
        return self.producer

    # Inside: answers.

    def _answered(self, sent: Send) -> None:
        assert sent is self.asked, "one request at a time"
        self.asked = None

    def _doubt(self, sent: Send) -> None:
        if sent.api in (Api.ADD_PARTITIONS, Api.ADD_OFFSETS):
            self._unsure = sent
        if sent.api is not Api.INIT:
            self._bump = True

    def _initialised(self, sent: Send, reply: Any, now: float) -> None:
        if reply.error_code:
            self._refused(sent, error_of(reply.error_code), now)
            return
        self._failures = 0
        self.bumping = self._level >= BUMPING_VERSION
        self.state = State.READY
        self._adopt(ProducerEpoch(reply.producer_id, reply.producer_epoch))

    def _partitions_added(self, sent: Send, codes: Mapping[tuple[str, int], int], now: float) -> None:
        self._unsure = None
        worst = to_answers(sent.api, codes.values())
        if worst is not None:
            pause_ms = FIRST_ADD_PAUSE_MS if worst[1] is CONCURRENT_TRANSACTIONS and not self._begun else None
            self._refused(sent, worst[1], now, pause_ms)
            return
        self._failures = 0
        self._begun = True
        self._added.update(codes)
        for partition in codes:
            self._wanted.pop(partition, None)
        self._emit(Release(tuple(codes)))

    def _group_added(self, sent: Send, code: int, now: float) -> None:
        self._unsure = None
        if code:
            self._refused(sent, error_of(code), now)
            return
        self._failures = 0
        self._begun = True
        self._groups.add(sent.request.group_id)

    def _offsets_committed(self, sent: Send, codes: Mapping[TopicPartition, int], now: float) -> None:
        if self._jobs:  # an abort has dropped them
            job = self._jobs[0]
            for partition, code in codes.items():
                if not code:
                    job.offsets.pop(partition, None)
            if job.done:
                self._jobs.pop(0)
        worst = to_answers(sent.api, codes.values())
        if worst is not None:
            self._refused(sent, worst[1], now)
        else:
            self._failures = 0

    def _ended(self, sent: Send, reply: Any, now: float) -> None:
        if reply.error_code:
            self._refused(sent, error_of(reply.error_code), now)
            return
        self._failures = 0
        told = ProducerEpoch(reply.producer_id, reply.producer_epoch)
        self._finish(told if self.bumping and told.producer_id >= 0 else None)

    def _finish(self, told: ProducerEpoch | None = None) -> None:
        """The transaction is over; the next one may begin, after a new epoch if that is needed."""
        raised = not self.bumping and self._level >= BUMPING_VERSION
        bump = (self._bump and not self.bumping) or raised
        self.bumping = self._level >= BUMPING_VERSION
        self._forget_transaction()
        self._succeeded, self.failure = True, None
        self.state = State.INITIALIZING if bump else State.READY
        if told is not None:
            self._adopt(told)

    def _adopt(self, producer: ProducerEpoch) -> None:
        self.producer = producer
        self._emit(Adopt(producer))

    # Inside: errors.

    def _refused(self, sent: Send, error: ErrorCode, now: float, pause_ms: float | None = None) -> None:
        words = f"{sent.api.value} was refused"
        if error is INVALID_TRANSACTION_TIMEOUT:
            words = f"transaction_timeout_ms={self._timeout_ms} is more than brokers allow (transaction.max.timeout.ms)"
        failure = refusal(error.code, words, self.where)
        self._react(to_answer(sent.api, error), failure, sent, now, pause_ms)

    def _react(
        self, reaction: Reaction, failure: ClientError, sent: Send | None, now: float, pause_ms: float | None = None
    ) -> None:
        """`sent` is what was refused or got no answer; None when a batch failed."""
        if reaction in (Reaction.ELSEWHERE, Reaction.AGAIN):
            assert sent is not None, "only requests are made again"
            if reaction is Reaction.ELSEWHERE:
                self._emit(ForgetCoordinator(sent.kind, sent.name))
            self._failures += 1
            self._retry_at = now + (self._backoff.delay_ms(self._failures) if pause_ms is None else pause_ms)
            return
        self._failures = 0
        if self.state is State.INITIALIZING and (
            reaction in (Reaction.ABORT, Reaction.ABORT_AND_BUMP) or (self.producer is None and not _fences(reaction))
        ):
            self.state, self.failure = State.UNINITIALIZED, failure
        elif reaction in (Reaction.FENCED, Reaction.FATAL):
            self._break(self._fatal(reaction, failure))
        else:
            self._spoil(failure, sent, bump=reaction is Reaction.ABORT_AND_BUMP)

    def _spoil(self, failure: ClientError, sent: Send | None, *, bump: bool) -> None:
        self._bump = self._bump or bump
        if self.state is State.ABORTING:
            if sent is not None and sent.api is Api.END:
                self._break(self._fatal(Reaction.FATAL, failure))
            return
        if self.state is State.ABORTABLE:
            return
        self.failure = TransactionAbortable(
            f"{failure}; abort(), then begin again with everything that was in the transaction",
            where=self.where,
            retriable=False,
        )
        self.failure.__cause__ = failure
        self.state, self._call = State.ABORTABLE, ""
        self._drop_jobs()
        self._emit(Drain(self.failure))

    def _fatal(self, reaction: Reaction, failure: ClientError) -> ClientError:
        if not _fences(reaction):
            return failure
        fenced = TransactionFenced(
            f"{failure.why}: another producer has taken over, or the time of the transaction was over; "
            "close this one, and make a new one if it was not replaced on purpose",
            where=self.where,
            error=failure.error,
            retriable=False,
        )
        fenced.__cause__ = failure
        return fenced

    def _break(self, failure: ClientError) -> None:
        self.state, self.failure = State.FATAL, failure
        if not self._succeeded:
            self._call = ""
        self._retry_at = 0.0
        self._wanted.clear()
        self._drop_jobs()
        self._emit(FailAll(failure))

    def _drop_jobs(self) -> None:
        for job in self._jobs:
            job.failure = self.failure
        self._jobs.clear()

    def _emit(self, *effects: Effect) -> None:
        self._effects += effects


def _fences(reaction: Reaction) -> bool:
    return reaction is Reaction.FENCED


_WORDS: Final[Mapping[State, str]] = {
    State.UNINITIALIZED: "there is no transaction; begin() one first",
    State.INITIALIZING: "there is no transaction; begin() one first",
    State.READY: "there is no transaction; begin() one first",
    State.OPEN: "a transaction is open; commit() or abort() it first",
    State.PREPARED: "the transaction is prepared; commit() or abort() it here, or make a new producer after its end",
    State.COMMITTING: "the transaction is being committed",
    State.ABORTING: "the transaction is being aborted",
}
