"""Transforms: what happens to events between an input and its topics, step by step and a whole batch at a time.

    Portion ──▶ Batch ──step──▶ Batch ──step──▶ … ──▶ routing.Router ──▶ Sorted

A step is read once from the file (`reading.py`: a frozen dataclass, every mistake in its place) and made once per
input (`Step.make`: a function over a batch). Verbs: parse add drop rename keep filter sample mask route timestamp.

Invariants: events of one topic keep their order; an event that a step cannot take fails alone, never its batch; a
failed event takes no part in further steps, goes on as it is and marked, or to dead letters, and is counted; what is
masked is masked in failed events too. Chance is injected. Imports `agent.routing`, `agent.portion` and `declared`.
Begin with `chain.py`, then `step.py`, then a verb.
"""

from penstock.agent.transforms.chain import Chain, Sorted

__all__ = ["Chain", "Sorted"]
