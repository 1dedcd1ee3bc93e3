"""What a member of either protocol does: find the coordinator, run hooks one at a time, notice an idle application.

The machines are level-triggered: an event changes what is known, then `_advance` asks for whatever is missing. So an
event that comes twice, late or never costs a round trip and no state.

What both protocols share; each machine has the table of what it adds.

| | not started, or no topics | wanted | leaving | failed |
|---|---|---|---|---|
| `start`, `subscribe` | wanted when both were called | the subscription may be new | | |
| after any event | | `FindCoordinator` while there is none | `Revoke` all, farewell, `Ended` | all is lost |
| `coordinator_found` | | goes on with it | goes on with it | |
| `coordinator_missing` | | again after a pause, or failed | `Ended` when nothing is owned | |
| `coordinator_lost` | | looks for it again | no farewell | |
| `replied`, `unanswered` | | the machine's | of the farewell: `Ended`; else heartbeats go on | |
| `hook_done` | | what was revoked is no longer owned | the same | the same |
| `polled` | | an expired member joins again | | |
| max_poll_interval_ms without `polled` | | expired: farewell, everything is lost | | |
| `leave` | leaving | leaving | | leaving, without a farewell |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.client.consumer.group.assignors.subscription import NO_GENERATION, Assignor, by_topic
from penstock.client.consumer.group.effects import (
    Assign,
    Effect,
    Ended,
    Fail,
    FindCoordinator,
    Hook,
    LoseCoordinator,
    Revoke,
    Say,
    Send,
)
from penstock.client.errors import ClientError
from penstock.client.retry import Backoff
from penstock.model.ids import TopicPartition

NOTHING: frozenset[TopicPartition] = frozenset()
POLL_EXPIRED = "the application did not poll within max_poll_interval_ms"


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """What a machine needs to know of the consumer's settings; times in milliseconds."""

    group_id: str
    instance_id: str | None = None
    rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    assignors: Sequence[Assignor] = ()
    remote_assignor: str | None = None


