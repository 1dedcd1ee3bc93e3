"""The replication stream as pgoutput writes it: `wire.py` reads messages, `changes.py` makes changes of them. Pure.

Invariants: transactions come in the order of their commits, each whole; a change is known by the commit of its
transaction and its number in it (`LogPosition`), which are the same whenever the log is read again. Begin with
`lsn.py`.
"""
