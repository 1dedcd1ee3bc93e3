"""What is wrong with an agent, in sentences. Pure.

*Healthy* is an agent that does its work as long as brokers and sources let it: when it is not, somebody must look at
it. *Ready* is one whose events reach brokers or the spool right now: when it is not, senders had better go elsewhere.
"""

from __future__ import annotations

from typing import Final

from penstock.agent.admin.snapshot import RUNNING, Snapshot

CHECKPOINT_LATE_S: Final = 60.0
NO_BROKER: Final = "no broker answers: "
"""How the outlet begins to say why."""
FULL: Final = 0.98
"""From here on a buffer is called full: portions rarely fill it to the last byte."""


def health(snapshot: Snapshot) -> list[str]:
    """Why somebody must look at it; empty when it is well."""
    found = [
        f"input {name} fails and is tried again: {each.last_error or each.words}"
        for name, each in snapshot.inputs.items()
        if each.failing
    ]
    if snapshot.checkpoint_age_s > CHECKPOINT_LATE_S:
        found.append(
            f"positions were not saved for {snapshot.checkpoint_age_s:.0f} s; is the disk of"
            f" {snapshot.state_dir or 'the state'} full?"
        )
    return found


def readiness(snapshot: Snapshot) -> list[str]:
    """Why its events do not reach brokers now; empty when they do."""
    found = health(snapshot)
    if snapshot.state != RUNNING:
        found.append(f"it is {snapshot.state}")
    elif not snapshot.brokers_up:
        found.append(_away(snapshot))
    return found


def _away(snapshot: Snapshot) -> str:
    words = f"no broker answers at {snapshot.bootstrap}"
    if snapshot.last_error.startswith(NO_BROKER):
        why = snapshot.last_error.removeprefix(NO_BROKER).removeprefix(f"{snapshot.bootstrap}: ")
        words += f" ({why})"
    if spool_full(snapshot):
        return f"{words}, and the spool is full: senders wait"
    if snapshot.spool_limit_bytes:
        return f"{words}; what comes in goes to the spool"
    return f"{words}; memory is full, senders wait" if memory_full(snapshot) else words


def memory_full(snapshot: Snapshot) -> bool:
    return 0 < snapshot.memory_limit_bytes * FULL <= snapshot.memory_bytes


def spool_full(snapshot: Snapshot) -> bool:
    return 0 < snapshot.spool_limit_bytes * FULL <= snapshot.spool_bytes