@dataclass(slots=True)
class Counters:
    """Plain numbers, read when somebody asks for metrics."""

    joins: int = 0
    rebalances: int = 0
    failed_rebalances: int = 0
    heartbeats: int = 0
    partitions_assigned: int = 0
    partitions_revoked: int = 0
    partitions_lost: int = 0
    coordinator_changes: int = 0
    rebalance_ms_total: float = 0.0
    rebalance_ms_max: float = 0.0
    last_heartbeat_at: float = -1.0
    last_rebalance_at: float = -1.0


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders 0-3,7; users 1` for people; `none` when there are none."""
    topics = by_topic(partitions).items()
    return "; ".join(f"{topic} {_ranges(numbers)}" for topic, numbers in topics) or "none"


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


class GroupMember(ABC):
    """The shared half of both machines. Every public call returns the effects to carry out, in order.

    `owned` is what the application may read: partitions leave it after their `Revoke` is done, and are in it before
    their `Assign` begins. `generation` is the consumer protocol's member epoch as well; negative when not a member.
    """

    def __init__(self, settings: MemberSettings, backoff: Backoff) -> None:
        self.settings = settings
        self.owned: frozenset[TopicPartition] = NOTHING
        self.member_id = ""
        self.generation = NO_GENERATION
        self.counters = Counters()
        self.failure: ClientError | None = None
        self.expired = False
        self.ended = False
        self._topics: frozenset[str] = frozenset()
        self._pattern: str | None = None
        self._backoff = backoff
        self._failures = 0
        self._retry_at = 0.0
        self._effects: list[Effect] = []
        self._started = False
        self._coordinator = False
        self._finding = False
        self._hook: Hook | None = None
        self._hook_since = 0.0
        self._polled_at = 0.0
        self._leaving = False
        self._farewell: Send | None = None
        self._round_since: float | None = None

    # Events.

    def start(self, now: float) -> list[Effect]:
        self._started = True
        self._polled_at = now
        return self._flush(now)

    def subscribe(self, topics: frozenset[str], pattern: str | None, now: float) -> list[Effect]:
        """Topics by name, and the pattern they were found by, which only the consumer protocol sends on."""
        if (topics, pattern) != (self._topics, self._pattern):
            self._topics, self._pattern = topics, pattern
            self._subscription_changed()
        return self._flush(now)

    def polled(self, now: float) -> list[Effect]:
        """The application is alive."""
        self._polled_at = now
        if not self.expired:
            return []
        self.expired = False
        return self._flush(now)

    def coordinator_found(self, now: float) -> list[Effect]:
        self._finding = False
        self._coordinator = True
        self.counters.coordinator_changes += 1
        self._on_coordinator_found(now)
        return self._flush(now)

    def coordinator_missing(self, error: ClientError, now: float) -> list[Effect]:
        self._finding = False
        if error.retriable:
            self._back_off(now)
        else:
            self._fail(error)
        return self._flush(now)

    def coordinator_lost(self, why: str, now: float) -> list[Effect]:
        """The connection broke with nothing asked."""
        self._lose_coordinator(why, now)
        return self._flush(now)

    def replied(self, sent: Send, reply: Any, now: float) -> list[Effect]:
        if sent is self._farewell:
            self._end()
        elif self._leaving:
            self._on_answer_while_leaving(sent, reply)
        elif not self._over:
            self._take_reply(sent, reply, now)
        return self._flush(now)

    def unanswered(self, sent: Send, error: ClientError, now: float) -> list[Effect]:
        """No reply, and none will come."""
        if sent is self._farewell:
            self._end()
        elif self._leaving:
            self._on_answer_while_leaving(sent, None)
        elif not self._over:
            self._take_silence(sent, error, now)
        return self._flush(now)

    def hook_done(self, now: float) -> list[Effect]:
        hook, self._hook = self._hook, None
        assert hook is not None, "a hook is under way"
        if isinstance(hook, Revoke):
            self.owned -= hook.partitions
            self._on_revoked(hook, now)
        else:
            self._on_assigned(now)
        return self._flush(now)

    def leave(self, now: float) -> list[Effect]:
        """Give everything up and go. The last effect is `Ended`."""
        self._leaving = True
        return self._flush(now)

    def tick(self, now: float) -> list[Effect]:
        """Call at `deadline()` or any time."""
        return self._flush(now)

    def deadline(self) -> float | None:
        """When `tick` has something to do, if nothing happens before."""
        if self._over or not self._wanted or (self._leaving and self._hook is None):
            return None
        return min(self._beats_at() if self._leaving else self._deadlines(), default=None)

    # What the protocols add.

    @abstractmethod
    def _subscription_changed(self) -> None: ...

    @abstractmethod
    def _on_coordinator_found(self, now: float) -> None:
        """A coordinator was found."""

    @abstractmethod
    def _on_coordinator_lost(self, now: float) -> None:
        """The coordinator is gone; what was asked of it is void."""

    @abstractmethod
    def _take_reply(self, sent: Send, reply: Any, now: float) -> None: ...

    @abstractmethod
    def _take_silence(self, sent: Send, error: ClientError, now: float) -> None: ...

    @abstractmethod
    def _on_answer_while_leaving(self, sent: Send, reply: Any | None) -> None:
        """While leaving, a reply (or None) only means that the next heartbeat may go out."""

    @abstractmethod
    def _on_revoked(self, hook: Revoke, now: float) -> None: ...

    @abstractmethod
    def _on_assigned(self, now: float) -> None: ...

    @abstractmethod
    def _ask_for_what_is_missing(self, now: float) -> None:
        """Ask for what is missing, as a member that is neither leaving nor at its end."""

    @abstractmethod
    def _keep_alive(self, now: float) -> None:
        """Heartbeats, when they are due."""

    @abstractmethod
    def _deadlines(self) -> Iterable[float]: ...

    @abstractmethod
    def _beats_at(self) -> Iterable[float]:
        """When the next heartbeat is due; nothing while there can be none."""

    @abstractmethod
    def _drop_out(self) -> None:
        """Forget the membership, the partitions excepted: they still have to be told lost."""

    @abstractmethod
    def _farewell_request(self, why: str) -> Any | None:
        """What tells the coordinator that we go; None when it needs not be told."""

    # Shared steps.

    @property
    def _over(self) -> bool:
        return self.ended or self.failure is not None

    @property
    def _wanted(self) -> bool:
        return self._started and bool(self._topics or self._pattern)

    def _flush(self, now: float) -> list[Effect]:
        self._advance(now)
        effects, self._effects = self._effects, []
        return effects

    def _advance(self, now: float) -> None:
        if self._leaving:
            self._advance_leave(now)
            return
        if self.failure is not None:
            self._lose_everything(now)
            return
        if self.ended or not self._wanted:
            return
        self._check_poll(now)
        if not self._coordinator and not self._finding and now >= self._retry_at:
            self._finding = True
            self._emit(FindCoordinator())
        self._ask_for_what_is_missing(now)

    def _advance_leave(self, now: float) -> None:
        if self._hook is not None and self.failure is None:
            self._keep_alive(now)
        if self.ended or self._hook is not None or self._farewell is not None:
            return
        if self.owned:
            self._begin_hook(Revoke(self.owned, lost=self.generation < 0), now)
            return
        request = self._farewell_request("the consumer is being closed") if self.failure is None else None
        if request is None or not self._coordinator:
            self._end()
            return
        self._farewell = Send(request, self.settings.request_timeout_ms, aside=True)
        self._emit(self._farewell)

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self.generation = NO_GENERATION
            self._emit(Ended())

    def _check_poll(self, now: float) -> None:
        if self.expired or self.generation < 0 or now < self._poll_deadline():
            return
        self.expired = True
        self._say(f"left: {POLL_EXPIRED} ({self.settings.max_poll_interval_ms}); its partitions are lost")
        request = self._farewell_request(POLL_EXPIRED)
        if request is not None and self._coordinator:
            self._emit(Send(request, self.settings.request_timeout_ms, aside=True))
        self._drop_out()

    def _poll_deadline(self) -> float:
        """A hook is the application at work; only one that takes the whole interval is stuck."""
        alive_at = max(self._polled_at, self._hook_since) if self._hook is not None else self._polled_at
        return alive_at + self.settings.max_poll_interval_ms

    def _lose_everything(self, now: float) -> None:
        if self.owned and self._hook is None:
            self._begin_hook(Revoke(self.owned, lost=True), now)

    def _begin_hook(self, hook: Hook, now: float) -> None:
        assert self._hook is None, "one hook at a time"
        self._hook, self._hook_since = hook, now
        if isinstance(hook, Assign):
            self.counters.partitions_assigned += len(hook.partitions)
        elif hook.lost:
            self.counters.partitions_lost += len(hook.partitions)
        else:
            self.counters.partitions_revoked += len(hook.partitions)
        self._emit(hook)

    def _lose_coordinator(self, why: str, now: float) -> None:
        if self._coordinator:
            self._coordinator = False
            self._emit(LoseCoordinator(why))
            self._on_coordinator_lost(now)

    def _back_off(self, now: float) -> None:
        self._failures += 1
        self._retry_at = now + self._backoff.delay_ms(self._failures)

    def _fail(self, error: ClientError) -> None:
        if self.failure is None:
            self.failure = error
            self._say(f"gave up: {error}")
            self._emit(Fail(error))
            self._drop_out()

    def _round_done(self, added: int, lost_or_revoked: int, now: float) -> None:
        took_ms = now - self._round_since if self._round_since is not None else 0.0
        self._round_since = None
        counters = self.counters
        counters.rebalances += 1
        counters.last_rebalance_at = now
        counters.rebalance_ms_total += took_ms
        counters.rebalance_ms_max = max(counters.rebalance_ms_max, took_ms)
        self._say(
            f"rebalanced in {took_ms:.0f} ms, generation {self.generation}: +{added} -{lost_or_revoked}, "
            f"now {partitions_text(self.owned)}"
        )

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _say(self, words: str) -> None:
        member = self.member_id or self.settings.instance_id or "new member"
        self._emit(Say(f"group {self.settings.group_id}, {member}: {words}"))
