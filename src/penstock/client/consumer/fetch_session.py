"""The asking side of incremental fetch sessions (KIP-227): what the broker remembers need not be said again.

Pure. `plan` compares what is wanted with what the broker knows; `replied` or `failed` says how it went. A broker that
keeps no session answers with id 0, and then every fetch says everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

TopicKey: TypeAlias = bytes | str
"""A topic id, or a name where the broker is too old for ids. A topic made anew has another id, so it is another key."""

Wanted: TypeAlias = tuple[int, int, int]
"""(fetch offset, current leader epoch, most bytes) of one partition."""

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF


class FetchPlan(NamedTuple):
    """One request: what to say of which partitions, and which to forget."""

    session_id: int
    epoch: int
    said: dict[tuple[TopicKey, int], Wanted]
    forgotten: list[tuple[TopicKey, int]]


class FetchSession:
    """What one broker knows of our wishes."""

    __slots__ = ("_known", "epoch", "session_id")

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._known: dict[tuple[TopicKey, int], Wanted] = {}

    def plan(self, wanted: Mapping[tuple[TopicKey, int], Wanted]) -> FetchPlan:
        """The next request; `replied` or `failed` has to follow before the next plan."""
        known = self._known
        if self.epoch == FIRST_EPOCH:
            # A known id with epoch 0 ends that session and begins another one.
            self._known = dict(wanted)
            return FetchPlan(self.session_id, FIRST_EPOCH, self._known.copy(), [])
        said = {key: wish for key, wish in wanted.items() if known.get(key) != wish}
        forgotten = [key for key in known if key not in wanted]
        for key in forgotten:
            del known[key]
        known.update(said)
        return FetchPlan(self.session_id, self.epoch, said, forgotten)

    def replied(self, session_id: int) -> None:
        """A reply without a top-level error came, naming the session it belongs to."""
        if session_id == NO_SESSION:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def failed(self, *, gone: bool = False) -> None:
        """Nobody knows what the broker has seen: begin anew. `gone`: the broker does not know the session."""
        if gone:
            self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
