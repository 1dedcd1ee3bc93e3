"""The asking side of a fetch session: what the leader must be told that it does not know yet. Pure.

The leader remembers what was asked (KIP-227), so a fetch names only partitions whose position changed and those that
it shall forget: 5,000 idle partitions cost nothing. Any doubt about what the leader remembers begins a new session. An
answer that is of no use says that the leader remembers something else than what is: it is told how it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple

from penstock.model.errors import FETCH_SESSION_ID_NOT_FOUND
from penstock.model.ids import PartitionKey
from penstock.replication.following import ANEW, Following, H, Position

FULL: Final = 0
_EPOCH_MAX: Final = 2**31 - 1


class Question(NamedTuple, Generic[H]):
    """One fetch. `generation` tells which session it was meant for, `more` that not everything fitted into it."""

    number: int
    generation: int
    session_id: int
    session_epoch: int
    wanted: list[tuple[Following[H], Position]]
    forgotten: list[PartitionKey]
    more: bool


class FetchingSession(Generic[H]):
    """What is followed from one leader, and how much of it that leader has been told."""

    def __init__(self) -> None:
        self.id = 0
        self.epoch = FULL
        self.refused_by_leader = False  # the leader has no room for a session: every fetch names everything
        self._generation = 0
        self._number = 0
        self._partitions: dict[PartitionKey, Following[H]] = {}
        self._changed: dict[Following[H], None] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._told = 0  # partitions that the leader has in its session and that are not held

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, key: PartitionKey) -> Following[H] | None:
        return self._partitions.get(key)

    def partitions(self) -> list[Following[H]]:
        return list(self._partitions.values())

    @property
    def established(self) -> bool:
        """Whether the next fetch goes on with a session that the leader has."""
        return self.epoch != FULL

    @property
    def has_news(self) -> bool:
        """Whether there is something that the leader waits for us to say."""
        return bool(self._changed)

    @property
    def asks_anything(self) -> bool:
        """Whether a fetch now would ask for any partition."""
        return bool(self._changed) or self._told > 0

    # -- what is followed

    def add(self, following: Following[H]) -> None:
        """Follows a partition. What the leader still has under its key is replaced, not forgotten."""
        self._partitions[following.key] = following
        self._changed[following] = None
        self._forgotten.pop(following.key, None)

    def remove(self, key: PartitionKey) -> Following[H] | None:
        following = self._partitions.pop(key, None)
        if following is not None:
            self._changed.pop(following, None)
            self._leave_out(following)
            following.held = "left"
            following.hold += 1
        return following

    def touch(self, following: Following[H]) -> None:
        """Its position may have changed."""
        if not following.held:
            self._changed[following] = None

    def hold(self, following: Following[H], why: str) -> int:
        """Leaves it out until `resume`; the answer names this hold."""
        if not following.held:
            self._leave_out(following)
        self._changed.pop(following, None)
        following.held = why
        following.hold += 1
        return following.hold

    def resume(self, following: Following[H]) -> None:
        """Ends a hold. What the leader still has of it is told anew, or forgotten before, as the next fetch needs."""
        if following.held and self._partitions.get(following.key) is following:
            following.held = ""
            self._changed[following] = None
            if following.key in self._forgotten:
                # The leader has it still. What it told meanwhile was dropped: to be named again, even where it was, is
                # to be told again.
                del self._forgotten[following.key]
                following.sent = ANEW
                self._told += 1

    def _leave_out(self, following: Following[H]) -> None:
        if following.sent is not None and not following.held:
            self._forgotten[following.key] = None
            self._told -= 1

    # -- asking

    def question(self, position_of: Callable[[Following[H]], Position | None], most: int) -> Question[H]:
        """The next fetch; `most` bounds what it names. `position_of` answers None for a partition that it holds."""
        full = self.epoch == FULL
        if full:
            self._begin_anew()
        self._number += 1
        wanted: list[tuple[Following[H], Position]] = []
        for following in list(self._changed):
            if len(wanted) >= most and not self.refused_by_leader:
                break
            position = position_of(following)
            if position is None:
                assert following.held, "a partition without a position is held"
                continue
            del self._changed[following]
            if position == following.sent:
                continue
            if following.sent is None:
                self._told += 1
            following.sent, following.sent_in = position, self._number
            wanted.append((following, position))
        forgotten, self._forgotten = list(self._forgotten), {}
        for key in forgotten:
            gone = self._partitions.get(key)
            if gone is not None:
                gone.sent = None
        question = Question(self._number, self._generation, self.id, self.epoch, wanted, forgotten, bool(self._changed))
        if not full:
            self._count_up()
        return question

    def _begin_anew(self) -> None:
        """The leader gets everything again; it forgets by itself what is not named."""
        self._generation += 1
        self._told = 0
        self._forgotten.clear()
        for following in self._partitions.values():
            following.sent = None
            if not following.held:
                self._changed[following] = None

    def _count_up(self) -> None:
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    # -- what came of it

    def answered(self, question: Question[H], error_code: int, session_id: int) -> bool:
        """Takes the outcome of a fetch. False when the reply has nothing to be read because the session was refused."""
        if question.generation != self._generation:
            return error_code == 0
        if error_code:
            # A session that the leader does not know needs no closing.
            self.failed(question, lost=error_code == FETCH_SESSION_ID_NOT_FOUND.code)
            return False
        if question.session_epoch == FULL:
            self.id, self.epoch = session_id, 1 if session_id else FULL
            self.refused_by_leader = session_id == 0
        elif session_id == 0:
            self.id, self.epoch = 0, FULL
        return True

    def dropped(self, question: Question[H], key: PartitionKey) -> None:
        """What was answered of a partition is of no use. The next fetch says how it is, or the leader says it again."""
        if question.generation != self._generation:
            return
        following = self._partitions.get(key)
        if following is None or following.held:
            self._forgotten[key] = None
        elif following.sent_in <= question.number:
            self._changed[following] = None

    def failed(self, question: Question[H], *, lost: bool = False) -> None:
        """Nobody knows whether the leader heard it: the next fetch closes the session and opens another."""
        if question.generation == self._generation:
            self.epoch = FULL
            if lost:
                self.id = 0
