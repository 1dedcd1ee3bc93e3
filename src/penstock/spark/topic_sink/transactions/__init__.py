"""Rows into topics exactly once: tasks write transactions and leave them open, the driver decides and ends them.

    machine.py    the protocol: what a driver does at a plan, a commit and an abort (pure)
    effects.py    what it asks for and what it is answered (pure)    records.py   what the ledger says (pure)
    names.py      transactional ids (pure)                           decided.py   may a batch be decided? (pure)
    driving.py    obeys the machine: brokers, the log as the witness  ledger.py   the topic of decisions
    mark.py       the checkpoint's word that there is a ledger       incarnation.py  which driver this is
    writing.py    what tasks do
    plan.py       what Spark's writers call                          audit.py     input ranges against output records

A batch counts when a *decision* is committed in the ledger, the compacted topic `__penstock_decisions`: which ranges
were read, and which transactions hold what was made of them. Nothing that no decision lists is ever committed, so an
attempt that was replaced, or wakes batches later, can neither double nor lose. A decision is carried out by whoever
comes next, until every transaction that it lists is committed; whether one is, only the log says.

Spark plans and commits a batch in different processes that share no memory, and keeps neither. So every plan begins
as if the driver had just started: it fences, settles the last decision, aborts what nobody decided, and hands every
task an epoch that nobody had. That costs a request for each task, and there is nothing to go stale.

Invariants: a task never asks for a producer id under an id of the pool; a producer id and epoch belong to one attempt;
an id of another driver is touched only when the ledger says that this driver was replaced, and never while a decision
may list it; what was decided is never taken back before the log says that all of it was aborted; a ledger that does
not have what it had is never a fresh start.

Read `machine.py` first.
"""
