"""What an agent raises. Every one says what happened, where, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.declared.mistakes import Mistake
from penstock.model.errors import PenstockError


class AgentError(PenstockError):
    """The root of what agents raise."""


class AgentFileBroken(AgentError):
    """The file has mistakes; all of them are in `mistakes`."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(mistake.at(file) for mistake in mistakes))
        self.file, self.mistakes = file, tuple(mistakes)


class StateInUse(AgentError):
    """Another agent works on the same state directory."""

    def __init__(self, state_dir: Path, pid: int | None) -> None:
        who = "another agent" if pid is None else f"the agent with pid {pid}"
        super().__init__(
            f"{state_dir} belongs to {who}, which is running: stop it first, or give this one a name or a state_dir"
            " of its own"
        )
        self.state_dir, self.pid = state_dir, pid


class CannotReload(AgentError):
    """A running agent cannot change this; it has to be started anew."""


class AgentFenced(AgentError):
    """Another agent with the same name on the same machine id has taken over. This one must not come back by itself."""

    def __init__(self, transactional_id: str, life: str) -> None:
        super().__init__(
            f"another agent has taken over {transactional_id!r} (its life is {life}): two agents must not share a name"
            " and a machine id. Give one of them another name, or a machine_id of its own if the machine was cloned"
        )


class PositionsVanished(AgentError):
    """The topic of positions is not the one that it was. To begin anew would send everything twice."""


class SpoolFailed(AgentError):
    """The spool's directory cannot be written or read."""


class SpoolFull(AgentError):
    """The spool has reached its cap, or its disk is full."""
